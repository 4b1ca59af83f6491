// Wires an AXI4 master port of the test to a slave port of the test, with one register per channel and a small
// register file on AXI4-Lite: what the agents are tried on.
`default_nettype none
module loop (
    input wire logic clk,
    input wire logic rst_n,
    // from the test's master
    input wire logic [7:0] acc_arid, input wire logic [63:0] acc_araddr, input wire logic [7:0] acc_arlen,
    input wire logic [2:0] acc_arsize, input wire logic [1:0] acc_arburst, input wire logic acc_arvalid,
    output logic acc_arready,
    output logic [7:0] acc_rid, output logic [511:0] acc_rdata, output logic [1:0] acc_rresp, output logic acc_rlast,
    output logic acc_rvalid, input wire logic acc_rready,
    input wire logic [7:0] acc_awid, input wire logic [63:0] acc_awaddr, input wire logic [7:0] acc_awlen,
    input wire logic [2:0] acc_awsize, input wire logic [1:0] acc_awburst, input wire logic acc_awvalid,
    output logic acc_awready,
    input wire logic [511:0] acc_wdata, input wire logic [63:0] acc_wstrb, input wire logic acc_wlast,
    input wire logic acc_wvalid, output logic acc_wready,
    output logic [7:0] acc_bid, output logic [1:0] acc_bresp, output logic acc_bvalid, input wire logic acc_bready,
    // to the test's memory
    output logic [7:0] mem0_arid, output logic [63:0] mem0_araddr, output logic [7:0] mem0_arlen,
    output logic [2:0] mem0_arsize, output logic [1:0] mem0_arburst, output logic mem0_arvalid,
    input wire logic mem0_arready,
    input wire logic [7:0] mem0_rid, input wire logic [511:0] mem0_rdata, input wire logic [1:0] mem0_rresp,
    input wire logic mem0_rlast, input wire logic mem0_rvalid, output logic mem0_rready,
    output logic [7:0] mem0_awid, output logic [63:0] mem0_awaddr, output logic [7:0] mem0_awlen,
    output logic [2:0] mem0_awsize, output logic [1:0] mem0_awburst, output logic mem0_awvalid,
    input wire logic mem0_awready,
    output logic [511:0] mem0_wdata, output logic [63:0] mem0_wstrb, output logic mem0_wlast, output logic mem0_wvalid,
    input wire logic mem0_wready,
    input wire logic [7:0] mem0_bid, input wire logic [1:0] mem0_bresp, input wire logic mem0_bvalid,
    output logic mem0_bready,
    // registers: 4 words, further addresses answer SLVERR
    input wire logic [15:0] ctl_awaddr, input wire logic ctl_awvalid, output logic ctl_awready,
    input wire logic [31:0] ctl_wdata, input wire logic [3:0] ctl_wstrb, input wire logic ctl_wvalid,
    output logic ctl_wready, output logic [1:0] ctl_bresp, output logic ctl_bvalid, input wire logic ctl_bready,
    input wire logic [15:0] ctl_araddr, input wire logic ctl_arvalid, output logic ctl_arready,
    output logic [31:0] ctl_rdata, output logic [1:0] ctl_rresp, output logic ctl_rvalid, input wire logic ctl_rready
);
  assign {mem0_arid, mem0_araddr, mem0_arlen, mem0_arsize, mem0_arburst, mem0_arvalid} =
      {acc_arid, acc_araddr, acc_arlen, acc_arsize, acc_arburst, acc_arvalid};
  assign acc_arready = mem0_arready;
  assign {mem0_awid, mem0_awaddr, mem0_awlen, mem0_awsize, mem0_awburst, mem0_awvalid} =
      {acc_awid, acc_awaddr, acc_awlen, acc_awsize, acc_awburst, acc_awvalid};
  assign acc_awready = mem0_awready;
  assign {mem0_wdata, mem0_wstrb, mem0_wlast, mem0_wvalid} = {acc_wdata, acc_wstrb, acc_wlast, acc_wvalid};
  assign acc_wready = mem0_wready;
  assign {acc_rid, acc_rdata, acc_rresp, acc_rlast, acc_rvalid} =
      {mem0_rid, mem0_rdata, mem0_rresp, mem0_rlast, mem0_rvalid};
  assign mem0_rready = acc_rready;
  assign {acc_bid, acc_bresp, acc_bvalid} = {mem0_bid, mem0_bresp, mem0_bvalid};
  assign mem0_bready = acc_bready;

  logic [31:0] file_q[4];
  assign ctl_awready = ctl_awvalid && ctl_wvalid && !ctl_bvalid;
  assign ctl_wready = ctl_awready;
  assign ctl_arready = !ctl_rvalid;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      ctl_bvalid <= 1'b0;
      ctl_rvalid <= 1'b0;
      ctl_bresp <= '0;
      ctl_rresp <= '0;
      ctl_rdata <= '0;
      for (int i = 0; i < 4; i++) file_q[i] <= '0;
    end else begin
      if (ctl_bvalid && ctl_bready) ctl_bvalid <= 1'b0;
      if (ctl_rvalid && ctl_rready) ctl_rvalid <= 1'b0;
      if (ctl_awready) begin
        ctl_bvalid <= 1'b1;
        ctl_bresp <= ctl_awaddr < 16 ? 2'b00 : 2'b10;
        for (int i = 0; i < 4; i++)
          if (ctl_awaddr < 16 && ctl_wstrb[i]) file_q[ctl_awaddr[3:2]][8*i+:8] <= ctl_wdata[8*i+:8];
      end
      if (ctl_arvalid && ctl_arready) begin
        ctl_rvalid <= 1'b1;
        ctl_rresp <= ctl_araddr < 16 ? 2'b00 : 2'b10;
        ctl_rdata <= file_q[ctl_araddr[3:2]];
      end
    end
  end
endmodule
`default_nettype wire
