// shef_h2c_writes, 2 writes of up to 4 beats, two bursts that wait to be sent: each write is
// answered once, in order, with its id, after its data, and no other answer is given; with OKAY
// only if it is outside of card memory, or memory has acknowledged all its bursts with OKAY.
// Bursts have at most 8 beats, do not cross 512 bytes, stay below CardBytes, and together are the
// write, beat for beat: a burst is complete when it is sent, W follows AW, and WLAST is on its
// last beat. Nothing of a write that is cut is sent, but for complete bursts; it is answered at
// once after its data. The FIFO of the beats is one that gives them in order (proof bram_fifo).
`default_nettype none

// Counts its words; the one under test comes out as it went in.
module shef_bram_fifo #(
    parameter int unsigned W = 8,
    parameter int unsigned Depth = 8
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clr_i,
    input  wire  [2:0]   zero_addr_i,
    input  wire          in_valid_i,
    output logic         in_ready_o,
    input  wire  [W-1:0] in_data_i,
    output logic         out_valid_o,
    input  wire          out_ready_i,
    output logic [W-1:0] out_data_o,
    output logic [4:0]   count_o
);
  logic [3:0] in_q, out_q;  // words so far, modulo 16
  wire [3:0] many = in_q - out_q;
  // as many as there are, and as late as it likes
  (* anyseq *) logic late;
  (* anyseq *) logic [W-1:0] other;
  (* anyconst *) logic [3:0] at;
  logic [4:0] word_q;
  assign in_ready_o = many < 4'd8;
  assign out_valid_o = many != '0 && !late;
  assign out_data_o = {other[W-1:5], out_q == at ? word_q : other[4:0]};
  assign count_o = {1'b0, many};
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      in_q <= '0;
      out_q <= '0;
    end else begin
      if (in_valid_i && in_ready_o) begin
        in_q <= in_q + 4'd1;
        if (in_q == at) word_q <= in_data_i[4:0];
      end
      if (out_valid_o && out_ready_i) out_q <= out_q + 4'd1;
    end
  end
endmodule

module h2c_writes
  import shef_pkg::*;
  import shef_h2c_pkg::*;
(
    input wire          clk_i,
    input wire          rst_ni,
    input wire          hold_i,
    input wire          cut_i,
    input wire axi_ax_t aw_i,
    input wire          aw_valid_i,
    input wire axi_w_t  w_i,
    input wire          w_valid_i,
    input wire          b_ready_i,
    input wire          mem_aw_ready_i,
    input wire          aw_port_i,
    input wire          mem_w_ready_i,
    input wire axi_b_t  mem_b_i,
    input wire          mem_b_valid_i
);
  localparam logic [63:0] CARD = 64'h5000;
  logic aw_ready, w_ready, b_valid, mem_aw_valid, mem_w_valid, w_port, quiet, owed, bad;
  axi_b_t b;
  axi_ax_t mem_aw;
  axi_w_t mem_w;
  shef_h2c_writes #(.CardBytes(CARD), .Open(2), .Beats(8), .Bursts(2)) dut (
      .clk_i, .rst_ni, .hold_i, .cut_i, .aw_i, .aw_valid_i, .aw_ready_o(aw_ready),
      .w_i, .w_valid_i, .w_ready_o(w_ready), .b_o(b), .b_valid_o(b_valid), .b_ready_i,
      .mem_aw_o(mem_aw), .mem_aw_valid_o(mem_aw_valid), .mem_aw_ready_i, .aw_port_i,
      .mem_w_o(mem_w), .mem_w_valid_o(mem_w_valid), .mem_w_ready_i, .w_port_o(w_port),
      .mem_b_i, .mem_b_valid_i, .quiet_o(quiet), .owed_o(owed), .bad_o(bad)
  );
  wire at_rst_n = rst_ni && !hold_i;
  axi_address u_aw (.clk_i, .rst_ni(at_rst_n), .valid_i(mem_aw_valid), .ready_i(mem_aw_ready_i),
      .ax_i(mem_aw));
  axi_channel #(.W(6)) u_w (.clk_i, .rst_ni(at_rst_n), .valid_i(mem_w_valid),
      .ready_i(mem_w_ready_i), .data_i({mem_w.last, mem_w.strb[4:0]}), .break_i(1'b0));
  axi_channel #(.W($bits(axi_b_t))) u_b (.clk_i, .rst_ni, .valid_i(b_valid), .ready_i(b_ready_i),
      .data_i(b), .break_i(1'b0));

  // ---- writes by number, modulo 4: one of them, symbolic ----
  logic init = 1'b0;
  logic [1:0] at, asked, ended, heads, answered;  // pushed; data taken; popped inside; answered
  logic at_open;                                  // from its push to its answer
  axi_ax_t at_ax;
  h2c_kind_e at_kind;
  logic [1:0] at_sent, at_acked;  // of the write: bursts that are complete; acknowledged
  logic at_error;
  logic was_cut, was_pop, was_okay;
  wire push = aw_valid_i && aw_ready;
  wire b_fire = b_valid && b_ready_i;
  wire w_take = w_valid_i && w_ready;
  wire refused = cut_i || aw_i.burst != AXI_BURST_INCR || (aw_i.size != AXI_SIZE_64 &&
      aw_i.len != '0) || {1'b0, aw_i.addr[11:6]} + {3'd0, aw_i.len[3:0]} > 7'd63;
  wire h2c_kind_e kind = refused ? H2C_REFUSED : aw_i.addr < CARD ? H2C_MEMORY : H2C_OUTSIDE;
  wire burst = dut.u_bursts.push;
  wire at_begins = push && asked == at;
  wire at_data = at_open && ended == at;          // its data come, if there are writes left
  wire acked = dut.good && dut.b_place == at[0];
  wire [3:0] at_phase = {1'b0, at_ax.addr[8:6]} + {2'd0, at_ax.len[1:0]};
  wire [1:0] at_bursts = {1'b0, at_phase[3]} + 2'd1;
  always_ff @(posedge clk_i) begin
    at <= at;
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (aw_i.len <= 8'd3);
    if (hold_i) assume (cut_i);
    was_cut <= rst_ni && cut_i && !quiet && !hold_i;
    if (was_cut && rst_ni) assume (cut_i);
    was_pop <= rst_ni && dut.pop;
    was_okay <= dut.head.kind == H2C_OUTSIDE || (dut.head.kind == H2C_MEMORY && !dut.stale &&
        !dut.error_q[dut.take_q]);
    if (!rst_ni) begin
      asked <= '0;
      ended <= '0;
      heads <= '0;
      answered <= '0;
      at_open <= 1'b0;
    end else begin
      if (push) asked <= asked + 2'd1;
      if (w_take && dut.w_end) ended <= ended + 2'd1;
      if (dut.pop) heads <= heads + 2'd1;
      if (b_fire) answered <= answered + 2'd1;
      if (at_begins) begin
        at_open <= 1'b1;
        at_ax <= aw_i;
        at_kind <= kind;
        at_sent <= '0;
        at_acked <= '0;
        at_error <= 1'b0;
      end else begin
        if (b_fire && answered == at) at_open <= 1'b0;
        if (burst && at_data) at_sent <= at_sent + 2'd1;
        if (acked) at_acked <= at_acked + 2'd1;
        if (acked && mem_b_i.resp != AXI_OKAY) at_error <= 1'b1;
      end
    end
  end

  // ---- the block's queues ----
  wire [1:0] many = dut.count;
  wire [1:0] many_data = 2'(asked - ended);
  wire [1:0] many_answers = 2'(ended - heads);
  wire [1:0] data_place = at - ended;
  wire in_data = at_open && data_place < many_data;
  wire in_open = at_open && 2'(at - heads) < many;
  logic [1:0][9:0] open;
  logic [1:0][68:0] data;
  logic [1:0][61:0] bursts;
  logic [1:0] live;
  logic [4:0] complete;  // beats of complete bursts in the FIFO of beats
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      open[i] = dut.u_open.mem_q[1'(dut.u_open.rp_q + 1'(i))];
      data[i] = dut.u_data.mem_q[1'(dut.u_data.rp_q + 1'(i))];
      bursts[i] = dut.u_bursts.mem_q[1'(dut.u_bursts.rp_q + 1'(i))];
      live[i] = 2'(i) < dut.u_bursts.count_q;
    end
    complete = (live[0] ? 5'(bursts[0][3:1]) + 5'd1 : 5'd0) +
        (live[1] ? 5'(bursts[1][3:1]) + 5'd1 : 5'd0) +
        (dut.active_q ? 5'(dut.rest_q) + 5'd1 : 5'd0);
  end
  wire [3:0] phase = {1'b0, data[0][13:11]} + {2'd0, dut.at_q[1:0]};
  wire [9:0] at_entry = open[1'(at[0] - heads[0])];
  wire [68:0] at_line = data[data_place[0]];
  wire at_live = at_kind == H2C_MEMORY && in_open && 2'(at - heads) >= dut.stale_q && !was_cut;
  wire [3:0] at_now = {1'b0, at_ax.addr[8:6]} + {2'd0, dut.at_q[1:0]};
  logic [5:0] word, was_word;
  logic was_load;
  assign word = {dut.beat.last, dut.beat.strb[4:0]};
  always_ff @(posedge clk_i) begin
    was_load <= at_rst_n && dut.load;
    was_word <= word;
  end

  always_comb begin
    if (init && rst_ni) begin
      // no answer that was not asked for, and each as its request, after its data
      if (b_valid) assert (answered != ended);
      if (b_valid && at_open && answered == at) assert (b.id == at_ax.id);
      if (dut.pop && in_open && at == heads) begin
        assert (dut.head.id == at_ax.id && dut.head.kind == at_kind);
        if (at_kind == H2C_MEMORY && !dut.stale)
          assert (at_acked == at_bursts && at_sent == at_bursts &&
              dut.error_q[dut.take_q] == at_error);
      end
      if (was_pop) assert (b_valid && b.resp == (was_okay ? AXI_OKAY : AXI_SLVERR));
      if (many < 2'd2) assert (aw_ready);
      // bursts are the write
      if (burst) begin
        assert (!cut_i && {1'b0, dut.part.line[2:0]} + {1'b0, dut.part.len} <= 4'd7 &&
            {dut.part.line, 6'd0} < CARD);
        if (at_data) assert (at_kind == H2C_MEMORY && dut.part.place == at[0] &&
            dut.part.line[57:6] == at_ax.addr[63:12] &&
            dut.part.line[5:0] == at_ax.addr[11:6] + dut.at_q[5:0] - 6'(dut.part.len));
      end
      if (w_take && in_data && data_place == '0 && at_live && !cut_i)
        assert (dut.wanted && dut.beat_room && burst == (dut.at_q == at_ax.len ||
            at_now[2:0] == 3'd7));
      if (w_take && dut.wanted) assert (dut.u_beats.in_data_i[4:0] == w_i.strb[4:0]);
      // W is in bursts, which are complete
      if (dut.active_q) assert (dut.u_beats.many != '0);
      if (was_load) assert (mem_w_valid && {mem_w.last, mem_w.strb[4:0]} == was_word);
      if (dut.load) assert (dut.beat.last == (dut.rest_q == '0));
      if (dut.start) assert (dut.rest_q == '0 || !dut.active_q);
      // at once without memory
      if (many_answers != '0 && (cut_i || (in_open && at == heads && at_kind != H2C_MEMORY)) &&
          (!b_valid || b_ready_i)) assert (dut.pop);
      if (many_data != '0 && (cut_i || (in_data && data_place == '0 && at_kind != H2C_MEMORY)))
        assert (w_ready);
      if (quiet) assert (!mem_aw_valid && !mem_w_valid && !owed && !dut.burst_valid);
      assert (owed == (dut.owed_q != '0));

      // supporting invariants
      assert (many <= 2'd2 && 2'(asked - heads) == many && dut.at_count == many_data &&
          3'(many_data) + 3'(many_answers) == {1'b0, many});
      assert (1'(dut.u_open.wp_q - dut.u_open.rp_q) == many[0] &&
          1'(dut.u_data.wp_q - dut.u_data.rp_q) == many_data[0] &&
          1'(dut.u_bursts.wp_q - dut.u_bursts.rp_q) == dut.u_bursts.count_q[0] &&
          dut.u_bursts.count_q <= 2'd2);
      assert (heads == answered + 2'(b_valid) && dut.put_q == asked[0] && dut.take_q == heads[0]);
      assert (dut.stale_q <= many && dut.at_stale_q <= many_data &&
          dut.at_stale_q == (dut.stale_q <= many_answers ? 2'd0 : 2'(dut.stale_q - many_answers)));
      if (was_cut) assert (dut.stale_q == many && dut.part_q == '0);
      if (many_data == '0) assert (dut.at_q == '0);
      else
        assert (dut.at_q <= data[0][10:3] && data[0][10:3] <= 8'd3 && data[0][0] == ended[0] &&
            {5'd0, dut.part_q} <= dut.at_q);
      if (many_data == 2'd2) assert (data[1][10:3] <= 8'd3 && data[1][0] == !ended[0]);
      if (at_open) assert (2'(at - answered) < 2'(asked - answered) && at_ax.len <= 8'd3);
      if (at_open && !in_open) assert (b_valid && answered == at);
      if (in_open) assert (at_entry == {at_ax.id, at_kind});
      if (in_open) assert (dut.whole_q[at[0]] == !in_data);
      if (many_answers != '0) assert (dut.whole_q[heads[0]]);
      if (many_answers == 2'd2) assert (dut.whole_q == '1);
      if (many_data != '0) assert (!dut.whole_q[ended[0]]);
      if (many_data == 2'd2) assert (dut.whole_q == '0);
      if (in_data) assert (at_line == {at_ax.addr[63:6], at_ax.len, at_kind, at[0]});
      if (at_open && at_kind == H2C_MEMORY)
        assert (at_ax.addr < CARD && {1'b0, at_ax.addr[11:6]} + {5'd0, at_ax.len[1:0]} <= 7'd63);
      for (int i = 0; i < 2; i++)
        if (2'(i) < many_data && data[i][2:1] == H2C_MEMORY)
          assert ({data[i][68:11], 6'd0} < CARD &&
              {1'b0, data[i][16:11]} + {5'd0, data[i][4:3]} <= 7'd63);
      if (many_data != '0 && data[0][2:1] == H2C_MEMORY && dut.at_stale_q == '0 && !was_cut)
        assert (dut.part_q == (phase[3] ? phase[2:0] : dut.at_q[2:0]));
      // bursts of the write, and what memory owes
      if (dut.part_q != '0) assert (many_data != '0 && dut.at_stale_q == '0 && !was_cut);
      if (many_data == '0 || dut.at_stale_q != '0 || data[0][2:1] != H2C_MEMORY)
        assert (dut.part_q == '0);
      if (at_live) begin
        assert (dut.left_q[at[0]] == 4'(at_bursts - at_acked) && at_acked <= at_bursts &&
            dut.error_q[at[0]] == at_error);
        if (!in_data) assert (at_sent == at_bursts);
        else if (data_place == '0)
          assert (at_sent == {1'b0, at_now[3]} && dut.part_q == (at_now[3] ? at_now[2:0]
              : dut.at_q[2:0]) && dut.at_q[2:0] >= dut.part_q);
        else assert (at_sent == '0);
      end
      assert (dut.u_beats.many <= 4'd8);
      assert (5'(dut.u_beats.many) >= complete && complete <= 5'd8);
      if (!was_cut) assert (5'(dut.u_beats.many) == complete + 5'(dut.part_q));
      for (int i = 0; i < 2; i++)
        if (live[i])
          assert ({1'b0, bursts[i][6:4]} + {1'b0, bursts[i][3:1]} <= 4'd7 &&
              {bursts[i][61:4], 6'd0} < CARD);
      if (mem_aw_valid || dut.active_q)
        assert ({1'b0, mem_aw.addr[8:6]} + mem_aw.len[3:0] <= 4'd7 && mem_aw.len <= 8'd7 &&
            mem_aw.addr < CARD && mem_aw.size == AXI_SIZE_64 && mem_aw.burst == AXI_BURST_INCR);
    end
    cover (init && rst_ni && b_fire && answered == at && at_open && at_kind == H2C_MEMORY &&
        at_bursts == 2'd2 && b.resp == AXI_OKAY);
    cover (init && rst_ni && cut_i && owed && !hold_i && dut.at_stale_q == 2'd1);
    cover (init && rst_ni && mem_w_valid && mem_w.last && mem_w.strb[4:0] == 5'd21 && mem_aw_valid);
    cover (init && rst_ni && b_valid && b.resp == AXI_SLVERR && at_error && at_open &&
        answered == at);
  end
endmodule
`default_nettype wire
