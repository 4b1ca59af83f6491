// Test bench shell: the core with flat ports, including those of the accelerator.
//
// ctl, krn, mem and irq as in shef_sim_top. acc_*[p] and reg_* are the ports of the accelerator
// (`shef_accel` of this folder): AXI4 masters and an AXI4-Lite slave that the bench drives, behind
// everything that shef_core puts between an accelerator and the Shield; acc_rst_n is the reset of
// the accelerator. acc_left: its memory still holds data of a session.
`default_nettype none
module shef_tb_top
  import shef_pkg::*;
  import shef_cfg_pkg::*;
(
    input  wire logic         clk,
    input  wire logic         rst_n,
    input  wire logic         wipe_req,
    output logic              wipe_ack,
    output logic              irq_req,
    input  wire logic         irq_ack,
    input  wire logic [15:0]  ctl_awaddr,
    input  wire logic         ctl_awvalid,
    output logic              ctl_awready,
    input  wire logic [31:0]  ctl_wdata,
    input  wire logic [3:0]   ctl_wstrb,
    input  wire logic         ctl_wvalid,
    output logic              ctl_wready,
    output logic      [1:0]   ctl_bresp,
    output logic              ctl_bvalid,
    input  wire logic         ctl_bready,
    input  wire logic [15:0]  ctl_araddr,
    input  wire logic         ctl_arvalid,
    output logic              ctl_arready,
    output logic      [31:0]  ctl_rdata,
    output logic      [1:0]   ctl_rresp,
    output logic              ctl_rvalid,
    input  wire logic         ctl_rready,
    input  wire logic [11:0]  krn_awaddr,
    input  wire logic         krn_awvalid,
    output logic              krn_awready,
    input  wire logic [31:0]  krn_wdata,
    input  wire logic [3:0]   krn_wstrb,
    input  wire logic         krn_wvalid,
    output logic              krn_wready,
    output logic      [1:0]   krn_bresp,
    output logic              krn_bvalid,
    input  wire logic         krn_bready,
    input  wire logic [11:0]  krn_araddr,
    input  wire logic         krn_arvalid,
    output logic              krn_arready,
    output logic      [31:0]  krn_rdata,
    output logic      [1:0]   krn_rresp,
    output logic              krn_rvalid,
    input  wire logic         krn_rready,
    output logic [7:0]        mem_awid [N_PORTS],
    output logic [63:0]       mem_awaddr [N_PORTS],
    output logic [7:0]        mem_awlen [N_PORTS],
    output logic [2:0]        mem_awsize [N_PORTS],
    output logic [1:0]        mem_awburst [N_PORTS],
    output logic              mem_awvalid [N_PORTS],
    input  wire logic         mem_awready [N_PORTS],
    output logic [511:0]      mem_wdata [N_PORTS],
    output logic [63:0]       mem_wstrb [N_PORTS],
    output logic              mem_wlast [N_PORTS],
    output logic              mem_wvalid [N_PORTS],
    input  wire logic         mem_wready [N_PORTS],
    input  wire logic [7:0]   mem_bid [N_PORTS],
    input  wire logic [1:0]   mem_bresp [N_PORTS],
    input  wire logic         mem_bvalid [N_PORTS],
    output logic              mem_bready [N_PORTS],
    output logic [7:0]        mem_arid [N_PORTS],
    output logic [63:0]       mem_araddr [N_PORTS],
    output logic [7:0]        mem_arlen [N_PORTS],
    output logic [2:0]        mem_arsize [N_PORTS],
    output logic [1:0]        mem_arburst [N_PORTS],
    output logic              mem_arvalid [N_PORTS],
    input  wire logic         mem_arready [N_PORTS],
    input  wire logic [7:0]   mem_rid [N_PORTS],
    input  wire logic [511:0] mem_rdata [N_PORTS],
    input  wire logic [1:0]   mem_rresp [N_PORTS],
    input  wire logic         mem_rlast [N_PORTS],
    input  wire logic         mem_rvalid [N_PORTS],
    output logic              mem_rready [N_PORTS],
    input  wire logic [7:0]   acc_awid [N_ACC],
    input  wire logic [63:0]  acc_awaddr [N_ACC],
    input  wire logic [7:0]   acc_awlen [N_ACC],
    input  wire logic [2:0]   acc_awsize [N_ACC],
    input  wire logic [1:0]   acc_awburst [N_ACC],
    input  wire logic         acc_awvalid [N_ACC],
    output logic              acc_awready [N_ACC],
    input  wire logic [511:0] acc_wdata [N_ACC],
    input  wire logic [63:0]  acc_wstrb [N_ACC],
    input  wire logic         acc_wlast [N_ACC],
    input  wire logic         acc_wvalid [N_ACC],
    output logic              acc_wready [N_ACC],
    output logic [7:0]        acc_bid [N_ACC],
    output logic [1:0]        acc_bresp [N_ACC],
    output logic              acc_bvalid [N_ACC],
    input  wire logic         acc_bready [N_ACC],
    input  wire logic [7:0]   acc_arid [N_ACC],
    input  wire logic [63:0]  acc_araddr [N_ACC],
    input  wire logic [7:0]   acc_arlen [N_ACC],
    input  wire logic [2:0]   acc_arsize [N_ACC],
    input  wire logic [1:0]   acc_arburst [N_ACC],
    input  wire logic         acc_arvalid [N_ACC],
    output logic              acc_arready [N_ACC],
    output logic [7:0]        acc_rid [N_ACC],
    output logic [511:0]      acc_rdata [N_ACC],
    output logic [1:0]        acc_rresp [N_ACC],
    output logic              acc_rlast [N_ACC],
    output logic              acc_rvalid [N_ACC],
    input  wire logic         acc_rready [N_ACC],
    output logic              acc_rst_n,
    output logic              acc_clear,
    output logic              acc_left,
    input  wire logic         acc_uncleared,  // the bench's accelerator does not clear its memories
    output logic      [15:0]  reg_awaddr,
    output logic              reg_awvalid,
    input  wire logic         reg_awready,
    output logic      [31:0]  reg_wdata,
    output logic      [3:0]   reg_wstrb,
    output logic              reg_wvalid,
    input  wire logic         reg_wready,
    input  wire logic [1:0]   reg_bresp,
    input  wire logic         reg_bvalid,
    output logic              reg_bready,
    output logic      [15:0]  reg_araddr,
    output logic              reg_arvalid,
    input  wire logic         reg_arready,
    input  wire logic [31:0]  reg_rdata,
    input  wire logic [1:0]   reg_rresp,
    input  wire logic         reg_rvalid,
    output logic              reg_rready,
    input  wire logic         acc_irq
);
  axil_req_t ctl_req, krn_req;
  axil_rsp_t ctl_rsp, krn_rsp;
  assign ctl_req = '{ctl_awaddr, ctl_awvalid, ctl_wdata, ctl_wstrb, ctl_wvalid, ctl_bready,
      ctl_araddr, ctl_arvalid, ctl_rready};
  assign {ctl_awready, ctl_wready, ctl_bresp, ctl_bvalid, ctl_arready, ctl_rdata, ctl_rresp,
      ctl_rvalid} = ctl_rsp;
  assign krn_req = '{{4'd0, krn_awaddr}, krn_awvalid, krn_wdata, krn_wstrb, krn_wvalid, krn_bready,
      {4'd0, krn_araddr}, krn_arvalid, krn_rready};
  assign {krn_awready, krn_wready, krn_bresp, krn_bvalid, krn_arready, krn_rdata, krn_rresp,
      krn_rvalid} = krn_rsp;
  axi_ax_t [N_PORTS-1:0] m_aw, m_ar;
  axi_w_t [N_PORTS-1:0] m_w;
  axi_b_t [N_PORTS-1:0] m_b;
  axi_r_t [N_PORTS-1:0] m_r;
  logic [N_PORTS-1:0] m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_b_valid, m_b_ready;
  logic [N_PORTS-1:0] m_ar_valid, m_ar_ready, m_r_valid, m_r_ready;
  for (genvar p = 0; p < int'(N_PORTS); p++) begin : g_mem
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
  // The ports of the accelerator, by name.
  assign acc_rst_n = u_core.u_accel.rst_ni;
  assign acc_clear = u_core.u_accel.clear_i;
  assign acc_left = u_core.u_accel.left_q;
  assign u_core.u_accel.uncleared = acc_uncleared;
  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_acc
    assign u_core.u_accel.aw[p] = '{id: acc_awid[p], addr: acc_awaddr[p], len: acc_awlen[p],
        size: acc_awsize[p], burst: acc_awburst[p]};
    assign u_core.u_accel.aw_valid[p] = acc_awvalid[p];
    assign acc_awready[p] = u_core.u_accel.acc_aw_ready_i[p];
    assign u_core.u_accel.ar[p] = '{id: acc_arid[p], addr: acc_araddr[p], len: acc_arlen[p],
        size: acc_arsize[p], burst: acc_arburst[p]};
    assign u_core.u_accel.ar_valid[p] = acc_arvalid[p];
    assign acc_arready[p] = u_core.u_accel.acc_ar_ready_i[p];
    assign u_core.u_accel.w[p] = '{data: acc_wdata[p], strb: acc_wstrb[p], last: acc_wlast[p]};
    assign u_core.u_accel.w_valid[p] = acc_wvalid[p];
    assign acc_wready[p] = u_core.u_accel.acc_w_ready_i[p];
    assign acc_bid[p] = u_core.u_accel.acc_b_i[p].id;
    assign acc_bresp[p] = u_core.u_accel.acc_b_i[p].resp;
    assign acc_bvalid[p] = u_core.u_accel.acc_b_valid_i[p];
    assign u_core.u_accel.b_ready[p] = acc_bready[p];
    assign acc_rid[p] = u_core.u_accel.acc_r_i[p].id;
    assign acc_rdata[p] = u_core.u_accel.acc_r_i[p].data;
    assign acc_rresp[p] = u_core.u_accel.acc_r_i[p].resp;
    assign acc_rlast[p] = u_core.u_accel.acc_r_i[p].last;
    assign acc_rvalid[p] = u_core.u_accel.acc_r_valid_i[p];
    assign u_core.u_accel.r_ready[p] = acc_rready[p];
  end
  assign reg_awaddr = u_core.u_accel.reg_awaddr_i;
  assign reg_awvalid = u_core.u_accel.reg_awvalid_i;
  assign u_core.u_accel.reg_awready = reg_awready;
  assign reg_wdata = u_core.u_accel.reg_wdata_i;
  assign reg_wstrb = u_core.u_accel.reg_wstrb_i;
  assign reg_wvalid = u_core.u_accel.reg_wvalid_i;
  assign u_core.u_accel.reg_wready = reg_wready;
  assign u_core.u_accel.reg_bresp = reg_bresp;
  assign u_core.u_accel.reg_bvalid = reg_bvalid;
  assign reg_bready = u_core.u_accel.reg_bready_i;
  assign reg_araddr = u_core.u_accel.reg_araddr_i;
  assign reg_arvalid = u_core.u_accel.reg_arvalid_i;
  assign u_core.u_accel.reg_arready = reg_arready;
  assign u_core.u_accel.reg_rdata = reg_rdata;
  assign u_core.u_accel.reg_rresp = reg_rresp;
  assign u_core.u_accel.reg_rvalid = reg_rvalid;
  assign reg_rready = u_core.u_accel.reg_rready_i;
  assign u_core.u_accel.irq = acc_irq;

  shef_core #(
      .ShellId(1)
  ) u_core (
      .clk_i(clk),
      .rst_ni(rst_n),
      .wipe_req_i(wipe_req),
      .wipe_ack_o(wipe_ack),
      .ctl_req_i(ctl_req),
      .ctl_rsp_o(ctl_rsp),
      .krn_req_i(krn_req),
      .krn_rsp_o(krn_rsp),
      .mem_aw_o(m_aw),
      .mem_aw_valid_o(m_aw_valid),
      .mem_aw_ready_i(m_aw_ready),
      .mem_w_o(m_w),
      .mem_w_valid_o(m_w_valid),
      .mem_w_ready_i(m_w_ready),
      .mem_b_i(m_b),
      .mem_b_valid_i(m_b_valid),
      .mem_b_ready_o(m_b_ready),
      .mem_ar_o(m_ar),
      .mem_ar_valid_o(m_ar_valid),
      .mem_ar_ready_i(m_ar_ready),
      .mem_r_i(m_r),
      .mem_r_valid_i(m_r_valid),
      .mem_r_ready_o(m_r_ready),
      .irq_req_o(irq_req),
      .irq_ack_i(irq_ack)
  );

endmodule
`default_nettype wire
