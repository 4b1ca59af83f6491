// shef_split for writes: no segment of an `input` region leaves unrefused, so nothing of the region
// is written, and (`lookup`) nothing of it is sealed. One `input` region between two others.
`default_nettype none
module read_only
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire       clk_i,
    input wire       rst_ni,
    input wire       enable_i,
    input wire [2:0] epoch_zero_i,
    input wire       ax_valid_i,
    input wire [7:0] ax_len_i,
    input wire [2:0] ax_size_i,
    input wire [1:0] ax_burst_i,
    input wire [15:0] ax_addr_i,
    input wire       seg_ready_i
);
  localparam region_cfg_t [2:0] REGIONS = {
    region_cfg_t'{id: 8'd2, mode: MODE_OUTPUT, base: 64'h6000, size: 64'h2000, tag_base: 64'h1_0000,
    chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd1, mode: MODE_INPUT, base: 64'h4000, size: 64'h2000, tag_base: 64'h2_0000,
    chunk_log2: 4'd9, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd0, mode: MODE_COUNTED, base: 64'h2000, size: 64'h2000,
    tag_base: 64'h3_0000, chunk_log2: 4'd6, key256: 1'b1, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b0}};
  axi_ax_t ax;
  seg_t seg;
  logic seg_valid;
  assign ax = '{id: 8'd5, addr: {48'd0, ax_addr_i}, len: ax_len_i, size: ax_size_i,
      burst: ax_burst_i};
  shef_split #(.NRegions(3), .Regions(REGIONS), .IsWrite(1'b1)) dut (
      .clk_i, .rst_ni, .enable_i, .epoch_zero_i, .exhausted_i('0),
      .ax_i(ax), .ax_valid_i, .ax_ready_o(), .seg_o(seg), .seg_valid_o(seg_valid), .seg_ready_i
  );
  logic init = 1'b0;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
  end
  always_comb begin
    if (init && rst_ni && seg_valid && seg.region == 4'd1) assert (seg.refuse != REFUSE_NONE);
    cover (init && rst_ni && seg_valid && seg.refuse == REFUSE_READ_ONLY);
    cover (init && rst_ni && seg_valid && seg.refuse == REFUSE_NONE && !seg.last);
  end
endmodule
`default_nettype wire
