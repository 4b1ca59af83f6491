// Memory controller of AWS F2 in simulation: its AXI4 port is a port of the top.
//
// The port list is that of the HDK. The identifier's low ten bits reach the top.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
module sh_ddr #(
    parameter DDR_PRESENT = 1,
    parameter DDR_IO = 1,
    parameter DATA_WIDTH = 512,
    parameter ADDR_WIDTH = 64,
    parameter ID_WIDTH = 16,
    parameter LEN_WIDTH = 8,
    parameter AXUSER_WIDTH = 1
) (
    input  wire logic clk,
    input  wire logic rst_n,
    input  wire logic stat_clk,
    input  wire logic stat_rst_n,
    input  wire logic CLK_DIMM_DP,
    input  wire logic CLK_DIMM_DN,
    output logic M_ACT_N,
    output logic [17:0] M_MA,
    output logic [1:0] M_BA,
    output logic [1:0] M_BG,
    output logic [1:0] M_CKE,
    output logic [1:0] M_ODT,
    output logic [1:0] M_CS_N,
    output logic [1:0] M_CLK_DN,
    output logic [1:0] M_CLK_DP,
    output logic M_PAR,
    inout  wire [63:0] M_DQ,
    inout  wire [7:0] M_ECC,
    inout  wire [17:0] M_DQS_DP,
    inout  wire [17:0] M_DQS_DN,
    output logic cl_RST_DIMM_N,
    input  wire logic [ID_WIDTH-1:0] cl_sh_ddr_axi_awid,
    input  wire logic [ADDR_WIDTH-1:0] cl_sh_ddr_axi_awaddr,
    input  wire logic [LEN_WIDTH-1:0] cl_sh_ddr_axi_awlen,
    input  wire logic [2:0] cl_sh_ddr_axi_awsize,
    input  wire logic cl_sh_ddr_axi_awvalid,
    input  wire logic [1:0] cl_sh_ddr_axi_awburst,
    input  wire logic cl_sh_ddr_axi_awuser,
    output logic cl_sh_ddr_axi_awready,
    input  wire logic [DATA_WIDTH-1:0] cl_sh_ddr_axi_wdata,
    input  wire logic [(DATA_WIDTH>>3)-1:0] cl_sh_ddr_axi_wstrb,
    input  wire logic cl_sh_ddr_axi_wlast,
    input  wire logic cl_sh_ddr_axi_wvalid,
    output logic cl_sh_ddr_axi_wready,
    output logic [ID_WIDTH-1:0] cl_sh_ddr_axi_bid,
    output logic [1:0] cl_sh_ddr_axi_bresp,
    output logic cl_sh_ddr_axi_bvalid,
    input  wire logic cl_sh_ddr_axi_bready,
    input  wire logic [ID_WIDTH-1:0] cl_sh_ddr_axi_arid,
    input  wire logic [ADDR_WIDTH-1:0] cl_sh_ddr_axi_araddr,
    input  wire logic [LEN_WIDTH-1:0] cl_sh_ddr_axi_arlen,
    input  wire logic [2:0] cl_sh_ddr_axi_arsize,
    input  wire logic cl_sh_ddr_axi_arvalid,
    input  wire logic [1:0] cl_sh_ddr_axi_arburst,
    input  wire logic cl_sh_ddr_axi_aruser,
    output logic cl_sh_ddr_axi_arready,
    output logic [ID_WIDTH-1:0] cl_sh_ddr_axi_rid,
    output logic [DATA_WIDTH-1:0] cl_sh_ddr_axi_rdata,
    output logic [1:0] cl_sh_ddr_axi_rresp,
    output logic cl_sh_ddr_axi_rlast,
    output logic cl_sh_ddr_axi_rvalid,
    input  wire logic cl_sh_ddr_axi_rready,
    input  wire logic [7:0] sh_ddr_stat_bus_addr,
    input  wire logic [31:0] sh_ddr_stat_bus_wdata,
    input  wire logic sh_ddr_stat_bus_wr,
    input  wire logic sh_ddr_stat_bus_rd,
    output logic sh_ddr_stat_bus_ack,
    output logic [31:0] sh_ddr_stat_bus_rdata,
    output logic [7:0] ddr_sh_stat_int,
    output logic sh_cl_ddr_is_ready
);
  assign cl_sh_ddr_axi_awready = $root.shef_f2_top.ddr_awready;
  assign cl_sh_ddr_axi_wready = $root.shef_f2_top.ddr_wready;
  assign cl_sh_ddr_axi_bid = 16'($root.shef_f2_top.ddr_bid);
  assign cl_sh_ddr_axi_bresp = $root.shef_f2_top.ddr_bresp;
  assign cl_sh_ddr_axi_bvalid = $root.shef_f2_top.ddr_bvalid;
  assign cl_sh_ddr_axi_arready = $root.shef_f2_top.ddr_arready;
  assign cl_sh_ddr_axi_rid = 16'($root.shef_f2_top.ddr_rid);
  assign cl_sh_ddr_axi_rdata = $root.shef_f2_top.ddr_rdata;
  assign cl_sh_ddr_axi_rresp = $root.shef_f2_top.ddr_rresp;
  assign cl_sh_ddr_axi_rlast = $root.shef_f2_top.ddr_rlast;
  assign cl_sh_ddr_axi_rvalid = $root.shef_f2_top.ddr_rvalid;
  assign sh_cl_ddr_is_ready = rst_n && $root.shef_f2_top.ddr_ready;

  // Statistics: acknowledged in the next cycle.
  logic ack_q;
  always_ff @(posedge stat_clk) ack_q <= stat_rst_n && (sh_ddr_stat_bus_wr || sh_ddr_stat_bus_rd);
  assign sh_ddr_stat_bus_ack = ack_q;
  assign sh_ddr_stat_bus_rdata = '0;
  assign ddr_sh_stat_int = '0;
endmodule
`default_nettype wire
