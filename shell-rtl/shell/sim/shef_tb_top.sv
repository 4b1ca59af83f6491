// Test bench shell: the Shield alone with flat ports; the bench plays the accelerator.
//
// ctl, krn and mem0 as in shef_sim_top; acc is the accelerator's AXI4 side (slave), reg its AXI4-Lite registers (master), acc_rst_n its
// reset.
`default_nettype none
module shef_tb_top (
    input  wire logic         clk,
    input  wire logic         rst_n,
    input  wire logic         wipe_req,
    output logic              wipe_ack,
    input  wire logic [15:0]  ctl_awaddr,
    input  wire logic         ctl_awvalid,
    output logic              ctl_awready,
    input  wire logic [31:0]  ctl_wdata,
    input  wire logic [3:0]   ctl_wstrb,
    input  wire logic         ctl_wvalid,
    output logic              ctl_wready,
    output logic      [1:0]   ctl_bresp,
    output logic              ctl_bvalid,
    input  wire logic         ctl_bready,
    input  wire logic [15:0]  ctl_araddr,
    input  wire logic         ctl_arvalid,
    output logic              ctl_arready,
    output logic      [31:0]  ctl_rdata,
    output logic      [1:0]   ctl_rresp,
    output logic              ctl_rvalid,
    input  wire logic         ctl_rready,
    input  wire logic [11:0]  krn_awaddr,
    input  wire logic         krn_awvalid,
    output logic              krn_awready,
    input  wire logic [31:0]  krn_wdata,
    input  wire logic [3:0]   krn_wstrb,
    input  wire logic         krn_wvalid,
    output logic              krn_wready,
    output logic      [1:0]   krn_bresp,
    output logic              krn_bvalid,
    input  wire logic         krn_bready,
    input  wire logic [11:0]  krn_araddr,
    input  wire logic         krn_arvalid,
    output logic              krn_arready,
    output logic      [31:0]  krn_rdata,
    output logic      [1:0]   krn_rresp,
    output logic              krn_rvalid,
    input  wire logic         krn_rready,
    output logic      [7:0]   mem0_awid,
    output logic      [63:0]  mem0_awaddr,
    output logic      [7:0]   mem0_awlen,
    output logic      [2:0]   mem0_awsize,
    output logic      [1:0]   mem0_awburst,
    output logic              mem0_awvalid,
    input  wire logic         mem0_awready,
    output logic      [511:0] mem0_wdata,
    output logic      [63:0]  mem0_wstrb,
    output logic              mem0_wlast,
    output logic              mem0_wvalid,
    input  wire logic         mem0_wready,
    input  wire logic [7:0]   mem0_bid,
    input  wire logic [1:0]   mem0_bresp,
    input  wire logic         mem0_bvalid,
    output logic              mem0_bready,
    output logic      [7:0]   mem0_arid,
    output logic      [63:0]  mem0_araddr,
    output logic      [7:0]   mem0_arlen,
    output logic      [2:0]   mem0_arsize,
    output logic      [1:0]   mem0_arburst,
    output logic              mem0_arvalid,
    input  wire logic         mem0_arready,
    input  wire logic [7:0]   mem0_rid,
    input  wire logic [511:0] mem0_rdata,
    input  wire logic [1:0]   mem0_rresp,
    input  wire logic         mem0_rlast,
    input  wire logic         mem0_rvalid,
    output logic              mem0_rready,
    input  wire logic [7:0]   acc_awid,
    input  wire logic [63:0]  acc_awaddr,
    input  wire logic [7:0]   acc_awlen,
    input  wire logic [2:0]   acc_awsize,
    input  wire logic [1:0]   acc_awburst,
    input  wire logic         acc_awvalid,
    output logic              acc_awready,
    input  wire logic [511:0] acc_wdata,
    input  wire logic [63:0]  acc_wstrb,
    input  wire logic         acc_wlast,
    input  wire logic         acc_wvalid,
    output logic              acc_wready,
    output logic      [7:0]   acc_bid,
    output logic      [1:0]   acc_bresp,
    output logic              acc_bvalid,
    input  wire logic         acc_bready,
    input  wire logic [7:0]   acc_arid,
    input  wire logic [63:0]  acc_araddr,
    input  wire logic [7:0]   acc_arlen,
    input  wire logic [2:0]   acc_arsize,
    input  wire logic [1:0]   acc_arburst,
    input  wire logic         acc_arvalid,
    output logic              acc_arready,
    output logic      [7:0]   acc_rid,
    output logic      [511:0] acc_rdata,
    output logic      [1:0]   acc_rresp,
    output logic              acc_rlast,
    output logic              acc_rvalid,
    input  wire logic         acc_rready,
    output logic              acc_rst_n,
    output logic      [15:0]  reg_awaddr,
    output logic              reg_awvalid,
    input  wire logic         reg_awready,
    output logic      [31:0]  reg_wdata,
    output logic      [3:0]   reg_wstrb,
    output logic              reg_wvalid,
    input  wire logic         reg_wready,
    input  wire logic [1:0]   reg_bresp,
    input  wire logic         reg_bvalid,
    output logic              reg_bready,
    output logic      [15:0]  reg_araddr,
    output logic              reg_arvalid,
    input  wire logic         reg_arready,
    input  wire logic [31:0]  reg_rdata,
    input  wire logic [1:0]   reg_rresp,
    input  wire logic         reg_rvalid,
    output logic              reg_rready
);
  import shef_pkg::*;

  axi_ax_t mem_aw, mem_ar;
  axi_w_t mem_w;
  axi_b_t mem_b;
  axi_r_t mem_r;
  logic mem_aw_valid, mem_aw_ready, mem_w_valid, mem_w_ready, mem_b_valid, mem_b_ready;
  logic mem_ar_valid, mem_ar_ready, mem_r_valid, mem_r_ready;
  axi_ax_t acc_aw, acc_ar;
  axi_w_t acc_w;
  axi_b_t acc_b;
  axi_r_t acc_r;
  logic acc_aw_valid, acc_aw_ready, acc_w_valid, acc_w_ready, acc_b_valid, acc_b_ready;
  logic acc_ar_valid, acc_ar_ready, acc_r_valid, acc_r_ready;

  assign mem0_awid = mem_aw.id;
  assign mem0_awaddr = mem_aw.addr;
  assign mem0_awlen = mem_aw.len;
  assign mem0_awsize = mem_aw.size;
  assign mem0_awburst = mem_aw.burst;
  assign mem0_awvalid = mem_aw_valid;
  assign mem_aw_ready = mem0_awready;
  assign mem0_wdata = mem_w.data;
  assign mem0_wstrb = mem_w.strb;
  assign mem0_wlast = mem_w.last;
  assign mem0_wvalid = mem_w_valid;
  assign mem_w_ready = mem0_wready;
  assign mem_b.id = mem0_bid;
  assign mem_b.resp = mem0_bresp;
  assign mem_b_valid = mem0_bvalid;
  assign mem0_bready = mem_b_ready;
  assign mem0_arid = mem_ar.id;
  assign mem0_araddr = mem_ar.addr;
  assign mem0_arlen = mem_ar.len;
  assign mem0_arsize = mem_ar.size;
  assign mem0_arburst = mem_ar.burst;
  assign mem0_arvalid = mem_ar_valid;
  assign mem_ar_ready = mem0_arready;
  assign mem_r.id = mem0_rid;
  assign mem_r.data = mem0_rdata;
  assign mem_r.resp = mem0_rresp;
  assign mem_r.last = mem0_rlast;
  assign mem_r_valid = mem0_rvalid;
  assign mem0_rready = mem_r_ready;

  assign acc_aw.id = acc_awid;
  assign acc_aw.addr = acc_awaddr;
  assign acc_aw.len = acc_awlen;
  assign acc_aw.size = acc_awsize;
  assign acc_aw.burst = acc_awburst;
  assign acc_aw_valid = acc_awvalid;
  assign acc_awready = acc_aw_ready;
  assign acc_w.data = acc_wdata;
  assign acc_w.strb = acc_wstrb;
  assign acc_w.last = acc_wlast;
  assign acc_w_valid = acc_wvalid;
  assign acc_wready = acc_w_ready;
  assign acc_bid = acc_b.id;
  assign acc_bresp = acc_b.resp;
  assign acc_bvalid = acc_b_valid;
  assign acc_b_ready = acc_bready;
  assign acc_ar.id = acc_arid;
  assign acc_ar.addr = acc_araddr;
  assign acc_ar.len = acc_arlen;
  assign acc_ar.size = acc_arsize;
  assign acc_ar.burst = acc_arburst;
  assign acc_ar_valid = acc_arvalid;
  assign acc_arready = acc_ar_ready;
  assign acc_rid = acc_r.id;
  assign acc_rdata = acc_r.data;
  assign acc_rresp = acc_r.resp;
  assign acc_rlast = acc_r.last;
  assign acc_rvalid = acc_r_valid;
  assign acc_r_ready = acc_rready;

  shef_shield #(
      .ShellId(1)
  ) u_shield (
      .clk_i(clk),
      .rst_ni(rst_n),
      .wipe_req_i(wipe_req),
      .wipe_ack_o(wipe_ack),
      .ctl_awaddr_i(ctl_awaddr),
      .ctl_awvalid_i(ctl_awvalid),
      .ctl_awready_o(ctl_awready),
      .ctl_wdata_i(ctl_wdata),
      .ctl_wstrb_i(ctl_wstrb),
      .ctl_wvalid_i(ctl_wvalid),
      .ctl_wready_o(ctl_wready),
      .ctl_bresp_o(ctl_bresp),
      .ctl_bvalid_o(ctl_bvalid),
      .ctl_bready_i(ctl_bready),
      .ctl_araddr_i(ctl_araddr),
      .ctl_arvalid_i(ctl_arvalid),
      .ctl_arready_o(ctl_arready),
      .ctl_rdata_o(ctl_rdata),
      .ctl_rresp_o(ctl_rresp),
      .ctl_rvalid_o(ctl_rvalid),
      .ctl_rready_i(ctl_rready),
      .krn_awaddr_i(krn_awaddr),
      .krn_awvalid_i(krn_awvalid),
      .krn_awready_o(krn_awready),
      .krn_wdata_i(krn_wdata),
      .krn_wstrb_i(krn_wstrb),
      .krn_wvalid_i(krn_wvalid),
      .krn_wready_o(krn_wready),
      .krn_bresp_o(krn_bresp),
      .krn_bvalid_o(krn_bvalid),
      .krn_bready_i(krn_bready),
      .krn_araddr_i(krn_araddr),
      .krn_arvalid_i(krn_arvalid),
      .krn_arready_o(krn_arready),
      .krn_rdata_o(krn_rdata),
      .krn_rresp_o(krn_rresp),
      .krn_rvalid_o(krn_rvalid),
      .krn_rready_i(krn_rready),
      .acc_rst_no(acc_rst_n),
      .reg_awaddr_o(reg_awaddr),
      .reg_awvalid_o(reg_awvalid),
      .reg_awready_i(reg_awready),
      .reg_wdata_o(reg_wdata),
      .reg_wstrb_o(reg_wstrb),
      .reg_wvalid_o(reg_wvalid),
      .reg_wready_i(reg_wready),
      .reg_bresp_i(reg_bresp),
      .reg_bvalid_i(reg_bvalid),
      .reg_bready_o(reg_bready),
      .reg_araddr_o(reg_araddr),
      .reg_arvalid_o(reg_arvalid),
      .reg_arready_i(reg_arready),
      .reg_rdata_i(reg_rdata),
      .reg_rresp_i(reg_rresp),
      .reg_rvalid_i(reg_rvalid),
      .reg_rready_o(reg_rready),
      .acc_aw_i(acc_aw),
      .acc_aw_valid_i(acc_aw_valid),
      .acc_aw_ready_o(acc_aw_ready),
      .acc_w_i(acc_w),
      .acc_w_valid_i(acc_w_valid),
      .acc_w_ready_o(acc_w_ready),
      .acc_b_o(acc_b),
      .acc_b_valid_o(acc_b_valid),
      .acc_b_ready_i(acc_b_ready),
      .acc_ar_i(acc_ar),
      .acc_ar_valid_i(acc_ar_valid),
      .acc_ar_ready_o(acc_ar_ready),
      .acc_r_o(acc_r),
      .acc_r_valid_o(acc_r_valid),
      .acc_r_ready_i(acc_r_ready),
      .mem_aw_o(mem_aw),
      .mem_aw_valid_o(mem_aw_valid),
      .mem_aw_ready_i(mem_aw_ready),
      .mem_w_o(mem_w),
      .mem_w_valid_o(mem_w_valid),
      .mem_w_ready_i(mem_w_ready),
      .mem_b_i(mem_b),
      .mem_b_valid_i(mem_b_valid),
      .mem_b_ready_o(mem_b_ready),
      .mem_ar_o(mem_ar),
      .mem_ar_valid_o(mem_ar_valid),
      .mem_ar_ready_i(mem_ar_ready),
      .mem_r_i(mem_r),
      .mem_r_valid_i(mem_r_valid),
      .mem_r_ready_o(mem_r_ready)
  );

endmodule
`default_nettype wire
