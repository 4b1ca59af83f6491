// The helpers of the directory in its proof, which holds whatever they return: the choice among
// lines is one of the offered lines, or none (`pick` proves it); the next chunk to prefetch and
// whether there is room are free (`tally` proves the count). Nothing drives `any`: a register
// loaded from it has any value in any cycle.
`default_nettype none
module shef_pick #(
    parameter int unsigned N = 40
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clr_i,
    input  wire  [N-1:0] x_i,
    input  wire          next_i,
    output logic [N-1:0] one_o
);
  logic [N-1:0] any, any_q;
  always_ff @(posedge clk_i) any_q <= any;
  always_comb begin
    one_o = any_q & x_i;
    if ((one_o & (one_o - 1'b1)) != '0) one_o = '0;
  end
  logic unused;
  assign unused = ^{rst_ni, clr_i, next_i};
endmodule

module shef_tally #(
    parameter int unsigned N = 40,
    parameter int unsigned Limit = 30
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         clr_i,
    input  wire [N-1:0] x_i,
    input  wire         up_i,
    output logic        room_o
);
  logic any;
  always_ff @(posedge clk_i) room_o <= any;
  logic unused;
  assign unused = ^{rst_ni, clr_i, x_i, up_i};
endmodule

module shef_ahead
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned ChunkW = CHUNK_INDEX_W,
    parameter logic [MAX_REGIONS-1:0] IsOutput = '0,
    parameter logic [MAX_REGIONS-1:0][3:0] Prefetch = '0,
    parameter logic [MAX_REGIONS-1:0][CHUNK_INDEX_W-1:0] NumChunks = '0
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire               stop_i,
    input  wire               rd_i,
    input  wire  reg_idx_t    rd_region_i,
    input  wire  [ChunkW-1:0] rd_chunk_i,
    input  wire               wr_i,
    input  wire  reg_idx_t    wr_region_i,
    output logic              stream_o,
    output logic              end_o,
    output logic              next_valid_o,
    input  wire               next_take_i,
    output reg_idx_t          region_o,
    output logic [ChunkW-1:0] next_chunk_o
);
  // an existing region, and not an `output` one
  typedef struct packed {
    logic stream;
    logic stream_end;
    logic next_valid;
    logic region;
    logic [ChunkW-1:0] chunk;
  } any_t;
  any_t any, any_q;
  always_ff @(posedge clk_i) any_q <= any;
  assign stream_o = any_q.stream;
  assign end_o = any_q.stream_end;
  assign next_valid_o = any_q.next_valid;
  assign region_o = {3'd0, any_q.region};
  assign next_chunk_o = any_q.chunk;
  logic unused;
  assign unused = ^{rst_ni, clr_i, stop_i, rd_i, rd_region_i, rd_chunk_i, wr_i, wr_region_i,
      next_take_i};
endmodule
`default_nettype wire
