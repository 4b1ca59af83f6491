// Simulation shell of the whole system: shef_system with flat ports for a test bench.
//
// ctl, mem, h2c, host, dma_irq, irq and obs as in shef_host_top; the ports of the kernel as in
// shef_kernel_top. kernel_tick_i: the cycle ends with an edge of the kernel's clock. obs_held: the
// design is in reset; obs_krn_*: it accepts an access of the kernel. seen_*, chk_*: as in shef_sim_top.
`include "shef_ports.svh"
`include "shef_check_ports.svh"
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
    `SHEF_AXIL_S_PORTS(ctl, 16),
    `SHEF_AXI_M_PORTS(mem, [N_PORTS]),
    `SHEF_AXI_S_PORTS(h2c,),
    `SHEF_AXI_M_PORTS(host,),
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
    input  wire logic   debug_i,
    // observed
    output logic              obs_held,
    output logic              obs_krn_write,
    output logic              obs_krn_read,
    `SHEF_OBS_PORTS([N_ACC]),
    `SHEF_SEEN_PORTS([N_ACC]),
    `SHEF_CHECK_PORTS
);
  axi_req_t [N_PORTS-1:0] mem_req;
  axi_rsp_t [N_PORTS-1:0] mem_rsp;
  for (genvar p = 0; p < int'(N_PORTS); p++) begin : g_mem
    assign `SHEF_AXI_REQ(mem, [p]) = mem_req[p];
    assign mem_rsp[p] = `SHEF_AXI_RSP(mem, [p]);
  end

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
      .ctl_req_i(`SHEF_AXIL_REQ(ctl)),
      .ctl_rsp_o(`SHEF_AXIL_RSP(ctl)),
      .mem_req_o(mem_req),
      .mem_rsp_i(mem_rsp),
      .h2c_req_i(`SHEF_AXI_REQ(h2c,)),
      .h2c_rsp_o(`SHEF_AXI_RSP(h2c,)),
      .host_req_o(`SHEF_AXI_REQ(host,)),
      .host_rsp_i(`SHEF_AXI_RSP(host,)),
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

  assign obs_held = !u_system.design_rst_n;
  assign obs_krn_write = u_system.krn_req.w_valid && u_system.krn_rsp.w_ready;
  assign obs_krn_read = u_system.krn_req.ar_valid && u_system.krn_rsp.ar_ready;
  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_obs
    `SHEF_OBS([p], u_system.u_design.u_core.acc_req[p], u_system.u_design.u_core.acc_rsp[p]);
    `SHEF_SEEN([p], u_system.u_design.u_core.own_req[p], u_system.u_design.u_core.own_rsp[p],
        u_system.u_design.u_core.acc_rst_n);
  end
  `SHEF_SEEN_REG(u_system.u_design.u_core.reg_req, u_system.u_design.u_core.reg_rsp,
      u_system.u_design.u_core.acc_rst_n, u_system.u_design.u_core.acc_clear,
      u_system.u_design.u_core.acc_cleared, u_system.u_design.u_core.acc_irq);

  `SHEF_CHECK_CORE(u_system.u_design.u_core);
endmodule
`default_nettype wire
