// shef_axil_slave: B and R follow the handshake rules. Every access gets one response, and there is
// no response without an access. A write writes a register once, with its address, data and
// strobes. A failed access gets SLVERR, and a read then returns zeros.
`default_nettype none
module axil_slave
  import shef_pkg::*;
(
    input wire       clk_i,
    input wire       rst_ni,
    input wire axil_req_t req_i,
    input wire       wr_err_i,
    input wire [31:0] rd_data_i,
    input wire       rd_err_i
);
  axil_rsp_t rsp;
  logic wr_valid, rd_valid;
  logic [31:0] wr_data;
  logic [3:0] wr_strb;
  logic [7:0] wr_addr, rd_addr;
  shef_axil_slave #(.AddrW(8)) dut (
      .clk_i, .rst_ni, .req_i, .rsp_o(rsp), .wr_valid_o(wr_valid), .wr_addr_o(wr_addr),
      .wr_data_o(wr_data), .wr_strb_o(wr_strb), .wr_err_i,
      .rd_valid_o(rd_valid), .rd_addr_o(rd_addr), .rd_data_i, .rd_err_i
  );
  axi_channel #(.W(2)) u_b (.clk_i, .rst_ni, .valid_i(rsp.b_valid), .ready_i(req_i.b_ready),
      .data_i(rsp.b_resp), .break_i(1'b0));
  axi_channel #(.W(34)) u_r (.clk_i, .rst_ni, .valid_i(rsp.r_valid), .ready_i(req_i.r_ready),
      .data_i({rsp.r_resp, rsp.r_data}), .break_i(1'b0));

  logic init = 1'b0;
  logic [1:0] aw_in, w_in, done, answered;   // modulo 4: at most two addresses are inside
  logic [7:0] addr;
  logic [35:0] data;
  logic reading, asked, erred, rd_erred;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni) begin
      aw_in <= '0;
      w_in <= '0;
      done <= '0;
      answered <= '0;
      reading <= 1'b0;
      asked <= 1'b0;
      erred <= 1'b0;
      rd_erred <= 1'b0;
    end else begin
      aw_in <= aw_in + 2'(req_i.aw_valid && rsp.aw_ready);
      w_in <= w_in + 2'(req_i.w_valid && rsp.w_ready);
      done <= done + 2'(wr_valid);
      answered <= answered + 2'(rsp.b_valid && req_i.b_ready);
      if (req_i.aw_valid && rsp.aw_ready) addr <= req_i.aw_addr[7:0];
      if (req_i.w_valid && rsp.w_ready) data <= {req_i.w_strb, req_i.w_data};
      if (wr_valid) erred <= wr_err_i;
      if (req_i.ar_valid && rsp.ar_ready) reading <= 1'b1;
      else if (rsp.r_valid && req_i.r_ready) reading <= 1'b0;
      asked <= rd_valid;
      if (asked) rd_erred <= rd_err_i;
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (dut.aw_full_q == (aw_in != done) && dut.w_full_q == (w_in != done));
      assert (2'(aw_in - done) <= 2'd1 && 2'(w_in - done) <= 2'd1);
      assert (rsp.b_valid == (done != answered) && 2'(done - answered) <= 2'd1);
      if (aw_in != done) assert (dut.aw_addr_q == addr);
      if (w_in != done) assert ({dut.w_strb_q, dut.w_data_q} == data);
      if (wr_valid)
        assert (aw_in != done && w_in != done && wr_addr == addr && {wr_strb, wr_data} == data);
      if (rsp.b_valid) assert (rsp.b_resp == (erred ? 2'b10 : 2'b00));
      assert (reading == (dut.ar_full_q || dut.rd_wait_q || rsp.r_valid));
      assert (3'(dut.ar_full_q) + 3'(dut.rd_wait_q) + 3'(rsp.r_valid) <= 3'd1);
      assert (asked == dut.rd_wait_q);
      if (rsp.r_valid)
        assert (reading && rsp.r_resp == (rd_erred ? 2'b10 : 2'b00) &&
            (!rd_erred || rsp.r_data == '0));
      if (rsp.ar_ready) assert (!reading);
    end
    cover (init && rst_ni && rsp.b_valid && erred && answered == 2'd2);
    cover (init && rst_ni && rsp.r_valid && req_i.r_ready && rsp.r_data == 32'h1234_5678);
  end
endmodule
`default_nettype wire
