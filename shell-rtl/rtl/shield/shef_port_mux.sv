// Memory port of several engine sets: requests take turns, write data follows in AW order, and
// responses are routed back by set number. If First < NSets, that set's requests go before the
// others', and the others together have no more than Ahead + 7 read beats in flight and two write
// bursts that wait for their data, so that an access of First waits for no more at a memory that
// answers in order.
//
// Handshake: AXI4 on both sides; set_* belong to the sets, mem_* to the port. A request leaves with
// the number of its set in id[7:6] (SetNo), which is removed again on the way back. Sets offer an
// AW only when its data are present, so no set can hold the W channel; R and B are accepted
// whenever the set accepts them. A response for a set that is not at this port goes to the first
// one with an unused id, and becomes its protocol fault.
// No latency: requests and responses pass combinationally (W one cycle after its AW). One beat a
// cycle each way. With one set: wires. Reset drops the bursts that wait for their data; nothing
// here is secret.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_port_mux
  import shef_pkg::*;
#(
    parameter int unsigned NSets = 2,
    parameter logic [NSets-1:0][1:0] SetNo = '0,
    parameter int unsigned First = NSets,
    parameter int unsigned Ahead = 256
) (
    input  wire clk_i,
    input  wire rst_ni,

    input  wire axi_req_t [NSets-1:0] set_req_i,
    output axi_rsp_t [NSets-1:0] set_rsp_o,

    output axi_req_t mem_req_o,
    input  wire axi_rsp_t mem_rsp_i
);
  if (NSets == 1) begin : g_wires
    assign mem_req_o = set_req_i;
    assign set_rsp_o = mem_rsp_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni, SetNo};
  end else begin : g_mux
    localparam int unsigned SW = $clog2(NSets);
    typedef logic [SW-1:0] place_t;

    logic [NSets-1:0] set_ar_valid, set_aw_valid, set_b_ready, set_r_ready;  // of set_req_i
    logic [NSets-1:0] may_read, may_write;
    logic [3:0] order;  // bursts that wait for their data

    // ---- responses ----
    logic [NSets-1:0] b_for, r_for;
    logic b_lost, r_lost;  // for a set that is not at this port
    always_comb begin
      for (int unsigned s = 0; s < NSets; s++) begin
        b_for[s] = mem_rsp_i.b.id[7:6] == SetNo[s];
        r_for[s] = mem_rsp_i.r.id[7:6] == SetNo[s];
      end
      b_lost = b_for == '0;
      r_lost = r_for == '0;
      if (b_lost) b_for[0] = 1'b1;
      if (r_lost) r_for[0] = 1'b1;
    end

    // ---- requests, and the order of the data ----
    place_t ar_sel, aw_sel, w_sel;
    logic ar_valid, aw_valid, w_room, w_known, w_end;
    shef_turn #(.N(NSets), .First(First)) u_ar (
        .clk_i, .rst_ni, .req_i(set_ar_valid & may_read), .done_i(mem_rsp_i.ar_ready),
        .valid_o(ar_valid), .sel_o(ar_sel)
    );
    shef_turn #(.N(NSets), .First(First)) u_aw (
        .clk_i, .rst_ni, .req_i(set_aw_valid & may_write),
        .done_i(mem_rsp_i.aw_ready && w_room), .valid_o(aw_valid), .sel_o(aw_sel)
    );
    shef_fifo #(.W(SW), .Depth(8)) u_order (
        .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
        .in_valid_i(mem_req_o.aw_valid && mem_rsp_i.aw_ready), .in_ready_o(w_room),
        .in_data_i(aw_sel),
        .out_valid_o(w_known), .out_ready_i(w_end), .out_data_o(w_sel), .count_o(order)
    );
    assign w_end = mem_req_o.w_valid && mem_rsp_i.w_ready && mem_req_o.w.last;

    if (First < NSets) begin : g_ahead
      localparam int unsigned CW = $clog2(Ahead + 257);
      logic [CW-1:0] ahead_q;  // read beats in flight of the other sets
      logic ar_fire, r_fire;
      assign ar_fire = ar_valid && mem_rsp_i.ar_ready && ar_sel != place_t'(First);
      assign r_fire = mem_rsp_i.r_valid && mem_req_o.r_ready && !r_for[First] && ahead_q != '0;
      for (genvar s = 0; s < int'(NSets); s++) begin : g_set
        assign may_read[s] = s == int'(First) || ahead_q < CW'(Ahead);
        assign may_write[s] = s == int'(First) || order < 4'd2;
      end
      always_ff @(posedge clk_i) begin
        if (!rst_ni) ahead_q <= '0;
        else ahead_q <= ahead_q + (ar_fire ? CW'(mem_req_o.ar.len) + 1'b1 : '0) - CW'(r_fire);
      end
    end else begin : g_alike
      assign may_read = '1;
      assign may_write = '1;
      logic unused;
      assign unused = ^order;
    end

    always_comb begin
      mem_req_o.aw = set_req_i[aw_sel].aw;
      mem_req_o.aw.id[7:6] = SetNo[aw_sel];
      mem_req_o.aw_valid = aw_valid && w_room;
      mem_req_o.w = set_req_i[w_sel].w;
      mem_req_o.w_valid = w_known && set_req_i[w_sel].w_valid;
      mem_req_o.b_ready = (b_for & ~set_b_ready) == '0;
      mem_req_o.ar = set_req_i[ar_sel].ar;
      mem_req_o.ar.id[7:6] = SetNo[ar_sel];
      mem_req_o.ar_valid = ar_valid;
      mem_req_o.r_ready = (r_for & ~set_r_ready) == '0;
    end

    for (genvar s = 0; s < int'(NSets); s++) begin : g_set
      assign set_ar_valid[s] = set_req_i[s].ar_valid;
      assign set_aw_valid[s] = set_req_i[s].aw_valid;
      assign set_b_ready[s] = set_req_i[s].b_ready;
      assign set_r_ready[s] = set_req_i[s].r_ready;
      always_comb begin
        set_rsp_o[s] = mem_rsp_i;
        set_rsp_o[s].aw_ready = aw_sel == place_t'(s) && mem_rsp_i.aw_ready && w_room &&
            may_write[s];
        set_rsp_o[s].w_ready = w_sel == place_t'(s) && mem_rsp_i.w_ready && w_known;
        set_rsp_o[s].b.id[7:6] = (s == 0 && b_lost) ? 2'b11 : 2'b00;
        set_rsp_o[s].b_valid = b_for[s] && mem_rsp_i.b_valid;
        set_rsp_o[s].ar_ready = ar_sel == place_t'(s) && mem_rsp_i.ar_ready && may_read[s];
        set_rsp_o[s].r.id[7:6] = (s == 0 && r_lost) ? 2'b11 : 2'b00;
        set_rsp_o[s].r_valid = r_for[s] && mem_rsp_i.r_valid;
      end
      logic unused;
      assign unused = ^{set_req_i[s].aw.id[7:6], set_req_i[s].ar.id[7:6]};
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
