// Simulation shell: the core with flat ports for a test bench.
//
// ctl, krn, mem and irq as in shef_core; mem_*[p] is memory port p. obs_*[p] observe accelerator
// port p of the Shield (one pulse for each accepted read request and each delivered beat); they are
// outputs only and there is no way in.
`default_nettype none
module shef_sim_top
  import shef_pkg::*;
  import shef_cfg_pkg::*;
(
    input  wire logic         clk,
    input  wire logic         rst_n,
    input  wire logic         wipe_req,
    output logic              wipe_ack,
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
    output logic              irq_req,
    input  wire logic         irq_ack,
    output logic              obs_arvalid [N_ACC],
    output logic [7:0]        obs_arid [N_ACC],
    output logic [63:0]       obs_araddr [N_ACC],
    output logic [7:0]        obs_arlen [N_ACC],
    output logic              obs_rvalid [N_ACC],
    output logic [7:0]        obs_rid [N_ACC],
    output logic [1:0]        obs_rresp [N_ACC],
    output logic              obs_rlast [N_ACC]
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

  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_obs
    assign obs_arvalid[p] = u_core.acc_ar_valid[p] && u_core.acc_ar_ready[p];
    assign obs_arid[p] = u_core.acc_ar[p].id;
    assign obs_araddr[p] = u_core.acc_ar[p].addr;
    assign obs_arlen[p] = u_core.acc_ar[p].len;
    assign obs_rvalid[p] = u_core.acc_r_valid[p] && u_core.acc_r_ready[p];
    assign obs_rid[p] = u_core.acc_r[p].id;
    assign obs_rresp[p] = u_core.acc_r[p].resp;
    assign obs_rlast[p] = u_core.acc_r[p].last;
  end
endmodule
`default_nettype wire
