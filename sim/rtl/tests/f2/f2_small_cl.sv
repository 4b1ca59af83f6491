// A small custom logic for the tests of the model of F2's shell. It obeys every rule of the shell;
// `fault` makes it break one, at run time.
//
// OCL: 0x00 "F2CL"; 0x04 scratch; 0x08 from, low and 0x0c high; 0x10 to, low and 0x14 high;
// 0x18 {count [14:8], beats [6:0]}; 0x1c go; 0x20 {errors [31], busy [30], jobs done [15:0]};
// 0x24 interrupt with vector [4:0]; 0x28 cycles of core_clk;
// 0x2c {cfg_max_read_req [6:4], cfg_max_payload [1:0]}. After each job there is an interrupt on
// line 1.
`default_nettype none
module f2_small_cl
  import f2_fault_pkg::*;
(
    input  wire logic         clk_main_a0,
    input  wire logic         rst_main_n,
    input  wire logic         core_clk,
    input  wire logic         core_locked,
    input  wire logic [7:0]   fault,
    output logic              obs_held,
    input  wire logic         sh_cl_flr_assert,
    output logic              cl_sh_flr_done,
    input  wire logic [1:0]   sh_cl_pwr_state,
    output logic      [31:0]  cl_sh_id0,
    output logic      [31:0]  cl_sh_id1,
    input  wire logic [1:0]   cfg_max_payload,
    input  wire logic [2:0]   cfg_max_read_req,
    input  wire logic         sh_cl_ddr_stat_rd,
    output logic              cl_sh_ddr_stat_ack,
    output logic      [15:0]  cl_sh_apppf_irq_req,
    input  wire logic [15:0]  sh_cl_apppf_irq_ack,
    // OCL and SDA
    input  wire logic [31:0]  ocl_cl_awaddr, sda_cl_awaddr,
    input  wire logic         ocl_cl_awvalid, sda_cl_awvalid,
    output logic              cl_ocl_awready, cl_sda_awready,
    input  wire logic [31:0]  ocl_cl_wdata, sda_cl_wdata,
    input  wire logic [3:0]   ocl_cl_wstrb, sda_cl_wstrb,
    input  wire logic         ocl_cl_wvalid, sda_cl_wvalid,
    output logic              cl_ocl_wready, cl_sda_wready,
    output logic      [1:0]   cl_ocl_bresp, cl_sda_bresp,
    output logic              cl_ocl_bvalid, cl_sda_bvalid,
    input  wire logic         ocl_cl_bready, sda_cl_bready,
    input  wire logic [31:0]  ocl_cl_araddr, sda_cl_araddr,
    input  wire logic         ocl_cl_arvalid, sda_cl_arvalid,
    output logic              cl_ocl_arready, cl_sda_arready,
    output logic      [31:0]  cl_ocl_rdata, cl_sda_rdata,
    output logic      [1:0]   cl_ocl_rresp, cl_sda_rresp,
    output logic              cl_ocl_rvalid, cl_sda_rvalid,
    input  wire logic         ocl_cl_rready, sda_cl_rready,
    // PCIS
    input  wire logic [15:0]  sh_cl_dma_pcis_awid,
    input  wire logic [63:0]  sh_cl_dma_pcis_awaddr,
    input  wire logic [7:0]   sh_cl_dma_pcis_awlen,
    input  wire logic [2:0]   sh_cl_dma_pcis_awsize,
    input  wire logic [1:0]   sh_cl_dma_pcis_awburst,
    input  wire logic         sh_cl_dma_pcis_awvalid,
    output logic              cl_sh_dma_pcis_awready,
    input  wire logic [511:0] sh_cl_dma_pcis_wdata,
    input  wire logic [63:0]  sh_cl_dma_pcis_wstrb,
    input  wire logic         sh_cl_dma_pcis_wlast,
    input  wire logic         sh_cl_dma_pcis_wvalid,
    output logic              cl_sh_dma_pcis_wready,
    output logic      [15:0]  cl_sh_dma_pcis_bid,
    output logic      [1:0]   cl_sh_dma_pcis_bresp,
    output logic              cl_sh_dma_pcis_bvalid,
    input  wire logic         sh_cl_dma_pcis_bready,
    input  wire logic [15:0]  sh_cl_dma_pcis_arid,
    input  wire logic [63:0]  sh_cl_dma_pcis_araddr,
    input  wire logic [7:0]   sh_cl_dma_pcis_arlen,
    input  wire logic [2:0]   sh_cl_dma_pcis_arsize,
    input  wire logic [1:0]   sh_cl_dma_pcis_arburst,
    input  wire logic         sh_cl_dma_pcis_arvalid,
    output logic              cl_sh_dma_pcis_arready,
    output logic      [15:0]  cl_sh_dma_pcis_rid,
    output logic      [511:0] cl_sh_dma_pcis_rdata,
    output logic      [1:0]   cl_sh_dma_pcis_rresp,
    output logic              cl_sh_dma_pcis_rlast,
    output logic              cl_sh_dma_pcis_rvalid,
    input  wire logic         sh_cl_dma_pcis_rready,
    // PCIM
    output logic      [15:0]  cl_sh_pcim_awid,
    output logic      [63:0]  cl_sh_pcim_awaddr,
    output logic      [7:0]   cl_sh_pcim_awlen,
    output logic      [2:0]   cl_sh_pcim_awsize,
    output logic      [1:0]   cl_sh_pcim_awburst,
    output logic              cl_sh_pcim_awvalid,
    input  wire logic         sh_cl_pcim_awready,
    output logic      [511:0] cl_sh_pcim_wdata,
    output logic      [63:0]  cl_sh_pcim_wstrb,
    output logic              cl_sh_pcim_wlast,
    output logic              cl_sh_pcim_wvalid,
    input  wire logic         sh_cl_pcim_wready,
    input  wire logic [15:0]  sh_cl_pcim_bid,
    input  wire logic [1:0]   sh_cl_pcim_bresp,
    input  wire logic         sh_cl_pcim_bvalid,
    output logic              cl_sh_pcim_bready,
    output logic      [15:0]  cl_sh_pcim_arid,
    output logic      [63:0]  cl_sh_pcim_araddr,
    output logic      [7:0]   cl_sh_pcim_arlen,
    output logic      [2:0]   cl_sh_pcim_arsize,
    output logic      [1:0]   cl_sh_pcim_arburst,
    output logic              cl_sh_pcim_arvalid,
    input  wire logic         sh_cl_pcim_arready,
    input  wire logic [15:0]  sh_cl_pcim_rid,
    input  wire logic [511:0] sh_cl_pcim_rdata,
    input  wire logic [1:0]   sh_cl_pcim_rresp,
    input  wire logic         sh_cl_pcim_rlast,
    input  wire logic         sh_cl_pcim_rvalid,
    output logic              cl_sh_pcim_rready
);
  fault_e planted;
  assign planted = fault_e'(fault);

  // Ids and the status of the DDR
  assign cl_sh_id0 = planted == ID_OTHER ? 32'hF001_1D0F : 32'hF000_1D0F;
  assign cl_sh_id1 = planted == ID_CHANGES ? 32'h1D51_FEDD : 32'h1D51_FEDC;
  assign cl_sh_ddr_stat_ack = sh_cl_ddr_stat_rd && planted != DDR_NO_ACK;

  // A counter in the other clock, in Gray code through two registers.
  logic [15:0] core_q = '0, gray_q = '0, meta_q = '0, seen_q = '0, core_cycles;
  always_ff @(posedge core_clk) begin
    if (core_locked) core_q <= core_q + 1'b1;
    gray_q <= core_q ^ (core_q >> 1);
  end
  always_ff @(posedge clk_main_a0) {meta_q, seen_q} <= {gray_q, meta_q};
  always_comb begin
    for (int k = 0; k < 16; k++) core_cycles[k] = ^(seen_q >> k);
  end

  // Registers
  logic write;
  logic [31:0] write_addr, write_data, read_addr, read_data, scratch_q;
  logic [3:0] write_strb;
  logic [63:0] from_q, to_q;
  logic [14:0] shape_q;
  logic [15:0] jobs_q;
  logic go_q, busy, job_done, error, ended, stopped, arvalid;
  f2_small_lite u_ocl (
      .clk_i(clk_main_a0), .rst_ni(rst_main_n),
      .no_read_i(planted == OCL_READ_NEVER), .no_write_i(planted == OCL_WRITE_NEVER),
      .extra_r_i(planted == OCL_R_UNASKED), .extra_b_i(planted == OCL_B_UNASKED),
      .r_changes_i(planted == OCL_R_CHANGES), .b_falls_i(planted == OCL_B_FALLS),
      .awaddr_i(ocl_cl_awaddr), .awvalid_i(ocl_cl_awvalid), .awready_o(cl_ocl_awready),
      .wdata_i(ocl_cl_wdata), .wstrb_i(ocl_cl_wstrb), .wvalid_i(ocl_cl_wvalid),
      .wready_o(cl_ocl_wready), .bvalid_o(cl_ocl_bvalid), .bready_i(ocl_cl_bready),
      .araddr_i(ocl_cl_araddr), .arvalid_i(ocl_cl_arvalid), .arready_o(cl_ocl_arready),
      .rdata_o(cl_ocl_rdata), .rvalid_o(cl_ocl_rvalid), .rready_i(ocl_cl_rready),
      .write_o(write), .write_addr_o(write_addr), .write_data_o(write_data),
      .write_strb_o(write_strb), .read_addr_o(read_addr), .read_data_i(read_data)
  );
  assign {cl_ocl_bresp, cl_ocl_rresp, cl_sda_bresp, cl_sda_rresp} = '0;
  always_comb begin
    unique case (read_addr[7:0])
      8'h00: read_data = 32'h4c43_3246;
      8'h04: read_data = scratch_q;
      8'h20: read_data = {error, busy, 14'd0, jobs_q};
      8'h28: read_data = {16'd0, core_cycles};
      8'h2c: read_data = {25'd0, cfg_max_read_req, 2'd0, cfg_max_payload};
      default: read_data = '0;
    endcase
  end
  logic [5:0] vector_q;
  always_ff @(posedge clk_main_a0) begin
    go_q <= 1'b0;
    vector_q <= '0;
    if (job_done) jobs_q <= jobs_q + 1'b1;
    if (write) begin
      unique case (write_addr[7:0])
        8'h04: begin
          for (int k = 0; k < 4; k++) begin
            if (write_strb[k]) scratch_q[8*k+:8] <= write_data[8*k+:8];
          end
        end
        8'h08: from_q[31:0] <= write_data;
        8'h0c: from_q[63:32] <= write_data;
        8'h10: to_q[31:0] <= write_data;
        8'h14: to_q[63:32] <= write_data;
        8'h18: shape_q <= write_data[14:0];
        8'h1c: go_q <= 1'b1;
        8'h24: vector_q <= {1'b1, write_data[4:0]};
        default: ;
      endcase
    end
    if (!rst_main_n) {go_q, vector_q, jobs_q, scratch_q, from_q, to_q, shape_q} <= '0;
  end

  // Interrupts: a line is requested again after its ack.
  logic [15:0] wanted_q, open_q, long_q;
  logic [1:0][15:0] again_q;
  wire [3:0] line = vector_q[3:0];
  wire known = !vector_q[4] || planted == IRQ_VECTOR_16;
  wire [15:0] wants = (vector_q[5] && known ? 16'd1 << line : '0) | (job_done ? 16'd2 : '0);
  wire [15:0] request = (wanted_q | wants) & ~open_q;
  always_ff @(posedge clk_main_a0) begin
    cl_sh_apppf_irq_req <= request | (planted == IRQ_LONG ? cl_sh_apppf_irq_req & ~long_q : '0)
        | (planted == IRQ_TWICE ? again_q[1] : '0);
    long_q <= cl_sh_apppf_irq_req;
    again_q <= {again_q[0], request};
    wanted_q <= (wanted_q | wants) & ~request;
    open_q <= (open_q | request) & ~sh_cl_apppf_irq_ack;
    if (!rst_main_n) {cl_sh_apppf_irq_req, wanted_q, open_q, long_q, again_q} <= '0;
  end

  // SDA: every register is 0.
  logic sda_write;
  logic [31:0] sda_write_addr, sda_write_data, sda_read_addr;
  logic [3:0] sda_write_strb;
  f2_small_lite u_sda (
      .clk_i(clk_main_a0), .rst_ni(rst_main_n),
      .no_read_i(planted == SDA_READ_NEVER), .no_write_i(planted == SDA_WRITE_NEVER),
      .extra_r_i(planted == SDA_R_UNASKED), .extra_b_i(planted == SDA_B_UNASKED),
      .r_changes_i(planted == SDA_R_CHANGES), .b_falls_i(planted == SDA_B_FALLS),
      .awaddr_i(sda_cl_awaddr), .awvalid_i(sda_cl_awvalid), .awready_o(cl_sda_awready),
      .wdata_i(sda_cl_wdata), .wstrb_i(sda_cl_wstrb), .wvalid_i(sda_cl_wvalid),
      .wready_o(cl_sda_wready), .bvalid_o(cl_sda_bvalid), .bready_i(sda_cl_bready),
      .araddr_i(sda_cl_araddr), .arvalid_i(sda_cl_arvalid), .arready_o(cl_sda_arready),
      .rdata_o(cl_sda_rdata), .rvalid_o(cl_sda_rvalid), .rready_i(sda_cl_rready),
      .write_o(sda_write), .write_addr_o(sda_write_addr), .write_data_o(sda_write_data),
      .write_strb_o(sda_write_strb), .read_addr_o(sda_read_addr),
      .read_data_i(planted == SDA_MAGIC ? 32'h9048_1d0f : '0)
  );

  assign {cl_sh_dma_pcis_bresp, cl_sh_dma_pcis_rresp} = '0;
  f2_small_pcis u_pcis (
      .clk_i(clk_main_a0), .rst_ni(rst_main_n), .fault_i(planted),
      .awaddr_i(sh_cl_dma_pcis_awaddr), .awlen_i(sh_cl_dma_pcis_awlen),
      .awvalid_i(sh_cl_dma_pcis_awvalid), .awready_o(cl_sh_dma_pcis_awready),
      .wdata_i(sh_cl_dma_pcis_wdata), .wstrb_i(sh_cl_dma_pcis_wstrb),
      .wlast_i(sh_cl_dma_pcis_wlast), .wvalid_i(sh_cl_dma_pcis_wvalid),
      .wready_o(cl_sh_dma_pcis_wready),
      .bid_o(cl_sh_dma_pcis_bid), .bvalid_o(cl_sh_dma_pcis_bvalid),
      .bready_i(sh_cl_dma_pcis_bready),
      .araddr_i(sh_cl_dma_pcis_araddr), .arlen_i(sh_cl_dma_pcis_arlen),
      .arvalid_i(sh_cl_dma_pcis_arvalid), .arready_o(cl_sh_dma_pcis_arready),
      .rid_o(cl_sh_dma_pcis_rid), .rdata_o(cl_sh_dma_pcis_rdata),
      .rlast_o(cl_sh_dma_pcis_rlast), .rvalid_o(cl_sh_dma_pcis_rvalid),
      .rready_i(sh_cl_dma_pcis_rready)
  );

  // Reset, reset of the function and power state 3 stop the engine.
  wire power_off = sh_cl_pwr_state == 2'd3 && planted != POWER_NO_WIPE;
  f2_small_pcim u_pcim (
      .clk_i(clk_main_a0), .fault_i(planted),
      .stop_i(!rst_main_n || sh_cl_flr_assert || power_off), .ended_o(ended), .stopped_o(stopped),
      .go_i(go_q), .from_i(from_q), .to_i(to_q), .count_i(shape_q[14:8]), .beats_i(shape_q[6:0]),
      .busy_o(busy), .done_o(job_done), .error_o(error),
      .awid_o(cl_sh_pcim_awid), .awaddr_o(cl_sh_pcim_awaddr), .awlen_o(cl_sh_pcim_awlen),
      .awsize_o(cl_sh_pcim_awsize), .awburst_o(cl_sh_pcim_awburst),
      .awvalid_o(cl_sh_pcim_awvalid), .awready_i(sh_cl_pcim_awready),
      .wdata_o(cl_sh_pcim_wdata), .wstrb_o(cl_sh_pcim_wstrb), .wlast_o(cl_sh_pcim_wlast),
      .wvalid_o(cl_sh_pcim_wvalid), .wready_i(sh_cl_pcim_wready),
      .bresp_i(sh_cl_pcim_bresp), .bvalid_i(sh_cl_pcim_bvalid), .bready_o(cl_sh_pcim_bready),
      .arid_o(cl_sh_pcim_arid), .araddr_o(cl_sh_pcim_araddr), .arlen_o(cl_sh_pcim_arlen),
      .arsize_o(cl_sh_pcim_arsize), .arburst_o(cl_sh_pcim_arburst),
      .arvalid_o(arvalid), .arready_i(sh_cl_pcim_arready),
      .rid_i(sh_cl_pcim_rid), .rdata_i(sh_cl_pcim_rdata), .rresp_i(sh_cl_pcim_rresp),
      .rvalid_i(sh_cl_pcim_rvalid), .rready_o(cl_sh_pcim_rready)
  );
  logic [5:0] low_q = '0;
  always_ff @(posedge clk_main_a0) low_q <= rst_main_n ? '0 : &low_q ? low_q : low_q + 1'b1;
  assign cl_sh_pcim_arvalid = arvalid || (planted == RESET_VALID && &low_q && !rst_main_n);
  assign obs_held = stopped;
  logic [3:0] alone_q;
  always_ff @(posedge clk_main_a0) begin
    alone_q <= planted == FLR_UNASKED ? (&alone_q ? alone_q : alone_q + 1'b1) : '0;
    cl_sh_flr_done <= (sh_cl_flr_assert && planted != FLR_NEVER
        && (stopped || (planted == FLR_NO_WIPE && ended))) || (alone_q == 4'd3);
    if (!rst_main_n) {cl_sh_flr_done, alone_q} <= '0;
  end
endmodule
`default_nettype wire
