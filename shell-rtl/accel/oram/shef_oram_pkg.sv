// Sizes and types of the oblivious memory.
`default_nettype none
package shef_oram_pkg;
  localparam int unsigned ID_W = 12;          // 4,096 blocks
  localparam int unsigned LEVELS = 12;        // of the tree, with the root: L + 1
  localparam int unsigned LEAF_W = LEVELS - 1;
  localparam int unsigned BUCKET = 4;         // Z: blocks of a bucket
  localparam int unsigned PATH_LINES = LEVELS * BUCKET;
  localparam int unsigned SLOTS = 128;        // of the stash
  localparam int unsigned SLOT_W = 7;
  localparam int unsigned MAX_LIMIT = SLOTS - PATH_LINES - 1;  // a path fits too
  localparam int unsigned BATCH = 64;         // commands on chip

  // A block in the tree: a line of 64 bytes. A dummy is all zeros.
  typedef struct packed {
    logic [479:0] data;
    logic real_block;
    logic [7:0] zero;
    logic [LEAF_W-1:0] leaf;
    logic [ID_W-1:0] id;
  } block_t;

  // A command or a result.
  typedef enum logic [1:0] {OP_READ = 2'd0, OP_WRITE = 2'd1} op_e;
  localparam logic [1:0] STATUS_OK = 2'd0;
  localparam logic [1:0] STATUS_RANGE = 2'd1;
  localparam logic [1:0] STATUS_OP = 2'd2;
  typedef struct packed {
    logic [479:0] data;
    logic [1:0] code;    // operation, or status
    logic [15:0] tag;    // of the caller
    logic [13:0] id;
  } message_t;
endpackage
`default_nettype wire
