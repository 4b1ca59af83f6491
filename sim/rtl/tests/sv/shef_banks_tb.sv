// shef_dma_banks with flat ports, for tests: four regions, region i at memory port i mod NPorts.
// The last one has no tags.
`include "shef_ports.svh"
`default_nettype none
module shef_banks_tb
  import shef_pkg::*; #(
  parameter int unsigned NPorts = 4
) (
 input wire clk, input wire rst_n,
 `SHEF_AXI_S_PORTS(acc,),
 `SHEF_AXI_M_PORTS(mem, [NPorts])
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

  axi_req_t req;
  axi_req_t [NPorts-1:0] mem_req;
  axi_rsp_t [NPorts-1:0] mem_rsp;
  always_comb begin
    req = `SHEF_AXI_REQ(acc,);
    // the engine always accepts answers
    {req.b_ready, req.r_ready} = '1;
  end
  for (genvar p = 0; p < int'(NPorts); p++) begin : g_mem
    assign `SHEF_AXI_REQ(mem, [p]) = mem_req[p];
    assign mem_rsp[p] = `SHEF_AXI_RSP(mem, [p]);
  end
  shef_dma_banks #(.NPorts(NPorts), .NRegions(4), .Regions(REGIONS), .NSets(4),
      .Sets(SETS)) u_banks (
    .clk_i(clk), .rst_ni(rst_n),
    .dma_req_i(req), .dma_rsp_o(`SHEF_AXI_RSP(acc,)), .mem_req_o(mem_req), .mem_rsp_i(mem_rsp));
endmodule
`default_nettype wire
