// shef_set with flat ports, for tests: regions of all modes and three chunk sizes.
`default_nettype none
module shef_set_tb
  import shef_pkg::*; #(
  parameter int unsigned Lanes = 4,
  parameter int unsigned TimeoutCycles = 600,
  parameter int unsigned KeyLimitLog2 = 48,
  parameter int unsigned CountW = 36,
  parameter int unsigned NodeSets = 128,
  parameter bit FreezeRegion = 1'b0
) (
 input wire clk, input wire rst_n,
 input wire [7:0] acc_awid, input wire [63:0] acc_awaddr, input wire [7:0] acc_awlen, input wire [2:0] acc_awsize, input wire [1:0] acc_awburst, input wire acc_awvalid, output wire acc_awready,
 input wire [511:0] acc_wdata, input wire [63:0] acc_wstrb, input wire acc_wlast, input wire acc_wvalid, output wire acc_wready,
 output wire [7:0] acc_bid, output wire [1:0] acc_bresp, output wire acc_bvalid, input wire acc_bready,
 input wire [7:0] acc_arid, input wire [63:0] acc_araddr, input wire [7:0] acc_arlen, input wire [2:0] acc_arsize, input wire [1:0] acc_arburst, input wire acc_arvalid, output wire acc_arready,
 output wire [7:0] acc_rid, output wire [511:0] acc_rdata, output wire [1:0] acc_rresp, output wire acc_rlast, output wire acc_rvalid, input wire acc_rready,
 output wire [7:0] mem0_awid, output wire [63:0] mem0_awaddr, output wire [7:0] mem0_awlen, output wire [2:0] mem0_awsize, output wire [1:0] mem0_awburst, output wire mem0_awvalid, input wire mem0_awready,
 output wire [511:0] mem0_wdata, output wire [63:0] mem0_wstrb, output wire mem0_wlast, output wire mem0_wvalid, input wire mem0_wready,
 input wire [7:0] mem0_bid, input wire [1:0] mem0_bresp, input wire mem0_bvalid, output wire mem0_bready,
 output wire [7:0] mem0_arid, output wire [63:0] mem0_araddr, output wire [7:0] mem0_arlen, output wire [2:0] mem0_arsize, output wire [1:0] mem0_arburst, output wire mem0_arvalid, input wire mem0_arready,
 input wire [7:0] mem0_rid, input wire [511:0] mem0_rdata, input wire [1:0] mem0_rresp, input wire mem0_rlast, input wire mem0_rvalid, output wire mem0_rready,
 input wire key_valid, output wire key_ready, input wire [3:0] key_region, input wire key_node, input wire [255:0] key,
 input wire enable, input wire stop,
 input wire cmd_valid, output wire cmd_ready, input wire [1:0] cmd, input wire [3:0] cmd_region, input wire [47:0] cmd_epoch, output wire cmd_done, output wire cmd_err,
 input wire epoch_we, input wire [3:0] epoch_region, input wire [47:0] epoch,
 output wire fault_valid, output wire [3:0] fault_kind, output wire [7:0] fault_region, output wire [39:0] fault_chunk, output wire [47:0] fault_version,
 output wire refusal_valid, output wire [3:0] refusal_kind, output wire [7:0] refusal_region, output wire [63:0] refusal_addr,
 input wire [3:0] stat_region, output wire [47:0] stat_epoch, output wire [31:0] stat_written,
 input wire [3:0] map_region, input wire [25:0] map_word, output wire [31:0] map_bits,
 output wire [15:0] region_fault, input wire [3:0] cnt_sel, output wire [47:0] cnt,
 output wire idle, input wire wipe, output wire wipe_done
);
  // by place: 0: input 4 KiB AES-256, 1: input 512 B AES-128, 2: output 512 B AES-256, 3: output 4
  // KiB AES-256, 4: input 64 B, 5: output 64 B AES-128, 6: counted 512 B, 7: counted 64 B AES-128,
  // 8: counted 4 KiB with 48-bit counters, 9: bypass 512 B, 10: bypass 4 KiB, 11: tree 512 B, 12:
  // tree 4 KiB AES-128, 13: tree 64 B with two levels in memory; streams are fetched ahead in 0, 7
  // and 11
  localparam region_cfg_t [13:0] REGIONS = {
    region_cfg_t'{id: 8'd13, mode: MODE_TREE, base: 64'h1000_0000, size: 64'h800_0000, tag_base: 64'h2000_0000, chunk_log2: 4'd6, key256: 1'b1, set: 2'd0, node_base: 64'h3000_0000, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd12, mode: MODE_TREE, base: 64'h170_0000, size: 64'h10_0000, tag_base: 64'h80b_0000, chunk_log2: 4'd12, key256: 1'b0, set: 2'd0, node_base: 64'h80c_0000, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd9, mode: MODE_TREE, base: 64'h160_0000, size: 64'h10_0000, tag_base: 64'h809_0000, chunk_log2: 4'd9, key256: 1'b1, set: 2'd0, node_base: 64'h80a_0000, prefetch: 4'd3, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd11, mode: MODE_BYPASS, base: 64'h150_0000, size: 64'h10_0000, tag_base: 64'h0, chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd10, mode: MODE_BYPASS, base: 64'h140_0000, size: 64'h10_0000, tag_base: 64'h0, chunk_log2: 4'd9, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd8, mode: MODE_COUNTED, base: 64'h130_0000, size: 64'h10_0000, tag_base: 64'h808_0000, chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b1},
    region_cfg_t'{id: 8'd6, mode: MODE_COUNTED, base: 64'h120_0000, size: 64'h1_0000, tag_base: 64'h807_0000, chunk_log2: 4'd6, key256: 1'b0, set: 2'd0, node_base: 64'h0, prefetch: 4'd4, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd5, mode: MODE_COUNTED, base: 64'h110_0000, size: 64'h10_0000, tag_base: 64'h806_0000, chunk_log2: 4'd9, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd7, mode: MODE_OUTPUT, base: 64'h50_0000, size: 64'h1_0000, tag_base: 64'h80_5000_0, chunk_log2: 4'd6,  key256: 1'b0, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd4, mode: MODE_INPUT,  base: 64'h40_0000, size: 64'h1_0000, tag_base: 64'h80_4000_0, chunk_log2: 4'd6,  key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd3, mode: MODE_OUTPUT, base: 64'h30_0000, size: 64'h10_0000, tag_base: 64'h80_3000_0, chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd2, mode: MODE_OUTPUT, base: 64'h20_0000, size: 64'h10_0000, tag_base: 64'h80_2000_0, chunk_log2: 4'd9,  key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd1, mode: MODE_INPUT,  base: 64'h10_0000, size: 64'h10_0000, tag_base: 64'h80_1000_0, chunk_log2: 4'd9,  key256: 1'b0, set: 2'd0, node_base: 64'h0, prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd0, mode: MODE_INPUT,  base: 64'h00_0000, size: 64'h10_0000, tag_base: 64'h80_0000_0, chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd5, wide_counter: 1'b0}};
  axi_ax_t mem_aw, mem_ar; axi_w_t mem_w; axi_b_t acc_b; axi_r_t acc_r; fault_t fault; refusal_t refusal;
  assign {mem0_awid, mem0_awaddr, mem0_awlen, mem0_awsize, mem0_awburst} = mem_aw;
  assign {mem0_arid, mem0_araddr, mem0_arlen, mem0_arsize, mem0_arburst} = mem_ar;
  assign {mem0_wdata, mem0_wstrb, mem0_wlast} = mem_w;
  assign {acc_bid, acc_bresp} = acc_b;
  assign {acc_rid, acc_rdata, acc_rresp, acc_rlast} = acc_r;
  assign {fault_kind, fault_region, fault_chunk, fault_version} = fault;
  assign {refusal_kind, refusal_region, refusal_addr} = refusal;
  shef_set #(.NRegions(14), .Regions(REGIONS), .Lanes(Lanes), .TimeoutCycles(TimeoutCycles), .KeyLimitLog2(KeyLimitLog2), .CountW(CountW), .NodeSets(NodeSets), .OnFault(FreezeRegion ? ON_FAULT_REGION : ON_FAULT_SHIELD)) i_set (
    .clk_i(clk), .rst_ni(rst_n),
    .acc_aw_i({acc_awid, acc_awaddr, acc_awlen, acc_awsize, acc_awburst}), .acc_aw_valid_i(acc_awvalid), .acc_aw_ready_o(acc_awready),
    .acc_w_i({acc_wdata, acc_wstrb, acc_wlast}), .acc_w_valid_i(acc_wvalid), .acc_w_ready_o(acc_wready),
    .acc_b_o(acc_b), .acc_b_valid_o(acc_bvalid), .acc_b_ready_i(acc_bready),
    .acc_ar_i({acc_arid, acc_araddr, acc_arlen, acc_arsize, acc_arburst}), .acc_ar_valid_i(acc_arvalid), .acc_ar_ready_o(acc_arready),
    .acc_r_o(acc_r), .acc_r_valid_o(acc_rvalid), .acc_r_ready_i(acc_rready),
    .mem_aw_o(mem_aw), .mem_aw_valid_o(mem0_awvalid), .mem_aw_ready_i(mem0_awready),
    .mem_w_o(mem_w), .mem_w_valid_o(mem0_wvalid), .mem_w_ready_i(mem0_wready),
    .mem_b_i({mem0_bid, mem0_bresp}), .mem_b_valid_i(mem0_bvalid), .mem_b_ready_o(mem0_bready),
    .mem_ar_o(mem_ar), .mem_ar_valid_o(mem0_arvalid), .mem_ar_ready_i(mem0_arready),
    .mem_r_i({mem0_rid, mem0_rdata, mem0_rresp, mem0_rlast}), .mem_r_valid_i(mem0_rvalid), .mem_r_ready_o(mem0_rready),
    .key_valid_i(key_valid), .key_ready_o(key_ready), .key_region_i(key_region), .key_node_i(key_node), .key_i(key), .enable_i(enable), .stop_i(stop),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_i(set_cmd_e'(cmd)), .cmd_region_i(cmd_region), .cmd_epoch_i(cmd_epoch), .cmd_done_o(cmd_done), .cmd_err_o(cmd_err),
    .epoch_we_i(epoch_we), .epoch_region_i(epoch_region), .epoch_i(epoch),
    .fault_valid_o(fault_valid), .fault_o(fault), .refusal_valid_o(refusal_valid), .refusal_o(refusal),
    .stat_region_i(stat_region), .epoch_o(stat_epoch), .written_o(stat_written),
    .map_region_i(map_region), .map_word_i(map_word), .map_o(map_bits), .region_fault_o(region_fault), .front_i('0), .cnt_sel_i(cnt_sel), .cnt_o(cnt), .idle_o(idle), .wipe_i(wipe), .wipe_done_o(wipe_done));
endmodule
`default_nettype wire
