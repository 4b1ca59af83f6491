// State of a line in the directory (`shef_lookup`): one enum for each of its aspects, and three
// flags. The legal steps of each enum are listed in the directory's proof (`lookup`).
`default_nettype none
package shef_line_pkg;
  // what becomes of its chunk
  typedef enum logic [2:0] {
    S_FREE,   // has no chunk
    S_AHEAD,  // prefetched and not requested yet; its stream continues
    S_SPEC,   // the same, but its stream has ended
    S_CLEAN,  // requested; it has nothing for memory
    S_DIRTY,  // has bytes that are not in memory
    S_EVICT,  // the same, and it is selected for sealing
    S_SEAL    // its bytes are on their way to memory
  } line_state_e;
  // what it waits for
  typedef enum logic [1:0] {
    R_NONE,
    R_VERSION,
    R_CHUNK,
    R_BOTH  // the version first
  } line_request_e;
  // what is known of its bytes
  typedef enum logic [1:0] {
    B_PART,    // some may be unknown
    B_WANTED,  // the same, and a read waits for them
    B_WHOLE
  } line_bytes_e;
  // whether segments find it by its name
  typedef enum logic [1:0] {
    N_LIVE,
    N_FROZEN,  // they do, but its region was frozen in the last cycle: it is lost in the next one
    N_LOST,    // dropped, but a response may still read it
    N_DEAD     // lost, and its region is frozen
  } line_name_e;
  typedef struct packed {
    line_state_e state;
    line_request_e request;
    line_bytes_e bytes;
    line_name_e name;
    logic fetched;       // all its bytes are valid, whatever the marks
    logic full;          // every byte was written since it became dirty
    logic last;          // its version cannot be raised
    logic [6:0] reads;   // responses that read it
    logic [1:0] writes;  // segments that write it
  } line_status_t;
endpackage
`default_nettype wire
