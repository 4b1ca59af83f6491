// Tree prefetch: requests nodes two ahead of a sequential stream.
//
// look_i: a chunk's version is requested (pulse). touch_o: request the nodes of chunk_o of
// region_o, in the same cycle; it may be ignored.
`default_nettype none
module shef_tree_ahead
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter logic [MAX_REGIONS-1:0] IsTree = '0,
    parameter logic [MAX_REGIONS-1:0][CHUNK_INDEX_W-1:0] NumChunks = '0
) (
    input  wire              clk_i,
    input  wire              rst_ni,
    input  wire              clr_i,
    input  wire              look_i,
    input  wire  reg_idx_t   look_region_i,
    input  wire  chunk_idx_t look_chunk_i,
    output logic             touch_o,
    output reg_idx_t         region_o,
    output chunk_idx_t       chunk_o
);
  chunk_idx_t next_q;
  reg_idx_t region_q;
  logic ours, follows;

  assign ours = look_i && IsTree[look_region_i];
  assign follows = ours && look_region_i == region_q && look_chunk_i == next_q;
  assign region_o = look_region_i;
  assign chunk_o = look_chunk_i + 40'd16;
  assign touch_o = follows && look_chunk_i[1:0] == 2'd0 && chunk_o < NumChunks[look_region_i];
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      next_q <= '0;
      region_q <= '0;
    end else if (ours) begin
      next_q <= look_chunk_i + 1'b1;
      region_q <= look_region_i;
    end
  end
endmodule
`default_nettype wire
