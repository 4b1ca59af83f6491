// shef_demux, two sets, against sets that respond in any order, but only to requests: AW and AR
// towards the sets and R and B towards the accelerator follow the handshake rules. A burst goes to
// the set of its region. The bursts of an id are in one set only, so that its responses stay in
// order. W beats go with their AW, as many as AWLEN says. R arrives in whole bursts.
`default_nettype none
module demux
  import shef_pkg::*;
(
    input wire            clk_i,
    input wire            rst_ni,
    input wire axi_ax_t   aw_i,
    input wire            aw_valid_i,
    input wire axi_w_t    w_i,
    input wire            w_valid_i,
    input wire            b_ready_i,
    input wire axi_ax_t   ar_i,
    input wire            ar_valid_i,
    input wire            r_ready_i,
    input wire [1:0]      aw_ready_i,
    input wire [1:0]      w_ready_i,
    input wire axi_b_t    b0_i,
    input wire axi_b_t    b1_i,
    input wire [1:0]      b_valid_i,
    input wire [1:0]      ar_ready_i,
    input wire axi_r_t    r0_i,
    input wire axi_r_t    r1_i,
    input wire [1:0]      r_valid_i
);
  localparam region_cfg_t [1:0] REGIONS = {
    region_cfg_t'{id: 8'd1, mode: MODE_INPUT, base: 64'h4000, size: 64'h2000, tag_base: 64'h2_0000,
    chunk_log2: 4'd9, key256: 1'b1, set: 2'd1, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd0, mode: MODE_OUTPUT, base: 64'h2000, size: 64'h2000, tag_base: 64'h3_0000,
    chunk_log2: 4'd6, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0}};
  logic aw_ready, w_ready, ar_ready, b_valid, r_valid;
  axi_b_t b;
  axi_r_t r;
  axi_ax_t [1:0] saw, sar;
  axi_w_t [1:0] sw;
  axi_b_t [1:0] sb;
  axi_r_t [1:0] sr;
  logic [1:0] saw_valid, sw_valid, sw_waits, sb_ready, sar_valid, sr_ready;
  assign sb = {b1_i, b0_i};
  assign sr = {r1_i, r0_i};
  shef_demux #(.NSets(2), .NRegions(2), .Regions(REGIONS), .RegionSet({2'd1, 2'd0}),
      .LockLog2(1)) dut (
      .clk_i, .rst_ni,
      .acc_aw_i(aw_i), .acc_aw_valid_i(aw_valid_i), .acc_aw_ready_o(aw_ready), .acc_w_i(w_i),
      .acc_w_valid_i(w_valid_i), .acc_w_ready_o(w_ready),
      .acc_b_o(b), .acc_b_valid_o(b_valid), .acc_b_ready_i(b_ready_i), .acc_ar_i(ar_i),
      .acc_ar_valid_i(ar_valid_i), .acc_ar_ready_o(ar_ready),
      .acc_r_o(r), .acc_r_valid_o(r_valid), .acc_r_ready_i(r_ready_i),
      .set_aw_o(saw), .set_aw_valid_o(saw_valid), .set_aw_ready_i(aw_ready_i), .set_w_o(sw),
      .set_w_valid_o(sw_valid), .set_w_ready_i(w_ready_i), .set_w_waits_o(sw_waits),
      .set_b_i(sb), .set_b_valid_i(b_valid_i), .set_b_ready_o(sb_ready), .set_ar_o(sar),
      .set_ar_valid_o(sar_valid), .set_ar_ready_i(ar_ready_i),
      .set_r_i(sr), .set_r_valid_i(r_valid_i), .set_r_ready_o(sr_ready)
  );
  axi_channel #(.W($bits(axi_ax_t)), .Assume(1'b1)) i_aw (.clk_i, .rst_ni, .valid_i(aw_valid_i),
      .ready_i(aw_ready), .data_i(aw_i), .break_i(1'b0));
  axi_channel #(.W($bits(axi_ax_t)), .Assume(1'b1)) i_ar (.clk_i, .rst_ni, .valid_i(ar_valid_i),
      .ready_i(ar_ready), .data_i(ar_i), .break_i(1'b0));
  axi_channel #(.W($bits(axi_w_t)), .Assume(1'b1)) i_w (.clk_i, .rst_ni, .valid_i(w_valid_i),
      .ready_i(w_ready), .data_i(w_i), .break_i(1'b0));
  axi_channel #(.W($bits(axi_b_t))) i_b (.clk_i, .rst_ni, .valid_i(b_valid), .ready_i(b_ready_i),
      .data_i(b), .break_i(1'b0));
  axi_channel #(.W($bits(axi_r_t))) i_r (.clk_i, .rst_ni, .valid_i(r_valid), .ready_i(r_ready_i),
      .data_i(r), .break_i(1'b0));
  for (genvar s = 0; s < 2; s++) begin : g_set
    axi_channel #(.W($bits(axi_ax_t))) i_saw (.clk_i, .rst_ni, .valid_i(saw_valid[s]),
        .ready_i(aw_ready_i[s]), .data_i(saw[s]), .break_i(1'b0));
    axi_channel #(.W($bits(axi_ax_t))) i_sar (.clk_i, .rst_ni, .valid_i(sar_valid[s]),
        .ready_i(ar_ready_i[s]), .data_i(sar[s]), .break_i(1'b0));
    axi_channel #(.W($bits(axi_w_t))) i_sw (.clk_i, .rst_ni, .valid_i(sw_valid[s]),
        .ready_i(w_ready_i[s]), .data_i(sw[s]), .break_i(1'b0));
    axi_channel #(.W($bits(axi_b_t)), .Assume(1'b1)) i_sb (.clk_i, .rst_ni, .valid_i(b_valid_i[s]),
        .ready_i(sb_ready[s]), .data_i(sb[s]), .break_i(1'b0));
    axi_channel #(.W($bits(axi_r_t)), .Assume(1'b1)) i_sr (.clk_i, .rst_ni, .valid_i(r_valid_i[s]),
        .ready_i(sr_ready[s]), .data_i(sr[s]), .break_i(1'b0));
  end

  // ---- bursts of an id in each set; way 0 reads, 1 writes ----
  // Ids that agree in their lowest bit count as one, so there are two.
  logic init = 1'b0;
  logic [7:0] out[2][2][2];      // way, set, id
  logic up[2][2][2], down[2][2][2];
  logic burst_open;              // of R
  logic burst_set;
  always_comb begin
    for (int s = 0; s < 2; s++)
      for (int i = 0; i < 2; i++) begin
        up[0][s][i] = sar_valid[s] && ar_ready_i[s] && 32'(sar[s].id[0]) == i;
        up[1][s][i] = saw_valid[s] && aw_ready_i[s] && 32'(saw[s].id[0]) == i;
        down[0][s][i] = r_valid_i[s] && sr_ready[s] && sr[s].last && 32'(sr[s].id[0]) == i;
        down[1][s][i] = b_valid_i[s] && sb_ready[s] && 32'(sb[s].id[0]) == i;
      end
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    for (int d = 0; d < 2; d++)
      for (int s = 0; s < 2; s++)
        for (int i = 0; i < 2; i++)
          if (!rst_ni) out[d][s][i] <= '0;
          else out[d][s][i] <= out[d][s][i] + 8'(up[d][s][i]) - 8'(down[d][s][i]);
    if (!rst_ni) burst_open <= 1'b0;
    else if (r_valid && r_ready_i) burst_open <= !r.last;
    if (r_valid && r_ready_i) burst_set <= dut.g_demux.r_from;
  end
  // a set responds only to requests
  for (genvar s = 0; s < 2; s++) begin : g_env
    for (genvar i = 0; i < 2; i++) begin : g_id
      always_comb if (r_valid_i[s] && 32'(sr[s].id[0]) == i) assume (out[0][s][i] != '0);
      always_comb if (b_valid_i[s] && 32'(sb[s].id[0]) == i) assume (out[1][s][i] != '0);
    end
  end

  // supporting invariants: the block's counts and set numbers are correct
  for (genvar d = 0; d < 2; d++) begin : g_count
    for (genvar i = 0; i < 2; i++) begin : g_id
      logic [7:0] many;
      logic where;
      assign many = {1'b0, dut.g_demux.g_way[d].many_q[i]};
      assign where = dut.g_demux.g_way[d].where_q[i];
      always_comb
        if (init && rst_ni) begin
          assert (out[d][0][i] == '0 || out[d][1][i] == '0);
          assert (out[d][where][i] == many && out[d][!where][i] == '0 && many < 8'd128);
        end
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      for (int s = 0; s < 2; s++) begin
        if (sar_valid[s]) assert ((sar[s].addr >= 64'h4000 && sar[s].addr < 64'h6000) == (s == 1));
        if (saw_valid[s]) assert ((saw[s].addr >= 64'h4000 && saw[s].addr < 64'h6000) == (s == 1));
        if (sw_valid[s]) assert (w_valid_i && sw[s] == w_i);
      end
      assert (sar_valid != 2'b11 && saw_valid != 2'b11 && sw_valid != 2'b11);
      if (w_valid_i && w_ready) assert ((sw_valid & w_ready_i) != '0);
      // a set's beats wait while the accelerator offers its beat to the other set, not accepted
      for (int s = 0; s < 2; s++) assert (sw_waits[s] == (sw_valid[1-s] && !w_ready_i[1-s]));
      // responses come from a set that owes one, whole
      if (r_valid)
        assert (r_valid_i[dut.g_demux.r_from] && r == sr[dut.g_demux.r_from] &&
            (sr_ready == (2'(r_ready_i) << dut.g_demux.r_from)));
      if (b_valid)
        assert (b_valid_i[dut.g_demux.b_from] && b == sb[dut.g_demux.b_from] &&
            (sb_ready == (2'(b_ready_i) << dut.g_demux.b_from)));
      if (burst_open && r_valid) assert (dut.g_demux.r_from == burst_set);
      if (burst_open) assert (dut.g_demux.i_r.held_q && dut.g_demux.i_r.sel_q == burst_set);
      assert (dut.g_demux.i_order.count_q <= 6'd32 &&
          5'(dut.g_demux.i_order.wp_q - dut.g_demux.i_order.rp_q) ==
          dut.g_demux.i_order.count_q[4:0]);
      if (dut.g_demux.w_known) assert (dut.g_demux.w_beat_q <= dut.g_demux.w_len);
      else assert (dut.g_demux.w_beat_q == '0);
    end
    cover (init && rst_ni && out[0][1][0] == 8'd2 && ar_valid_i && !dut.g_demux.go[0] &&
        dut.g_demux.ax_valid[0]);
    cover (init && rst_ni && burst_open && r_valid && r.last && out[1][0][1] != '0);
    cover (init && rst_ni && b_valid && b_ready_i && out[0][0][0] != '0);
  end
endmodule
`default_nettype wire
