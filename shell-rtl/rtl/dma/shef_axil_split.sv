// One AXI4-Lite port for two slaves: accesses to one page go to the second one, all others to the
// first.
//
// One write and one read are under way at a time. AW and AR pass combinationally, W after its AW,
// answers combinationally.
`default_nettype none
module shef_axil_split #(
    parameter logic [7:0] Page = 8'hb0
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire  [7:0]   awpage_i,  // address [15:8]
    input  wire          awvalid_i,
    output logic         awready_o,
    input  wire          wvalid_i,
    output logic         wready_o,
    output logic [1:0]   bresp_o,
    output logic         bvalid_o,
    input  wire          bready_i,
    input  wire  [7:0]   arpage_i,
    input  wire          arvalid_i,
    output logic         arready_o,
    output logic [31:0]  rdata_o,
    output logic [1:0]   rresp_o,
    output logic         rvalid_o,
    input  wire          rready_i,
    // addresses, data and strobes are those of the port
    output logic [1:0]   awvalid_o,
    input  wire  [1:0]   awready_i,
    output logic [1:0]   wvalid_o,
    input  wire  [1:0]   wready_i,
    input  wire  [1:0][1:0] bresp_i,
    input  wire  [1:0]   bvalid_i,
    output logic [1:0]   bready_o,
    output logic [1:0]   arvalid_o,
    input  wire  [1:0]   arready_i,
    input  wire  [1:0][31:0] rdata_i,
    input  wire  [1:0][1:0] rresp_i,
    input  wire  [1:0]   rvalid_i,
    output logic [1:0]   rready_o
);
  logic aw_sel, ar_sel, wr_q, wr_sel_q, w_done_q, rd_q, rd_sel_q;

  assign aw_sel = awpage_i == Page;
  assign awready_o = !wr_q && awready_i[aw_sel];
  assign wready_o = wr_q && !w_done_q && wready_i[wr_sel_q];
  assign bvalid_o = wr_q && bvalid_i[wr_sel_q];
  assign bresp_o = bresp_i[wr_sel_q];
  assign ar_sel = arpage_i == Page;
  assign arready_o = !rd_q && arready_i[ar_sel];
  assign rvalid_o = rd_q && rvalid_i[rd_sel_q];
  assign rdata_o = rdata_i[rd_sel_q];
  assign rresp_o = rresp_i[rd_sel_q];
  always_comb begin
    awvalid_o = '0;
    awvalid_o[aw_sel] = awvalid_i && !wr_q;
    wvalid_o = '0;
    wvalid_o[wr_sel_q] = wvalid_i && wr_q && !w_done_q;
    bready_o = '0;
    bready_o[wr_sel_q] = bready_i && wr_q;
    arvalid_o = '0;
    arvalid_o[ar_sel] = arvalid_i && !rd_q;
    rready_o = '0;
    rready_o[rd_sel_q] = rready_i && rd_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q <= 1'b0;
      wr_sel_q <= 1'b0;
      w_done_q <= 1'b0;
      rd_q <= 1'b0;
      rd_sel_q <= 1'b0;
    end else begin
      if (awvalid_i && awready_o) begin
        wr_q <= 1'b1;
        wr_sel_q <= aw_sel;
      end
      if (wvalid_i && wready_o) w_done_q <= 1'b1;
      if (bvalid_o && bready_i) begin
        wr_q <= 1'b0;
        w_done_q <= 1'b0;
      end
      if (arvalid_i && arready_o) begin
        rd_q <= 1'b1;
        rd_sel_q <= ar_sel;
      end
      if (rvalid_o && rready_i) rd_q <= 1'b0;
    end
  end
endmodule
`default_nettype wire
