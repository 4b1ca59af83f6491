// shef_f2_pcis_reads, 2 reads of up to 4 beats, for a core that does anything: each read is
// answered once, in order, with its id and beats, and no other answer is given; the last beat is
// offered within Cycles cycles of ar_valid_i, not counting those in which the shell does not take
// one. A beat of the core reaches only the place of the read for which it was asked, unchanged,
// and all other beats of an answer are ones with SLVERR. Nothing waits for the core without a
// link.
`default_nettype none
module f2_pcis_reads
  import shef_pkg::*;
(
    input wire         clk_i,
    input wire         rst_ni,
    input wire         up_i,
    input wire         link_i,
    input wire [15:0]  ar_id_i,
    input wire [63:0]  ar_addr_i,
    input wire [7:0]   ar_len_i,
    input wire         ar_valid_i,
    input wire         r_ready_i,
    input wire         ask_ready_i,
    input wire [511:0] beat_i,
    input wire [1:0]   resp_i,
    input wire         beat_valid_i
);
  localparam int unsigned CYCLES = 20;
  localparam int unsigned STEP = 2;

  logic owed, ar_ready, r_last, r_valid, ask_valid, beat_ready, late;
  logic [15:0] r_id;
  logic [511:0] r_data;
  logic [1:0] r_resp;
  logic [57:0] ask_line;
  logic [5:0] ask_len;
  shef_f2_pcis_reads #(.Open(2), .Cycles(CYCLES), .Step(STEP), .OwedBits(5)) dut (
      .clk_i, .rst_ni, .up_i, .link_i, .owed_o(owed),
      .ar_id_i, .ar_addr_i, .ar_len_i, .ar_valid_i, .ar_ready_o(ar_ready),
      .r_id_o(r_id), .r_data_o(r_data), .r_resp_o(r_resp), .r_last_o(r_last),
      .r_valid_o(r_valid), .r_ready_i,
      .ask_line_o(ask_line), .ask_len_o(ask_len), .ask_valid_o(ask_valid), .ask_ready_i,
      .beat_i, .resp_i, .beat_valid_i, .beat_ready_o(beat_ready), .late_o(late)
  );
  axi_channel #(.W(24)) u_r (
      .clk_i, .rst_ni, .valid_i(r_valid), .ready_i(r_ready_i),
      .data_i({r_id, r_last, r_resp, some(r_data)}), .break_i(1'b0)
  );
  function automatic logic [4:0] some(input logic [511:0] data);
    some = {data[511], data[300], data[128], data[1:0]};
  endfunction

  // ---- reads by number, modulo 4: one of them, symbolic ----
  logic init = 1'b0;
  logic [1:0] at, asked, heads, answered;   // pushed; popped inside; answered to the shell
  logic at_open;                            // from its push to its answer
  logic [15:0] at_id;
  logic [1:0] at_len, r_beat;
  logic [5:0] since;                        // cycles since its ar_valid_i, less those not counted
  logic [4:0] total, taken, wanted, at_first;  // beats of the core, modulo 32: asked for; taken;
                                            // replaced or given; the first one of the read
  wire push = ar_valid_i && ar_ready;
  wire stall = r_valid && !r_ready_i;
  wire r_fire = r_valid && r_ready_i;
  wire forward = ask_valid && ask_ready_i;
  logic was_load, was_real;
  logic [6:0] was_beat;
  always_ff @(posedge clk_i) begin
    at <= at;
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (ar_len_i <= 8'd3 || ar_len_i[7:6] != '0);
    if (ar_len_i > 8'd3) assume (!ar_valid_i);
    if (!up_i) assume (!link_i);
    was_load <= rst_ni && dut.load;
    was_real <= dut.real_beat;
    was_beat <= {resp_i, some(beat_i)};
    if (!rst_ni) begin
      asked <= '0;
      heads <= '0;
      answered <= '0;
      at_open <= 1'b0;
      r_beat <= '0;
      since <= '0;
      total <= '0;
      taken <= '0;
      wanted <= '0;
    end else begin
      if (push) asked <= asked + 2'd1;
      if (dut.pop) heads <= heads + 2'd1;
      if (r_fire) begin
        r_beat <= r_last ? '0 : r_beat + 2'd1;
        if (r_last) answered <= answered + 2'd1;
      end
      if (push && asked == at) begin
        at_open <= 1'b1;
        at_id <= ar_id_i;
        at_len <= ar_len_i[1:0];
        at_first <= total;
        since <= 6'd1;
      end else if (r_fire && r_last && answered == at) at_open <= 1'b0;
      else if (at_open && !stall) since <= since + 6'd1;
      if (!up_i) begin
        total <= '0;
        taken <= '0;
        wanted <= '0;
      end else begin
        if (forward) total <= total + 5'(ar_len_i[1:0]) + 5'd1;
        if (beat_valid_i && beat_ready && total != taken) taken <= taken + 5'd1;
        if (dut.load && dut.mine) wanted <= wanted + 5'd1;
      end
    end
  end

  // ---- the block's queue: beats up to the symbolic read, and those that the core owes ----
  wire [1:0] many = dut.count;
  wire [1:0] at_place = at - heads;              // place of the symbolic read, if below many
  wire at_inside = at_open && at_place < many;
  logic [4:0] mine_before, mine_all, beats_all;
  logic [4:0] work_at;                           // up to the symbolic one: beats and reads
  logic [1:0][7:0] lens;
  logic [1:0][2:0] rest;
  logic [1:0][25:0] entry;
  logic [1:0] mine;
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      entry[i] = dut.u_open.mem_q[1'(dut.u_open.rp_q + 1'(i))];
      lens[i] = entry[i][9:2];
      rest[i] = 2'(i) < many ? {1'b0, lens[i][1:0]} + 3'd1 - (i == 0 ? {1'b0, dut.at_q[1:0]} : 3'd0)
          : 3'd0;
      mine[i] = entry[i][1] && 2'(i) >= dut.stale_q;
    end
    mine_before = at_place[0] && mine[0] ? 5'(rest[0]) : 5'd0;
    mine_all = (mine[0] ? 5'(rest[0]) : 5'd0) + (mine[1] ? 5'(rest[1]) : 5'd0);
    beats_all = 5'(rest[0]) + 5'(rest[1]);
    work_at = at_place[0] ? beats_all + 5'd2 : 5'(rest[0]) + 5'd1;
  end
  wire [25:0] at_entry = entry[at_place[0]];

  // ---- ages of the block ----
  logic [1:0][3:0] age;
  logic step;
  wire at_age_slot = 1'(dut.u_deadline.take_q + at_place[0]);
  assign age = dut.u_deadline.age_q;
  assign step = dut.u_deadline.step_q;

  always_comb begin
    if (init && rst_ni) begin
      // no answer that was not asked for, and each as its request
      if (r_valid) assert (answered != asked);
      if (r_valid && at_open && answered == at)
        assert (r_id == at_id && r_last == (r_beat == at_len));
      // in time
      if (at_open) assert (since <= 6'(CYCLES));
      // beats of the core are those of the read, others are ones
      if (dut.load && dut.real_beat && at_inside && at_place == '0)
        assert (taken == at_first + 5'(dut.at_q[1:0]));
      if (was_load)
        assert (r_valid && {r_resp, some(r_data)} == (was_real ? was_beat : 7'b1011111));
      if (dut.load && dut.real_beat) assert (beat_valid_i && beat_ready);
      // requests are not changed, and are asked for only with a link
      if (ask_valid)
        assert (link_i && push && ask_line == ar_addr_i[63:6] && ask_len == ar_len_i[5:0]);
      if (many < 2'd2) assert (ar_ready);
      // without a link nothing waits
      if (many != '0 && !link_i && !stall) assert (dut.load);
      assert (owed == (total != taken));

      // supporting invariants
      assert (many <= 2'd2 && 2'(asked - heads) == many);
      assert (1'(dut.u_open.wp_q - dut.u_open.rp_q) == many[0]);
      assert (heads == answered + 2'(r_valid && r_last));
      assert (dut.at_q <= 8'd3);
      if (many == '0) assert (dut.at_q == '0);
      else assert (dut.at_q <= lens[0]);
      if (r_valid) assert (r_last ? dut.at_q == '0 : dut.at_q == 8'(r_beat) + 8'd1 && many != '0);
      else assert (dut.at_q == 8'(r_beat));
      for (int i = 0; i < 2; i++) if (2'(i) < many) assert (lens[i] <= 8'd3);
      if (at_open) assert (2'(at - answered) < 2'(asked - answered));
      if (at_inside) assert (at_entry[25:10] == at_id && at_entry[9:2] == 8'(at_len));
      if (at_open && !at_inside) assert (r_valid && r_last && answered == at);
      // what the core owes
      assert (dut.stale_q <= many);
      assert (dut.owed_q == 5'(total - taken) && 5'(total - taken) < 5'd20);
      assert (dut.skip_q == 5'(wanted - taken) && 5'(wanted - taken) <= 5'(total - taken));
      assert (total == wanted + mine_all);
      if (at_inside && at_entry[1] && at_place >= dut.stale_q)
        assert (at_first == wanted + mine_before - (at_place == '0 ? 5'(dut.at_q[1:0]) : 5'd0));
      // ages
      assert (dut.u_deadline.count_q == many &&
          1'(dut.u_deadline.put_q - dut.u_deadline.take_q) == many[0]);
      assert (dut.beats_q == 11'(beats_all));
      if (many == 2'd2)
        assert (age[dut.u_deadline.take_q] >= age[1'(dut.u_deadline.take_q + 1'b1)]);
      if (at_inside && age[at_age_slot] != '1)
        assert ({1'b0, since} <= {2'd0, age[at_age_slot], 1'd0} + 7'(step) + 7'd1);
      if (at_inside)
        assert ({1'b0, since} + 7'(work_at) <= 7'(CYCLES) - 7'd5 - 7'(!dut.late));
      if (at_open && !at_inside) assert (since <= 6'(CYCLES) - 6'd6);
    end
    cover (init && rst_ni && late && at_open && answered == at && since >= 6'd10);
    cover (init && rst_ni && at_inside && dut.skip_q == 5'd3 && dut.load && dut.real_beat == 1'b0 &&
        at_place == '0 && at_len == 2'd1);
    cover (init && rst_ni && at_inside && at_place == '0 && wanted == 5'd5 && dut.load &&
        dut.real_beat && dut.stale_q == '0);
    cover (init && rst_ni && dut.stale_q == 2'd2 && link_i);
    cover (init && rst_ni && dut.owed_q == 5'd9 && push && link_i);
  end
endmodule
`default_nettype wire
