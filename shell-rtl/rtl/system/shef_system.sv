// The system: Security Kernel, Shield with accelerator, and DMA engine, with the boundary that a
// shell connects to (shell-rtl/README.md, "Shell boundary").
//
// ctl: AXI4-Lite slave of 64 KiB for the host: the kernel's mailbox from 0xC000 on, below it the
// control window of shef_dma_core, which responds with errors unless a design is active. mem, host,
// dma_irq and irq: as in shef_dma_core. medium, noise, cfg, design_i and the identity: as in
// shef_kernel, except that cfg is silent while the design is being wiped (shef_system_life).
// Only the kernel reaches the Shield's kernel port. The host reaches ctl, the DMA engine reaches
// host and mem, and h2c, the host's window to card memory (shef_h2c, tied to zeros by a shell
// without one), reaches mem.
// The Security Kernel has a separate clock, kernel_clk_i, which may be slower: its rising edges are
// edges of clk_i, and kernel_tick_i is high in each cycle of clk_i that ends with one. ready,
// alert, wipe_req, wipe_ack, medium, noise, cfg, design and identity belong to kernel_clk_i, the
// rest to clk_i. rst_ni is low over at least one edge of kernel_clk_i.
// While no design is active the design is in reset, sends no request to mem and host, accepts every
// late response and raises no interrupt; dma_irq_valid_o stays until dma_irq_ready_i even then.
// Each access to h2c is answered, with SLVERR while no design is active or a wipe is in progress.
// wipe_req_i (level) wipes kernel and design; wipe_ack_o rises when both are clear and falls after
// wipe_req_i. A shell that resets with rst_ni first waits for the acknowledgement, or else also
// resets its logic at mem and host.
`default_nettype none
module shef_system
  import shef_pkg::*;
#(
    parameter int unsigned ShellId = 1,
    parameter int unsigned ClockKhz = 250_000,
    parameter logic [63:0] CardBytes = 64'h4_0000_0000,
    parameter int unsigned TimeoutCycles = 1 << 20,
    parameter int unsigned WipeCycles = 1 << 22
) (
    input  wire logic   clk_i,
    input  wire logic   kernel_clk_i,
    input  wire logic   kernel_tick_i,
    input  wire logic   rst_ni,
    input  wire logic   wipe_req_i,
    output logic        wipe_ack_o,
    output logic        ready_o,
    output logic [3:0]  alert_o,
    input  wire axil_req_t ctl_req_i,
    output axil_rsp_t   ctl_rsp_o,
    // card memory
    output axi_req_t [shef_cfg_pkg::N_PORTS-1:0] mem_req_o,
    input  wire axi_rsp_t [shef_cfg_pkg::N_PORTS-1:0] mem_rsp_i,
    // the host's window to card memory
    input  wire axi_req_t h2c_req_i,
    output axi_rsp_t    h2c_rsp_o,
    // host memory
    output axi_req_t    host_req_o,
    input  wire axi_rsp_t host_rsp_i,
    // interrupts
    output logic        dma_irq_valid_o,
    output logic [15:0] dma_irq_vector_o,
    input  wire logic   dma_irq_ready_i,
    output logic        irq_req_o,
    input  wire logic   irq_ack_i,
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
    input  wire logic   debug_i
);
  localparam int unsigned NPorts = shef_cfg_pkg::N_PORTS;

  // ---- Security Kernel ----
  axil_req_t mailbox_req, kernel_req, kernel_ask;
  axil_rsp_t mailbox_rsp, kernel_rsp, mailbox_say;
  logic kernel_wiped, kernel_begin, kernel_clear, kernel_valid, kernel_ready, kernel_busy,
      kernel_active, debug_q;

  shef_kernel u_kernel (
      .clk_i(kernel_clk_i),
      .rst_ni,
      .wipe_req_i,
      .wipe_ack_o(kernel_wiped),
      .ready_o,
      .alert_o,
      .host_req_i(mailbox_req),
      .host_rsp_o(mailbox_say),
      .krn_req_o(kernel_ask),
      .krn_rsp_i(kernel_rsp),
      .medium_valid_o,
      .medium_addr_o,
      .medium_ready_i,
      .medium_data_i,
      .medium_err_i,
      .noise_valid_i,
      .noise_bit_i,
      .noise_seeded_i,
      .noise_unmeasured_i,
      .cfg_begin_o(kernel_begin),
      .cfg_clear_o(kernel_clear),
      .cfg_valid_o(kernel_valid),
      .cfg_ready_i(kernel_ready),
      .cfg_data_o,
      .cfg_last_o,
      .cfg_busy_i(kernel_busy),
      .cfg_active_i(kernel_active),
      .cfg_error_i,
      .design_i,
      .uds_i,
      .root_i,
      .target_i,
      .shell_i,
      .shell_flags_i,
      .debug_i(debug_i || debug_q)
  );

  // Debug that was on for only one cycle of the design is still visible at the kernel's next edge.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) debug_q <= 1'b0;
    else debug_q <= debug_i || (debug_q && !kernel_tick_i);
  end

  // The kernel's offers and accepts count once, at its own edge. Offers to the kernel, and accepts
  // of its offers, last until then.
  always_comb begin
    mailbox_rsp = mailbox_say;
    mailbox_rsp.aw_ready = mailbox_say.aw_ready && kernel_tick_i;
    mailbox_rsp.w_ready = mailbox_say.w_ready && kernel_tick_i;
    mailbox_rsp.b_valid = mailbox_say.b_valid && kernel_tick_i;
    mailbox_rsp.ar_ready = mailbox_say.ar_ready && kernel_tick_i;
    mailbox_rsp.r_valid = mailbox_say.r_valid && kernel_tick_i;
    kernel_req = kernel_ask;
    kernel_req.aw_valid = kernel_ask.aw_valid && kernel_tick_i;
    kernel_req.w_valid = kernel_ask.w_valid && kernel_tick_i;
    kernel_req.b_ready = kernel_ask.b_ready && kernel_tick_i;
    kernel_req.ar_valid = kernel_ask.ar_valid && kernel_tick_i;
    kernel_req.r_ready = kernel_ask.r_ready && kernel_tick_i;
  end

  // ---- life of the design ----
  logic design_wipe, design_wiped, held, open;
  wire design_rst_n = rst_ni && !held;

  shef_system_life #(
      .WipeCycles(WipeCycles)
  ) u_life (
      .clk_i(kernel_clk_i),
      .rst_ni,
      .wipe_req_i,
      .kernel_wiped_i(kernel_wiped),
      .wipe_ack_o,
      .kernel_begin_i(kernel_begin),
      .kernel_clear_i(kernel_clear),
      .kernel_valid_i(kernel_valid),
      .kernel_ready_o(kernel_ready),
      .kernel_last_i(cfg_last_o),
      .kernel_busy_o(kernel_busy),
      .kernel_active_o(kernel_active),
      .cfg_begin_o,
      .cfg_clear_o,
      .cfg_valid_o,
      .cfg_ready_i,
      .cfg_busy_i,
      .cfg_active_i,
      .design_wipe_o(design_wipe),
      .design_wiped_i(design_wiped),
      .held_o(held),
      .open_o(open)
  );

  // ---- registers: host to mailbox and design, kernel to the Shield's kernel port ----
  axil_req_t ctl_req, krn_req, unused_req;
  axil_rsp_t ctl_rsp, krn_rsp;
  logic unused;
  assign unused = ^unused_req;

  shef_system_gate u_ctl (
      .clk_i,
      .rst_ni,
      .open_i(open),
      .drop_i(1'b0),
      .req_i(ctl_req_i),
      .rsp_o(ctl_rsp_o),
      .design_req_o(ctl_req),
      .design_rsp_i(ctl_rsp),
      .mailbox_req_o(mailbox_req),
      .mailbox_rsp_i(mailbox_rsp)
  );

  shef_system_gate #(
      .Mailbox(1'b0)
  ) u_krn (
      .clk_i,
      .rst_ni,
      .open_i(open),
      .drop_i(kernel_begin || kernel_clear),
      .req_i(kernel_req),
      .rsp_o(kernel_rsp),
      .design_req_o(krn_req),
      .design_rsp_i(krn_rsp),
      .mailbox_req_o(unused_req),
      .mailbox_rsp_i('0)
  );

  // ---- design ----
  axi_req_t [NPorts-1:0] mem_req;
  axi_req_t host_req;
  logic irq_valid, irq, irq_q;
  logic [15:0] irq_vector, irq_vector_q;

  shef_dma_core #(
      .ShellId(ShellId),
      .ClockKhz(ClockKhz),
      .CardBytes(CardBytes),
      .TimeoutCycles(TimeoutCycles)
  ) u_design (
      .clk_i,
      .rst_ni(design_rst_n),
      .h2c_rst_ni(rst_ni),
      .wipe_req_i(design_wipe),
      .wipe_ack_o(design_wiped),
      .ctl_req_i(ctl_req),
      .ctl_rsp_o(ctl_rsp),
      .krn_req_i(krn_req),
      .krn_rsp_o(krn_rsp),
      .mem_req_o(mem_req),
      .mem_rsp_i,
      .irq_req_o(irq),
      .irq_ack_i,
      .h2c_req_i,
      .h2c_rsp_o,
      .host_req_o(host_req),
      .host_rsp_i,
      .dma_irq_valid_o(irq_valid),
      .dma_irq_vector_o(irq_vector),
      .dma_irq_ready_i(!irq_q)
  );

  // ---- outputs of the design ----
  // Held, it sends no request and accepts every response.
  function automatic axi_req_t gated(input axi_req_t req, input logic hold);
    gated = req;
    gated.aw_valid = req.aw_valid && !hold;
    gated.w_valid = req.w_valid && !hold;
    gated.b_ready = req.b_ready || hold;
    gated.ar_valid = req.ar_valid && !hold;
    gated.r_ready = req.r_ready || hold;
  endfunction

  for (genvar p = 0; p < int'(NPorts); p++) begin : g_mem
    assign mem_req_o[p] = gated(mem_req[p], held);
  end
  assign host_req_o = gated(host_req, held);
  assign irq_req_o = irq && !held;
  assign dma_irq_valid_o = irq_q;
  assign dma_irq_vector_o = irq_vector_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      irq_q <= 1'b0;
      irq_vector_q <= '0;
    end else if (irq_q) begin
      if (dma_irq_ready_i) irq_q <= 1'b0;
    end else if (irq_valid && !held) begin
      irq_q <= 1'b1;
      irq_vector_q <= irq_vector;
    end
  end

endmodule
`default_nettype wire
