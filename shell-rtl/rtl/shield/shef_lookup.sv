// Directory of the lines: says for each segment which line holds its chunk, takes a line for a chunk that has none, and keeps
// the state of every line from its taking to its release.
//
// Handshake: read and write segments in (valid/ready); a read leaves to the response queue (rsp_*, must be ready at all times
// when rsp_room_i is high), a write to the write acceptor (wsg_*). A line that was taken leaves also to the fetch queue
// (fetch_*, never full by size); where its chunk has a version of its own, that is asked for in the same cycle (ver_ready_i).
// Two stages: a segment is compared with all lines when it comes in, and decided in the next cycle at the earliest; one decision
// a cycle, reads and writes take turns when both wait, and neither waits for the other. A chunk of an `output` region that is
// not on chip costs one cycle more: its written bit is asked for.
//
// A chunk is in one line at most. A line is whole when all its bytes are known; only then is it read or sealed. `output`: taken
// by a write, bytes without mark are zeros, so it is whole at once; closed when every byte was written, or early when nothing else
// makes room. `counted`, `tree`, `bypass`: writes may hit a line in any state but sealing. The answer to the version (known_*)
// makes a line of a chunk that was never written whole: zeros. Another line that is not whole is fetched (merge_*) as soon
// as a read or its eviction wants it; the fetch fills bytes without mark. A line whose every byte was written is sealed at
// once, others when room is short. At the last version nothing becomes dirty.
//
// Reads hold all lines of a class but two at most, and so do dirty lines. Writes never wait for responses: two lines are not
// held by reads, and they are free, or become so through sealing, which needs nothing from here.
//
// Prefetch: when reads of a region (not `output`) go from chunk to chunk, the next chunks are taken and fetched in cycles that
// nothing else needs, up to Prefetch[region] ahead and all lines of the class but three. A line fetched ahead is no victim
// until it was read, or the stream ended: at a read elsewhere, a write to the region, a write that finds no line, or a flush.
// What fails before it is asked for is let go (spec_failed_o) and fetched again when it is asked for.
`default_nettype none
module shef_lookup
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter int unsigned BigLines = 8,
    parameter int unsigned SmallLines = 32,
    parameter int unsigned ChunkW = CHUNK_INDEX_W,      // bits that tell the chunks of a region apart
    parameter logic [MAX_REGIONS-1:0] IsOutput = '0,    // mode of each region
    parameter logic [MAX_REGIONS-1:0] HasVersions = '0, // counted, tree
    parameter logic [MAX_REGIONS-1:0] IsPlain = '0,     // bypass
    parameter logic [MAX_REGIONS-1:0] IsBig = '0,       // its chunks go to the 4 KiB lines
    parameter id_tab_t RegionId = '0,
    parameter logic [MAX_REGIONS-1:0][3:0] Prefetch = '0,                   // chunks ahead
    parameter logic [MAX_REGIONS-1:0][CHUNK_INDEX_W-1:0] NumChunks = '0,
    localparam int unsigned NLines = BigLines + SmallLines
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire               stop_i,      // answer everything with an error, take no line
    input  wire               hold_rd_i,   // a command runs: no reads
    input  wire               hold_wr_i,   // no writes
    input  wire  [MAX_REGIONS-1:0] frozen_i,  // regions that take no part: answered with an error, their lines are lost

    input  wire  seg_t        rd_seg_i,
    input  wire               rd_valid_i,
    output logic              rd_ready_o,
    input  wire  seg_t        wr_seg_i,
    input  wire               wr_valid_i,
    output logic              wr_ready_o,
    output logic              held_o,      // a segment waits here

    output logic              rsp_valid_o,
    input  wire               rsp_room_i,
    output lseg_t             lseg_o,      // for rsp and wsg
    output seg_t              seg_o,       // what it was made of
    output logic              wsg_valid_o,
    input  wire               wsg_room_i,
    output logic              fetch_valid_o,
    output line_t             fetch_line_o,
    output logic              fetch_write_o, // taken by a write: only its version is asked for
    output logic              ver_valid_o,   // ask for the version; with fetch_valid_o
    input  wire               ver_ready_i,
    output logic              new_valid_o,   // forget the line's byte marks
    output line_t             new_line_o,
    output logic              taken_o,       // a line was taken
    output logic              short_o,       // a segment waits for a line
    output logic              spec_taken_o,  // a chunk is fetched ahead
    output logic              spec_used_o,   // and asked for
    output logic              spec_failed_o, // with failed_i: nobody asked for it

    output logic              merge_valid_o, // a line to be filled from memory
    input  wire               merge_ready_i,
    output line_t             merge_line_o,
    output reg_idx_t          merge_region_o,
    output chunk_idx_t        merge_chunk_o,

    output logic              ask_valid_o,   // written map
    input  wire               ask_ready_i,
    input  wire               ask_bit_i,

    // events
    input  wire               rsp_done_i,    // a response has read its last beat
    input  wire  line_t       rsp_line_i,
    input  wire               wsg_done_i,    // a write segment has written its last beat
    input  wire  line_t       wsg_line_i,
    input  wire               wsg_full_i,    // and all bytes of the line were written
    input  wire               known_i,       // the version of the line's chunk came
    input  wire  line_t       known_line_i,
    input  wire               known_zero_i,  // it was never written
    input  wire               known_last_i,  // it cannot be raised
    input  wire               known_dead_i,  // its region is frozen: nothing comes
    input  wire               verified_i,
    input  wire  line_t       verified_line_i,
    input  wire               failed_i,      // it was not what it should be: its region is frozen or all stops
    input  wire               filled_i,      // as verified, bypass
    input  wire  line_t       filled_line_i,
    input  wire               sealed_i,      // sealed and acknowledged
    input  wire  line_t       sealed_line_i,
    input  wire               sealed_last_i, // under the last version
    input  wire               unsealed_i,    // it will not be: its region is frozen
    input  wire  line_t       unsealed_line_i,
    input  wire               flush_i,       // seal incomplete lines too
    input  wire               drop_i,        // forget the lines of these regions (pulse; nothing is in flight)
    input  wire  [NRegions-1:0] drop_mask_i,

    // lines to be sealed, in any order; the queue behind has room for all
    output logic              seal_valid_o,
    output line_t             seal_line_o,
    output reg_idx_t          seal_region_o,
    output chunk_idx_t        seal_chunk_o,

    output logic [NLines-1:0] readable_o,    // the line's bytes may be read by the accelerator
    output logic [NLines-1:0] fetched_o,     // all its bytes count, whatever its byte marks say
    output logic [NLines-1:0] closed_o,      // output: gathered to the last byte
    output logic [NLines-1:0] asked_o,       // its version is not yet known
    output logic [NLines-1:0] last_o,        // its version is the last one
    output logic [NLines-1:0] dead_o,        // its region is frozen: nothing goes in or out
    output logic              fetching_o,    // some line waits for its chunk
    output logic              dirty_o,       // some line is dirty or being sealed
    output logic              write_held_o,  // a write segment holds a line

    output logic              rd_refusal_valid_o,   // record a refused read; held back by rd_refusal_room_i
    input  wire               rd_refusal_room_i,
    output refusal_t          refusal_o      // also with wsg_valid_o; kind NONE: nothing to record
);
  typedef logic [NLines-1:0] lines_t;
  typedef logic [ChunkW-1:0] key_t;
  typedef struct packed {
    reg_idx_t region;
    key_t chunk;
  } name_t;
  localparam lines_t BIG_MASK = lines_t'((64'd1 << BigLines) - 64'd1);
  localparam int unsigned RESERVE = 2;
  localparam int unsigned EVICT_WAIT = 256;  // cycles a write waits for a read to let go of a line before an `output` line is closed
  localparam int unsigned LINES[2] = '{SmallLines, BigLines};

  // ---- state of the lines ----
  lines_t free_q;
  lines_t orphan_q;         // dropped, but a response may still read it
  lines_t out_q, plain_q;   // mode of its region
  lines_t ask_q;            // its version was asked for
  lines_t fetch_q;          // waits for memory
  lines_t dirty_q, seal_q;  // has bytes that are not in memory; is on its way there
  lines_t whole_q;          // all bytes are known
  lines_t all_q;            // all bytes count, whatever the marks say
  lines_t full_q;           // every byte was written since it became dirty
  lines_t want_q;           // a read waits for it to be whole
  lines_t evict_q;          // it shall be sealed
  lines_t last_q;           // its version cannot be raised
  lines_t dead_q;           // its region is frozen
  lines_t spec_q;           // fetched ahead, and nobody asked for it yet
  lines_t ahead_q;          // and its stream goes on
  lines_t rheld_q, wheld_q;
  logic [6:0] rrefs_q[NLines];
  logic [1:0] wrefs_q[NLines];
  key_t chunk_q[NLines];
  reg_idx_t region_q[NLines];

  assign readable_o = whole_q;
  assign fetched_o = all_q;
  assign closed_o = full_q & out_q;
  assign asked_o = ask_q;
  assign last_o = last_q;
  assign dead_o = dead_q;
  assign fetching_o = (fetch_q | ask_q) != '0;
  assign dirty_o = (dirty_q | seal_q) != '0;
  assign write_held_o = wheld_q != '0;

  function automatic line_t index_of(input lines_t x);
    line_t n;
    n = '0;
    for (int i = 0; i < int'(NLines); i++) if (x[i]) n = n | line_t'(i);
    return n;
  endfunction
  function automatic lines_t one_hot(input line_t n);
    lines_t x;
    x = '0;
    for (int i = 0; i < int'(NLines); i++) x[i] = n == line_t'(i);
    return x;
  endfunction
  // bit i: some bit at or below i is set
  function automatic lines_t from_first(input lines_t x);
    lines_t y;
    y = x;
    for (int s = 1; s < int'(NLines); s = 2 * s) y = y | (y << s);
    return y;
  endfunction
  // the first bit of x that is in `above`, or else the first bit
  function automatic lines_t pick(input lines_t x, input lines_t above);
    lines_t high, low;
    if (x == '0) return '0;
    high = from_first(x & above);
    low = from_first(x);
    return high[NLines-1] ? (high & ~(high << 1)) : (low & ~(low << 1));
  endfunction
  function automatic lines_t beyond(input lines_t one);
    return from_first(one) & ~one;
  endfunction

  // ---- the decision, as the blocks before it see it ----
  seg_t seg;
  logic side_valid, rd_want, wr_want, class_big;
  logic [1:0] cand_ok;
  logic rref_up, wref_up;
  logic [1:0] short_q;       // a segment of that side found no line
  logic stream_q, spec_valid_q, spec_load, spec_end, follows, spec_hit, spec_room;
  name_t spec_next;

  // ---- stage 1: compare with all lines; [0] reads, [1] writes ----
  logic [1:0] in_valid, in_ready, slot_valid_q;
  seg_t in_seg[2];
  seg_t slot_q[2];
  lines_t match_q[2];
  lines_t match[2];
  lines_t cand_sel, take_one;
  logic fire, take_line, take_seg, take_spec, spec_turn, side_wr, take_big;
  logic [1:0] fires;
  logic same_slots;

  assign in_valid = {wr_valid_i, rd_valid_i};
  assign in_seg[0] = rd_seg_i;
  assign in_seg[1] = wr_seg_i;
  assign in_ready = ~slot_valid_q | fires;
  assign rd_ready_o = in_ready[0];
  assign wr_ready_o = in_ready[1];
  assign held_o = slot_valid_q != '0;
  assign take_one = take_line ? cand_sel : '0;
  name_t in_name[2];
  name_t slot_name[2];
  name_t spec_name_q, take_name;
  assign same_slots = slot_name[0] == slot_name[1];
  assign take_name = spec_turn ? spec_name_q : slot_name[side_wr];

  for (genvar d = 0; d < 2; d++) begin : g_slot
    logic load;
    assign load = in_valid[d] && in_ready[d];
    // chunks to be fetched ahead are compared where no read comes in
    assign in_name[d] = (d == 0 && !in_valid[d]) ? spec_next : '{region: in_seg[d].region, chunk: in_seg[d].chunk[ChunkW-1:0]};
    assign slot_name[d] = '{region: slot_q[d].region, chunk: slot_q[d].chunk[ChunkW-1:0]};
    always_comb begin
      match[d] = '0;
      if (in_valid[d] || (d == 0 && spec_load)) begin
        for (int i = 0; i < int'(NLines); i++)
          match[d][i] = {region_q[i], chunk_q[i]} == in_name[d];
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        slot_valid_q[d] <= 1'b0;
        slot_q[d] <= '0;
        match_q[d] <= '0;
      end else begin
        if (in_ready[d]) slot_valid_q[d] <= in_valid[d];
        if (load) begin
          slot_q[d] <= in_seg[d];
          // the line that is being taken changes its chunk in this cycle
          match_q[d] <= (match[d] & ~take_one) | (in_name[d] == take_name ? take_one : '0);
        end else if (take_line) match_q[d] <= (match_q[d] & ~take_one) | ((take_spec ? slot_name[d] == spec_name_q : same_slots) ? take_one : '0);
      end
    end
  end

  // ---- the stream, and the chunk that is to be fetched ahead next ----
  reg_idx_t stream_region_q;
  chunk_idx_t stream_chunk_q, spec_chunk_q, stream_end;   // newest that was read; next to be fetched ahead
  lines_t spec_match_q;
  logic [6:0] ahead_count_q[2];
  logic [1:0] ahead_up_q;

  assign stream_end = stream_chunk_q + chunk_idx_t'(Prefetch[stream_region_q]);
  assign spec_next = '{region: stream_region_q, chunk: spec_chunk_q[ChunkW-1:0]};
  assign spec_load = stream_q && !spec_valid_q && !in_valid[0] && spec_chunk_q <= stream_end && spec_chunk_q < NumChunks[stream_region_q];
  assign follows = seg.region == stream_region_q && seg.chunk == stream_chunk_q + 1'b1;
  // another chunk is read, its region is written, or room is short for a write
  assign spec_end = (rref_up && Prefetch[seg.region] != '0 && !follows && !(seg.region == stream_region_q && seg.chunk == stream_chunk_q)) ||
      (wref_up && seg.region == stream_region_q) || short_q[1] || flush_i || stop_i || hold_rd_i;
  assign spec_hit = (spec_match_q & ~free_q & ~orphan_q) != '0;
  assign spec_room = ahead_count_q[IsBig[spec_name_q.region]] + 7'(ahead_up_q != '0) + 7'd3 < 7'(LINES[IsBig[spec_name_q.region]]);
  assign spec_turn = spec_valid_q && !side_valid;
  assign take_spec = spec_turn && stream_q && !short_q[1] && !flush_i && !stop_i && !hold_rd_i && !spec_hit && spec_room && !frozen_i[spec_name_q.region] &&
      cand_ok[IsBig[spec_name_q.region]] && (!HasVersions[spec_name_q.region] || ver_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      stream_q <= 1'b0;
      stream_region_q <= '0;
      stream_chunk_q <= '0;
      spec_chunk_q <= '0;
      spec_valid_q <= 1'b0;
      spec_name_q <= '0;
      spec_match_q <= '0;
      ahead_up_q <= '0;
      for (int c = 0; c < 2; c++) ahead_count_q[c] <= '0;
    end else begin
      ahead_up_q <= {ahead_up_q[0], take_spec};
      ahead_count_q[0] <= 7'($countones(ahead_q & ~BIG_MASK));
      ahead_count_q[1] <= 7'($countones(ahead_q & BIG_MASK));
      if (spec_load) begin
        spec_valid_q <= 1'b1;
        spec_name_q <= spec_next;
        spec_match_q <= (match[0] & ~take_one) | (spec_next == take_name ? take_one : '0);
        spec_chunk_q <= spec_chunk_q + 1'b1;
      end else begin
        if (take_line) spec_match_q <= (spec_match_q & ~take_one) | (spec_name_q == take_name ? take_one : '0);
        if (take_spec || (spec_turn && spec_hit)) spec_valid_q <= 1'b0;
      end
      if (rref_up && Prefetch[seg.region] != '0 && !IsOutput[seg.region]) begin
        stream_region_q <= seg.region;
        stream_chunk_q <= seg.chunk;
        stream_q <= follows || (stream_q && seg.region == stream_region_q && seg.chunk == stream_chunk_q);
        if (follows && (!stream_q || spec_chunk_q <= seg.chunk)) spec_chunk_q <= seg.chunk + 1'b1;
      end
      if (spec_end) begin
        stream_q <= 1'b0;
        spec_valid_q <= 1'b0;
      end
    end
  end

  // ---- which side is decided ----
  logic turn_q;  // 1: writes first

  assign rd_want = slot_valid_q[0] && rsp_room_i && rd_refusal_room_i && (!hold_rd_i || stop_i);
  assign wr_want = slot_valid_q[1] && wsg_room_i && (!hold_wr_i || stop_i);
  assign side_wr = wr_want && (!rd_want || turn_q);
  assign side_valid = rd_want || wr_want;
  assign seg = slot_q[side_wr];
  always_comb begin
    seg_o = seg;
    if (spec_turn) begin
      seg_o.region = spec_name_q.region;
      seg_o.chunk = chunk_idx_t'(spec_name_q.chunk);
    end
  end
  assign class_big = IsBig[seg.region];
  assign take_big = spec_turn ? IsBig[spec_name_q.region] : class_big;
  assign take_line = take_seg || take_spec;

  // ---- lines that can be taken: one candidate of each class, chosen in advance ----
  lines_t avail;
  lines_t cand_q[2];
  lines_t cand_next[2];
  lines_t cand_above_q[2];
  logic [6:0] rheld_count_q[2];
  logic [6:0] dirty_count_q[2];
  logic [1:0] room_rd, room_wr;
  logic rheld_up, dirty_up, up_big_q, rheld_up_q, dirty_up_q;

  assign avail = free_q | ~(ask_q | fetch_q | dirty_q | seal_q | rheld_q | wheld_q | ahead_q | (want_q & ~whole_q));
  assign cand_sel = cand_q[take_big];

  for (genvar c = 0; c < 2; c++) begin : g_class
    localparam lines_t MASK = (c == 1) ? BIG_MASK : ~BIG_MASK;
    assign cand_ok[c] = (cand_q[c] & avail) != '0;
    assign cand_next[c] = pick(avail & MASK & ~cand_q[c], cand_above_q[c]);
    // counted a cycle late, with what the last decision added
    assign room_rd[c] = rheld_count_q[c] + 7'(rheld_up_q && up_big_q == (c == 1)) + 7'(RESERVE) < 7'(LINES[c]);
    assign room_wr[c] = dirty_count_q[c] + 7'(dirty_up_q && up_big_q == (c == 1)) + 7'(RESERVE) < 7'(LINES[c]);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) begin
        cand_q[c] <= '0;
        cand_above_q[c] <= '0;
        rheld_count_q[c] <= '0;
        dirty_count_q[c] <= '0;
      end else begin
        if (!cand_ok[c] || (take_line && take_big == (c == 1))) begin
          cand_q[c] <= cand_next[c];
          if (cand_next[c] != '0) cand_above_q[c] <= beyond(cand_next[c]);
        end
        rheld_count_q[c] <= 7'($countones(rheld_q & MASK));
        dirty_count_q[c] <= 7'($countones((dirty_q | seal_q) & MASK));
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      rheld_up_q <= 1'b0;
      dirty_up_q <= 1'b0;
      up_big_q <= 1'b0;
    end else begin
      rheld_up_q <= rheld_up;
      dirty_up_q <= dirty_up;
      up_big_q <= class_big;
    end
  end

  // ---- decision ----
  lines_t hit;
  logic is_hit, is_out, has_version, bit_known, bit_set, refused, turned_away, need_ask, short_of_lines;
  logic hit_dirty, hit_seal, hit_last, hit_held;
  logic ask_rd_q, ask_wr_q;  // the written bit was asked for in the last cycle, for this side
  logic ask_bit_rd_q, ask_bit_wr_q, have_rd_q, have_wr_q;
  line_t line;
  refuse_kind_e kind;

  always_comb begin
    is_out = IsOutput[seg.region];
    has_version = HasVersions[seg.region];
    hit = match_q[side_wr] & ~free_q & ~orphan_q;
    is_hit = hit != '0;
    hit_dirty = (hit & dirty_q) != '0;
    hit_seal = (hit & seal_q) != '0;
    hit_last = (hit & last_q) != '0;
    hit_held = (hit & rheld_q) != '0;
    bit_known = side_wr ? (ask_wr_q || have_wr_q) : (ask_rd_q || have_rd_q);
    bit_set = side_wr ? (have_wr_q ? ask_bit_wr_q : ask_bit_i) : (have_rd_q ? ask_bit_rd_q : ask_bit_i);
    kind = seg.refuse;
    fire = 1'b0;
    refused = 1'b0;
    turned_away = 1'b0;
    take_seg = 1'b0;
    need_ask = 1'b0;
    short_of_lines = 1'b0;
    if (side_valid) begin
      if (stop_i || seg.refuse != REFUSE_NONE || frozen_i[seg.region]) begin
        fire = 1'b1;
        refused = 1'b1;
        turned_away = !stop_i && seg.refuse != REFUSE_NONE;
      end else if (is_hit) begin
        if (!side_wr) begin
          fire = hit_held || room_rd[class_big];
        end else if (hit_dirty) begin
          fire = 1'b1;
        end else if (is_out) begin
          kind = REFUSE_SECOND_WRITE;
          fire = 1'b1;
          refused = 1'b1;
          turned_away = 1'b1;
        end else if (hit_seal) begin
          fire = 1'b0;
        end else if (hit_last) begin
          kind = REFUSE_EXHAUSTED;
          fire = 1'b1;
          refused = 1'b1;
          turned_away = 1'b1;
        end else begin
          fire = room_wr[class_big];
          short_of_lines = !fire;
        end
      end else if (is_out && !bit_known) begin
        need_ask = 1'b1;
      end else if (is_out && side_wr == bit_set) begin
        kind = side_wr ? REFUSE_SECOND_WRITE : REFUSE_NOT_WRITTEN;
        fire = 1'b1;
        refused = 1'b1;
        turned_away = 1'b1;
      end else begin
        take_seg = cand_ok[class_big] && (side_wr ? room_wr[class_big] : room_rd[class_big]) && (!has_version || ver_ready_i);
        fire = take_seg;
        short_of_lines = !cand_ok[class_big] || (side_wr && !room_wr[class_big]);
      end
    end
  end

  lines_t sel;
  assign sel = (is_hit && !spec_turn) ? hit : cand_sel;
  assign line = index_of(sel);
  assign rref_up = fire && !side_wr && !refused;
  assign wref_up = fire && side_wr && !refused;
  assign rheld_up = rref_up && !(is_hit && hit_held);
  assign dirty_up = wref_up && !(is_hit && hit_dirty);
  assign fires = fire ? (side_wr ? 2'b10 : 2'b01) : 2'b00;
  assign rsp_valid_o = fires[0];
  assign wsg_valid_o = fires[1];
  assign fetch_valid_o = take_spec || (take_seg && (!side_wr || has_version));
  assign fetch_line_o = line;
  assign fetch_write_o = side_wr && !take_spec;
  assign ver_valid_o = take_line && HasVersions[take_name.region];
  // a line that is whole through a fetch starts its marks anew when it becomes dirty
  assign new_valid_o = take_line || (wref_up && !hit_dirty && (hit & all_q) != '0);
  assign new_line_o = line;
  assign taken_o = take_seg;
  assign spec_taken_o = take_spec;
  assign spec_used_o = rref_up && is_hit && (hit & spec_q) != '0;
  assign spec_failed_o = failed_i && spec_q[verified_line_i] && !((rref_up || wref_up) && is_hit && hit[verified_line_i]);
  assign short_o = short_of_lines;
  assign ask_valid_o = need_ask;
  assign lseg_o = '{id: seg.id, err: refused, line: line, offset: seg.offset, size: seg.size, beats: seg.beats, last: seg.last};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      turn_q <= 1'b0;
      ask_rd_q <= 1'b0;
      ask_wr_q <= 1'b0;
      have_rd_q <= 1'b0;
      have_wr_q <= 1'b0;
      ask_bit_rd_q <= 1'b0;
      ask_bit_wr_q <= 1'b0;
    end else begin
      if (side_valid) turn_q <= !side_wr;
      // an answer that is not used in its cycle is kept for the next look of its side, once
      ask_rd_q <= need_ask && ask_ready_i && !side_wr;
      ask_wr_q <= need_ask && ask_ready_i && side_wr;
      if (ask_rd_q) ask_bit_rd_q <= ask_bit_i;
      if (ask_wr_q) ask_bit_wr_q <= ask_bit_i;
      have_rd_q <= (have_rd_q || ask_rd_q) && rd_want && side_wr;
      have_wr_q <= (have_wr_q || ask_wr_q) && wr_want && !side_wr;
    end
  end

  // ---- refusals: one record for a burst; those of writes are made where their data are swallowed ----
  logic told_q;
  assign rd_refusal_valid_o = fires[0] && refused && turned_away && (seg.first || !told_q);
  always_comb begin
    refusal_o.kind = (refused && turned_away) ? kind : REFUSE_NONE;
    refusal_o.region = (kind == REFUSE_RANGE || kind == REFUSE_BURST || kind == REFUSE_NOT_KEYED) ? 8'hff : RegionId[seg.region];
    refusal_o.addr = seg.addr;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) told_q <= 1'b0;
    else if (fires[0]) told_q <= rd_refusal_valid_o || (told_q && !seg.first);
  end

  // ---- room: which dirty lines shall go ----
  // Each class on its own. Lines other than `output` go one by one as long as more than half of the class is dirty, or one
  // at a time when a segment finds no line. An `output` line is closed early only for a write, when no other kind of line is
  // left to go, and either dirty lines have all they may have or no line came back from the reads for a while.
  logic [1:0] short_big_q;
  logic [8:0] evict_age_q;
  lines_t evict_one[2];
  lines_t evict_above_q[2];
  logic [1:0] evicted_q;

  for (genvar c = 0; c < 2; c++) begin : g_evict
    localparam lines_t MASK = (c == 1) ? BIG_MASK : ~BIG_MASK;
    lines_t mine, others, outs;
    logic needed_rd, needed_wr, working, crowded;
    logic [6:0] waiting_q;   // dirty lines that nobody sends away
    assign mine = MASK & dirty_q & ~evict_q & ~wheld_q;
    assign others = mine & ~out_q;
    assign outs = mine & out_q;
    assign needed_rd = short_q[0] && short_big_q[0] == (c == 1);
    assign needed_wr = short_q[1] && short_big_q[1] == (c == 1);
    assign working = (MASK & (seal_q | (evict_q & dirty_q))) != '0;
    assign crowded = waiting_q > 7'(LINES[c] / 2);
    always_comb begin
      evict_one[c] = '0;
      if (!evicted_q[c]) begin
        if (others != '0 && (crowded || ((needed_rd || needed_wr) && !working))) evict_one[c] = pick(others, evict_above_q[c]);
        else if (others == '0 && outs != '0 && needed_wr && !working && (!room_wr[c] || evict_age_q == 9'(EVICT_WAIT)))
          evict_one[c] = pick(outs, evict_above_q[c]);
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) begin
        waiting_q <= '0;
        evict_above_q[c] <= '0;
        evicted_q[c] <= 1'b0;
      end else begin
        waiting_q <= 7'($countones(others & ~full_q));
        evicted_q[c] <= evict_one[c] != '0;
        if (evict_one[c] != '0) evict_above_q[c] <= beyond(evict_one[c]);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      short_q <= '0;
      short_big_q <= '0;
      evict_age_q <= '0;
    end else begin
      for (int d = 0; d < 2; d++) begin
        if (!slot_valid_q[d]) short_q[d] <= 1'b0;
        else if (side_valid && side_wr == (d == 1)) begin
          short_q[d] <= short_of_lines;
          short_big_q[d] <= class_big;
        end
      end
      if (!short_q[1]) evict_age_q <= '0;
      else if (evict_age_q != 9'(EVICT_WAIT)) evict_age_q <= evict_age_q + 1'b1;
    end
  end

  // ---- lines to seal ----
  lines_t sealable, seal_pick, seal_start, seal_one_q, seal_above_q;
  assign sealable = dirty_q & ~wheld_q & ~fetch_q & ~ask_q & (whole_q | plain_q) & (full_q | evict_q | {NLines{flush_i}});
  assign seal_pick = pick(sealable, seal_above_q);
  // a segment that finds its line in this cycle keeps it open
  assign seal_start = stop_i ? '0 : seal_pick & ~(wref_up ? hit : '0);
  assign seal_valid_o = seal_one_q != '0;
  assign seal_line_o = index_of(seal_one_q);
  assign seal_region_o = region_q[seal_line_o];
  assign seal_chunk_o = chunk_idx_t'(chunk_q[seal_line_o]);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      seal_one_q <= '0;
      seal_above_q <= '0;
    end else begin
      seal_one_q <= seal_start;
      if (seal_start != '0) seal_above_q <= beyond(seal_start);
    end
  end

  // ---- lines to fill up ----
  lines_t lacking, merge_start, merge_one_q;
  assign lacking = ~(free_q | ask_q | fetch_q | whole_q | seal_q) & (want_q | (dirty_q & ~plain_q & (evict_q | {NLines{flush_i}})));
  assign merge_start = (stop_i || (merge_valid_o && !merge_ready_i)) ? '0 : pick(lacking, '0);
  assign merge_valid_o = merge_one_q != '0;
  assign merge_line_o = index_of(merge_one_q);
  assign merge_region_o = region_q[merge_line_o];
  assign merge_chunk_o = chunk_idx_t'(chunk_q[merge_line_o]);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) merge_one_q <= '0;
    else if (!merge_valid_o || merge_ready_i) merge_one_q <= merge_start;
  end

  // ---- updates ----
  lines_t come;   // the chunk came from memory
  assign come = (verified_i ? one_hot(verified_line_i) : '0) | (filled_i ? one_hot(filled_line_i) : '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      free_q <= '1;
      orphan_q <= '0;
      out_q <= '0;
      plain_q <= '0;
      ask_q <= '0;
      fetch_q <= '0;
      dirty_q <= '0;
      seal_q <= '0;
      whole_q <= '0;
      all_q <= '0;
      full_q <= '0;
      want_q <= '0;
      evict_q <= '0;
      last_q <= '0;
      dead_q <= '0;
      spec_q <= '0;
      ahead_q <= '0;
      rheld_q <= '0;
      wheld_q <= '0;
      for (int i = 0; i < int'(NLines); i++) begin
        rrefs_q[i] <= '0;
        wrefs_q[i] <= '0;
        chunk_q[i] <= '0;
        region_q[i] <= '0;
      end
    end else begin
      fetch_q <= (fetch_q | merge_start) & ~come;
      whole_q <= whole_q | come;
      all_q <= all_q | come;
      want_q <= want_q & ~come;
      evict_q <= evict_q | evict_one[0] | evict_one[1];
      seal_q <= seal_q | seal_start;
      dirty_q <= dirty_q & ~seal_start;
      for (int i = 0; i < int'(NLines); i++) dead_q[i] <= frozen_i[region_q[i]] && !free_q[i];
      if (rref_up && is_hit && (hit & (whole_q | come)) == '0) want_q[line] <= 1'b1;
      if (wref_up && is_hit) begin
        dirty_q[line] <= 1'b1;
        evict_q[line] <= 1'b0;
      end
      if (failed_i) fetch_q[verified_line_i] <= 1'b0;
      if (spec_failed_o) free_q[verified_line_i] <= 1'b1;
      if (spec_failed_o) ahead_q[verified_line_i] <= 1'b0;
      if ((rref_up || wref_up) && is_hit) begin
        spec_q <= spec_q & ~hit;
        ahead_q <= ahead_q & ~hit;
      end
      if (spec_end) ahead_q <= '0;
      if (take_line) begin
        dead_q[line] <= 1'b0;
        free_q[line] <= 1'b0;
        orphan_q[line] <= 1'b0;
        out_q[line] <= IsOutput[take_name.region];
        plain_q[line] <= IsPlain[take_name.region];
        ask_q[line] <= HasVersions[take_name.region];
        fetch_q[line] <= take_spec || !side_wr;
        dirty_q[line] <= side_wr && !take_spec;
        whole_q[line] <= side_wr && is_out && !take_spec;
        spec_q[line] <= take_spec;
        ahead_q[line] <= take_spec;
        all_q[line] <= 1'b0;
        full_q[line] <= 1'b0;
        want_q[line] <= 1'b0;
        evict_q[line] <= 1'b0;
        last_q[line] <= 1'b0;
        chunk_q[line] <= take_name.chunk;
        region_q[line] <= take_name.region;
      end
      if (known_i) begin
        ask_q[known_line_i] <= 1'b0;
        last_q[known_line_i] <= known_last_i;
        if (known_last_i) begin
          // nothing was written yet: writes wait for this answer
          dirty_q[known_line_i] <= 1'b0;
          evict_q[known_line_i] <= 1'b0;
        end
        if (known_zero_i || known_dead_i) fetch_q[known_line_i] <= 1'b0;
        if (known_zero_i) begin
          whole_q[known_line_i] <= 1'b1;
          want_q[known_line_i] <= 1'b0;
        end
      end
      if (wsg_done_i && wsg_full_i) begin
        full_q[wsg_line_i] <= 1'b1;
        whole_q[wsg_line_i] <= 1'b1;
      end
      if (sealed_i) begin
        seal_q[sealed_line_i] <= 1'b0;
        evict_q[sealed_line_i] <= 1'b0;
        last_q[sealed_line_i] <= sealed_last_i;
        if (full_q[sealed_line_i]) all_q[sealed_line_i] <= 1'b1;
        full_q[sealed_line_i] <= 1'b0;
      end
      if (unsealed_i) seal_q[unsealed_line_i] <= 1'b0;
      // what a frozen region leaves behind
      if (dead_q != '0) begin
        for (int i = 0; i < int'(NLines); i++) begin
          if (dead_q[i] && !take_one[i]) begin
            orphan_q[i] <= 1'b1;
            dirty_q[i] <= 1'b0;
            whole_q[i] <= 1'b0;
            want_q[i] <= 1'b0;
            evict_q[i] <= 1'b0;
            ahead_q[i] <= 1'b0;
          end
        end
      end
      // reference counts
      if (!(rref_up && rsp_done_i && line == rsp_line_i)) begin
        if (rref_up) begin
          rrefs_q[line] <= rrefs_q[line] + 1'b1;
          rheld_q[line] <= 1'b1;
        end
        if (rsp_done_i) begin
          rrefs_q[rsp_line_i] <= rrefs_q[rsp_line_i] - 1'b1;
          rheld_q[rsp_line_i] <= rrefs_q[rsp_line_i] != 7'd1;
        end
      end
      if (!(wref_up && wsg_done_i && line == wsg_line_i)) begin
        if (wref_up) begin
          wrefs_q[line] <= wrefs_q[line] + 1'b1;
          wheld_q[line] <= 1'b1;
        end
        if (wsg_done_i) begin
          wrefs_q[wsg_line_i] <= wrefs_q[wsg_line_i] - 1'b1;
          wheld_q[wsg_line_i] <= wrefs_q[wsg_line_i] != 2'd1;
        end
      end
      if (drop_i) begin
        for (int i = 0; i < int'(NLines); i++) begin
          for (int unsigned r = 0; r < NRegions; r++) begin
            if (drop_mask_i[r] && region_q[i] == reg_idx_t'(r)) orphan_q[i] <= 1'b1;
          end
        end
      end
    end
  end
endmodule
`default_nettype wire
