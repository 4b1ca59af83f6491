// Types and constants of the DMA engine: descriptors and completions as in
// docs/reference/dma-rings.md, and the types between its blocks. Its registers are in
// shef_dma_regs_pkg.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_dma_pkg;

  localparam int unsigned QUEUES = shef_dma_regs_pkg::DMA_COUNT;
  localparam int unsigned QUEUE_W = $clog2(QUEUES);

  localparam logic [7:0] REGS_PAGE = shef_dma_regs_pkg::DMA_BASE[15:8];  // ctl address [15:8]
  localparam logic [31:0] MAX_ENTRIES = 32'd4096;
  localparam logic [31:0] MAX_BYTES = 32'h4000_0000;

  typedef enum logic [1:0] {
    LIFE_OFF = shef_dma_regs_pkg::DMA_STATUS_LIFE_OFF,
    LIFE_ON = shef_dma_regs_pkg::DMA_STATUS_LIFE_ON,
    LIFE_FAILED = shef_dma_regs_pkg::DMA_STATUS_LIFE_FAILED
  } life_e;

  // outcome of a descriptor
  typedef enum logic [2:0] {
    ST_DONE = 3'd0,
    ST_MALFORMED = 3'd1,
    ST_HOST = 3'd2,      // host memory was not reached
    ST_CARD = 3'd3,      // not in card memory
    ST_POISONED = 3'd4,  // host memory returned poisoned data
    ST_CANCELLED = 3'd5
  } status_e;

  typedef enum logic [1:0] {
    OP_NONE = 2'd0,
    OP_TO_CARD = 2'd1,
    OP_TO_HOST = 2'd2,
    OP_NOTHING = 2'd3
  } op_e;

  typedef struct packed {
    logic ok;  // well-formed
    op_e op;
    logic chain;
    logic [31:0] tag;
    logic [63:0] host;
    logic [63:0] card;
    logic [30:0] bytes;
  } desc_t;

  function automatic desc_t decode(input logic [511:0] beat);
    decode.ok = beat[7:2] == '0 && beat[1:0] != 2'd0 && beat[15:9] == '0 && beat[31:16] == '0 &&
        beat[223:192] <= MAX_BYTES &&
        beat[511:224] == '0;
    decode.op = op_e'(beat[1:0]);
    decode.chain = beat[8];
    decode.tag = beat[63:32];
    decode.host = beat[127:64];
    decode.card = beat[191:128];
    decode.bytes = beat[222:192];
  endfunction

  // Number of beats that the bytes touch, at most 65.
  function automatic logic [6:0] beats_of(input logic [5:0] offset, input logic [12:0] bytes);
    beats_of = 7'((14'(offset) + 14'(bytes) + 14'd63) >> 6);
  endfunction

  // ---- between the blocks ----
  // A part of a descriptor inside one page of host memory. Without bytes it only carries its end
  // and its status.
  typedef struct packed {
    logic [QUEUE_W-1:0] q;  // its queue
    logic [63:0] src;
    logic [63:0] dst;
    logic [12:0] bytes;  // 0 .. 4096
    logic fresh;         // first of a chain in this direction
    logic last;          // of its descriptor
    status_e status;
  } piece_t;

  // A write burst with all its beats present; without beats only the end of a piece.
  typedef struct packed {
    logic [63:0] addr;
    logic [6:0] beats;
    logic ends;          // the piece ends here
    logic [QUEUE_W-1:0] q;
    logic last;
    status_e status;
  } burst_t;

  // The end of a piece.
  typedef struct packed {
    logic [QUEUE_W-1:0] q;
    logic last;
    status_e status;
  } done_t;

  typedef struct packed {
    logic [63:0] addr;
    logic [31:0] tag;
    status_e status;
    logic [15:0] retired;
    logic [31:0] bytes;
    logic [31:0] seq;
  } cpl_t;

  // Descriptors in one page, to be read together.
  typedef struct packed {
    logic [57:0] line;  // address / 64
    logic [4:0] count;  // 1 .. 16
  } fetch_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
