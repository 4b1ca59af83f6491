// BAR0 on the core's side: one access at a time, to the control window or to the boot medium.
//
// access_*, answer_*: from and to shef_f2_ocl. ctl: AXI4-Lite master to shef_system; an access under
// way when the core enters reset (core_rst_ni) is answered with an error. medium_*: a word of the
// medium; data come in the cycle after medium_en_o.
`default_nettype none
module shef_f2_ctl
  import shef_pkg::*;
  import shef_f2_pkg::*;
(
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic core_rst_ni,
    input  wire logic access_valid_i,
    output logic      access_ready_o,
    input  wire access_t access_i,
    output logic      answer_valid_o,
    input  wire logic answer_ready_i,
    output answer_t   answer_o,
    output axil_req_t ctl_req_o,
    input  wire axil_rsp_t ctl_rsp_i,
    output logic      medium_en_o,
    output logic      medium_we_o,
    output logic [MEDIUM_AW-1:0] medium_addr_o,
    output logic [31:0] medium_data_o,
    input  wire logic [31:0] medium_data_i
);
  typedef enum logic [1:0] {
    IDLE = 2'd0,
    CTL = 2'd1,
    MEDIUM = 2'd2,
    ANSWER = 2'd3
  } state_e;

  state_e state_q;
  access_t access_q;
  answer_t answer_q;
  logic addr_sent_q, data_sent_q;

  assign access_ready_o = state_q == IDLE;
  assign answer_valid_o = state_q == ANSWER;
  assign answer_o = answer_q;

  wire take = state_q == IDLE && access_valid_i;
  // A word whole; frozen once the core is out of reset.
  assign medium_en_o = take && access_i.boot && !core_rst_ni;
  assign medium_we_o = access_i.write && access_i.strb == '1;
  assign medium_addr_o = access_i.addr[MEDIUM_AW-1:0];
  assign medium_data_o = access_i.data;

  wire asks = state_q == CTL && core_rst_ni;
  assign ctl_req_o = '{
      aw_addr: access_q.addr[15:0],
      aw_valid: asks && access_q.write && !addr_sent_q,
      w_data: access_q.data,
      w_strb: access_q.strb,
      w_valid: asks && access_q.write && !data_sent_q,
      b_ready: asks && access_q.write,
      ar_addr: access_q.addr[15:0],
      ar_valid: asks && !access_q.write && !addr_sent_q,
      r_ready: asks && !access_q.write
  };

  logic unused;
  assign unused = access_q.boot ^ access_q.addr[16];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      access_q <= '0;
      answer_q <= '0;
      addr_sent_q <= 1'b0;
      data_sent_q <= 1'b0;
    end else begin
      unique case (state_q)
        IDLE: begin
          addr_sent_q <= 1'b0;
          data_sent_q <= 1'b0;
          if (access_valid_i) begin
            access_q <= access_i;
            state_q <= access_i.boot ? MEDIUM : CTL;
            answer_q.error <= access_i.boot && !medium_en_o;
          end
        end
        CTL: begin
          if (access_q.write ? ctl_rsp_i.aw_ready : ctl_rsp_i.ar_ready) addr_sent_q <= 1'b1;
          if (ctl_rsp_i.w_ready) data_sent_q <= 1'b1;
          if (!core_rst_ni) begin
            state_q <= ANSWER;
            answer_q <= '{error: 1'b1, data: '1};
          end else if (access_q.write && ctl_rsp_i.b_valid) begin
            state_q <= ANSWER;
            answer_q <= '{error: ctl_rsp_i.b_resp[1], data: '0};
          end else if (!access_q.write && ctl_rsp_i.r_valid) begin
            state_q <= ANSWER;
            answer_q <= '{error: ctl_rsp_i.r_resp[1], data: ctl_rsp_i.r_data};
          end
        end
        MEDIUM: begin
          state_q <= ANSWER;
          answer_q.data <= answer_q.error ? '1 : medium_data_i;
        end
        default: begin
          if (answer_ready_i) state_q <= IDLE;
        end
      endcase
    end
  end
endmodule
`default_nettype wire
