// Write acceptor: writes the accelerator's W beats to the lines of their segments, and responds on
// B.
//
// Handshake: segments, W, line write requests (put_*), B: valid/ready. A W beat is accepted in the
// cycle its line write is granted; beats of refused segments are discarded. The number of beats
// comes from AW; WLAST is ignored. One beat a cycle. A refused burst is recorded once (refusal_*,
// valid/ready), with its first beat. kill_i (level) cuts off the rest of every present segment and
// refuses it. done_o: the segment's last beat was written, or it was killed: its line is released.
// owed_o (level): a segment that holds a line waits for the accelerator, for its W or for room on
// B, and for nothing else. w_waits_i: its W waits behind a beat that another set does not accept.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_wacc
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NLines = 40,
    parameter log2_tab_t ChunkLog2 = '0
) (
    input  wire           clk_i,
    input  wire           rst_ni,
    input  wire           stop_i,
    input  wire           kill_i,
    input  wire           clr_i,         // the lines are gone: kill, and report nothing

    input  wire           seg_valid_i,
    output logic          seg_room_o,
    input  wire  lseg_t   seg_i,
    input  wire  reg_idx_t seg_region_i,
    input  wire refusal_t seg_refusal_i,   // reason of the refusal, if a record is due
    input  wire [7:0]     seg_region_id_i,
    input  wire [63:0]    seg_addr_i,
    input  wire [NLines-1:0] closed_i,     // lines that accept no more bytes
    input  wire [NLines-1:0] asked_i,      // lines with an unknown version: their data wait
    // lines of frozen regions: they accept no bytes, and that is not a refusal
    input  wire [NLines-1:0] dead_i,
    // lines whose version cannot be raised: they accept no bytes
    input  wire [NLines-1:0] last_i,

    input  wire           w_valid_i,
    input  wire           w_waits_i,
    output logic          w_ready_o,
    output axi_b_t        b_o,
    output logic          b_valid_o,
    input  wire           b_ready_i,

    output logic          put_valid_o,
    input  wire           put_ready_i,
    output line_t         put_line_o,
    output logic [5:0]    put_beat_o,
    output logic [5:0]    put_last_o,    // last beat of the chunk
    input  wire           put_full_i,    // the line is whole with this beat

    output logic          done_o,
    output line_t         done_line_o,
    output logic          done_full_o,
    output logic          refusal_valid_o,
    input  wire           refusal_ready_i,
    output refusal_t      refusal_o,
    output logic          owed_o,
    output logic          idle_o
);
  // two segments: the current one and the next
  lseg_t cur_q, next_q;
  logic cur_valid_q, next_valid_q;
  logic [5:0] cur_last_q, next_last_q, new_last;
  logic full_q;   // the line was whole at some beat of this segment
  logic err_q;    // an earlier segment of this burst was refused
  refusal_t cur_refusal_q, next_refusal_q, new_refusal;
  logic dead, closed, worn, lost, waits, tell, ready, drop_cur, drop_next;
  logic take, seg_end, burst_end, b_room;
  logic [11:0] step;

  assign new_last = 6'((7'd1 << (ChunkLog2[seg_region_i] - 4'd6)) - 7'd1);
  assign seg_room_o = !next_valid_q;
  // the segment that completes a chunk closes it: later writes are second writes
  assign lost = dead_i[cur_q.line] && !cur_q.err;
  assign closed = closed_i[cur_q.line] && !cur_q.err && !lost;
  assign worn = last_i[cur_q.line] && !cur_q.err && !lost;
  assign waits = asked_i[cur_q.line] && !cur_q.err && !stop_i && !lost;
  assign dead = cur_q.err || closed || worn || lost || stop_i;
  always_comb begin
    new_refusal = seg_refusal_i;
    // kept in case that the line accepts nothing more when its turn comes
    if (!seg_i.err)
      new_refusal = '{kind: REFUSE_SECOND_WRITE, region: seg_region_id_i, addr: seg_addr_i};
  end
  assign tell = (cur_q.err || closed || worn) && !stop_i && cur_refusal_q.kind != REFUSE_NONE &&
      !err_q;
  always_comb begin
    refusal_o = cur_refusal_q;
    if (worn) refusal_o.kind = REFUSE_EXHAUSTED;
  end
  assign refusal_valid_o = take && tell;
  assign ready = (cur_q.beats != 9'd1 || b_room) && (!tell || refusal_ready_i) && !waits;
  assign put_valid_o = cur_valid_q && w_valid_i && !dead && ready;
  assign put_line_o = cur_q.line;
  assign put_beat_o = cur_q.offset[11:6];
  assign put_last_o = cur_last_q;
  assign w_ready_o = cur_valid_q && ready && (dead || put_ready_i);
  assign take = w_valid_i && w_ready_o;
  assign seg_end = take && cur_q.beats == 9'd1;
  assign burst_end = seg_end && cur_q.last;
  assign step = 12'd1 << cur_q.size;

  // a killed segment releases its line at once; its remaining beats are discarded as refused
  assign drop_cur = kill_i && cur_valid_q && !cur_q.err && !seg_end;
  assign drop_next = kill_i && next_valid_q && !next_q.err && cur_q.err && !seg_end;
  assign done_o = ((seg_end && !cur_q.err) || drop_cur || drop_next) && !clr_i;
  assign done_line_o = drop_next ? next_q.line : cur_q.line;
  assign done_full_o = !drop_next && (full_q || (take && !dead && put_full_i));
  assign owed_o = cur_valid_q && (!cur_q.err || (next_valid_q && !next_q.err)) &&
      ((!w_valid_i && !w_waits_i) || (cur_q.beats == 9'd1 && !b_room));
  assign idle_o = !cur_valid_q && !next_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cur_valid_q <= 1'b0;
      next_valid_q <= 1'b0;
      cur_q <= '0;
      next_q <= '0;
      cur_refusal_q <= '0;
      next_refusal_q <= '0;
      cur_last_q <= '0;
      next_last_q <= '0;
      full_q <= 1'b0;
      err_q <= 1'b0;
    end else begin
      if (!cur_valid_q || seg_end) begin
        full_q <= 1'b0;
        cur_valid_q <= next_valid_q || seg_valid_i;
        cur_q <= next_valid_q ? next_q : seg_i;
        cur_refusal_q <= next_valid_q ? next_refusal_q : new_refusal;
        cur_last_q <= next_valid_q ? next_last_q : new_last;
        if (clr_i) cur_q.err <= 1'b1;
        next_valid_q <= 1'b0;
      end else begin
        if (take) begin
          cur_q.beats <= cur_q.beats - 1'b1;
          cur_q.offset <= cur_q.offset + step;
          if (!dead && put_full_i) full_q <= 1'b1;
        end
        if (clr_i || drop_cur) cur_q.err <= 1'b1;
        if (drop_cur) cur_refusal_q.kind <= REFUSE_CUT_OFF;
        if (seg_valid_i) begin
          next_valid_q <= 1'b1;
          next_q <= seg_i;
          next_refusal_q <= new_refusal;
          next_last_q <= new_last;
        end
        if (clr_i || drop_next) next_q.err <= 1'b1;
        if (drop_next) next_refusal_q.kind <= REFUSE_CUT_OFF;
      end
      if (seg_end) err_q <= !cur_q.last && (err_q || dead);
      else if (take && dead) err_q <= 1'b1;
    end
  end

  shef_fifo #(.W($bits(axi_b_t)), .Depth(8)) u_b (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(burst_end), .in_ready_o(b_room),
      .in_data_i({cur_q.id, (err_q || dead) ? AXI_SLVERR : AXI_OKAY}),
      .out_valid_o(b_valid_o), .out_ready_i(b_ready_i), .out_data_o(b_o),
      .count_o()
  );
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
