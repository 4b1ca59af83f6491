// Test top of the Security Kernel's subsystem: shef_kernel with flat ports for its AXI4-Lite buses.
`default_nettype none
module shef_kernel_top
  import shef_pkg::*;
(
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   wipe_req_i,
    output logic        wipe_ack_o,
    output logic        ready_o,
    output logic [3:0]  alert_o,
    input  wire logic [13:0] host_awaddr_i,
    input  wire logic host_awvalid_i,
    output logic      host_awready_o,
    input  wire logic [31:0] host_wdata_i,
    input  wire logic [3:0] host_wstrb_i,
    input  wire logic host_wvalid_i,
    output logic      host_wready_o,
    output logic      [1:0] host_bresp_o,
    output logic      host_bvalid_o,
    input  wire logic host_bready_i,
    input  wire logic [13:0] host_araddr_i,
    input  wire logic host_arvalid_i,
    output logic      host_arready_o,
    output logic      [31:0] host_rdata_o,
    output logic      [1:0] host_rresp_o,
    output logic      host_rvalid_o,
    input  wire logic host_rready_i,
    output logic      [11:0] krn_awaddr_o,
    output logic      krn_awvalid_o,
    input  wire logic krn_awready_i,
    output logic      [31:0] krn_wdata_o,
    output logic      [3:0] krn_wstrb_o,
    output logic      krn_wvalid_o,
    input  wire logic krn_wready_i,
    input  wire logic [1:0] krn_bresp_i,
    input  wire logic krn_bvalid_i,
    output logic      krn_bready_o,
    output logic      [11:0] krn_araddr_o,
    output logic      krn_arvalid_o,
    input  wire logic krn_arready_i,
    input  wire logic [31:0] krn_rdata_i,
    input  wire logic [1:0] krn_rresp_i,
    input  wire logic krn_rvalid_i,
    output logic      krn_rready_o,
    // boot medium
    output logic        medium_valid_o,
    output logic [17:0] medium_addr_o,
    input  wire logic   medium_ready_i,
    input  wire logic [31:0] medium_data_i,
    input  wire logic   medium_err_i,
    // noise
    input  wire logic   noise_valid_i,
    input  wire logic   noise_bit_i,
    input  wire logic   noise_seeded_i,
    input  wire logic   noise_unmeasured_i,
    // configuration of the fabric
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
    // identity
    input  wire logic [255:0] uds_i,
    input  wire logic [1:0]   root_i,
    input  wire logic [255:0] target_i,
    input  wire logic [255:0] shell_i,
    input  wire logic [2:0]   shell_flags_i,
    input  wire logic   debug_i
);

  axil_req_t host_req, krn_req;
  axil_rsp_t host_rsp, krn_rsp;
  assign host_req = '{
      {2'd0, host_awaddr_i}, host_awvalid_i, host_wdata_i, host_wstrb_i, host_wvalid_i, host_bready_i,
      {2'd0, host_araddr_i}, host_arvalid_i, host_rready_i};
  assign {host_awready_o, host_wready_o, host_bresp_o, host_bvalid_o, host_arready_o, host_rdata_o,
      host_rresp_o, host_rvalid_o} = host_rsp;
  logic unused_krn;
  assign unused_krn = ^{krn_req.aw_addr[15:12], krn_req.ar_addr[15:12]};
  assign krn_awaddr_o = krn_req.aw_addr[11:0];
  assign krn_awvalid_o = krn_req.aw_valid;
  assign krn_wdata_o = krn_req.w_data;
  assign krn_wstrb_o = krn_req.w_strb;
  assign krn_wvalid_o = krn_req.w_valid;
  assign krn_bready_o = krn_req.b_ready;
  assign krn_araddr_o = krn_req.ar_addr[11:0];
  assign krn_arvalid_o = krn_req.ar_valid;
  assign krn_rready_o = krn_req.r_ready;
  assign krn_rsp = '{
      krn_awready_i, krn_wready_i, krn_bresp_i, krn_bvalid_i, krn_arready_i, krn_rdata_i, krn_rresp_i,
      krn_rvalid_i};

  shef_kernel u_kernel (
      .clk_i,
      .rst_ni,
      .wipe_req_i,
      .wipe_ack_o,
      .ready_o,
      .alert_o,
      .host_req_i(host_req),
      .host_rsp_o(host_rsp),
      .krn_req_o(krn_req),
      .krn_rsp_i(krn_rsp),
      .medium_valid_o,
      .medium_addr_o,
      .medium_ready_i,
      .medium_data_i,
      .medium_err_i,
      .noise_valid_i,
      .noise_bit_i,
      .noise_seeded_i,
      .noise_unmeasured_i,
      .cfg_begin_o,
      .cfg_clear_o,
      .cfg_valid_o,
      .cfg_ready_i,
      .cfg_data_o,
      .cfg_last_o,
      .cfg_busy_i,
      .cfg_active_i,
      .cfg_error_i,
      .design_i,
      .uds_i,
      .root_i,
      .target_i,
      .shell_i,
      .shell_flags_i,
      .debug_i
  );

endmodule
`default_nettype wire
