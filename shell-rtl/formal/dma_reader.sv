// shef_dma_reader against a memory that responds with anything at any time: AR follows the
// handshake rules, stays within its page and carries the request, once. No id has two open reads.
// Beats are passed on in the order of the requests, each request's beats whole and in order, with
// their data and response. An unowed beat, or one with a misplaced RLAST, is reported as bad and
// not accepted. Owed if and only if a response is outstanding. A beat that is present is passed on
// in the next cycle. Two places of four beats; one symbolic beat of one symbolic request is
// tracked, its data by three of their bits.
`default_nettype none
module dma_reader
  import shef_pkg::*;
(
    input wire         clk_i,
    input wire         rst_ni,
    input wire         req_valid_i,
    input wire [57:0]  req_line_i,
    input wire [6:0]   req_beats_i,
    input wire         ar_ready_i,
    input wire axi_r_t r_i,
    input wire         r_valid_i,
    input wire         beat_ready_i
);
  logic req_ready, ar_valid, beat_valid, owed, bad;
  axi_ax_t ar;
  logic [511:0] beat;
  logic [1:0] resp;
  shef_dma_reader #(.Slots(2), .Beats(4)) dut (
      .clk_i, .rst_ni, .req_valid_i, .req_ready_o(req_ready), .req_line_i, .req_beats_i, .ar_o(ar),
      .ar_valid_o(ar_valid), .ar_ready_i,
      .r_i, .r_valid_i, .beat_valid_o(beat_valid), .beat_ready_i, .beat_o(beat), .resp_o(resp),
      .owed_o(owed), .bad_o(bad)
  );
  axi_address u_ar (.clk_i, .rst_ni, .valid_i(ar_valid), .ready_i(ar_ready_i), .ax_i(ar));
  axi_channel #(.W(514)) u_beat (.clk_i, .rst_ni, .valid_i(beat_valid), .ready_i(beat_ready_i),
      .data_i({resp, beat}), .break_i(1'b0));

  logic init = 1'b0;
  // requests by their number modulo 4: two have a place, and the last beat of a third may wait at
  // the output
  logic [1:0] asked, out_no;
  logic [1:0] out_beat;             // of the request out_no: the next beat to pass on
  logic [3:0][2:0] need, have;      // beats
  logic accept, accepted, ar_waited, due;
  axi_ax_t ax;                      // the last accepted request
  logic came;                       // a beat arrived in the last cycle
  axi_r_t r;
  logic [1:0] newest[2];            // last request under each id
  logic [1:0] to;                   // request of the beat
  logic good, out_end;
  logic [1:0] at;                   // the tracked request and beat; constant
  logic [1:0] at_beat;
  logic [4:0] word;
  function automatic logic [4:0] some(input logic [513:0] x);
    return {x[513:511], x[300], x[0]};
  endfunction
  assign accept = req_valid_i && req_ready;
  for (genvar s = 0; s < 2; s++) begin : g_newest
    assign newest[s] = (asked[0] != 1'(s)) ? asked - 2'd1 : asked - 2'd2;
  end
  assign to = newest[r.id[0]];
  assign good = came && r.id <= 8'd1 && have[to] != need[to] &&
      r.last == (have[to] + 3'd1 == need[to]);
  assign out_end = {1'b0, out_beat} + 3'd1 == need[out_no];
  always_ff @(posedge clk_i) begin
    at <= at;
    at_beat <= at_beat;
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (req_beats_i >= 7'd1 && req_beats_i <= 7'd4);
    assume ({1'b0, req_line_i[5:0]} + req_beats_i <= 7'd64);
    ar_waited <= rst_ni && ar_valid && !ar_ready_i;
    accepted <= rst_ni && accept;
    came <= rst_ni && r_valid_i;
    if (r_valid_i) r <= r_i;
    if (accept) ax <= '{id: {7'd0, asked[0]}, addr: {req_line_i, 6'd0},
        len: {1'b0, req_beats_i} - 8'd1, size: AXI_SIZE_64, burst: AXI_BURST_INCR};
    due <= rst_ni && !beat_valid && asked != out_no && have[out_no] > {1'b0, out_beat};
    if (!rst_ni) begin
      asked <= '0;
      out_no <= '0;
      out_beat <= '0;
      need <= '0;
      have <= '0;
    end else begin
      if (accept) begin
        asked <= asked + 2'd1;
        need[asked] <= req_beats_i[2:0];
        have[asked] <= '0;
      end
      if (good) begin
        have[to] <= have[to] + 3'd1;
        if (to == at && have[to] == {1'b0, at_beat}) word <= some({r.resp, r.data});
      end
      if (beat_valid && beat_ready_i) begin
        out_beat <= out_end ? '0 : out_beat + 2'd1;
        if (out_end) out_no <= out_no + 2'd1;
      end
    end
  end

  // read position of the block in its memory
  logic [1:0] load_no, load_beat, open;
  assign load_no = (beat_valid && out_end) ? out_no + 2'd1 : out_no;
  assign load_beat = !beat_valid ? out_beat : out_end ? 2'd0 : out_beat + 2'd1;
  assign open = 2'(have[newest[0]] != need[newest[0]]) + 2'(have[newest[1]] != need[newest[1]]);
  always_comb begin
    if (init && rst_ni) begin
      // each request goes out once, unchanged, under an id without an open read
      assert (ar_valid == (accepted || ar_waited));
      if (ar_valid) assert (ar == ax);
      if (accept) assert (have[newest[asked[0]]] == need[newest[asked[0]]]);
      if (!ar_valid && 2'(asked - out_no) < 2'd2) assert (req_ready);
      // unowed beats are reported
      assert (bad == (came && !good));
      assert (owed == (open != '0));
      // in order, whole, unchanged
      if (beat_valid)
        assert (asked != out_no && have[out_no] > {1'b0, out_beat} &&
            {1'b0, out_beat} < need[out_no]);
      if (beat_valid && out_no == at && out_beat == at_beat) assert (some({resp, beat}) == word);
      if (due) assert (beat_valid);
      // supporting invariants
      assert (2'(asked - load_no) <= 2'd2 && 2'(load_no - out_no) <= 2'd1);
      assert (dut.r_valid_q == came && (!came || dut.r_q == r));
      assert (dut.put_q == asked[0] && dut.take_q == load_no[0] && dut.beat_q == load_beat &&
          dut.open_q == open);
      for (int s = 0; s < 2; s++) begin
        assert (dut.busy_q[s] == (2'(newest[s] - load_no) < 2'(asked - load_no)));
        assert (dut.want_q[s] == need[newest[s]] && dut.got_q[s] == have[newest[s]]);
        if (!dut.busy_q[s]) assert (have[newest[s]] == need[newest[s]]);
      end
      for (int n = 0; n < 4; n++) begin
        assert (need[n] <= 3'd4 && have[n] <= need[n]);
        if (2'(2'(n) - out_no) < 2'(asked - out_no)) assert (need[n] != '0);
      end
      if (asked != out_no) assert ({1'b0, out_beat} < need[out_no]);
      else assert (out_beat == '0);
      if (asked != load_no) assert ({1'b0, load_beat} <= have[load_no]);
      if (2'(at - load_no) < 2'(asked - load_no) && have[at] > {1'b0, at_beat} &&
          (at != load_no || at_beat >= load_beat))
        assert (some(dut.ram_q[{at[0], at_beat}]) == word);
    end
    cover (init && rst_ni && open == 2'd2 && 2'(asked - out_no) == 2'd3);
    cover (init && rst_ni && beat_valid && beat_ready_i && out_end && out_beat == 2'd3 &&
        resp != AXI_OKAY);
    cover (init && rst_ni && good && to != out_no && have[to] == 3'd2 && have[out_no] == '0 &&
        need[out_no] == 3'd4);
    cover (init && rst_ni && bad && r.id > 8'd1 && owed);
    cover (init && rst_ni && bad && r.id == '0 && !owed);
    cover (init && rst_ni && bad && r.last && have[to] + 3'd2 == need[to]);
    cover (init && rst_ni && bad && !r.last && have[to] + 3'd1 == need[to]);
    cover (init && rst_ni && ar_waited && accept);
    cover (init && rst_ni && beat_valid && out_no == at && out_beat == at_beat && at == 2'd2 &&
        at_beat == 2'd1 && word == 5'b10101);
  end
endmodule
`default_nettype wire
