// Chunk cache: a 4-way set-associative write-back cache of plaintext chunks between an accelerator
// port and its engine set, for random access to more data than the set's lines hold. A line is a
// chunk of the set's regions (all of one size).
//
// Both sides are AXI4; the accelerator's side accepts the same bursts as shef_set. Segments are
// served in order: a read 6 cycles after its request if it hits, one beat a cycle; up to 16 lines
// are in flight at a time. A write's lookup waits for its data, so that a read never waits for W. A
// completely written line is not fetched. The cache answers a burst that must be refused, and shows
// it to the set, which records it; likewise a read that the set answers with an error.
// cmd_*: flush, invalidate, epoch: the cache writes dirty lines back (and drops all lines, except
// for a flush), then passes the command on (set_cmd_*) and its end back. stop_i, region_fault_i:
// responses are SLVERR and zeros. wipe_i (level): zeroes everything; wipe_done_o while it is held.
// A segment accepted before a wipe gets an error after it; a W beat is accepted only if an earlier
// accepted burst owes it. A segment's lookup waits for room in its queue, and that of a write also
// for room for its response. If reads that the accelerator has not taken use its line, or all four
// candidate ways, the segment waits for them, and so do those behind it. A command waits for none
// of them: it finds that segment before it has changed anything, and repeats its lookup afterwards.
// A write-back that fails although the set has not stopped and the region is not frozen is a loss:
// all later responses are errors, and fault_* (valid/ready) reports it.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_cache
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [NRegions-1:0] Regions = '0,
    parameter int unsigned Bytes = 262144,
    parameter int unsigned LineBytes = 64
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,

    // accelerator
    input  wire axi_req_t        acc_req_i,
    output axi_rsp_t             acc_rsp_o,

    // engine set
    output axi_req_t             set_req_o,
    input  wire axi_rsp_t        set_rsp_i,

    // control
    input  wire                  enable_i,
    input  wire                  stop_i,
    input  wire  [MAX_REGIONS-1:0] region_fault_i,
    input  wire                  cmd_valid_i,
    output logic                 cmd_ready_o,
    input  wire set_cmd_e        cmd_i,          // stable until cmd_done_o
    output logic                 cmd_done_o,
    output logic                 cmd_err_o,
    output logic                 set_cmd_valid_o,
    input  wire                  set_cmd_ready_i,
    input  wire                  set_cmd_done_i,
    input  wire                  set_cmd_err_i,
    output logic                 fault_valid_o,
    input  wire                  fault_ready_i,
    output fault_t               fault_o,
    output logic                 halted_o,       // by a loss, until a wipe
    // for statistics: read hit, read miss, write hit, write miss (segments), beat read, written
    output logic [5:0]           event_o,
    output logic                 idle_o,
    input  wire                  wipe_i,
    output logic                 wipe_done_o
);
  localparam int unsigned LineLog2 = $clog2(LineBytes);
  localparam int unsigned Beats = LineBytes / 64;
  localparam int unsigned Lines = Bytes / LineBytes;
  localparam int unsigned Sets = Lines / 4;
  localparam int unsigned LW = $clog2(Lines);
  localparam int unsigned Words = Bytes / 64;
  localparam int unsigned AW = $clog2(Words);
  localparam int unsigned Depth = 16;       // segments between lookup and response
  localparam int unsigned WDepth = 64;      // W beats
  localparam logic [AXI_ID_W-1:0] ID_LINE = 8'd0;
  localparam logic [AXI_ID_W-1:0] ID_TELL = 8'd1;

  if (LineBytes < 64 || LineBytes > 4096 || (LineBytes & (LineBytes - 1)) != 0 ||
      (Bytes & (Bytes - 1)) != 0 || Sets < 8) begin : g_bad
    $error("shef_cache: powers of two, lines of 64 to 4096 bytes, at least 32 of them");
  end
  for (genvar r = 0; r < int'(NRegions); r++) begin : g_check
    if (Regions[r].mode != MODE_NONE &&
        (Regions[r].mode == MODE_OUTPUT ||
        32'(Regions[r].chunk_log2) != LineLog2)) begin : g_bad_region
      $error("shef_cache: no output regions, and chunks of the line's size");
    end
  end

  function automatic addr_tab_t tab_base();
    addr_tab_t t;
    t = '0;
    for (int unsigned r = 0; r < NRegions; r++) t[r] = Regions[r].base;
    return t;
  endfunction

  // ---- wipe: transfers in flight end with errors, then every memory is zeroed ----
  typedef enum logic [1:0] {W_RUN, W_DRAIN, W_SWEEP, W_DONE} wipe_e;
  wipe_e wipe_q;
  logic [AW-1:0] sweep_q;
  logic swept_q, clr, poison, dir_clear, jobs_idle, tell_idle, walk, stop, lost_q;
  assign poison = wipe_q != W_RUN;
  assign clr = wipe_q == W_SWEEP;
  assign stop = stop_i || lost_q;
  assign wipe_done_o = wipe_q == W_DONE && wipe_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wipe_q <= W_RUN;
      sweep_q <= '0;
      swept_q <= 1'b0;
    end else begin
      unique case (wipe_q)
        W_RUN: begin
          sweep_q <= '0;
          swept_q <= 1'b0;
          if (wipe_i) wipe_q <= W_DRAIN;
        end
        W_DRAIN: if (jobs_idle && tell_idle && !walk) wipe_q <= W_SWEEP;
        W_SWEEP: begin
          sweep_q <= sweep_q + 1'b1;
          if (sweep_q == AW'(Words - 1)) swept_q <= 1'b1;
          if (swept_q && dir_clear && sweep_q[5:0] == '1) wipe_q <= W_DONE;
        end
        default: if (!wipe_i) wipe_q <= W_RUN;
      endcase
    end
  end

  // ---- segments, in pieces that fit the W beats ----
  seg_t [1:0] seg;       // 0 read, 1 write
  logic [1:0] seg_valid, seg_ready;
  shef_split #(.NRegions(NRegions), .Regions(Regions), .IsWrite(1'b0)) u_split_rd (
      .clk_i, .rst_ni, .enable_i, .epoch_zero_i('0), .exhausted_i('0),
      .ax_i(acc_req_i.ar), .ax_valid_i(acc_req_i.ar_valid), .ax_ready_o(acc_rsp_o.ar_ready),
      .seg_o(seg[0]), .seg_valid_o(seg_valid[0]), .seg_ready_i(seg_ready[0])
  );
  shef_split #(.NRegions(NRegions), .Regions(Regions), .IsWrite(1'b1)) u_split_wr (
      .clk_i, .rst_ni, .enable_i, .epoch_zero_i('0), .exhausted_i('0),
      .ax_i(acc_req_i.aw), .ax_valid_i(acc_req_i.aw_valid), .ax_ready_o(acc_rsp_o.aw_ready),
      .seg_o(seg[1]), .seg_valid_o(seg_valid[1]), .seg_ready_i(seg_ready[1])
  );

  typedef struct packed {
    logic write;
    logic err;
    logic [LW-1:0] line;
    logic [3:0] slot;
    logic wait_job;
    logic [AXI_ID_W-1:0] id;
    logic [11:0] offset;
    logic [2:0] size;
    logic [6:0] beats;
    logic last;
  } item_t;

  logic [8:0] cut_q[2];   // beats of the segment in earlier pieces
  logic turn_q, side, ask_valid, ask_ready, ask_fire, held, hold, parked, look_go;
  logic [1:0] want, stale_q;  // stale: a burst from before a wipe
  logic [1:0] q_pop;
  logic [4:0] pieces_q[2];    // of reads and of writes, from lookup to response
  logic [4:0] answers_q;      // B owed to writes after their lookup
  localparam logic [4:0] DEPTH = 5'(Depth);
  logic [8:0] rest;
  item_t piece, look_q;   // before and after its lookup
  logic look_tell_q, look_whole_q, look_first_q, tell;   // first: piece of its segment
  seg_t look_seg_q, cur;

  // ---- waiting W beats ----
  logic [6:0] wfree;   // beats that are present and not reserved for a segment
  logic w_pop, w_here, w_whole, ask_write;
  logic [511:0] w_data;
  logic [63:0] w_strb;
  shef_cache_beats #(.Depth(WDepth)) u_beats (
      .clk_i, .rst_ni, .hold_i(poison), .clr_i(clr), .zero_addr_i(sweep_q[5:0]),
      .aw_fire_i(acc_req_i.aw_valid && acc_rsp_o.aw_ready), .aw_len_i(acc_req_i.aw.len),
      .w_data_i(acc_req_i.w.data), .w_strb_i(acc_req_i.w.strb), .w_valid_i(acc_req_i.w_valid),
      .w_ready_o(acc_rsp_o.w_ready),
      .free_o(wfree), .promise_i(ask_write), .promise_n_i(piece.beats),
      .pop_i(w_pop), .valid_o(w_here), .data_o(w_data), .strb_o(w_strb), .whole_o(w_whole)
  );

  always_comb begin
    for (int d = 0; d < 2; d++) begin
      logic [8:0] left;
      left = seg[d].beats - cut_q[d];
      want[d] = seg_valid[d] && !hold && !poison && pieces_q[d] != DEPTH &&
          (d == 0 || (answers_q != DEPTH && {2'd0, wfree} >= ((left > 9'd64) ? 9'd64 : left)));
    end
    side = want[1] && (!want[0] || turn_q);
    cur = seg[side];
    rest = cur.beats - cut_q[side];
    piece = '0;
    piece.write = side;
    piece.err = cur.refuse != REFUSE_NONE || region_fault_i[cur.region] || stale_q[side];
    piece.id = cur.id;
    piece.offset = cur.offset + 12'(cut_q[side] << cur.size);
    piece.size = cur.size;
    piece.beats = (rest > 9'd64) ? 7'd64 : rest[6:0];
    piece.last = cur.last && rest <= 9'd64;
    tell = cur.refuse != REFUSE_NONE && !stale_q[side] && cur.first && cut_q[side] == '0;
  end
  assign ask_valid = want != '0;
  assign ask_fire = ask_valid && ask_ready;
  assign ask_write = ask_fire && side;
  for (genvar d = 0; d < 2; d++) begin : g_ready
    assign seg_ready[d] = ask_fire && side == (d == 1) && rest <= 9'd64;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= 1'b0;
      stale_q <= '0;
      cut_q[0] <= '0;
      cut_q[1] <= '0;
      look_q <= '0;
      look_seg_q <= '0;
      look_tell_q <= 1'b0;
      look_whole_q <= 1'b0;
      look_first_q <= 1'b0;
      pieces_q[0] <= '0;
      pieces_q[1] <= '0;
      answers_q <= '0;
    end else begin
      for (int d = 0; d < 2; d++)
        pieces_q[d] <= pieces_q[d] + 5'(ask_fire && side == (d == 1)) - 5'(q_pop[d]);
      answers_q <= answers_q + 5'(ask_write && piece.last) -
          5'(acc_rsp_o.b_valid && acc_req_i.b_ready);
      if (ask_valid) turn_q <= !side;
      for (int d = 0; d < 2; d++)
        stale_q[d] <= poison ? seg_valid[d] : (stale_q[d] && !(seg_ready[d] && seg[d].last));
      if (ask_fire) begin
        cut_q[side] <= (rest <= 9'd64) ? '0 : cut_q[side] + 9'd64;
        look_q <= piece;
        look_seg_q <= cur;
        look_tell_q <= tell && !stop;
        look_first_q <= cut_q[side] == '0;
        look_whole_q <= side && piece.beats == 7'(Beats) && cur.size == AXI_SIZE_64 && w_whole;
      end
      if (poison) begin
        look_q.err <= 1'b1;
        look_tell_q <= 1'b0;
      end
    end
  end

  // ---- directory ----
  logic look_valid, look_ready, look_hit, look_can, look_evict, walk_drop, walk_done, walk_valid,
      walk_ready;
  logic [LW-1:0] look_line, walk_line;
  logic [LW-3:0] look_set;
  reg_idx_t look_old_region, walk_region;
  chunk_idx_t look_old_chunk, walk_chunk;
  logic [3:0] busy_ways;

  shef_cache_dir #(.Sets(Sets)) u_dir (
      .clk_i, .rst_ni, .clr_i(clr), .clr_done_o(dir_clear),
      .ask_valid_i(ask_valid), .ask_ready_o(ask_ready), .ask_region_i(cur.region),
      .ask_chunk_i(cur.chunk), .ask_skip_i(piece.err),
      .ask_write_i(side),
      .out_valid_o(look_valid), .out_ready_i(look_ready), .out_hit_o(look_hit),
      .out_can_o(look_can), .out_line_o(look_line),
      .out_evict_o(look_evict), .out_region_o(look_old_region), .out_chunk_o(look_old_chunk),
      .out_set_o(look_set), .busy_i(busy_ways),
      .walk_i(walk), .walk_drop_i(walk_drop), .walk_done_o(walk_done), .walk_valid_o(walk_valid),
      .walk_ready_i(walk_ready),
      .walk_line_o(walk_line), .walk_region_o(walk_region), .walk_chunk_o(walk_chunk)
  );

  // ---- segments that wait for their turn: reads and writes each in their order ----
  // A segment waits if its line is in use in the other queue.
  item_t q_mem_q[2][Depth];
  logic [Depth-1:0] q_valid_q[2];
  logic [3:0] q_wp_q[2], q_rp_q[2];
  logic [1:0] head_valid;
  logic q_push, job_valid, job_ready, need_job, tell_ready, conflict;
  logic [3:0] ways_used[2];
  logic [3:0] job_slot;
  logic [15:0] job_busy;
  item_t rd_head, wr_head;

  always_comb begin
    for (int d = 0; d < 2; d++) begin
      ways_used[d] = '0;
      for (int i = 0; i < int'(Depth); i++) begin
        if (q_valid_q[d][i] && !q_mem_q[d][i].err && q_mem_q[d][i].line[LW-1:2] == look_set)
          ways_used[d][q_mem_q[d][i].line[1:0]] = 1'b1;
      end
    end
  end
  assign busy_ways = ways_used[0] | ways_used[1];
  assign conflict = look_hit && ways_used[!look_q.write][look_line[1:0]];
  assign need_job = !look_q.err && !look_hit;
  always_comb begin
    look_ready = look_go;
    if (look_q.err) look_ready = look_ready && (!look_tell_q || tell_ready);
    else if (look_hit) look_ready = look_ready && !conflict;
    else look_ready = look_ready && look_can && job_ready;
  end
  assign q_push = look_valid && look_ready;
  assign job_valid = (look_valid && need_job && look_can && look_go) || walk_valid;
  assign walk_ready = job_ready;
  logic rd_go, wr_go, rd_fail, wr_fail, rd_step, rd_done, wr_done, out_room, stage_q, stage_err_q,
      stage_last_q, b_err_q;
  always_comb begin
    event_o = '0;
    event_o[{1'b0, look_q.write, need_job}] = q_push && !look_q.err && look_first_q;
    event_o[4] = acc_rsp_o.r_valid && acc_req_i.r_ready;
    event_o[5] = w_pop && !wr_fail;
  end
  assign rd_head = q_mem_q[0][q_rp_q[0]];
  assign wr_head = q_mem_q[1][q_rp_q[1]];

  for (genvar d = 0; d < 2; d++) begin : g_queue
    logic push;
    assign push = q_push && look_q.write == (d == 1);
    assign head_valid[d] = q_valid_q[d][q_rp_q[d]];
    always_ff @(posedge clk_i) begin
      if (push) begin
        q_mem_q[d][q_wp_q[d]] <= look_q;
        q_mem_q[d][q_wp_q[d]].line <= look_line;
        q_mem_q[d][q_wp_q[d]].slot <= job_slot;
        q_mem_q[d][q_wp_q[d]].wait_job <= need_job;
      end
      if (poison) for (int i = 0; i < int'(Depth); i++) q_mem_q[d][i].err <= 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        q_valid_q[d] <= '0;
        q_wp_q[d] <= '0;
        q_rp_q[d] <= '0;
      end else begin
        if (push) begin
          q_valid_q[d][q_wp_q[d]] <= 1'b1;
          q_wp_q[d] <= q_wp_q[d] + 1'b1;
        end
        if (q_pop[d]) begin
          q_valid_q[d][q_rp_q[d]] <= 1'b0;
          q_rp_q[d] <= q_rp_q[d] + 1'b1;
        end
      end
    end
  end

  // ---- the line memory ----
  logic [511:0] mem_q[Words];
  logic [511:0] rd_data_q;
  logic [Lines-1:0] bad_q;
  logic rd_en, wr_en, evict_rd, evict_rd_go, fill_wr, fill_wr_go, bad_we, bad_new, take_rd, take_wr,
      rd_turn_q, wr_turn_q;
  logic [5:0] evict_beat, fill_beat;
  logic [LW-1:0] job_line;
  logic [AW-1:0] rd_addr, wr_addr;
  logic [511:0] fill_data, wr_data;
  logic [63:0] wr_be;
  logic [11:0] rd_offset, wr_offset;

  function automatic logic [AW-1:0] word_of(input logic [LW-1:0] line, input logic [5:0] beat);
    return AW'(32'(line) * Beats) + AW'(beat & 6'(Beats - 1));
  endfunction
  // responses and the write-back take turns at the read port, W beats and fills at the write port
  assign evict_rd_go = evict_rd && (!take_rd || rd_turn_q);
  assign fill_wr_go = fill_wr && (!take_wr || wr_turn_q);
  assign rd_en = evict_rd || take_rd;
  assign rd_addr = evict_rd_go ? word_of(job_line, evict_beat)
      : word_of(rd_head.line, rd_offset[11:6]);
  always_comb begin
    wr_en = fill_wr || take_wr;
    wr_addr = word_of(wr_head.line, wr_offset[11:6]);
    wr_be = w_strb;
    wr_data = w_data;
    if (clr) begin
      wr_en = 1'b1;
      wr_addr = sweep_q;
      wr_be = '1;
      wr_data = '0;
    end else if (fill_wr_go) begin
      wr_addr = word_of(job_line, fill_beat);
      wr_be = '1;
      wr_data = fill_data;
    end
  end
  always_ff @(posedge clk_i) begin
    if (wr_en) for (int i = 0; i < 64; i++) if (wr_be[i]) mem_q[wr_addr][8*i+:8] <= wr_data[8*i+:8];
    if (clr) rd_data_q <= '0;
    else if (rd_en) rd_data_q <= mem_q[rd_addr];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_turn_q <= 1'b0;
      wr_turn_q <= 1'b0;
      bad_q <= '0;
    end else begin
      if (rd_en) rd_turn_q <= !evict_rd_go;
      if (wr_en) wr_turn_q <= !fill_wr_go;
      if (clr) bad_q <= '0;
      else if (bad_we) bad_q[job_line] <= bad_new;
    end
  end

  // ---- responses ----
  logic [6:0] rd_beat_q, wr_beat_q;
  logic [11:0] rd_offset_q, wr_offset_q;
  logic [AXI_ID_W-1:0] stage_id_q;
  logic [2:0] out_count;

  assign rd_offset = (rd_beat_q == '0) ? rd_head.offset : rd_offset_q;
  assign wr_offset = (wr_beat_q == '0) ? wr_head.offset : wr_offset_q;
  assign rd_fail = rd_head.err || stop || bad_q[rd_head.line];
  assign wr_fail = wr_head.err || stop || bad_q[wr_head.line];
  assign out_room = out_count + 3'(stage_q) < 3'd4;
  assign rd_go = head_valid[0] && out_room && !poison &&
      (rd_head.err || !rd_head.wait_job || !job_busy[rd_head.slot]);
  assign wr_go = head_valid[1] && !poison && w_here &&
      (wr_head.err || !wr_head.wait_job || !job_busy[wr_head.slot]);
  assign take_rd = rd_go && !rd_fail;
  assign take_wr = wr_go && !wr_fail;
  assign rd_step = rd_go && (rd_fail || !evict_rd_go);
  assign w_pop = wr_go && (wr_fail || !fill_wr_go);
  assign rd_done = rd_beat_q + 7'd1 == rd_head.beats;
  assign wr_done = wr_beat_q + 7'd1 == wr_head.beats;
  assign q_pop = {w_pop && wr_done, rd_step && rd_done};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_beat_q <= '0;
      rd_offset_q <= '0;
      wr_beat_q <= '0;
      wr_offset_q <= '0;
      stage_q <= 1'b0;
      stage_err_q <= 1'b0;
      stage_last_q <= 1'b0;
      stage_id_q <= '0;
      b_err_q <= 1'b0;
    end else begin
      if (rd_step) begin
        rd_beat_q <= rd_done ? '0 : rd_beat_q + 1'b1;
        rd_offset_q <= rd_offset + (12'd1 << rd_head.size);
        stage_err_q <= rd_fail;
        stage_last_q <= rd_head.last && rd_done;
        stage_id_q <= rd_head.id;
      end
      stage_q <= rd_step;
      if (w_pop) begin
        wr_beat_q <= wr_done ? '0 : wr_beat_q + 1'b1;
        wr_offset_q <= wr_offset + (12'd1 << wr_head.size);
        b_err_q <= !(wr_done && wr_head.last) && (b_err_q || wr_fail);
      end
    end
  end

  // R: data separate from the other fields, so that a wipe can drop them
  logic [511:0] out_mem_q[4];
  logic [1:0] out_wp_q, out_rp_q;
  logic [3:0] out_err_q;
  logic out_err;
  shef_fifo #(.W(AXI_ID_W + 1), .Depth(4)) u_out (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(stage_q), .in_ready_o(), .in_data_i({stage_id_q, stage_last_q}),
      .out_valid_o(acc_rsp_o.r_valid), .out_ready_i(acc_req_i.r_ready),
      .out_data_o({acc_rsp_o.r.id, acc_rsp_o.r.last}), .count_o(out_count)
  );
  assign out_err = out_err_q[out_rp_q] || poison;
  assign acc_rsp_o.r.resp = out_err ? AXI_SLVERR : AXI_OKAY;
  assign acc_rsp_o.r.data = out_err ? '0 : out_mem_q[out_rp_q];
  always_ff @(posedge clk_i) begin
    if (clr) out_mem_q[sweep_q[1:0]] <= '0;
    else if (stage_q) out_mem_q[out_wp_q] <= stage_err_q ? '0 : rd_data_q;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_wp_q <= '0;
      out_rp_q <= '0;
      out_err_q <= '0;
    end else begin
      if (stage_q) begin
        out_wp_q <= out_wp_q + 1'b1;
        out_err_q[out_wp_q] <= stage_err_q;
      end
      if (acc_rsp_o.r_valid && acc_req_i.r_ready) out_rp_q <= out_rp_q + 1'b1;
      if (poison) out_err_q <= '1;
    end
  end

  shef_fifo #(.W($bits(axi_b_t)), .Depth(Depth)) u_b (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(w_pop && wr_done && wr_head.last), .in_ready_o(),
      .in_data_i({wr_head.id, (b_err_q || wr_fail) ? AXI_SLVERR : AXI_OKAY}),
      .out_valid_o(acc_rsp_o.b_valid), .out_ready_i(acc_req_i.b_ready),
      .out_data_o(acc_rsp_o.b), .count_o()
  );

  // ---- fills and write-backs ----
  logic line_ar_valid, line_ar_ready, line_aw_valid, line_w_valid, line_w_last, line_writing,
      tell_writing, line_r_ready;
  logic [63:0] line_ar_addr, line_aw_addr;
  logic [511:0] line_w_data;
  logic lost;
  reg_idx_t lost_region;
  chunk_idx_t lost_chunk;
  shef_cache_jobs #(.LW(LW), .Beats(Beats), .LineLog2(LineLog2), .Base(tab_base())) u_jobs (
      .clk_i, .rst_ni, .clr_i(clr), .idle_o(jobs_idle),
      .new_valid_i(job_valid), .new_ready_o(job_ready), .new_slot_o(job_slot),
      .new_line_i(walk ? walk_line : look_line),
      .new_walk_i(walk), .new_fill_i(!walk && !look_whole_q), .new_region_i(look_seg_q.region),
      .new_chunk_i(look_seg_q.chunk),
      .new_evict_i(walk || look_evict), .old_region_i(walk ? walk_region : look_old_region),
      .old_chunk_i(walk ? walk_chunk : look_old_chunk), .busy_o(job_busy),
      .rd_valid_o(evict_rd), .rd_ready_i(evict_rd_go), .rd_beat_o(evict_beat),
      .rd_data_i(rd_data_q),
      .wr_valid_o(fill_wr), .wr_ready_i(fill_wr_go), .wr_beat_o(fill_beat), .wr_data_o(fill_data),
      .line_o(job_line), .bad_i(bad_q[job_line]), .bad_we_o(bad_we), .bad_o(bad_new),
      .ar_valid_o(line_ar_valid), .ar_ready_i(line_ar_ready), .ar_addr_o(line_ar_addr),
      .r_valid_i(set_rsp_i.r_valid && set_rsp_i.r.id == ID_LINE), .r_ready_o(line_r_ready),
      .r_data_i(set_rsp_i.r.data), .r_error_i(set_rsp_i.r.resp != AXI_OKAY),
      .aw_valid_o(line_aw_valid), .aw_ready_i(set_rsp_i.aw_ready), .aw_addr_o(line_aw_addr),
      .w_valid_o(line_w_valid), .w_ready_i(set_rsp_i.w_ready), .w_data_o(line_w_data),
      .w_last_o(line_w_last),
      .writing_o(line_writing), .write_go_i(!tell_writing && !(q_push && look_tell_q)),
      .b_valid_i(set_rsp_i.b_valid && set_rsp_i.b.id == ID_LINE),
      .b_error_i(set_rsp_i.b.resp != AXI_OKAY),
      .lost_o(lost), .lost_region_o(lost_region), .lost_chunk_o(lost_chunk)
  );

  // ---- losses: the accelerator got OKAY for data that are not in memory ----
  // A set that has stopped also responds with errors, and reports the reason; that is visible
  // outside within WaitLog2 cycles.
  localparam int unsigned WaitLog2 = 3;
  logic told_q;
  reg_idx_t lost_region_q;
  chunk_idx_t lost_chunk_q;
  logic [WaitLog2:0] lost_wait_q;
  assign halted_o = lost_q;
  assign fault_valid_o = lost_q && !told_q && lost_wait_q[WaitLog2] && !stop_i && enable_i &&
      !poison;
  always_comb begin
    fault_o = '{kind: FAULT_INTERNAL, region: 8'hff, chunk: lost_chunk_q, version: '0};
    for (int unsigned r = 0; r < NRegions; r++)
      if (lost_region_q == reg_idx_t'(r)) fault_o.region = Regions[r].id;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || poison) begin
      lost_q <= 1'b0;
      told_q <= 1'b0;
      lost_wait_q <= '0;
      lost_region_q <= '0;
      lost_chunk_q <= '0;
    end else begin
      if (lost && !region_fault_i[lost_region] && !lost_q) begin
        lost_q <= 1'b1;
        lost_region_q <= lost_region;
        lost_chunk_q <= lost_chunk;
      end
      if (lost_q && !lost_wait_q[WaitLog2]) lost_wait_q <= lost_wait_q + 1'b1;
      if (fault_valid_o && fault_ready_i) told_q <= 1'b1;
    end
  end

  // ---- refused bursts are shown to the set, with zeros; its responses are dropped ----
  typedef enum logic [1:0] {T_IDLE, T_ASK, T_DATA, T_END} tell_e;
  tell_e tell_q;
  axi_ax_t tell_ax_q;
  logic tell_wr_q, tell_beat, tell_end, tell_ar, tell_ar_q;
  logic [8:0] tell_left_q;
  assign tell_idle = tell_q == T_IDLE;
  assign tell_ready = tell_idle && !line_writing;
  assign tell_writing = !tell_idle && tell_wr_q;
  assign tell_beat = tell_q == T_DATA && set_rsp_i.w_ready;
  assign tell_end = tell_wr_q ? (set_rsp_i.b_valid && set_rsp_i.b.id == ID_TELL)
      : (set_rsp_i.r_valid && set_rsp_i.r.id == ID_TELL && set_rsp_i.r.last);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tell_q <= T_IDLE;
      tell_ax_q <= '0;
      tell_wr_q <= 1'b0;
      tell_left_q <= '0;
    end else begin
      unique case (tell_q)
        T_IDLE:
        if (q_push && look_tell_q) begin
          tell_q <= T_ASK;
          tell_wr_q <= look_q.write;
          tell_ax_q <= '{id: ID_TELL, addr: look_seg_q.addr, len: 8'(look_seg_q.beats - 9'd1),
              size: look_seg_q.size,
              burst: (look_seg_q.refuse == REFUSE_BURST) ? 2'b00 : AXI_BURST_INCR};
          tell_left_q <= look_seg_q.beats;
        end
        T_ASK:
        if (tell_wr_q ? set_rsp_i.aw_ready : (set_rsp_i.ar_ready && tell_ar))
          tell_q <= tell_wr_q ? T_DATA : T_END;
        T_DATA:
        if (tell_beat) begin
          tell_left_q <= tell_left_q - 1'b1;
          if (tell_left_q == 9'd1) tell_q <= T_END;
        end
        default: if (tell_end) tell_q <= T_IDLE;
      endcase
    end
  end

  // ---- towards the set ----
  // a valid request stays valid
  assign tell_ar = tell_q == T_ASK && !tell_wr_q && (tell_ar_q || !line_ar_valid);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) tell_ar_q <= 1'b0;
    else tell_ar_q <= tell_ar && !set_rsp_i.ar_ready;
  end
  assign line_ar_ready = set_rsp_i.ar_ready && !tell_ar;
  always_comb begin
    set_req_o.ar_valid = line_ar_valid || tell_ar;
    set_req_o.aw_valid = line_aw_valid || (tell_q == T_ASK && tell_wr_q);
    set_req_o.w_valid = line_w_valid || tell_q == T_DATA;
    set_req_o.ar = '{id: ID_LINE, addr: line_ar_addr, len: 8'(Beats - 1), size: AXI_SIZE_64,
        burst: AXI_BURST_INCR};
    if (tell_ar) set_req_o.ar = tell_ax_q;
    set_req_o.aw = tell_ax_q;
    set_req_o.w = '{data: '0, strb: '0, last: tell_left_q == 9'd1};
    if (line_aw_valid)
      set_req_o.aw = '{id: ID_LINE, addr: line_aw_addr, len: 8'(Beats - 1), size: AXI_SIZE_64,
          burst: AXI_BURST_INCR};
    if (line_w_valid) set_req_o.w = '{data: line_w_data, strb: '1, last: line_w_last};
    set_req_o.r_ready = (set_rsp_i.r.id == ID_LINE) ? line_r_ready : 1'b1;
    set_req_o.b_ready = 1'b1;
  end

  // ---- commands ----
  typedef enum logic [2:0] {C_IDLE, C_DRAIN, C_WALK, C_WAIT, C_SET, C_RUN} cmd_state_e;
  cmd_state_e cmd_q;
  assign hold = cmd_q != C_IDLE;
  assign look_go = !poison && (cmd_q == C_IDLE || cmd_q == C_DRAIN);
  // Reads after their lookup keep their lines until the accelerator takes them, even if the
  // directory changes.
  assign parked = look_valid && !look_q.err && (look_hit ? conflict : !look_can);
  assign held = q_valid_q[1] == '0 && (!look_valid || parked);
  assign walk = cmd_q == C_WALK;
  assign walk_drop = cmd_i != SET_FLUSH;
  assign cmd_ready_o = cmd_q == C_IDLE && !poison;
  assign set_cmd_valid_o = cmd_q == C_SET;
  assign cmd_done_o = (cmd_q == C_RUN || (cmd_q == C_SET && set_cmd_ready_i)) && set_cmd_done_i;
  assign cmd_err_o = set_cmd_err_i || lost_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || poison) cmd_q <= C_IDLE;
    else begin
      unique case (cmd_q)
        C_IDLE: if (cmd_valid_i && cmd_ready_o) cmd_q <= C_DRAIN;
        C_DRAIN: if (held && jobs_idle) cmd_q <= C_WALK;
        C_WALK: if (walk_done) cmd_q <= C_WAIT;
        C_WAIT: if (jobs_idle) cmd_q <= C_SET;
        C_SET: if (set_cmd_ready_i) cmd_q <= set_cmd_done_i ? C_IDLE : C_RUN;
        default: if (set_cmd_done_i) cmd_q <= C_IDLE;
      endcase
    end
  end

  assign idle_o = q_valid_q[0] == '0 && q_valid_q[1] == '0 && !look_valid && jobs_idle &&
      tell_idle && cmd_q == C_IDLE && wipe_q == W_RUN && !acc_rsp_o.r_valid && !stage_q &&
      seg_valid == '0;

  logic unused;
  assign unused = ^{acc_req_i.w.last, look_seg_q, rd_head.write, wr_head.write};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
