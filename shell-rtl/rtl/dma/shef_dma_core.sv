// The core with its `host` port: shef_core, and the DMA engine beside it at the memory ports.
//
// Ports as in shef_core; host and dma_irq as in shef_dma, whose registers are page 0xB0 of ctl. A
// shell that reaches host memory takes this module, another one shef_core. The engine stands
// between the Shield and memory: what it reaches is ciphertext and tags. At a memory port Shield
// and engine take turns, burst by burst, and are told apart by id[7:6]; the ids of the Shield are
// turned so that these bits are free. A wipe is acknowledged when the Shield is zeroised and
// nothing of the engine is under way.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are left open by name)
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
    input  wire logic [15:0]  ctl_awaddr_i,
    input  wire logic         ctl_awvalid_i,
    output logic              ctl_awready_o,
    input  wire logic [31:0]  ctl_wdata_i,
    input  wire logic [3:0]   ctl_wstrb_i,
    input  wire logic         ctl_wvalid_i,
    output logic              ctl_wready_o,
    output logic      [1:0]   ctl_bresp_o,
    output logic              ctl_bvalid_o,
    input  wire logic         ctl_bready_i,
    input  wire logic [15:0]  ctl_araddr_i,
    input  wire logic         ctl_arvalid_i,
    output logic              ctl_arready_o,
    output logic      [31:0]  ctl_rdata_o,
    output logic      [1:0]   ctl_rresp_o,
    output logic              ctl_rvalid_o,
    input  wire logic         ctl_rready_i,
    input  wire logic [11:0]  krn_awaddr_i,
    input  wire logic         krn_awvalid_i,
    output logic              krn_awready_o,
    input  wire logic [31:0]  krn_wdata_i,
    input  wire logic [3:0]   krn_wstrb_i,
    input  wire logic         krn_wvalid_i,
    output logic              krn_wready_o,
    output logic      [1:0]   krn_bresp_o,
    output logic              krn_bvalid_o,
    input  wire logic         krn_bready_i,
    input  wire logic [11:0]  krn_araddr_i,
    input  wire logic         krn_arvalid_i,
    output logic              krn_arready_o,
    output logic      [31:0]  krn_rdata_o,
    output logic      [1:0]   krn_rresp_o,
    output logic              krn_rvalid_o,
    input  wire logic         krn_rready_i,
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
  logic [1:0] aw_valid, aw_ready, w_valid, w_ready, b_valid, b_ready, ar_valid, ar_ready, r_valid, r_ready;
  logic [1:0][1:0] b_resp, r_resp;
  logic [1:0][31:0] r_data;

  shef_axil_split #(
      .Page(shef_dma_pkg::REGS_PAGE)
  ) u_ctl (
      .clk_i,
      .rst_ni,
      .awpage_i(ctl_awaddr_i[15:8]),
      .awvalid_i(ctl_awvalid_i),
      .awready_o(ctl_awready_o),
      .wvalid_i(ctl_wvalid_i),
      .wready_o(ctl_wready_o),
      .bresp_o(ctl_bresp_o),
      .bvalid_o(ctl_bvalid_o),
      .bready_i(ctl_bready_i),
      .arpage_i(ctl_araddr_i[15:8]),
      .arvalid_i(ctl_arvalid_i),
      .arready_o(ctl_arready_o),
      .rdata_o(ctl_rdata_o),
      .rresp_o(ctl_rresp_o),
      .rvalid_o(ctl_rvalid_o),
      .rready_i(ctl_rready_i),
      .awvalid_o(aw_valid),
      .awready_i(aw_ready),
      .wvalid_o(w_valid),
      .wready_i(w_ready),
      .bresp_i(b_resp),
      .bvalid_i(b_valid),
      .bready_o(b_ready),
      .arvalid_o(ar_valid),
      .arready_i(ar_ready),
      .rdata_i(r_data),
      .rresp_i(r_resp),
      .rvalid_i(r_valid),
      .rready_o(r_ready)
  );

  // ---- core ----
  typedef logic [NPorts-1:0] port_t;
  axi_ax_t [NPorts-1:0] core_aw, core_ar, dma_aw, dma_ar;
  axi_w_t [NPorts-1:0] core_w, dma_w;
  axi_b_t [NPorts-1:0] core_b, dma_b;
  axi_r_t [NPorts-1:0] core_r, dma_r;
  port_t core_aw_valid, core_aw_ready, core_w_valid, core_w_ready, core_b_valid, core_b_ready;
  port_t core_ar_valid, core_ar_ready, core_r_valid, core_r_ready;
  port_t dma_aw_valid, dma_aw_ready, dma_w_valid, dma_w_ready, dma_b_valid, dma_ar_valid, dma_ar_ready, dma_r_valid;
  logic core_wiped, dma_wiped;
  assign wipe_ack_o = core_wiped && dma_wiped;

  shef_core #(
      .ShellId(ShellId)
  ) u_core (
      .clk_i,
      .rst_ni,
      .wipe_req_i,
      .wipe_ack_o(core_wiped),
      .ctl_awaddr_i,
      .ctl_awvalid_i(aw_valid[0]),
      .ctl_awready_o(aw_ready[0]),
      .ctl_wdata_i,
      .ctl_wstrb_i,
      .ctl_wvalid_i(w_valid[0]),
      .ctl_wready_o(w_ready[0]),
      .ctl_bresp_o(b_resp[0]),
      .ctl_bvalid_o(b_valid[0]),
      .ctl_bready_i(b_ready[0]),
      .ctl_araddr_i,
      .ctl_arvalid_i(ar_valid[0]),
      .ctl_arready_o(ar_ready[0]),
      .ctl_rdata_o(r_data[0]),
      .ctl_rresp_o(r_resp[0]),
      .ctl_rvalid_o(r_valid[0]),
      .ctl_rready_i(r_ready[0]),
      .krn_awaddr_i,
      .krn_awvalid_i,
      .krn_awready_o,
      .krn_wdata_i,
      .krn_wstrb_i,
      .krn_wvalid_i,
      .krn_wready_o,
      .krn_bresp_o,
      .krn_bvalid_o,
      .krn_bready_i,
      .krn_araddr_i,
      .krn_arvalid_i,
      .krn_arready_o,
      .krn_rdata_o,
      .krn_rresp_o,
      .krn_rvalid_o,
      .krn_rready_i,
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
  logic one_aw_valid, one_aw_ready, one_w_valid, one_w_ready, one_b_valid, one_ar_valid, one_ar_ready, one_r_valid;

  shef_dma #(
      .CardBytes(CardBytes),
      .TimeoutCycles(TimeoutCycles)
  ) u_dma (
      .clk_i,
      .rst_ni,
      .wipe_i(wipe_req_i),
      .wiped_o(dma_wiped),
      .ctl_awaddr_i,
      .ctl_awvalid_i(aw_valid[1]),
      .ctl_awready_o(aw_ready[1]),
      .ctl_wdata_i,
      .ctl_wstrb_i,
      .ctl_wvalid_i(w_valid[1]),
      .ctl_wready_o(w_ready[1]),
      .ctl_bresp_o(b_resp[1]),
      .ctl_bvalid_o(b_valid[1]),
      .ctl_bready_i(b_ready[1]),
      .ctl_araddr_i,
      .ctl_arvalid_i(ar_valid[1]),
      .ctl_arready_o(ar_ready[1]),
      .ctl_rdata_o(r_data[1]),
      .ctl_rresp_o(r_resp[1]),
      .ctl_rvalid_o(r_valid[1]),
      .ctl_rready_i(r_ready[1]),
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
  // The Shield's ids have the set in [7:6] and what it is in [1:0].
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
