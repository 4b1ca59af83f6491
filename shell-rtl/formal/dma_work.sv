// shef_dma_work, one queue: a disabled queue requests nothing. It fetches only descriptors before
// the doorbell, within the ring and one page of it. A piece with bytes is within card memory and
// one page of host memory, and the pieces of a descriptor follow one another from its first byte.
// The head passes neither the fetched descriptors nor the doorbell. Completions go into their ring,
// numbered consecutively. The queue is busy while it has traffic on the buses. Rings of 2 .. 4096
// entries anywhere; the contents of descriptors are free. Assumed, as in shef_dma_queue and its
// neighbours: the ring does not change while the queue works, and the doorbell advances and does
// not overrun the ring; a burst of descriptors has the requested beats; only issued pieces and
// completions end.
`default_nettype none
module dma_work
  import shef_pkg::*;
  import shef_dma_pkg::*;
(
    input wire          clk_i,
    input wire          rst_ni,
    input wire          enable_i,
    input wire          disable_i,
    input wire          cancel_i,
    input wire  [63:0]  ring_i,
    input wire  [3:0]   log2_i,
    input wire          bell_i,
    input wire  [31:0]  bell_to_i,
    input wire          fetch_ready_i,
    input wire          beat_valid_i,
    input wire  desc_t  beat_i,
    input wire          beat_error_i,
    input wire  [1:0]   piece_ready_i,
    input wire          done_valid_i,
    input wire          done_last_i,
    input wire status_e done_status_i,
    input wire          cpl_ready_i,
    input wire          told_i,
    input wire          told_ok_i
);
  localparam logic [63:0] CardBytes = 64'h4_0000_0000;
  logic init = 1'b0;
  logic on, was_on, start;
  logic [63:0] ring;
  logic [12:0] entries;
  logic [31:0] tail, head;
  logic idle, busy, failed, fetch_valid, cpl_valid;
  logic [1:0] piece_valid;
  fetch_t fetch;
  piece_t piece;
  cpl_t cpl;
  logic [4:0] owed;              // beats of descriptors
  logic [7:0] pieces;            // issued and not ended
  logic [4:0] cpls;              // completions accepted and not reported
  shef_dma_work #(.Queue(1), .CardBytes(CardBytes)) dut (
      .clk_i, .rst_ni, .on_i(on), .start_i(start), .cancel_i(cancel_i && on), .ring_i(ring),
      .entries_i(entries), .tail_i(tail), .head_o(head),
      .idle_o(idle), .busy_o(busy), .failed_o(failed), .fetch_valid_o(fetch_valid), .fetch_ready_i,
      .fetch_o(fetch), .beat_valid_i, .beat_i,
      .beat_error_i, .beat_last_i(owed == 5'd1), .piece_valid_o(piece_valid), .piece_ready_i,
      .piece_o(piece), .done_valid_i, .done_last_i,
      .done_status_i, .cpl_valid_o(cpl_valid), .cpl_ready_i, .cpl_o(cpl), .told_i, .told_ok_i
  );

  // ---- the surrounding queue ----
  logic taken, bell;
  assign start = enable_i && !on && !was_on && !busy;
  assign bell = bell_i && on && bell_to_i - head <= 32'(entries) && bell_to_i - head >= tail - head;
  assign taken = (piece_valid & piece_ready_i) != '0;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni) begin
      on <= 1'b0;
      was_on <= 1'b0;
      ring <= '0;
      entries <= 13'd2;
      tail <= '0;
      owed <= '0;
      pieces <= '0;
      cpls <= '0;
    end else begin
      was_on <= on;
      if (start) on <= 1'b1;
      else if (disable_i) on <= 1'b0;
      if (start) begin
        ring <= {ring_i[63:12], 12'd0};
        entries <= 13'd1 << log2_i;
        tail <= '0;
      end else if (bell) tail <= bell_to_i;
      if (fetch_valid && fetch_ready_i) owed <= fetch.count;
      else owed <= owed - 5'(beat_valid_i);
      pieces <= pieces + 8'(taken) - 8'(done_valid_i);
      cpls <= cpls + 5'(cpl_valid && cpl_ready_i) - 5'(told_i);
    end
  end
  always_comb begin
    if (start) assume (log2_i != '0 && log2_i <= 4'd12 && ring_i <= 64'hffff_ffff_fff0_0000);
    if (beat_valid_i) assume (owed != '0);
    if (done_valid_i) assume (pieces != '0);
    if (told_i) assume (cpls != '0);
    // shef_dma_post keeps at most 16
    if (cpls >= 5'd16) assume (!cpl_ready_i);
  end

  // ---- the descriptor in progress ----
  logic [63:0] host, card;       // first byte of its next piece
  logic [30:0] rest;             // bytes from there on
  logic moved;                   // it has issued a piece
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      host <= '0;
      card <= '0;
      rest <= '0;
      moved <= 1'b0;
    end else if (dut.begun_push && !dut.local_end) begin
      host <= dut.desc_q.host;
      card <= dut.desc_q.card;
      rest <= dut.desc_q.bytes;
      moved <= 1'b0;
    end else if (taken) begin
      host <= host + 64'(piece.bytes);
      card <= card + 64'(piece.bytes);
      rest <= rest - 31'(piece.bytes);
      moved <= 1'b1;
    end
  end

  // ---- supporting invariants ----
  logic [5:0] lost;              // descriptors that arrived as errors, or after one
  logic [31:0] seq;              // completions since the start
  logic [11:0] at;               // place of the next descriptor in the ring
  assign at = dut.fetched_q[11:0] & (entries[11:0] - 12'd1);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start) begin
      seq <= '0;
      lost <= '0;
    end else begin
      if (cpl_valid && cpl_ready_i) seq <= seq + 32'd1;
      if (beat_valid_i && (beat_error_i || dut.fetch_failed_q)) lost <= lost + 6'd1;
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      // disabled: no requests
      if (!on) assert (!fetch_valid && piece_valid == '0 && !cpl_valid);
      // traffic on the buses is reported
      assert (busy == (owed != '0 || pieces != '0 || cpls != '0));
      // descriptors before the doorbell, in the ring, in one page of it
      if (fetch_valid) begin
        assert (fetch.line == ring[63:6] + 58'(at));
        assert (fetch.count != '0 && fetch.count <= 5'd16 &&
            7'(at[5:0]) + 7'(fetch.count) <= 7'd64);
        assert (13'(at) + 13'(fetch.count) <= entries);
        assert (32'(fetch.count) <= tail - dut.fetched_q);
        assert (owed == '0);
      end
      // a piece is in card memory and in one page of host memory, and follows the previous one
      for (int d = 0; d < 2; d++)
        if (piece_valid[d]) begin
          assert (piece_valid == 2'(1 << d) && 31'(piece.bytes) <= rest);
          assert ((d == 1 ? piece.src : piece.dst) == card &&
              (d == 1 ? piece.dst : piece.src) == host);
          assert (14'(host[11:0]) + 14'(piece.bytes) <= 14'd4096 &&
              card + 64'(piece.bytes) <= CardBytes);
          assert (piece.last == (piece.bytes == '0 || 31'(piece.bytes) == rest));
        end
      // the head
      if (on) assert (tail - head <= 32'(entries) && dut.fetched_q - head <= tail - head);
      // completions
      if (cpl_valid)
        assert (cpl.seq == seq + 32'd1 &&
            cpl.addr == ring + {45'd0, entries, 6'd0} +
            64'({seq[11:0] & (entries[11:0] - 12'd1), 4'd0}));

      assert (entries >= 13'd2 && entries <= 13'd4096 && (entries & (entries - 13'd1)) == '0 &&
          ring[11:0] == '0 && ring <= 64'hffff_ffff_fff0_0000);
      assert ((owed != '0) == (dut.fetch_q == 2'd2) && owed <= 5'd16 && dut.fetch_q != 2'd3 &&
          dut.begin_q != 2'd3);
      assert (pieces == dut.pieces_q && cpls == dut.cpls_q && cpls <= 5'd16);
      assert (dut.u_descs.count_q <= 6'd32 && dut.u_begun.count_q <= 6'd32);
      if (on) begin
        assert (dut.fetched_q == head + 32'(8'(dut.begun_count) + 8'(dut.begin_q == 2'd1) +
            8'(dut.descs) + 8'(owed) + 8'(lost)));
        assert (7'(lost) + 7'(owed) <= 7'd16 && (lost != '0) == dut.fetch_failed_q);
        assert (6'(dut.descs) + 6'(owed) <= 6'd32);
        if (dut.fetch_q == 2'd1) assert (dut.descs <= 6'd16 && !dut.fetch_failed_q);
        assert (dut.completed_q == seq + 32'(dut.cpl_valid_q));
      end
      if (dut.fetch_q == 2'd1 && on) begin
        assert (dut.fetch_req_q.count != '0 && dut.fetch_req_q.count <= 5'd16);
        assert (32'(dut.fetch_req_q.count) <= tail - dut.fetched_q);
      end
      assert (card <= CardBytes && card + 64'(rest) <= CardBytes);
      if (dut.begin_q == 2'd1 && on && !dut.range_q)
        assert (dut.desc_q.card <= CardBytes &&
            dut.desc_q.card + 64'(dut.desc_q.bytes) <= CardBytes);
      if (dut.begin_q == 2'd2 && on)
        assert (dut.left_q == rest && dut.card_q == card && dut.host_q == host && rest != '0);
      if (!on && !was_on)
        assert (dut.descs == '0 && dut.begun_count == '0 && dut.begin_q == 2'd0 &&
            !dut.cpl_valid_q && dut.fetch_q != 2'd1);
      if (on && !was_on)
        assert (head == '0 && tail == '0 && dut.fetched_q == '0 && !dut.fetch_failed_q &&
            dut.descs == '0 && dut.begun_count == '0 &&
                                 dut.begin_q == 2'd0 && owed == '0 && seq == '0 && lost == '0 &&
                                 dut.completed_q == '0 && !dut.cpl_valid_q && dut.fetch_q == 2'd0);
    end
    cover (init && rst_ni && fetch_valid && fetch.count == 5'd1 && entries == 13'd2 &&
        dut.fetched_q == 32'd1 && tail == 32'd3);
    cover (init && rst_ni && piece_valid[0] && moved && !piece.last);
    cover (init && rst_ni && piece_valid[1] && piece.last && piece.bytes == 13'd7 && moved);
    cover (init && rst_ni && cpl_valid && cpl.status == ST_CARD && seq == 32'd1);
    cover (init && rst_ni && cpl_valid && cpl.status == ST_CANCELLED);
    cover (init && rst_ni && !on && busy && pieces != '0);
    cover (init && rst_ni && failed && dut.fetch_failed_q && head == 32'd1);
  end
endmodule
`default_nettype wire
