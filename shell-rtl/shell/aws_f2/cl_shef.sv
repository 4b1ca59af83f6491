// Custom logic of AWS F2: shef_system in the Small Shell.
//
// The port list is the header cl_ports.vh of the HDK. The identity comes from shef_image, which
// `shef cloud new` writes. Everything at the shell is synchronous to clk_main_a0; the core has its
// own clock (shef_f2_clocks), and so has the Security Kernel.
//   OCL  -> shef_f2_ocl: control window, adapter page, boot medium
//   PCIS -> shef_f2_pcis: card memory (h2c of shef_system)
//   PCIM <- shef_f2_pcim: host memory
//   sh_ddr on the core's clock <- shef_f2_ddr, or with Hbm: cl_hbm <- shef_f2_hbm_memory
// SDA answers and does nothing. Unused outputs are driven here.
module cl_shef
  import shef_pkg::*;
  import shef_f2_pkg::*;
#(
    parameter int unsigned CoreDiv8 = 120,  // core clock: 1,000 MHz / (CoreDiv8 / 8)
    parameter bit Hbm = 1'b0                // card memory: the HBM instead of the DDR
) (
    `include "cl_ports.vh"
);
  localparam int unsigned NPorts = shef_cfg_pkg::N_PORTS;
  localparam int unsigned CoreKhz = VCO_KHZ * 8 / CoreDiv8;
  localparam logic [63:0] CardBytes = Hbm ? 64'h4_0000_0000 : 64'h10_0000_0000;

  assign cl_sh_id0 = 32'hF010_1D0F;
  assign cl_sh_id1 = 32'h1D51_FEDC;

  // ---- clocks and resets ----
  logic main_rst_q, main_rst_n;
  always_ff @(posedge clk_main_a0) begin
    main_rst_q <= rst_main_n;
    main_rst_n <= main_rst_q;
  end

  logic core_clk, kernel_clk, kernel_tick, locked;
  shef_f2_clocks #(
      .CoreDiv8(CoreDiv8)
  ) u_clocks (
      .clk_i(clk_main_a0),
      .rst_ni(main_rst_n),
      .core_clk_o(core_clk),
      .kernel_clk_o(kernel_clk),
      .kernel_tick_o(kernel_tick),
      .locked_o(locked)
  );

  logic run, memory_run, wipe_req, running, held, wiping, unlocked, start, reset_cmd, pcim_idle,
      pcis_idle, wiped;
  logic [31:0] wipe_cycles;
  shef_f2_life u_life (
      .clk_i(clk_main_a0),
      .rst_ni(main_rst_n),
      .locked_i(locked),
      .start_i(start),
      .reset_i(reset_cmd),
      .flr_i(sh_cl_flr_assert),
      .flr_done_o(cl_sh_flr_done),
      .power_off_i(sh_cl_pwr_state == 2'd3),
      .wiped_i(wiped),
      .quiet_i(pcim_idle && pcis_idle),
      .run_o(run),
      .memory_run_o(memory_run),
      .wipe_req_o(wipe_req),
      .running_o(running),
      .held_o(held),
      .wiping_o(wiping),
      .unlocked_o(unlocked),
      .cycles_o(wipe_cycles)
  );

  // The core leaves reset after the paths to it.
  logic core_rst_n, memory_rst_n, core_wipe_req, core_wipe_ack, core_ready, core_up, ready;
  logic [3:0] core_alert, alert;
  shef_reset_sync #(
      .Stages(8)
  ) u_core_rst (
      .clk_i(core_clk),
      .rst_ni(run),
      .rst_no(core_rst_n)
  );
  shef_reset_sync u_memory_rst (
      .clk_i(core_clk),
      .rst_ni(memory_run),
      .rst_no(memory_rst_n)
  );
  // A flip-flop: the reset as logic of its clock sees it.
  (* shef_cdc = "flags" *) logic core_rst_q;  // the status shows other bits only with it
  logic wipe_ack_q;
  (* shef_cdc = "flags" *) logic ready_q, memory_ready_q;  // each is a bit of the status by itself
  (* shef_cdc = "flags" *) logic [3:0] alert_q;
  always_ff @(posedge core_clk) core_rst_q <= core_rst_n;

  shef_sync u_wipe_req (
      .clk_i(kernel_clk),
      .d_i(wipe_req),
      .q_o(core_wipe_req)
  );
  always_ff @(posedge kernel_clk) begin
    wipe_ack_q <= core_wipe_ack && core_rst_q;
    ready_q <= core_ready && core_rst_q;
    alert_q <= core_rst_q ? core_alert : '0;
  end
  shef_sync u_wiped (
      .clk_i(clk_main_a0),
      .d_i(wipe_ack_q),
      .q_o(wiped)
  );
  shef_sync u_core_up (
      .clk_i(clk_main_a0),
      .d_i(core_rst_q),
      .q_o(core_up)
  );
  shef_sync u_ready (
      .clk_i(clk_main_a0),
      .d_i(ready_q),
      .q_o(ready)
  );
  // The first alert stays until the reset, so its bits arrive within a cycle of each other.
  for (genvar i = 0; i < 4; i++) begin : g_alert
    shef_sync u_alert (
        .clk_i(clk_main_a0),
        .d_i(alert_q[i]),
        .q_o(alert[i])
    );
  end

  // ---- OCL ----
  logic linked_q, link_up_q, link_rst_n, link_core_rst_n, access_valid, access_ready, answer_valid,
      answer_ready, core_access_valid, core_access_ready, core_answer_valid, core_answer_ready;
  access_t access, core_access;
  answer_t answer, core_answer;
  logic memory_ready, irq_dropped, pcis_read_late, pcis_write_late;
  always_ff @(posedge clk_main_a0) linked_q <= main_rst_n && locked;
  always_ff @(posedge clk_main_a0 or negedge link_rst_n) begin
    if (!link_rst_n) link_up_q <= 1'b0;
    else link_up_q <= 1'b1;
  end

  shef_f2_ocl #(
      .CoreKhz(CoreKhz)
  ) u_ocl (
      .clk_i(clk_main_a0),
      .rst_ni(main_rst_n),
      .ocl_awaddr(ocl_cl_awaddr),
      .ocl_awvalid(ocl_cl_awvalid),
      .ocl_awready(cl_ocl_awready),
      .ocl_wdata(ocl_cl_wdata),
      .ocl_wstrb(ocl_cl_wstrb),
      .ocl_wvalid(ocl_cl_wvalid),
      .ocl_wready(cl_ocl_wready),
      .ocl_bresp(cl_ocl_bresp),
      .ocl_bvalid(cl_ocl_bvalid),
      .ocl_bready(ocl_cl_bready),
      .ocl_araddr(ocl_cl_araddr),
      .ocl_arvalid(ocl_cl_arvalid),
      .ocl_arready(cl_ocl_arready),
      .ocl_rdata(cl_ocl_rdata),
      .ocl_rresp(cl_ocl_rresp),
      .ocl_rvalid(cl_ocl_rvalid),
      .ocl_rready(ocl_cl_rready),
      .linked_i(link_up_q),
      .access_valid_o(access_valid),
      .access_ready_i(access_ready),
      .access_o(access),
      .answer_valid_i(answer_valid),
      .answer_ready_o(answer_ready),
      .answer_i(answer),
      .running_i(running && core_up),
      .held_i(held && !core_up),
      .start_o(start),
      .reset_o(reset_cmd),
      .status_i('{
          alert: alert,
          wiping: wiping,
          frozen: !held,
          memory_ready: memory_ready && locked,
          ready: ready && locked,
          running: running && core_up,
          locked: locked
      }),
      .max_payload_i(cfg_max_payload),
      .max_read_i(cfg_max_read_req),
      .pcis_read_late_i(pcis_read_late),
      .pcis_write_late_i(pcis_write_late),
      .irq_dropped_i(irq_dropped),
      .unlocked_i(unlocked),
      .wipe_cycles_i(wipe_cycles)
  );

  shef_reset_sync u_link_rst (
      .clk_i(clk_main_a0),
      .rst_ni(linked_q),
      .rst_no(link_rst_n)
  );
  shef_reset_sync u_link_core_rst (
      .clk_i(core_clk),
      .rst_ni(linked_q),
      .rst_no(link_core_rst_n)
  );
  shef_async_fifo #(.W($bits(access_t)), .Depth(4)) u_access (
      .wr_clk_i(clk_main_a0), .wr_rst_ni(link_rst_n),
      .wr_valid_i(access_valid), .wr_ready_o(access_ready), .wr_data_i(access),
      .rd_clk_i(core_clk), .rd_rst_ni(link_core_rst_n),
      .rd_valid_o(core_access_valid), .rd_ready_i(core_access_ready), .rd_data_o(core_access)
  );
  shef_async_fifo #(.W($bits(answer_t)), .Depth(4)) u_answer (
      .wr_clk_i(core_clk), .wr_rst_ni(link_core_rst_n),
      .wr_valid_i(core_answer_valid), .wr_ready_o(core_answer_ready), .wr_data_i(core_answer),
      .rd_clk_i(clk_main_a0), .rd_rst_ni(link_rst_n),
      .rd_valid_o(answer_valid), .rd_ready_i(answer_ready), .rd_data_o(answer)
  );

  axil_req_t ctl_req;
  axil_rsp_t ctl_rsp;
  logic medium_en, medium_we;
  logic [MEDIUM_AW-1:0] medium_at;
  logic [31:0] medium_in, medium_out;
  logic link_core_rst_q;
  always_ff @(posedge core_clk or negedge link_core_rst_n) begin
    if (!link_core_rst_n) link_core_rst_q <= 1'b0;
    else link_core_rst_q <= 1'b1;
  end
  shef_f2_ctl u_ctl (
      .clk_i(core_clk),
      .rst_ni(link_core_rst_q),
      .core_rst_ni(core_rst_q),
      .access_valid_i(core_access_valid),
      .access_ready_o(core_access_ready),
      .access_i(core_access),
      .answer_valid_o(core_answer_valid),
      .answer_ready_i(core_answer_ready),
      .answer_o(core_answer),
      .ctl_req_o(ctl_req),
      .ctl_rsp_i(ctl_rsp),
      .medium_en_o(medium_en),
      .medium_we_o(medium_we),
      .medium_addr_o(medium_at),
      .medium_data_o(medium_in),
      .medium_data_i(medium_out)
  );

  // ---- boot medium, noise, identity, fabric ----
  logic medium_valid, medium_ready, medium_err, noise_valid, noise_bit;
  logic noise_seeded, noise_unmeasured;
  logic [17:0] medium_addr;
  logic [31:0] medium_data;
  shef_f2_medium u_medium (
      .clk_i(core_clk),
      .en_i(medium_en),
      .we_i(medium_we),
      .addr_i(medium_at),
      .data_i(medium_in),
      .data_o(medium_out),
      .kernel_clk_i(kernel_clk),
      .kernel_rst_ni(core_rst_q),
      .medium_valid_i(medium_valid),
      .medium_addr_i(medium_addr),
      .medium_ready_o(medium_ready),
      .medium_data_o(medium_data),
      .medium_err_o(medium_err)
  );
  shef_f2_noise u_noise (
      .clk_i(clk_main_a0),
      .rst_ni(main_rst_n),
      .kernel_clk_i(kernel_clk),
      .valid_o(noise_valid),
      .bit_o(noise_bit),
      .seeded_o(noise_seeded),
      .unmeasured_o(noise_unmeasured)
  );

  logic [255:0] uds, target, shell, design_digest;
  logic [1:0] root;
  logic [2:0] shell_flags;
  logic debug;
  shef_image u_image (
      .uds_o(uds),
      .root_o(root),
      .target_o(target),
      .shell_o(shell),
      .shell_flags_o(shell_flags),
      .debug_o(debug),
      .design_o(design_digest)
  );

  logic cfg_begin, cfg_clear, cfg_valid, cfg_ready, cfg_last, cfg_busy, cfg_active, cfg_error;
  logic [31:0] cfg_data;
  shef_cfg_fixed u_cfg (
      .clk_i(kernel_clk),
      .rst_ni(core_rst_q),
      .cfg_begin_i(cfg_begin),
      .cfg_clear_i(cfg_clear),
      .cfg_valid_i(cfg_valid),
      .cfg_ready_o(cfg_ready),
      .cfg_data_i(cfg_data),
      .cfg_last_i(cfg_last),
      .cfg_busy_o(cfg_busy),
      .cfg_active_o(cfg_active),
      .cfg_error_o(cfg_error)
  );

  // ---- the system ----
  axi_req_t h2c_req, host_req;
  axi_rsp_t h2c_rsp, host_rsp;
  axi_req_t [NPorts-1:0] mem_req;
  axi_rsp_t [NPorts-1:0] mem_rsp;
  logic dma_irq_valid, dma_irq_ready, irq_req, irq_ack;
  logic [15:0] dma_irq_vector;
  shef_system #(
      .ShellId(2),
      .CardBytes(CardBytes),
      .ClockKhz(CoreKhz),
      .WipeCycles(1 << 20)
  ) u_system (
      .clk_i(core_clk),
      .kernel_clk_i(kernel_clk),
      .kernel_tick_i(kernel_tick),
      .rst_ni(core_rst_q),
      .wipe_req_i(core_wipe_req),
      .wipe_ack_o(core_wipe_ack),
      .ready_o(core_ready),
      .alert_o(core_alert),
      .ctl_req_i(ctl_req),
      .ctl_rsp_o(ctl_rsp),
      .h2c_req_i(h2c_req),
      .h2c_rsp_o(h2c_rsp),
      .mem_req_o(mem_req),
      .mem_rsp_i(mem_rsp),
      .host_req_o(host_req),
      .host_rsp_i(host_rsp),
      .dma_irq_valid_o(dma_irq_valid),
      .dma_irq_vector_o(dma_irq_vector),
      .dma_irq_ready_i(dma_irq_ready),
      .irq_req_o(irq_req),
      .irq_ack_i(irq_ack),
      .medium_valid_o(medium_valid),
      .medium_addr_o(medium_addr),
      .medium_ready_i(medium_ready),
      .medium_data_i(medium_data),
      .medium_err_i(medium_err),
      .noise_valid_i(noise_valid),
      .noise_bit_i(noise_bit),
      .noise_seeded_i(noise_seeded),
      .noise_unmeasured_i(noise_unmeasured),
      .cfg_begin_o(cfg_begin),
      .cfg_clear_o(cfg_clear),
      .cfg_valid_o(cfg_valid),
      .cfg_ready_i(cfg_ready),
      .cfg_data_o(cfg_data),
      .cfg_last_o(cfg_last),
      .cfg_busy_i(cfg_busy),
      .cfg_active_i(cfg_active),
      .cfg_error_i(cfg_error),
      .design_i(design_digest),
      .uds_i(uds),
      .root_i(root),
      .target_i(target),
      .shell_i(shell),
      .shell_flags_i(shell_flags),
      .debug_i(debug)
  );

  // ---- PCIS ----
  assign cl_sh_dma_wr_full = 1'b0;
  assign cl_sh_dma_rd_full = 1'b0;
  assign cl_sh_dma_pcis_ruser = '0;
  shef_f2_pcis u_pcis (
      .main_clk_i(clk_main_a0),
      .main_rst_ni(main_rst_n),
      .link_i(running && core_up),
      .run_i(run),
      .idle_o(pcis_idle),
      .awid_i(sh_cl_dma_pcis_awid),
      .awaddr_i(sh_cl_dma_pcis_awaddr),
      .awlen_i(sh_cl_dma_pcis_awlen),
      .awvalid_i(sh_cl_dma_pcis_awvalid),
      .awready_o(cl_sh_dma_pcis_awready),
      .wdata_i(sh_cl_dma_pcis_wdata),
      .wstrb_i(sh_cl_dma_pcis_wstrb),
      .wlast_i(sh_cl_dma_pcis_wlast),
      .wvalid_i(sh_cl_dma_pcis_wvalid),
      .wready_o(cl_sh_dma_pcis_wready),
      .bid_o(cl_sh_dma_pcis_bid),
      .bresp_o(cl_sh_dma_pcis_bresp),
      .bvalid_o(cl_sh_dma_pcis_bvalid),
      .bready_i(sh_cl_dma_pcis_bready),
      .arid_i(sh_cl_dma_pcis_arid),
      .araddr_i(sh_cl_dma_pcis_araddr),
      .arlen_i(sh_cl_dma_pcis_arlen),
      .arvalid_i(sh_cl_dma_pcis_arvalid),
      .arready_o(cl_sh_dma_pcis_arready),
      .rid_o(cl_sh_dma_pcis_rid),
      .rdata_o(cl_sh_dma_pcis_rdata),
      .rresp_o(cl_sh_dma_pcis_rresp),
      .rlast_o(cl_sh_dma_pcis_rlast),
      .rvalid_o(cl_sh_dma_pcis_rvalid),
      .rready_i(sh_cl_dma_pcis_rready),
      .read_late_o(pcis_read_late),
      .write_late_o(pcis_write_late),
      .core_clk_i(core_clk),
      .core_req_o(h2c_req),
      .core_rsp_i(h2c_rsp)
  );

  // ---- PCIM ----
  axi_req_t pcim_req;
  axi_rsp_t pcim_rsp;
  shef_f2_pcim u_pcim (
      .main_clk_i(clk_main_a0),
      .main_rst_ni(main_rst_n),
      .run_i(run),
      .idle_o(pcim_idle),
      .pcim_req_o(pcim_req),
      .pcim_rsp_i(pcim_rsp),
      .core_clk_i(core_clk),
      .core_req_i(host_req),
      .core_rsp_o(host_rsp)
  );
  assign cl_sh_pcim_awid = 16'(pcim_req.aw.id);
  assign cl_sh_pcim_awaddr = pcim_req.aw.addr;
  assign cl_sh_pcim_awlen = pcim_req.aw.len;
  assign cl_sh_pcim_awsize = AXI_SIZE_64;
  assign cl_sh_pcim_awburst = AXI_BURST_INCR;
  assign cl_sh_pcim_awcache = '0;
  assign cl_sh_pcim_awlock = '0;
  assign cl_sh_pcim_awprot = '0;
  assign cl_sh_pcim_awqos = '0;
  assign cl_sh_pcim_awuser = '0;
  assign cl_sh_pcim_awvalid = pcim_req.aw_valid;
  assign cl_sh_pcim_wid = '0;
  assign cl_sh_pcim_wdata = pcim_req.w.data;
  assign cl_sh_pcim_wstrb = pcim_req.w.strb;
  assign cl_sh_pcim_wlast = pcim_req.w.last;
  assign cl_sh_pcim_wuser = '0;
  assign cl_sh_pcim_wvalid = pcim_req.w_valid;
  assign cl_sh_pcim_bready = pcim_req.b_ready;
  assign cl_sh_pcim_arid = 16'(pcim_req.ar.id);
  assign cl_sh_pcim_araddr = pcim_req.ar.addr;
  assign cl_sh_pcim_arlen = pcim_req.ar.len;
  assign cl_sh_pcim_arsize = AXI_SIZE_64;
  assign cl_sh_pcim_arburst = AXI_BURST_INCR;
  assign cl_sh_pcim_arcache = '0;
  assign cl_sh_pcim_arlock = '0;
  assign cl_sh_pcim_arprot = '0;
  assign cl_sh_pcim_arqos = '0;
  assign cl_sh_pcim_aruser = '0;
  assign cl_sh_pcim_arvalid = pcim_req.ar_valid;
  assign cl_sh_pcim_rready = pcim_req.r_ready;
  assign pcim_rsp = '{
      aw_ready: sh_cl_pcim_awready,
      w_ready: sh_cl_pcim_wready,
      b: '{id: sh_cl_pcim_bid[7:0], resp: sh_cl_pcim_bresp},
      b_valid: sh_cl_pcim_bvalid,
      ar_ready: sh_cl_pcim_arready,
      r: '{
          id: sh_cl_pcim_rid[7:0],
          data: sh_cl_pcim_rdata,
          resp: sh_cl_pcim_rresp,
          last: sh_cl_pcim_rlast
      },
      r_valid: sh_cl_pcim_rvalid
  };

  // ---- interrupts ----
  shef_f2_irq u_irq (
      .main_clk_i(clk_main_a0),
      .main_rst_ni(main_rst_n),
      .run_i(run),
      .req_o(cl_sh_apppf_irq_req),
      .ack_i(sh_cl_apppf_irq_ack),
      .dropped_o(irq_dropped),
      .core_clk_i(core_clk),
      .dma_irq_valid_i(dma_irq_valid),
      .dma_irq_vector_i(dma_irq_vector),
      .dma_irq_ready_o(dma_irq_ready),
      .irq_req_i(irq_req),
      .irq_ack_o(irq_ack)
  );

  // ---- card memory ----
  axi_req_t ddr_req;
  axi_rsp_t ddr_rsp;
  logic [1:0] ddr_aw_port, ddr_ar_port;
  logic [15:0] ddr_bid, ddr_rid;
  logic core_ddr_ready, core_memory_ready, memory_rst_q;
  logic [1:0][21:0] hbm_paddr;
  logic [1:0][31:0] hbm_pwdata, hbm_prdata;
  logic [1:0] hbm_psel, hbm_penable, hbm_pwrite, hbm_pready, hbm_pslverr;
  always_ff @(posedge core_clk) begin
    memory_rst_q <= memory_rst_n;
    memory_ready_q <= core_memory_ready && memory_rst_q;
  end
  shef_sync u_memory_ready (
      .clk_i(clk_main_a0),
      .d_i(memory_ready_q),
      .q_o(memory_ready)
  );

  assign ddr_rsp.b.id = ddr_bid[7:0];
  assign ddr_rsp.r.id = ddr_rid[7:0];
  if (Hbm) begin : g_hbm
    shef_f2_hbm_memory #(
        .NPorts(NPorts)
    ) u_memory (
        .clk_i(core_clk),
        .rst_ni(memory_rst_q),
        .run_i(memory_run),
        .ref_clk_i(clk_hbm_ref),
        .ready_o(core_memory_ready),
        .ready_i(memory_ready_q),
        .mem_req_i(mem_req),
        .mem_rsp_o(mem_rsp),
        .hbm_apb_preset_n_i({hbm_apb_preset_n_1, hbm_apb_preset_n_0}),
        .hbm_apb_paddr_o(hbm_paddr),
        .hbm_apb_psel_o(hbm_psel),
        .hbm_apb_penable_o(hbm_penable),
        .hbm_apb_pwrite_o(hbm_pwrite),
        .hbm_apb_pwdata_o(hbm_pwdata),
        .hbm_apb_pready_o(hbm_pready),
        .hbm_apb_prdata_o(hbm_prdata),
        .hbm_apb_pslverr_o(hbm_pslverr)
    );
    assign ddr_req = '0;
    assign {ddr_aw_port, ddr_ar_port} = '0;
    logic unused_ddr;
    assign unused_ddr = ^{core_ddr_ready, ddr_rsp, ddr_bid[9:8], ddr_rid[9:8]};
  end else begin : g_ddr
    shef_f2_ddr #(
        .NPorts(NPorts)
    ) u_ddr (
        .clk_i(core_clk),
        .rst_ni(memory_rst_q),
        .ready_i(memory_ready_q),
        .mem_req_i(mem_req),
        .mem_rsp_o(mem_rsp),
        .ddr_req_o(ddr_req),
        .ddr_aw_port_o(ddr_aw_port),
        .ddr_ar_port_o(ddr_ar_port),
        .ddr_rsp_i(ddr_rsp),
        .ddr_b_port_i(ddr_bid[9:8]),
        .ddr_r_port_i(ddr_rid[9:8])
    );
    assign core_memory_ready = core_ddr_ready;
    assign {hbm_paddr, hbm_psel, hbm_penable, hbm_pwrite, hbm_pwdata} = '0;
    assign {hbm_pready, hbm_prdata, hbm_pslverr} = '0;
    logic unused_hbm;
    assign unused_hbm = ^{clk_hbm_ref, hbm_apb_preset_n_0, hbm_apb_preset_n_1};
  end
  // The monitor of each stack; the IP has no protection and no strobes there.
  assign {hbm_apb_paddr_1, hbm_apb_paddr_0} = hbm_paddr;
  assign {hbm_apb_psel_1, hbm_apb_psel_0} = hbm_psel;
  assign {hbm_apb_penable_1, hbm_apb_penable_0} = hbm_penable;
  assign {hbm_apb_pwrite_1, hbm_apb_pwrite_0} = hbm_pwrite;
  assign {hbm_apb_pwdata_1, hbm_apb_pwdata_0} = hbm_pwdata;
  assign {hbm_apb_pready_1, hbm_apb_pready_0} = hbm_pready;
  assign {hbm_apb_prdata_1, hbm_apb_prdata_0} = hbm_prdata;
  assign {hbm_apb_pslverr_1, hbm_apb_pslverr_0} = hbm_pslverr;
  assign {hbm_apb_pprot_1, hbm_apb_pprot_0} = '0;
  assign {hbm_apb_pstrb_1, hbm_apb_pstrb_0} = '0;

  sh_ddr #(
      .DDR_PRESENT(Hbm ? 0 : 1)
  ) u_sh_ddr (
      .clk(core_clk),
      .rst_n(memory_rst_q),
      .stat_clk(clk_main_a0),
      .stat_rst_n(main_rst_n),
      .CLK_DIMM_DP(CLK_DIMM_DP),
      .CLK_DIMM_DN(CLK_DIMM_DN),
      .M_ACT_N(M_ACT_N),
      .M_MA(M_MA),
      .M_BA(M_BA),
      .M_BG(M_BG),
      .M_CKE(M_CKE),
      .M_ODT(M_ODT),
      .M_CS_N(M_CS_N),
      .M_CLK_DN(M_CLK_DN),
      .M_CLK_DP(M_CLK_DP),
      .M_PAR(M_PAR),
      .M_DQ(M_DQ),
      .M_ECC(M_ECC),
      .M_DQS_DP(M_DQS_DP),
      .M_DQS_DN(M_DQS_DN),
      .cl_RST_DIMM_N(RST_DIMM_N),
      .cl_sh_ddr_axi_awid({6'd0, ddr_aw_port, ddr_req.aw.id}),
      .cl_sh_ddr_axi_awaddr(ddr_req.aw.addr),
      .cl_sh_ddr_axi_awlen(ddr_req.aw.len),
      .cl_sh_ddr_axi_awsize(ddr_req.aw.size),
      .cl_sh_ddr_axi_awvalid(ddr_req.aw_valid),
      .cl_sh_ddr_axi_awburst(ddr_req.aw.burst),
      .cl_sh_ddr_axi_awuser(1'b0),
      .cl_sh_ddr_axi_awready(ddr_rsp.aw_ready),
      .cl_sh_ddr_axi_wdata(ddr_req.w.data),
      .cl_sh_ddr_axi_wstrb(ddr_req.w.strb),
      .cl_sh_ddr_axi_wlast(ddr_req.w.last),
      .cl_sh_ddr_axi_wvalid(ddr_req.w_valid),
      .cl_sh_ddr_axi_wready(ddr_rsp.w_ready),
      .cl_sh_ddr_axi_bid(ddr_bid),
      .cl_sh_ddr_axi_bresp(ddr_rsp.b.resp),
      .cl_sh_ddr_axi_bvalid(ddr_rsp.b_valid),
      .cl_sh_ddr_axi_bready(ddr_req.b_ready),
      .cl_sh_ddr_axi_arid({6'd0, ddr_ar_port, ddr_req.ar.id}),
      .cl_sh_ddr_axi_araddr(ddr_req.ar.addr),
      .cl_sh_ddr_axi_arlen(ddr_req.ar.len),
      .cl_sh_ddr_axi_arsize(ddr_req.ar.size),
      .cl_sh_ddr_axi_arvalid(ddr_req.ar_valid),
      .cl_sh_ddr_axi_arburst(ddr_req.ar.burst),
      .cl_sh_ddr_axi_aruser(1'b0),
      .cl_sh_ddr_axi_arready(ddr_rsp.ar_ready),
      .cl_sh_ddr_axi_rid(ddr_rid),
      .cl_sh_ddr_axi_rdata(ddr_rsp.r.data),
      .cl_sh_ddr_axi_rresp(ddr_rsp.r.resp),
      .cl_sh_ddr_axi_rlast(ddr_rsp.r.last),
      .cl_sh_ddr_axi_rvalid(ddr_rsp.r_valid),
      .cl_sh_ddr_axi_rready(ddr_req.r_ready),
      .sh_ddr_stat_bus_addr(sh_cl_ddr_stat_addr),
      .sh_ddr_stat_bus_wdata(sh_cl_ddr_stat_wdata),
      .sh_ddr_stat_bus_wr(sh_cl_ddr_stat_wr),
      .sh_ddr_stat_bus_rd(sh_cl_ddr_stat_rd),
      .sh_ddr_stat_bus_ack(cl_sh_ddr_stat_ack),
      .sh_ddr_stat_bus_rdata(cl_sh_ddr_stat_rdata),
      .ddr_sh_stat_int(cl_sh_ddr_stat_int),
      .sh_cl_ddr_is_ready(core_ddr_ready)
  );

  // ---- SDA: answers with zero ----
  logic sda_b_q, sda_r_q;
  wire sda_write = main_rst_n && sda_cl_awvalid && sda_cl_wvalid && !sda_b_q;
  wire sda_read = main_rst_n && sda_cl_arvalid && !sda_r_q;
  assign cl_sda_awready = sda_write;
  assign cl_sda_wready = sda_write;
  assign cl_sda_bresp = AXI_OKAY;
  assign cl_sda_bvalid = sda_b_q;
  assign cl_sda_arready = sda_read;
  assign cl_sda_rdata = '0;
  assign cl_sda_rresp = AXI_OKAY;
  assign cl_sda_rvalid = sda_r_q;
  always_ff @(posedge clk_main_a0) begin
    if (!main_rst_n) begin
      sda_b_q <= 1'b0;
      sda_r_q <= 1'b0;
    end else begin
      sda_b_q <= sda_b_q ? !sda_cl_bready : sda_write;
      sda_r_q <= sda_r_q ? !sda_cl_rready : sda_read;
    end
  end

  // ---- outputs without a use ----
  assign cl_sh_status0 = '0;
  assign cl_sh_status1 = '0;
  assign cl_sh_status2 = '0;
  assign cl_sh_status_vled = '0;
  assign tdo = 1'b0;
  assign PCIE_EP_TXP = '0;
  assign PCIE_EP_TXN = '0;
  assign PCIE_RP_PERSTN = '0;
  assign PCIE_RP_TXP = '0;
  assign PCIE_RP_TXN = '0;

  // ---- inputs without a use ----
  logic unused;
  assign unused = ^{sh_cl_ctl0, sh_cl_ctl1, sh_cl_ctl2, sh_cl_status_vdip,
      sh_cl_pcim_bid[15:8], sh_cl_pcim_rid[15:8], sh_cl_pcim_ruser, sh_cl_ddr_stat_user,
      sh_cl_dma_pcis_awsize, sh_cl_dma_pcis_awburst, sh_cl_dma_pcis_awcache,
      sh_cl_dma_pcis_awlock, sh_cl_dma_pcis_awprot, sh_cl_dma_pcis_awqos, sh_cl_dma_pcis_awuser,
      sh_cl_dma_pcis_wid, sh_cl_dma_pcis_wuser, sh_cl_dma_pcis_arsize, sh_cl_dma_pcis_arburst,
      sh_cl_dma_pcis_arcache, sh_cl_dma_pcis_arlock, sh_cl_dma_pcis_arprot,
      sh_cl_dma_pcis_arqos, sh_cl_dma_pcis_aruser, ocl_cl_awuser, ocl_cl_aruser,
      sda_cl_awaddr, sda_cl_wdata, sda_cl_wstrb, sda_cl_araddr, drck, shift, tdi, update, sel,
      tms, tck, runtest, reset, capture, bscanid_en, sh_cl_glcount0, sh_cl_glcount1,
      PCIE_EP_PERSTN, PCIE_EP_REF_CLK_P,
      PCIE_EP_REF_CLK_N, PCIE_EP_RXP, PCIE_EP_RXN, PCIE_RP_REF_CLK_P, PCIE_RP_REF_CLK_N, PCIE_RP_RXP, PCIE_RP_RXN, ddr_bid[15:10],
      ddr_rid[15:10]};
endmodule
