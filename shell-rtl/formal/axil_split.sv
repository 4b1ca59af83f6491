// shef_axil_split: one write and one read are under way at a time; each goes to the slave of its
// page, the address and the data once, the data after the address, and is answered once, by that
// slave, with its data and response. AW, W and AR keep the handshake rules towards the slaves if
// the master does, B and R towards the master if the slaves do; nothing is held back while nothing
// is under way. Full size.
// Assumed: a slave answers only what it has taken, a write after its data.
`default_nettype none
module axil_split (
    input wire             clk_i,
    input wire             rst_ni,
    input wire [7:0]       awpage_i,
    input wire             awvalid_i,
    input wire             wvalid_i,
    input wire             bready_i,
    input wire [7:0]       arpage_i,
    input wire             arvalid_i,
    input wire             rready_i,
    input wire [1:0]       awready_i,
    input wire [1:0]       wready_i,
    input wire [1:0][1:0]  bresp_i,
    input wire [1:0]       bvalid_i,
    input wire [1:0]       arready_i,
    input wire [1:0][31:0] rdata_i,
    input wire [1:0][1:0]  rresp_i,
    input wire [1:0]       rvalid_i
);
  logic awready, wready, bvalid, arready, rvalid;
  logic [1:0] bresp, rresp, awvalid, wvalid, bready, arvalid, rready;
  logic [31:0] rdata;
  shef_axil_split #(.Page(8'hb0)) dut (
      .clk_i, .rst_ni, .awpage_i, .awvalid_i, .awready_o(awready), .wvalid_i, .wready_o(wready), .bresp_o(bresp), .bvalid_o(bvalid), .bready_i,
      .arpage_i, .arvalid_i, .arready_o(arready), .rdata_o(rdata), .rresp_o(rresp), .rvalid_o(rvalid), .rready_i,
      .awvalid_o(awvalid), .awready_i, .wvalid_o(wvalid), .wready_i, .bresp_i, .bvalid_i, .bready_o(bready),
      .arvalid_o(arvalid), .arready_i, .rdata_i, .rresp_i, .rvalid_i, .rready_o(rready)
  );
  axi_channel #(.W(8), .Assume(1'b1)) i_aw (.clk_i, .rst_ni, .valid_i(awvalid_i), .ready_i(awready), .data_i(awpage_i), .break_i(1'b0));
  axi_channel #(.W(1), .Assume(1'b1)) i_w (.clk_i, .rst_ni, .valid_i(wvalid_i), .ready_i(wready), .data_i(1'b0), .break_i(1'b0));
  axi_channel #(.W(8), .Assume(1'b1)) i_ar (.clk_i, .rst_ni, .valid_i(arvalid_i), .ready_i(arready), .data_i(arpage_i), .break_i(1'b0));
  axi_channel #(.W(2)) i_b (.clk_i, .rst_ni, .valid_i(bvalid), .ready_i(bready_i), .data_i(bresp), .break_i(1'b0));
  axi_channel #(.W(34)) i_r (.clk_i, .rst_ni, .valid_i(rvalid), .ready_i(rready_i), .data_i({rresp, rdata}), .break_i(1'b0));
  for (genvar s = 0; s < 2; s++) begin : g_slave
    axi_channel #(.W(8)) i_aw (.clk_i, .rst_ni, .valid_i(awvalid[s]), .ready_i(awready_i[s]), .data_i(awpage_i), .break_i(1'b0));
    axi_channel #(.W(1)) i_w (.clk_i, .rst_ni, .valid_i(wvalid[s]), .ready_i(wready_i[s]), .data_i(1'b0), .break_i(1'b0));
    axi_channel #(.W(8)) i_ar (.clk_i, .rst_ni, .valid_i(arvalid[s]), .ready_i(arready_i[s]), .data_i(arpage_i), .break_i(1'b0));
    axi_channel #(.W(2), .Assume(1'b1)) i_b (
        .clk_i, .rst_ni, .valid_i(bvalid_i[s]), .ready_i(bready[s]), .data_i(bresp_i[s]), .break_i(1'b0)
    );
    axi_channel #(.W(34), .Assume(1'b1)) i_r (
        .clk_i, .rst_ni, .valid_i(rvalid_i[s]), .ready_i(rready[s]), .data_i({rresp_i[s], rdata_i[s]}), .break_i(1'b0)
    );
  end

  logic init = 1'b0;
  // what each slave has taken and not yet answered, and what the master waits for: counted on their
  // own sides
  logic [1:0][1:0] addr_open, data_open, read_open;
  logic [1:0] writes, datas, reads;
  logic [1:0] aw_take, w_take, b_take, ar_take, r_take;   // by slave
  logic aw_go, w_go, b_go, ar_go, r_go;                   // at the master
  logic aw_page, ar_page;
  assign aw_page = awpage_i == 8'hb0;
  assign ar_page = arpage_i == 8'hb0;
  assign aw_take = awvalid & awready_i;
  assign w_take = wvalid & wready_i;
  assign b_take = bvalid_i & bready;
  assign ar_take = arvalid & arready_i;
  assign r_take = rvalid_i & rready;
  assign aw_go = awvalid_i && awready;
  assign w_go = wvalid_i && wready;
  assign b_go = bvalid && bready_i;
  assign ar_go = arvalid_i && arready;
  assign r_go = rvalid && rready_i;
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
      if (bvalid_i[s]) assume (addr_open[s] != '0 && data_open[s] != '0);
      if (rvalid_i[s]) assume (read_open[s] != '0);
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      // one at a time, and the two sides agree
      assert (writes <= 2'd1 && datas <= writes && reads <= 2'd1);
      assert (2'(addr_open[0] + addr_open[1]) == writes && 2'(data_open[0] + data_open[1]) == datas && 2'(read_open[0] + read_open[1]) == reads);
      for (int s = 0; s < 2; s++) assert (addr_open[s] <= 2'd1 && data_open[s] <= addr_open[s] && read_open[s] <= 2'd1);
      // to the slave of its page, and to no other
      if (awvalid != '0) assert (awvalid_i && writes == '0 && awvalid == (aw_page ? 2'b10 : 2'b01));
      if (arvalid != '0) assert (arvalid_i && reads == '0 && arvalid == (ar_page ? 2'b10 : 2'b01));
      assert (aw_take == (aw_go ? (aw_page ? 2'b10 : 2'b01) : 2'b00));
      assert (ar_take == (ar_go ? (ar_page ? 2'b10 : 2'b01) : 2'b00));
      // the data once, to where the address went, after it
      for (int s = 0; s < 2; s++) if (wvalid[s]) assert (wvalid_i && !wvalid[1-s] && addr_open[s] == 2'd1 && data_open[s] == '0);
      assert ((w_take != '0) == w_go);
      // the answer is that of the slave that was asked
      for (int s = 0; s < 2; s++) begin
        assert (b_take[s] == (b_go && addr_open[s] == 2'd1) && r_take[s] == (r_go && read_open[s] == 2'd1));
        if (bvalid && addr_open[s] == 2'd1) assert (bvalid_i[s] && bresp == bresp_i[s]);
        if (rvalid && read_open[s] == 2'd1) assert (rvalid_i[s] && rresp == rresp_i[s] && rdata == rdata_i[s]);
      end
      if (bvalid) assert (writes == 2'd1 && datas == 2'd1);
      if (rvalid) assert (reads == 2'd1);
      // nothing is held back
      if (writes == '0) assert (awready == awready_i[aw_page] && awvalid[aw_page] == awvalid_i);
      if (reads == '0) assert (arready == arready_i[ar_page] && arvalid[ar_page] == arvalid_i);
      for (int s = 0; s < 2; s++) begin
        if (addr_open[s] == 2'd1 && datas == '0) assert (wready == wready_i[s] && wvalid[s] == wvalid_i);
        if (bvalid_i[s]) assert (bvalid && bready[s] == bready_i);
        if (rvalid_i[s]) assert (rvalid && rready[s] == rready_i);
      end
      // what the proof rests on
      assert (dut.wr_q == (writes == 2'd1) && dut.w_done_q == (datas == 2'd1) && dut.rd_q == (reads == 2'd1));
      for (int s = 0; s < 2; s++) begin
        if (addr_open[s] == 2'd1) assert (dut.wr_sel_q == 1'(s));
        if (read_open[s] == 2'd1) assert (dut.rd_sel_q == 1'(s));
      end
    end
    cover (init && rst_ni && aw_go && aw_page && wvalid_i);
    cover (init && rst_ni && b_take == 2'b10 && r_take == 2'b01);
    cover (init && rst_ni && b_take == 2'b01 && awvalid_i && aw_page && bresp == 2'b10);
    cover (init && rst_ni && r_take == 2'b10 && rdata == 32'h1234_5678 && rresp == 2'b10);
    cover (init && rst_ni && data_open[1] == 2'd1 && awvalid_i && !aw_page && wvalid_i);
    cover (init && rst_ni && bvalid && !bready_i && rvalid && !rready_i && read_open[1] == 2'd1);
  end
endmodule
`default_nettype wire
