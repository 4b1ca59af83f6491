// shef_demux, two sets, against sets that respond in any order, but only to requests: AW and AR
// towards the sets and R and B towards the accelerator follow the handshake rules. A burst goes to
// the set of its region. The bursts of an id are in one set only, so that its responses stay in
// order. W beats go with their AW, as many as AWLEN says. R arrives in whole bursts.
`default_nettype none
module demux
  import shef_pkg::*;
(
    input wire                 clk_i,
    input wire                 rst_ni,
    input wire axi_req_t       acc_req_i,
    input wire axi_rsp_t [1:0] set_rsp_i
);
  localparam region_cfg_t [1:0] REGIONS = {
    region_cfg_t'{id: 8'd1, mode: MODE_INPUT, base: 64'h4000, size: 64'h2000, tag_base: 64'h2_0000,
    chunk_log2: 4'd9, key256: 1'b1, set: 2'd1, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd0, mode: MODE_OUTPUT, base: 64'h2000, size: 64'h2000, tag_base: 64'h3_0000,
    chunk_log2: 4'd6, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0}};
  axi_rsp_t acc_rsp;
  axi_req_t [1:0] set_req;
  logic [1:0] w_waits;
  shef_demux #(.NSets(2), .NRegions(2), .Regions(REGIONS), .RegionSet({2'd1, 2'd0}),
      .LockLog2(1)) dut (
      .clk_i, .rst_ni, .acc_req_i, .acc_rsp_o(acc_rsp), .set_req_o(set_req),
      .set_w_waits_o(w_waits), .set_rsp_i
  );
  axi_channel #(.W($bits(axi_ax_t)), .Assume(1'b1)) u_aw (.clk_i, .rst_ni,
      .valid_i(acc_req_i.aw_valid), .ready_i(acc_rsp.aw_ready), .data_i(acc_req_i.aw),
      .break_i(1'b0));
  axi_channel #(.W($bits(axi_ax_t)), .Assume(1'b1)) u_ar (.clk_i, .rst_ni,
      .valid_i(acc_req_i.ar_valid), .ready_i(acc_rsp.ar_ready), .data_i(acc_req_i.ar),
      .break_i(1'b0));
  axi_channel #(.W($bits(axi_w_t)), .Assume(1'b1)) u_w (.clk_i, .rst_ni,
      .valid_i(acc_req_i.w_valid), .ready_i(acc_rsp.w_ready), .data_i(acc_req_i.w),
      .break_i(1'b0));
  axi_channel #(.W($bits(axi_b_t))) u_b (.clk_i, .rst_ni, .valid_i(acc_rsp.b_valid),
      .ready_i(acc_req_i.b_ready), .data_i(acc_rsp.b), .break_i(1'b0));
  axi_channel #(.W($bits(axi_r_t))) u_r (.clk_i, .rst_ni, .valid_i(acc_rsp.r_valid),
      .ready_i(acc_req_i.r_ready), .data_i(acc_rsp.r), .break_i(1'b0));
  logic [1:0] w_taken, b_ready, r_ready;
  for (genvar s = 0; s < 2; s++) begin : g_set
    axi_channel #(.W($bits(axi_ax_t))) u_saw (.clk_i, .rst_ni, .valid_i(set_req[s].aw_valid),
        .ready_i(set_rsp_i[s].aw_ready), .data_i(set_req[s].aw), .break_i(1'b0));
    axi_channel #(.W($bits(axi_ax_t))) u_sar (.clk_i, .rst_ni, .valid_i(set_req[s].ar_valid),
        .ready_i(set_rsp_i[s].ar_ready), .data_i(set_req[s].ar), .break_i(1'b0));
    axi_channel #(.W($bits(axi_w_t))) u_sw (.clk_i, .rst_ni, .valid_i(set_req[s].w_valid),
        .ready_i(set_rsp_i[s].w_ready), .data_i(set_req[s].w), .break_i(1'b0));
    axi_channel #(.W($bits(axi_b_t)), .Assume(1'b1)) u_sb (.clk_i, .rst_ni,
        .valid_i(set_rsp_i[s].b_valid), .ready_i(set_req[s].b_ready), .data_i(set_rsp_i[s].b),
        .break_i(1'b0));
    axi_channel #(.W($bits(axi_r_t)), .Assume(1'b1)) u_sr (.clk_i, .rst_ni,
        .valid_i(set_rsp_i[s].r_valid), .ready_i(set_req[s].r_ready), .data_i(set_rsp_i[s].r),
        .break_i(1'b0));
    assign w_taken[s] = set_req[s].w_valid && set_rsp_i[s].w_ready;
    assign b_ready[s] = set_req[s].b_ready;
    assign r_ready[s] = set_req[s].r_ready;
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
        up[0][s][i] = set_req[s].ar_valid && set_rsp_i[s].ar_ready &&
            32'(set_req[s].ar.id[0]) == i;
        up[1][s][i] = set_req[s].aw_valid && set_rsp_i[s].aw_ready &&
            32'(set_req[s].aw.id[0]) == i;
        down[0][s][i] = set_rsp_i[s].r_valid && r_ready[s] && set_rsp_i[s].r.last &&
            32'(set_rsp_i[s].r.id[0]) == i;
        down[1][s][i] = set_rsp_i[s].b_valid && b_ready[s] &&
            32'(set_rsp_i[s].b.id[0]) == i;
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
    else if (acc_rsp.r_valid && acc_req_i.r_ready) burst_open <= !acc_rsp.r.last;
    if (acc_rsp.r_valid && acc_req_i.r_ready) burst_set <= dut.g_demux.r_from;
  end
  // a set responds only to requests
  for (genvar s = 0; s < 2; s++) begin : g_env
    for (genvar i = 0; i < 2; i++) begin : g_id
      always_comb
        if (set_rsp_i[s].r_valid && 32'(set_rsp_i[s].r.id[0]) == i) assume (out[0][s][i] != '0);
      always_comb
        if (set_rsp_i[s].b_valid && 32'(set_rsp_i[s].b.id[0]) == i) assume (out[1][s][i] != '0);
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
        if (set_req[s].ar_valid)
          assert ((set_req[s].ar.addr >= 64'h4000 && set_req[s].ar.addr < 64'h6000) == (s == 1));
        if (set_req[s].aw_valid)
          assert ((set_req[s].aw.addr >= 64'h4000 && set_req[s].aw.addr < 64'h6000) == (s == 1));
        if (set_req[s].w_valid) assert (acc_req_i.w_valid && set_req[s].w == acc_req_i.w);
      end
      assert (!(set_req[0].ar_valid && set_req[1].ar_valid) &&
          !(set_req[0].aw_valid && set_req[1].aw_valid) &&
          !(set_req[0].w_valid && set_req[1].w_valid));
      if (acc_req_i.w_valid && acc_rsp.w_ready) assert (w_taken != '0);
      // a set's beats wait while the accelerator offers its beat to the other set, not accepted
      for (int s = 0; s < 2; s++)
        assert (w_waits[s] == (set_req[1-s].w_valid && !set_rsp_i[1-s].w_ready));
      // responses come from a set that owes one, whole
      if (acc_rsp.r_valid)
        assert (set_rsp_i[dut.g_demux.r_from].r_valid &&
            acc_rsp.r == set_rsp_i[dut.g_demux.r_from].r &&
            (r_ready == (2'(acc_req_i.r_ready) << dut.g_demux.r_from)));
      if (acc_rsp.b_valid)
        assert (set_rsp_i[dut.g_demux.b_from].b_valid &&
            acc_rsp.b == set_rsp_i[dut.g_demux.b_from].b &&
            (b_ready == (2'(acc_req_i.b_ready) << dut.g_demux.b_from)));
      if (burst_open && acc_rsp.r_valid) assert (dut.g_demux.r_from == burst_set);
      if (burst_open) assert (dut.g_demux.u_r.held_q && dut.g_demux.u_r.sel_q == burst_set);
      // no set is first
      assert (!dut.g_demux.u_r.first_q && !dut.g_demux.u_b.first_q);
      assert (dut.g_demux.u_order.count_q <= 6'd32 &&
          5'(dut.g_demux.u_order.wp_q - dut.g_demux.u_order.rp_q) ==
          dut.g_demux.u_order.count_q[4:0]);
      if (dut.g_demux.w_known) assert (dut.g_demux.w_beat_q <= dut.g_demux.w_len);
      else assert (dut.g_demux.w_beat_q == '0);
    end
    cover (init && rst_ni && out[0][1][0] == 8'd2 && acc_req_i.ar_valid &&
        !dut.g_demux.go[0] && dut.g_demux.ax_valid[0]);
    cover (init && rst_ni && burst_open && acc_rsp.r_valid && acc_rsp.r.last &&
        out[1][0][1] != '0);
    cover (init && rst_ni && acc_rsp.b_valid && acc_req_i.b_ready && out[0][0][0] != '0);
  end
endmodule
`default_nettype wire
