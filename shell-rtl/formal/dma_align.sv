// shef_dma_align: the strobes of each outgoing beat are exactly the bytes of the piece in that
// beat. Each byte leaves once, in its place, when the read beat that holds it is present or was the
// previous one. All beats leave, and all are consumed. A burst ends at each multiple of Beats and
// at the end of the piece, with the address of its first byte and its beats; one burst of a piece
// ends it, after all its beats are consumed. From a beat with an error on, nothing of the piece is
// written, nor of the later ones of its queue up to a fresh one, and they carry the error's status.
// With a beat and room it makes progress. Pieces of any offsets and 0 .. 4096 bytes, bursts of up
// to 8 beats; one symbolic byte, one symbolic lane. Not covered is the data: simulation checks
// which byte the rotator puts into a lane.
`default_nettype none
module dma_align
  import shef_pkg::*;
  import shef_dma_pkg::*;
(
    input wire         clk_i,
    input wire         rst_ni,
    input wire         piece_valid_i,
    input wire piece_t piece_i,
    input wire         beat_valid_i,
    input wire [1:0]   resp_i,
    input wire         out_ready_i,
    input wire         burst_ready_i
);
  logic piece_ready, beat_ready, out_valid, burst_valid;
  logic [511:0] out;
  logic [63:0] strb;
  burst_t burst;
  shef_dma_align #(.Beats(8), .SlaveError(ST_POISONED), .OtherError(ST_HOST)) dut (
      .clk_i, .rst_ni, .piece_valid_i, .piece_ready_o(piece_ready), .piece_i, .beat_valid_i,
      .beat_ready_o(beat_ready), .beat_i('0), .resp_i,
      .out_valid_o(out_valid), .out_ready_i, .out_o(out), .strb_o(strb),
      .burst_valid_o(burst_valid), .burst_ready_i, .burst_o(burst)
  );

  // ---- the current piece ----
  logic init = 1'b0;
  logic act;                     // there is a current piece
  logic drop;                    // nothing more of it is written
  piece_t m;
  logic [2:0] status;            // its required status
  logic [6:0] took, gave, open;  // beats: taken, written, written since the last burst
  logic [57:0] line;             // of the next beat
  logic [63:0] open_addr;
  logic [QUEUES-1:0] dead;       // queues whose pieces are dropped, and why
  logic [2:0] why[QUEUES];
  logic start, in_fire, out_fire, burst_fire, error;
  logic [2:0] error_status;
  logic [6:0] n_in, n_out;       // beats of the piece
  logic [13:0] first, behind;    // its bytes, counted from its first line
  logic at_end, at_multiple;
  assign start = piece_valid_i && piece_ready;
  assign in_fire = beat_valid_i && beat_ready;
  assign out_fire = out_valid && out_ready_i;
  assign burst_fire = burst_valid && burst_ready_i;
  // number of lines that contain the bytes
  function automatic logic [6:0] lines(input logic [5:0] at, input logic [12:0] bytes);
    lines = bytes == '0 ? 7'd0 : 7'((14'(at) + 14'(bytes) - 14'd1) >> 6) + 7'd1;
  endfunction
  assign error = in_fire && !drop && resp_i != AXI_OKAY;
  assign error_status = resp_i == AXI_SLVERR ? ST_POISONED : ST_HOST;
  assign at_end = gave + 7'd1 == n_out;
  assign at_multiple = line[2:0] == 3'd7;
  logic [63:0] here;             // address of the first byte of the next beat
  assign here = {line, gave == '0 ? m.dst[5:0] : 6'd0};

  // ---- the tracked byte ----
  logic [11:0] k;                // its number in the piece; constant
  logic mine, have_q, have, seen;
  logic [12:0] from, to;         // its places
  always_ff @(posedge clk_i) k <= k;
  assign have = have_q || (beat_valid_i && took == from[12:6]);

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (piece_i.bytes <= 13'd4096);
    if (!rst_ni) begin
      act <= 1'b0;
      drop <= 1'b0;
      dead <= '0;
      took <= '0;
      gave <= '0;
      open <= '0;
    end else if (start) begin
      act <= 1'b1;
      drop <= (dead[piece_i.q] && !piece_i.fresh) || piece_i.bytes == '0;
      status <= (dead[piece_i.q] && !piece_i.fresh) ? why[piece_i.q] : piece_i.status;
      if (piece_i.fresh) dead[piece_i.q] <= 1'b0;
      m <= piece_i;
      n_in <= lines(piece_i.src[5:0], piece_i.bytes);
      n_out <= lines(piece_i.dst[5:0], piece_i.bytes);
      first <= {8'd0, piece_i.dst[5:0]};
      behind <= 14'(piece_i.dst[5:0]) + 14'(piece_i.bytes);
      mine <= {1'b0, k} < piece_i.bytes;
      from <= 13'(piece_i.src[5:0]) + {1'b0, k};
      to <= 13'(piece_i.dst[5:0]) + {1'b0, k};
      line <= piece_i.dst[63:6];
      took <= '0;
      gave <= '0;
      open <= '0;
      have_q <= 1'b0;
      seen <= 1'b0;
    end else begin
      took <= took + 7'(in_fire);
      gave <= gave + 7'(out_fire);
      if (out_fire) line <= line + 58'd1;
      open <= burst_fire ? '0 : open + 7'(out_fire);
      if (open == '0) open_addr <= here;
      have_q <= have_q || (in_fire && have);
      if (out_fire && gave == to[12:6]) seen <= 1'b1;
      if (error) begin
        drop <= 1'b1;
        status <= error_status;
        dead[m.q] <= 1'b1;
        why[m.q] <= error_status;
      end
      if (burst_fire && burst.ends) act <= 1'b0;
    end
  end

  // whether a lane of the next beat is in the piece
  logic [5:0] lane;              // constant
  logic inside_it;
  always_ff @(posedge clk_i) lane <= lane;
  assign inside_it = {1'b0, gave, lane} >= first && {1'b0, gave, lane} < behind;
  logic ahead;                   // bytes move down: the first written beat needs two read beats
  assign ahead = m.src[5:0] > m.dst[5:0];
  always_comb begin
    if (init && rst_ni) begin
      assert (piece_ready == !act);
      if (beat_ready) assert (act && took < n_in);
      // written beats
      if (out_valid) begin
        assert (act && !drop && !error && gave < n_out && strb[lane] == inside_it);
        if (mine && gave == to[12:6]) assert (have && !seen && strb[to[5:0]]);
      end
      // bursts
      if (out_fire) assert (burst_fire == (at_end || at_multiple));
      if (burst_valid) begin
        assert (act && burst.q == m.q && burst.last == m.last && burst.status == status);
        assert (out_fire ? (burst.beats == open + 7'd1 && burst.ends == at_end)
            : (drop && burst.ends && burst.beats == open));
        assert (burst.beats <= 7'd8);
        if (burst.beats != '0) assert (burst.addr == (open == '0 ? here : open_addr));
        if (burst.ends) assert (took + 7'(in_fire) == n_in);
        if (burst.ends && !drop)
          assert (gave + 7'd1 == n_out && (!mine || seen || gave == to[12:6]));
      end
      // with a beat and room it makes progress
      if (act && beat_valid_i && out_ready_i && burst_ready_i)
        assert (in_fire || out_fire || burst_fire);

      // supporting invariants
      assert (dut.active_q == act && dut.dead_q == dead);
      for (int q = 0; q < QUEUES; q++) if (dead[q]) assert (dut.dead_status_q[q] == why[q]);
      if (act) begin
        assert (m.bytes <= 13'd4096 && took <= n_in);
        assert (dut.drop_q == drop && dut.first_q == (gave == '0) && dut.last_q == m.last &&
            dut.queue_q == m.q && dut.status_q == status);
        assert (dut.shift_q == 6'(m.dst[5:0] - m.src[5:0]) && dut.begin_q == first[5:0] &&
            dut.end_q == behind[5:0]);
        assert (dut.in_left_q == n_in - took && dut.line_q == line && dut.open_q == open);
        assert (dut.prime_q == (ahead && took == '0));
        assert (open == (gave < 7'(line[2:0]) ? gave : 7'(line[2:0])));
        if (open != '0) assert (dut.open_addr_q == open_addr);
        // the same byte in both places, and the distance in beats
        assert (n_in == n_out + 7'(ahead) || n_in + 7'd1 == n_out + 7'(ahead));
        assert (first == {8'd0, m.dst[5:0]} && (m.bytes == '0 || behind > first));
        assert (behind[13:6] + 8'(behind[5:0] != '0) == {1'b0, n_out} || m.bytes == '0);
        if (mine) begin
          assert ({1'b0, to} >= first && {1'b0, to} < behind);
          assert (from[12:6] < n_in && to[12:6] < n_out && 6'(to[5:0] - dut.shift_q) == from[5:0]);
          assert (from[12:6] + 7'(to[5:0] < dut.shift_q) == to[12:6] + 7'(ahead));
        end
        if (!drop) begin
          assert (m.bytes != '0 && gave < n_out && dut.out_left_q == n_out - gave);
          if (ahead) assert (took == '0 ? gave == '0
              : (took == gave + 7'd1 || (took == n_in && gave == n_in)));
          else assert (took == (gave < n_in ? gave : n_in));
        end
        if (mine && !drop) begin
          assert (have_q == (took > from[12:6]) && seen == (gave > to[12:6]));
          if (have_q && !seen) assert (to[5:0] < dut.shift_q);
        end
      end
    end
    // two beats into one
    cover (init && rst_ni && out_fire && burst_fire && burst.ends && burst.beats == 7'd1 &&
        n_in == 7'd2);
    // two beats into three, two bursts
    cover (init && rst_ni && out_fire && burst_fire && burst.ends && gave == 7'd2 && open == 7'd1 &&
        n_in == 7'd2);
    // already written beats stay
    cover (init && rst_ni && burst_fire && drop && burst.beats == 7'd1 && m.bytes != '0);
    cover (init && rst_ni && burst_fire && drop && burst.beats == '0 && m.bytes != '0 &&
        took == 7'd2 && m.status == ST_DONE && status == ST_HOST && m.q == 2'd2 && dead[1]);
    // a fresh piece is written again
    cover (init && rst_ni && burst_fire && !drop && burst.ends && m.fresh &&
        why[m.q] == ST_POISONED && mine && k == 12'd70);
    cover (init && rst_ni && burst_fire && m.bytes == '0 && burst.status == ST_CANCELLED);
  end
endmodule
`default_nettype wire
