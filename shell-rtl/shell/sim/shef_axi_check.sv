// Checks one AXI4 memory port of an accelerator against the rules of shef_check_pkg.
//
// It only observes. on_i low: it keeps no state and reports nothing. rst_ni is the reset of the
// accelerator; a reset ends a session. irq_i (level), done_i (pulse): no burst may be open. close_i
// (pulse): all open chunks of `output` regions are sealed; epoch_i (pulse): so are those of region
// epoch_region_i, which may then be written anew. Reports come out in the order in which they
// arise, out_valid_o/out_take_i, and lost_o counts those that found the queue full. A request is
// checked in the first cycle in which it is offered, and breaks at most one rule of content.
//
// Simulation only, and not in waves: all state belongs to one process, which assigns it as a program
// does.
// verilator tracing_off
// verilator lint_off BLKSEQ
// verilator lint_off UNUSEDSIGNAL
// (functions that look at some fields of a struct)
// verilator lint_off UNSIGNED
// (loops over no regions)
`default_nettype none
module shef_axi_check
  import shef_pkg::*;
  import shef_check_pkg::*;
#(
    parameter int unsigned Port = 0,
    parameter int unsigned NRegions = 0,
    parameter region_cfg_t [(NRegions == 0 ? 1 : NRegions)-1:0] Regions = '0,
    // by place in Regions: it is reached at this port
    parameter logic [MAX_REGIONS-1:0] Own = '1
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        on_i,
    input  wire logic [63:0] now_i,
    input  wire axi_req_t    req_i,
    input  wire axi_rsp_t    rsp_i,
    input  wire logic        irq_i,
    input  wire logic        done_i,
    input  wire logic        close_i,
    input  wire logic        epoch_i,
    input  wire logic [REGION_W-1:0] epoch_region_i,
    output logic             out_valid_o,
    output report_t          out_o,
    input  wire logic        out_take_i,
    output logic [31:0]      lost_o,
    output logic [63:0]      bursts_o
);
  localparam logic READ = 1'b0;
  localparam logic WRITE = 1'b1;
  localparam int unsigned Deep = 1024;  // bursts of a direction in flight
  localparam int unsigned DeepW = $clog2(Deep);
  localparam int unsigned Beats = 1024;  // W beats ahead of their AW
  localparam int unsigned BeatsW = $clog2(Beats);
  localparam int unsigned Slots = 64;  // open chunks
  localparam int unsigned Queue = 32;  // reports
  localparam int unsigned QueueW = $clog2(Queue);
  localparam int unsigned Patience = 1000;

  typedef logic [DeepW-1:0] place_t;

  // ---- regions ----
  // First word of each region in the map of closed chunks; the last is the size of the map.
  typedef logic [MAX_REGIONS:0][31:0] words_t;
  function automatic words_t first_words();
    words_t t;
    logic [31:0] at;
    at = '0;
    for (int unsigned k = 0; k <= MAX_REGIONS; k++) begin
      t[k] = at;
      if (k < NRegions && Regions[k < NRegions ? k : 0].mode == MODE_OUTPUT && Own[k[3:0]])
        at += 32'(((Regions[k < NRegions ? k : 0].size >>
            Regions[k < NRegions ? k : 0].chunk_log2) + 64'd31) >> 5);
    end
    return t;
  endfunction
  localparam words_t FIRST_WORD = first_words();
  localparam int unsigned MapWords = FIRST_WORD[MAX_REGIONS];
  localparam bit HasOutput = MapWords != 0;

  // The region of an address, and whether there is one.
  function automatic logic [4:0] region_of(input logic [63:0] at);
    for (int unsigned r = 0; r < NRegions; r++) begin
      if (Own[r] && Regions[r].mode != MODE_NONE && at >= Regions[r].base &&
          at - Regions[r].base < Regions[r].size) return {1'b1, 4'(r)};
    end
    return '0;
  endfunction

  // ---- reports ----
  report_t queue[Queue];
  logic [QueueW-1:0] queue_at;
  logic [QueueW:0] queued;
  logic [31:0] lost;

  function automatic void raise(input rule_e rule, input signal_e signal, input logic [63:0] was,
                                input logic [63:0] now, input logic has_burst, input burst_t burst,
                                input logic [2:0] word);
    if (queued < (QueueW + 1)'(Queue)) begin
      queue[queue_at + queued[QueueW-1:0]] = '{rule: rule, port: 3'(Port), cycle: now_i,
          signal: signal, word: word, was: was, now: now, has_burst: has_burst, burst: burst};
      queued = queued + 1'b1;
    end else lost = lost + 1;
  endfunction

  // ---- state ----
  logic live, held;  // on, and in reset, in the cycle before
  logic [2:0] reset_told;  // AW, AR, W were reported high in this reset
  logic blind;  // more in flight than this module can follow
  logic irq_was;

  // A direction's bursts, oldest first: a ring in which closed ones stay until they are the oldest.
  burst_t ring[2*Deep];
  logic [7:0] ring_id[2*Deep];
  logic [8:0] ring_beat[2*Deep];
  logic ring_open[2*Deep];
  logic ring_told[2*Deep];  // a report about it was made
  logic ring_sent[2*Deep];  // all its W beats were accepted
  place_t oldest[2];
  place_t free[2];
  logic [31:0] begun[2];

  // requests that wait for ready
  logic [1:0] offered, offer_told;
  burst_t offer[2];

  // W: beats that no burst has taken yet, the burst that takes them, and the beat that waits
  logic [AXI_STRB_W:0] ahead[Beats];  // strb, last
  logic [BeatsW-1:0] ahead_at;
  logic [BeatsW:0] aheads;
  place_t taker;
  logic num_told;
  logic w_offered;
  axi_w_t w_was;
  logic [9:0] alone;

  // responses that wait for ready
  logic b_offered, r_offered, b_known, r_known;
  axi_b_t b_was;
  axi_r_t r_was;
  place_t b_place, r_place;

  // Chunks of `output` regions. A word of the map holds 32 marks and the number of the epoch to which
  // they belong; loops over slots end at a variable, so that their bodies exist once.
  logic [63:0] closed[HasOutput ? MapWords : 1];
  logic [31:0] epoch[MAX_REGIONS];
  logic [Slots-1:0] slot_used;
  logic [3:0] slot_region[Slots];
  logic [CHUNK_INDEX_W-1:0] slot_chunk[Slots];
  logic [12:0] slot_bytes[Slots];
  logic [63:0] slot_age[Slots];
  burst_t slot_burst[Slots];
  logic [63:0] marks[Slots*64];
  logic [5:0] slot_last;  // used last
  logic [6:0] slots;  // used; all below slot_end
  logic [6:0] slot_end;
  logic [63:0] age;

  function automatic void forget();
    reset_told = '0;
    blind = 1'b0;
    irq_was = 1'b0;
    oldest[0] = '0;
    oldest[1] = '0;
    free[0] = '0;
    free[1] = '0;
    offered = '0;
    offer_told = '0;
    ahead_at = '0;
    aheads = '0;
    taker = '0;
    num_told = 1'b0;
    w_offered = 1'b0;
    alone = '0;
    b_offered = 1'b0;
    r_offered = 1'b0;
    b_known = 1'b0;
    r_known = 1'b0;
    slots = '0;
    slot_end = '0;
    slot_used = '0;
    age = '0;
    for (int r = 0; r < int'(MAX_REGIONS); r++) epoch[r] = epoch[r] + 1;
  endfunction

  function automatic logic [DeepW:0] index(input logic d, input place_t at);
    return {d, at};
  endfunction

  // ---- chunks of `output` regions ----
  function automatic int unsigned map_word(input logic [3:0] region,
                                           input logic [CHUNK_INDEX_W-1:0] chunk);
    for (int unsigned r = 0; r < NRegions; r++)
      if (region == 4'(r)) return FIRST_WORD[r] + 32'(chunk >> 5);
    return 0;
  endfunction

  function automatic logic is_closed(input logic [3:0] region,
                                     input logic [CHUNK_INDEX_W-1:0] chunk);
    logic [63:0] word;
    word = closed[map_word(region, chunk)];
    return word[63:32] == epoch[region] && word[{1'b0, chunk[4:0]}];
  endfunction

  // Closes the chunk of a slot; whole: all its bytes were written.
  function automatic void close_slot(input logic [5:0] s, input logic whole);
    logic [63:0] mark, base, missing, word;
    logic seen, gap;
    logic [5:0] beats, at;
    int unsigned place;
    base = '0;
    beats = '0;
    for (int unsigned r = 0; r < NRegions; r++) begin
      if (slot_region[s] == 4'(r)) begin
        base = Regions[r].base + ({24'd0, slot_chunk[s]} << Regions[r].chunk_log2);
        beats = 6'((13'd1 << (Regions[r].chunk_log2 - 4'd6)) - 13'd1);
      end
    end
    if (!whole) begin
      // A gap is a missing byte before a written one.
      seen = 1'b0;
      gap = 1'b0;
      at = '0;
      for (int b = int'(beats); b >= 0; b--) begin
        mark = marks[{s, 6'(b)}];
        if (seen ? mark != '1 : (mark & (mark + 64'd1)) != '0) begin
          gap = 1'b1;
          at = 6'(b);
        end
        seen |= mark != '0;
      end
      if (gap) begin
        missing = base + {52'd0, at, 6'd0};
        for (mark = marks[{s, at}]; mark[0]; mark >>= 1) missing = missing + 64'd1;
        raise(SHEF_ERRM_OUTPUT_GAP, SIG_CHUNK, base, missing, 1'b1, slot_burst[s], '0);
      end
    end
    place = map_word(slot_region[s], slot_chunk[s]);
    word = closed[place];
    if (word[63:32] != epoch[slot_region[s]]) word = {epoch[slot_region[s]], 32'd0};
    word[{1'b0, slot_chunk[s][4:0]}] = 1'b1;
    closed[place] = word;
    slot_used[s] = 1'b0;
    slots = slots - 1'b1;
  endfunction

  function automatic void close_all();
    if (HasOutput && slots != '0)
      for (logic [6:0] s = '0; s != slot_end; s = s + 1'b1)
        if (slot_used[s[5:0]]) close_slot(s[5:0], 1'b0);
  endfunction

  function automatic void new_epoch(input logic [3:0] region);
    for (logic [6:0] s = '0; s != slot_end; s = s + 1'b1)
      if (slot_used[s[5:0]] && slot_region[s[5:0]] == region) close_slot(s[5:0], 1'b0);
    epoch[region] = epoch[region] + 1;
  endfunction

  // The slot of a chunk that is not closed.
  function automatic logic [5:0] slot_of(input logic [3:0] region,
                                         input logic [CHUNK_INDEX_W-1:0] chunk);
    logic [5:0] s;
    if (slot_used[slot_last] && slot_chunk[slot_last] == chunk &&
        slot_region[slot_last] == region) return slot_last;
    for (logic [6:0] k = '0; k != slot_end; k = k + 1'b1)
      if (slot_used[k[5:0]] && slot_chunk[k[5:0]] == chunk && slot_region[k[5:0]] == region)
        return k[5:0];
    if (slots == 7'(Slots)) begin
      s = '0;
      for (logic [6:0] k = 7'd1; k != slot_end; k = k + 1'b1)
        if (slot_age[k[5:0]] < slot_age[s]) s = k[5:0];
      close_slot(s, 1'b0);
    end
    s = '0;
    while (slot_used[s]) s = s + 1'b1;
    if ({1'b0, s} == slot_end) slot_end = slot_end + 1'b1;
    slot_used[s] = 1'b1;
    slot_region[s] = region;
    slot_chunk[s] = chunk;
    slot_bytes[s] = '0;
    slot_age[s] = age;
    age = age + 64'd1;
    slots = slots + 1'b1;
    for (int b = 0; b < 64; b++) marks[{s, 6'(b)}] = '0;
    return s;
  endfunction

  // A beat of burst `at` for address `addr`.
  function automatic void output_beat(input place_t at, input logic [63:0] addr,
                                      input logic [63:0] strb);
    logic [4:0] region;
    logic [CHUNK_INDEX_W-1:0] chunk;
    logic [63:0] bytes, mark;
    logic [5:0] beat, s;
    logic out;
    region = region_of(addr);
    chunk = '0;
    beat = '0;
    bytes = '0;
    out = 1'b0;
    for (int unsigned r = 0; r < NRegions; r++) begin
      if (region == {1'b1, 4'(r)} && Regions[r].mode == MODE_OUTPUT) begin
        out = 1'b1;
        bytes = 64'd1 << Regions[r].chunk_log2;
        chunk = CHUNK_INDEX_W'((addr - Regions[r].base) >> Regions[r].chunk_log2);
        beat = addr[11:6] & 6'((bytes - 64'd1) >> 6);
      end
    end
    if (out) begin
      if (is_closed(region[3:0], chunk)) begin
        if (!ring_told[index(WRITE, at)])
          raise(SHEF_ERRM_OUTPUT_TWICE, SIG_WSTRB, '0, strb, 1'b1, ring[index(WRITE, at)], '0);
        ring_told[index(WRITE, at)] = 1'b1;
      end else begin
        s = slot_of(region[3:0], chunk);
        slot_last = s;
        slot_burst[s] = ring[index(WRITE, at)];
        mark = marks[{s, beat}];
        slot_bytes[s] = slot_bytes[s] + 13'($countones(strb & ~mark));
        marks[{s, beat}] = mark | strb;
        if ({51'd0, slot_bytes[s]} == bytes) close_slot(s, 1'b1);
      end
    end
  endfunction

  // ---- requests ----
  // The rules of content, with those of the Shield: reports at most one, and whether it did.
  function automatic logic content(input burst_t b);
    logic [63:0] first, last;
    logic [4:0] from, to;
    logic [7:0] more;
    logic [5:0] sigs;
    axi_ax_t ax;
    ax = b.ax;
    more = b.write ? 8'd0 : READ_RULES;
    sigs = b.write ? 6'd0 : READ_SIGNALS;
    if (ax.size > AXI_SIZE_64) begin
      raise(rule_e'(AXI_ERRM_AWSIZE + more), signal_e'(SIG_AWSIZE + sigs), {61'd0, AXI_SIZE_64},
            {61'd0, ax.size}, 1'b1, b, '0);
      return 1'b1;
    end
    if (ax.burst == 2'b11) begin
      raise(rule_e'(AXI_ERRM_AWBURST + more), signal_e'(SIG_AWBURST + sigs),
            {62'd0, AXI_BURST_INCR}, 64'd3, 1'b1, b, '0);
      return 1'b1;
    end
    if (ax.burst == 2'b00 && ax.len > 8'd15) begin
      raise(rule_e'(AXI_ERRM_AWLEN_FIXED + more), signal_e'(SIG_AWLEN + sigs), 64'd15,
            {56'd0, ax.len}, 1'b1, b, '0);
      return 1'b1;
    end
    if (ax.burst == 2'b10 && !(ax.len inside {8'd1, 8'd3, 8'd7, 8'd15})) begin
      raise(rule_e'(AXI_ERRM_AWLEN_WRAP + more), signal_e'(SIG_AWLEN + sigs), 64'd15,
            {56'd0, ax.len}, 1'b1, b, '0);
      return 1'b1;
    end
    first = ax.addr & ~((64'd1 << ax.size) - 64'd1);
    if (ax.burst == 2'b10 && first != ax.addr) begin
      raise(rule_e'(AXI_ERRM_AWADDR_WRAP_ALIGN + more), signal_e'(SIG_AWADDR + sigs), first,
            ax.addr, 1'b1, b, '0);
      return 1'b1;
    end
    if (ax.burst != AXI_BURST_INCR) begin
      raise(SHEF_ERRM_BURST, signal_e'(SIG_AWBURST + sigs), {62'd0, AXI_BURST_INCR},
            {62'd0, ax.burst}, 1'b1, b, '0);
      return 1'b1;
    end
    last = first + (({56'd0, ax.len} + 64'd1) << ax.size) - 64'd1;
    from = region_of(ax.addr);
    to = region_of(last);
    if (last[63:12] != first[63:12]) begin
      raise(from == to ? rule_e'(AXI_ERRM_AWADDR_BOUNDARY + more) : SHEF_ERRM_REGION_CROSSED,
            signal_e'(SIG_AWADDR + sigs), ax.addr, last, 1'b1, b, '0);
      return 1'b1;
    end
    if (!from[4]) begin
      raise(SHEF_ERRM_RANGE, signal_e'(SIG_AWADDR + sigs), '0, ax.addr, 1'b1, b, '0);
      return 1'b1;
    end
    if (b.write) begin
      for (int unsigned r = 0; r < NRegions; r++) begin
        if (from[3:0] == 4'(r) && Regions[r].mode == MODE_INPUT) begin
          raise(SHEF_ERRM_READ_ONLY, SIG_AWADDR, '0, ax.addr, 1'b1, b, '0);
          return 1'b1;
        end
      end
    end
    return 1'b0;
  endfunction

  function automatic void request(input logic d, input logic valid, input logic ready,
                                  input axi_ax_t ax);
    burst_t b;
    place_t at;
    logic [7:0] more;
    logic [5:0] sigs;
    more = d == WRITE ? 8'd0 : READ_RULES;
    sigs = d == WRITE ? 6'd0 : READ_SIGNALS;
    b = offer[d];
    if (offered[d] && !valid)
      raise(rule_e'(AXI_ERRM_AWVALID_STABLE + more), signal_e'(SIG_AWVALID + sigs), 64'd1, '0,
            1'b1, b, '0);
    if (valid) begin
      if (!offered[d]) begin
        offer[d] = '{write: d, number: begun[d], ax: ax};
        begun[d] = begun[d] + 1;
        offer_told[d] = content(offer[d]);
      end else if (ax != b.ax) begin
        if (ax.id != b.ax.id)
          raise(rule_e'(AXI_ERRM_AWID_STABLE + more), signal_e'(SIG_AWID + sigs),
                {56'd0, b.ax.id}, {56'd0, ax.id}, 1'b1, b, '0);
        if (ax.addr != b.ax.addr)
          raise(rule_e'(AXI_ERRM_AWADDR_STABLE + more), signal_e'(SIG_AWADDR + sigs), b.ax.addr,
                ax.addr, 1'b1, b, '0);
        if (ax.len != b.ax.len)
          raise(rule_e'(AXI_ERRM_AWLEN_STABLE + more), signal_e'(SIG_AWLEN + sigs),
                {56'd0, b.ax.len}, {56'd0, ax.len}, 1'b1, b, '0);
        if (ax.size != b.ax.size)
          raise(rule_e'(AXI_ERRM_AWSIZE_STABLE + more), signal_e'(SIG_AWSIZE + sigs),
                {61'd0, b.ax.size}, {61'd0, ax.size}, 1'b1, b, '0);
        if (ax.burst != b.ax.burst)
          raise(rule_e'(AXI_ERRM_AWBURST_STABLE + more), signal_e'(SIG_AWBURST + sigs),
                {62'd0, b.ax.burst}, {62'd0, ax.burst}, 1'b1, b, '0);
        offer[d].ax = ax;
        offer_told[d] = 1'b1;
      end
      if (ready && !blind) begin
        at = free[d];
        ring[index(d, at)] = offer[d];
        ring_id[index(d, at)] = ax.id;
        ring_beat[index(d, at)] = '0;
        ring_open[index(d, at)] = 1'b1;
        ring_told[index(d, at)] = offer_told[d];
        ring_sent[index(d, at)] = 1'b0;
        free[d] = at + 1'b1;
        if (free[d] + 1'b1 == oldest[d]) begin
          raise(SHEF_ERRM_OUTSTANDING, signal_e'(SIG_AWVALID + sigs), '0, 64'(Deep - 1), 1'b1,
                ring[index(d, oldest[d])], '0);
          blind = 1'b1;
        end
      end
    end
    offered[d] = valid && !ready;
  endfunction

  // The oldest open burst with an id, if there is one.
  function automatic logic [DeepW:0] find(input logic d, input logic [7:0] id);
    for (place_t at = oldest[d]; at != free[d]; at = at + 1'b1)
      if (ring_open[index(d, at)] && ring_id[index(d, at)] == id) return {1'b1, at};
    return '0;
  endfunction

  function automatic void finish(input logic d, input place_t at);
    ring_open[index(d, at)] = 1'b0;
    while (oldest[d] != free[d] && !ring_open[index(d, oldest[d])]) oldest[d] = oldest[d] + 1'b1;
  endfunction

  // An answer that is not OKAY, unless the burst has a report already.
  function automatic void answer(input logic d, input logic known, input place_t at,
                                 input logic [1:0] resp);
    signal_e signal;
    signal = d == WRITE ? SIG_BRESP : SIG_RRESP;
    if (resp == 2'b01)
      raise(d == WRITE ? AXI_ERRS_BRESP_EXOKAY : AXI_ERRS_RRESP_EXOKAY, signal, '0, 64'd1, known,
            ring[index(d, at)], '0);
    if (resp[1] && known && !ring_told[index(d, at)]) begin
      raise(SHEF_ERRS_REFUSED, signal, '0, {62'd0, resp}, 1'b1, ring[index(d, at)], '0);
      ring_told[index(d, at)] = 1'b1;
    end
  endfunction

  // ---- write data ----
  function automatic void take_beat(input logic [AXI_STRB_W-1:0] strb, input logic last);
    burst_t b;
    logic [8:0] n;
    logic [63:0] lanes;
    logic told;
    b = ring[index(WRITE, taker)];
    n = ring_beat[index(WRITE, taker)];
    told = ring_told[index(WRITE, taker)];
    lanes = beat_lanes(b.ax, n[7:0]);
    if ((strb & ~lanes) != '0 && !told) begin
      raise(AXI_ERRM_WSTRB, SIG_WSTRB, lanes, strb, 1'b1, b, '0);
      ring_told[index(WRITE, taker)] = 1'b1;
    end
    if (last != (n == {1'b0, b.ax.len}) && !num_told) begin
      raise(AXI_ERRM_WDATA_NUM, SIG_WLAST, {56'd0, b.ax.len} + 64'd1, {55'd0, n} + 64'd1, 1'b1, b,
            '0);
      num_told = 1'b1;
    end
    if (HasOutput && !told) output_beat(taker, beat_addr(b.ax, n[7:0]), strb);
    ring_beat[index(WRITE, taker)] = n + 1'b1;
    if (n == {1'b0, b.ax.len}) begin
      ring_sent[index(WRITE, taker)] = 1'b1;
      taker = taker + 1'b1;
      num_told = 1'b0;
    end
  endfunction

  function automatic void data();
    burst_t b;
    logic has;
    logic [511:0] differ;
    logic [2:0] word;
    has = taker != free[WRITE] || offered[WRITE];
    b = taker != free[WRITE] ? ring[index(WRITE, taker)] : offer[WRITE];
    if (w_offered && !req_i.w_valid)
      raise(AXI_ERRM_WVALID_STABLE, SIG_WVALID, 64'd1, '0, has, b, '0);
    if (w_offered && req_i.w_valid) begin
      if (req_i.w.strb != w_was.strb)
        raise(AXI_ERRM_WSTRB_STABLE, SIG_WSTRB, w_was.strb, req_i.w.strb, has, b, '0);
      if (req_i.w.last != w_was.last)
        raise(AXI_ERRM_WLAST_STABLE, SIG_WLAST, {63'd0, w_was.last}, {63'd0, req_i.w.last}, has, b,
              '0);
      if (req_i.w.data != w_was.data) begin
        differ = req_i.w.data ^ w_was.data;
        for (int k = 0; k < 64; k++) if (!w_was.strb[k]) differ[8*k+:8] = '0;
        word = word_of(differ);
        if (differ != '0)
          raise(AXI_ERRM_WDATA_STABLE, SIG_WDATA, w_was.data[64*word+:64],
                req_i.w.data[64*word+:64], has, b, word);
      end
    end
    if (req_i.w_valid && rsp_i.w_ready && !blind) begin
      ahead[ahead_at + aheads[BeatsW-1:0]] = {req_i.w.strb, req_i.w.last};
      aheads = aheads + 1'b1;
      if (aheads == (BeatsW + 1)'(Beats)) blind = 1'b1;  // reported as alone long before
    end
    w_offered = req_i.w_valid && !rsp_i.w_ready;
    if (w_offered) w_was = req_i.w;
    while (aheads != '0 && taker != free[WRITE]) begin
      take_beat(ahead[ahead_at][AXI_STRB_W:1], ahead[ahead_at][0]);
      ahead_at = ahead_at + 1'b1;
      aheads = aheads - 1'b1;
    end
    if ((aheads != '0 || w_offered) && taker == free[WRITE] && !offered[WRITE]) begin
      if (alone != 10'(Patience)) begin
        alone = alone + 1'b1;
        if (alone == 10'(Patience))
          raise(SHEF_ERRM_W_ALONE, SIG_AWVALID, '0, '0, 1'b0, '0, '0);
      end
    end else alone = '0;
  endfunction

  // ---- responses ----
  function automatic void write_response();
    axi_b_t b;
    burst_t burst;
    b = rsp_i.b;
    burst = ring[index(WRITE, b_place)];
    if (b_offered && !rsp_i.b_valid)
      raise(AXI_ERRS_BVALID_STABLE, SIG_BVALID, 64'd1, '0, b_known, burst, '0);
    if (rsp_i.b_valid) begin
      if (b_offered) begin
        if (b.id != b_was.id)
          raise(AXI_ERRS_BID_STABLE, SIG_BID, {56'd0, b_was.id}, {56'd0, b.id}, b_known, burst,
                '0);
        if (b.resp != b_was.resp)
          raise(AXI_ERRS_BRESP_STABLE, SIG_BRESP, {62'd0, b_was.resp}, {62'd0, b.resp}, b_known,
                burst, '0);
      end else if (!blind) begin
        {b_known, b_place} = find(WRITE, b.id);
        burst = ring[index(WRITE, b_place)];
        if (!b_known) raise(AXI_ERRS_BRESP_AW, SIG_BID, '0, {56'd0, b.id}, 1'b0, '0, '0);
        else if (!ring_sent[index(WRITE, b_place)])
          raise(AXI_ERRS_BRESP_WLAST, SIG_BVALID, '0, 64'd1, 1'b1, burst, '0);
        answer(WRITE, b_known, b_place, b.resp);
      end
      if (req_i.b_ready && !blind && b_known) finish(WRITE, b_place);
    end
    b_offered = rsp_i.b_valid && !req_i.b_ready;
    b_was = b;
  endfunction

  function automatic void read_beat();
    burst_t burst;
    logic [8:0] n;
    logic [511:0] differ;
    logic [63:0] lanes;
    logic [2:0] word;
    burst = ring[index(READ, r_place)];
    if (r_offered && !rsp_i.r_valid)
      raise(AXI_ERRS_RVALID_STABLE, SIG_RVALID, 64'd1, '0, r_known, burst, '0);
    if (rsp_i.r_valid) begin
      if (r_offered) begin
        if (rsp_i.r.id != r_was.id)
          raise(AXI_ERRS_RID_STABLE, SIG_RID, {56'd0, r_was.id}, {56'd0, rsp_i.r.id}, r_known,
                burst, '0);
        if (rsp_i.r.resp != r_was.resp)
          raise(AXI_ERRS_RRESP_STABLE, SIG_RRESP, {62'd0, r_was.resp}, {62'd0, rsp_i.r.resp},
                r_known, burst, '0);
        if (rsp_i.r.last != r_was.last)
          raise(AXI_ERRS_RLAST_STABLE, SIG_RLAST, {63'd0, r_was.last}, {63'd0, rsp_i.r.last},
                r_known, burst, '0);
        if (rsp_i.r.data != r_was.data && r_known) begin
          differ = rsp_i.r.data ^ r_was.data;
          lanes = beat_lanes(burst.ax, ring_beat[index(READ, r_place)][7:0]);
          for (int k = 0; k < 64; k++) if (!lanes[k]) differ[8*k+:8] = '0;
          word = word_of(differ);
          if (differ != '0)
            raise(AXI_ERRS_RDATA_STABLE, SIG_RDATA, r_was.data[64*word+:64],
                  rsp_i.r.data[64*word+:64], 1'b1, burst, word);
        end
      end else if (!blind) begin
        // Most often the burst of the beat before.
        if (!ring_open[index(READ, r_place)] || ring_id[index(READ, r_place)] != rsp_i.r.id ||
            !r_known) {r_known, r_place} = find(READ, rsp_i.r.id);
        burst = ring[index(READ, r_place)];
        n = ring_beat[index(READ, r_place)];
        if (!r_known) raise(AXI_ERRS_RID, SIG_RID, '0, {56'd0, rsp_i.r.id}, 1'b0, '0, '0);
        else if (rsp_i.r.last != (n == {1'b0, burst.ax.len}))
          raise(AXI_ERRS_RDATA_NUM, SIG_RLAST, {56'd0, burst.ax.len} + 64'd1, {55'd0, n} + 64'd1,
                1'b1, burst, '0);
        answer(READ, r_known, r_place, rsp_i.r.resp);
      end
      if (req_i.r_ready && !blind && r_known) begin
        n = ring_beat[index(READ, r_place)];
        ring_beat[index(READ, r_place)] = n + 1'b1;
        if (rsp_i.r.last || n == {1'b0, burst.ax.len}) begin
          finish(READ, r_place);
          r_known = 1'b0;
        end
      end
    end
    r_offered = rsp_i.r_valid && !req_i.r_ready;
    if (r_offered) r_was = rsp_i.r;
  endfunction

  // ---- ends ----
  function automatic void nothing_open(input rule_e rule, input signal_e signal);
    logic d;
    d = oldest[WRITE] != free[WRITE] || offered[WRITE] ? WRITE : READ;
    if (oldest[d] != free[d])
      raise(rule, signal, '0, 64'd1, 1'b1, ring[index(d, oldest[d])], '0);
    else if (offered[d]) raise(rule, signal, '0, 64'd1, 1'b1, offer[d], '0);
  endfunction

  function automatic void in_reset();
    if (!held) begin
      close_all();
      forget();
    end else begin
      if (req_i.aw_valid && !reset_told[0])
        raise(AXI_ERRM_AWVALID_RESET, SIG_AWVALID, '0, 64'd1, 1'b0, '0, '0);
      if (req_i.ar_valid && !reset_told[1])
        raise(AXI_ERRM_ARVALID_RESET, SIG_ARVALID, '0, 64'd1, 1'b0, '0, '0);
      if (req_i.w_valid && !reset_told[2])
        raise(AXI_ERRM_WVALID_RESET, SIG_WVALID, '0, 64'd1, 1'b0, '0, '0);
      reset_told |= {req_i.w_valid, req_i.ar_valid, req_i.aw_valid};
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (!on_i) begin
      live = 1'b0;
      out_valid_o <= 1'b0;
    end else begin
      if (!live) begin
        live = 1'b1;
        held = 1'b0;
        queue_at = '0;
        queued = '0;
        lost = '0;
        begun[0] = '0;
        begun[1] = '0;
        forget();
      end
      if (!rst_ni) in_reset();
      else begin
        // Responses first: they answer requests and beats of earlier cycles.
        if (rsp_i.b_valid || b_offered) write_response();
        if (rsp_i.r_valid || r_offered) read_beat();
        if (req_i.aw_valid || offered[WRITE])
          request(WRITE, req_i.aw_valid, rsp_i.aw_ready, req_i.aw);
        if (req_i.ar_valid || offered[READ])
          request(READ, req_i.ar_valid, rsp_i.ar_ready, req_i.ar);
        if (req_i.w_valid || w_offered || aheads != '0 || alone != '0) data();
        if (irq_i && !irq_was) nothing_open(SHEF_ERRM_OPEN_AT_IRQ, SIG_IRQ);
        if (done_i) nothing_open(SHEF_ERRM_OPEN_AT_DONE, SIG_DONE);
        irq_was = irq_i;
        if (close_i) close_all();
        if (HasOutput && epoch_i) new_epoch(epoch_region_i);
      end
      held = !rst_ni;
      if (!out_valid_o || out_take_i) begin
        out_valid_o <= queued != '0;
        if (queued != '0) begin
          out_o <= queue[queue_at];
          queue_at = queue_at + 1'b1;
          queued = queued - 1'b1;
        end
      end
      lost_o <= lost;
      bursts_o <= {32'd0, begun[0]} + {32'd0, begun[1]};
    end
  end
endmodule
// verilator lint_on UNSIGNED
// verilator lint_on UNUSEDSIGNAL
// verilator lint_on BLKSEQ
// verilator tracing_on
`default_nettype wire
