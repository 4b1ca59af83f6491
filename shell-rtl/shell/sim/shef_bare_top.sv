// Simulation top of an accelerator without a Shield: control port to its registers, its memory port to the memory.
//
// Flat AXI ports as in shef_sim_top; irq_req stays high from an interrupt of the accelerator until irq_ack. The obs_* outputs count what is delivered to the accelerator.
`default_nettype none
module shef_bare_top
  import shef_pkg::*;
(
  input  wire         clk,
  input  wire         rst_n,

  input  wire  [15:0] ctl_awaddr,
  input  wire         ctl_awvalid,
  output wire         ctl_awready,
  input  wire  [31:0] ctl_wdata,
  input  wire  [ 3:0] ctl_wstrb,
  input  wire         ctl_wvalid,
  output wire         ctl_wready,
  output wire  [ 1:0] ctl_bresp,
  output wire         ctl_bvalid,
  input  wire         ctl_bready,
  input  wire  [15:0] ctl_araddr,
  input  wire         ctl_arvalid,
  output wire         ctl_arready,
  output wire  [31:0] ctl_rdata,
  output wire  [ 1:0] ctl_rresp,
  output wire         ctl_rvalid,
  input  wire         ctl_rready,

  output wire  [ 7:0] mem0_awid,
  output wire  [63:0] mem0_awaddr,
  output wire  [ 7:0] mem0_awlen,
  output wire  [ 2:0] mem0_awsize,
  output wire  [ 1:0] mem0_awburst,
  output wire         mem0_awvalid,
  input  wire         mem0_awready,
  output wire [511:0] mem0_wdata,
  output wire  [63:0] mem0_wstrb,
  output wire         mem0_wlast,
  output wire         mem0_wvalid,
  input  wire         mem0_wready,
  input  wire  [ 7:0] mem0_bid,
  input  wire  [ 1:0] mem0_bresp,
  input  wire         mem0_bvalid,
  output wire         mem0_bready,
  output wire  [ 7:0] mem0_arid,
  output wire  [63:0] mem0_araddr,
  output wire  [ 7:0] mem0_arlen,
  output wire  [ 2:0] mem0_arsize,
  output wire  [ 1:0] mem0_arburst,
  output wire         mem0_arvalid,
  input  wire         mem0_arready,
  input  wire  [ 7:0] mem0_rid,
  input  wire [511:0] mem0_rdata,
  input  wire  [ 1:0] mem0_rresp,
  input  wire         mem0_rlast,
  input  wire         mem0_rvalid,
  output wire         mem0_rready,

  output wire         irq_req,
  input  wire         irq_ack,

  output wire         obs_arvalid,
  output wire  [ 7:0] obs_arid,
  output wire  [63:0] obs_araddr,
  output wire  [ 7:0] obs_arlen,
  output wire         obs_rvalid,
  output wire  [ 7:0] obs_rid,
  output wire  [ 1:0] obs_rresp,
  output wire         obs_rlast
);
  logic irq, irq_prev_q, irq_q;
  axi_ax_t aw, ar;
  axi_w_t w;
  axi_b_t b;
  axi_r_t r;

  assign mem0_awid = aw.id;
  assign mem0_awaddr = aw.addr;
  assign mem0_awlen = aw.len;
  assign mem0_awsize = aw.size;
  assign mem0_awburst = aw.burst;
  assign mem0_wdata = w.data;
  assign mem0_wstrb = w.strb;
  assign mem0_wlast = w.last;
  assign b = '{id: mem0_bid, resp: mem0_bresp};
  assign mem0_arid = ar.id;
  assign mem0_araddr = ar.addr;
  assign mem0_arlen = ar.len;
  assign mem0_arsize = ar.size;
  assign mem0_arburst = ar.burst;
  assign r = '{id: mem0_rid, data: mem0_rdata, resp: mem0_rresp, last: mem0_rlast};

  shef_accel i_accel (
    .clk_i(clk),
    .rst_ni(rst_n),
    .reg_awaddr_i(ctl_awaddr),
    .reg_awvalid_i(ctl_awvalid),
    .reg_awready_o(ctl_awready),
    .reg_wdata_i(ctl_wdata),
    .reg_wstrb_i(ctl_wstrb),
    .reg_wvalid_i(ctl_wvalid),
    .reg_wready_o(ctl_wready),
    .reg_bresp_o(ctl_bresp),
    .reg_bvalid_o(ctl_bvalid),
    .reg_bready_i(ctl_bready),
    .reg_araddr_i(ctl_araddr),
    .reg_arvalid_i(ctl_arvalid),
    .reg_arready_o(ctl_arready),
    .reg_rdata_o(ctl_rdata),
    .reg_rresp_o(ctl_rresp),
    .reg_rvalid_o(ctl_rvalid),
    .reg_rready_i(ctl_rready),
    .acc_aw_o(aw),
    .acc_aw_valid_o(mem0_awvalid),
    .acc_aw_ready_i(mem0_awready),
    .acc_w_o(w),
    .acc_w_valid_o(mem0_wvalid),
    .acc_w_ready_i(mem0_wready),
    .acc_b_i(b),
    .acc_b_valid_i(mem0_bvalid),
    .acc_b_ready_o(mem0_bready),
    .acc_ar_o(ar),
    .acc_ar_valid_o(mem0_arvalid),
    .acc_ar_ready_i(mem0_arready),
    .acc_r_i(r),
    .acc_r_valid_i(mem0_rvalid),
    .acc_r_ready_o(mem0_rready),
    .irq_o(irq)
  );

  assign obs_arvalid = mem0_arvalid && mem0_arready;
  assign obs_arid = ar.id;
  assign obs_araddr = ar.addr;
  assign obs_arlen = ar.len;
  assign obs_rvalid = mem0_rvalid && mem0_rready;
  assign obs_rid = mem0_rid;
  assign obs_rresp = mem0_rresp;
  assign obs_rlast = mem0_rlast;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      irq_prev_q <= 1'b0;
      irq_q <= 1'b0;
    end else begin
      irq_prev_q <= irq;
      if (irq && !irq_prev_q) irq_q <= 1'b1;
      else if (irq_ack) irq_q <= 1'b0;
    end
  end
  assign irq_req = irq_q;
endmodule
`default_nettype wire
