// Mailbox between the untrusted host and the Security Kernel.
//
// host_*: AXI4-Lite slave of 16 KiB, every access gets a response. Request buffer at 0 (8 KiB,
// write-only), response buffer at 0x2000 (7.5 KiB, read-only), 0x3f00 REQ_LEN (a write rings),
// 0x3f04 STATUS (0 idle, 1 response ready, 2 busy), 0x3f08 RSP_LEN. Any other access gets SLVERR
// and zero, as do writes while the kernel has a request or the buffers are being cleared. The
// response reads as zeros unless STATUS is 1.
// sel_i: device of shef_kernel_bus; registers respond at once, buffers one cycle later. Unless a
// request waits, the request reads as zeros and writes are ignored. Neither side ever has access to
// a buffer that the other may change.
// clear_i (level) with clear_addr_i: zeroes both buffers word by word and drops a waiting request.
`default_nettype none
module shef_kernel_mailbox
  import shef_pkg::*;
  import shef_kernel_regs_pkg::*;
(
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   clear_i,
    input  wire logic [10:0] clear_addr_i,
    input  wire axil_req_t host_req_i,
    output axil_rsp_t   host_rsp_o,
    input  wire logic   sel_i,
    input  wire logic   we_i,
    input  wire logic [3:0]  be_i,
    input  wire logic [14:0] addr_i,
    input  wire logic [31:0] wdata_i,
    output logic        ready_o,
    output logic        err_o,
    output logic [31:0] rdata_o
);
  localparam logic [13:0] REQ_LEN = 14'h3f00;
  localparam logic [13:0] STATUS = 14'h3f04;
  localparam logic [13:0] RSP_LEN = 14'h3f08;

  typedef enum logic [1:0] {
    M_IDLE,
    M_ANSWER,
    M_BUSY  // the kernel has a request
  } mail_e;

  mail_e mail_q;
  logic [31:0] req_len_q;
  logic [13:0] rsp_len_q;

  // ---- host ----
  logic wr_valid, wr_err, rd_valid, rd_err_q;
  logic [13:0] wr_addr, rd_addr;
  logic [31:0] wr_data, rd_word_q, answer_word;
  logic [3:0] wr_strb;
  logic rd_answer_q;
  shef_axil_slave #(
      .AddrW(14)
  ) u_host (
      .clk_i,
      .rst_ni,
      .req_i(host_req_i),
      .rsp_o(host_rsp_o),
      .wr_valid_o(wr_valid),
      .wr_addr_o(wr_addr),
      .wr_data_o(wr_data),
      .wr_strb_o(wr_strb),
      .wr_err_i(wr_err),
      .rd_valid_o(rd_valid),
      .rd_addr_o(rd_addr),
      .rd_data_i(rd_answer_q ? answer_word : rd_word_q),
      .rd_err_i(rd_err_q)
  );

  wire open = mail_q != M_BUSY && !clear_i;
  wire wr_request = open && wr_addr < 14'h2000;
  wire wr_bell = open && wr_addr == REQ_LEN && &wr_strb;
  assign wr_err = !wr_request && !wr_bell;
  wire ring = wr_valid && wr_bell;
  wire rd_answer = rd_addr >= 14'h2000 && rd_addr < 14'h3e00;

  // ---- kernel ----
  logic second_q;  // the buffer's word is present
  logic [31:0] request_word;
  wire buffers = addr_i[14];
  wire answers = buffers && addr_i[13];
  wire mine = mail_q == M_BUSY;
  mailbox_sel_e item;
  assign item = mailbox_decode(addr_i[11:0]);
  wire write = sel_i && we_i && ready_o && mine;
  wire hand_over = write && !buffers && item == MAILBOX_SEL_RSP_LEN && &be_i;
  assign ready_o = !clear_i && (!buffers || second_q);
  assign err_o = !buffers && (we_i ? !mailbox_writable(item) || be_i != 4'hf : !mailbox_readable(item));
  always_comb begin
    rdata_o = '0;
    if (buffers) rdata_o = mine ? request_word : 32'd0;
    else if (item == MAILBOX_SEL_REQ_LEN) rdata_o = mine ? req_len_q : 32'd0;
    else if (item == MAILBOX_SEL_STATUS) rdata_o[MAILBOX_STATUS_WAITING_LSB] = mine;
  end

  // ---- buffers ----
  logic unused_ram;
  logic [31:0] unused_request, unused_answer;
  assign unused_ram = ^{unused_request, unused_answer};
  shef_kernel_ram #(
      .Words(2048)
  ) u_request (
      .clk_i,
      .clear_i,
      .a_addr_i(addr_i[12:2]),
      .a_rdata_o(request_word),
      .b_addr_i(clear_i ? clear_addr_i : wr_addr[12:2]),
      .b_we_i(wr_valid && wr_request ? wr_strb : 4'd0),
      .b_wdata_i(wr_data),
      .b_rdata_o(unused_request)
  );
  shef_kernel_ram #(
      .Words(2048)
  ) u_answer (
      .clk_i,
      .clear_i,
      .a_addr_i(rd_addr[12:2]),
      .a_rdata_o(answer_word),
      .b_addr_i(clear_i ? clear_addr_i : addr_i[12:2]),
      .b_we_i(write && answers ? be_i : 4'd0),
      .b_wdata_i(wdata_i),
      .b_rdata_o(unused_answer)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      mail_q <= M_IDLE;
      req_len_q <= '0;
      rsp_len_q <= '0;
      second_q <= 1'b0;
    end else begin
      second_q <= sel_i && buffers && !second_q;
      if (ring) begin
        mail_q <= M_BUSY;
        req_len_q <= wr_data;
      end else if (hand_over) begin
        mail_q <= M_ANSWER;
        rsp_len_q <= wdata_i[13:0];
      end
    end
    rd_answer_q <= rd_answer && mail_q == M_ANSWER && !clear_i;
    rd_err_q <= !rd_answer && rd_addr != STATUS && rd_addr != RSP_LEN;
    rd_word_q <= '0;
    if (rd_valid && rd_addr == STATUS) rd_word_q <= 32'(mail_q);
    if (rd_valid && rd_addr == RSP_LEN && mail_q == M_ANSWER) rd_word_q <= 32'(rsp_len_q);
  end

endmodule
`default_nettype wire
