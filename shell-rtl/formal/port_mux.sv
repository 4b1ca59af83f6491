// shef_port_mux, two sets: towards the memory AW, W and AR follow the handshake rules if the sets
// do. A request carries its set's number. W beats belong to the AW whose turn it is, and no set's W
// precedes its AW. A response goes only to the set whose number it carries, or, if it carries none,
// to the first set under an unused id.
`default_nettype none
module port_mux
  import shef_pkg::*;
(
    input wire            clk_i,
    input wire            rst_ni,
    input wire axi_ax_t   aw0_i,
    input wire axi_ax_t   aw1_i,
    input wire [1:0]      aw_valid_i,
    input wire axi_w_t    w0_i,
    input wire axi_w_t    w1_i,
    input wire [1:0]      w_valid_i,
    input wire [1:0]      b_ready_i,
    input wire axi_ax_t   ar0_i,
    input wire axi_ax_t   ar1_i,
    input wire [1:0]      ar_valid_i,
    input wire [1:0]      r_ready_i,
    input wire            aw_ready_i,
    input wire            w_ready_i,
    input wire axi_b_t    b_i,
    input wire            b_valid_i,
    input wire            ar_ready_i,
    input wire axi_r_t    r_i,
    input wire            r_valid_i
);
  localparam logic [1:0][1:0] NO = {2'd2, 2'd1};
  axi_ax_t [1:0] saw, sar;
  axi_w_t [1:0] sw;
  axi_b_t [1:0] sb;
  axi_r_t [1:0] sr;
  logic [1:0] aw_ready, w_ready, ar_ready, b_valid, r_valid;
  axi_ax_t aw, ar;
  axi_w_t w;
  logic aw_valid, w_valid, ar_valid, b_ready, r_ready;
  assign saw = {aw1_i, aw0_i};
  assign sar = {ar1_i, ar0_i};
  assign sw = {w1_i, w0_i};
  shef_port_mux #(.NSets(2), .SetNo(NO)) dut (
      .clk_i, .rst_ni,
      .set_aw_i(saw), .set_aw_valid_i(aw_valid_i), .set_aw_ready_o(aw_ready), .set_w_i(sw),
      .set_w_valid_i(w_valid_i), .set_w_ready_o(w_ready),
      .set_b_o(sb), .set_b_valid_o(b_valid), .set_b_ready_i(b_ready_i), .set_ar_i(sar),
      .set_ar_valid_i(ar_valid_i), .set_ar_ready_o(ar_ready),
      .set_r_o(sr), .set_r_valid_o(r_valid), .set_r_ready_i(r_ready_i),
      .mem_aw_o(aw), .mem_aw_valid_o(aw_valid), .mem_aw_ready_i(aw_ready_i), .mem_w_o(w),
      .mem_w_valid_o(w_valid), .mem_w_ready_i(w_ready_i),
      .mem_b_i(b_i), .mem_b_valid_i(b_valid_i), .mem_b_ready_o(b_ready), .mem_ar_o(ar),
      .mem_ar_valid_o(ar_valid), .mem_ar_ready_i(ar_ready_i),
      .mem_r_i(r_i), .mem_r_valid_i(r_valid_i), .mem_r_ready_o(r_ready)
  );
  axi_address i_aw (.clk_i, .rst_ni, .valid_i(aw_valid), .ready_i(aw_ready_i), .ax_i(aw));
  axi_address i_ar (.clk_i, .rst_ni, .valid_i(ar_valid), .ready_i(ar_ready_i), .ax_i(ar));
  axi_channel #(.W($bits(axi_w_t))) i_w (.clk_i, .rst_ni, .valid_i(w_valid), .ready_i(w_ready_i),
      .data_i(w), .break_i(1'b0));
  for (genvar s = 0; s < 2; s++) begin : g_set
    axi_address #(.Assume(1'b1)) i_saw (.clk_i, .rst_ni, .valid_i(aw_valid_i[s]),
        .ready_i(aw_ready[s]), .ax_i(saw[s]));
    axi_address #(.Assume(1'b1)) i_sar (.clk_i, .rst_ni, .valid_i(ar_valid_i[s]),
        .ready_i(ar_ready[s]), .ax_i(sar[s]));
    axi_channel #(.W($bits(axi_w_t)), .Assume(1'b1)) i_sw (
        .clk_i, .rst_ni, .valid_i(w_valid_i[s]), .ready_i(w_ready[s]), .data_i(sw[s]),
        .break_i(1'b0)
    );
  end

  logic init = 1'b0;
  logic [3:0] owed[2];           // bursts of the set whose AW has left and whose W has not ended
  logic [1:0] w_fire;
  assign w_fire = w_valid_i & w_ready;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    for (int s = 0; s < 2; s++) begin
      if (!rst_ni) owed[s] <= '0;
      else owed[s] <= owed[s] + 4'(aw_valid_i[s] && aw_ready[s]) - 4'(w_fire[s] && sw[s].last);
    end
  end
  // the queue of turns holds each set once for each owed burst
  logic [3:0] held[2];
  always_comb begin
    held[0] = '0;
    held[1] = '0;
    for (int i = 0; i < 8; i++)
      if (4'(i) < dut.g_mux.i_order.count_q) begin
        if (dut.g_mux.i_order.mem_q[3'(dut.g_mux.i_order.rp_q + 3'(i))]) held[1] = held[1] + 1'b1;
        else held[0] = held[0] + 1'b1;
      end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (dut.g_mux.i_order.count_q <= 4'd8 &&
          3'(dut.g_mux.i_order.wp_q - dut.g_mux.i_order.rp_q) == dut.g_mux.i_order.count_q[2:0]);
      assert (owed[0] == held[0] && owed[1] == held[1]);
      // one at a time and unchanged
      assert (aw_ready != 2'b11 && ar_ready != 2'b11 && w_ready != 2'b11);
      for (int s = 0; s < 2; s++) begin
        if (aw_valid_i[s] && aw_ready[s])
          assert (aw_valid && aw_ready_i && aw.id == {NO[s], saw[s].id[5:0]} &&
              aw.addr == saw[s].addr && aw.len == saw[s].len);
        if (ar_valid_i[s] && ar_ready[s])
          assert (ar_valid && ar_ready_i && ar.id == {NO[s], sar[s].id[5:0]} &&
              ar.addr == sar[s].addr && ar.len == sar[s].len);
        if (w_fire[s]) assert (w_valid && w_ready_i && w == sw[s] && owed[s] != '0);
        if (b_valid[s])
          assert (b_valid_i && sb[s].resp == b_i.resp && sb[s].id[5:0] == b_i.id[5:0]);
        if (b_valid[s])
          assert ((b_i.id[7:6] == NO[s]) ? sb[s].id[7:6] == 2'd0
              : (s == 0 && b_i.id[7:6] != NO[1] && sb[s].id[7:6] == 2'd3));
        if (r_valid[s])
          assert (r_valid_i && sr[s].resp == r_i.resp && sr[s].last == r_i.last &&
              sr[s].data == r_i.data);
        if (r_valid[s])
          assert ((r_i.id[7:6] == NO[s]) ? sr[s].id[7:6] == 2'd0
              : (s == 0 && r_i.id[7:6] != NO[1] && sr[s].id[7:6] == 2'd3));
      end
      assert (b_valid != 2'b11 && r_valid != 2'b11 && (b_valid != '0) == b_valid_i &&
          (r_valid != '0) == r_valid_i);
      if (b_valid_i && b_ready) assert ((b_valid & b_ready_i) != '0);
      if (r_valid_i && r_ready) assert ((r_valid & r_ready_i) != '0);
    end
    cover (init && rst_ni && owed[0] == 4'd2 && owed[1] == 4'd2 && w_fire[1] && w.last);
    cover (init && rst_ni && r_valid[0] && sr[0].id[7:6] == 2'd3);
  end
endmodule
`default_nettype wire
