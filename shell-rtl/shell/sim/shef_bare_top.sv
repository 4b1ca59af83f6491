// Simulation top of an accelerator without a Shield: the control port connects to its registers,
// its memory ports to memory.
//
// Flat AXI ports as in shef_sim_top; irq_req stays high from an interrupt of the accelerator until
// irq_ack. The obs_* outputs count deliveries to the accelerator.
`default_nettype none
module shef_bare_top
  import shef_pkg::*;
  import shef_cfg_pkg::*;
(
  input  wire         clk,
  input  wire         rst_n,

  input  wire  [15:0] ctl_awaddr,
  input  wire         ctl_awvalid,
  output wire         ctl_awready,
  input  wire  [31:0] ctl_wdata,
  input  wire  [ 3:0] ctl_wstrb,
  input  wire         ctl_wvalid,
  output wire         ctl_wready,
  output wire  [ 1:0] ctl_bresp,
  output wire         ctl_bvalid,
  input  wire         ctl_bready,
  input  wire  [15:0] ctl_araddr,
  input  wire         ctl_arvalid,
  output wire         ctl_arready,
  output wire  [31:0] ctl_rdata,
  output wire  [ 1:0] ctl_rresp,
  output wire         ctl_rvalid,
  input  wire         ctl_rready,

  output logic [7:0]        mem_awid [N_ACC],
  output logic [63:0]       mem_awaddr [N_ACC],
  output logic [7:0]        mem_awlen [N_ACC],
  output logic [2:0]        mem_awsize [N_ACC],
  output logic [1:0]        mem_awburst [N_ACC],
  output logic              mem_awvalid [N_ACC],
  input  wire logic         mem_awready [N_ACC],
  output logic [511:0]      mem_wdata [N_ACC],
  output logic [63:0]       mem_wstrb [N_ACC],
  output logic              mem_wlast [N_ACC],
  output logic              mem_wvalid [N_ACC],
  input  wire logic         mem_wready [N_ACC],
  input  wire logic [7:0]   mem_bid [N_ACC],
  input  wire logic [1:0]   mem_bresp [N_ACC],
  input  wire logic         mem_bvalid [N_ACC],
  output logic              mem_bready [N_ACC],
  output logic [7:0]        mem_arid [N_ACC],
  output logic [63:0]       mem_araddr [N_ACC],
  output logic [7:0]        mem_arlen [N_ACC],
  output logic [2:0]        mem_arsize [N_ACC],
  output logic [1:0]        mem_arburst [N_ACC],
  output logic              mem_arvalid [N_ACC],
  input  wire logic         mem_arready [N_ACC],
  input  wire logic [7:0]   mem_rid [N_ACC],
  input  wire logic [511:0] mem_rdata [N_ACC],
  input  wire logic [1:0]   mem_rresp [N_ACC],
  input  wire logic         mem_rlast [N_ACC],
  input  wire logic         mem_rvalid [N_ACC],
  output logic              mem_rready [N_ACC],

  output wire         irq_req,
  input  wire         irq_ack,

  output logic              obs_arvalid [N_ACC],
  output logic [7:0]        obs_arid [N_ACC],
  output logic [63:0]       obs_araddr [N_ACC],
  output logic [7:0]        obs_arlen [N_ACC],
  output logic              obs_rvalid [N_ACC],
  output logic [7:0]        obs_rid [N_ACC],
  output logic [1:0]        obs_rresp [N_ACC],
  output logic              obs_rlast [N_ACC]
);
  logic irq, irq_prev_q, irq_q;
  axi_ax_t [N_ACC-1:0] m_aw, m_ar;
  axi_w_t [N_ACC-1:0] m_w;
  axi_b_t [N_ACC-1:0] m_b;
  axi_r_t [N_ACC-1:0] m_r;
  logic [N_ACC-1:0] m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_b_valid, m_b_ready;
  logic [N_ACC-1:0] m_ar_valid, m_ar_ready, m_r_valid, m_r_ready;
  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_mem
    assign {mem_awid[p], mem_awaddr[p], mem_awlen[p], mem_awsize[p], mem_awburst[p]} = m_aw[p];
    assign mem_awvalid[p] = m_aw_valid[p];
    assign m_aw_ready[p] = mem_awready[p];
    assign {mem_arid[p], mem_araddr[p], mem_arlen[p], mem_arsize[p], mem_arburst[p]} = m_ar[p];
    assign mem_arvalid[p] = m_ar_valid[p];
    assign m_ar_ready[p] = mem_arready[p];
    assign {mem_wdata[p], mem_wstrb[p], mem_wlast[p]} = m_w[p];
    assign mem_wvalid[p] = m_w_valid[p];
    assign m_w_ready[p] = mem_wready[p];
    assign m_b[p] = '{id: mem_bid[p], resp: mem_bresp[p]};
    assign m_b_valid[p] = mem_bvalid[p];
    assign mem_bready[p] = m_b_ready[p];
    assign m_r[p] = '{id: mem_rid[p], data: mem_rdata[p], resp: mem_rresp[p], last: mem_rlast[p]};
    assign m_r_valid[p] = mem_rvalid[p];
    assign mem_rready[p] = m_r_ready[p];
  end

  logic unused_cleared;
  shef_accel i_accel (
    .clk_i(clk),
    .rst_ni(rst_n),
    .clear_i(1'b0),
    .cleared_o(unused_cleared),
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

  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_obs
    assign obs_arvalid[p] = m_ar_valid[p] && m_ar_ready[p];
    assign obs_arid[p] = m_ar[p].id;
    assign obs_araddr[p] = m_ar[p].addr;
    assign obs_arlen[p] = m_ar[p].len;
    assign obs_rvalid[p] = m_r_valid[p] && m_r_ready[p];
    assign obs_rid[p] = m_r[p].id;
    assign obs_rresp[p] = m_r[p].resp;
    assign obs_rlast[p] = m_r[p].last;
  end

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
endmodule
`default_nettype wire
