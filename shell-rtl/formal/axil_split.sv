// shef_axil_split: one write and one read are in flight at a time. Each goes to the slave of its
// page, address and data once, data after the address, and gets one response, from that slave, with
// its data and response code. AW, W and AR follow the handshake rules towards the slaves if the
// master does, B and R towards the master if the slaves do. Nothing is held back while nothing is
// in flight. Full size.
// Assumed: a slave responds only to accesses it has accepted, and to a write after its data.
`default_nettype none
module axil_split
  import shef_pkg::*;
(
    input wire                  clk_i,
    input wire                  rst_ni,
    input wire axil_req_t       req_i,
    input wire axil_rsp_t [1:0] rsp_i
);
  axil_rsp_t rsp;
  axil_req_t [1:0] req;
  shef_axil_split #(.Page(8'hb0)) dut (.clk_i, .rst_ni, .req_i, .rsp_o(rsp), .req_o(req), .rsp_i);
  axi_channel #(.W(16), .Assume(1'b1)) u_aw (
      .clk_i, .rst_ni, .valid_i(req_i.aw_valid), .ready_i(rsp.aw_ready), .data_i(req_i.aw_addr),
      .break_i(1'b0)
  );
  axi_channel #(.W(36), .Assume(1'b1)) u_w (
      .clk_i, .rst_ni, .valid_i(req_i.w_valid), .ready_i(rsp.w_ready),
      .data_i({req_i.w_data, req_i.w_strb}), .break_i(1'b0)
  );
  axi_channel #(.W(16), .Assume(1'b1)) u_ar (
      .clk_i, .rst_ni, .valid_i(req_i.ar_valid), .ready_i(rsp.ar_ready), .data_i(req_i.ar_addr),
      .break_i(1'b0)
  );
  axi_channel #(.W(2)) u_b (.clk_i, .rst_ni, .valid_i(rsp.b_valid), .ready_i(req_i.b_ready),
      .data_i(rsp.b_resp), .break_i(1'b0));
  axi_channel #(.W(34)) u_r (
      .clk_i, .rst_ni, .valid_i(rsp.r_valid), .ready_i(req_i.r_ready),
      .data_i({rsp.r_resp, rsp.r_data}), .break_i(1'b0)
  );
  // per slave
  logic [1:0] awvalid, arvalid;
  logic [1:0] aw_take, w_take, b_take, ar_take, r_take;
  for (genvar s = 0; s < 2; s++) begin : g_slave
    axi_channel #(.W(16)) u_aw (
        .clk_i, .rst_ni, .valid_i(req[s].aw_valid), .ready_i(rsp_i[s].aw_ready),
        .data_i(req[s].aw_addr), .break_i(1'b0)
    );
    axi_channel #(.W(36)) u_w (
        .clk_i, .rst_ni, .valid_i(req[s].w_valid), .ready_i(rsp_i[s].w_ready),
        .data_i({req[s].w_data, req[s].w_strb}), .break_i(1'b0)
    );
    axi_channel #(.W(16)) u_ar (
        .clk_i, .rst_ni, .valid_i(req[s].ar_valid), .ready_i(rsp_i[s].ar_ready),
        .data_i(req[s].ar_addr), .break_i(1'b0)
    );
    axi_channel #(.W(2), .Assume(1'b1)) u_b (
        .clk_i, .rst_ni, .valid_i(rsp_i[s].b_valid), .ready_i(req[s].b_ready),
        .data_i(rsp_i[s].b_resp), .break_i(1'b0)
    );
    axi_channel #(.W(34), .Assume(1'b1)) u_r (
        .clk_i, .rst_ni, .valid_i(rsp_i[s].r_valid), .ready_i(req[s].r_ready),
        .data_i({rsp_i[s].r_resp, rsp_i[s].r_data}), .break_i(1'b0)
    );
    assign awvalid[s] = req[s].aw_valid;
    assign arvalid[s] = req[s].ar_valid;
    assign aw_take[s] = req[s].aw_valid && rsp_i[s].aw_ready;
    assign w_take[s] = req[s].w_valid && rsp_i[s].w_ready;
    assign b_take[s] = rsp_i[s].b_valid && req[s].b_ready;
    assign ar_take[s] = req[s].ar_valid && rsp_i[s].ar_ready;
    assign r_take[s] = rsp_i[s].r_valid && req[s].r_ready;
  end

  logic init = 1'b0;
  // accesses that each slave has accepted and not yet answered, and responses that the master
  // awaits, counted on their own sides
  logic [1:0][1:0] addr_open, data_open, read_open;
  logic [1:0] writes, datas, reads;
  logic aw_go, w_go, b_go, ar_go, r_go;  // at the master
  logic aw_page, ar_page;
  assign aw_page = req_i.aw_addr[15:8] == 8'hb0;
  assign ar_page = req_i.ar_addr[15:8] == 8'hb0;
  assign aw_go = req_i.aw_valid && rsp.aw_ready;
  assign w_go = req_i.w_valid && rsp.w_ready;
  assign b_go = rsp.b_valid && req_i.b_ready;
  assign ar_go = req_i.ar_valid && rsp.ar_ready;
  assign r_go = rsp.r_valid && req_i.r_ready;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni) begin
      addr_open <= '0;
      data_open <= '0;
      read_open <= '0;
      writes <= '0;
      datas <= '0;
      reads <= '0;
    end else begin
      for (int s = 0; s < 2; s++) begin
        addr_open[s] <= addr_open[s] + 2'(aw_take[s]) - 2'(b_take[s]);
        data_open[s] <= data_open[s] + 2'(w_take[s]) - 2'(b_take[s]);
        read_open[s] <= read_open[s] + 2'(ar_take[s]) - 2'(r_take[s]);
      end
      writes <= writes + 2'(aw_go) - 2'(b_go);
      datas <= datas + 2'(w_go) - 2'(b_go);
      reads <= reads + 2'(ar_go) - 2'(r_go);
    end
  end
  always_comb begin
    for (int s = 0; s < 2; s++) begin
      if (rsp_i[s].b_valid) assume (addr_open[s] != '0 && data_open[s] != '0);
      if (rsp_i[s].r_valid) assume (read_open[s] != '0);
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      // one at a time, and the two sides agree
      assert (writes <= 2'd1 && datas <= writes && reads <= 2'd1);
      assert (2'(addr_open[0] + addr_open[1]) == writes &&
          2'(data_open[0] + data_open[1]) == datas && 2'(read_open[0] + read_open[1]) == reads);
      for (int s = 0; s < 2; s++)
        assert (addr_open[s] <= 2'd1 && data_open[s] <= addr_open[s] && read_open[s] <= 2'd1);
      // to the slave of its page, and to no other
      if (awvalid != '0)
        assert (req_i.aw_valid && writes == '0 && awvalid == (aw_page ? 2'b10 : 2'b01));
      if (arvalid != '0)
        assert (req_i.ar_valid && reads == '0 && arvalid == (ar_page ? 2'b10 : 2'b01));
      assert (aw_take == (aw_go ? (aw_page ? 2'b10 : 2'b01) : 2'b00));
      assert (ar_take == (ar_go ? (ar_page ? 2'b10 : 2'b01) : 2'b00));
      // the data once, to the slave of the address, after the address
      for (int s = 0; s < 2; s++)
        if (req[s].w_valid)
          assert (req_i.w_valid && !req[1-s].w_valid && addr_open[s] == 2'd1 && data_open[s] == '0);
      assert ((w_take != '0) == w_go);
      // unchanged from the port
      for (int s = 0; s < 2; s++) begin
        assert (req[s].aw_addr == req_i.aw_addr && req[s].ar_addr == req_i.ar_addr);
        assert (req[s].w_data == req_i.w_data && req[s].w_strb == req_i.w_strb);
      end
      // the response comes from the addressed slave
      for (int s = 0; s < 2; s++) begin
        assert (b_take[s] == (b_go && addr_open[s] == 2'd1) &&
            r_take[s] == (r_go && read_open[s] == 2'd1));
        if (rsp.b_valid && addr_open[s] == 2'd1)
          assert (rsp_i[s].b_valid && rsp.b_resp == rsp_i[s].b_resp);
        if (rsp.r_valid && read_open[s] == 2'd1)
          assert (rsp_i[s].r_valid && rsp.r_resp == rsp_i[s].r_resp &&
              rsp.r_data == rsp_i[s].r_data);
      end
      if (rsp.b_valid) assert (writes == 2'd1 && datas == 2'd1);
      if (rsp.r_valid) assert (reads == 2'd1);
      // nothing is held back
      if (writes == '0)
        assert (rsp.aw_ready == rsp_i[aw_page].aw_ready && req[aw_page].aw_valid == req_i.aw_valid);
      if (reads == '0)
        assert (rsp.ar_ready == rsp_i[ar_page].ar_ready && req[ar_page].ar_valid == req_i.ar_valid);
      for (int s = 0; s < 2; s++) begin
        if (addr_open[s] == 2'd1 && datas == '0)
          assert (rsp.w_ready == rsp_i[s].w_ready && req[s].w_valid == req_i.w_valid);
        if (rsp_i[s].b_valid) assert (rsp.b_valid && req[s].b_ready == req_i.b_ready);
        if (rsp_i[s].r_valid) assert (rsp.r_valid && req[s].r_ready == req_i.r_ready);
      end
      // supporting invariants
      assert (dut.wr_q == (writes == 2'd1) && dut.w_done_q == (datas == 2'd1) &&
          dut.rd_q == (reads == 2'd1));
      for (int s = 0; s < 2; s++) begin
        if (addr_open[s] == 2'd1) assert (dut.wr_sel_q == 1'(s));
        if (read_open[s] == 2'd1) assert (dut.rd_sel_q == 1'(s));
      end
    end
    cover (init && rst_ni && aw_go && aw_page && req_i.w_valid);
    cover (init && rst_ni && b_take == 2'b10 && r_take == 2'b01);
    cover (init && rst_ni && b_take == 2'b01 && req_i.aw_valid && aw_page && rsp.b_resp == 2'b10);
    cover (init && rst_ni && r_take == 2'b10 && rsp.r_data == 32'h1234_5678 && rsp.r_resp == 2'b10);
    cover (init && rst_ni && data_open[1] == 2'd1 && req_i.aw_valid && !aw_page && req_i.w_valid);
    cover (init && rst_ni && rsp.b_valid && !req_i.b_ready && rsp.r_valid && !req_i.r_ready &&
        read_open[1] == 2'd1);
  end
endmodule
`default_nettype wire
