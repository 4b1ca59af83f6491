// shef_cache with flat ports, for tests: a small cache over two writable regions and one read-only
// region.
`include "shef_ports.svh"
`default_nettype none
module shef_cache_tb
  import shef_pkg::*; #(
  parameter int unsigned LineBytes = 64,
  parameter int unsigned Bytes = 8192
) (
 input wire clk, input wire rst_n,
 `SHEF_AXI_S_PORTS(acc,),
 `SHEF_AXI_M_PORTS(mem0,),
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

  fault_t fault;
  assign fault_region = fault.region;
  assign fault_chunk = fault.chunk[7:0];
  logic unused;
  assign unused = ^fault;
  // the set's side of a command: done in the next cycle
  logic set_cmd_valid, set_done_q;
  always_ff @(posedge clk) set_done_q <= rst_n && set_cmd_valid && !set_done_q;

  shef_cache #(.NRegions(3), .Regions(REGIONS), .Bytes(Bytes), .LineBytes(LineBytes)) u_cache (
    .clk_i(clk), .rst_ni(rst_n),
    .acc_req_i(`SHEF_AXI_REQ(acc,)), .acc_rsp_o(`SHEF_AXI_RSP(acc,)),
    .set_req_o(`SHEF_AXI_REQ(mem0,)), .set_rsp_i(`SHEF_AXI_RSP(mem0,)),
    .enable_i(enable), .stop_i(stop), .region_fault_i(region_fault),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_i(set_cmd_e'(cmd)),
    .cmd_done_o(cmd_done), .cmd_err_o(cmd_err),
    .set_cmd_valid_o(set_cmd_valid), .set_cmd_ready_i(1'b1), .set_cmd_done_i(set_done_q),
    .set_cmd_err_i(1'b0),
    .fault_valid_o(fault_valid), .fault_ready_i(1'b1), .fault_o(fault), .halted_o(halted),
    .event_o(seen), .idle_o(idle), .wipe_i(wipe), .wipe_done_o(wipe_done));
endmodule
`default_nettype wire
