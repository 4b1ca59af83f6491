// Types and constants shared by all modules of the Shield.
//
// Byte order: AXI data carries the byte of the lowest address in bits [7:0]. Cryptographic blocks
// and keys are stored as the standards print them: byte 0 in the most significant bits.
// beat_to_blocks/blocks_to_beat convert.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_pkg;

  // ---- AXI4, 512 bit ----
  // A port is one struct per direction, the fields in the order of the channels.
  localparam int unsigned AXI_ADDR_W = 64;
  localparam int unsigned AXI_DATA_W = 512;
  localparam int unsigned AXI_STRB_W = AXI_DATA_W / 8;
  localparam int unsigned AXI_ID_W = 8;

  localparam logic [1:0] AXI_BURST_INCR = 2'b01;
  localparam logic [2:0] AXI_SIZE_64 = 3'd6;
  localparam logic [1:0] AXI_OKAY = 2'b00;
  localparam logic [1:0] AXI_SLVERR = 2'b10;

  typedef struct packed {
    logic [AXI_ID_W-1:0] id;
    logic [AXI_ADDR_W-1:0] addr;
    logic [7:0] len;
    logic [2:0] size;
    logic [1:0] burst;
  } axi_ax_t;

  typedef struct packed {
    logic [AXI_DATA_W-1:0] data;
    logic [AXI_STRB_W-1:0] strb;
    logic last;
  } axi_w_t;

  typedef struct packed {
    logic [AXI_ID_W-1:0] id;
    logic [1:0] resp;
  } axi_b_t;

  typedef struct packed {
    logic [AXI_ID_W-1:0] id;
    logic [AXI_DATA_W-1:0] data;
    logic [1:0] resp;
    logic last;
  } axi_r_t;

  // from the master to the slave
  typedef struct packed {
    axi_ax_t aw;
    logic aw_valid;
    axi_w_t w;
    logic w_valid;
    logic b_ready;
    axi_ax_t ar;
    logic ar_valid;
    logic r_ready;
  } axi_req_t;

  // from the slave to the master
  typedef struct packed {
    logic aw_ready;
    logic w_ready;
    axi_b_t b;
    logic b_valid;
    logic ar_ready;
    axi_r_t r;
    logic r_valid;
  } axi_rsp_t;

  // ---- AXI4-Lite, 32 bit ----
  localparam int unsigned AXIL_ADDR_W = 16;

  // from the master to the slave
  typedef struct packed {
    logic [AXIL_ADDR_W-1:0] aw_addr;
    logic aw_valid;
    logic [31:0] w_data;
    logic [3:0] w_strb;
    logic w_valid;
    logic b_ready;
    logic [AXIL_ADDR_W-1:0] ar_addr;
    logic ar_valid;
    logic r_ready;
  } axil_req_t;

  // from the slave to the master
  typedef struct packed {
    logic aw_ready;
    logic w_ready;
    logic [1:0] b_resp;
    logic b_valid;
    logic ar_ready;
    logic [31:0] r_data;
    logic [1:0] r_resp;
    logic r_valid;
  } axil_rsp_t;

  // ---- Shield configuration ----
  localparam int unsigned MAX_REGIONS = 16;
  localparam int unsigned REGION_W = 4;
  localparam int unsigned VERSION_W = 48;
  localparam int unsigned CHUNK_INDEX_W = 40;

  typedef enum logic [2:0] {
    MODE_NONE = 3'd0,
    MODE_INPUT = 3'd1,
    MODE_OUTPUT = 3'd2,
    MODE_COUNTED = 3'd3,
    MODE_TREE = 3'd4,
    MODE_BYPASS = 3'd5
  } region_mode_e;

  // One region of accelerator memory. base, size, tag_base are multiples of 4 KiB.
  typedef struct packed {
    logic [7:0] id;          // region number as in the IV
    region_mode_e mode;
    logic [63:0] base;       // byte address, the same on both sides of the Shield
    logic [63:0] size;       // bytes
    logic [63:0] tag_base;   // byte address of the tag of chunk 0
    logic [3:0] chunk_log2;  // 6 (64 B) .. 12 (4 KiB)
    logic key256;            // 1: AES-256, 0: AES-128
    logic [1:0] set;         // engine set
    logic [63:0] node_base;  // tree: byte address of node 0 of level 0
    logic [3:0] prefetch;    // chunks prefetched for a sequential reader, 0 .. 8
    logic wide_counter;      // counted: 1: 48-bit counters, 0: 36-bit
  } region_cfg_t;

  // Shape of one engine set.
  typedef struct packed {
    logic [7:0] lanes;         // AES lanes: 1, 2, 4
    logic [15:0] big_lines;    // lines for chunks above 512 B
    logic [15:0] small_lines;  // lines for chunks up to 512 B
    logic [15:0] ring_beats;   // read ring, beats of 64 B
    logic [1:0] acc;           // accelerator port
    logic [1:0] port;          // memory port of all its regions
    logic [31:0] cache_bytes;  // 0: no cache
    logic [12:0] cache_line;   // bytes, the chunk of all its regions; 0: no cache
  } set_cfg_t;

  // The scope of a fault's stop.
  typedef enum logic [1:0] {
    ON_FAULT_SHIELD = 2'd0,  // everything
    ON_FAULT_REGION = 2'd1,  // the region, if the fault belongs to one
    ON_FAULT_HALT = 2'd2     // everything, and the session is closed and zeroised
  } on_fault_e;

  // ---- faults and refusals ----
  typedef enum logic [3:0] {
    FAULT_NONE = 4'd0,
    FAULT_TAG = 4'd1,       // a chunk's tag did not match
    FAULT_BUS = 4'd2,       // the memory responded with an error
    FAULT_TIMEOUT = 4'd3,   // the memory did not respond
    FAULT_PROTOCOL = 4'd4,  // an unowed response, or one of the wrong length
    FAULT_NODE = 4'd5,      // a tree node's tag did not match
    FAULT_INTERNAL = 4'd6   // a countermeasure inside the Shield fired
  } fault_kind_e;

  typedef struct packed {
    fault_kind_e kind;
    logic [7:0] region;
    logic [CHUNK_INDEX_W-1:0] chunk;
    logic [VERSION_W-1:0] version;
  } fault_t;

  typedef enum logic [3:0] {
    REFUSE_NONE = 4'd0,
    REFUSE_RANGE = 4'd1,      // not completely inside one region
    REFUSE_BURST = 4'd2,      // not an INCR burst, or across a 4 KiB page
    REFUSE_READ_ONLY = 4'd3,  // write to an `input` region
    REFUSE_SECOND_WRITE = 4'd4,  // chunk of an `output` region already sealed in this epoch
    REFUSE_EPOCH_ZERO = 4'd5,
    REFUSE_EXHAUSTED = 4'd6,  // a version counter or a key's use limit is exhausted
    REFUSE_NOT_KEYED = 4'd7,
    // read of an `output` chunk that was not sealed in this epoch and is not on chip
    REFUSE_NOT_WRITTEN = 4'd8,
    REFUSE_CUT_OFF = 4'd9  // write whose data did not arrive before a flush
  } refuse_kind_e;

  typedef struct packed {
    refuse_kind_e kind;
    logic [7:0] region;  // 8'hff: none
    logic [63:0] addr;
  } refusal_t;

  // ---- commands from the control plane to an engine set ----
  typedef enum logic [1:0] {
    SET_FLUSH = 2'd0,       // seal every dirty line, write back tags, wait for all responses
    SET_INVALIDATE = 2'd1,  // flush, then drop all lines and tags held on chip
    // flush, stop, raise the region's epoch, clear its written map, drop its lines, resume
    SET_EPOCH = 2'd2
  } set_cmd_e;

  // AXI beat (byte 0 in [7:0]) <-> four blocks (block 0 in [511:384], byte 0 in the top bits)
  function automatic logic [511:0] byte_reverse512(input logic [511:0] x);
    logic [511:0] y;
    for (int i = 0; i < 64; i++) y[8*(63-i)+:8] = x[8*i+:8];
    return y;
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
