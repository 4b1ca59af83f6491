// The accelerator of the test bench: no logic. Its outputs come from variables that shef_tb_top
// drives by name, from the bench's signals at the ports of the top; so the bench acts as an
// accelerator behind everything that shef_core puts between accelerator and Shield.
//
// It also sends the bench's signals in reset: the bench decides whether that accelerator respects
// its reset.
`default_nettype none
module shef_accel
  import shef_pkg::*;
  import shef_cfg_pkg::N_ACC;
(
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        clear_i,
    output logic             cleared_o,
    input  wire logic [15:0] reg_awaddr_i,
    input  wire logic        reg_awvalid_i,
    output logic             reg_awready_o,
    input  wire logic [31:0] reg_wdata_i,
    input  wire logic [3:0]  reg_wstrb_i,
    input  wire logic        reg_wvalid_i,
    output logic             reg_wready_o,
    output logic [1:0]       reg_bresp_o,
    output logic             reg_bvalid_o,
    input  wire logic        reg_bready_i,
    input  wire logic [15:0] reg_araddr_i,
    input  wire logic        reg_arvalid_i,
    output logic             reg_arready_o,
    output logic [31:0]      reg_rdata_o,
    output logic [1:0]       reg_rresp_o,
    output logic             reg_rvalid_o,
    input  wire logic        reg_rready_i,
    output axi_ax_t [N_ACC-1:0] acc_aw_o,
    output logic [N_ACC-1:0] acc_aw_valid_o,
    input  wire logic [N_ACC-1:0] acc_aw_ready_i,
    output axi_w_t [N_ACC-1:0] acc_w_o,
    output logic [N_ACC-1:0] acc_w_valid_o,
    input  wire logic [N_ACC-1:0] acc_w_ready_i,
    input  wire axi_b_t [N_ACC-1:0] acc_b_i,
    input  wire logic [N_ACC-1:0] acc_b_valid_i,
    output logic [N_ACC-1:0] acc_b_ready_o,
    output axi_ax_t [N_ACC-1:0] acc_ar_o,
    output logic [N_ACC-1:0] acc_ar_valid_o,
    input  wire logic [N_ACC-1:0] acc_ar_ready_i,
    input  wire axi_r_t [N_ACC-1:0] acc_r_i,
    input  wire logic [N_ACC-1:0] acc_r_valid_i,
    output logic [N_ACC-1:0] acc_r_ready_o,
    output logic             irq_o
);
  // Driven by shef_tb_top.
  axi_req_t [N_ACC-1:0] req;
  axil_rsp_t reg_rsp;
  logic irq, uncleared;
  // Read by it.
  axi_rsp_t [N_ACC-1:0] rsp;
  axil_req_t reg_req;

  // Its memory is one mark, left by every session: the bench decides how long a clear takes.
  logic left_q;
  always_ff @(posedge clk_i) begin
    if (rst_ni) left_q <= 1'b1;
    else if (clear_i && !uncleared) left_q <= 1'b0;
  end
  assign cleared_o = clear_i && !uncleared;
  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_acc
    assign {acc_aw_o[p], acc_aw_valid_o[p], acc_w_o[p], acc_w_valid_o[p], acc_b_ready_o[p],
        acc_ar_o[p], acc_ar_valid_o[p], acc_r_ready_o[p]} = req[p];
    assign rsp[p] = '{acc_aw_ready_i[p], acc_w_ready_i[p], acc_b_i[p], acc_b_valid_i[p],
        acc_ar_ready_i[p], acc_r_i[p], acc_r_valid_i[p]};
  end
  assign {reg_awready_o, reg_wready_o, reg_bresp_o, reg_bvalid_o, reg_arready_o, reg_rdata_o,
      reg_rresp_o, reg_rvalid_o} = reg_rsp;
  assign reg_req = '{reg_awaddr_i, reg_awvalid_i, reg_wdata_i, reg_wstrb_i, reg_wvalid_i,
      reg_bready_i, reg_araddr_i, reg_arvalid_i, reg_rready_i};
  assign irq_o = irq;
endmodule
`default_nettype wire
