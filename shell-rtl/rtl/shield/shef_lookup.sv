// Directory of the lines: finds the line of each segment's chunk, allocates a line on a miss, and
// tracks the state of every line until its release.
//
// Handshake: read and write segments in (valid/ready); a read leaves to the response queue (rsp_*,
// must be ready at all times when rsp_room_i is high), a write to the write acceptor (wsg_*). An
// allocated line also leaves to the fetch queue (fetch_*, never full by size); if its chunk has its
// own version, the version is requested in the same cycle (ver_ready_i).
// Three stages: an incoming segment is compared with all lines; the state of its line is reduced to
// a few bits; then the segment is decided. One decision a cycle; reads and writes take turns when
// both wait, and neither waits for the other. The effects of a decision on the segments behind it
// (the allocated line, and its old chunk) are forwarded to them. A chunk of an `output` region that
// is not on chip costs one cycle more, for the query of its written bit.
//
// Lines to allocate, seal, fill or evict are chosen in advance, in registers, and checked again on
// use.
//
// A chunk is in one line at most. A line is whole when all its bytes are known; only then is it
// read or sealed. `output`: a line allocated by a write is whole at once, because bytes without a
// mark are zeros; it is closed when every byte was written, or early when nothing else makes room.
// `counted`, `tree`, `bypass`: writes may hit a line in any state but sealing. The version's
// response (known_*) makes the line of a never written chunk whole: zeros. Another incomplete line
// is fetched (merge_*) as soon as a read or its eviction needs it; the fetch fills bytes without a
// mark. A line whose every byte was written is sealed at once, others when room is short. At the
// last version no line becomes dirty.
//
// Reads hold all lines of a class but two at most, and so do dirty lines. Writes never wait for
// responses: two lines are not held by reads, and they are free, or become so through sealing,
// which needs nothing from here.
//
// Prefetch: when reads of a region (not `output`) go from chunk to chunk, the next chunks are
// allocated and fetched in otherwise idle cycles, up to Prefetch[region] ahead and all lines of the
// class but three. A prefetched line is not a victim until it was read, or the stream ended: at a
// read elsewhere, a write to the region, a write that finds no line, or a flush. A prefetch that
// fails before its chunk is requested is dropped (spec_failed_o) and fetched again on request.
`default_nettype none
module shef_lookup
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_line_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter int unsigned BigLines = 8,
    parameter int unsigned SmallLines = 32,
    // bits that distinguish the chunks of a region
    parameter int unsigned ChunkW = CHUNK_INDEX_W,
    parameter logic [MAX_REGIONS-1:0] IsOutput = '0,    // mode of each region
    parameter logic [MAX_REGIONS-1:0] HasVersions = '0, // counted, tree
    parameter logic [MAX_REGIONS-1:0] IsTree = '0,      // its versions can be queried at any time
    parameter logic [MAX_REGIONS-1:0] IsPlain = '0,     // bypass
    parameter logic [MAX_REGIONS-1:0] IsBig = '0,       // its chunks go to the 4 KiB lines
    parameter id_tab_t RegionId = '0,
    parameter logic [MAX_REGIONS-1:0][3:0] Prefetch = '0,                   // chunks to prefetch
    parameter logic [MAX_REGIONS-1:0][CHUNK_INDEX_W-1:0] NumChunks = '0,
    localparam int unsigned NLines = BigLines + SmallLines
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire               stop_i,      // answer everything with an error, allocate no line
    input  wire               hold_rd_i,   // a command runs: no reads from the next cycle on
    input  wire               hold_wr_i,   // no writes
    // excluded regions: answered with an error, their lines are lost
    input  wire  [MAX_REGIONS-1:0] frozen_i,

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
    output seg_t              seg_o,       // the decided segment
    output logic              wsg_valid_o,
    input  wire               wsg_room_i,
    output logic              fetch_valid_o,
    output line_t             fetch_line_o,
    output logic              fetch_write_o, // allocated by a write: only its version is requested
    output logic              ver_valid_o,   // request the version; with fetch_valid_o
    input  wire               ver_ready_i,
    output logic              new_valid_o,   // reset the line's byte marks
    output line_t             new_line_o,
    output logic              taken_o,       // a line was allocated
    output logic              short_o,       // a segment waits for a line
    output logic              spec_taken_o,  // a chunk is prefetched
    output logic              spec_used_o,   // and requested
    output logic              spec_failed_o, // with failed_i: it was not requested

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
    input  wire               known_i,       // the version of the line's chunk arrived
    input  wire  line_t       known_line_i,
    input  wire               known_zero_i,  // it was never written
    input  wire               known_last_i,  // it cannot be raised
    input  wire               known_dead_i,  // its region is frozen: no version comes
    input  wire               verified_i,
    input  wire  line_t       verified_line_i,
    // the chunk did not verify: its region is frozen or everything stops
    input  wire               failed_i,
    input  wire               filled_i,      // as verified, bypass
    input  wire  line_t       filled_line_i,
    input  wire               sealed_i,      // sealed and acknowledged
    input  wire  line_t       sealed_line_i,
    input  wire               sealed_last_i, // under the last version
    input  wire               unsealed_i,    // it will not be: its region is frozen
    input  wire  line_t       unsealed_line_i,
    input  wire               flush_i,       // seal incomplete lines too
    // drop the lines of these regions (pulse; nothing is in flight)
    input  wire               drop_i,
    input  wire  [NRegions-1:0] drop_mask_i,

    // lines to be sealed, in any order; the queue behind has room for all
    output logic              seal_valid_o,
    output line_t             seal_line_o,
    output reg_idx_t          seal_region_o,
    output chunk_idx_t        seal_chunk_o,

    output logic [NLines-1:0] readable_o,    // the line's bytes may be read by the accelerator
    output logic [NLines-1:0] fetched_o,     // all its bytes are valid, whatever its byte marks
    output logic [NLines-1:0] closed_o,      // output: gathered to the last byte
    output logic [NLines-1:0] asked_o,       // its version is not yet known
    output logic [NLines-1:0] last_o,        // its version is the last one
    output logic [NLines-1:0] dead_o,        // its region is frozen: no reads or writes
    output logic              fetching_o,    // some line waits for its chunk
    output logic              dirty_o,       // some line is dirty or being sealed
    output logic              write_held_o,  // a write segment holds a line

    // record a refused read; held back by rd_refusal_room_i
    output logic              rd_refusal_valid_o,
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
  localparam lines_t CLASS[2] = '{~BIG_MASK, BIG_MASK};
  localparam int unsigned RESERVE = 2;
  localparam int unsigned SPEC_RESERVE = 3;
  // cycles a write waits for a read to release a line before an `output` line is closed: at least
  // the memory's time-out, so that only an accelerator that does not take R causes it
  localparam int unsigned EVICT_WAIT = 4096;
  localparam int unsigned LINES[2] = '{SmallLines, BigLines};

  function automatic int unsigned less(input int unsigned a, input int unsigned b);
    return (a > b) ? a - b : 0;
  endfunction
  function automatic lines_t one_hot(input line_t n);
    lines_t x;
    x = '0;
    for (int i = 0; i < int'(NLines); i++) x[i] = n == line_t'(i);
    return x;
  endfunction

  // ---- state of the lines ----
  name_t name_q[NLines];
  line_status_t line_q[NLines];
  // what follows from the state, by line
  lines_t live;              // has a chunk, which segments find
  lines_t avail;             // may be allocated
  lines_t ahead, spec;       // spec: ahead or not
  lines_t dirty, evicted, seal;
  lines_t full, outs;        // outs: of an `output` region
  lines_t rheld, wheld;      // by reads, by writes
  lines_t fetching;

  always_comb begin
    for (int i = 0; i < int'(NLines); i++) begin
      ahead[i] = line_q[i].state == S_AHEAD;
      spec[i] = line_q[i].state == S_AHEAD || line_q[i].state == S_SPEC;
      dirty[i] = line_q[i].state == S_DIRTY || line_q[i].state == S_EVICT;
      evicted[i] = line_q[i].state == S_EVICT;
      seal[i] = line_q[i].state == S_SEAL;
      fetching[i] = line_q[i].request != R_NONE;
      full[i] = line_q[i].full;
      outs[i] = IsOutput[name_q[i].region];
      rheld[i] = line_q[i].reads != '0;
      wheld[i] = line_q[i].writes != '0;
      live[i] = line_q[i].state != S_FREE &&
          (line_q[i].name == N_LIVE || line_q[i].name == N_FROZEN);
      avail[i] = line_q[i].state == S_FREE || !(ahead[i] || dirty[i] || seal[i] || fetching[i] ||
          rheld[i] || wheld[i] || line_q[i].bytes == B_WANTED);
      readable_o[i] = line_q[i].bytes == B_WHOLE;
      fetched_o[i] = line_q[i].fetched;
      closed_o[i] = full[i] && outs[i];
      asked_o[i] = line_q[i].request == R_VERSION || line_q[i].request == R_BOTH;
      last_o[i] = line_q[i].last;
      dead_o[i] = line_q[i].name == N_FROZEN || line_q[i].name == N_DEAD;
    end
  end
  assign fetching_o = fetching != '0;
  assign dirty_o = (dirty | seal) != '0;
  assign write_held_o = wheld != '0;

  // ---- the decision, as the stages before it see it ----
  // allocators of a line: a read, a write, a prefetched chunk
  localparam int unsigned RD = 0;
  localparam int unsigned WR = 1;
  localparam int unsigned SPEC = 2;
  logic [1:0] fire;          // a segment of that side leaves
  logic [1:0] leaves;        // would leave without an allocation, if it is decided
  logic [1:0] takes;         // would allocate one
  logic [1:0] hit_up;        // into a line that has its chunk
  logic [1:0] ref_up;        // into a line
  logic [2:0] took;          // a line is allocated
  logic [1:0] take_class;
  lines_t take_one, hit_one, hit_rd, hit_wr;
  lines_t cand[2];         // the next line to allocate, of each class
  line_t cand_line[2];
  logic [1:0] cand_ok;
  line_t take_idx;
  name_t taker[3];
  logic [1:0] short_q;       // a segment of that side found no line
  lines_t seal_cand_q;       // may be on its way to memory after this cycle

  // ---- the stages ----
  typedef struct packed {
    logic hit;     // a line has its chunk
    logic dirty;
    logic seal;    // or may be from now on
    logic last;
    logic held;    // by reads
    line_t line;
    logic bad;     // its segment is refused, whatever its line
    logic out;     // `output`
  } look_t;
  typedef struct packed {
    logic sure;    // refused
    logic enter;   // goes into its line at once: a held one (read), a dirty one (write)
    logic fresh;   // goes into its line when one more of these fits
    logic miss;    // no line has its chunk
    logic worn;    // the last version was used
    line_t line;
  } plan_t;

  function automatic plan_t plan_of(input logic write, input look_t l);
    plan_t p;
    p.worn = write && !l.bad && l.hit && !l.dirty && !l.out && !l.seal && l.last;
    p.sure = l.bad || p.worn || (write && l.hit && !l.dirty && l.out);
    p.enter = !l.bad && l.hit && (write ? l.dirty : l.held);
    p.fresh = !l.bad && l.hit && (write ? (!l.dirty && !l.out && !l.seal && !l.last) : !l.held);
    p.miss = !l.bad && !l.hit;
    p.line = l.line;
    return p;
  endfunction

  logic [1:0] in_valid, in_ready, b_valid_q, d_valid_q, d_load;
  seg_t in_seg[2];
  seg_t b_seg_q[2];
  seg_t d_seg_q[2];
  name_t in_name[2];
  name_t b_name[2];
  name_t d_name[2];
  lines_t b_match_q[2];
  lines_t d_match_q[2];
  lines_t d_line[2];         // one-hot
  look_t look_q[2];
  plan_t plan[2];
  logic [1:0] d_cand[2];     // the line of that side is the candidate of that class
  logic spec_load;
  name_t spec_next, spec_name;
  lines_t match[2];

  assign in_valid = {wr_valid_i, rd_valid_i};
  assign in_seg[RD] = rd_seg_i;
  assign in_seg[WR] = wr_seg_i;
  assign d_load = ~d_valid_q | fire;
  assign in_ready = ~b_valid_q | d_load;
  assign rd_ready_o = in_ready[RD];
  assign wr_ready_o = in_ready[WR];
  assign held_o = (b_valid_q | d_valid_q) != '0;
  assign taker[RD] = d_name[RD];
  assign taker[WR] = d_name[WR];
  assign taker[SPEC] = spec_name;

  function automatic look_t look_at(input lines_t l, input line_t n, input logic is_bad,
      input logic is_out);
    look_t k;
    k.hit = l != '0;
    k.dirty = (l & dirty & ~seal_cand_q) != '0;
    k.seal = (l & (seal | seal_cand_q)) != '0;
    k.last = (l & last_o) != '0;
    k.held = (l & rheld) != '0;
    k.line = n;
    k.bad = is_bad;
    k.out = is_out;
    return k;
  endfunction

  // a line is allocated for this chunk
  function automatic logic allocated(input name_t n);
    logic [2:0] same;
    for (int t = 0; t < 3; t++) same[t] = n == taker[t];
    return (took & same) != '0;
  endfunction

  // ---- first stage: compare with all lines ----
  logic [1:0] new_in, new_b, new_d;   // the allocated line gets its chunk
  for (genvar d = 0; d < 2; d++) begin : g_compare
    always_comb begin
      // chunks to prefetch are compared in cycles without an incoming read
      in_name[d] = (d == RD && !in_valid[RD]) ? spec_next
          : '{region: in_seg[d].region, chunk: in_seg[d].chunk[ChunkW-1:0]};
      match[d] = '0;
      if (in_valid[d] || (d == RD && spec_load)) begin
        for (int i = 0; i < int'(NLines); i++) match[d][i] = name_q[i] == in_name[d];
      end
      new_in[d] = allocated(in_name[d]);
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        b_valid_q[d] <= 1'b0;
        b_seg_q[d] <= '0;
        b_match_q[d] <= '0;
      end else begin
        if (in_ready[d]) begin
          b_valid_q[d] <= in_valid[d];
          b_seg_q[d] <= in_seg[d];
        end
        b_match_q[d] <= ((in_ready[d] ? match[d] : b_match_q[d]) & ~take_one) |
            ((in_ready[d] ? new_in[d] : new_b[d]) ? take_one : '0);
      end
    end
  end

  // ---- second stage: look up the state of its line, and again while it waits behind ----
  for (genvar d = 0; d < 2; d++) begin : g_look
    logic [1:0] b_cand;
    lines_t b_line;
    look_t b_look, d_look;
    always_comb begin
      b_name[d] = '{region: b_seg_q[d].region, chunk: b_seg_q[d].chunk[ChunkW-1:0]};
      new_b[d] = allocated(b_name[d]);
      new_d[d] = allocated(d_name[d]);
      b_line = b_match_q[d] & live;
      for (int c = 0; c < 2; c++) b_cand[c] = (b_line & cand[c]) != '0;
      b_look = look_at(b_line, index_of(64'(b_line)), b_seg_q[d].refuse != REFUSE_NONE ||
          frozen_i[b_seg_q[d].region], IsOutput[b_seg_q[d].region]);
      d_look = look_at(d_line[d], look_q[d].line, look_q[d].bad ||
          frozen_i[d_seg_q[d].region], look_q[d].out);
      // the line is taken from it, or allocated for its chunk
      if ((take_class & b_cand) != '0) b_look.hit = 1'b0;
      if ((take_class & d_cand[d]) != '0) d_look.hit = 1'b0;
      if (new_b[d]) begin
        b_look.hit = 1'b1;
        b_look.line = take_idx;
      end
      if (new_d[d]) begin
        d_look.hit = 1'b1;
        d_look.line = take_idx;
      end
      // effects of the previous segment on the same line
      if (b_name[d] == d_name[d] && ref_up[d]) begin
        if (d == RD) b_look.held = 1'b1;
        else begin
          b_look.dirty = 1'b1;
          b_look.seal = 1'b0;
        end
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        d_valid_q[d] <= 1'b0;
        d_seg_q[d] <= '0;
        d_match_q[d] <= '0;
        look_q[d] <= '0;
      end else begin
        if (d_load[d]) begin
          d_valid_q[d] <= b_valid_q[d];
          d_seg_q[d] <= b_seg_q[d];
        end
        d_match_q[d] <= ((d_load[d] ? b_match_q[d] : d_match_q[d]) & ~take_one) |
            ((d_load[d] ? new_b[d] : new_d[d]) ? take_one : '0);
        look_q[d] <= d_load[d] ? b_look : d_look;
      end
    end
  end

  // ---- the next chunk to prefetch ----
  logic stream, stream_end, spec_stop, spec_valid, spec_go, spec_big, take_spec;
  logic [1:0] spec_room;

  shef_prefetch #(
      .NLines(NLines), .ChunkW(ChunkW), .IsOutput(IsOutput), .IsBig(IsBig), .Prefetch(Prefetch),
      .NumChunks(NumChunks)
  ) u_prefetch (
      .clk_i, .rst_ni, .clr_i, .stop_i(spec_stop), .lost_i(failed_i || drop_i), .frozen_i,
      .rd_i(ref_up[RD]), .rd_region_i(d_seg_q[RD].region), .rd_chunk_i(d_name[RD].chunk),
      .wr_i(ref_up[WR]), .wr_region_i(d_seg_q[WR].region),
      .rd_idle_i(!in_valid[RD]), .load_o(spec_load), .next_region_o(spec_next.region),
      .next_chunk_o(spec_next.chunk),
      .match_i(match[RD]), .live_i(live),
      .valid_o(spec_valid), .go_o(spec_go), .region_o(spec_name.region), .chunk_o(spec_name.chunk),
      .take_i(take_spec),
      .room_i(spec_room), .took_i(took), .taker_i({d_name[WR], d_name[RD]}), .take_one_i(take_one),
      .stream_o(stream), .end_o(stream_end)
  );
  assign spec_stop = short_q[WR] || flush_i || stop_i || hold_rd_i;
  assign spec_big = IsBig[spec_name.region];

  // ---- third stage: which side is decided ----
  logic turn_q;  // 1: writes first
  logic rd_want, wr_want, side_wr, side_valid, spec_turn;
  logic [1:0] go, run_q;
  seg_t seg;

  always_comb begin
    for (int d = 0; d < 2; d++) begin
      d_name[d] = '{region: d_seg_q[d].region, chunk: d_seg_q[d].chunk[ChunkW-1:0]};
      d_line[d] = d_match_q[d] & live;
      for (int c = 0; c < 2; c++) d_cand[d][c] = (d_line[d] & cand[c]) != '0;
    end
  end
  // held back while a command runs, and for a cycle when lines lost their names: look up again
  assign rd_want = d_valid_q[RD] && rsp_room_i && rd_refusal_room_i && (run_q[RD] || stop_i);
  assign wr_want = d_valid_q[WR] && wsg_room_i && (run_q[WR] || stop_i);
  assign side_wr = wr_want && (!rd_want || turn_q);
  assign side_valid = rd_want || wr_want;
  assign go[RD] = rd_want && !(wr_want && turn_q) && !failed_i;
  assign go[WR] = wr_want && (!rd_want || turn_q) && !failed_i;
  assign spec_turn = spec_valid && !side_valid;
  assign seg = d_seg_q[side_wr];
  always_comb begin
    seg_o = seg;
    if (spec_turn) begin
      seg_o.region = spec_name.region;
      seg_o.chunk = chunk_idx_t'(spec_name.chunk);
    end
  end

  // ---- available lines ----
  logic [1:0] room_rd, room_wr, big;
  logic is_held;             // by reads, now

  assign big = {IsBig[d_seg_q[WR].region], IsBig[d_seg_q[RD].region]};
  assign hit_rd = hit_up[RD] ? d_line[RD] : '0;
  assign hit_wr = hit_up[WR] ? d_line[WR] : '0;
  assign hit_one = hit_rd | hit_wr;
  assign take_one = (take_class[0] ? cand[0] : '0) | (take_class[1] ? cand[1] : '0);
  for (genvar c = 0; c < 2; c++) begin : g_class
    shef_victim #(.N(NLines)) u_victim (
        .clk_i, .rst_ni, .clr_i, .avail_i(avail & CLASS[c]), .hit_i(hit_one), .hit_up_i(hit_up),
        .line_i({d_line[WR], d_line[RD]}),
        .cand_hit_i({d_cand[WR][c], d_cand[RD][c]}), .take_i(take_class[c]), .ok_o(cand_ok[c]),
        .one_o(cand[c]), .line_o(cand_line[c])
    );
    shef_tally #(.N(NLines), .Limit(less(LINES[c], RESERVE))) u_rheld (
        .clk_i, .rst_ni, .clr_i, .x_i(rheld & CLASS[c]),
        .up_i(ref_up[RD] && big[RD] == (c == 1) && !(hit_up[RD] && is_held)), .room_o(room_rd[c])
    );
    shef_tally #(.N(NLines), .Limit(less(LINES[c], RESERVE))) u_dirty (
        .clk_i, .rst_ni, .clr_i, .x_i((dirty | seal) & CLASS[c]),
        .up_i(ref_up[WR] && big[WR] == (c == 1) && !plan[WR].enter), .room_o(room_wr[c])
    );
    shef_tally #(.N(NLines), .Limit(less(LINES[c], SPEC_RESERVE))) u_ahead (
        .clk_i, .rst_ni, .clr_i, .x_i(ahead & CLASS[c]), .up_i(take_spec && spec_big == (c == 1)),
        .room_o(spec_room[c])
    );
  end

  // ---- third stage: the decision ----
  logic [1:0] counter, need_ask, short_of_lines, may, unfit, room;
  // the written bit was requested in the last cycle; it is kept here
  logic [1:0] asked_q, ask_bit_q, have_q;
  logic [1:0] bit_known, bit_wrong;
  logic [1:0] may_class[3];
  logic [1:0] enters;
  logic turned_away, new_marks, spec_counter;
  refuse_kind_e kind;

  always_comb begin
    for (int unsigned d = 0; d < 2; d++) begin
      plan[d] = plan_of(d == WR, look_q[d]);
      counter[d] = HasVersions[d_seg_q[d].region] && !IsTree[d_seg_q[d].region];
      // a chunk of an `output` region is read when it was written, and written when it was not
      bit_known[d] = asked_q[d] || have_q[d];
      bit_wrong[d] = (have_q[d] ? ask_bit_q[d] : ask_bit_i) == (d == WR);
      unfit[d] = plan[d].miss && look_q[d].out && bit_known[d] && bit_wrong[d];
      may[d] = !stop_i && plan[d].miss && (!look_q[d].out || (bit_known[d] && !bit_wrong[d]));
      room[d] = (d == WR) ? room_wr[big[d]] : room_rd[big[d]];
      for (int c = 0; c < 2; c++)
        may_class[d][c] = may[d] && big[d] == (c == 1) && cand_ok[c] && room[d] &&
            (!counter[d] || ver_ready_i);
      takes[d] = may_class[d] != '0;
      enters[d] = !stop_i && (plan[d].enter || (plan[d].fresh && room[d]));
      leaves[d] = stop_i || plan[d].sure || enters[d] || unfit[d];
      took[d] = go[d] && takes[d];
      fire[d] = go[d] && (takes[d] || leaves[d]);
      hit_up[d] = go[d] && enters[d];
      ref_up[d] = go[d] && (takes[d] || enters[d]);
      need_ask[d] = go[d] && !stop_i && plan[d].miss && look_q[d].out && !bit_known[d];
    end
    short_of_lines[RD] = go[RD] && may[RD] && !cand_ok[big[RD]];
    short_of_lines[WR] = go[WR] &&
        ((!stop_i && plan[WR].fresh && !room[WR]) || (may[WR] && (!cand_ok[big[WR]] || !room[WR])));
    spec_counter = HasVersions[spec_name.region] && !IsTree[spec_name.region];
    for (int c = 0; c < 2; c++) begin
      may_class[SPEC][c] = spec_go && spec_valid && !failed_i && stream && !spec_stop &&
          spec_big == (c == 1) && cand_ok[c] && (!spec_counter || ver_ready_i);
      take_class[c] = (go[RD] && may_class[RD][c]) || (go[WR] && may_class[WR][c]) ||
          (!side_valid && may_class[SPEC][c]);
    end
    take_spec = !side_valid && may_class[SPEC] != '0;
    took[SPEC] = take_spec;
  end
  assign is_held = (d_line[RD] & rheld) != '0;

  logic taking, refused;
  line_t line;
  assign taking = take_class != '0;
  assign take_idx = take_class[1] ? cand_line[1] : cand_line[0];
  assign line = taking ? take_idx : plan[side_wr].line;
  assign refused = stop_i || plan[side_wr].sure || unfit[side_wr];
  assign rsp_valid_o = fire[RD];
  assign wsg_valid_o = fire[WR];
  assign fetch_valid_o = take_spec || took[RD] || (took[WR] && HasVersions[d_seg_q[WR].region]);
  assign fetch_line_o = line;
  assign fetch_write_o = side_wr && !take_spec;
  assign ver_valid_o = (take_spec && HasVersions[spec_name.region]) ||
      (took[RD] && HasVersions[d_seg_q[RD].region]) ||
      (took[WR] && HasVersions[d_seg_q[WR].region]);
  // a line that is whole through a fetch resets its marks when it becomes dirty
  assign new_marks = (d_line[WR] & fetched_o) != '0;
  assign new_valid_o = taking || (hit_up[WR] && !plan[WR].enter && new_marks);
  assign new_line_o = line;
  assign taken_o = took[RD] || took[WR];
  assign spec_taken_o = take_spec;
  assign spec_used_o = hit_up[RD] && (d_line[RD] & spec) != '0;
  assign spec_failed_o = failed_i && spec[verified_line_i];
  assign short_o = short_of_lines != '0;
  assign ask_valid_o = need_ask != '0;
  assign lseg_o = '{id: seg.id, err: refused, line: line, offset: seg.offset, size: seg.size,
      beats: seg.beats, last: seg.last};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      turn_q <= 1'b0;
      run_q <= '0;
      asked_q <= '0;
      have_q <= '0;
      ask_bit_q <= '0;
    end else begin
      run_q <= (failed_i || drop_i) ? '0 : {!hold_wr_i, !hold_rd_i};
      if (side_valid && !failed_i) turn_q <= !side_wr;
      // a response that is not used in its cycle is kept for the side's next lookup, once
      asked_q <= ask_ready_i ? need_ask : '0;
      for (int d = 0; d < 2; d++) if (asked_q[d]) ask_bit_q[d] <= ask_bit_i;
      have_q <= (have_q | asked_q) & {wr_want && go[RD], rd_want && go[WR]};
    end
  end

  // ---- refusals: one record for a burst ----
  // Those of writes are recorded where their data are discarded.
  logic told_q;
  always_comb begin
    kind = seg.refuse;
    if (!look_q[side_wr].bad)
      kind = !side_wr ? REFUSE_NOT_WRITTEN : plan[WR].worn ? REFUSE_EXHAUSTED : REFUSE_SECOND_WRITE;
    // a rejection by a fault or a frozen region is not a refusal
    turned_away = go[side_wr] && !stop_i &&
        (look_q[side_wr].bad ? seg.refuse != REFUSE_NONE : plan[side_wr].sure || unfit[side_wr]);
    refusal_o.kind = turned_away ? kind : REFUSE_NONE;
    refusal_o.region = (kind == REFUSE_RANGE || kind == REFUSE_BURST || kind == REFUSE_NOT_KEYED)
        ? 8'hff : RegionId[seg.region];
    refusal_o.addr = seg.addr;
  end
  assign rd_refusal_valid_o = fire[RD] && turned_away && (seg.first || !told_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) told_q <= 1'b0;
    else if (fire[RD]) told_q <= rd_refusal_valid_o || (told_q && !seg.first);
  end

  // ---- room: which dirty lines to evict ----
  logic [1:0] short_big_q;
  logic [12:0] evict_age_q;
  lines_t evict_one[2];

  for (genvar c = 0; c < 2; c++) begin : g_evict
    shef_evict #(.N(NLines), .Lines(LINES[c]), .Class(CLASS[c])) u_evict (
        .clk_i, .rst_ni, .clr_i, .dirty_i(dirty), .evict_i(evicted), .seal_i(seal),
        .full_i(full), .out_i(outs), .wheld_i(wheld),
        .needed_rd_i(short_q[RD] && short_big_q[RD] == (c == 1)),
        .needed_wr_i(short_q[WR] && short_big_q[WR] == (c == 1)),
        .room_i(room_wr[c]), .waited_i(evict_age_q == 13'(EVICT_WAIT)), .evict_o(evict_one[c])
    );
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      short_q <= '0;
      short_big_q <= '0;
      evict_age_q <= '0;
    end else begin
      for (int d = 0; d < 2; d++) begin
        if (!d_valid_q[d]) short_q[d] <= 1'b0;
        else if (go[d]) begin
          short_q[d] <= short_of_lines[d];
          short_big_q[d] <= big[d];
        end
      end
      if (!short_q[WR]) evict_age_q <= '0;
      else if (evict_age_q != 13'(EVICT_WAIT)) evict_age_q <= evict_age_q + 1'b1;
    end
  end

  // ---- lines to seal ----
  lines_t plain, sealable, seal_ok, sealable_q, seal_pick, seal_start, seal_prev_q;
  lines_t seal_one_q;
  line_t seal_line_q;
  always_comb for (int i = 0; i < int'(NLines); i++) plain[i] = IsPlain[name_q[i].region];
  assign sealable = dirty & ~wheld & ~fetching & (readable_o | plain) &
      (full | evicted | {NLines{flush_i}});
  assign seal_ok = seal_cand_q & sealable & ~{NLines{stop_i}};
  // a segment that finds its line in this cycle keeps it open
  assign seal_start = seal_ok & ~hit_wr;
  assign seal_valid_o = seal_one_q != '0;
  assign seal_line_o = seal_line_q;
  assign seal_region_o = name_q[seal_line_q].region;
  assign seal_chunk_o = chunk_idx_t'(name_q[seal_line_q].chunk);
  shef_pick #(.N(NLines)) u_seal_pick (
      .clk_i, .rst_ni, .clr_i, .x_i(sealable_q & ~seal_cand_q & ~seal_prev_q), .next_i(1'b1),
      .one_o(seal_pick)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      sealable_q <= '0;
      seal_cand_q <= '0;
      seal_prev_q <= '0;
      seal_one_q <= '0;
      seal_line_q <= '0;
    end else begin
      sealable_q <= sealable;
      seal_cand_q <= seal_pick;
      seal_prev_q <= seal_cand_q;
      seal_one_q <= seal_start;
      seal_line_q <= index_of(64'(seal_cand_q));
    end
  end

  // ---- lines to fill ----
  lines_t lacking, lacking_q, merge_pick, merge_cand_q, merge_start;
  logic merge_valid_q, merge_ready, merge_chosen_q, merge_shows_q;
  line_t merge_line_q;
  always_comb begin
    for (int i = 0; i < int'(NLines); i++)
      lacking[i] = line_q[i].request == R_NONE && !seal[i] && (line_q[i].bytes == B_WANTED ||
          (line_q[i].bytes == B_PART && dirty[i] && !plain[i] && (evicted[i] || flush_i)));
  end
  assign merge_ready = merge_chosen_q && (!merge_valid_q || merge_ready_i);
  assign merge_start = (merge_ready && !stop_i) ? merge_cand_q & lacking : '0;
  assign merge_valid_o = merge_valid_q;
  assign merge_line_o = merge_line_q;
  assign merge_region_o = name_q[merge_line_q].region;
  assign merge_chunk_o = chunk_idx_t'(name_q[merge_line_q].chunk);
  shef_pick #(.N(NLines)) u_merge_pick (
      .clk_i, .rst_ni, .clr_i, .x_i(lacking_q), .next_i(!merge_chosen_q && !merge_shows_q),
      .one_o(merge_pick)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      lacking_q <= '0;
      merge_cand_q <= '0;
      merge_chosen_q <= 1'b0;
      merge_shows_q <= 1'b0;
      merge_valid_q <= 1'b0;
      merge_line_q <= '0;
    end else begin
      lacking_q <= lacking;
      merge_shows_q <= merge_ready;
      if (merge_ready) merge_chosen_q <= 1'b0;
      else if (!merge_chosen_q && !merge_shows_q) begin
        merge_cand_q <= merge_pick;
        merge_chosen_q <= 1'b1;
      end
      if (!merge_valid_q || merge_ready_i) begin
        merge_valid_q <= merge_start != '0;
        merge_line_q <= index_of(64'(merge_cand_q));
      end
    end
  end

  // ---- updates ----
  lines_t known_one, verified_one, come;   // come: the chunk came from memory
  lines_t read_done, write_done, sealed_one, unsealed_one;
  assign known_one = known_i ? one_hot(known_line_i) : '0;
  assign verified_one = one_hot(verified_line_i);
  assign come = (verified_i ? verified_one : '0) | (filled_i ? one_hot(filled_line_i) : '0);
  assign sealed_one = sealed_i ? one_hot(sealed_line_i) : '0;
  assign unsealed_one = unsealed_i ? one_hot(unsealed_line_i) : '0;
  assign read_done = rsp_done_i ? one_hot(rsp_line_i) : '0;
  assign write_done = wsg_done_i ? one_hot(wsg_line_i) : '0;

  lines_t freezes, failed_one, zero_one, no_chunk_one, filled_one, written_one, settled_one;
  logic [MAX_REGIONS-1:0] drops;
  name_t take_name;
  line_status_t taken;
  line_status_t line_d[NLines];
  assign failed_one = failed_i ? verified_one : '0;
  assign zero_one = known_zero_i ? known_one : '0;
  assign no_chunk_one = (known_zero_i || known_dead_i) ? known_one : '0;
  assign filled_one = (wsg_done_i && wsg_full_i) ? write_done : '0;
  assign written_one = plan[WR].enter ? '0 : hit_wr;
  // at the last version nothing has been written yet: writes wait for this response
  assign settled_one = dead_o | (known_last_i ? known_one : '0);
  assign drops = drop_i ? MAX_REGIONS'(drop_mask_i) : '0;
  always_comb
    for (int i = 0; i < int'(NLines); i++)
      freezes[i] = frozen_i[name_q[i].region] && line_q[i].state != S_FREE;
  assign take_name = took[SPEC] ? spec_name : d_name[side_wr];

  // a line as it is allocated
  always_comb begin
    taken = '0;
    taken.state = took[WR] ? S_DIRTY : take_spec ? S_AHEAD : S_CLEAN;
    taken.request = line_request_e'({!took[WR], HasVersions[take_name.region]});
    if (took[WR] && look_q[WR].out) taken.bytes = B_WHOLE;
    taken.reads = 7'(took[RD]);
    taken.writes = 2'(took[WR]);
  end
  // and every other one
  always_comb begin
    for (int i = 0; i < int'(NLines); i++) begin
      line_d[i] = line_q[i];
      unique case (line_q[i].state)
        S_AHEAD, S_SPEC:
          if (failed_one[i]) line_d[i].state = S_FREE;
          else if (hit_one[i])
            line_d[i].state = (written_one[i] && !settled_one[i]) ? S_DIRTY : S_CLEAN;
          else if (stream_end || dead_o[i]) line_d[i].state = S_SPEC;
        S_CLEAN: if (written_one[i] && !settled_one[i]) line_d[i].state = S_DIRTY;
        S_DIRTY, S_EVICT:
          if (seal_start[i]) line_d[i].state = S_SEAL;
          else if (settled_one[i]) line_d[i].state = S_CLEAN;
          else if (hit_wr[i]) line_d[i].state = S_DIRTY;
          else if (evict_one[0][i] || evict_one[1][i]) line_d[i].state = S_EVICT;
        S_SEAL: if (sealed_one[i] || unsealed_one[i]) line_d[i].state = S_CLEAN;
        default: ;   // S_FREE
      endcase
      unique case (line_q[i].request)
        R_NONE: if (merge_start[i]) line_d[i].request = R_CHUNK;
        R_VERSION: if (known_one[i]) line_d[i].request = R_NONE;
        R_CHUNK: if (come[i] || failed_one[i] || no_chunk_one[i]) line_d[i].request = R_NONE;
        R_BOTH: if (known_one[i]) line_d[i].request = no_chunk_one[i] ? R_NONE : R_CHUNK;
      endcase
      if (dead_o[i]) line_d[i].bytes = B_PART;
      else if (come[i] || zero_one[i] || filled_one[i]) line_d[i].bytes = B_WHOLE;
      else if (hit_rd[i] && line_q[i].bytes == B_PART) line_d[i].bytes = B_WANTED;
      if (line_q[i].name != N_LIVE || drops[name_q[i].region])
        line_d[i].name = freezes[i] ? N_DEAD : N_LOST;
      else line_d[i].name = freezes[i] ? N_FROZEN : N_LIVE;
      if (come[i] || (sealed_one[i] && full[i])) line_d[i].fetched = 1'b1;
      if (filled_one[i]) line_d[i].full = 1'b1;
      if (known_one[i]) line_d[i].last = known_last_i;
      if (sealed_one[i]) begin
        line_d[i].full = 1'b0;
        line_d[i].last = sealed_last_i;
      end
      if (hit_rd[i] != read_done[i])
        line_d[i].reads = read_done[i] ? line_q[i].reads - 1'b1 : line_q[i].reads + 1'b1;
      if (hit_wr[i] != write_done[i])
        line_d[i].writes = write_done[i] ? line_q[i].writes - 1'b1 : line_q[i].writes + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < int'(NLines); i++) begin
      if (!rst_ni || clr_i) begin
        name_q[i] <= '0;
        line_q[i] <= '0;
      end else begin
        if (take_one[i]) name_q[i] <= take_name;
        line_q[i] <= take_one[i] ? taken : line_d[i];
      end
    end
  end
endmodule
`default_nettype wire
