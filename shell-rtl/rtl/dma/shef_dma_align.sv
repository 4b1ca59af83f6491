// Middle of a mover: aligns the bytes of each piece from read beats to write beats, and groups
// beats into bursts.
//
// Handshake: pieces, beats in (in the order of the pieces), beats out with strobes, and bursts
// (with or after their last beat), all valid/ready. A burst ends at each multiple of Beats and at
// the end of its piece. One beat a cycle, one more cycle for each piece, and one if the bytes of
// the first output beat are in two input beats.
// A beat with an error ends its piece: earlier beats stay written, this beat and all later ones are
// read and dropped, and so are the later pieces of the queue up to the next fresh one. Every piece
// has exactly one burst with `ends`.
`default_nettype none
module shef_dma_align
  import shef_pkg::*;
  import shef_dma_pkg::*;
#(
    parameter int unsigned Beats = 8,
    // status of a read with SLVERR, and of one with another error
    parameter status_e SlaveError = ST_CARD,
    parameter status_e OtherError = ST_CARD
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          piece_valid_i,
    output logic         piece_ready_o,
    input  wire  piece_t piece_i,
    input  wire          beat_valid_i,
    output logic         beat_ready_o,
    input  wire  [511:0] beat_i,
    input  wire  [1:0]   resp_i,
    output logic         out_valid_o,
    input  wire          out_ready_i,
    output logic [511:0] out_o,
    output logic [63:0]  strb_o,
    output logic         burst_valid_o,
    input  wire          burst_ready_i,
    output burst_t       burst_o
);
  localparam int unsigned BW = $clog2(Beats);

  logic active_q, drop_q, prime_q, first_q, last_q;
  logic [QUEUE_W-1:0] queue_q;
  status_e status_q;
  // shift upwards in bytes; first byte of the first beat; end of the last one
  logic [5:0] shift_q, begin_q, end_q;
  logic [6:0] in_left_q, out_left_q, open_q;
  logic [57:0] line_q;
  logic [63:0] open_addr_q;
  logic [511:0] carry_q;
  logic [QUEUES-1:0] dead_q;
  status_e [QUEUES-1:0] dead_status_q;

  // ---- a new piece ----
  logic start, killed;
  assign piece_ready_o = !active_q;
  assign start = piece_valid_i && !active_q;
  assign killed = dead_q[piece_i.q] && !piece_i.fresh;

  // ---- a step ----
  logic takes, bad, go, ends_burst, turn_bad;
  logic [511:0] turned;
  logic [63:0] addr;
  assign takes = in_left_q != '0;
  assign bad = takes && beat_valid_i && resp_i != AXI_OKAY;
  assign turn_bad = active_q && !drop_q && bad;
  assign ends_burst = out_left_q == 7'd1 || (&line_q[BW-1:0]);
  assign out_valid_o = active_q && !drop_q && !prime_q && (!takes || beat_valid_i) && !bad &&
      (!ends_burst || burst_ready_i);
  assign go = out_valid_o && out_ready_i;
  assign beat_ready_o = active_q && (drop_q ? takes : bad || prime_q || (go && takes));

  always_comb begin
    for (int unsigned i = 0; i < 64; i++) turned[8*i+:8] = beat_i[{6'(i) - shift_q, 3'd0}+:8];
    for (int unsigned i = 0; i < 64; i++) begin
      out_o[8*i+:8] = 6'(i) < shift_q ? carry_q[8*i+:8] : turned[8*i+:8];
      strb_o[i] = !(first_q && 6'(i) < begin_q) &&
          !(out_left_q == 7'd1 && end_q != '0 && 6'(i) >= end_q);
    end
  end

  // ---- bursts ----
  logic drop_end;
  assign drop_end = active_q && drop_q && !takes;
  assign addr = {line_q, first_q ? begin_q : 6'd0};
  assign burst_valid_o = drop_end || (go && ends_burst);
  always_comb begin
    burst_o.addr = open_q == '0 ? addr : open_addr_q;
    burst_o.beats = drop_q ? open_q : open_q + 7'd1;
    burst_o.ends = drop_q || out_left_q == 7'd1;
    burst_o.q = queue_q;
    burst_o.last = last_q;
    burst_o.status = status_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      drop_q <= 1'b0;
      prime_q <= 1'b0;
      first_q <= 1'b0;
      last_q <= 1'b0;
      queue_q <= '0;
      status_q <= ST_DONE;
      shift_q <= '0;
      begin_q <= '0;
      end_q <= '0;
      in_left_q <= '0;
      out_left_q <= '0;
      open_q <= '0;
      line_q <= '0;
      open_addr_q <= '0;
      dead_q <= '0;
      for (int unsigned q = 0; q < QUEUES; q++) dead_status_q[q] <= ST_DONE;
    end else if (start) begin
      active_q <= 1'b1;
      drop_q <= killed || piece_i.bytes == '0;
      prime_q <= piece_i.src[5:0] > piece_i.dst[5:0];
      first_q <= 1'b1;
      last_q <= piece_i.last;
      queue_q <= piece_i.q;
      status_q <= killed ? dead_status_q[piece_i.q] : piece_i.status;
      shift_q <= piece_i.dst[5:0] - piece_i.src[5:0];
      begin_q <= piece_i.dst[5:0];
      end_q <= piece_i.dst[5:0] + piece_i.bytes[5:0];
      in_left_q <= piece_i.bytes == '0 ? '0 : beats_of(piece_i.src[5:0], piece_i.bytes);
      out_left_q <= beats_of(piece_i.dst[5:0], piece_i.bytes);
      open_q <= '0;
      line_q <= piece_i.dst[63:6];
      if (piece_i.fresh) dead_q[piece_i.q] <= 1'b0;
    end else begin
      if (beat_valid_i && beat_ready_o) begin
        in_left_q <= in_left_q - 7'd1;
        prime_q <= 1'b0;
      end
      if (turn_bad) begin
        drop_q <= 1'b1;
        status_q <= resp_i == AXI_SLVERR ? SlaveError : OtherError;
        dead_q[queue_q] <= 1'b1;
        dead_status_q[queue_q] <= resp_i == AXI_SLVERR ? SlaveError : OtherError;
      end
      if (go) begin
        first_q <= 1'b0;
        out_left_q <= out_left_q - 7'd1;
        line_q <= line_q + 1'b1;
        open_q <= ends_burst ? '0 : open_q + 7'd1;
        if (open_q == '0) open_addr_q <= addr;
        if (out_left_q == 7'd1) active_q <= 1'b0;
      end
      if (drop_end && burst_ready_i) active_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (beat_valid_i && beat_ready_o) carry_q <= turned;
  end
endmodule
`default_nettype wire
