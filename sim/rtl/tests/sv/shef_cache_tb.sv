// shef_cache with flat ports, for tests: a small cache over two writable regions and one read-only
// region.
`default_nettype none
module shef_cache_tb
  import shef_pkg::*; #(
  parameter int unsigned LineBytes = 64,
  parameter int unsigned Bytes = 8192
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
 input wire enable, input wire stop, input wire [15:0] region_fault,
 input wire cmd_valid, output wire cmd_ready, input wire [1:0] cmd, output wire cmd_done,
 output wire cmd_err,
 output wire fault_valid, output wire [7:0] fault_region, output wire [7:0] fault_chunk,
 output wire halted,
 output wire [5:0] seen, output wire idle, input wire wipe, output wire wipe_done
);
  function automatic region_cfg_t region(input logic [7:0] id, input region_mode_e mode,
      input logic [63:0] base);
    region_cfg_t r;
    r = '0;
    r.id = id;
    r.mode = mode;
    r.base = base;
    r.size = 64'h1_0000;
    r.chunk_log2 = 4'($clog2(LineBytes));
    r.key256 = 1'b1;
    return r;
  endfunction
  localparam region_cfg_t [2:0] REGIONS = {
    region(8'd2, MODE_INPUT, 64'h30_0000), region(8'd1, MODE_COUNTED, 64'h20_0000),
    region(8'd0, MODE_COUNTED, 64'h10_0000)};

  axi_ax_t mem_aw, mem_ar; axi_w_t mem_w; axi_b_t acc_b; axi_r_t acc_r;
  assign {mem0_awid, mem0_awaddr, mem0_awlen, mem0_awsize, mem0_awburst} = mem_aw;
  assign {mem0_arid, mem0_araddr, mem0_arlen, mem0_arsize, mem0_arburst} = mem_ar;
  assign {mem0_wdata, mem0_wstrb, mem0_wlast} = mem_w;
  assign {acc_bid, acc_bresp} = acc_b;
  assign {acc_rid, acc_rdata, acc_rresp, acc_rlast} = acc_r;
  fault_t fault;
  assign fault_region = fault.region;
  assign fault_chunk = fault.chunk[7:0];
  logic unused;
  assign unused = ^fault;
  // the set's side of a command: done in the next cycle
  logic set_cmd_valid, set_done_q;
  always_ff @(posedge clk) set_done_q <= rst_n && set_cmd_valid && !set_done_q;

  shef_cache #(.NRegions(3), .Regions(REGIONS), .Bytes(Bytes), .LineBytes(LineBytes)) i_cache (
    .clk_i(clk), .rst_ni(rst_n),
    .acc_aw_i({acc_awid, acc_awaddr, acc_awlen, acc_awsize, acc_awburst}),
    .acc_aw_valid_i(acc_awvalid), .acc_aw_ready_o(acc_awready),
    .acc_w_i({acc_wdata, acc_wstrb, acc_wlast}), .acc_w_valid_i(acc_wvalid),
    .acc_w_ready_o(acc_wready),
    .acc_b_o(acc_b), .acc_b_valid_o(acc_bvalid), .acc_b_ready_i(acc_bready),
    .acc_ar_i({acc_arid, acc_araddr, acc_arlen, acc_arsize, acc_arburst}),
    .acc_ar_valid_i(acc_arvalid), .acc_ar_ready_o(acc_arready),
    .acc_r_o(acc_r), .acc_r_valid_o(acc_rvalid), .acc_r_ready_i(acc_rready),
    .set_aw_o(mem_aw), .set_aw_valid_o(mem0_awvalid), .set_aw_ready_i(mem0_awready),
    .set_w_o(mem_w), .set_w_valid_o(mem0_wvalid), .set_w_ready_i(mem0_wready),
    .set_b_i({mem0_bid, mem0_bresp}), .set_b_valid_i(mem0_bvalid), .set_b_ready_o(mem0_bready),
    .set_ar_o(mem_ar), .set_ar_valid_o(mem0_arvalid), .set_ar_ready_i(mem0_arready),
    .set_r_i({mem0_rid, mem0_rdata, mem0_rresp, mem0_rlast}), .set_r_valid_i(mem0_rvalid),
    .set_r_ready_o(mem0_rready),
    .enable_i(enable), .stop_i(stop), .region_fault_i(region_fault),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_i(set_cmd_e'(cmd)),
    .cmd_done_o(cmd_done), .cmd_err_o(cmd_err),
    .set_cmd_valid_o(set_cmd_valid), .set_cmd_ready_i(1'b1), .set_cmd_done_i(set_done_q),
    .set_cmd_err_i(1'b0),
    .fault_valid_o(fault_valid), .fault_ready_i(1'b1), .fault_o(fault), .halted_o(halted),
    .event_o(seen), .idle_o(idle), .wipe_i(wipe), .wipe_done_o(wipe_done));
endmodule
`default_nettype wire
