// Accelerator port of several engine sets: routes bursts to sets by address, and returns responses
// in order per id.
//
// Handshake: AXI4 on both sides; acc_* belong to the accelerator, set_* to the sets. RegionSet is
// the place of each region's set in set_*; a burst that begins in no region goes to the first set,
// which refuses it. While an id has a burst in one set, a burst of the same id for another set
// waits, and so do those behind it; ids that agree in their low LockLog2 bits count as the same. W
// beats go to the sets in the order of AW, counted by AWLEN; set_w_waits_o: the present beat is for
// another set, which does not accept it, so a set's own beats cannot arrive. Read bursts return
// whole.
// Latency: one cycle for AR and AW, none for W, R, B (combinational); one beat a cycle each way.
// With one set: wires. Every burst ends because every set answers every burst; reset drops the
// bursts in flight. The block stores no data.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are left open by name)
module shef_demux
  import shef_pkg::*;
#(
    parameter int unsigned NSets = 2,
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [NRegions-1:0] Regions = '0,
    parameter logic [NRegions-1:0][1:0] RegionSet = '0,
    parameter int unsigned LockLog2 = 5
) (
    input  wire clk_i,
    input  wire rst_ni,

    input  wire axi_req_t acc_req_i,
    output axi_rsp_t acc_rsp_o,

    output axi_req_t [NSets-1:0] set_req_o,
    output logic [NSets-1:0] set_w_waits_o,
    input  wire axi_rsp_t [NSets-1:0] set_rsp_i
);
  if (NSets == 1) begin : g_wires
    assign set_req_o = acc_req_i;
    assign set_w_waits_o = '0;
    assign acc_rsp_o = set_rsp_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni};
  end else begin : g_demux
    localparam int unsigned SW = $clog2(NSets);
    typedef logic [SW-1:0] place_t;
    typedef logic [LockLog2-1:0] lock_t;

    function automatic place_t set_of(input logic [63:0] addr);
      place_t s;
      s = '0;
      for (int unsigned r = 0; r < NRegions; r++)
        if (addr >= Regions[r].base && addr - Regions[r].base < Regions[r].size)
          s = RegionSet[r][SW-1:0];
      return s;
    endfunction

    // ---- requests: [0] reads, [1] writes ----
    axi_ax_t [1:0] ax_in, ax;
    logic [1:0] in_valid, in_ready, ax_valid, go, to_ready, room, ended;
    place_t [1:0] to;
    logic [1:0][AXI_ID_W-1:0] ended_id;
    logic [1:0][NSets-1:0] set_ready;

    assign ax_in = {acc_req_i.aw, acc_req_i.ar};
    assign in_valid = {acc_req_i.aw_valid, acc_req_i.ar_valid};

    for (genvar d = 0; d < 2; d++) begin : g_way
      shef_skid #(.W($bits(axi_ax_t))) u_skid (
          .clk_i, .rst_ni, .clr_i(1'b0), .in_valid_i(in_valid[d]), .in_ready_o(in_ready[d]),
          .in_data_i(ax_in[d]),
          .out_valid_o(ax_valid[d]), .out_ready_i(go[d] && to_ready[d]), .out_data_o(ax[d])
      );
      // set of the bursts of an id, and their number
      place_t where_q[1 << LockLog2];
      logic [6:0] many_q[1 << LockLog2];
      lock_t mine, theirs;
      logic up, down;

      assign to[d] = set_of(ax[d].addr);
      assign mine = ax[d].id[LockLog2-1:0];
      assign theirs = ended_id[d][LockLog2-1:0];
      assign go[d] = ax_valid[d] && room[d] &&
          (many_q[mine] == '0 || (where_q[mine] == to[d] && many_q[mine] != '1));
      assign to_ready[d] = set_ready[d][to[d]];
      assign up = go[d] && to_ready[d];
      assign down = ended[d];

      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          for (int i = 0; i < (1 << LockLog2); i++) begin
            where_q[i] <= '0;
            many_q[i] <= '0;
          end
        end else begin
          if (up) where_q[mine] <= to[d];
          if (!(up && down && mine == theirs)) begin
            if (up) many_q[mine] <= many_q[mine] + 1'b1;
            if (down) many_q[theirs] <= many_q[theirs] - 1'b1;
          end
        end
      end
    end
    assign room[0] = 1'b1;

    // ---- W: the order of AW ----
    place_t w_to;
    logic [7:0] w_len, w_beat_q;
    logic w_known, w_ready, w_fire, w_end;
    logic [NSets-1:0] set_w_ready;
    shef_fifo #(.W(SW + 8), .Depth(32)) u_order (
        .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
        .in_valid_i(go[1] && to_ready[1]), .in_ready_o(room[1]), .in_data_i({to[1], ax[1].len}),
        .out_valid_o(w_known), .out_ready_i(w_end), .out_data_o({w_to, w_len}), .count_o()
    );
    assign w_ready = w_known && set_w_ready[w_to];
    assign set_w_waits_o = {NSets{w_known && acc_req_i.w_valid && !set_w_ready[w_to]}} &
        ~(NSets'(1) << w_to);
    assign w_fire = acc_req_i.w_valid && w_ready;
    assign w_end = w_fire && w_beat_q == w_len;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) w_beat_q <= '0;
      else if (w_fire) w_beat_q <= w_end ? '0 : w_beat_q + 1'b1;
    end

    // ---- R: whole bursts take turns; B: single responses do ----
    place_t r_from, b_from;
    logic r_valid, b_valid;
    logic [NSets-1:0] set_r_valid, set_b_valid;
    axi_r_t r;
    axi_b_t b;
    shef_turn #(.N(NSets)) u_r (
        .clk_i, .rst_ni, .req_i(set_r_valid), .done_i(ended[0]), .valid_o(r_valid), .sel_o(r_from)
    );
    shef_turn #(.N(NSets)) u_b (
        .clk_i, .rst_ni, .req_i(set_b_valid), .done_i(acc_req_i.b_ready), .valid_o(b_valid),
        .sel_o(b_from)
    );
    assign r = set_rsp_i[r_from].r;
    assign b = set_rsp_i[b_from].b;
    assign ended = {b_valid && acc_req_i.b_ready, r_valid && acc_req_i.r_ready && r.last};
    assign ended_id = {b.id, r.id};

    assign acc_rsp_o = '{aw_ready: in_ready[1], w_ready: w_ready, b: b, b_valid: b_valid,
        ar_ready: in_ready[0], r: r, r_valid: r_valid};
    for (genvar s = 0; s < int'(NSets); s++) begin : g_set
      assign set_ready[0][s] = set_rsp_i[s].ar_ready;
      assign set_ready[1][s] = set_rsp_i[s].aw_ready;
      assign set_w_ready[s] = set_rsp_i[s].w_ready;
      assign set_r_valid[s] = set_rsp_i[s].r_valid;
      assign set_b_valid[s] = set_rsp_i[s].b_valid;
      assign set_req_o[s] = '{
          aw: ax[1],
          aw_valid: go[1] && to[1] == place_t'(s),
          w: acc_req_i.w,
          w_valid: w_known && acc_req_i.w_valid && w_to == place_t'(s),
          b_ready: acc_req_i.b_ready && b_valid && b_from == place_t'(s),
          ar: ax[0],
          ar_valid: go[0] && to[0] == place_t'(s),
          r_ready: acc_req_i.r_ready && r_valid && r_from == place_t'(s)
      };
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
