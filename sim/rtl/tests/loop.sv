// Connects the AXI4 master ports of the test to its slave ports, one to one, with a small register
// file on AXI4-Lite, to test the agents.
`default_nettype none
module loop #(
    parameter int unsigned N = 1
) (
    input wire logic clk,
    input wire logic rst_n,
    // from the test's master
    input wire logic [7:0] acc_arid [N], input wire logic [63:0] acc_araddr [N],
    input wire logic [7:0] acc_arlen [N],
    input wire logic [2:0] acc_arsize [N], input wire logic [1:0] acc_arburst [N],
    input wire logic acc_arvalid [N],
    output logic acc_arready [N],
    output logic [7:0] acc_rid [N], output logic [511:0] acc_rdata [N],
    output logic [1:0] acc_rresp [N], output logic acc_rlast [N],
    output logic acc_rvalid [N], input wire logic acc_rready [N],
    input wire logic [7:0] acc_awid [N], input wire logic [63:0] acc_awaddr [N],
    input wire logic [7:0] acc_awlen [N],
    input wire logic [2:0] acc_awsize [N], input wire logic [1:0] acc_awburst [N],
    input wire logic acc_awvalid [N],
    output logic acc_awready [N],
    input wire logic [511:0] acc_wdata [N], input wire logic [63:0] acc_wstrb [N],
    input wire logic acc_wlast [N],
    input wire logic acc_wvalid [N], output logic acc_wready [N],
    output logic [7:0] acc_bid [N], output logic [1:0] acc_bresp [N], output logic acc_bvalid [N],
    input wire logic acc_bready [N],
    // to the test's memory
    output logic [7:0] mem_arid [N], output logic [63:0] mem_araddr [N],
    output logic [7:0] mem_arlen [N],
    output logic [2:0] mem_arsize [N], output logic [1:0] mem_arburst [N],
    output logic mem_arvalid [N],
    input wire logic mem_arready [N],
    input wire logic [7:0] mem_rid [N], input wire logic [511:0] mem_rdata [N],
    input wire logic [1:0] mem_rresp [N],
    input wire logic mem_rlast [N], input wire logic mem_rvalid [N], output logic mem_rready [N],
    output logic [7:0] mem_awid [N], output logic [63:0] mem_awaddr [N],
    output logic [7:0] mem_awlen [N],
    output logic [2:0] mem_awsize [N], output logic [1:0] mem_awburst [N],
    output logic mem_awvalid [N],
    input wire logic mem_awready [N],
    output logic [511:0] mem_wdata [N], output logic [63:0] mem_wstrb [N],
    output logic mem_wlast [N], output logic mem_wvalid [N],
    input wire logic mem_wready [N],
    input wire logic [7:0] mem_bid [N], input wire logic [1:0] mem_bresp [N],
    input wire logic mem_bvalid [N],
    output logic mem_bready [N],
    // registers: 4 words, further addresses answer SLVERR
    input wire logic [15:0] ctl_awaddr, input wire logic ctl_awvalid, output logic ctl_awready,
    input wire logic [31:0] ctl_wdata, input wire logic [3:0] ctl_wstrb,
    input wire logic ctl_wvalid,
    output logic ctl_wready, output logic [1:0] ctl_bresp, output logic ctl_bvalid,
    input wire logic ctl_bready,
    input wire logic [15:0] ctl_araddr, input wire logic ctl_arvalid, output logic ctl_arready,
    output logic [31:0] ctl_rdata, output logic [1:0] ctl_rresp, output logic ctl_rvalid,
    input wire logic ctl_rready
);
  for (genvar p = 0; p < int'(N); p++) begin : g_port
    assign {mem_arid[p], mem_araddr[p], mem_arlen[p], mem_arsize[p], mem_arburst[p],
        mem_arvalid[p]} =
        {acc_arid[p], acc_araddr[p], acc_arlen[p], acc_arsize[p], acc_arburst[p], acc_arvalid[p]};
    assign acc_arready[p] = mem_arready[p];
    assign {mem_awid[p], mem_awaddr[p], mem_awlen[p], mem_awsize[p], mem_awburst[p],
        mem_awvalid[p]} =
        {acc_awid[p], acc_awaddr[p], acc_awlen[p], acc_awsize[p], acc_awburst[p], acc_awvalid[p]};
    assign acc_awready[p] = mem_awready[p];
    assign {mem_wdata[p], mem_wstrb[p], mem_wlast[p], mem_wvalid[p]} =
        {acc_wdata[p], acc_wstrb[p], acc_wlast[p], acc_wvalid[p]};
    assign acc_wready[p] = mem_wready[p];
    assign {acc_rid[p], acc_rdata[p], acc_rresp[p], acc_rlast[p], acc_rvalid[p]} =
        {mem_rid[p], mem_rdata[p], mem_rresp[p], mem_rlast[p], mem_rvalid[p]};
    assign mem_rready[p] = acc_rready[p];
    assign {acc_bid[p], acc_bresp[p], acc_bvalid[p]} = {mem_bid[p], mem_bresp[p], mem_bvalid[p]};
    assign mem_bready[p] = acc_bready[p];
  end

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
