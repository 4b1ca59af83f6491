// shef_h2c in front of the memory ports of shef_dma_core, with flat ports, for tests: region i at
// memory port i mod NPorts, and at each port two masters (acc, dma) in place of Shield and engine.
`include "shef_ports.svh"
`default_nettype none
module shef_h2c_tb
  import shef_pkg::*;
#(
    parameter int unsigned NPorts = 1,
    parameter logic [63:0] CardBytes = 64'h100_0000,
    parameter int unsigned TimeoutCycles = 2000
) (
    input  wire  clk,
    input  wire  rst_n,
    input  wire  hold,
    input  wire  wipe,
    output logic wiped,
    `SHEF_AXI_S_PORTS(h2c,),
    `SHEF_AXI_S_PORTS(acc, [NPorts]),
    `SHEF_AXI_S_PORTS(dma, [NPorts]),
    `SHEF_AXI_M_PORTS(mem, [NPorts])
);
  function automatic region_cfg_t region(input int unsigned i);
    region = '0;
    region.mode = MODE_BYPASS;
    region.base = 64'(i) << 20;
    region.size = 64'h10_0000;
    region.set = 2'(i);
  endfunction
  function automatic set_cfg_t set(input int unsigned i);
    set = '0;
    set.port = 2'(i % NPorts);
  endfunction
  localparam region_cfg_t [3:0] REGIONS = {region(3), region(2), region(1), region(0)};
  localparam set_cfg_t [3:0] SETS = {set(3), set(2), set(1), set(0)};

  axi_req_t [NPorts-1:0] h2c_req;
  axi_rsp_t [NPorts-1:0] h2c_rsp;

  shef_h2c #(
      .CardBytes(CardBytes),
      .TimeoutCycles(TimeoutCycles),
      .NPorts(NPorts),
      .NRegions(4),
      .Regions(REGIONS),
      .NSets(4),
      .Sets(SETS)
  ) u_h2c (
      .clk_i(clk),
      .rst_ni(rst_n),
      .hold_i(hold),
      .wipe_i(wipe),
      .wiped_o(wiped),
      .h2c_req_i(`SHEF_AXI_REQ(h2c,)),
      .h2c_rsp_o(`SHEF_AXI_RSP(h2c,)),
      .mem_req_o(h2c_req),
      .mem_rsp_i(h2c_rsp)
  );

  for (genvar p = 0; p < int'(NPorts); p++) begin : g_mem
    shef_port_mux #(
        .NSets(3),
        .SetNo({2'd2, 2'd1, 2'd0}),
        .First(2)
    ) u_mux (
        .clk_i(clk),
        .rst_ni(rst_n && !hold),
        .set_req_i({h2c_req[p], `SHEF_AXI_REQ(dma, [p]), `SHEF_AXI_REQ(acc, [p])}),
        .set_rsp_o({h2c_rsp[p], `SHEF_AXI_RSP(dma, [p]), `SHEF_AXI_RSP(acc, [p])}),
        .mem_req_o(`SHEF_AXI_REQ(mem, [p])),
        .mem_rsp_i(`SHEF_AXI_RSP(mem, [p]))
    );
  end
endmodule
`default_nettype wire
