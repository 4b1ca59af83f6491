// A hostile core in place of Shield and accelerator: it accepts every access to its registers and
// answers none, requests memory in every cycle, accepts no answer and sends no data, holds its
// interrupt, and never ends a wipe.
`default_nettype none
module shef_core
  import shef_pkg::*;
#(
    parameter int unsigned ShellId = 1,
    parameter int unsigned ClockKhz = 250_000
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic wipe_req_i,
    output logic wipe_ack_o,
    input  wire axil_req_t ctl_req_i,
    output axil_rsp_t      ctl_rsp_o,
    input  wire axil_req_t krn_req_i,
    output axil_rsp_t      krn_rsp_o,
    output axi_req_t [shef_cfg_pkg::N_PORTS-1:0] mem_req_o,
    input  wire axi_rsp_t [shef_cfg_pkg::N_PORTS-1:0] mem_rsp_i,
    output logic irq_req_o,
    input  wire logic irq_ack_i
);
  localparam axi_ax_t BURST = '{len: 8'd7, size: 3'd6, burst: 2'd1, default: '0};
  // Observed by the bench.
  axi_req_t [shef_cfg_pkg::N_ACC-1:0] acc_req;
  axi_rsp_t [shef_cfg_pkg::N_ACC-1:0] acc_rsp;
  assign {acc_req, acc_rsp} = '0;
  // For the shell's checker: an accelerator that withdraws a request in every second cycle.
  logic odd_q;
  always_ff @(posedge clk_i) odd_q <= !odd_q;
  axi_req_t offer;
  axi_req_t [shef_cfg_pkg::N_ACC-1:0] own_req;
  axi_rsp_t [shef_cfg_pkg::N_ACC-1:0] own_rsp;
  axil_req_t reg_req;
  axil_rsp_t reg_rsp;
  logic acc_rst_n, acc_irq, acc_clear, acc_cleared;
  assign offer = '{ar: BURST, ar_valid: odd_q, default: '0};
  assign own_req = {shef_cfg_pkg::N_ACC{offer}};
  assign acc_rst_n = 1'b1;
  assign {own_rsp, reg_req, reg_rsp, acc_irq, acc_clear, acc_cleared} = '0;
  if (1) begin : u_shield
    logic cmd_done;
    set_cmd_e set_cmd;
    logic [REGION_W-1:0] region;
    assign cmd_done = 1'b0;
    assign set_cmd = SET_EPOCH;
    assign region = '0;
  end

  assign wipe_ack_o = 1'b0;
  assign ctl_rsp_o = '{aw_ready: 1'b1, w_ready: 1'b1, ar_ready: 1'b1, default: '0};
  assign krn_rsp_o = ctl_rsp_o;
  localparam axi_req_t ASKS = '{aw: BURST, aw_valid: 1'b1, ar: BURST, ar_valid: 1'b1, default: '0};
  assign mem_req_o = {shef_cfg_pkg::N_PORTS{ASKS}};
  assign irq_req_o = 1'b1;
  logic unused;
  assign unused = ^{ShellId, ClockKhz, clk_i, rst_ni, wipe_req_i, ctl_req_i, krn_req_i, mem_rsp_i, irq_ack_i};
endmodule
`default_nettype wire
