// The memory port of an address: that of the region whose data or tags are there, and the first for
// all other addresses (nodes of trees among them). Combinational.
`default_nettype none
module shef_dma_port
  import shef_pkg::*;
#(
    parameter int unsigned NPorts = 2,
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [(NRegions == 0 ? 1 : NRegions)-1:0] Regions = '0,
    parameter int unsigned NSets = 1,
    parameter set_cfg_t [(NSets == 0 ? 1 : NSets)-1:0] Sets = '0,
    localparam int unsigned PW = (NPorts > 1) ? $clog2(NPorts) : 1
) (
    input  wire  [63:0]   addr_i,
    output logic [PW-1:0] port_o
);
  if (NPorts == 1) begin : g_one
    assign port_o = '0;
    logic unused;
    assign unused = ^{addr_i, Regions, Sets};
  end else begin : g_many
    function automatic logic lies_in(input logic [63:0] addr, input logic [63:0] base,
        input logic [63:0] size);
      lies_in = addr >= base && addr - base < size;
    endfunction

    always_comb begin
      port_o = '0;
      for (int unsigned i = 0; i < NRegions; i++) begin
        logic [63:0] tags;
        // Whole pages, as in the memory layout: no burst crosses a page, so each belongs to one
        // port.
        tags = Regions[i].mode == MODE_BYPASS ? '0
            : (((Regions[i].size >> Regions[i].chunk_log2) << 4) + 64'd4095) & ~64'd4095;
        if (lies_in(addr_i, Regions[i].base, Regions[i].size) ||
            lies_in(addr_i, Regions[i].tag_base, tags))
          port_o = PW'(Sets[Regions[i].set].port);
      end
    end
  end
endmodule
`default_nettype wire
