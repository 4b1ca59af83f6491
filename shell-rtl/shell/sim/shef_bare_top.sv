// Simulation top of an accelerator without a Shield: the control port connects to its registers,
// its memory ports to memory.
//
// Flat AXI ports as in shef_sim_top; irq_req stays high from an interrupt of the accelerator until
// irq_ack. clear is the accelerator's clear_i. The obs_* outputs count deliveries to the accelerator;
// seen_*: handshakes of its ports. chk_*: the protocol checker (shef_check).
`include "shef_ports.svh"
`include "shef_check_ports.svh"
`default_nettype none
module shef_bare_top
  import shef_pkg::*;
  import shef_cfg_pkg::*;
(
    input  wire logic clk,
    input  wire logic rst_n,
    input  wire logic clear,
    `SHEF_AXIL_S_PORTS(ctl, 16),
    `SHEF_AXI_M_PORTS(mem, [N_ACC]),
    output logic      irq_req,
    input  wire logic irq_ack,
    `SHEF_OBS_PORTS([N_ACC]),
    `SHEF_SEEN_PORTS([N_ACC]),
    `SHEF_CHECK_PORTS
);
  logic irq, irq_prev_q, irq_q;
  axi_ax_t [N_ACC-1:0] m_aw, m_ar;
  axi_w_t [N_ACC-1:0] m_w;
  axi_b_t [N_ACC-1:0] m_b;
  axi_r_t [N_ACC-1:0] m_r;
  logic [N_ACC-1:0] m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_b_valid, m_b_ready;
  logic [N_ACC-1:0] m_ar_valid, m_ar_ready, m_r_valid, m_r_ready;
  axi_req_t [N_ACC-1:0] mem_req;
  axi_rsp_t [N_ACC-1:0] mem_rsp;
  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_mem
    assign mem_req[p] = '{m_aw[p], m_aw_valid[p], m_w[p], m_w_valid[p], m_b_ready[p],
        m_ar[p], m_ar_valid[p], m_r_ready[p]};
    assign {m_aw_ready[p], m_w_ready[p], m_b[p], m_b_valid[p], m_ar_ready[p], m_r[p],
        m_r_valid[p]} = mem_rsp[p];
    assign `SHEF_AXI_REQ(mem, [p]) = mem_req[p];
    assign mem_rsp[p] = `SHEF_AXI_RSP(mem, [p]);
    `SHEF_OBS([p], mem_req[p], mem_rsp[p]);
    `SHEF_SEEN([p], mem_req[p], mem_rsp[p], rst_n);
  end

  axil_req_t reg_req;
  axil_rsp_t reg_rsp;
  assign reg_req = `SHEF_AXIL_REQ(ctl);
  assign reg_rsp = `SHEF_AXIL_RSP(ctl);
  logic cleared;
  `SHEF_SEEN_REG(reg_req, reg_rsp, rst_n, clear, cleared, irq);

  shef_accel u_accel (
      .clk_i(clk),
      .rst_ni(rst_n),
      .clear_i(clear),
      .cleared_o(cleared),
      .reg_awaddr_i(ctl_awaddr),
      .reg_awvalid_i(ctl_awvalid),
      .reg_awready_o(ctl_awready),
      .reg_wdata_i(ctl_wdata),
      .reg_wstrb_i(ctl_wstrb),
      .reg_wvalid_i(ctl_wvalid),
      .reg_wready_o(ctl_wready),
      .reg_bresp_o(ctl_bresp),
      .reg_bvalid_o(ctl_bvalid),
      .reg_bready_i(ctl_bready),
      .reg_araddr_i(ctl_araddr),
      .reg_arvalid_i(ctl_arvalid),
      .reg_arready_o(ctl_arready),
      .reg_rdata_o(ctl_rdata),
      .reg_rresp_o(ctl_rresp),
      .reg_rvalid_o(ctl_rvalid),
      .reg_rready_i(ctl_rready),
      .acc_aw_o(m_aw),
      .acc_aw_valid_o(m_aw_valid),
      .acc_aw_ready_i(m_aw_ready),
      .acc_w_o(m_w),
      .acc_w_valid_o(m_w_valid),
      .acc_w_ready_i(m_w_ready),
      .acc_b_i(m_b),
      .acc_b_valid_i(m_b_valid),
      .acc_b_ready_o(m_b_ready),
      .acc_ar_o(m_ar),
      .acc_ar_valid_o(m_ar_valid),
      .acc_ar_ready_i(m_ar_ready),
      .acc_r_i(m_r),
      .acc_r_valid_i(m_r_valid),
      .acc_r_ready_o(m_r_ready),
      .irq_o(irq)
  );

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      irq_prev_q <= 1'b0;
      irq_q <= 1'b0;
    end else begin
      irq_prev_q <= irq;
      if (irq && !irq_prev_q) irq_q <= 1'b1;
      else if (irq_ack) irq_q <= 1'b0;
    end
  end
  assign irq_req = irq_q;

  `SHEF_CHECK(mem_req, mem_rsp, reg_req, reg_rsp, rst_n, irq, clear, cleared, chk_close, 1'b0, '0);
endmodule
`default_nettype wire
