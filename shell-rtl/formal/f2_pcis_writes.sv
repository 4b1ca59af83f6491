// shef_f2_pcis_writes, 2 writes of up to 4 beats and room for 8 beats, for a core that does
// anything: each write is answered once, in order, with its id, after its data, and no other
// answer is given; the answer is offered within Cycles cycles of aw_valid_i, not counting those in
// which the shell does not take an answer or has no data. A forwarded write reaches the core
// whole, and never more beats than there is room for. A response of the core answers only the
// write that it belongs to, and every other answer is SLVERR. Nothing waits for the core without a
// link.
`default_nettype none
module f2_pcis_writes
  import shef_pkg::*;
(
    input wire        clk_i,
    input wire        rst_ni,
    input wire        up_i,
    input wire        link_i,
    input wire [15:0] aw_id_i,
    input wire [63:0] aw_addr_i,
    input wire [7:0]  aw_len_i,
    input wire        aw_valid_i,
    input wire        w_valid_i,
    input wire        b_ready_i,
    input wire        ask_ready_i,
    input wire [1:0]  done_resp_i,
    input wire        done_valid_i
);
  localparam int unsigned CYCLES = 26;
  localparam int unsigned STEP = 2;

  logic owed, aw_ready, w_ready, b_valid, data_valid, data_last, ask_valid, done_ready, late;
  logic [15:0] b_id;
  logic [1:0] b_resp;
  logic [57:0] ask_line;
  logic [5:0] ask_len;
  shef_f2_pcis_writes #(.Open(2), .Cycles(CYCLES), .Step(STEP), .Beats(8), .Owed(4)) dut (
      .clk_i, .rst_ni, .up_i, .link_i, .owed_o(owed),
      .aw_id_i, .aw_addr_i, .aw_len_i, .aw_valid_i, .aw_ready_o(aw_ready),
      .w_valid_i, .w_ready_o(w_ready),
      .b_id_o(b_id), .b_resp_o(b_resp), .b_valid_o(b_valid), .b_ready_i,
      .data_valid_o(data_valid), .data_last_o(data_last),
      .ask_line_o(ask_line), .ask_len_o(ask_len), .ask_valid_o(ask_valid), .ask_ready_i,
      .done_resp_i, .done_valid_i, .done_ready_o(done_ready), .late_o(late)
  );
  axi_channel #(.W(18)) u_b (
      .clk_i, .rst_ni, .valid_i(b_valid), .ready_i(b_ready_i), .data_i({b_id, b_resp}),
      .break_i(1'b0)
  );

  // ---- writes by number, modulo 4: one of them, symbolic ----
  logic init = 1'b0;
  logic [1:0] at, asked, ended, heads, answered;  // pushed; data taken; popped inside; answered
  logic at_open;                                  // from its push to its answer
  logic [15:0] at_id;
  logic [1:0] at_len;
  logic [5:0] since;      // cycles since its aw_valid_i, less those not counted
  // writes of the core, modulo 8: asked for; answered; replaced or given; and this write
  logic [2:0] total, taken, wanted, at_no;
  logic [3:0] held;       // beats that the core has not answered
  logic half;             // a forwarded write whose last beat is to come
  logic at_forward;
  wire push = aw_valid_i && aw_ready;
  wire b_fire = b_valid && b_ready_i;
  wire w_take = w_valid_i && w_ready;
  wire stall = (b_valid && !b_ready_i) || (dut.at_valid && !w_valid_i);
  logic was_pop, was_real;
  logic [1:0] was_resp;
  always_ff @(posedge clk_i) begin
    at <= at;
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (aw_len_i > 8'd3) assume (!aw_valid_i);
    if (!up_i) assume (!link_i);
    was_pop <= rst_ni && dut.pop;
    was_real <= dut.real_done;
    was_resp <= done_resp_i;
    if (!rst_ni) begin
      asked <= '0;
      ended <= '0;
      heads <= '0;
      answered <= '0;
      at_open <= 1'b0;
      at_forward <= 1'b0;
      since <= '0;
      total <= '0;
      taken <= '0;
      wanted <= '0;
      half <= 1'b0;
    end else begin
      if (push) asked <= asked + 2'd1;
      if (w_take && dut.w_end) ended <= ended + 2'd1;
      if (dut.pop) heads <= heads + 2'd1;
      if (b_fire) answered <= answered + 2'd1;
      if (push && asked == at) begin
        at_open <= 1'b1;
        at_id <= aw_id_i;
        at_len <= aw_len_i[1:0];
        since <= 6'd1;
      end else if (b_fire && answered == at) at_open <= 1'b0;
      else if (at_open && !stall) since <= since + 6'd1;
      if (w_take && dut.w_end && ended == at) at_no <= total;
      if (!up_i) begin
        total <= '0;
        taken <= '0;
        wanted <= '0;
        half <= 1'b0;
      end else begin
        if (ask_valid) total <= total + 3'd1;
        if (done_valid_i && done_ready && total != taken) taken <= taken + 3'd1;
        if (dut.pop && dut.mine) wanted <= wanted + 3'd1;
        if (data_valid) half <= !data_last;
      end
    end
  end

  // ---- the block's queues ----
  wire [1:0] many_data = 2'(asked - ended);
  wire [1:0] many_answers = dut.count;
  wire [1:0] data_place = at - ended;     // place of the symbolic write, if below many_data
  wire [1:0] answer_place = at - heads;   // if below many_answers
  wire in_data = at_open && data_place < many_data;
  wire in_answers = at_open && answer_place < many_answers;
  logic [1:0][81:0] data;
  logic [1:0][17:0] answers;
  logic [1:0][2:0] rest;
  logic [1:0] mine;
  logic [4:0] beats_all, work_at;
  logic [3:0][3:0] owed_len;
  logic [4:0] owed_beats;
  always_comb begin
    owed_beats = '0;
    for (int i = 0; i < 2; i++) begin
      data[i] = dut.u_data.mem_q[1'(dut.u_data.rp_q + 1'(i))];
      answers[i] = dut.u_answers.mem_q[1'(dut.u_answers.rp_q + 1'(i))];
      rest[i] = 2'(i) < many_data ? {1'b0, data[i][1:0]} + 3'd1 -
          (i == 0 ? {1'b0, dut.at_q[1:0]} : 3'd0) : 3'd0;
      mine[i] = answers[i][1] && 2'(i) >= dut.stale_q && 2'(i) < many_answers;
    end
    for (int i = 0; i < 4; i++) begin
      owed_len[i] = 3'(i) < dut.u_owed.count_q ?
          4'(dut.u_owed.mem_q[2'(dut.u_owed.rp_q + 2'(i))]) + 4'd1 : 4'd0;
      owed_beats = owed_beats + 5'(owed_len[i]);
    end
    beats_all = 5'(rest[0]) + 5'(rest[1]);
    // up to the symbolic write: beats to be taken, and cycles after each write and each answer
    work_at = !in_data ? 5'd0 : data_place[0] ? beats_all + 5'd2 : 5'(rest[0]) + 5'd1;
    work_at = work_at + {2'd0, 2'(at - heads), 1'b0} + 5'd2;
  end
  wire [81:0] at_data = data[data_place[0]];
  wire [17:0] at_answer = answers[answer_place[0]];

  // ---- ages of the block: oldest write without its data, oldest write ----
  logic [1:0][3:0] data_age, age;
  wire step = dut.u_answer_deadline.step_q;
  assign data_age = dut.u_data_deadline.age_q;
  assign age = dut.u_answer_deadline.age_q;
  wire at_slot = at[0];

  always_comb begin
    if (init && rst_ni) begin
      // no answer that was not asked for, and each as its request, after its data
      if (b_valid) assert (answered != ended && answered != asked);
      if (b_valid && at_open && answered == at) assert (b_id == at_id);
      // in time
      if (at_open) assert (since <= 6'(CYCLES));
      // responses of the core are those of the write, others are SLVERR
      if (dut.pop && dut.real_done) assert (done_valid_i && done_ready);
      if (dut.pop && dut.real_done && in_answers && answer_place == '0) assert (taken == at_no);
      if (was_pop) assert (b_valid && b_resp == (was_real ? was_resp : AXI_SLVERR));
      // a write goes to the core whole, with room, only with a link at its beginning
      if (half && w_take && up_i) assert (data_valid);
      if (half && up_i) assert (w_ready);
      if (data_valid && !half) assert (link_i && ask_ready_i);
      if (ask_valid) assert (data_valid && data_last && dut.owed_room);
      if (data_valid && data_last) assert (ask_valid);
      if (ask_valid && in_data && data_place == '0) assert (ask_len == 6'(at_len));
      assert (dut.held_q <= 4'd8);
      if (2'(asked - heads) < 2'd2) assert (aw_ready);
      // without a link nothing waits
      if (many_answers != '0 && !link_i && !(b_valid && !b_ready_i)) assert (dut.pop);
      if (many_data != '0 && !link_i && !half) assert (w_ready);
      assert (owed == (total != taken || half));

      // supporting invariants
      assert (many_data <= 2'd2 && many_answers <= 2'd2 && 2'(ended - heads) == many_answers &&
          2'(asked - heads) <= 2'd2 && dut.open_q == 2'(asked - heads) &&
          3'(many_data) + 3'(many_answers) == {1'b0, dut.open_q} &&
          dut.u_data.count_q == many_data);
      assert (1'(dut.u_data.wp_q - dut.u_data.rp_q) == many_data[0] &&
          1'(dut.u_answers.wp_q - dut.u_answers.rp_q) == many_answers[0]);
      assert (heads == answered + 2'(b_valid));
      if (many_data == '0) assert (dut.at_q == '0 && !half);
      else assert (dut.at_q <= data[0][7:0]);
      for (int i = 0; i < 2; i++) if (2'(i) < many_data) assert (data[i][7:0] <= 8'd3);
      if (dut.at_q != '0) assert (dut.forward_q == half);
      else assert (!half);
      if (at_open) assert (2'(at - answered) < 2'(asked - answered));
      if (in_data) assert (at_data[81:66] == at_id && at_data[7:0] == 8'(at_len));
      if (in_answers) assert (at_answer[17:2] == at_id);
      if (at_open && !in_data && !in_answers) assert (b_valid && answered == at);
      // what the core owes
      assert (dut.stale_q <= many_answers);
      assert (dut.u_owed.count_q == 3'(total - taken) && 3'(total - taken) <= 3'd4 &&
          2'(dut.u_owed.wp_q - dut.u_owed.rp_q) == dut.u_owed.count_q[1:0]);
      assert (dut.skip_q == 3'(wanted - taken) && 3'(wanted - taken) <= 3'(total - taken));
      assert (total == wanted + 3'(mine[0]) + 3'(mine[1]));
      if (in_answers && mine[answer_place[0]])
        assert (at_no == wanted + 3'(answer_place[0] && mine[0]));
      for (int i = 0; i < 4; i++) assert (owed_len[i] <= 4'd4);
      assert (dut.held_q == 4'(owed_beats) + (half ? 4'(data[0][1:0]) + 4'd1 : 4'd0) &&
          owed_beats <= 5'd8);
      if (half) assert (3'(total - taken) < 3'd4);
      // ages
      assert (dut.u_answer_deadline.count_q == dut.open_q &&
          dut.u_answer_deadline.put_q == asked[0] && dut.u_answer_deadline.take_q == heads[0]);
      assert (dut.u_data_deadline.count_q == many_data && dut.u_data_deadline.put_q == asked[0] &&
          dut.u_data_deadline.take_q == ended[0] && dut.u_data_deadline.step_q == step);
      assert (dut.beats_q == 11'(beats_all));
      for (int i = 0; i < 2; i++) assert (data_age[i] == age[i]);
      if (dut.open_q == 2'd2) assert (age[heads[0]] >= age[1'(heads[0] + 1'b1)]);
      if (at_open && (in_data || in_answers) && age[at_slot] != '1)
        assert ({1'b0, since} <= {2'd0, age[at_slot], 1'd0} + 7'(step) + 7'd1);
      if (in_data)
        assert ({1'b0, since} + 7'(work_at) <= 7'(CYCLES) - 7'd6 + 7'(dut.late_data));
      else if (in_answers)
        assert ({1'b0, since} + 7'(work_at) <= 7'(CYCLES) - 7'd6 + 7'(dut.late_answer));
      else if (at_open) assert (since <= 6'(CYCLES) - 6'd6);
    end
    cover (init && rst_ni && late && at_open && since >= 6'd12);
    cover (init && rst_ni && in_answers && dut.skip_q == 3'd2 && dut.pop && dut.mine);
    cover (init && rst_ni && w_take && !dut.forward && dut.late_data && link_i);
    cover (init && rst_ni && half && !up_i && dut.stale_q == '0 && many_answers != '0);
    cover (init && rst_ni && in_answers && answer_place == '0 && taken == 3'd5 && dut.real_done &&
        dut.pop);
  end
endmodule
`default_nettype wire
