// Simulation shell of the whole system: shef_system with flat ports for a test bench.
//
// ctl, mem, host, dma_irq, irq and obs as in shef_host_top; the ports of the kernel as in
// shef_kernel_top. kernel_tick_i: the cycle ends with an edge of the kernel's clock. obs_held: the
// design is in reset; obs_krn_*: it accepts an access of the kernel.
`default_nettype none
module shef_system_top
  import shef_pkg::*;
  import shef_cfg_pkg::*;
#(
    parameter logic [63:0] CardBytes = 64'h4_0000_0000,
    parameter int unsigned WipeCycles = 1 << 22
) (
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
    output logic [7:0]        host_awid,
    output logic [63:0]       host_awaddr,
    output logic [7:0]        host_awlen,
    output logic [2:0]        host_awsize,
    output logic [1:0]        host_awburst,
    output logic              host_awvalid,
    input  wire logic         host_awready,
    output logic [511:0]      host_wdata,
    output logic [63:0]       host_wstrb,
    output logic              host_wlast,
    output logic              host_wvalid,
    input  wire logic         host_wready,
    input  wire logic [7:0]   host_bid,
    input  wire logic [1:0]   host_bresp,
    input  wire logic         host_bvalid,
    output logic              host_bready,
    output logic [7:0]        host_arid,
    output logic [63:0]       host_araddr,
    output logic [7:0]        host_arlen,
    output logic [2:0]        host_arsize,
    output logic [1:0]        host_arburst,
    output logic              host_arvalid,
    input  wire logic         host_arready,
    input  wire logic [7:0]   host_rid,
    input  wire logic [511:0] host_rdata,
    input  wire logic [1:0]   host_rresp,
    input  wire logic         host_rlast,
    input  wire logic         host_rvalid,
    output logic              host_rready,
    output logic              dma_irq_valid,
    output logic [15:0]       dma_irq_vector,
    input  wire logic         dma_irq_ready,
    output logic              irq_req,
    input  wire logic         irq_ack,
    input  wire logic         kernel_tick_i,
    output logic              ready_o,
    output logic      [3:0]   alert_o,
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
    input  wire logic   debug_i,
    // observed
    output logic              obs_held,
    output logic              obs_krn_write,
    output logic              obs_krn_read,
    output logic              obs_arvalid [N_ACC],
    output logic [7:0]        obs_arid [N_ACC],
    output logic [63:0]       obs_araddr [N_ACC],
    output logic [7:0]        obs_arlen [N_ACC],
    output logic              obs_rvalid [N_ACC],
    output logic [7:0]        obs_rid [N_ACC],
    output logic [1:0]        obs_rresp [N_ACC],
    output logic              obs_rlast [N_ACC]
);
  axil_req_t ctl_req;
  axil_rsp_t ctl_rsp;
  assign ctl_req = '{ctl_awaddr, ctl_awvalid, ctl_wdata, ctl_wstrb, ctl_wvalid, ctl_bready,
      ctl_araddr, ctl_arvalid, ctl_rready};
  assign {ctl_awready, ctl_wready, ctl_bresp, ctl_bvalid, ctl_arready, ctl_rdata, ctl_rresp,
      ctl_rvalid} = ctl_rsp;
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

  axi_ax_t h_aw, h_ar;
  axi_w_t h_w;
  assign {host_awid, host_awaddr, host_awlen, host_awsize, host_awburst} = h_aw;
  assign {host_arid, host_araddr, host_arlen, host_arsize, host_arburst} = h_ar;
  assign {host_wdata, host_wstrb, host_wlast} = h_w;

  // The kernel's clock has some of the edges of clk. The latch keeps the request while clk is high.
  logic kernel_tick;
  always_latch if (!clk) kernel_tick = kernel_tick_i;
  wire kernel_clk = clk && kernel_tick;

  shef_system #(
      .ShellId(1),
      .CardBytes(CardBytes),
      .WipeCycles(WipeCycles)
  ) u_system (
      .clk_i(clk),
      .kernel_clk_i(kernel_clk),
      .kernel_tick_i,
      .rst_ni(rst_n),
      .wipe_req_i(wipe_req),
      .wipe_ack_o(wipe_ack),
      .ctl_req_i(ctl_req),
      .ctl_rsp_o(ctl_rsp),
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
      .host_aw_o(h_aw),
      .host_aw_valid_o(host_awvalid),
      .host_aw_ready_i(host_awready),
      .host_w_o(h_w),
      .host_w_valid_o(host_wvalid),
      .host_w_ready_i(host_wready),
      .host_b_i({host_bid, host_bresp}),
      .host_b_valid_i(host_bvalid),
      .host_b_ready_o(host_bready),
      .host_ar_o(h_ar),
      .host_ar_valid_o(host_arvalid),
      .host_ar_ready_i(host_arready),
      .host_r_i({host_rid, host_rdata, host_rresp, host_rlast}),
      .host_r_valid_i(host_rvalid),
      .host_r_ready_o(host_rready),
      .dma_irq_valid_o(dma_irq_valid),
      .dma_irq_vector_o(dma_irq_vector),
      .dma_irq_ready_i(dma_irq_ready),
      .irq_req_o(irq_req),
      .irq_ack_i(irq_ack),
      .ready_o,
      .alert_o,
      .medium_valid_o,
      .medium_addr_o,
      .medium_ready_i,
      .medium_data_i,
      .medium_err_i,
      .noise_valid_i,
      .noise_bit_i,
      .noise_seeded_i,
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

  assign obs_held = !u_system.design_rst_n;
  assign obs_krn_write = u_system.krn_req.w_valid && u_system.krn_rsp.w_ready;
  assign obs_krn_read = u_system.krn_req.ar_valid && u_system.krn_rsp.ar_ready;
  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_obs
    assign obs_arvalid[p] = u_system.u_design.u_core.acc_ar_valid[p] &&
        u_system.u_design.u_core.acc_ar_ready[p];
    assign obs_arid[p] = u_system.u_design.u_core.acc_ar[p].id;
    assign obs_araddr[p] = u_system.u_design.u_core.acc_ar[p].addr;
    assign obs_arlen[p] = u_system.u_design.u_core.acc_ar[p].len;
    assign obs_rvalid[p] = u_system.u_design.u_core.acc_r_valid[p] &&
        u_system.u_design.u_core.acc_r_ready[p];
    assign obs_rid[p] = u_system.u_design.u_core.acc_r[p].id;
    assign obs_rresp[p] = u_system.u_design.u_core.acc_r[p].resp;
    assign obs_rlast[p] = u_system.u_design.u_core.acc_r[p].last;
  end
endmodule
`default_nettype wire
