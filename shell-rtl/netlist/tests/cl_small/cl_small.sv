// A small custom logic that breaks no rule: registers behind OCL in the core's clock, everything
// else answers and does nothing.
`default_nettype none
module cl_small (
    `include "cl_ports.vh"
);
  assign cl_sh_id0 = 32'hF0F0_1D0F;
  assign cl_sh_id1 = 32'h1D51_FEDC;

  // ---- clocks and resets ----
  logic core_clk, kernel_clk, locked, run_q, core_rst_n;
  small_clocks u_clocks (
      .clk_i(clk_main_a0),
      .core_clk_o(core_clk),
      .kernel_clk_o(kernel_clk),
      .locked_o(locked)
  );
  always_ff @(posedge clk_main_a0) run_q <= rst_main_n && locked && !sh_cl_flr_assert;
  shef_reset_sync u_core_rst (
      .clk_i(core_clk),
      .rst_ni(run_q),
      .rst_no(core_rst_n)
  );
  logic main_rst_n;
  shef_reset_sync u_main_rst (
      .clk_i(clk_main_a0),
      .rst_ni(run_q),
      .rst_no(main_rst_n)
  );
  always_ff @(posedge clk_main_a0) cl_sh_flr_done <= sh_cl_flr_assert;

  // ---- OCL: a word to the core and one back ----
  logic ocl_b_q, ocl_busy_q, word_valid, word_ready, back_valid, back_ready;
  logic [31:0] word, back;
  wire ocl_write = ocl_cl_awvalid && ocl_cl_wvalid && !ocl_b_q;
  wire ocl_read = ocl_cl_arvalid && !ocl_busy_q && word_ready;
  assign cl_ocl_awready = ocl_write;
  assign cl_ocl_wready = ocl_write;
  assign cl_ocl_bresp = 2'b00;
  assign cl_ocl_bvalid = ocl_b_q;
  assign cl_ocl_arready = ocl_read;
  assign cl_ocl_rresp = 2'b00;
  assign cl_ocl_rvalid = back_valid;
  assign cl_ocl_rdata = back;
  assign word_valid = ocl_read;
  assign word = ocl_cl_araddr;
  assign back_ready = ocl_cl_rready;
  always_ff @(posedge clk_main_a0 or negedge main_rst_n) begin
    if (!main_rst_n) begin
      ocl_b_q <= 1'b0;
      ocl_busy_q <= 1'b0;
    end else begin
      ocl_b_q <= ocl_b_q ? !ocl_cl_bready : ocl_write;
      if (ocl_read) ocl_busy_q <= 1'b1;
      else if (back_valid && ocl_cl_rready) ocl_busy_q <= 1'b0;
    end
  end

  logic core_valid, core_ready, busy;
  logic [31:0] core_word, core_back;
  shef_async_fifo #(.W(32), .Depth(4)) u_there (
      .wr_clk_i(clk_main_a0), .wr_rst_ni(main_rst_n),
      .wr_valid_i(word_valid), .wr_ready_o(word_ready), .wr_data_i(word),
      .rd_clk_i(core_clk), .rd_rst_ni(core_rst_n),
      .rd_valid_o(core_valid), .rd_ready_i(core_ready), .rd_data_o(core_word)
  );
  shef_async_fifo #(.W(32), .Depth(4)) u_back (
      .wr_clk_i(core_clk), .wr_rst_ni(core_rst_n),
      .wr_valid_i(core_valid), .wr_ready_o(core_ready), .wr_data_i(core_back),
      .rd_clk_i(clk_main_a0), .rd_rst_ni(main_rst_n),
      .rd_valid_o(back_valid), .rd_ready_i(back_ready), .rd_data_o(back)
  );

  // A setting that changes in reset only, and two independent flags.
  (* shef_cdc = "static" *) logic [7:0] setting_q;
  always_ff @(posedge clk_main_a0) if (!main_rst_n) setting_q <= ocl_cl_wdata[7:0];
  logic [31:0] sum;
  small_core u_core (
      .clk_i(core_clk),
      .kernel_clk_i(kernel_clk),
      .word_i(core_word),
      .setting_i(setting_q),
      .sum_o(sum),
      .busy_o(busy)
  );
  assign core_back = sum;
  logic busy_main;
  shef_sync u_busy (
      .clk_i(clk_main_a0),
      .d_i(busy),
      .q_o(busy_main)
  );
  assign cl_sh_status_vled = {15'd0, busy_main};

  // ---- PCIS: reads give zero, writes are dropped ----
  logic pcis_b_q, pcis_r_q;
  logic [7:0] pcis_left_q;
  logic [15:0] pcis_bid_q, pcis_rid_q;
  assign cl_sh_dma_pcis_awready = !pcis_b_q;
  assign cl_sh_dma_pcis_wready = 1'b1;
  assign cl_sh_dma_pcis_bid = pcis_bid_q;
  assign cl_sh_dma_pcis_bresp = 2'b00;
  assign cl_sh_dma_pcis_bvalid = pcis_b_q;
  assign cl_sh_dma_pcis_arready = !pcis_r_q;
  assign cl_sh_dma_pcis_rid = pcis_rid_q;
  assign cl_sh_dma_pcis_rdata = '0;
  assign cl_sh_dma_pcis_rresp = 2'b00;
  assign cl_sh_dma_pcis_rlast = pcis_left_q == '0;
  assign cl_sh_dma_pcis_ruser = '0;
  assign cl_sh_dma_pcis_rvalid = pcis_r_q;
  always_ff @(posedge clk_main_a0) begin
    if (!pcis_b_q) pcis_bid_q <= sh_cl_dma_pcis_awid;
    if (!pcis_r_q) begin
      pcis_rid_q <= sh_cl_dma_pcis_arid;
      pcis_left_q <= sh_cl_dma_pcis_arlen;
    end else if (sh_cl_dma_pcis_rready) begin
      pcis_left_q <= pcis_left_q - 1'b1;
    end
    if (!main_rst_n) begin
      pcis_b_q <= 1'b0;
      pcis_r_q <= 1'b0;
    end else begin
      pcis_b_q <= pcis_b_q ? !sh_cl_dma_pcis_bready : sh_cl_dma_pcis_awvalid;
      pcis_r_q <= pcis_r_q ? !(sh_cl_dma_pcis_rready && pcis_left_q == '0) : sh_cl_dma_pcis_arvalid;
    end
  end
  assign cl_sh_dma_wr_full = 1'b0;
  assign cl_sh_dma_rd_full = 1'b0;

  // ---- SDA ----
  logic sda_b_q, sda_r_q;
  wire sda_write = sda_cl_awvalid && sda_cl_wvalid && !sda_b_q;
  assign cl_sda_awready = sda_write;
  assign cl_sda_wready = sda_write;
  assign cl_sda_bresp = 2'b00;
  assign cl_sda_bvalid = sda_b_q;
  assign cl_sda_arready = !sda_r_q;
  assign cl_sda_rdata = '0;
  assign cl_sda_rresp = 2'b00;
  assign cl_sda_rvalid = sda_r_q;
  always_ff @(posedge clk_main_a0) begin
    sda_b_q <= sda_b_q ? !sda_cl_bready : sda_write;
    sda_r_q <= sda_r_q ? !sda_cl_rready : sda_cl_arvalid;
  end

  // ---- PCIM: not used ----
  assign cl_sh_pcim_awid = '0;
  assign cl_sh_pcim_awaddr = '0;
  assign cl_sh_pcim_awlen = '0;
  assign cl_sh_pcim_awsize = 3'd6;
  assign cl_sh_pcim_awburst = 2'b01;
  assign cl_sh_pcim_awcache = '0;
  assign cl_sh_pcim_awlock = '0;
  assign cl_sh_pcim_awprot = '0;
  assign cl_sh_pcim_awqos = '0;
  assign cl_sh_pcim_awuser = '0;
  assign cl_sh_pcim_awvalid = 1'b0;
  assign cl_sh_pcim_wid = '0;
  assign cl_sh_pcim_wdata = '0;
  assign cl_sh_pcim_wstrb = '0;
  assign cl_sh_pcim_wlast = 1'b0;
  assign cl_sh_pcim_wuser = '0;
  assign cl_sh_pcim_wvalid = 1'b0;
  assign cl_sh_pcim_bready = 1'b1;
  assign cl_sh_pcim_arid = '0;
  assign cl_sh_pcim_araddr = '0;
  assign cl_sh_pcim_arlen = '0;
  assign cl_sh_pcim_arsize = 3'd6;
  assign cl_sh_pcim_arburst = 2'b01;
  assign cl_sh_pcim_arcache = '0;
  assign cl_sh_pcim_arlock = '0;
  assign cl_sh_pcim_arprot = '0;
  assign cl_sh_pcim_arqos = '0;
  assign cl_sh_pcim_aruser = '0;
  assign cl_sh_pcim_arvalid = 1'b0;
  assign cl_sh_pcim_rready = 1'b1;
  assign cl_sh_apppf_irq_req = '0;

  // ---- memory: absent ----
  sh_ddr #(
      .DDR_PRESENT(0)
  ) u_ddr (
      .clk(clk_main_a0), .rst_n(main_rst_n), .stat_clk(clk_main_a0), .stat_rst_n(main_rst_n),
      .CLK_DIMM_DP, .CLK_DIMM_DN, .M_ACT_N, .M_MA, .M_BA, .M_BG, .M_CKE, .M_ODT, .M_CS_N,
      .M_CLK_DN, .M_CLK_DP, .M_PAR, .M_DQ, .M_ECC, .M_DQS_DP, .M_DQS_DN,
      .cl_RST_DIMM_N(RST_DIMM_N),
      .cl_sh_ddr_axi_awid('0), .cl_sh_ddr_axi_awaddr('0), .cl_sh_ddr_axi_awlen('0),
      .cl_sh_ddr_axi_awsize('0), .cl_sh_ddr_axi_awburst('0), .cl_sh_ddr_axi_awuser('0),
      .cl_sh_ddr_axi_awvalid('0), .cl_sh_ddr_axi_awready(),
      .cl_sh_ddr_axi_wdata('0), .cl_sh_ddr_axi_wstrb('0), .cl_sh_ddr_axi_wlast('0),
      .cl_sh_ddr_axi_wvalid('0), .cl_sh_ddr_axi_wready(),
      .cl_sh_ddr_axi_bid(), .cl_sh_ddr_axi_bresp(), .cl_sh_ddr_axi_bvalid(),
      .cl_sh_ddr_axi_bready('1),
      .cl_sh_ddr_axi_arid('0), .cl_sh_ddr_axi_araddr('0), .cl_sh_ddr_axi_arlen('0),
      .cl_sh_ddr_axi_arsize('0), .cl_sh_ddr_axi_arburst('0), .cl_sh_ddr_axi_aruser('0),
      .cl_sh_ddr_axi_arvalid('0), .cl_sh_ddr_axi_arready(),
      .cl_sh_ddr_axi_rid(), .cl_sh_ddr_axi_rdata(), .cl_sh_ddr_axi_rresp(),
      .cl_sh_ddr_axi_rlast(), .cl_sh_ddr_axi_rvalid(), .cl_sh_ddr_axi_rready('1),
      .sh_ddr_stat_bus_addr(sh_cl_ddr_stat_addr), .sh_ddr_stat_bus_wdata(sh_cl_ddr_stat_wdata),
      .sh_ddr_stat_bus_wr(sh_cl_ddr_stat_wr), .sh_ddr_stat_bus_rd(sh_cl_ddr_stat_rd),
      .sh_ddr_stat_bus_ack(cl_sh_ddr_stat_ack), .sh_ddr_stat_bus_rdata(cl_sh_ddr_stat_rdata),
      .ddr_sh_stat_int(cl_sh_ddr_stat_int), .sh_cl_ddr_is_ready()
  );

  // ---- outputs without a use ----
  `define SMALL_TIE(name) assign name = '0
  `SMALL_TIE(cl_sh_status0);
  `SMALL_TIE(cl_sh_status1);
  `SMALL_TIE(cl_sh_status2);
  `SMALL_TIE(tdo);
  `SMALL_TIE(hbm_apb_paddr_0);
  `SMALL_TIE(hbm_apb_pprot_0);
  `SMALL_TIE(hbm_apb_psel_0);
  `SMALL_TIE(hbm_apb_penable_0);
  `SMALL_TIE(hbm_apb_pwrite_0);
  `SMALL_TIE(hbm_apb_pwdata_0);
  `SMALL_TIE(hbm_apb_pstrb_0);
  `SMALL_TIE(hbm_apb_pready_0);
  `SMALL_TIE(hbm_apb_prdata_0);
  `SMALL_TIE(hbm_apb_pslverr_0);
  `SMALL_TIE(hbm_apb_paddr_1);
  `SMALL_TIE(hbm_apb_pprot_1);
  `SMALL_TIE(hbm_apb_psel_1);
  `SMALL_TIE(hbm_apb_penable_1);
  `SMALL_TIE(hbm_apb_pwrite_1);
  `SMALL_TIE(hbm_apb_pwdata_1);
  `SMALL_TIE(hbm_apb_pstrb_1);
  `SMALL_TIE(hbm_apb_pready_1);
  `SMALL_TIE(hbm_apb_prdata_1);
  `SMALL_TIE(hbm_apb_pslverr_1);
  `SMALL_TIE(PCIE_EP_TXP);
  `SMALL_TIE(PCIE_EP_TXN);
  `SMALL_TIE(PCIE_RP_PERSTN);
  `SMALL_TIE(PCIE_RP_TXP);
  `SMALL_TIE(PCIE_RP_TXN);
  // more
endmodule
`default_nettype wire
