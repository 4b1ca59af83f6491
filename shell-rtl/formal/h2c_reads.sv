// shef_h2c_reads, 2 reads of up to 4 beats, in front of any reader that gives beats in order
// (proof dma_reader): each read is answered once, in order, with its id and beats, and no other
// answer is given. Its bursts have at most 8 beats, do not cross 512 bytes and stay below
// CardBytes; together they are the read, beat for beat, and each beat answers its place unchanged.
// Other reads are answered with zeros, and so are all while they are cut, at once.
`default_nettype none

// The reader: any beats, in order, for what was requested.
module shef_dma_reader
  import shef_pkg::*;
#(
    parameter int unsigned Slots = 2,
    parameter int unsigned Beats = 8
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          req_valid_i,
    output logic         req_ready_o,
    input  wire  [57:0]  req_line_i,
    input  wire  [6:0]   req_beats_i,
    output axi_ax_t      ar_o,
    output logic         ar_valid_o,
    input  wire          ar_ready_i,
    input  wire  axi_r_t r_i,
    input  wire          r_valid_i,
    output logic         beat_valid_o,
    input  wire          beat_ready_i,
    output logic [511:0] beat_o,
    output logic [1:0]   resp_o,
    output logic         owed_o,
    output logic         bad_o
);
  // r_i is the beat that it gives, ar_ready_i and r_valid_i say when
  logic [4:0] owed_q;
  wire accept = req_valid_i && req_ready_o;
  assign req_ready_o = ar_ready_i && owed_q <= 5'd4;
  assign beat_valid_o = r_valid_i && owed_q != '0;
  assign {beat_o, resp_o} = {r_i.data, r_i.resp};
  assign owed_o = owed_q != '0;
  assign {ar_o, ar_valid_o, bad_o} = '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) owed_q <= '0;
    else owed_q <= owed_q + (accept ? req_beats_i[4:0] : 5'd0) - 5'(beat_valid_o && beat_ready_i);
  end
endmodule

module h2c_reads
  import shef_pkg::*;
  import shef_h2c_pkg::*;
(
    input wire          clk_i,
    input wire          rst_ni,
    input wire          hold_i,
    input wire          cut_i,
    input wire axi_ax_t ar_i,
    input wire          ar_valid_i,
    input wire          r_ready_i,
    input wire          mem_ar_ready_i,
    input wire axi_r_t  mem_r_i,
    input wire          mem_r_valid_i
);
  localparam logic [63:0] CARD = 64'h5000;
  logic ar_ready, r_valid, mem_ar_valid, quiet, owed, bad;
  axi_r_t r;
  axi_ax_t mem_ar;
  shef_h2c_reads #(.CardBytes(CARD), .Open(2), .Slots(2)) dut (
      .clk_i, .rst_ni, .hold_i, .cut_i, .ar_i, .ar_valid_i, .ar_ready_o(ar_ready),
      .r_o(r), .r_valid_o(r_valid), .r_ready_i,
      .mem_ar_o(mem_ar), .mem_ar_valid_o(mem_ar_valid), .mem_ar_ready_i,
      .mem_r_i, .mem_r_valid_i, .quiet_o(quiet), .owed_o(owed), .bad_o(bad)
  );
  function automatic logic [6:0] some(input logic [511:0] data, input logic [1:0] resp);
    some = {data[511], data[300], data[128], data[1:0], resp};
  endfunction
  axi_channel #(.W(16)) u_r (
      .clk_i, .rst_ni, .valid_i(r_valid), .ready_i(r_ready_i),
      .data_i({r.id, r.last, some(r.data, r.resp)}), .break_i(1'b0)
  );

  // ---- reads by number, modulo 4: one of them, symbolic ----
  logic init = 1'b0;
  logic [1:0] at, asked, heads, answered;  // pushed; popped inside; answered
  logic at_open;                           // from its push to its answer
  axi_ax_t at_ax;
  h2c_kind_e at_kind;
  logic [3:0] r_beat;
  // beats of memory, modulo 16: accepted, requested, given; and the first one of the read
  logic [3:0] accepted, requested, given, at_first;
  wire push = ar_valid_i && ar_ready;
  wire r_fire = r_valid && r_ready_i;
  wire request = dut.u_reader.accept;
  wire [57:0] req_line = dut.u_reader.req_line_i;
  wire [6:0] req_beats = dut.u_reader.req_beats_i;
  logic was_load, was_fill, was_outside, was_cut;
  logic [6:0] was_beat;
  // what the comment of the package says
  wire refused = cut_i || ar_i.burst != AXI_BURST_INCR || (ar_i.size != AXI_SIZE_64 &&
      ar_i.len != '0) || {1'b0, ar_i.addr[11:6]} + {3'd0, ar_i.len[3:0]} > 7'd63;
  wire h2c_kind_e kind = refused ? H2C_REFUSED : ar_i.addr < CARD ? H2C_MEMORY : H2C_OUTSIDE;
  always_ff @(posedge clk_i) begin
    at <= at;
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (ar_i.len <= 8'd3);
    if (hold_i) assume (cut_i);
    // cut stays until nothing is in flight, or reset
    was_cut <= rst_ni && cut_i && !quiet && !hold_i;
    if (was_cut && rst_ni) assume (cut_i);
    was_load <= rst_ni && dut.load;
    was_fill <= dut.fill;
    was_outside <= dut.head.kind == H2C_OUTSIDE;
    was_beat <= some(mem_r_i.data, mem_r_i.resp);
    if (!rst_ni) begin
      asked <= '0;
      heads <= '0;
      answered <= '0;
      at_open <= 1'b0;
      r_beat <= '0;
      accepted <= '0;
      requested <= '0;
      given <= '0;
    end else begin
      if (push) asked <= asked + 2'd1;
      if (dut.pop) heads <= heads + 2'd1;
      if (r_fire) begin
        r_beat <= r.last ? '0 : r_beat + 4'd1;
        if (r.last) answered <= answered + 2'd1;
      end
      if (push && asked == at) begin
        at_open <= 1'b1;
        at_ax <= ar_i;
        at_kind <= kind;
        at_first <= accepted;
      end else if (r_fire && r.last && answered == at) at_open <= 1'b0;
      if (cut_i) begin
        accepted <= '0;
        requested <= '0;
        given <= '0;
      end else begin
        if (push && kind == H2C_MEMORY) accepted <= accepted + 4'(ar_i.len[1:0]) + 4'd1;
        if (request) requested <= requested + req_beats[3:0];
        if (dut.load && !dut.fill) given <= given + 4'd1;
      end
    end
  end

  // ---- the block's queues ----
  wire [1:0] many = dut.count;
  wire [1:0] at_place = at - heads;
  wire at_inside = at_open && at_place < many;
  logic [1:0][17:0] entry;
  logic [1:0][3:0] lens;
  logic [1:0] is_mine;
  logic [1:0][3:0] rest, mine, parts;
  logic [1:0][63:0] whole;
  wire [1:0] many_whole = dut.u_whole.count_q;
  wire [1:0] many_mine = 2'(is_mine[0]) + 2'(is_mine[1]);
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      entry[i] = dut.u_open.mem_q[1'(dut.u_open.rp_q + 1'(i))];
      lens[i] = entry[i][5:2];
      rest[i] = 2'(i) < many ? lens[i] + 4'd1 - (i == 0 ? dut.at_q[3:0] : 4'd0) : 4'd0;
      is_mine[i] = entry[i][1:0] == H2C_MEMORY && 2'(i) >= dut.stale_q && 2'(i) < many;
      mine[i] = is_mine[i] ? rest[i] : 4'd0;
      whole[i] = dut.u_whole.mem_q[1'(dut.u_whole.rp_q + 1'(i))];
      parts[i] = 2'(i) < many_whole ? whole[i][3:0] + 4'd1 -
          (i == 0 ? dut.done_q[3:0] : 4'd0) : 4'd0;
    end
  end
  wire [17:0] at_entry = entry[at_place[0]];
  wire at_mine = at_inside && at_kind == H2C_MEMORY && at_place >= dut.stale_q;
  wire [3:0] at_beats = at_ax.len[3:0] + 4'd1;
  wire [3:0] at_done = requested - at_first;  // beats of the read that were requested, if some
  wire at_begun = 4'(at_first - given) <= 4'(requested - given) || at_place == '0;

  always_comb begin
    if (init && rst_ni) begin
      // no answer that was not asked for, and each as its request
      if (r_valid) assert (answered != asked);
      if (r_valid && at_open && answered == at)
        assert (r.id == at_ax.id && r.last == (8'(r_beat) == at_ax.len));
      if (many < 2'd2) assert (ar_ready);
      // bursts
      if (request) assert (req_beats >= 7'd1 && req_beats <= 7'd8 &&
          {4'd0, req_line[2:0]} + req_beats <= 7'd8 && {req_line, 6'd0} < CARD && !cut_i);
      if (request && at_mine && at_begun && at_done < at_beats)
        assert (req_line[57:6] == at_ax.addr[63:12] &&
            req_line[5:0] == at_ax.addr[11:6] + 6'(at_done) &&
            at_done + req_beats[3:0] <= at_beats);
      // each beat in its place, unchanged
      if (dut.load && !dut.fill && at_inside && at_place == '0)
        assert (at_mine && given == at_first + dut.at_q[3:0] && dut.beat_valid && dut.beat_ready);
      if (was_load)
        assert (r_valid && some(r.data, r.resp) == (!was_fill ? was_beat : was_outside ? 7'd0
            : 7'(AXI_SLVERR)));
      // at once without memory
      if (many != '0 && (cut_i || (at_inside && at_place == '0 && at_kind != H2C_MEMORY)) &&
          (!r_valid || r_ready_i)) assert (dut.load);
      assert (quiet == (dut.u_reader.owed_q == '0));

      // supporting invariants
      assert (many <= 2'd2 && 2'(asked - heads) == many &&
          1'(dut.u_open.wp_q - dut.u_open.rp_q) == many[0]);
      assert (heads == answered + 2'(r_valid && r.last));
      assert (dut.at_q <= 8'd3 && (many == '0 ? dut.at_q == '0 : dut.at_q <= 8'(lens[0])));
      if (r_valid) assert (r.last ? dut.at_q == '0 : dut.at_q == 8'(r_beat) + 8'd1 && many != '0);
      else assert (dut.at_q == 8'(r_beat));
      for (int i = 0; i < 2; i++) if (2'(i) < many) assert (entry[i][9:2] <= 8'd3);
      if (at_open) assert (2'(at - answered) < 2'(asked - answered) && at_ax.len <= 8'd3);
      if (at_inside)
        assert (at_entry[17:10] == at_ax.id && at_entry[9:2] == at_ax.len &&
            at_entry[1:0] == at_kind);
      if (at_open && at_kind == H2C_MEMORY)
        assert (at_ax.addr < CARD && {1'b0, at_ax.addr[11:6]} + {3'd0, at_ax.len[3:0]} <= 7'd63);
      if (at_open && !at_inside) assert (r_valid && r.last && answered == at);
      // beats of memory
      assert (dut.stale_q <= many && many_whole <= many_mine &&
          1'(dut.u_whole.wp_q - dut.u_whole.rp_q) == many_whole[0]);
      assert (dut.inside_q == dut.u_reader.owed_q && dut.u_reader.owed_q <= 5'd8);
      if (!was_cut) assert (5'(4'(requested - given)) == dut.u_reader.owed_q);
      else assert (many_whole == '0 && dut.done_q == '0);
      if (!was_cut) assert (accepted == requested + parts[0] + parts[1]);
      if (!was_cut) assert (accepted == given + mine[0] + mine[1]);
      for (int i = 0; i < 2; i++)
        if (2'(i) < many_whole)
          assert (whole[i][5:0] <= 6'd3 &&
              {1'b0, whole[i][11:6]} + {1'b0, whole[i][5:0]} <= 7'd63 &&
              {whole[i][63:6], 6'd0} < CARD);
      // bursts are those of the last reads
      if (many_whole == 2'd1)
        assert (whole[0][5:0] == (is_mine[1] ? 6'(lens[1]) : 6'(lens[0])));
      if (many_whole == 2'd2)
        assert (whole[0][5:0] == 6'(lens[0]) && whole[1][5:0] == 6'(lens[1]));
      if (many_whole == '0) assert (dut.done_q == '0);
      else assert (dut.done_q <= whole[0][5:0]);
      if (at_mine && !was_cut) begin
        assert (at_first == given + (at_place[0] ? mine[0] : 4'd0) -
            (at_place[0] ? 4'd0 : dut.at_q[3:0]));
        if (at_begun && at_done < at_beats)
          assert (many_whole != '0 && whole[0] == {at_ax.addr[63:6], at_ax.len[5:0]} &&
              dut.done_q == 6'(at_done));
        if (!at_begun)
          assert (many_whole == 2'd2 && whole[1] == {at_ax.addr[63:6], at_ax.len[5:0]} &&
              at_first == requested + parts[0]);
        if (at_begun) assert (at_done <= 4'd8);
      end
    end
    cover (init && rst_ni && request && at_mine && at_place[0] && at_done == 4'd1);
    cover (init && rst_ni && r_fire && r.last && at_open && answered == at && r_beat == 4'd3 &&
        at_kind == H2C_MEMORY && was_beat == 7'd85 && !was_fill);
    cover (init && rst_ni && cut_i && dut.u_reader.owed_q == 5'd5 && !hold_i);
    cover (init && rst_ni && at_mine && dut.stale_q == 2'd1);
  end
endmodule
`default_nettype wire
