// Simulation shell with host memory: the core and its DMA engine with flat ports for a test bench.
//
// ctl, krn, mem, irq, h2c, host and dma_irq as in shef_dma_core; mem_*[p] is memory port p. obs_*[p]
// observe accelerator port p of the Shield (one pulse for each accepted read request and each
// delivered beat); they are outputs only and there is no way in. seen_*: handshakes of the
// accelerator's ports. chk_*: the protocol checker, beside the core (shef_check).
`include "shef_ports.svh"
`include "shef_check_ports.svh"
`default_nettype none
module shef_host_top
  import shef_pkg::*;
  import shef_cfg_pkg::*;
#(
    parameter logic [63:0] CardBytes = 64'h4_0000_0000
) (
    input  wire logic   clk,
    input  wire logic   rst_n,
    input  wire logic   wipe_req,
    output logic        wipe_ack,
    `SHEF_AXIL_S_PORTS(ctl, 16),
    `SHEF_AXIL_S_PORTS(krn, 12),
    `SHEF_AXI_M_PORTS(mem, [N_PORTS]),
    `SHEF_AXI_S_PORTS(h2c,),
    `SHEF_AXI_M_PORTS(host,),
    output logic        dma_irq_valid,
    output logic [15:0] dma_irq_vector,
    input  wire logic   dma_irq_ready,
    output logic        irq_req,
    input  wire logic   irq_ack,
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

  shef_dma_core #(
      .ShellId(1),
      .CardBytes(CardBytes)
  ) u_core (
      .clk_i(clk),
      .rst_ni(rst_n),
      .h2c_rst_ni(rst_n),
      .wipe_req_i(wipe_req),
      .wipe_ack_o(wipe_ack),
      .ctl_req_i(`SHEF_AXIL_REQ(ctl)),
      .ctl_rsp_o(`SHEF_AXIL_RSP(ctl)),
      .krn_req_i(`SHEF_AXIL_REQ(krn)),
      .krn_rsp_o(`SHEF_AXIL_RSP(krn)),
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
      .irq_ack_i(irq_ack)
  );

  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_obs
    `SHEF_OBS([p], u_core.u_core.acc_req[p], u_core.u_core.acc_rsp[p]);
    `SHEF_SEEN([p], u_core.u_core.own_req[p], u_core.u_core.own_rsp[p], u_core.u_core.acc_rst_n);
  end
  `SHEF_SEEN_REG(u_core.u_core.reg_req, u_core.u_core.reg_rsp, u_core.u_core.acc_rst_n,
      u_core.u_core.acc_clear, u_core.u_core.acc_cleared, u_core.u_core.acc_irq);

  `SHEF_CHECK_CORE(u_core.u_core);
endmodule
`default_nettype wire
