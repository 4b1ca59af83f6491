// shef_axil_master against any slave that responds to no access that it has not accepted: AW, W and
// AR follow the handshake rules (a clear, which comes with the slave's reset, withdraws them). A
// response is accepted only for the current access, and of its kind. Each start completes once, in
// bounded time. After a time-out nothing is requested again. A failed access delivers no data. The
// time-out is 5 cycles.
`default_nettype none
module axil_master
  import shef_pkg::*;
(
    input wire       clk_i,
    input wire       rst_ni,
    input wire       clear_i,
    input wire       start_i,
    input wire       write_i,
    input wire [15:0] addr_i,
    input wire [31:0] wdata_i,
    input wire axil_rsp_t rsp_i
);
  axil_req_t req;
  logic busy, done, err;
  logic [31:0] rdata;
  shef_axil_master #(.TimeoutCycles(5)) dut (
      .clk_i, .rst_ni, .clear_i, .start_i(start_i && !busy), .write_i, .addr_i, .wdata_i,
      .busy_o(busy), .done_o(done), .err_o(err),
      .rdata_o(rdata), .req_o(req), .rsp_i
  );
  logic clear_q = 1'b0;
  logic init = 1'b0;
  axi_channel #(.W(16)) u_aw (.clk_i, .rst_ni(rst_ni && !clear_i && !clear_q),
      .valid_i(req.aw_valid), .ready_i(rsp_i.aw_ready), .data_i(req.aw_addr), .break_i(1'b0));
  axi_channel #(.W(36)) u_w (.clk_i, .rst_ni(rst_ni && !clear_i && !clear_q), .valid_i(req.w_valid),
      .ready_i(rsp_i.w_ready), .data_i({req.w_data, req.w_strb}), .break_i(1'b0));
  axi_channel #(.W(16)) u_ar (.clk_i, .rst_ni(rst_ni && !clear_i && !clear_q),
      .valid_i(req.ar_valid), .ready_i(rsp_i.ar_ready), .data_i(req.ar_addr), .break_i(1'b0));

  logic up, was_write, dead, dead_q;
  logic [2:0] age;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (req.aw_valid || req.w_valid) assume (!rsp_i.b_valid);
    if (req.ar_valid) assume (!rsp_i.r_valid);
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
      if (busy && age == 3'd5 && !(was_write ? rsp_i.b_valid : rsp_i.r_valid)) dead <= 1'b1;
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (!(busy && done));
      if (busy) assert (rdata == '0 && up && dut.write_q == was_write && dut.timer_q == age &&
          age <= 3'd5 && !dead);
      if (done) assert (up);
      if (up && !done) assert (busy);
      assert (dut.dead_q == dead);
      if (dead) assert (!busy);
      if (req.b_ready) assert (busy && was_write);
      if (req.r_ready) assert (busy && !was_write);
      if ((req.aw_valid || req.w_valid) && !dead) assert (busy && was_write);
      if (req.ar_valid && !dead) assert (busy && !was_write);
      if (done && err) assert (rdata == '0);
    end
    cover (init && rst_ni && !clear_i && done && !err && rdata != '0);
    cover (init && rst_ni && !clear_i && done && dead);
  end
endmodule
`default_nettype wire
