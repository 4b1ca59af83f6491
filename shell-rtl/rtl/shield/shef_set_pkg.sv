// Types shared by the blocks of an engine set.
//
// Inside a set a region is named by its place in the parameter `Regions` (reg_idx_t); tables give
// its id for the IV, faults and statements. A line is a chunk-sized place in the line RAM.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_set_pkg;
  import shef_pkg::*;

  localparam int unsigned LINE_W = 6;       // at most 64 lines
  localparam int unsigned TAG_ENTRY_W = 5;  // at most 32 tag lines
  localparam int unsigned MASK_SLOT_W = 5;  // mask quads in flight
  localparam int unsigned ZERO_W = 16;      // address of the zeroising sweep

  typedef logic [LINE_W-1:0] line_t;
  typedef logic [REGION_W-1:0] reg_idx_t;
  typedef logic [CHUNK_INDEX_W-1:0] chunk_idx_t;
  typedef logic [VERSION_W-1:0] version_t;

  // one value for each of the 16 possible regions of a set
  typedef logic [MAX_REGIONS-1:0][3:0] log2_tab_t;
  typedef logic [MAX_REGIONS-1:0][7:0] id_tab_t;
  typedef logic [MAX_REGIONS-1:0][63:0] addr_tab_t;

  // identifiers on the memory port, the same for reads and writes
  localparam logic [AXI_ID_W-1:0] MEM_ID_DATA = 8'd0;
  localparam logic [AXI_ID_W-1:0] MEM_ID_TAG = 8'd1;
  localparam logic [AXI_ID_W-1:0] MEM_ID_NODE = 8'd2;

  // the part of a burst in one chunk
  typedef struct packed {
    logic [AXI_ID_W-1:0] id;
    refuse_kind_e refuse;  // not NONE: the whole burst is one refused segment
    reg_idx_t region;
    chunk_idx_t chunk;
    logic [11:0] offset;  // of its first beat in the chunk, aligned to the beat size
    logic [2:0] size;
    logic [8:0] beats;
    logic first;  // of the burst
    logic last;   // of the burst
    logic [63:0] addr;  // of the burst, for the record of a refusal
  } seg_t;

  // a segment after lookup: the place of its bytes
  typedef struct packed {
    logic [AXI_ID_W-1:0] id;
    logic err;  // answer with SLVERR and zeros, no line is held
    line_t line;
    logic [11:0] offset;
    logic [2:0] size;
    logic [8:0] beats;
    logic last;
  } lseg_t;

  // a chunk in flight between memory and a line
  typedef struct packed {
    line_t line;
    reg_idx_t region;
    chunk_idx_t chunk;
    version_t version;
  } chunk_t;

  // parameters of the tag check or the tag write of that chunk
  typedef struct packed {
    logic [TAG_ENTRY_W-1:0] entry;
    logic [1:0] quarter;
    logic [MASK_SLOT_W-1:0] slot;
    logic [1:0] lane;
  } tagref_t;

  // one AES job: four counter blocks
  typedef struct packed {
    reg_idx_t region;
    chunk_idx_t chunk;
    version_t version;
    logic [31:0] ctr;  // of the first block
  } ctr_job_t;

  // outputs of the tree, each with a separate handshake; all zeros without a tree
  typedef struct packed {
    logic valid;
    logic bump;      // of a request to raise the version
    logic last;      // it cannot be raised
    version_t version;
  } tree_rsp_t;
  typedef struct packed {
    logic valid;
    logic [63:0] addr;
  } node_ar_t;
  typedef struct packed {
    logic valid;
    logic [63:0] addr;
    logic [511:0] data;
  } node_wb_t;
  typedef struct packed {
    logic valid;
    reg_idx_t region;
    chunk_idx_t index;
    version_t version;
  } node_job_t;
  typedef struct packed {
    logic valid;
    reg_idx_t region;
    logic [511:0] data;
  } node_gh_t;
  typedef struct packed {
    logic valid;
    logic internal;  // not caused by memory
    reg_idx_t region;
    chunk_idx_t index;
    version_t version;
  } node_fault_t;

  // a beat for GHASH
  typedef struct packed {
    logic [4:0] key;  // top bit: that of the region's tree nodes
    logic first;  // of its chunk
    logic last;
    logic [5:0] pow;  // later beats
    logic [511:0] data;
  } gh_beat_t;

  // events that the statistics count, the first one last
  typedef struct packed {
    logic ahead_failed;   // a prefetched chunk: did not match
    logic ahead_used;     // was requested
    logic ahead_taken;    // got its line
    logic w_wait;         // memory is not ready for writes
    logic ar_wait;        // nor for reads
    logic crypt_wait;     // a beat waits for its keystream or for GHASH
    logic line_wait;      // a segment waits for a line
    logic rsp_wait;       // a response waits for its line
    logic sealed;         // a chunk was sealed
    logic fetched;        // a chunk was fetched
    logic w_beat;         // of the accelerator
    logic r_beat;
    logic w_miss;         // a write whose chunk is in no line
    logic w_hit;
    logic r_miss;         // a read whose chunk is in no line
    logic r_hit;
  } set_events_t;

  // destinations of a job's result, in the upper bits of the job's user field
  localparam logic [2:0] KS_READ = 3'd0;
  localparam logic [2:0] KS_SEAL = 3'd1;
  localparam logic [2:0] KS_READ_MASK = 3'd2;
  localparam logic [2:0] KS_SEAL_MASK = 3'd3;
  localparam logic [2:0] KS_NODE = 3'd4;

  // destinations of a GHASH result
  localparam logic [1:0] GH_READ = 2'd0;
  localparam logic [1:0] GH_SEAL = 2'd1;
  localparam logic [1:0] GH_NODE = 2'd2;

  // a tag as in memory <-> as a block (byte 0 in the top bits)
  function automatic logic [127:0] byte_reverse128(input logic [127:0] x);
    logic [127:0] y;
    for (int i = 0; i < 16; i++) y[8*(15-i)+:8] = x[8*i+:8];
    return y;
  endfunction

  // lines whose number has bit b
  function automatic logic [(1<<LINE_W)-1:0] numbered(input int unsigned b);
    logic [(1<<LINE_W)-1:0] x;
    for (int unsigned i = 0; i < (1 << LINE_W); i++) x[i] = ((i >> b) & 1) != 0;
    return x;
  endfunction
  // number of the line of a one-hot set of lines
  function automatic line_t index_of(input logic [(1<<LINE_W)-1:0] lines);
    line_t n;
    for (int unsigned b = 0; b < LINE_W; b++) n[b] = (lines & numbered(b)) != '0;
    return n;
  endfunction

  // zeros where a byte has no mark
  function automatic logic [511:0] keep_marked(input logic [511:0] x, input logic [63:0] mark);
    logic [511:0] y;
    y = x;
    for (int i = 0; i < 64; i++) if (!mark[i]) y[8*i+:8] = 8'h00;
    return y;
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
