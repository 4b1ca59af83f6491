// The core with a `host` port: shef_core, the DMA engine and the host's window to card memory,
// sharing the memory ports.
//
// Ports as in shef_core; host and dma_irq as in shef_dma, whose registers are page 0xB0 of ctl; h2c
// as in shef_h2c, tied to zeros by a shell without a window. A shell with access to host memory
// uses this module, another one shef_core. Engine and window are between the Shield and memory and
// see only ciphertext and tags. At a memory port Shield and engine take turns, burst by burst, and
// the window, whose host waits only for a few microseconds, goes before both; id[7:6] distinguishes
// them, and the ids of the Shield are rotated so that these bits are free. A wipe is acknowledged
// when the Shield is zeroised and engine and window have nothing in flight at memory.
// rst_ni resets everything but the answers to h2c, which h2c_rst_ni resets: while only rst_ni is
// low, each access of h2c is answered with SLVERR.
`default_nettype none
module shef_dma_core
  import shef_pkg::*;
#(
    parameter int unsigned ShellId = 1,
    parameter int unsigned ClockKhz = 250_000,
    parameter logic [63:0] CardBytes = 64'h4_0000_0000,
    parameter int unsigned TimeoutCycles = 1 << 20
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic h2c_rst_ni,
    input  wire logic wipe_req_i,
    output logic wipe_ack_o,
    input  wire axil_req_t ctl_req_i,
    output axil_rsp_t      ctl_rsp_o,
    input  wire axil_req_t krn_req_i,
    output axil_rsp_t      krn_rsp_o,
    output axi_req_t [shef_cfg_pkg::N_PORTS-1:0] mem_req_o,
    input  wire axi_rsp_t [shef_cfg_pkg::N_PORTS-1:0] mem_rsp_i,
    output logic irq_req_o,
    input  wire logic irq_ack_i,
    input  wire axi_req_t h2c_req_i,
    output axi_rsp_t     h2c_rsp_o,
    output axi_req_t     host_req_o,
    input  wire axi_rsp_t host_rsp_i,
    output logic         dma_irq_valid_o,
    output logic [15:0]  dma_irq_vector_o,
    input  wire logic    dma_irq_ready_i
);
  localparam int unsigned NPorts = shef_cfg_pkg::N_PORTS;

  // ---- control window: [0] the core, [1] the engine ----
  axil_req_t [1:0] ctl_req;
  axil_rsp_t [1:0] ctl_rsp;

  shef_axil_split #(
      .Page(shef_dma_pkg::REGS_PAGE)
  ) u_ctl (
      .clk_i,
      .rst_ni,
      .req_i(ctl_req_i),
      .rsp_o(ctl_rsp_o),
      .req_o(ctl_req),
      .rsp_i(ctl_rsp)
  );

  // ---- core ----
  axi_req_t [NPorts-1:0] core_req, dma_req, h2c_req;
  axi_rsp_t [NPorts-1:0] core_rsp, dma_rsp, h2c_rsp;
  logic core_wiped, dma_wiped, h2c_wiped;
  assign wipe_ack_o = core_wiped && dma_wiped && h2c_wiped;

  shef_core #(
      .ShellId(ShellId),
      .ClockKhz(ClockKhz)
  ) u_core (
      .clk_i,
      .rst_ni,
      .wipe_req_i,
      .wipe_ack_o(core_wiped),
      .ctl_req_i(ctl_req[0]),
      .ctl_rsp_o(ctl_rsp[0]),
      .krn_req_i,
      .krn_rsp_o,
      .mem_req_o(core_req),
      .mem_rsp_i(core_rsp),
      .irq_req_o,
      .irq_ack_i
  );

  // ---- engine ----
  axi_req_t one_req;
  axi_rsp_t one_rsp;

  shef_dma #(
      .CardBytes(CardBytes),
      .TimeoutCycles(TimeoutCycles)
  ) u_dma (
      .clk_i,
      .rst_ni,
      .wipe_i(wipe_req_i),
      .wiped_o(dma_wiped),
      .ctl_req_i(ctl_req[1]),
      .ctl_rsp_o(ctl_rsp[1]),
      .host_req_o,
      .host_rsp_i,
      .mem_req_o(one_req),
      .mem_rsp_i(one_rsp),
      .irq_valid_o(dma_irq_valid_o),
      .irq_vector_o(dma_irq_vector_o),
      .irq_ready_i(dma_irq_ready_i)
  );

  shef_dma_banks #(
      .NPorts(NPorts),
      .NRegions(shef_cfg_pkg::N_REGIONS),
      .Regions(shef_cfg_pkg::REGIONS),
      .NSets(shef_cfg_pkg::N_SETS),
      .Sets(shef_cfg_pkg::SETS)
  ) u_banks (
      .clk_i,
      .rst_ni,
      .dma_req_i(one_req),
      .dma_rsp_o(one_rsp),
      .mem_req_o(dma_req),
      .mem_rsp_i(dma_rsp)
  );

  // ---- window ----
  shef_h2c #(
      .CardBytes(CardBytes),
      .TimeoutCycles(TimeoutCycles),
      .NPorts(NPorts),
      .NRegions(shef_cfg_pkg::N_REGIONS),
      .Regions(shef_cfg_pkg::REGIONS),
      .NSets(shef_cfg_pkg::N_SETS),
      .Sets(shef_cfg_pkg::SETS)
  ) u_h2c (
      .clk_i,
      .rst_ni(h2c_rst_ni),
      .hold_i(!rst_ni),
      .wipe_i(wipe_req_i),
      .wiped_o(h2c_wiped),
      .h2c_req_i,
      .h2c_rsp_o,
      .mem_req_o(h2c_req),
      .mem_rsp_i(h2c_rsp)
  );

  // ---- memory ports: [0] the Shield, [1] the engine, [2] the window ----
  // The Shield's ids have the set in [7:6] and the kind in [1:0].
  function automatic logic [7:0] turn(input logic [7:0] id);
    turn = {id[3:2], id[7:6], id[5:4], id[1:0]};
  endfunction
  function automatic logic [7:0] turn_back(input logic [7:0] id);
    turn_back = {id[5:4], id[3:2], id[7:6], id[1:0]};
  endfunction

  for (genvar p = 0; p < int'(NPorts); p++) begin : g_port
    axi_req_t req;
    axi_rsp_t rsp;
    always_comb begin
      req = core_req[p];
      req.aw.id = turn(core_req[p].aw.id);
      req.ar.id = turn(core_req[p].ar.id);
    end
    always_comb begin
      core_rsp[p] = rsp;
      core_rsp[p].b.id = turn_back(rsp.b.id);
      core_rsp[p].r.id = turn_back(rsp.r.id);
    end
    shef_port_mux #(
        .NSets(3),
        .SetNo({2'd2, 2'd1, 2'd0}),
        .First(2)
    ) u_mux (
        .clk_i,
        .rst_ni,
        .set_req_i({h2c_req[p], dma_req[p], req}),
        .set_rsp_o({h2c_rsp[p], dma_rsp[p], rsp}),
        .mem_req_o(mem_req_o[p]),
        .mem_rsp_i(mem_rsp_i[p])
    );
  end
endmodule
`default_nettype wire
