// Routes the memory accesses of the DMA engine to memory ports by address (shef_dma_port). The
// engine never moves the nodes of a tree.
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
    input  wire clk_i,
    input  wire rst_ni,

    input  wire axi_req_t dma_req_i,
    output axi_rsp_t dma_rsp_o,

    output axi_req_t [NPorts-1:0] mem_req_o,
    input  wire axi_rsp_t [NPorts-1:0] mem_rsp_i
);
  if (NPorts == 1) begin : g_wires
    assign mem_req_o = dma_req_i;
    assign dma_rsp_o = mem_rsp_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni, Regions, Sets};
  end else begin : g_banks
    localparam int unsigned PW = $clog2(NPorts);
    typedef logic [PW-1:0] port_t;

    port_t ar_port, aw_port, ar_port_q, aw_port_q;
    logic [7:0] reads_q, writes_q;    // outstanding bursts
    logic [7:0] w_owed_q;             // bursts whose data have not been sent
    logic ar_go, aw_go, ar_fire, aw_fire, w_end, r_end;
    shef_dma_port #(
        .NPorts(NPorts), .NRegions(NRegions), .Regions(Regions), .NSets(NSets), .Sets(Sets)
    ) u_ar_port (.addr_i(dma_req_i.ar.addr), .port_o(ar_port));
    shef_dma_port #(
        .NPorts(NPorts), .NRegions(NRegions), .Regions(Regions), .NSets(NSets), .Sets(Sets)
    ) u_aw_port (.addr_i(dma_req_i.aw.addr), .port_o(aw_port));
    assign ar_go = (ar_port == ar_port_q || reads_q == '0) && reads_q != '1;
    // A port may answer a write before it has its data: the data still go to that port.
    assign aw_go = (aw_port == aw_port_q || (writes_q == '0 && w_owed_q == '0)) && writes_q != '1 &&
        w_owed_q != '1;
    assign dma_rsp_o = '{
        aw_ready: aw_go && mem_rsp_i[aw_port].aw_ready,
        w_ready: w_owed_q != '0 && mem_rsp_i[aw_port_q].w_ready,
        b: mem_rsp_i[aw_port_q].b,
        b_valid: mem_rsp_i[aw_port_q].b_valid,
        ar_ready: ar_go && mem_rsp_i[ar_port].ar_ready,
        r: mem_rsp_i[ar_port_q].r,
        r_valid: mem_rsp_i[ar_port_q].r_valid
    };
    for (genvar p = 0; p < int'(NPorts); p++) begin : g_port
      always_comb begin
        mem_req_o[p] = dma_req_i;
        mem_req_o[p].aw_valid = dma_req_i.aw_valid && aw_go && aw_port == port_t'(p);
        mem_req_o[p].w_valid = dma_req_i.w_valid && w_owed_q != '0 && aw_port_q == port_t'(p);
        mem_req_o[p].ar_valid = dma_req_i.ar_valid && ar_go && ar_port == port_t'(p);
      end
    end

    assign ar_fire = dma_req_i.ar_valid && dma_rsp_o.ar_ready;
    assign aw_fire = dma_req_i.aw_valid && dma_rsp_o.aw_ready;
    assign w_end = dma_req_i.w_valid && dma_rsp_o.w_ready && dma_req_i.w.last;
    assign r_end = dma_rsp_o.r_valid && dma_rsp_o.r.last && reads_q != '0;
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
        if (aw_fire != (dma_rsp_o.b_valid && writes_q != '0))
          writes_q <= aw_fire ? writes_q + 1'b1 : writes_q - 1'b1;
        if (aw_fire != w_end) w_owed_q <= aw_fire ? w_owed_q + 1'b1 : w_owed_q - 1'b1;
      end
    end
  end
endmodule
`default_nettype wire
