// shef_dma_writer against a memory that responds with anything at any time: AW and W follow the
// handshake rules and stay within their page. Each burst is requested once, in order, with its
// address and length, as soon as possible. W carries the beats in order, burst by burst behind its
// AW, with WLAST where AWLEN says, and never waits for data within a burst. There are never more
// outstanding bursts than there is room for. The end of a piece is reported once, in order, as soon
// as all its bursts are answered: with its own status if each response was OKAY, else as the error.
// An unowed B is reported as bad and not used. A burst is owed its response from the cycle in which
// its AW is valid. Eight beats, bursts of up to four, two that wait and four outstanding; W by five
// of its bits. One symbolic beat and one symbolic burst's address are tracked.
// Assumed: a burst arrives with or after its last beat and is within one page; only the last burst
// of a piece has a status.
`default_nettype none
module dma_writer
  import shef_pkg::*;
  import shef_dma_pkg::*;
(
    input wire         clk_i,
    input wire         rst_ni,
    input wire         beat_valid_i,
    input wire [511:0] beat_i,
    input wire [63:0]  strb_i,
    input wire         burst_valid_i,
    input wire burst_t burst_i,
    input wire         aw_ready_i,
    input wire         w_ready_i,
    input wire axi_b_t b_i,
    input wire         b_valid_i
);
  localparam int unsigned Depth = 8;
  localparam int unsigned Bursts = 2;
  localparam int unsigned Open = 4;
  localparam logic [6:0] Most = 7'd4;   // beats of a burst
  logic beat_ready, burst_ready, aw_valid, w_valid, done_valid, owed, bad;
  axi_ax_t aw;
  axi_w_t w;
  done_t done;
  shef_dma_writer #(.Depth(Depth), .Bursts(Bursts), .Open(Open), .WholeBeats(1'b0),
      .Error(ST_HOST)) dut (
      .clk_i, .rst_ni, .beat_valid_i, .beat_ready_o(beat_ready), .beat_i, .strb_i, .burst_valid_i,
      .burst_ready_o(burst_ready), .burst_i,
      .aw_o(aw), .aw_valid_o(aw_valid), .aw_ready_i, .w_o(w), .w_valid_o(w_valid), .w_ready_i, .b_i,
      .b_valid_i,
      .done_valid_o(done_valid), .done_o(done), .owed_o(owed), .bad_o(bad)
  );
  function automatic logic [4:0] some(input logic [575:0] x);
    return {x[575], x[512], x[511], x[300], x[0]};
  endfunction
  function automatic logic fits(input burst_t x);
    return x.beats <= Most && {1'b0, x.addr[11:6]} + x.beats <= 7'd64 &&
        (x.ends || x.status == ST_DONE);
  endfunction
  axi_address u_aw (.clk_i, .rst_ni, .valid_i(aw_valid), .ready_i(aw_ready_i), .ax_i(aw));
  axi_channel #(.W(6)) u_w (
      .clk_i, .rst_ni, .valid_i(w_valid), .ready_i(w_ready_i),
      .data_i({w.last, some({w.strb, w.data})}), .break_i(1'b0)
  );

  logic init = 1'b0;
  logic push, accept, pop, aw_waited, w_waited, aw_new, w_new, b_take, due;
  assign push = beat_valid_i && beat_ready;
  assign accept = burst_valid_i && burst_ready;
  assign pop = dut.order_pop;
  assign aw_new = aw_valid && !aw_waited;
  assign w_new = w_valid && !w_waited;

  // ---- bursts, and ends without one, by number modulo 8 ----
  // The block holds six; `ordered` of them have left the first queue.
  typedef struct packed {
    logic asks;                      // it has beats
    logic ends;
    done_t done;
  } entry_t;
  entry_t [7:0] q;
  entry_t head;
  logic [2:0] came, ordered, gone;
  assign ordered = came - {1'b0, dut.u_bursts.count_q};
  assign head = q[gone];
  // ---- those with beats, by number modulo 8 ----
  logic [7:0] wrong;                 // its response was not OKAY
  logic [2:0] asks, asked_q, asked, answered, used;
  logic error;                       // a response for the oldest one's piece was not OKAY
  logic [2:0] mark;                  // the tracked one; constant
  logic [63:0] mark_addr;
  logic [2:0] mark_beats;
  assign asked = asked_q + 3'(aw_new);
  assign b_take = b_valid_i && b_i.id == '0 && asked != answered;
  // ---- beats, by number modulo 16: the block holds ten ----
  // promised: to bursts that arrived; at: the tracked one, constant
  logic [3:0] beats, promised, wrote_q, wrote, at;
  logic [2:0] todo_q, todo;                          // beats that W owes to the AWs so far
  logic [4:0] word;
  assign wrote = wrote_q + 4'(w_new);
  assign todo = todo_q + (aw_new ? aw.len[2:0] + 3'd1 : 3'd0) - 3'(w_new);
  always_ff @(posedge clk_i) begin
    at <= at;
    mark <= mark;
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (fits(burst_i));
    if (burst_valid_i) assume (burst_i.beats <= {3'd0, 4'(beats + 4'(push) - promised)});
    aw_waited <= rst_ni && aw_valid && !aw_ready_i;
    w_waited <= rst_ni && w_valid && !w_ready_i;
    due <= rst_ni && came != ordered && q[ordered].asks && 3'(ordered - gone) != 3'(Open) &&
        (!aw_valid || aw_ready_i) && todo == '0;
    if (!rst_ni) begin
      came <= '0;
      gone <= '0;
      asks <= '0;
      asked_q <= '0;
      answered <= '0;
      used <= '0;
      error <= 1'b0;
      beats <= '0;
      promised <= '0;
      wrote_q <= '0;
      todo_q <= '0;
    end else begin
      came <= came + 3'(accept);
      if (accept) begin
        q[came] <= '{asks: burst_i.beats != '0, ends: burst_i.ends,
            done: '{q: burst_i.q, last: burst_i.last, status: burst_i.status}};
        promised <= promised + burst_i.beats[3:0];
        if (burst_i.beats != '0) begin
          asks <= asks + 3'd1;
          if (asks == mark) mark_addr <= burst_i.addr;
          if (asks == mark) mark_beats <= burst_i.beats[2:0];
        end
      end
      asked_q <= asked;
      if (b_take) begin
        answered <= answered + 3'd1;
        wrong[answered] <= b_i.resp != AXI_OKAY;
      end
      if (pop) begin
        gone <= gone + 3'd1;
        used <= used + 3'(head.asks);
        error <= !head.ends && (error || (head.asks && wrong[used]));
      end
      beats <= beats + 4'(push);
      if (push && beats == at) word <= some({strb_i, beat_i});
      wrote_q <= wrote;
      todo_q <= todo;
    end
  end

  // ---- supporting invariants ----
  logic [2:0] open, waiting, left;   // of each queue: those with beats; beats left for W
  logic [3:0] want, loaded, held;
  burst_t first, second;
  assign left = dut.active_q ? dut.left_q[2:0] : 3'd0;
  assign loaded = wrote + 4'(dut.fifo_valid);
  assign held = beats - wrote;
  assign first = dut.u_bursts.mem_q[ordered[0]];
  assign second = dut.u_bursts.mem_q[!ordered[0]];
  always_comb begin
    open = '0;
    waiting = '0;
    for (int n = 0; n < 8; n++) begin
      if (3'(3'(n) - gone) < 3'(ordered - gone)) open = open + 3'(q[n].asks);
      if (3'(3'(n) - ordered) < 3'(came - ordered)) waiting = waiting + 3'(q[n].asks);
    end
    want = {1'b0, left};
    if (came != ordered) want = want + first.beats[3:0];
    if (3'(came - ordered) == 3'd2) want = want + second.beats[3:0];
  end
  always_comb begin
    if (init && rst_ni) begin
      // each burst is requested once, in order, unchanged, and as soon as possible
      if (aw_new) assert (asks != asked_q && aw.id == '0 && aw.size == AXI_SIZE_64);
      if (aw_new && asked_q == mark)
        assert (aw.addr == mark_addr && aw.len == {5'd0, mark_beats} - 8'd1);
      if (due) assert (aw_new);
      assert (3'(asked - answered) <= 3'(Open));
      // its beats follow it, in order, without a gap, and end in the right place
      if (w_new) assert (w.last == (todo == '0 || (aw_new && todo == aw.len[2:0] + 3'd1)));
      if (w_new && wrote_q == at) assert (some({w.strb, w.data}) == word);
      if (w_new) assert (wrote_q != beats && todo_q != '0);
      assert (todo_q == '0 || w_valid);
      // a beat is accepted if there is room
      if (held < 4'(Depth)) assert (beat_ready);
      if (3'(came - ordered) != 3'(Bursts)) assert (burst_ready);
      // responses
      assert (owed == (asked != answered) && bad == (b_valid_i && !b_take));
      // ends of pieces: as soon as all responses are there, and not before
      if (pop) assert (came != gone && (!head.asks || answered != used));
      if (answered != used && head.asks) assert (pop);
      if (ordered != gone && !head.asks) assert (pop);
      assert (done_valid == (pop && head.ends));
      if (done_valid)
        assert (done == {head.done.q, head.done.last, (error || (head.asks && wrong[used]))
            ? ST_HOST : head.done.status});
      // supporting invariants
      assert (3'(came - ordered) <= 3'(Bursts) && 3'(ordered - gone) <= 3'(Open));
      assert (dut.u_bursts.count_q <= 2'(Bursts) && dut.u_bursts.rp_q == ordered[0] &&
          dut.u_bursts.wp_q == came[0]);
      assert (dut.u_order.count_q == 3'(ordered - gone) && dut.u_order.rp_q == gone[1:0] &&
          dut.u_order.wp_q == ordered[1:0]);
      assert (dut.u_answers.count_q == 3'(answered - used) && dut.u_answers.rp_q == used[1:0] &&
          dut.u_answers.wp_q == answered[1:0]);
      assert (3'(asked - used) == open && 3'(asks - asked) == waiting &&
          3'(answered - used) <= 3'(asked - used));
      assert (dut.owed_q == 3'(asked - answered) && dut.status_q == (error ? ST_HOST : ST_DONE));
      for (int n = 0; n < 8; n++) begin
        if (3'(3'(n) - gone) < 3'(ordered - gone)) assert (dut.u_order.mem_q[n[1:0]] == q[n]);
        if (3'(3'(n) - gone) < 3'(came - gone)) assert (q[n].ends || q[n].done.status == ST_DONE);
        if (3'(3'(n) - used) < 3'(answered - used))
          assert (dut.u_answers.mem_q[n[1:0]] == wrong[n]);
      end
      if (came != ordered) begin
        assert (fits(first) && q[ordered] == {first.beats != '0, first.ends, first.q, first.last,
            first.status});
        if (first.beats != '0 && asked == mark)
          assert (first.addr == mark_addr && first.beats == {4'd0, mark_beats});
      end
      if (3'(came - ordered) == 3'd2) begin
        assert (fits(second) && q[3'(ordered + 3'd1)] ==
            {second.beats != '0, second.ends, second.q, second.last, second.status});
        if (second.beats != '0 && 3'(asked + 3'(first.beats != '0)) == mark)
          assert (second.addr == mark_addr && second.beats == {4'd0, mark_beats});
      end
      assert (dut.u_beats.count_q <= 4'(Depth) && dut.u_beats.count_q == 4'(beats - loaded) &&
          held <= 4'(Depth + 1));
      assert (dut.u_beats.wp_q == beats[2:0] && dut.u_beats.rp_q == loaded[2:0]);
      assert (want == 4'(promised - wrote) && want <= held && todo == left);
      assert (dut.left_q <= Most && (!dut.active_q || (left != '0 && dut.fifo_valid)));
      if (4'(at - wrote) < held)
        assert (((at == wrote && dut.fifo_valid) ? some(dut.u_beats.out_q)
            : some(dut.u_beats.mem_q[at[2:0]])) == word);
    end
    cover (init && rst_ni && done_valid && error && head.asks && !wrong[used]);
    cover (init && rst_ni && done_valid && error && head.done.status == ST_CARD);
    cover (init && rst_ni && done_valid && !error && done.status == ST_CARD && head.asks);
    cover (init && rst_ni && done_valid && !head.asks && owed);
    cover (init && rst_ni && w_new && w.last && aw_new && wrote_q == at && at == 4'd3);
    cover (init && rst_ni && todo == 3'd3 && w_waited && !w_ready_i);
    cover (init && rst_ni && bad && b_i.id == '0);
    cover (init && rst_ni && bad && b_i.id == 8'd1 && owed);
    cover (init && rst_ni && aw_waited && todo == '0 && !w_valid);
    cover (init && rst_ni && aw_new && asked_q == mark && mark == 3'd2 && mark_addr[5:0] != '0 &&
        mark_beats == 3'd3);
    cover (init && rst_ni && dut.owed_q == 3'(Open) && !burst_ready && !aw_valid);
  end
endmodule
`default_nettype wire
