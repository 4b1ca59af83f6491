// A hostile core in place of Shield and accelerator: it accepts every access to its registers and
// answers none, requests memory in every cycle, accepts no answer and sends no data, holds its
// interrupt, and never ends a wipe.
`default_nettype none
module shef_core
  import shef_pkg::*;
#(
    parameter int unsigned ShellId = 1
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic wipe_req_i,
    output logic wipe_ack_o,
    input  wire axil_req_t ctl_req_i,
    output axil_rsp_t      ctl_rsp_o,
    input  wire axil_req_t krn_req_i,
    output axil_rsp_t      krn_rsp_o,
    output axi_ax_t [shef_cfg_pkg::N_PORTS-1:0] mem_aw_o,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_aw_valid_o,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_aw_ready_i,
    output axi_w_t [shef_cfg_pkg::N_PORTS-1:0] mem_w_o,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_w_valid_o,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_w_ready_i,
    input  wire axi_b_t [shef_cfg_pkg::N_PORTS-1:0] mem_b_i,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_b_valid_i,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_b_ready_o,
    output axi_ax_t [shef_cfg_pkg::N_PORTS-1:0] mem_ar_o,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_ar_valid_o,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_ar_ready_i,
    input  wire axi_r_t [shef_cfg_pkg::N_PORTS-1:0] mem_r_i,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_r_valid_i,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_r_ready_o,
    output logic irq_req_o,
    input  wire logic irq_ack_i
);
  // Observed by the bench.
  axi_ax_t [shef_cfg_pkg::N_ACC-1:0] acc_ar;
  axi_r_t [shef_cfg_pkg::N_ACC-1:0] acc_r;
  logic [shef_cfg_pkg::N_ACC-1:0] acc_ar_valid, acc_ar_ready, acc_r_valid, acc_r_ready;
  assign {acc_ar, acc_r, acc_ar_valid, acc_ar_ready, acc_r_valid, acc_r_ready} = '0;

  assign wipe_ack_o = 1'b0;
  assign ctl_rsp_o = '{aw_ready: 1'b1, w_ready: 1'b1, ar_ready: 1'b1, default: '0};
  assign krn_rsp_o = ctl_rsp_o;
  axi_ax_t burst;
  assign burst = '{len: 8'd7, size: 3'd6, burst: 2'd1, default: '0};
  assign mem_aw_o = {shef_cfg_pkg::N_PORTS{burst}};
  assign mem_ar_o = mem_aw_o;
  assign mem_aw_valid_o = '1;
  assign mem_ar_valid_o = '1;
  assign mem_w_o = '0;
  assign mem_w_valid_o = '0;
  assign mem_b_ready_o = '0;
  assign mem_r_ready_o = '0;
  assign irq_req_o = 1'b1;
  logic unused;
  assign unused = ^{ShellId, clk_i, rst_ni, wipe_req_i, ctl_req_i, krn_req_i, mem_aw_ready_i, mem_w_ready_i,
      mem_b_i, mem_b_valid_i, mem_ar_ready_i, mem_r_i, mem_r_valid_i, irq_ack_i};
endmodule
`default_nettype wire
