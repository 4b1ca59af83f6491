// shef_dma_banks with flat ports, for tests: four regions, region i at memory port i mod NPorts.
// The last one has no tags.
`default_nettype none
module shef_banks_tb
  import shef_pkg::*; #(
  parameter int unsigned NPorts = 4
) (
 input wire clk, input wire rst_n,
 input wire [7:0] acc_awid, input wire [63:0] acc_awaddr, input wire [7:0] acc_awlen,
 input wire [2:0] acc_awsize, input wire [1:0] acc_awburst, input wire acc_awvalid,
 output wire acc_awready,
 input wire [511:0] acc_wdata, input wire [63:0] acc_wstrb, input wire acc_wlast,
 input wire acc_wvalid, output wire acc_wready,
 output wire [7:0] acc_bid, output wire [1:0] acc_bresp, output wire acc_bvalid,
 input wire acc_bready,
 input wire [7:0] acc_arid, input wire [63:0] acc_araddr, input wire [7:0] acc_arlen,
 input wire [2:0] acc_arsize, input wire [1:0] acc_arburst, input wire acc_arvalid,
 output wire acc_arready,
 output wire [7:0] acc_rid, output wire [511:0] acc_rdata, output wire [1:0] acc_rresp,
 output wire acc_rlast, output wire acc_rvalid, input wire acc_rready,
 output wire [7:0] mem0_awid, output wire [63:0] mem0_awaddr, output wire [7:0] mem0_awlen,
 output wire [2:0] mem0_awsize, output wire [1:0] mem0_awburst, output wire mem0_awvalid,
 input wire mem0_awready,
 output wire [511:0] mem0_wdata, output wire [63:0] mem0_wstrb, output wire mem0_wlast,
 output wire mem0_wvalid, input wire mem0_wready,
 input wire [7:0] mem0_bid, input wire [1:0] mem0_bresp, input wire mem0_bvalid,
 output wire mem0_bready,
 output wire [7:0] mem0_arid, output wire [63:0] mem0_araddr, output wire [7:0] mem0_arlen,
 output wire [2:0] mem0_arsize, output wire [1:0] mem0_arburst, output wire mem0_arvalid,
 input wire mem0_arready,
 input wire [7:0] mem0_rid, input wire [511:0] mem0_rdata, input wire [1:0] mem0_rresp,
 input wire mem0_rlast, input wire mem0_rvalid, output wire mem0_rready,
 output wire [7:0] mem1_awid, output wire [63:0] mem1_awaddr, output wire [7:0] mem1_awlen,
 output wire [2:0] mem1_awsize, output wire [1:0] mem1_awburst, output wire mem1_awvalid,
 input wire mem1_awready,
 output wire [511:0] mem1_wdata, output wire [63:0] mem1_wstrb, output wire mem1_wlast,
 output wire mem1_wvalid, input wire mem1_wready,
 input wire [7:0] mem1_bid, input wire [1:0] mem1_bresp, input wire mem1_bvalid,
 output wire mem1_bready,
 output wire [7:0] mem1_arid, output wire [63:0] mem1_araddr, output wire [7:0] mem1_arlen,
 output wire [2:0] mem1_arsize, output wire [1:0] mem1_arburst, output wire mem1_arvalid,
 input wire mem1_arready,
 input wire [7:0] mem1_rid, input wire [511:0] mem1_rdata, input wire [1:0] mem1_rresp,
 input wire mem1_rlast, input wire mem1_rvalid, output wire mem1_rready,
 output wire [7:0] mem2_awid, output wire [63:0] mem2_awaddr, output wire [7:0] mem2_awlen,
 output wire [2:0] mem2_awsize, output wire [1:0] mem2_awburst, output wire mem2_awvalid,
 input wire mem2_awready,
 output wire [511:0] mem2_wdata, output wire [63:0] mem2_wstrb, output wire mem2_wlast,
 output wire mem2_wvalid, input wire mem2_wready,
 input wire [7:0] mem2_bid, input wire [1:0] mem2_bresp, input wire mem2_bvalid,
 output wire mem2_bready,
 output wire [7:0] mem2_arid, output wire [63:0] mem2_araddr, output wire [7:0] mem2_arlen,
 output wire [2:0] mem2_arsize, output wire [1:0] mem2_arburst, output wire mem2_arvalid,
 input wire mem2_arready,
 input wire [7:0] mem2_rid, input wire [511:0] mem2_rdata, input wire [1:0] mem2_rresp,
 input wire mem2_rlast, input wire mem2_rvalid, output wire mem2_rready,
 output wire [7:0] mem3_awid, output wire [63:0] mem3_awaddr, output wire [7:0] mem3_awlen,
 output wire [2:0] mem3_awsize, output wire [1:0] mem3_awburst, output wire mem3_awvalid,
 input wire mem3_awready,
 output wire [511:0] mem3_wdata, output wire [63:0] mem3_wstrb, output wire mem3_wlast,
 output wire mem3_wvalid, input wire mem3_wready,
 input wire [7:0] mem3_bid, input wire [1:0] mem3_bresp, input wire mem3_bvalid,
 output wire mem3_bready,
 output wire [7:0] mem3_arid, output wire [63:0] mem3_araddr, output wire [7:0] mem3_arlen,
 output wire [2:0] mem3_arsize, output wire [1:0] mem3_arburst, output wire mem3_arvalid,
 input wire mem3_arready,
 input wire [7:0] mem3_rid, input wire [511:0] mem3_rdata, input wire [1:0] mem3_rresp,
 input wire mem3_rlast, input wire mem3_rvalid, output wire mem3_rready
);
  function automatic region_cfg_t region(input int unsigned i);
    region = '0;
    region.mode = i == 3 ? MODE_BYPASS : MODE_INPUT;
    region.base = 64'(i) << 20;
    region.size = 64'h1_0000;
    region.tag_base = 64'h80_0000 + (64'(i) << 12);
    region.chunk_log2 = 4'd9;
    region.set = 2'(i);
  endfunction
  function automatic set_cfg_t set(input int unsigned i);
    set = '0;
    set.port = 2'(i % NPorts);
  endfunction
  localparam region_cfg_t [3:0] REGIONS = {region(3), region(2), region(1), region(0)};
  localparam set_cfg_t [3:0] SETS = {set(3), set(2), set(1), set(0)};

  axi_b_t acc_b;
  axi_r_t acc_r;
  assign {acc_bid, acc_bresp} = acc_b;
  assign {acc_rid, acc_rdata, acc_rresp, acc_rlast} = acc_r;
  // the engine always accepts answers
  wire unused = &{acc_bready, acc_rready};
  axi_ax_t [3:0] aw, ar;
  axi_w_t [3:0] w;
  axi_b_t [3:0] b;
  axi_r_t [3:0] r;
  logic [3:0] aw_valid, aw_ready, w_valid, w_ready, b_valid, ar_valid, ar_ready, r_valid;
  assign {mem0_awid, mem0_awaddr, mem0_awlen, mem0_awsize, mem0_awburst, mem0_awvalid,
      aw_ready[0]} = {aw[0], aw_valid[0], mem0_awready};
  assign {mem0_wdata, mem0_wstrb, mem0_wlast, mem0_wvalid, w_ready[0]} =
      {w[0], w_valid[0], mem0_wready};
  assign {b[0], b_valid[0], mem0_bready} = {mem0_bid, mem0_bresp, mem0_bvalid, 1'b1};
  assign {mem0_arid, mem0_araddr, mem0_arlen, mem0_arsize, mem0_arburst, mem0_arvalid,
      ar_ready[0]} = {ar[0], ar_valid[0], mem0_arready};
  assign {r[0], r_valid[0], mem0_rready} =
      {mem0_rid, mem0_rdata, mem0_rresp, mem0_rlast, mem0_rvalid, 1'b1};
  assign {mem1_awid, mem1_awaddr, mem1_awlen, mem1_awsize, mem1_awburst, mem1_awvalid,
      aw_ready[1]} = {aw[1], aw_valid[1], mem1_awready};
  assign {mem1_wdata, mem1_wstrb, mem1_wlast, mem1_wvalid, w_ready[1]} =
      {w[1], w_valid[1], mem1_wready};
  assign {b[1], b_valid[1], mem1_bready} = {mem1_bid, mem1_bresp, mem1_bvalid, 1'b1};
  assign {mem1_arid, mem1_araddr, mem1_arlen, mem1_arsize, mem1_arburst, mem1_arvalid,
      ar_ready[1]} = {ar[1], ar_valid[1], mem1_arready};
  assign {r[1], r_valid[1], mem1_rready} =
      {mem1_rid, mem1_rdata, mem1_rresp, mem1_rlast, mem1_rvalid, 1'b1};
  assign {mem2_awid, mem2_awaddr, mem2_awlen, mem2_awsize, mem2_awburst, mem2_awvalid,
      aw_ready[2]} = {aw[2], aw_valid[2], mem2_awready};
  assign {mem2_wdata, mem2_wstrb, mem2_wlast, mem2_wvalid, w_ready[2]} =
      {w[2], w_valid[2], mem2_wready};
  assign {b[2], b_valid[2], mem2_bready} = {mem2_bid, mem2_bresp, mem2_bvalid, 1'b1};
  assign {mem2_arid, mem2_araddr, mem2_arlen, mem2_arsize, mem2_arburst, mem2_arvalid,
      ar_ready[2]} = {ar[2], ar_valid[2], mem2_arready};
  assign {r[2], r_valid[2], mem2_rready} =
      {mem2_rid, mem2_rdata, mem2_rresp, mem2_rlast, mem2_rvalid, 1'b1};
  assign {mem3_awid, mem3_awaddr, mem3_awlen, mem3_awsize, mem3_awburst, mem3_awvalid,
      aw_ready[3]} = {aw[3], aw_valid[3], mem3_awready};
  assign {mem3_wdata, mem3_wstrb, mem3_wlast, mem3_wvalid, w_ready[3]} =
      {w[3], w_valid[3], mem3_wready};
  assign {b[3], b_valid[3], mem3_bready} = {mem3_bid, mem3_bresp, mem3_bvalid, 1'b1};
  assign {mem3_arid, mem3_araddr, mem3_arlen, mem3_arsize, mem3_arburst, mem3_arvalid,
      ar_ready[3]} = {ar[3], ar_valid[3], mem3_arready};
  assign {r[3], r_valid[3], mem3_rready} =
      {mem3_rid, mem3_rdata, mem3_rresp, mem3_rlast, mem3_rvalid, 1'b1};
  if (NPorts < 4) begin : g_open
    assign {aw[3:NPorts], ar[3:NPorts], w[3:NPorts]} = '0;
    assign {aw_valid[3:NPorts], w_valid[3:NPorts], ar_valid[3:NPorts]} = '0;
  end
  shef_dma_banks #(.NPorts(NPorts), .NRegions(4), .Regions(REGIONS), .NSets(4),
      .Sets(SETS)) i_banks (
    .clk_i(clk), .rst_ni(rst_n),
    .dma_aw_i({acc_awid, acc_awaddr, acc_awlen, acc_awsize, acc_awburst}),
    .dma_aw_valid_i(acc_awvalid), .dma_aw_ready_o(acc_awready),
    .dma_w_i({acc_wdata, acc_wstrb, acc_wlast}), .dma_w_valid_i(acc_wvalid),
    .dma_w_ready_o(acc_wready),
    .dma_b_o(acc_b), .dma_b_valid_o(acc_bvalid),
    .dma_ar_i({acc_arid, acc_araddr, acc_arlen, acc_arsize, acc_arburst}),
    .dma_ar_valid_i(acc_arvalid), .dma_ar_ready_o(acc_arready),
    .dma_r_o(acc_r), .dma_r_valid_o(acc_rvalid),
    .mem_aw_o(aw[NPorts-1:0]), .mem_aw_valid_o(aw_valid[NPorts-1:0]),
    .mem_aw_ready_i(aw_ready[NPorts-1:0]),
    .mem_w_o(w[NPorts-1:0]), .mem_w_valid_o(w_valid[NPorts-1:0]),
    .mem_w_ready_i(w_ready[NPorts-1:0]),
    .mem_b_i(b[NPorts-1:0]), .mem_b_valid_i(b_valid[NPorts-1:0]),
    .mem_ar_o(ar[NPorts-1:0]), .mem_ar_valid_o(ar_valid[NPorts-1:0]),
    .mem_ar_ready_i(ar_ready[NPorts-1:0]),
    .mem_r_i(r[NPorts-1:0]), .mem_r_valid_i(r_valid[NPorts-1:0]));
endmodule
`default_nettype wire
