// Routes the memory accesses of the DMA engine to memory ports by address: to the port of the
// region whose data or tags are there, and to the first port for all other addresses (the engine
// never moves the nodes of a tree).
//
// Handshake: AXI4 on both sides, R and B always accepted. A direction that changes its port waits
// until nothing of it is in flight at the other; W follows its AW. Combinational, one beat a cycle.
// With one port: wires.
`default_nettype none
module shef_dma_banks
  import shef_pkg::*;
#(
    parameter int unsigned NPorts = 2,
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [(NRegions == 0 ? 1 : NRegions)-1:0] Regions = '0,
    parameter int unsigned NSets = 1,
    parameter set_cfg_t [(NSets == 0 ? 1 : NSets)-1:0] Sets = '0
) (
    input  wire          clk_i,
    input  wire          rst_ni,

    input  wire  axi_ax_t dma_aw_i,
    input  wire          dma_aw_valid_i,
    output logic         dma_aw_ready_o,
    input  wire  axi_w_t dma_w_i,
    input  wire          dma_w_valid_i,
    output logic         dma_w_ready_o,
    output axi_b_t       dma_b_o,
    output logic         dma_b_valid_o,
    input  wire  axi_ax_t dma_ar_i,
    input  wire          dma_ar_valid_i,
    output logic         dma_ar_ready_o,
    output axi_r_t       dma_r_o,
    output logic         dma_r_valid_o,

    output axi_ax_t [NPorts-1:0] mem_aw_o,
    output logic [NPorts-1:0]    mem_aw_valid_o,
    input  wire  [NPorts-1:0]    mem_aw_ready_i,
    output axi_w_t [NPorts-1:0]  mem_w_o,
    output logic [NPorts-1:0]    mem_w_valid_o,
    input  wire  [NPorts-1:0]    mem_w_ready_i,
    input  wire  axi_b_t [NPorts-1:0] mem_b_i,
    input  wire  [NPorts-1:0]    mem_b_valid_i,
    output axi_ax_t [NPorts-1:0] mem_ar_o,
    output logic [NPorts-1:0]    mem_ar_valid_o,
    input  wire  [NPorts-1:0]    mem_ar_ready_i,
    input  wire  axi_r_t [NPorts-1:0] mem_r_i,
    input  wire  [NPorts-1:0]    mem_r_valid_i
);
  if (NPorts == 1) begin : g_wires
    assign mem_aw_o = dma_aw_i;
    assign mem_aw_valid_o = dma_aw_valid_i;
    assign dma_aw_ready_o = mem_aw_ready_i;
    assign mem_w_o = dma_w_i;
    assign mem_w_valid_o = dma_w_valid_i;
    assign dma_w_ready_o = mem_w_ready_i;
    assign dma_b_o = mem_b_i;
    assign dma_b_valid_o = mem_b_valid_i;
    assign mem_ar_o = dma_ar_i;
    assign mem_ar_valid_o = dma_ar_valid_i;
    assign dma_ar_ready_o = mem_ar_ready_i;
    assign dma_r_o = mem_r_i;
    assign dma_r_valid_o = mem_r_valid_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni, Regions, Sets};
  end else begin : g_banks
    localparam int unsigned PW = $clog2(NPorts);
    typedef logic [PW-1:0] port_t;

    function automatic logic lies_in(input logic [63:0] addr, input logic [63:0] base,
        input logic [63:0] size);
      lies_in = addr >= base && addr - base < size;
    endfunction

    function automatic port_t port_of(input logic [63:0] addr);
      port_of = '0;
      for (int unsigned i = 0; i < NRegions; i++) begin
        logic [63:0] tags;
        // Whole pages, as in the memory layout: no burst crosses a page, so each belongs to one
        // port.
        tags = Regions[i].mode == MODE_BYPASS ? '0
            : (((Regions[i].size >> Regions[i].chunk_log2) << 4) + 64'd4095) & ~64'd4095;
        if (lies_in(addr, Regions[i].base, Regions[i].size) ||
            lies_in(addr, Regions[i].tag_base, tags))
          port_of = PW'(Sets[Regions[i].set].port);
      end
    endfunction

    port_t ar_port, aw_port, ar_port_q, aw_port_q;
    logic [7:0] reads_q, writes_q;    // outstanding bursts
    logic [7:0] w_owed_q;             // bursts whose data have not been sent
    logic ar_go, aw_go, ar_fire, aw_fire, w_end, r_end;
    assign ar_port = port_of(dma_ar_i.addr);
    assign aw_port = port_of(dma_aw_i.addr);
    assign ar_go = (ar_port == ar_port_q || reads_q == '0) && reads_q != '1;
    // A port may answer a write before it has its data: the data still go to that port.
    assign aw_go = (aw_port == aw_port_q || (writes_q == '0 && w_owed_q == '0)) && writes_q != '1 &&
        w_owed_q != '1;
    assign dma_ar_ready_o = ar_go && mem_ar_ready_i[ar_port];
    assign dma_aw_ready_o = aw_go && mem_aw_ready_i[aw_port];
    assign dma_w_ready_o = w_owed_q != '0 && mem_w_ready_i[aw_port_q];
    assign dma_r_o = mem_r_i[ar_port_q];
    assign dma_r_valid_o = mem_r_valid_i[ar_port_q];
    assign dma_b_o = mem_b_i[aw_port_q];
    assign dma_b_valid_o = mem_b_valid_i[aw_port_q];
    always_comb begin
      mem_ar_o = {NPorts{dma_ar_i}};
      mem_aw_o = {NPorts{dma_aw_i}};
      mem_w_o = {NPorts{dma_w_i}};
      mem_ar_valid_o = '0;
      mem_ar_valid_o[ar_port] = dma_ar_valid_i && ar_go;
      mem_aw_valid_o = '0;
      mem_aw_valid_o[aw_port] = dma_aw_valid_i && aw_go;
      mem_w_valid_o = '0;
      mem_w_valid_o[aw_port_q] = dma_w_valid_i && w_owed_q != '0;
    end

    assign ar_fire = dma_ar_valid_i && dma_ar_ready_o;
    assign aw_fire = dma_aw_valid_i && dma_aw_ready_o;
    assign w_end = dma_w_valid_i && dma_w_ready_o && dma_w_i.last;
    assign r_end = dma_r_valid_o && dma_r_o.last && reads_q != '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        ar_port_q <= '0;
        aw_port_q <= '0;
        reads_q <= '0;
        writes_q <= '0;
        w_owed_q <= '0;
      end else begin
        if (ar_fire) ar_port_q <= ar_port;
        if (aw_fire) aw_port_q <= aw_port;
        if (ar_fire != r_end) reads_q <= ar_fire ? reads_q + 1'b1 : reads_q - 1'b1;
        if (aw_fire != (dma_b_valid_o && writes_q != '0))
          writes_q <= aw_fire ? writes_q + 1'b1 : writes_q - 1'b1;
        if (aw_fire != w_end) w_owed_q <= aw_fire ? w_owed_q + 1'b1 : w_owed_q - 1'b1;
      end
    end
  end
endmodule
`default_nettype wire
