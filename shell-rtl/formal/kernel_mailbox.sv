// shef_kernel_mailbox against any host, any kernel and buffers that return anything: only the host
// writes the request, and only while it owns it; likewise the kernel the response. The host reads
// zeros of a response that is not handed over, the kernel of a request before its bell. Only the
// bell, RSP_LEN and a clear change ownership. Any other access of the host fails. The kernel waits
// for at most one cycle unless the buffers are being cleared.
`default_nettype none
// A buffer that may return anything.
module shef_kernel_ram #(
    parameter int unsigned Words = 2048,
    localparam int unsigned AW = $clog2(Words)
) (
    input  wire logic          clk_i,
    input  wire logic          clear_i,
    input  wire logic [AW-1:0] a_addr_i,
    output logic [31:0]        a_rdata_o,
    input  wire logic [AW-1:0] b_addr_i,
    input  wire logic [3:0]    b_we_i,
    input  wire logic [31:0]   b_wdata_i,
    output logic [31:0]        b_rdata_o
);
  (* anyseq *) logic [31:0] a, b;
  assign a_rdata_o = a;
  assign b_rdata_o = b;
endmodule

module kernel_mailbox
  import shef_pkg::*;
(
    input wire clk_i,
    input wire rst_ni,
    input wire clear_i,
    input wire [10:0] clear_addr_i,
    input wire axil_req_t host_req_i,
    input wire sel_i,
    input wire we_i,
    input wire [3:0] be_i,
    input wire [14:0] addr_i,
    input wire [31:0] wdata_i
);
  axil_rsp_t rsp;
  logic ready, err;
  logic [31:0] rdata;
  shef_kernel_mailbox dut (
      .clk_i, .rst_ni, .clear_i, .clear_addr_i, .host_req_i, .host_rsp_o(rsp),
      .sel_i, .we_i, .be_i, .addr_i, .wdata_i, .ready_o(ready), .err_o(err), .rdata_o(rdata)
  );

  logic init = 1'b0;
  logic kernels, answered;      // the kernel has a request; a response was handed over
  logic [31:0] len;             // of the request
  logic [13:0] out_len;         // of the response
  logic bell, over;
  assign bell = dut.wr_valid && dut.wr_addr == 14'h3f00 && dut.wr_strb == 4'hf && !kernels && !clear_i;
  assign over = sel_i && we_i && !addr_i[14] && addr_i[11:2] == 10'd2 && be_i == 4'hf && kernels && !clear_i;
  // The host's request in the cycle before.
  logic asked, asked_answer, asked_status, asked_len, was_answered;
  logic [1:0] was;
  logic waited;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni || clear_i) begin
      kernels <= 1'b0;
      answered <= 1'b0;
    end else if (bell) begin
      kernels <= 1'b1;
      answered <= 1'b0;
      len <= dut.wr_data;
    end else if (over) begin
      kernels <= 1'b0;
      answered <= 1'b1;
      out_len <= wdata_i[13:0];
    end
    asked <= rst_ni && dut.rd_valid;
    asked_answer <= dut.rd_addr >= 14'h2000 && dut.rd_addr < 14'h3e00;
    asked_status <= dut.rd_addr == 14'h3f04;
    asked_len <= dut.rd_addr == 14'h3f08;
    was <= kernels ? 2'd2 : 2'(answered);
    was_answered <= answered && !clear_i;
    waited <= rst_ni && sel_i && !clear_i && !ready;
  end

  logic [31:0] given;
  assign given = dut.u_host.rd_data_i;
  always_comb begin
    if (init && rst_ni) begin
      assert (!(kernels && answered));
      assert (dut.mail_q == (kernels ? 2'd2 : 2'(answered)));
      if (kernels) assert (dut.req_len_q == len);
      if (answered) assert (dut.rsp_len_q == out_len);
      // Buffers.
      if (dut.u_request.b_we_i != '0)
        assert (!kernels && !clear_i && dut.wr_valid && dut.wr_addr < 14'h2000 && !dut.wr_err &&
            dut.u_request.b_addr_i == dut.wr_addr[12:2] && dut.u_request.b_we_i == dut.wr_strb && dut.u_request.b_wdata_i == dut.wr_data);
      if (dut.u_answer.b_we_i != '0)
        assert (kernels && !clear_i && sel_i && we_i && ready && addr_i[14:13] == 2'b11 &&
            dut.u_answer.b_addr_i == addr_i[12:2] && dut.u_answer.b_we_i == be_i && dut.u_answer.b_wdata_i == wdata_i);
      assert (dut.u_request.clear_i == clear_i && dut.u_answer.clear_i == clear_i);
      if (clear_i) assert (dut.u_request.b_addr_i == clear_addr_i && dut.u_answer.b_addr_i == clear_addr_i);
      // The host.
      if (dut.wr_valid && !dut.wr_err) assert (!kernels && !clear_i && (dut.wr_addr < 14'h2000 || bell));
      if (dut.wr_valid && !kernels && !clear_i && dut.wr_addr < 14'h2000) assert (!dut.wr_err);
      if (asked) begin
        assert (dut.rd_err_q == !(asked_answer || asked_status || asked_len));
        if (asked_answer && !was_answered) assert (given == '0);
        if (asked_answer && was_answered) assert (dut.rd_answer_q);
        if (asked_status) assert (given == 32'(was));
        if (asked_len) assert (given == (was == 2'd1 ? 32'(dut.rsp_len_q) : 32'd0) || clear_i || dut.mail_q != 2'd1);
        if (asked_len && was != 2'd1) assert (given == '0);
      end
      // The kernel.
      if (!kernels) assert (!addr_i[14] || rdata == '0);
      if (!kernels && addr_i[14:2] == 13'd0) assert (rdata == '0);
      if (kernels && addr_i[14:2] == 13'd0) assert (rdata == len);
      if (waited && sel_i && !clear_i && addr_i[14]) assert (ready || !dut.second_q);
      if (sel_i && !clear_i && !addr_i[14]) assert (ready);
      if (sel_i && we_i && !addr_i[14] && be_i != 4'hf) assert (err);
    end
    cover (init && rst_ni && asked && asked_answer && was_answered && given == 32'h1234_5678);
    cover (init && rst_ni && kernels && sel_i && ready && addr_i[14] && !we_i && rdata != '0);
    cover (init && rst_ni && dut.wr_valid && dut.wr_err && kernels && dut.wr_addr == 14'd8);
  end
endmodule
`default_nettype wire
