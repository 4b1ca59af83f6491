// Simulation top of the DMA engine alone, with flat ports for a test bench: registers, host memory,
// card memory, interrupts.
`include "shef_ports.svh"
`default_nettype none
module shef_dma_top
  import shef_pkg::*;
#(
    parameter logic [63:0] CardBytes = 64'h10_0000,
    parameter int unsigned TimeoutCycles = 4096
) (
    input  wire logic   clk,
    input  wire logic   rst_n,
    input  wire logic   wipe_req,
    output logic        wipe_ack,
    `SHEF_AXIL_S_PORTS(ctl, 16),
    `SHEF_AXI_M_PORTS(host,),
    `SHEF_AXI_M_PORTS(mem,),
    output logic        dma_irq_valid,
    output logic [15:0] dma_irq_vector,
    input  wire logic   dma_irq_ready
);
  shef_dma #(
      .CardBytes(CardBytes),
      .TimeoutCycles(TimeoutCycles)
  ) u_dma (
      .clk_i(clk),
      .rst_ni(rst_n),
      .wipe_i(wipe_req),
      .wiped_o(wipe_ack),
      .ctl_req_i(`SHEF_AXIL_REQ(ctl)),
      .ctl_rsp_o(`SHEF_AXIL_RSP(ctl)),
      .host_req_o(`SHEF_AXI_REQ(host,)),
      .host_rsp_i(`SHEF_AXI_RSP(host,)),
      .mem_req_o(`SHEF_AXI_REQ(mem,)),
      .mem_rsp_i(`SHEF_AXI_RSP(mem,)),
      .irq_valid_o(dma_irq_valid),
      .irq_vector_o(dma_irq_vector),
      .irq_ready_i(dma_irq_ready)
  );
endmodule
`default_nettype wire
