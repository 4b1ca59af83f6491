// AXI4-Lite slave with 32-bit data that turns accesses into a simple register bus.
//
// AXI side: AW and W are taken independently, one write and one read at a time; every access is
// answered.
// Register side: wr_valid_o is a pulse of one cycle, wr_err_i is its answer in the same cycle.
// rd_valid_o is a pulse of one cycle, rd_data_i and rd_err_i are its answer one cycle later. A read
// that errs delivers zero.
// Latency: write B two cycles after the later of AW and W, read R three cycles after AR.
`default_nettype none
module shef_axil_slave #(
    parameter int unsigned AddrW = 16
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic [AddrW-1:0] awaddr_i,
    input  wire logic             awvalid_i,
    output logic                  awready_o,
    input  wire logic [31:0]      wdata_i,
    input  wire logic [3:0]       wstrb_i,
    input  wire logic             wvalid_i,
    output logic                  wready_o,
    output logic [1:0]            bresp_o,
    output logic                  bvalid_o,
    input  wire logic             bready_i,
    input  wire logic [AddrW-1:0] araddr_i,
    input  wire logic             arvalid_i,
    output logic                  arready_o,
    output logic [31:0]           rdata_o,
    output logic [1:0]            rresp_o,
    output logic                  rvalid_o,
    input  wire logic             rready_i,
    output logic                  wr_valid_o,
    output logic [AddrW-1:0]      wr_addr_o,
    output logic [31:0]           wr_data_o,
    output logic [3:0]            wr_strb_o,
    input  wire logic             wr_err_i,
    output logic                  rd_valid_o,
    output logic [AddrW-1:0]      rd_addr_o,
    input  wire logic [31:0]      rd_data_i,
    input  wire logic             rd_err_i
);

  logic aw_full_q, w_full_q, b_valid_q;
  logic [1:0] b_resp_q;
  logic [AddrW-1:0] aw_addr_q;
  logic [31:0] w_data_q;
  logic [3:0] w_strb_q;

  assign awready_o = !aw_full_q;
  assign wready_o = !w_full_q;
  assign bvalid_o = b_valid_q;
  assign bresp_o = b_resp_q;
  assign wr_valid_o = aw_full_q && w_full_q && !b_valid_q;
  assign wr_addr_o = aw_addr_q;
  assign wr_data_o = w_data_q;
  assign wr_strb_o = w_strb_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_full_q <= 1'b0;
      w_full_q <= 1'b0;
      b_valid_q <= 1'b0;
      b_resp_q <= 2'b00;
      aw_addr_q <= '0;
      w_data_q <= '0;
      w_strb_q <= '0;
    end else begin
      if (awvalid_i && awready_o) begin
        aw_full_q <= 1'b1;
        aw_addr_q <= awaddr_i;
      end
      if (wvalid_i && wready_o) begin
        w_full_q <= 1'b1;
        w_data_q <= wdata_i;
        w_strb_q <= wstrb_i;
      end
      if (wr_valid_o) begin
        b_valid_q <= 1'b1;
        b_resp_q <= wr_err_i ? shef_pkg::AXI_SLVERR : shef_pkg::AXI_OKAY;
        aw_full_q <= 1'b0;
        w_full_q <= 1'b0;
      end
      if (b_valid_q && bready_i) b_valid_q <= 1'b0;
    end
  end

  logic ar_full_q, rd_wait_q, r_valid_q;
  logic [AddrW-1:0] ar_addr_q;
  logic [31:0] r_data_q;
  logic [1:0] r_resp_q;

  assign arready_o = !ar_full_q && !rd_wait_q && !r_valid_q;
  assign rd_valid_o = ar_full_q;
  assign rd_addr_o = ar_addr_q;
  assign rvalid_o = r_valid_q;
  assign rdata_o = r_data_q;
  assign rresp_o = r_resp_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_full_q <= 1'b0;
      rd_wait_q <= 1'b0;
      r_valid_q <= 1'b0;
      ar_addr_q <= '0;
      r_data_q <= '0;
      r_resp_q <= 2'b00;
    end else begin
      if (arvalid_i && arready_o) begin
        ar_full_q <= 1'b1;
        ar_addr_q <= araddr_i;
      end
      if (ar_full_q) begin
        ar_full_q <= 1'b0;
        rd_wait_q <= 1'b1;
      end
      if (rd_wait_q) begin
        rd_wait_q <= 1'b0;
        r_valid_q <= 1'b1;
        r_data_q <= rd_err_i ? 32'd0 : rd_data_i;
        r_resp_q <= rd_err_i ? shef_pkg::AXI_SLVERR : shef_pkg::AXI_OKAY;
      end
      if (r_valid_q && rready_i) begin
        r_valid_q <= 1'b0;
        r_data_q <= '0;
      end
    end
  end

endmodule
`default_nettype wire
