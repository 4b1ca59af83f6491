// shef_port_mux, two sets: towards the memory AW, W and AR follow the handshake rules if the sets
// do. A request carries its set's number. W beats belong to the AW whose turn it is, and no set's W
// precedes its AW. A response goes only to the set whose number it carries, or, if it carries none,
// to the first set under an unused id.`default_nettype none
module port_mux
  import shef_pkg::*;
#(
    parameter int unsigned First = 2
) (
    input wire                 clk_i,
    input wire                 rst_ni,
    input wire axi_req_t [1:0] set_req_i,
    input wire axi_rsp_t       mem_rsp_i
);
  localparam logic [1:0][1:0] NO = {2'd2, 2'd1};
  axi_rsp_t [1:0] set_rsp;
  axi_req_t mem_req;
  shef_port_mux #(.NSets(2), .SetNo(NO), .First(First), .Ahead(8)) dut (
      .clk_i, .rst_ni, .set_req_i, .set_rsp_o(set_rsp), .mem_req_o(mem_req), .mem_rsp_i
  );
  axi_address u_aw (.clk_i, .rst_ni, .valid_i(mem_req.aw_valid), .ready_i(mem_rsp_i.aw_ready),
      .ax_i(mem_req.aw));
  axi_address u_ar (.clk_i, .rst_ni, .valid_i(mem_req.ar_valid), .ready_i(mem_rsp_i.ar_ready),
      .ax_i(mem_req.ar));
  axi_channel #(.W($bits(axi_w_t))) u_w (.clk_i, .rst_ni, .valid_i(mem_req.w_valid),
      .ready_i(mem_rsp_i.w_ready), .data_i(mem_req.w), .break_i(1'b0));
  logic [1:0] w_fire;
  for (genvar s = 0; s < 2; s++) begin : g_set
    axi_address #(.Assume(1'b1)) u_saw (.clk_i, .rst_ni, .valid_i(set_req_i[s].aw_valid),
        .ready_i(set_rsp[s].aw_ready), .ax_i(set_req_i[s].aw));
    axi_address #(.Assume(1'b1)) u_sar (.clk_i, .rst_ni, .valid_i(set_req_i[s].ar_valid),
        .ready_i(set_rsp[s].ar_ready), .ax_i(set_req_i[s].ar));
    axi_channel #(.W($bits(axi_w_t)), .Assume(1'b1)) u_sw (
        .clk_i, .rst_ni, .valid_i(set_req_i[s].w_valid), .ready_i(set_rsp[s].w_ready),
        .data_i(set_req_i[s].w), .break_i(1'b0)
    );
    assign w_fire[s] = set_req_i[s].w_valid && set_rsp[s].w_ready;
  end

  logic init = 1'b0;
  logic [3:0] owed[2];           // bursts of the set whose AW has left and whose W has not ended
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    for (int s = 0; s < 2; s++) begin
      if (!rst_ni) owed[s] <= '0;
      else owed[s] <= owed[s] + 4'(set_req_i[s].aw_valid && set_rsp[s].aw_ready) -
          4'(w_fire[s] && set_req_i[s].w.last);
    end
  end
  // the queue of turns holds each set once for each owed burst
  logic [3:0] held[2];
  always_comb begin
    held[0] = '0;
    held[1] = '0;
    for (int i = 0; i < 8; i++)
      if (4'(i) < dut.g_mux.u_order.count_q) begin
        if (dut.g_mux.u_order.mem_q[3'(dut.g_mux.u_order.rp_q + 3'(i))]) held[1] = held[1] + 1'b1;
        else held[0] = held[0] + 1'b1;
      end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (dut.g_mux.u_order.count_q <= 4'd8 &&
          3'(dut.g_mux.u_order.wp_q - dut.g_mux.u_order.rp_q) == dut.g_mux.u_order.count_q[2:0]);
      assert (owed[0] == held[0] && owed[1] == held[1]);
      // one at a time and unchanged
      assert (!(set_rsp[0].aw_ready && set_rsp[1].aw_ready) &&
          !(set_rsp[0].ar_ready && set_rsp[1].ar_ready) &&
          !(set_rsp[0].w_ready && set_rsp[1].w_ready));
      for (int s = 0; s < 2; s++) begin
        if (set_req_i[s].aw_valid && set_rsp[s].aw_ready)
          assert (mem_req.aw_valid && mem_rsp_i.aw_ready &&
              mem_req.aw.id == {NO[s], set_req_i[s].aw.id[5:0]} &&
              mem_req.aw.addr == set_req_i[s].aw.addr && mem_req.aw.len == set_req_i[s].aw.len);
        if (set_req_i[s].ar_valid && set_rsp[s].ar_ready)
          assert (mem_req.ar_valid && mem_rsp_i.ar_ready &&
              mem_req.ar.id == {NO[s], set_req_i[s].ar.id[5:0]} &&
              mem_req.ar.addr == set_req_i[s].ar.addr && mem_req.ar.len == set_req_i[s].ar.len);
        if (w_fire[s])
          assert (mem_req.w_valid && mem_rsp_i.w_ready && mem_req.w == set_req_i[s].w &&
              owed[s] != '0);
        if (set_rsp[s].b_valid)
          assert (mem_rsp_i.b_valid && set_rsp[s].b.resp == mem_rsp_i.b.resp &&
              set_rsp[s].b.id[5:0] == mem_rsp_i.b.id[5:0]);
        if (set_rsp[s].b_valid)
          assert ((mem_rsp_i.b.id[7:6] == NO[s]) ? set_rsp[s].b.id[7:6] == 2'd0
              : (s == 0 && mem_rsp_i.b.id[7:6] != NO[1] && set_rsp[s].b.id[7:6] == 2'd3));
        if (set_rsp[s].r_valid)
          assert (mem_rsp_i.r_valid && set_rsp[s].r.resp == mem_rsp_i.r.resp &&
              set_rsp[s].r.last == mem_rsp_i.r.last && set_rsp[s].r.data == mem_rsp_i.r.data);
        if (set_rsp[s].r_valid)
          assert ((mem_rsp_i.r.id[7:6] == NO[s]) ? set_rsp[s].r.id[7:6] == 2'd0
              : (s == 0 && mem_rsp_i.r.id[7:6] != NO[1] && set_rsp[s].r.id[7:6] == 2'd3));
      end
      assert ((set_rsp[0].b_valid ^ set_rsp[1].b_valid) == mem_rsp_i.b_valid &&
          !(set_rsp[0].b_valid && set_rsp[1].b_valid));
      assert ((set_rsp[0].r_valid ^ set_rsp[1].r_valid) == mem_rsp_i.r_valid &&
          !(set_rsp[0].r_valid && set_rsp[1].r_valid));
      if (mem_rsp_i.b_valid && mem_req.b_ready)
        assert ((set_rsp[0].b_valid && set_req_i[0].b_ready) ||
            (set_rsp[1].b_valid && set_req_i[1].b_ready));
      if (mem_rsp_i.r_valid && mem_req.r_ready)
        assert ((set_rsp[0].r_valid && set_req_i[0].r_ready) ||
            (set_rsp[1].r_valid && set_req_i[1].r_ready));
    end
  end

  if (First < 2) begin : g_first
    // read beats of the other set in flight, if no more come than were asked for
    logic [4:0] ahead;
    logic ar_held, aw_held, first_held;
    always_ff @(posedge clk_i) begin
      assume (set_req_i[0].ar.len <= 8'd7);
      ar_held <= rst_ni && mem_req.ar_valid && mem_req.ar.id[7:6] == NO[0] && !mem_rsp_i.ar_ready;
      first_held <= rst_ni && mem_req.ar_valid && mem_req.ar.id[7:6] == NO[1] &&
          !mem_rsp_i.ar_ready;
      aw_held <= rst_ni && mem_req.aw_valid && mem_req.aw.id[7:6] == NO[0] && !mem_rsp_i.aw_ready;
      if (!rst_ni) ahead <= '0;
      else
        ahead <= ahead +
            (set_req_i[0].ar_valid && set_rsp[0].ar_ready ? 5'(set_req_i[0].ar.len) + 5'd1 : 5'd0) -
            5'(set_rsp[0].r_valid && mem_req.r_ready && ahead != '0);
    end
    always_comb begin
      if (init && rst_ni) begin
        if (set_req_i[1].ar_valid && !ar_held)
          assert (mem_req.ar_valid && mem_req.ar.id[7:6] == NO[1]);
        if (set_req_i[1].aw_valid && !aw_held && dut.g_mux.w_room)
          assert (mem_req.aw_valid && mem_req.aw.id[7:6] == NO[1]);
        assert (ahead <= 5'd15 && owed[0] <= 4'd2);
        if (ahead < 5'd8 && set_req_i[0].ar_valid) assert (mem_req.ar_valid);
        // supporting invariants
        assert (dut.g_mux.g_ahead.ahead_q == 9'(ahead));
        if (dut.g_mux.u_ar.held_q && !dut.g_mux.u_ar.first_q) assert (ar_held);
        if (dut.g_mux.u_ar.held_q && dut.g_mux.u_ar.first_q) assert (first_held);
        if (ar_held) assert (ahead < 5'd8);
        if (dut.g_mux.u_aw.held_q && !dut.g_mux.u_aw.first_q) assert (aw_held &&
            dut.g_mux.order < 4'd2);
        assert (dut.g_mux.u_ar.sel_q == '0 && dut.g_mux.u_aw.sel_q == '0);
      end
      cover (init && rst_ni && ahead == 5'd14 && set_req_i[0].ar_valid && mem_req.ar_valid);
      cover (init && rst_ni && aw_held && set_req_i[1].aw_valid);
    end
  end else begin : g_alike
    always_comb
      cover (init && rst_ni && owed[0] == 4'd2 && owed[1] == 4'd2 && w_fire[1] && mem_req.w.last);
  end

  always_comb begin
    cover (init && rst_ni && set_rsp[0].r_valid &&
        set_rsp[0].r.id[7:6] == 2'd3);
  end
endmodule
`default_nettype wire
