// The HBM IP of AWS F2 in simulation: AXI ports 00 to 03 are memory ports of the top, which see one
// memory, as behind the switch of the IP.
//
// apb_complete_*: some cycles of the APB clock after its reset, while the top's memory is ready.
// Each output of a monitor has another value. req, rsp: the memory ports. error: a port was used
// against its rules.
`default_nettype none
/* verilator lint_off UNUSEDSIGNAL */
module cl_hbm
  import shef_pkg::*;
(
    `include "cl_hbm_ports.vh"
);
  // Cycles of the initialisation.
  localparam logic [7:0] INIT = 8'd200;

  axi_req_t [3:0] req;
  axi_rsp_t [3:0] rsp;
  logic [3:0] error;
  wire up = apb_complete_0 && apb_complete_1;
  wire early = !up && APB_0_PRESET_N && APB_1_PRESET_N;
  assign rsp = $root.shef_f2_top.hbm_rsp;

`define SHEF_HBM_STACK(n) \
  logic [7:0] init_``n``_q; \
  always_ff @(posedge APB_``n``_PCLK or negedge APB_``n``_PRESET_N) begin \
    if (!APB_``n``_PRESET_N) begin \
      init_``n``_q <= '0; \
      apb_complete_``n <= 1'b0; \
    end else begin \
      if (init_``n``_q != INIT) init_``n``_q <= init_``n``_q + 8'd1; \
      apb_complete_``n <= init_``n``_q == INIT && $root.shef_f2_top.ddr_ready; \
    end \
  end \
  assign APB_``n``_PRDATA = '0; \
  assign APB_``n``_PREADY = 1'b0; \
  assign APB_``n``_PSLVERR = 1'b0; \
  assign APB_``n``_PADDR_MON = 22'h10_0000 + 22'(n); \
  assign APB_``n``_PSEL_MON = MON_APB_``n``_PRESET_N; \
  assign APB_``n``_PENABLE_MON = MON_APB_``n``_PRESET_N; \
  assign APB_``n``_PWRITE_MON = MON_APB_``n``_PRESET_N; \
  assign APB_``n``_PWDATA_MON = 32'h2000_0000 + 32'(n); \
  assign APB_``n``_PRDATA_MON = 32'h3000_0000 + 32'(n); \
  assign APB_``n``_PREADY_MON = MON_APB_``n``_PRESET_N; \
  assign APB_``n``_PSLVERR_MON = MON_APB_``n``_PRESET_N; \
  assign DRAM_``n``_STAT_CATTRIP = 1'b0; \
  assign DRAM_``n``_STAT_TEMP = 7'd40;
  `SHEF_HBM_STACK(0)
  `SHEF_HBM_STACK(1)
`undef SHEF_HBM_STACK

`define SHEF_HBM_PORT(nn, p) \
  assign AXI_``nn``_RDATA_PARITY = '0; \
  shef_hbm_axi3 u_port_``nn ( \
      .clk_i(AXI_``nn``_ACLK), .rst_ni(AXI_``nn``_ARESET_N), .up_i(up), \
      .early_i(early), \
      .aw_id_i(AXI_``nn``_AWID), .aw_addr_i(AXI_``nn``_AWADDR), .aw_len_i(AXI_``nn``_AWLEN), \
      .aw_size_i(AXI_``nn``_AWSIZE), .aw_burst_i(AXI_``nn``_AWBURST), \
      .aw_valid_i(AXI_``nn``_AWVALID), .aw_ready_o(AXI_``nn``_AWREADY), \
      .w_data_i(AXI_``nn``_WDATA), .w_strb_i(AXI_``nn``_WSTRB), \
      .w_parity_i(AXI_``nn``_WDATA_PARITY), .w_last_i(AXI_``nn``_WLAST), \
      .w_valid_i(AXI_``nn``_WVALID), .w_ready_o(AXI_``nn``_WREADY), \
      .b_id_o(AXI_``nn``_BID), .b_resp_o(AXI_``nn``_BRESP), .b_valid_o(AXI_``nn``_BVALID), \
      .b_ready_i(AXI_``nn``_BREADY), \
      .ar_id_i(AXI_``nn``_ARID), .ar_addr_i(AXI_``nn``_ARADDR), .ar_len_i(AXI_``nn``_ARLEN), \
      .ar_size_i(AXI_``nn``_ARSIZE), .ar_burst_i(AXI_``nn``_ARBURST), \
      .ar_valid_i(AXI_``nn``_ARVALID), .ar_ready_o(AXI_``nn``_ARREADY), \
      .r_id_o(AXI_``nn``_RID), .r_data_o(AXI_``nn``_RDATA), .r_resp_o(AXI_``nn``_RRESP), \
      .r_last_o(AXI_``nn``_RLAST), .r_valid_o(AXI_``nn``_RVALID), \
      .r_ready_i(AXI_``nn``_RREADY), \
      .error_o(error[p]), .req_o(req[p]), .rsp_i(rsp[p]) \
  );
  `SHEF_HBM_PORT(00, 0)
  `SHEF_HBM_PORT(01, 1)
  `SHEF_HBM_PORT(02, 2)
  `SHEF_HBM_PORT(03, 3)
`undef SHEF_HBM_PORT

`define SHEF_HBM_REST(nn) \
  assign {AXI_``nn``_ARREADY, AXI_``nn``_RID, AXI_``nn``_RDATA, AXI_``nn``_RDATA_PARITY, \
      AXI_``nn``_RRESP, AXI_``nn``_RLAST, AXI_``nn``_RVALID, AXI_``nn``_AWREADY, \
      AXI_``nn``_WREADY, AXI_``nn``_BID, AXI_``nn``_BRESP, AXI_``nn``_BVALID} = '0;
  `SHEF_HBM_REST(04)
  `SHEF_HBM_REST(05)
  `SHEF_HBM_REST(06)
  `SHEF_HBM_REST(07)
  `SHEF_HBM_REST(08)
  `SHEF_HBM_REST(09)
  `SHEF_HBM_REST(10)
  `SHEF_HBM_REST(11)
  `SHEF_HBM_REST(12)
  `SHEF_HBM_REST(13)
  `SHEF_HBM_REST(14)
  `SHEF_HBM_REST(15)
  `SHEF_HBM_REST(16)
  `SHEF_HBM_REST(17)
  `SHEF_HBM_REST(18)
  `SHEF_HBM_REST(19)
  `SHEF_HBM_REST(20)
  `SHEF_HBM_REST(21)
  `SHEF_HBM_REST(22)
  `SHEF_HBM_REST(23)
  `SHEF_HBM_REST(24)
  `SHEF_HBM_REST(25)
  `SHEF_HBM_REST(26)
  `SHEF_HBM_REST(27)
  `SHEF_HBM_REST(28)
  `SHEF_HBM_REST(29)
  `SHEF_HBM_REST(30)
  `SHEF_HBM_REST(31)
`undef SHEF_HBM_REST
endmodule
`default_nettype wire
