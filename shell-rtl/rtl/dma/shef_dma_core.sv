// The core with a `host` port: shef_core and the DMA engine, sharing the memory ports.
//
// Ports as in shef_core; host and dma_irq as in shef_dma, whose registers are page 0xB0 of ctl. A
// shell with access to host memory uses this module, another one shef_core. The engine is between
// the Shield and memory and sees only ciphertext and tags. At a memory port Shield and engine take
// turns, burst by burst, and id[7:6] distinguishes them; the ids of the Shield are rotated so that
// these bits are free. A wipe is acknowledged when the Shield is zeroised and the engine has
// nothing in flight.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_dma_core
  import shef_pkg::*;
#(
    parameter int unsigned ShellId = 1,
    parameter logic [63:0] CardBytes = 64'h4_0000_0000,
    parameter int unsigned TimeoutCycles = 1 << 20
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic wipe_req_i,
    output logic wipe_ack_o,
    input  wire axil_req_t ctl_req_i,
    output axil_rsp_t      ctl_rsp_o,
    input  wire axil_req_t krn_req_i,
    output axil_rsp_t      krn_rsp_o,
    output axi_ax_t [shef_cfg_pkg::N_PORTS-1:0] mem_aw_o,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_aw_valid_o,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_aw_ready_i,
    output axi_w_t [shef_cfg_pkg::N_PORTS-1:0] mem_w_o,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_w_valid_o,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_w_ready_i,
    input  wire axi_b_t [shef_cfg_pkg::N_PORTS-1:0] mem_b_i,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_b_valid_i,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_b_ready_o,
    output axi_ax_t [shef_cfg_pkg::N_PORTS-1:0] mem_ar_o,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_ar_valid_o,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_ar_ready_i,
    input  wire axi_r_t [shef_cfg_pkg::N_PORTS-1:0] mem_r_i,
    input  wire logic [shef_cfg_pkg::N_PORTS-1:0] mem_r_valid_i,
    output logic [shef_cfg_pkg::N_PORTS-1:0] mem_r_ready_o,
    output logic irq_req_o,
    input  wire logic irq_ack_i,
    output axi_ax_t      host_aw_o,
    output logic         host_aw_valid_o,
    input  wire logic    host_aw_ready_i,
    output axi_w_t       host_w_o,
    output logic         host_w_valid_o,
    input  wire logic    host_w_ready_i,
    input  wire axi_b_t  host_b_i,
    input  wire logic    host_b_valid_i,
    output logic         host_b_ready_o,
    output axi_ax_t      host_ar_o,
    output logic         host_ar_valid_o,
    input  wire logic    host_ar_ready_i,
    input  wire axi_r_t  host_r_i,
    input  wire logic    host_r_valid_i,
    output logic         host_r_ready_o,
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
  typedef logic [NPorts-1:0] port_t;
  axi_ax_t [NPorts-1:0] core_aw, core_ar, dma_aw, dma_ar;
  axi_w_t [NPorts-1:0] core_w, dma_w;
  axi_b_t [NPorts-1:0] core_b, dma_b;
  axi_r_t [NPorts-1:0] core_r, dma_r;
  port_t core_aw_valid, core_aw_ready, core_w_valid, core_w_ready, core_b_valid, core_b_ready;
  port_t core_ar_valid, core_ar_ready, core_r_valid, core_r_ready;
  port_t dma_aw_valid, dma_aw_ready, dma_w_valid, dma_w_ready, dma_b_valid, dma_ar_valid,
      dma_ar_ready, dma_r_valid;
  logic core_wiped, dma_wiped;
  assign wipe_ack_o = core_wiped && dma_wiped;

  shef_core #(
      .ShellId(ShellId)
  ) u_core (
      .clk_i,
      .rst_ni,
      .wipe_req_i,
      .wipe_ack_o(core_wiped),
      .ctl_req_i(ctl_req[0]),
      .ctl_rsp_o(ctl_rsp[0]),
      .krn_req_i,
      .krn_rsp_o,
      .mem_aw_o(core_aw),
      .mem_aw_valid_o(core_aw_valid),
      .mem_aw_ready_i(core_aw_ready),
      .mem_w_o(core_w),
      .mem_w_valid_o(core_w_valid),
      .mem_w_ready_i(core_w_ready),
      .mem_b_i(core_b),
      .mem_b_valid_i(core_b_valid),
      .mem_b_ready_o(core_b_ready),
      .mem_ar_o(core_ar),
      .mem_ar_valid_o(core_ar_valid),
      .mem_ar_ready_i(core_ar_ready),
      .mem_r_i(core_r),
      .mem_r_valid_i(core_r_valid),
      .mem_r_ready_o(core_r_ready),
      .irq_req_o,
      .irq_ack_i
  );

  // ---- engine ----
  axi_ax_t one_aw, one_ar;
  axi_w_t one_w;
  axi_b_t one_b;
  axi_r_t one_r;
  logic one_aw_valid, one_aw_ready, one_w_valid, one_w_ready, one_b_valid, one_ar_valid,
      one_ar_ready, one_r_valid;

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
      .host_aw_o,
      .host_aw_valid_o,
      .host_aw_ready_i,
      .host_w_o,
      .host_w_valid_o,
      .host_w_ready_i,
      .host_b_i,
      .host_b_valid_i,
      .host_b_ready_o,
      .host_ar_o,
      .host_ar_valid_o,
      .host_ar_ready_i,
      .host_r_i,
      .host_r_valid_i,
      .host_r_ready_o,
      .mem_aw_o(one_aw),
      .mem_aw_valid_o(one_aw_valid),
      .mem_aw_ready_i(one_aw_ready),
      .mem_w_o(one_w),
      .mem_w_valid_o(one_w_valid),
      .mem_w_ready_i(one_w_ready),
      .mem_b_i(one_b),
      .mem_b_valid_i(one_b_valid),
      .mem_b_ready_o(),
      .mem_ar_o(one_ar),
      .mem_ar_valid_o(one_ar_valid),
      .mem_ar_ready_i(one_ar_ready),
      .mem_r_i(one_r),
      .mem_r_valid_i(one_r_valid),
      .mem_r_ready_o(),
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
      .dma_aw_i(one_aw),
      .dma_aw_valid_i(one_aw_valid),
      .dma_aw_ready_o(one_aw_ready),
      .dma_w_i(one_w),
      .dma_w_valid_i(one_w_valid),
      .dma_w_ready_o(one_w_ready),
      .dma_b_o(one_b),
      .dma_b_valid_o(one_b_valid),
      .dma_ar_i(one_ar),
      .dma_ar_valid_i(one_ar_valid),
      .dma_ar_ready_o(one_ar_ready),
      .dma_r_o(one_r),
      .dma_r_valid_o(one_r_valid),
      .mem_aw_o(dma_aw),
      .mem_aw_valid_o(dma_aw_valid),
      .mem_aw_ready_i(dma_aw_ready),
      .mem_w_o(dma_w),
      .mem_w_valid_o(dma_w_valid),
      .mem_w_ready_i(dma_w_ready),
      .mem_b_i(dma_b),
      .mem_b_valid_i(dma_b_valid),
      .mem_ar_o(dma_ar),
      .mem_ar_valid_o(dma_ar_valid),
      .mem_ar_ready_i(dma_ar_ready),
      .mem_r_i(dma_r),
      .mem_r_valid_i(dma_r_valid)
  );

  // ---- memory ports: [0] the Shield, [1] the engine ----
  // The Shield's ids have the set in [7:6] and the kind in [1:0].
  function automatic logic [7:0] turn(input logic [7:0] id);
    turn = {id[3:2], id[7:6], id[5:4], id[1:0]};
  endfunction
  function automatic logic [7:0] turn_back(input logic [7:0] id);
    turn_back = {id[5:4], id[3:2], id[7:6], id[1:0]};
  endfunction

  for (genvar p = 0; p < int'(NPorts); p++) begin : g_port
    axi_ax_t aw, ar;
    axi_b_t b;
    axi_r_t r;
    always_comb begin
      aw = core_aw[p];
      aw.id = turn(core_aw[p].id);
      ar = core_ar[p];
      ar.id = turn(core_ar[p].id);
      core_b[p] = b;
      core_b[p].id = turn_back(b.id);
      core_r[p] = r;
      core_r[p].id = turn_back(r.id);
    end
    shef_port_mux #(
        .NSets(2),
        .SetNo({2'd1, 2'd0})
    ) u_mux (
        .clk_i,
        .rst_ni,
        .set_aw_i({dma_aw[p], aw}),
        .set_aw_valid_i({dma_aw_valid[p], core_aw_valid[p]}),
        .set_aw_ready_o({dma_aw_ready[p], core_aw_ready[p]}),
        .set_w_i({dma_w[p], core_w[p]}),
        .set_w_valid_i({dma_w_valid[p], core_w_valid[p]}),
        .set_w_ready_o({dma_w_ready[p], core_w_ready[p]}),
        .set_b_o({dma_b[p], b}),
        .set_b_valid_o({dma_b_valid[p], core_b_valid[p]}),
        .set_b_ready_i({1'b1, core_b_ready[p]}),
        .set_ar_i({dma_ar[p], ar}),
        .set_ar_valid_i({dma_ar_valid[p], core_ar_valid[p]}),
        .set_ar_ready_o({dma_ar_ready[p], core_ar_ready[p]}),
        .set_r_o({dma_r[p], r}),
        .set_r_valid_o({dma_r_valid[p], core_r_valid[p]}),
        .set_r_ready_i({1'b1, core_r_ready[p]}),
        .mem_aw_o(mem_aw_o[p]),
        .mem_aw_valid_o(mem_aw_valid_o[p]),
        .mem_aw_ready_i(mem_aw_ready_i[p]),
        .mem_w_o(mem_w_o[p]),
        .mem_w_valid_o(mem_w_valid_o[p]),
        .mem_w_ready_i(mem_w_ready_i[p]),
        .mem_b_i(mem_b_i[p]),
        .mem_b_valid_i(mem_b_valid_i[p]),
        .mem_b_ready_o(mem_b_ready_o[p]),
        .mem_ar_o(mem_ar_o[p]),
        .mem_ar_valid_o(mem_ar_valid_o[p]),
        .mem_ar_ready_i(mem_ar_ready_i[p]),
        .mem_r_i(mem_r_i[p]),
        .mem_r_valid_i(mem_r_valid_i[p]),
        .mem_r_ready_o(mem_r_ready_o[p])
    );
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
