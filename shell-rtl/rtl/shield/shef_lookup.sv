// Directory of the lines: says for each segment which line holds its chunk, takes a line for a chunk that has none, and keeps
// the state of every line from its taking to its release.
//
// Handshake: read and write segments in (valid/ready); a read leaves to the response queue (rsp_*, must be ready at all times
// when rsp_room_i is high), with its line taken also to the fetch queue (fetch_*, never full by size); a write leaves to
// the write acceptor (wsg_*). One decision a cycle, combinational on the registered segment; reads and writes take turns when
// both wait, and neither waits for the other. A chunk of an `output` region that is not on chip costs one cycle more: its
// written bit is asked for.
//
// Life of a line: FREE -> FETCH -> CLEAN (reads); FREE -> GATHER -> SEAL -> CLEAN (writes). A chunk is in one line at most.
// Reads hold at most all lines of a class but two, and so do writes, so that neither can starve the other.
`default_nettype none
module shef_lookup
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter int unsigned BigLines = 8,
    parameter int unsigned SmallLines = 32,
    parameter logic [MAX_REGIONS-1:0] IsOutput = '0,  // mode of each region
    parameter logic [MAX_REGIONS-1:0] IsBig = '0,     // its chunks go to the 4 KiB lines
    parameter id_tab_t RegionId = '0,
    localparam int unsigned NLines = BigLines + SmallLines
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire               stop_i,      // answer everything with an error, take no line
    input  wire               hold_rd_i,   // a command runs: no reads
    input  wire               hold_wr_i,   // no writes

    input  wire  seg_t        rd_seg_i,
    input  wire               rd_valid_i,
    output logic              rd_ready_o,
    input  wire  seg_t        wr_seg_i,
    input  wire               wr_valid_i,
    output logic              wr_ready_o,

    output logic              rsp_valid_o,
    input  wire               rsp_room_i,
    output lseg_t             lseg_o,      // for rsp and wsg
    output logic              wsg_valid_o,
    input  wire               wsg_room_i,
    output logic              fetch_valid_o,
    output line_t             fetch_line_o,
    output reg_idx_t          fetch_region_o,
    output chunk_idx_t        fetch_chunk_o,
    output logic              new_valid_o,   // a line was taken for writing: forget its bytes
    output line_t             new_line_o,

    output logic              ask_valid_o,   // written map
    input  wire               ask_ready_i,
    output reg_idx_t          ask_region_o,
    output chunk_idx_t        ask_chunk_o,
    input  wire               ask_bit_i,

    // events
    input  wire               rsp_done_i,    // a response has read its last beat
    input  wire  line_t       rsp_line_i,
    input  wire               wsg_done_i,    // a write segment has written its last beat
    input  wire  line_t       wsg_line_i,
    input  wire               wsg_full_i,    // and all bytes of the line are there
    input  wire               verified_i,
    input  wire  line_t       verified_line_i,
    input  wire               sealed_i,      // sealed and acknowledged
    input  wire  line_t       sealed_line_i,
    input  wire               flush_i,       // seal incomplete lines too
    input  wire               drop_i,        // forget the lines of these regions (pulse; nothing is in flight)
    input  wire  [NRegions-1:0] drop_mask_i,

    // lines to be sealed, in any order
    output logic              seal_valid_o,
    input  wire               seal_ready_i,
    output line_t             seal_line_o,
    output reg_idx_t          seal_region_o,
    output chunk_idx_t        seal_chunk_o,

    output logic [NLines-1:0] readable_o,    // the line's bytes may be read by the accelerator
    output logic [NLines-1:0] fetched_o,     // all its bytes count, whatever its byte marks say
    output logic              fetching_o,    // some line waits for its chunk
    output logic              dirty_o,       // some line is gathered or being sealed
    output logic              write_held_o,  // a write segment holds a line

    output logic              rd_refusal_valid_o,   // record a refused read; held back by rd_refusal_room_i
    input  wire               rd_refusal_room_i,
    output refusal_t          refusal_o,     // also with wsg_valid_o; kind NONE: nothing to record
    output logic [NLines-1:0] full_o         // gathered to the last byte
);
  typedef logic [NLines-1:0] lines_t;
  localparam lines_t BIG_MASK = lines_t'((64'd1 << BigLines) - 64'd1);
  localparam int unsigned RESERVE = 2;
  localparam int unsigned EVICT_WAIT = 256;  // cycles a write waits for a read to let go of a line

  // ---- state ----
  lines_t free_q, fetch_q, gather_q, seal_q, clean_q;  // one of them is set for each line
  lines_t orphan_q;   // dropped, but a response may still read it
  lines_t fetched_q;
  lines_t full_q;     // gathered to the last byte
  lines_t rheld_q, wheld_q;
  logic [6:0] rrefs_q[NLines];
  logic [1:0] wrefs_q[NLines];
  chunk_idx_t chunk_q[NLines];
  reg_idx_t region_q[NLines];
  line_t ptr_q[2];  // where the search for a victim starts, per class

  assign readable_o = gather_q | seal_q | clean_q;
  assign fetched_o = fetched_q;
  assign full_o = full_q;
  assign fetching_o = fetch_q != '0;
  assign dirty_o = (gather_q | seal_q) != '0;
  assign write_held_o = wheld_q != '0;

  function automatic line_t index_of(input lines_t x);
    line_t n;
    n = '0;
    for (int i = 0; i < int'(NLines); i++) if (x[i]) n = n | line_t'(i);
    return n;
  endfunction

  // ---- which side is looked at ----
  logic turn_q;  // 1: writes first
  logic side_wr, side_valid;
  logic rd_want, wr_want;
  seg_t seg;

  assign rd_want = rd_valid_i && rsp_room_i && rd_refusal_room_i && (!hold_rd_i || stop_i);
  assign wr_want = wr_valid_i && wsg_room_i && (!hold_wr_i || stop_i);
  assign side_wr = wr_want && (!rd_want || turn_q);
  assign side_valid = rd_want || wr_want;

  // ---- decision ----
  lines_t match, hit, class_mask, avail, above, pick, keep;
  logic is_hit, is_out, class_big, bit_known, bit_set, can_take, take_line, fire, refused;
  logic ask_rd_q, ask_wr_q;  // the written bit was asked for in the last cycle, for this side
  logic ask_bit_rd_q, ask_bit_wr_q, have_rd_q, have_wr_q;
  logic need_ask, want_evict;
  line_t line;
  refuse_kind_e kind;
  logic [6:0] held;
  logic turned_away;

  always_comb begin
    seg = side_wr ? wr_seg_i : rd_seg_i;
    match = '0;
    hit = '0;
    is_out = IsOutput[seg.region];
    class_big = IsBig[seg.region];
    class_mask = class_big ? BIG_MASK : ~BIG_MASK;
    avail = '0;
    above = '0;
    pick = '0;
    keep = '0;
    held = '0;
    can_take = 1'b0;
    is_hit = 1'b0;
    line = '0;
    kind = seg.refuse;
    take_line = 1'b0;
    fire = 1'b0;
    refused = 1'b0;
    turned_away = 1'b0;
    need_ask = 1'b0;
    want_evict = 1'b0;
    bit_known = side_wr ? (ask_wr_q || have_wr_q) : (ask_rd_q || have_rd_q);
    bit_set = side_wr ? (have_wr_q ? ask_bit_wr_q : ask_bit_i) : (have_rd_q ? ask_bit_rd_q : ask_bit_i);
    if (side_valid) begin
      if (stop_i || seg.refuse != REFUSE_NONE) begin
        fire = 1'b1;
        refused = 1'b1;
        turned_away = !stop_i;
      end else begin
        for (int i = 0; i < int'(NLines); i++) begin
          match[i] = (chunk_q[i] == seg.chunk) && (region_q[i] == seg.region);
        end
        hit = match & ~free_q & ~orphan_q;
        is_hit = hit != '0;
        if (is_hit) begin
          line = index_of(hit);
          fire = 1'b1;
          if (side_wr && (hit & gather_q) == '0) begin
            kind = REFUSE_SECOND_WRITE;
            refused = 1'b1;
            turned_away = 1'b1;
          end
        end else if (is_out && !bit_known) begin
          need_ask = 1'b1;
        end else if (is_out && side_wr == bit_set) begin
          kind = side_wr ? REFUSE_SECOND_WRITE : REFUSE_NOT_WRITTEN;
          fire = 1'b1;
          refused = 1'b1;
          turned_away = 1'b1;
        end else begin
          // a line must be taken: a free one or the next clean one that nobody reads
          avail = class_mask & (free_q | (clean_q & ~rheld_q));
          keep = class_mask & (side_wr ? (gather_q | seal_q) : (fetch_q | (rheld_q & ~gather_q & ~seal_q)));
          held = 7'($countones(keep));
          can_take = avail != '0 && held + 7'(RESERVE) < 7'(class_big ? BigLines : SmallLines);
          above = avail & ~((lines_t'(1) << ptr_q[class_big]) - lines_t'(1));
          pick = (above != '0) ? (above & (~above + 1'b1)) : (avail & (~avail + 1'b1));
          line = index_of(pick);
          take_line = can_take;
          fire = can_take;
          want_evict = side_wr && !can_take;
        end
      end
    end
  end

  assign rd_ready_o = fire && !side_wr;
  assign wr_ready_o = fire && side_wr;
  assign rsp_valid_o = fire && !side_wr;
  assign wsg_valid_o = fire && side_wr;
  assign fetch_valid_o = take_line && !side_wr;
  assign fetch_line_o = line;
  assign fetch_region_o = seg.region;
  assign fetch_chunk_o = seg.chunk;
  assign new_valid_o = take_line && side_wr;
  assign new_line_o = line;
  assign ask_valid_o = need_ask;
  assign ask_region_o = seg.region;
  assign ask_chunk_o = seg.chunk;
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
  assign rd_refusal_valid_o = fire && !side_wr && refused && turned_away && (seg.first || !told_q);
  always_comb begin
    refusal_o.kind = (refused && turned_away) ? kind : REFUSE_NONE;
    refusal_o.region = (kind == REFUSE_RANGE || kind == REFUSE_BURST || kind == REFUSE_NOT_KEYED) ? 8'hff : RegionId[seg.region];
    refusal_o.addr = seg.addr;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) told_q <= 1'b0;
    else if (fire && !side_wr) told_q <= rd_refusal_valid_o || (told_q && !seg.first);
  end

  // ---- lines to seal ----
  lines_t ready_lines, idle_gather, seal_above, seal_pick;
  lines_t evict_class;
  logic [8:0] evict_age_q;
  logic evict_now;
  line_t seal_ptr_q;

  assign evict_class = class_mask;
  assign idle_gather = gather_q & ~wheld_q;
  // An incomplete line is closed early only when writes hold all the lines they may have, none is being sealed, or no
  // line came back from the reads for a while.
  assign evict_now = want_evict && (evict_class & seal_q) == '0 && (idle_gather & evict_class) != '0 &&
      (held + 7'(RESERVE) >= 7'(class_big ? BigLines : SmallLines) || evict_age_q == 9'(EVICT_WAIT));

  always_comb begin
    ready_lines = idle_gather & full_q;
    if (flush_i) ready_lines = idle_gather;
    if (ready_lines == '0 && evict_now) ready_lines = idle_gather & evict_class;
    seal_above = '0;
    seal_pick = '0;
    if (ready_lines != '0) begin
      seal_above = ready_lines & ~((lines_t'(1) << seal_ptr_q) - lines_t'(1));
      seal_pick = (seal_above != '0) ? (seal_above & (~seal_above + 1'b1)) : (ready_lines & (~ready_lines + 1'b1));
    end
  end
  // a segment that finds its line in this cycle keeps it open
  assign seal_valid_o = ready_lines != '0 && !stop_i && !(fire && side_wr && !refused && seal_line_o == line);
  assign seal_line_o = index_of(seal_pick);
  assign seal_region_o = region_q[seal_line_o];
  assign seal_chunk_o = chunk_q[seal_line_o];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      evict_age_q <= '0;
      seal_ptr_q <= '0;
    end else begin
      if (wr_ready_o || !wr_valid_i) evict_age_q <= '0;
      else if (want_evict && evict_age_q != 9'(EVICT_WAIT)) evict_age_q <= evict_age_q + 1'b1;
      if (seal_valid_o && seal_ready_i) seal_ptr_q <= (seal_line_o == line_t'(NLines - 1)) ? '0 : seal_line_o + 1'b1;
    end
  end

  // ---- updates ----
  logic rref_up, wref_up;
  assign rref_up = fire && !side_wr && !refused;
  assign wref_up = fire && side_wr && !refused;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      free_q <= '1;
      fetch_q <= '0;
      gather_q <= '0;
      seal_q <= '0;
      clean_q <= '0;
      orphan_q <= '0;
      fetched_q <= '0;
      full_q <= '0;
      rheld_q <= '0;
      wheld_q <= '0;
      ptr_q[0] <= line_t'(BigLines);
      ptr_q[1] <= '0;
      for (int i = 0; i < int'(NLines); i++) begin
        rrefs_q[i] <= '0;
        wrefs_q[i] <= '0;
        chunk_q[i] <= '0;
        region_q[i] <= '0;
      end
    end else begin
      if (take_line) begin
        free_q[line] <= 1'b0;
        clean_q[line] <= 1'b0;
        orphan_q[line] <= 1'b0;
        full_q[line] <= 1'b0;
        fetch_q[line] <= !side_wr;
        fetched_q[line] <= !side_wr;
        gather_q[line] <= side_wr;
        chunk_q[line] <= seg.chunk;
        region_q[line] <= seg.region;
        if (class_big) ptr_q[1] <= (line == line_t'(BigLines - 1)) ? '0 : line + 1'b1;
        else ptr_q[0] <= (line == line_t'(NLines - 1)) ? line_t'(BigLines) : line + 1'b1;
      end
      if (verified_i) begin
        fetch_q[verified_line_i] <= 1'b0;
        clean_q[verified_line_i] <= 1'b1;
      end
      if (seal_valid_o && seal_ready_i) begin
        gather_q[seal_line_o] <= 1'b0;
        seal_q[seal_line_o] <= 1'b1;
      end
      if (sealed_i) begin
        seal_q[sealed_line_i] <= 1'b0;
        clean_q[sealed_line_i] <= 1'b1;
      end
      if (wsg_done_i && wsg_full_i) full_q[wsg_line_i] <= 1'b1;
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
