// One AXI4 port for three read streams and two write streams.
//
// Read stream i has id i, and so has write stream i: a stream waits for no burst of another one.
// Requests pass a register; the stream of the lowest number goes first. W beats follow in the order
// of the requests, one beat a cycle. R and B go to the stream of their id in the same cycle.
// clear_i zeroes the order.
`default_nettype none
module shef_storage_port
  import shef_pkg::*;
(
    input  wire             clk_i,
    input  wire             rst_ni,
    input  wire             clear_i,

    input  wire axi_ax_t [2:0] ar_i,
    input  wire          [2:0] ar_valid_i,
    output wire          [2:0] ar_ready_o,
    output wire          [2:0] r_valid_o,
    input  wire axi_ax_t [1:0] aw_i,
    input  wire          [1:0] aw_valid_i,
    output wire          [1:0] aw_ready_o,
    input  wire axi_w_t  [1:0] w_i,
    input  wire          [1:0] w_valid_i,
    output wire          [1:0] w_ready_o,
    output wire          [1:0] b_valid_o,

    output axi_ax_t         acc_aw_o,
    output wire             acc_aw_valid_o,
    input  wire             acc_aw_ready_i,
    output axi_w_t          acc_w_o,
    output wire             acc_w_valid_o,
    input  wire             acc_w_ready_i,
    input  wire axi_b_t     acc_b_i,
    input  wire             acc_b_valid_i,
    output wire             acc_b_ready_o,
    output axi_ax_t         acc_ar_o,
    output wire             acc_ar_valid_o,
    input  wire             acc_ar_ready_i,
    input  wire axi_r_t     acc_r_i,
    input  wire             acc_r_valid_i,
    output wire             acc_r_ready_o
);
  localparam int unsigned OPEN = 64;  // write bursts whose data are not complete: 32 a stream

  // ---- requests ----
  axi_ax_t ar_q, aw_q;
  logic ar_valid_q, aw_valid_q;
  wire order_ready, order_valid, from;
  wire ar_free = !ar_valid_q || acc_ar_ready_i;
  wire aw_free = (!aw_valid_q || acc_aw_ready_i) && order_ready;
  assign ar_ready_o = {3{ar_free}} & ar_valid_i & ~{|ar_valid_i[1:0], ar_valid_i[0], 1'b0};
  assign aw_ready_o = {2{aw_free}} & aw_valid_i & ~{aw_valid_i[0], 1'b0};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {ar_valid_q, aw_valid_q} <= '0;
      {ar_q, aw_q} <= '0;
    end else begin
      if (ar_free) ar_valid_q <= |ar_valid_i;
      for (int i = 0; i < 3; i++) if (ar_ready_o[i]) ar_q <= ar_i[i];
      if (!aw_valid_q || acc_aw_ready_i) aw_valid_q <= |aw_ready_o;
      for (int i = 0; i < 2; i++) if (aw_ready_o[i]) aw_q <= aw_i[i];
    end
  end
  assign acc_ar_o = ar_q;
  assign acc_ar_valid_o = ar_valid_q;
  assign acc_aw_o = aw_q;
  assign acc_aw_valid_o = aw_valid_q;

  // ---- write data: the stream of each request ----
  wire w_beat = acc_w_valid_o && acc_w_ready_i;
  wire [5:0] sweep;
  wire cleared;
  wire [6:0] order;
  shef_sweep #(.Words(OPEN)) u_sweep (
    .clk_i,
    .clear_i,
    .addr_o(sweep),
    .cleared_o(cleared)
  );
  shef_fifo #(.W(1), .Depth(OPEN)) u_order (
    .clk_i,
    .rst_ni,
    .clr_i(clear_i),
    .zero_addr_i(sweep),
    .in_valid_i(|aw_ready_o),
    .in_ready_o(order_ready),
    .in_data_i(aw_ready_o[1]),
    .out_valid_o(order_valid),
    .out_ready_i(w_beat && acc_w_o.last),
    .out_data_o(from),
    .count_o(order)
  );
  assign acc_w_o = w_i[from];
  assign acc_w_valid_o = order_valid && w_valid_i[from];
  assign w_ready_o = {from, !from} & {2{order_valid && acc_w_ready_i}};

  // ---- responses ----
  for (genvar i = 0; i < 3; i++) begin : g_r
    assign r_valid_o[i] = acc_r_valid_i && acc_r_i.id == AXI_ID_W'(i);
  end
  for (genvar i = 0; i < 2; i++) begin : g_b
    assign b_valid_o[i] = acc_b_valid_i && acc_b_i.id == AXI_ID_W'(i);
  end
  assign acc_r_ready_o = 1'b1;
  assign acc_b_ready_o = 1'b1;

  wire unused = &{1'b0, cleared, order, acc_b_i.resp, acc_r_i.data, acc_r_i.resp, acc_r_i.last};
endmodule
`default_nettype wire
