// Memory ports of the core on the one memory controller of AWS F2.
//
// mem_*: the ports, AXI4 with 8-bit ids. ddr_*: AXI4 to the controller, whose ids are
// {port, id}. A burst passes only while ready_i is high. Requests take turns, W follows in AW order;
// a port offers an AW only when its data are present. Combinational, one beat a cycle each way.
`default_nettype none
module shef_f2_ddr
  import shef_pkg::*;
#(
    parameter int unsigned NPorts = 1
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic ready_i,
    input  wire axi_req_t [NPorts-1:0] mem_req_i,
    output axi_rsp_t [NPorts-1:0] mem_rsp_o,
    output axi_req_t  ddr_req_o,
    output logic [1:0] ddr_aw_port_o,
    output logic [1:0] ddr_ar_port_o,
    input  wire axi_rsp_t ddr_rsp_i,
    input  wire logic [1:0] ddr_b_port_i,
    input  wire logic [1:0] ddr_r_port_i
);
  localparam int unsigned PW = NPorts == 1 ? 1 : $clog2(NPorts);
  typedef logic [PW-1:0] place_t;

  logic [NPorts-1:0] aw_ask, ar_ask;
  place_t aw_sel, ar_sel, w_sel, b_sel, r_sel;
  logic aw_valid, ar_valid, w_room, w_known;

  for (genvar p = 0; p < int'(NPorts); p++) begin : g_ask
    assign aw_ask[p] = mem_req_i[p].aw_valid && ready_i;
    assign ar_ask[p] = mem_req_i[p].ar_valid && ready_i;
  end

  if (NPorts == 1) begin : g_one
    assign aw_sel = '0;
    assign ar_sel = '0;
    assign aw_valid = aw_ask[0];
    assign ar_valid = ar_ask[0];
  end else begin : g_turns
    shef_turn #(.N(NPorts)) u_aw (
        .clk_i, .rst_ni, .req_i(aw_ask), .done_i(ddr_rsp_i.aw_ready && w_room),
        .valid_o(aw_valid), .sel_o(aw_sel)
    );
    shef_turn #(.N(NPorts)) u_ar (
        .clk_i, .rst_ni, .req_i(ar_ask), .done_i(ddr_rsp_i.ar_ready),
        .valid_o(ar_valid), .sel_o(ar_sel)
    );
  end

  wire w_valid = w_known && mem_req_i[w_sel].w_valid;
  logic [4:0] unused_count;
  shef_fifo #(.W(PW), .Depth(16)) u_order (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(ddr_req_o.aw_valid && ddr_rsp_i.aw_ready), .in_ready_o(w_room),
      .in_data_i(aw_sel),
      .out_valid_o(w_known), .out_ready_i(w_valid && ddr_rsp_i.w_ready && ddr_req_o.w.last),
      .out_data_o(w_sel), .count_o(unused_count)
  );

  assign b_sel = ddr_b_port_i[PW-1:0];
  assign r_sel = ddr_r_port_i[PW-1:0];
  assign ddr_aw_port_o = 2'(aw_sel);
  assign ddr_ar_port_o = 2'(ar_sel);
  assign ddr_req_o = '{
      aw: mem_req_i[aw_sel].aw,
      aw_valid: aw_valid && w_room,
      w: mem_req_i[w_sel].w,
      w_valid: w_valid,
      b_ready: mem_req_i[b_sel].b_ready,
      ar: mem_req_i[ar_sel].ar,
      ar_valid: ar_valid,
      r_ready: mem_req_i[r_sel].r_ready
  };
  for (genvar p = 0; p < int'(NPorts); p++) begin : g_port
    assign mem_rsp_o[p] = '{
        aw_ready: aw_valid && aw_sel == place_t'(p) && w_room && ddr_rsp_i.aw_ready,
        w_ready: w_known && w_sel == place_t'(p) && ddr_rsp_i.w_ready,
        b: ddr_rsp_i.b,
        b_valid: ddr_rsp_i.b_valid && b_sel == place_t'(p),
        ar_ready: ar_valid && ar_sel == place_t'(p) && ddr_rsp_i.ar_ready,
        r: ddr_rsp_i.r,
        r_valid: ddr_rsp_i.r_valid && r_sel == place_t'(p)
    };
  end
  logic unused;
  assign unused = ^{ddr_b_port_i, ddr_r_port_i};
endmodule
`default_nettype wire
