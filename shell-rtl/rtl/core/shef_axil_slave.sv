// AXI4-Lite slave with 32-bit data that turns accesses into a simple register bus.
//
// AXI side: AW and W are accepted independently, one write and one read at a time; every access
// gets a response. The slave decodes the low AddrW bits of an address.
// Register side: wr_valid_o is a pulse of one cycle, wr_err_i is its response in the same cycle.
// rd_valid_o is a pulse of one cycle, rd_data_i and rd_err_i are its response one cycle later. A
// failed read returns zero.
// Latency: write B two cycles after the later of AW and W, read R three cycles after AR.
`default_nettype none
module shef_axil_slave
  import shef_pkg::*;
#(
    parameter int unsigned AddrW = 16
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire axil_req_t        req_i,
    output axil_rsp_t             rsp_o,
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

  assign rsp_o.aw_ready = !aw_full_q;
  assign rsp_o.w_ready = !w_full_q;
  assign rsp_o.b_valid = b_valid_q;
  assign rsp_o.b_resp = b_resp_q;
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
      if (req_i.aw_valid && rsp_o.aw_ready) begin
        aw_full_q <= 1'b1;
        aw_addr_q <= req_i.aw_addr[AddrW-1:0];
      end
      if (req_i.w_valid && rsp_o.w_ready) begin
        w_full_q <= 1'b1;
        w_data_q <= req_i.w_data;
        w_strb_q <= req_i.w_strb;
      end
      if (wr_valid_o) begin
        b_valid_q <= 1'b1;
        b_resp_q <= wr_err_i ? AXI_SLVERR : AXI_OKAY;
        aw_full_q <= 1'b0;
        w_full_q <= 1'b0;
      end
      if (b_valid_q && req_i.b_ready) b_valid_q <= 1'b0;
    end
  end

  logic ar_full_q, rd_wait_q, r_valid_q;
  logic [AddrW-1:0] ar_addr_q;
  logic [31:0] r_data_q;
  logic [1:0] r_resp_q;

  assign rsp_o.ar_ready = !ar_full_q && !rd_wait_q && !r_valid_q;
  assign rd_valid_o = ar_full_q;
  assign rd_addr_o = ar_addr_q;
  assign rsp_o.r_valid = r_valid_q;
  assign rsp_o.r_data = r_data_q;
  assign rsp_o.r_resp = r_resp_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_full_q <= 1'b0;
      rd_wait_q <= 1'b0;
      r_valid_q <= 1'b0;
      ar_addr_q <= '0;
      r_data_q <= '0;
      r_resp_q <= 2'b00;
    end else begin
      if (req_i.ar_valid && rsp_o.ar_ready) begin
        ar_full_q <= 1'b1;
        ar_addr_q <= req_i.ar_addr[AddrW-1:0];
      end
      if (ar_full_q) begin
        ar_full_q <= 1'b0;
        rd_wait_q <= 1'b1;
      end
      if (rd_wait_q) begin
        rd_wait_q <= 1'b0;
        r_valid_q <= 1'b1;
        r_data_q <= rd_err_i ? 32'd0 : rd_data_i;
        r_resp_q <= rd_err_i ? AXI_SLVERR : AXI_OKAY;
      end
      if (r_valid_q && req_i.r_ready) begin
        r_valid_q <= 1'b0;
        r_data_q <= '0;
      end
    end
  end

endmodule
`default_nettype wire
