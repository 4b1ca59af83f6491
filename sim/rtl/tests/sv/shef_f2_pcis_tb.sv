// shef_f2_pcis in front of shef_h2c and a memory port of shef_dma_core, with flat ports, for tests:
// h2c is PCIS, on clk; acc, dma (two masters in place of Shield and engine) and mem are on core_clk.
`include "shef_ports.svh"
`default_nettype none
module shef_f2_pcis_tb
  import shef_pkg::*;
#(
    parameter logic [63:0] CardBytes = 64'h100_0000
) (
    input  wire  clk,
    input  wire  rst_n,
    input  wire  core_clk,
    input  wire  core_rst_n,
    input  wire  link,
    input  wire  run,
    output logic idle,
    output logic read_late,
    output logic write_late,
    `SHEF_AXI_S_PORTS(h2c,),
    `SHEF_AXI_S_PORTS(acc,),
    `SHEF_AXI_S_PORTS(dma,),
    `SHEF_AXI_M_PORTS(mem,)
);
  axi_req_t pcis_req, h2c_req, core_req;
  axi_rsp_t pcis_rsp, h2c_rsp, core_rsp;
  logic [15:0] bid, rid;
  assign pcis_req = `SHEF_AXI_REQ(h2c,);
  assign `SHEF_AXI_RSP(h2c,) = pcis_rsp;
  assign pcis_rsp.b.id = bid[15:8] ^ bid[7:0];
  assign pcis_rsp.r.id = rid[15:8] ^ rid[7:0];

  shef_f2_pcis u_pcis (
      .main_clk_i(clk),
      .main_rst_ni(rst_n),
      .link_i(link),
      .run_i(run),
      .idle_o(idle),
      .awid_i({8'h5a, 8'h5a ^ pcis_req.aw.id}),
      .awaddr_i(pcis_req.aw.addr),
      .awlen_i(pcis_req.aw.len),
      .awvalid_i(pcis_req.aw_valid),
      .awready_o(pcis_rsp.aw_ready),
      .wdata_i(pcis_req.w.data),
      .wstrb_i(pcis_req.w.strb),
      .wlast_i(pcis_req.w.last),
      .wvalid_i(pcis_req.w_valid),
      .wready_o(pcis_rsp.w_ready),
      .bid_o(bid),
      .bresp_o(pcis_rsp.b.resp),
      .bvalid_o(pcis_rsp.b_valid),
      .bready_i(pcis_req.b_ready),
      .arid_i({8'ha5, 8'ha5 ^ pcis_req.ar.id}),
      .araddr_i(pcis_req.ar.addr),
      .arlen_i(pcis_req.ar.len),
      .arvalid_i(pcis_req.ar_valid),
      .arready_o(pcis_rsp.ar_ready),
      .rid_o(rid),
      .rdata_o(pcis_rsp.r.data),
      .rresp_o(pcis_rsp.r.resp),
      .rlast_o(pcis_rsp.r.last),
      .rvalid_o(pcis_rsp.r_valid),
      .rready_i(pcis_req.r_ready),
      .read_late_o(read_late),
      .write_late_o(write_late),
      .core_clk_i(core_clk),
      .core_req_o(core_req),
      .core_rsp_i(core_rsp)
  );

  logic wiped;
  shef_h2c #(
      .CardBytes(CardBytes)
  ) u_h2c (
      .clk_i(core_clk),
      .rst_ni(core_rst_n),
      .hold_i(1'b0),
      .wipe_i(1'b0),
      .wiped_o(wiped),
      .h2c_req_i(core_req),
      .h2c_rsp_o(core_rsp),
      .mem_req_o(h2c_req),
      .mem_rsp_i(h2c_rsp)
  );

  shef_port_mux #(
      .NSets(3),
      .SetNo({2'd2, 2'd1, 2'd0}),
      .First(2)
  ) u_mux (
      .clk_i(core_clk),
      .rst_ni(core_rst_n),
      .set_req_i({h2c_req, `SHEF_AXI_REQ(dma,), `SHEF_AXI_REQ(acc,)}),
      .set_rsp_o({h2c_rsp, `SHEF_AXI_RSP(dma,), `SHEF_AXI_RSP(acc,)}),
      .mem_req_o(`SHEF_AXI_REQ(mem,)),
      .mem_rsp_i(`SHEF_AXI_RSP(mem,))
  );
endmodule
`default_nettype wire
