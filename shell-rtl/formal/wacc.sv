// shef_wacc: B follows the handshake rules. Every burst gets one response, after its last beat, and
// OKAY only if each of its beats went into its line. A segment releases its line once, even when
// killed. Nothing is written to a line that is closed, dead or at its last version, nor after a
// stop. Bursts of one or two segments, two lines.
`default_nettype none
module wacc
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire           stop_i,
    input wire           kill_i,
    input wire           clr_i,
    input wire           seg_valid_i,
    input wire lseg_t    seg_i,
    input wire refusal_t refusal_i,
    input wire [1:0]     closed_i,
    input wire [1:0]     asked_i,
    input wire [1:0]     dead_i,
    input wire [1:0]     last_i,
    input wire           w_valid_i,
    input wire           w_waits_i,
    input wire           b_ready_i,
    input wire           put_ready_i,
    input wire           put_full_i,
    input wire           refusal_ready_i
);
  logic owed, room, w_ready, b_valid, put_valid, done, done_full, refusal_valid, idle, seg;
  axi_b_t b;
  line_t put_line, done_line;
  logic [5:0] put_beat, put_last;
  refusal_t refusal;
  assign seg = seg_valid_i && room;
  shef_wacc #(.NLines(2), .ChunkLog2({16{4'd9}})) dut (
      .clk_i, .rst_ni, .stop_i, .kill_i(kill_i || clr_i), .clr_i,
      .seg_valid_i(seg), .seg_room_o(room), .seg_i, .seg_region_i('0), .seg_refusal_i(refusal_i),
      .seg_region_id_i('0), .seg_addr_i('0),
      .closed_i, .asked_i, .dead_i, .last_i, .w_valid_i, .w_waits_i, .w_ready_o(w_ready), .b_o(b),
      .b_valid_o(b_valid), .b_ready_i,
      .put_valid_o(put_valid), .put_ready_i, .put_line_o(put_line), .put_beat_o(put_beat),
      .put_last_o(put_last), .put_full_i,
      .done_o(done), .done_line_o(done_line), .done_full_o(done_full),
      .refusal_valid_o(refusal_valid), .refusal_ready_i, .refusal_o(refusal),
      .owed_o(owed), .idle_o(idle)
  );
  axi_channel #(.W($bits(axi_b_t))) u_b (.clk_i, .rst_ni, .valid_i(b_valid), .ready_i(b_ready_i),
      .data_i(b), .break_i(1'b0));

  logic init = 1'b0;
  logic [2:0] held;              // segments that hold a line
  logic [4:0] bursts, b_count;   // last segments that arrived, and those whose B is pending
  logic took, put, all_put, b_push;
  assign took = w_valid_i && w_ready;
  assign put = put_valid && put_ready_i;
  assign b_push = dut.burst_end;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (seg_i.beats != '0 && seg_i.beats <= 9'd8 && seg_i.line < 6'd2);
    assume (!clr_i || stop_i);
    if (!rst_ni || clr_i) held <= '0;
    else held <= held + 3'(seg && !seg_i.err) - 3'(done);
    if (!rst_ni) begin
      bursts <= '0;
      b_count <= '0;
      all_put <= 1'b1;
    end else begin
      bursts <= bursts + 5'(seg && seg_i.last) - 5'(b_valid && b_ready_i);
      b_count <= b_count + 5'(b_push) - 5'(b_valid && b_ready_i);
      // whether all beats of the current burst went into their line
      if (b_push) all_put <= 1'b1;
      else if (took && !put) all_put <= 1'b0;
    end
  end
  logic [2:0] here;
  assign here = 3'(dut.cur_valid_q && !dut.cur_q.err) + 3'(dut.next_valid_q && !dut.next_q.err);
  always_comb begin
    if (init && rst_ni) begin
      if (put_valid)
        assert (!stop_i && !closed_i[put_line[0]] && !dead_i[put_line[0]] && !last_i[put_line[0]] &&
            !asked_i[put_line[0]]);
      if (put) assert (took);
      if (took && put_valid) assert (put);
      if (b_push && (!all_put || !put)) assert (dut.u_b.in_data_i[1:0] == AXI_SLVERR);
      if (!all_put) assert (dut.err_q);
      if (done) assert (held != '0);
      assert (held == here);
      if (b_valid) assert (bursts != '0);
      // supporting invariants
      assert (b_count == 5'(dut.u_b.count_q) && b_count <= 5'd8 &&
          3'(dut.u_b.wp_q - dut.u_b.rp_q) == dut.u_b.count_q[2:0]);
      assert (!dut.next_valid_q || dut.cur_valid_q);
      if (b_push) assert (dut.b_room);
      assert (bursts == b_count + 5'(dut.cur_valid_q && dut.cur_q.last) +
          5'(dut.next_valid_q && dut.next_q.last));
      if (dut.cur_valid_q)
        assert (dut.cur_q.beats != '0 && dut.cur_q.beats <= 9'd8 && dut.cur_q.line < 6'd2);
      if (dut.next_valid_q)
        assert (dut.next_q.beats != '0 && dut.next_q.beats <= 9'd8 && dut.next_q.line < 6'd2);
      if (refusal_valid) assert (took && !put && !stop_i);
      // owed means that no line, version, refusal or other set is in the way
      if (owed)
        assert (held != '0 && !took && ((!w_valid_i && !w_waits_i) || b_count == 5'd8));
      if (held != '0 && ((!w_valid_i && !w_waits_i) ||
          (dut.cur_q.beats == 9'd1 && b_count == 5'd8))) assert (owed);
    end
    cover (init && rst_ni && b_valid && b.resp == AXI_OKAY && held == 3'd2);
    cover (init && rst_ni && done && kill_i && !took && !clr_i);
    cover (init && rst_ni && b_push && !all_put && put);
  end
  logic unused;
  assign unused = ^{idle, done_line, done_full, put_beat, put_last, refusal};
endmodule
`default_nettype wire
