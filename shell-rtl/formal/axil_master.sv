// shef_axil_master against any slave that answers no access that it has not taken: AW, W and AR
// keep the handshake rules (a clear, which goes with the slave's reset, takes them back); an answer
// is taken only for the access that is up, and of its kind; each start is done once, in bounded
// time; after a time-out nothing is asked again; an access that errs delivers no data. Time-out
// after 5 cycles.
`default_nettype none
module axil_master (
    input wire       clk_i,
    input wire       rst_ni,
    input wire       clear_i,
    input wire       start_i,
    input wire       write_i,
    input wire [7:0] addr_i,
    input wire [31:0] wdata_i,
    input wire       awready_i,
    input wire       wready_i,
    input wire [1:0] bresp_i,
    input wire       bvalid_i,
    input wire       arready_i,
    input wire [31:0] rdata_i,
    input wire [1:0] rresp_i,
    input wire       rvalid_i
);
  logic busy, done, err, awvalid, wvalid, bready, arvalid, rready;
  logic [31:0] rdata, wdata;
  logic [3:0] wstrb;
  logic [7:0] awaddr, araddr;
  shef_axil_master #(.AddrW(8), .TimeoutCycles(5)) dut (
      .clk_i, .rst_ni, .clear_i, .start_i(start_i && !busy), .write_i, .addr_i, .wdata_i, .busy_o(busy), .done_o(done), .err_o(err),
      .rdata_o(rdata), .awaddr_o(awaddr), .awvalid_o(awvalid), .awready_i, .wdata_o(wdata), .wstrb_o(wstrb), .wvalid_o(wvalid), .wready_i,
      .bresp_i, .bvalid_i, .bready_o(bready), .araddr_o(araddr), .arvalid_o(arvalid), .arready_i, .rdata_i, .rresp_i, .rvalid_i,
      .rready_o(rready)
  );
  logic clear_q = 1'b0;
  logic init = 1'b0;
  axi_channel #(.W(8)) i_aw (.clk_i, .rst_ni(rst_ni && !clear_i && !clear_q), .valid_i(awvalid), .ready_i(awready_i), .data_i(awaddr), .break_i(1'b0));
  axi_channel #(.W(36)) i_w (.clk_i, .rst_ni(rst_ni && !clear_i && !clear_q), .valid_i(wvalid), .ready_i(wready_i), .data_i({wdata, wstrb}), .break_i(1'b0));
  axi_channel #(.W(8)) i_ar (.clk_i, .rst_ni(rst_ni && !clear_i && !clear_q), .valid_i(arvalid), .ready_i(arready_i), .data_i(araddr), .break_i(1'b0));

  logic up, was_write, dead, dead_q;
  logic [2:0] age;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (awvalid || wvalid) assume (!bvalid_i);
    if (arvalid) assume (!rvalid_i);
    clear_q <= clear_i;
    if (!rst_ni || clear_i) begin
      up <= 1'b0;
      dead <= 1'b0;
      age <= '0;
    end else begin
      if (start_i && !busy) begin
        up <= 1'b1;
        was_write <= write_i;
        age <= '0;
      end else if (done) up <= 1'b0;
      if (busy) age <= age + 1'b1;
      if (busy && age == 3'd5 && !(was_write ? bvalid_i : rvalid_i)) dead <= 1'b1;
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (!(busy && done));
      if (busy) assert (rdata == '0 && up && dut.write_q == was_write && dut.timer_q == age && age <= 3'd5 && !dead);
      if (done) assert (up);
      if (up && !done) assert (busy);
      assert (dut.dead_q == dead);
      if (dead) assert (!busy);
      if (bready) assert (busy && was_write);
      if (rready) assert (busy && !was_write);
      if ((awvalid || wvalid) && !dead) assert (busy && was_write);
      if (arvalid && !dead) assert (busy && !was_write);
      if (done && err) assert (rdata == '0);
    end
    cover (init && rst_ni && !clear_i && done && !err && rdata != '0);
    cover (init && rst_ni && !clear_i && done && dead);
  end
endmodule
`default_nettype wire
