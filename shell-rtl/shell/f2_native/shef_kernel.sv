// The Security Kernel as a program of the test bench: its ports are ports of the top, in place of
// processor and firmware. It has the ports of shef_kernel, and the clock of the core.
`default_nettype none
/* verilator lint_off UNUSEDSIGNAL */
`include "shef_ports.svh"
module shef_kernel
  import shef_pkg::*;
(
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   wipe_req_i,
    output logic        wipe_ack_o,
    output logic        ready_o,
    output logic [3:0]  alert_o,
    input  wire axil_req_t host_req_i,
    output axil_rsp_t   host_rsp_o,
    output axil_req_t   krn_req_o,
    input  wire axil_rsp_t krn_rsp_i,
    output logic        medium_valid_o,
    output logic [17:0] medium_addr_o,
    input  wire logic   medium_ready_i,
    input  wire logic [31:0] medium_data_i,
    input  wire logic   medium_err_i,
    input  wire logic   noise_valid_i,
    input  wire logic   noise_bit_i,
    input  wire logic   noise_seeded_i,
    input  wire logic   noise_unmeasured_i,
    output logic        cfg_begin_o,
    output logic        cfg_clear_o,
    output logic        cfg_valid_o,
    input  wire logic   cfg_ready_i,
    output logic [31:0] cfg_data_o,
    output logic        cfg_last_o,
    input  wire logic   cfg_busy_i,
    input  wire logic   cfg_active_i,
    input  wire logic   cfg_error_i,
    input  wire logic [255:0] design_i,
    input  wire logic [255:0] uds_i,
    input  wire logic [1:0]   root_i,
    input  wire logic [255:0] target_i,
    input  wire logic [255:0] shell_i,
    input  wire logic [2:0]   shell_flags_i,
    input  wire logic   debug_i
);
  logic wiped_q;
  assign wipe_ack_o = wiped_q;
  always_ff @(posedge clk_i) wiped_q <= rst_ni && wipe_req_i;
  assign ready_o = rst_ni && $root.shef_f2_top.native_ready;
  assign alert_o = $root.shef_f2_top.native_alert;
  assign host_rsp_o = $root.shef_f2_top.native_mbox_rsp;
  assign krn_req_o = $root.shef_f2_top.native_krn_req;
  assign medium_valid_o = 1'b0;
  assign medium_addr_o = '0;
  assign cfg_begin_o = $root.shef_f2_top.cfg_begin;
  assign cfg_clear_o = $root.shef_f2_top.cfg_clear;
  assign cfg_valid_o = $root.shef_f2_top.cfg_valid;
  assign cfg_data_o = $root.shef_f2_top.cfg_data;
  assign cfg_last_o = $root.shef_f2_top.cfg_last;
endmodule
`default_nettype wire
