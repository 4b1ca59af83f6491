// Tag check of fetched chunks: compares GHASH ^ mask with the tag from memory, all 128 bits, in
// fetch order.
//
// chunk_*: the chunks in that order (always room); s_*: GHASH results in the same order, no
// back-pressure (at most Depth). The lookups of mask and tag are combinational, and the chunk waits
// for both. Three cycles from the last of them to ok_o or fail_o (one pulse each, with chunk_o).
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_verify
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Depth = 64
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     clr_i,
    input  wire                     stop_i,
    input  wire [ZERO_W-1:0]        zero_addr_i,
    input  wire                     chunk_valid_i,
    input  wire  chunk_t            chunk_i,
    input  wire  tagref_t           tagref_i,
    input  wire                     s_valid_i,
    input  wire [127:0]             s_i,

    output tagref_t                 get_o,
    input  wire                     mask_valid_i,
    input  wire [127:0]             mask_i,
    input  wire                     tag_valid_i,
    input  wire [127:0]             tag_i,
    output logic                    used_o,       // mask and tag of get_o were taken

    output logic                    ok_o,
    output logic                    fail_o,
    output chunk_t                  chunk_o
);
  chunk_t head;
  logic head_valid, s_valid;
  logic [127:0] s, diff_q;
  logic diff_valid_q, ok_q, fail_q;
  chunk_t chunk_q, done_q;

  shef_fifo #(.W($bits(chunk_t) + $bits(tagref_t)), .Depth(Depth)) u_chunks (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
      .in_valid_i(chunk_valid_i), .in_ready_o(), .in_data_i({chunk_i, tagref_i}),
      .out_valid_o(head_valid), .out_ready_i(used_o), .out_data_o({head, get_o}), .count_o()
  );
  shef_fifo #(.W(128), .Depth(Depth)) u_s (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
      .in_valid_i(s_valid_i), .in_ready_o(), .in_data_i(s_i),
      .out_valid_o(s_valid), .out_ready_i(used_o), .out_data_o(s), .count_o()
  );

  assign used_o = head_valid && s_valid && mask_valid_i && tag_valid_i && !stop_i;
  assign ok_o = ok_q;
  assign fail_o = fail_q;
  assign chunk_o = done_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      diff_valid_q <= 1'b0;
      diff_q <= '0;
      ok_q <= 1'b0;
      fail_q <= 1'b0;
      chunk_q <= '0;
      done_q <= '0;
    end else begin
      diff_valid_q <= used_o;
      if (used_o) begin
        diff_q <= s ^ mask_i ^ tag_i;
        chunk_q <= head;
      end
      ok_q <= diff_valid_q && diff_q == '0 && !stop_i;
      fail_q <= diff_valid_q && diff_q != '0 && !stop_i;
      if (diff_valid_q) done_q <= chunk_q;
    end
  end
  logic unused;
  assign unused = ^zero_addr_i;
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
