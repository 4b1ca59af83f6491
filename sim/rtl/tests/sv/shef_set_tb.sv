// shef_set with flat ports, for tests: regions of all modes and three chunk sizes.
`include "shef_ports.svh"
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
 `SHEF_AXI_S_PORTS(acc,), input wire acc_wwaits,
 `SHEF_AXI_M_PORTS(mem0,),
 input wire key_valid, output wire key_ready, input wire [3:0] key_region, input wire key_node,
 input wire [255:0] key,
 input wire enable, input wire stop,
 input wire cmd_valid, output wire cmd_ready, input wire [1:0] cmd, input wire [3:0] cmd_region,
 input wire [47:0] cmd_epoch, output wire cmd_done, output wire cmd_err,
 input wire epoch_we, input wire [3:0] epoch_region, input wire [47:0] epoch,
 output wire fault_valid, output wire [3:0] fault_kind, output wire [7:0] fault_region,
 output wire [39:0] fault_chunk, output wire [47:0] fault_version,
 output wire refusal_valid, output wire [3:0] refusal_kind, output wire [7:0] refusal_region,
 output wire [63:0] refusal_addr,
 input wire [3:0] stat_region, output wire [47:0] stat_epoch, output wire [31:0] stat_written,
 input wire [3:0] map_region, input wire [25:0] map_word, output wire [31:0] map_bits,
 output wire [15:0] region_fault, input wire [3:0] cnt_sel, output wire [47:0] cnt,
 output wire idle, input wire wipe, output wire wipe_done
);
  // by place: 0: input 4 KiB AES-256, 1: input 512 B AES-128, 2: output 512 B AES-256, 3: output 4
  // KiB AES-256, 4: input 64 B, 5: output 64 B AES-128, 6: counted 512 B, 7: counted 64 B AES-128,
  // 8: counted 4 KiB with 48-bit counters, 9: bypass 512 B, 10: bypass 4 KiB, 11: tree 512 B, 12:
  // tree 4 KiB AES-128, 13: tree 64 B with two levels in memory; streams are prefetched in 0, 7 and
  // 11
  localparam region_cfg_t [13:0] REGIONS = {
    region_cfg_t'{id: 8'd13, mode: MODE_TREE, base: 64'h1000_0000, size: 64'h800_0000,
    tag_base: 64'h2000_0000, chunk_log2: 4'd6, key256: 1'b1, set: 2'd0, node_base: 64'h3000_0000,
    prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd12, mode: MODE_TREE, base: 64'h170_0000, size: 64'h10_0000,
    tag_base: 64'h80b_0000, chunk_log2: 4'd12, key256: 1'b0, set: 2'd0, node_base: 64'h80c_0000,
    prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd9, mode: MODE_TREE, base: 64'h160_0000, size: 64'h10_0000,
    tag_base: 64'h809_0000, chunk_log2: 4'd9, key256: 1'b1, set: 2'd0, node_base: 64'h80a_0000,
    prefetch: 4'd3, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd11, mode: MODE_BYPASS, base: 64'h150_0000, size: 64'h10_0000,
    tag_base: 64'h0, chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd10, mode: MODE_BYPASS, base: 64'h140_0000, size: 64'h10_0000,
    tag_base: 64'h0, chunk_log2: 4'd9, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd8, mode: MODE_COUNTED, base: 64'h130_0000, size: 64'h10_0000,
    tag_base: 64'h808_0000, chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b1},
    region_cfg_t'{id: 8'd6, mode: MODE_COUNTED, base: 64'h120_0000, size: 64'h1_0000,
    tag_base: 64'h807_0000, chunk_log2: 4'd6, key256: 1'b0, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd4, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd5, mode: MODE_COUNTED, base: 64'h110_0000, size: 64'h10_0000,
    tag_base: 64'h806_0000, chunk_log2: 4'd9, key256: 1'b1, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd7, mode: MODE_OUTPUT, base: 64'h50_0000, size: 64'h1_0000,
    tag_base: 64'h80_5000_0, chunk_log2: 4'd6,  key256: 1'b0, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd4, mode: MODE_INPUT,  base: 64'h40_0000, size: 64'h1_0000,
    tag_base: 64'h80_4000_0, chunk_log2: 4'd6,  key256: 1'b1, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd3, mode: MODE_OUTPUT, base: 64'h30_0000, size: 64'h10_0000,
    tag_base: 64'h80_3000_0, chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd2, mode: MODE_OUTPUT, base: 64'h20_0000, size: 64'h10_0000,
    tag_base: 64'h80_2000_0, chunk_log2: 4'd9,  key256: 1'b1, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd1, mode: MODE_INPUT,  base: 64'h10_0000, size: 64'h10_0000,
    tag_base: 64'h80_1000_0, chunk_log2: 4'd9,  key256: 1'b0, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b0},
    region_cfg_t'{id: 8'd0, mode: MODE_INPUT,  base: 64'h00_0000, size: 64'h10_0000,
    tag_base: 64'h80_0000_0, chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd5, wide_counter: 1'b0}};
  fault_t fault;
  refusal_t refusal;
  assign {fault_kind, fault_region, fault_chunk, fault_version} = fault;
  assign {refusal_kind, refusal_region, refusal_addr} = refusal;
  shef_set #(.NRegions(14), .Regions(REGIONS), .Lanes(Lanes), .TimeoutCycles(TimeoutCycles),
      .KeyLimitLog2(KeyLimitLog2), .CountW(CountW), .NodeSets(NodeSets),
      .OnFault(FreezeRegion ? ON_FAULT_REGION : ON_FAULT_SHIELD)) u_set (
    .clk_i(clk), .rst_ni(rst_n),
    .acc_req_i(`SHEF_AXI_REQ(acc,)), .acc_w_waits_i(acc_wwaits), .acc_rsp_o(`SHEF_AXI_RSP(acc,)),
    .mem_req_o(`SHEF_AXI_REQ(mem0,)), .mem_rsp_i(`SHEF_AXI_RSP(mem0,)),
    .key_valid_i(key_valid), .key_ready_o(key_ready), .key_region_i(key_region),
    .key_node_i(key_node), .key_i(key), .enable_i(enable), .stop_i(stop),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_i(set_cmd_e'(cmd)),
    .cmd_region_i(cmd_region), .cmd_epoch_i(cmd_epoch), .cmd_done_o(cmd_done), .cmd_err_o(cmd_err),
    .epoch_we_i(epoch_we), .epoch_region_i(epoch_region), .epoch_i(epoch),
    .fault_valid_o(fault_valid), .fault_o(fault), .refusal_valid_o(refusal_valid),
    .refusal_o(refusal),
    .stat_region_i(stat_region), .epoch_o(stat_epoch), .written_o(stat_written),
    .map_region_i(map_region), .map_word_i(map_word), .map_o(map_bits),
    .region_fault_o(region_fault), .front_i('0), .cnt_sel_i(cnt_sel), .cnt_o(cnt), .idle_o(idle),
    .wipe_i(wipe), .wipe_done_o(wipe_done));
endmodule
`default_nettype wire
