// AXI4-Lite splitter: accesses to one page go to the second slave, all others to the first.
//
// One write and one read are in flight at a time. AW and AR pass combinationally, W after its AW,
// responses combinationally. Addresses, data and strobes towards both slaves are those of the port.
`default_nettype none
module shef_axil_split
  import shef_pkg::*;
#(
    parameter logic [7:0] Page = 8'hb0
) (
    input  wire clk_i,
    input  wire rst_ni,
    input  wire axil_req_t       req_i,
    output axil_rsp_t            rsp_o,
    output axil_req_t [1:0]      req_o,
    input  wire axil_rsp_t [1:0] rsp_i
);
  logic aw_sel, ar_sel, wr_q, wr_sel_q, w_done_q, rd_q, rd_sel_q;

  assign aw_sel = req_i.aw_addr[15:8] == Page;
  assign ar_sel = req_i.ar_addr[15:8] == Page;
  assign rsp_o = '{
      aw_ready: !wr_q && rsp_i[aw_sel].aw_ready,
      w_ready: wr_q && !w_done_q && rsp_i[wr_sel_q].w_ready,
      b_resp: rsp_i[wr_sel_q].b_resp,
      b_valid: wr_q && rsp_i[wr_sel_q].b_valid,
      ar_ready: !rd_q && rsp_i[ar_sel].ar_ready,
      r_data: rsp_i[rd_sel_q].r_data,
      r_resp: rsp_i[rd_sel_q].r_resp,
      r_valid: rd_q && rsp_i[rd_sel_q].r_valid
  };
  for (genvar s = 0; s < 2; s++) begin : g_slave
    assign req_o[s] = '{
        aw_addr: req_i.aw_addr,
        aw_valid: req_i.aw_valid && !wr_q && aw_sel == 1'(s),
        w_data: req_i.w_data,
        w_strb: req_i.w_strb,
        w_valid: req_i.w_valid && wr_q && !w_done_q && wr_sel_q == 1'(s),
        b_ready: req_i.b_ready && wr_q && wr_sel_q == 1'(s),
        ar_addr: req_i.ar_addr,
        ar_valid: req_i.ar_valid && !rd_q && ar_sel == 1'(s),
        r_ready: req_i.r_ready && rd_q && rd_sel_q == 1'(s)
    };
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q <= 1'b0;
      wr_sel_q <= 1'b0;
      w_done_q <= 1'b0;
      rd_q <= 1'b0;
      rd_sel_q <= 1'b0;
    end else begin
      if (req_i.aw_valid && rsp_o.aw_ready) begin
        wr_q <= 1'b1;
        wr_sel_q <= aw_sel;
      end
      if (req_i.w_valid && rsp_o.w_ready) w_done_q <= 1'b1;
      if (rsp_o.b_valid && req_i.b_ready) begin
        wr_q <= 1'b0;
        w_done_q <= 1'b0;
      end
      if (req_i.ar_valid && rsp_o.ar_ready) begin
        rd_q <= 1'b1;
        rd_sel_q <= ar_sel;
      end
      if (rsp_o.r_valid && req_i.r_ready) rd_q <= 1'b0;
    end
  end
endmodule
`default_nettype wire
