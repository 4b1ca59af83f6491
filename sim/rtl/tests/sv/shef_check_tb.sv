// The protocol checker alone: the bench drives both sides of every bus that it watches.
`include "shef_ports.svh"
`include "shef_check_ports.svh"
`default_nettype none
module shef_check_tb
  import shef_pkg::*;
(
    input  wire logic clk,
    input  wire logic rst_n,
    `SHEF_AXI_PORTS(acc, [2], input wire logic, input wire logic),
    `SHEF_AXIL_PORTS(reg, 16, input wire logic, input wire logic),
    input  wire logic irq,
    input  wire logic clear,
    input  wire logic cleared,
    input  wire logic epoch,
    input  wire logic [3:0] epoch_region,
    `SHEF_CHECK_PORTS
);
  function automatic region_cfg_t region(input region_mode_e mode, input logic [63:0] base,
                                         input logic [63:0] size, input logic [3:0] chunk_log2,
                                         input logic [1:0] set);
    region_cfg_t r;
    r = '0;
    r.mode = mode;
    r.base = base;
    r.size = size;
    r.chunk_log2 = chunk_log2;
    r.set = set;
    return r;
  endfunction
  // The second port reaches the last region only.
  localparam region_cfg_t [4:0] REGIONS = {
    region(MODE_COUNTED, 64'h40_0000, 64'h10_0000, 4'd12, 2'd1),
    region(MODE_OUTPUT, 64'h30_0000, 64'h10_0000, 4'd12, 2'd0),
    region(MODE_OUTPUT, 64'h20_0000, 64'h10_0000, 4'd9, 2'd0),
    region(MODE_COUNTED, 64'h10_0000, 64'h10_0000, 4'd9, 2'd0),
    region(MODE_INPUT, 64'h0, 64'h10_0000, 4'd12, 2'd0)
  };

  function automatic set_cfg_t set(input logic [1:0] acc);
    set_cfg_t s;
    s = '0;
    s.acc = acc;
    return s;
  endfunction
  localparam set_cfg_t [1:0] SETS = {set(2'd1), set(2'd0)};

  axi_req_t [1:0] acc_req;
  axi_rsp_t [1:0] acc_rsp;
  for (genvar p = 0; p < 2; p++) begin : g_acc
    assign acc_req[p] = `SHEF_AXI_REQ(acc, [p]);
    assign acc_rsp[p] = `SHEF_AXI_RSP(acc, [p]);
  end

  shef_check #(
      .NAcc(2), .NRegions(5), .Regions(REGIONS), .NSets(2), .Sets(SETS)
  ) u_check (
      .clk_i(clk),
      .rst_ni(rst_n),
      .acc_req_i(acc_req),
      .acc_rsp_i(acc_rsp),
      .reg_req_i(`SHEF_AXIL_REQ(reg)),
      .reg_rsp_i(`SHEF_AXIL_RSP(reg)),
      .irq_i(irq),
      .clear_i(clear),
      .cleared_i(cleared),
      .close_i(chk_close),
      .epoch_i(epoch),
      .epoch_region_i(epoch_region),
      `SHEF_CHECK_CONNECT
  );
endmodule
`default_nettype wire
