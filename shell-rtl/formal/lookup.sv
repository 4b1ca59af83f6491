// shef_lookup: a line is readable only after its chunk has arrived and matched, or is known without
// memory (never written, fully written, or allocated by a write to `output`). A segment goes to its
// chunk's line. A line is reallocated only when it is not being read, written, fetched or sealed.
// Its state changes only in the steps listed in `legal`.
// No chunk has two lines. A sealed chunk is whole, not being written, under the name of its
// allocation, and never of an `input` region. With the proof of the response gate (`resp`): no byte
// leaves before its tag has matched. The outputs of the helpers for room, choice and prefetch are
// free (`lookup_free.sv`). An `input` and a `counted` region with prefetch that share two lines,
// and an `output` region with one line, four chunks each. Faults that freeze a region, drops and
// wipes come at any time that the control of the set allows. Assumed: responses come only for work
// in flight; no line has more than 127 responses and three write segments (`shef_resp` holds 64,
// `shef_wacc` two); a write to an `input` region arrives refused (`read_only`).
`default_nettype none
module lookup
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_line_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire           clr_i,
    input wire           stop_i,
    input wire [1:0]     hold_i,        // reads, writes
    input wire           flush_i,
    input wire           drop_i,
    input wire [2:0]     freeze_i,
    input wire [1:0]     seg_valid_i,
    input wire [1:0][1:0] seg_region_i,
    input wire [1:0][1:0] seg_chunk_i,
    input wire [1:0]     seg_refuse_i,
    input wire           rsp_room_i,
    input wire           wsg_room_i,
    input wire           refusal_room_i,
    input wire           ver_ready_i,
    input wire           merge_ready_i,
    input wire           ask_ready_i,
    input wire           ask_bit_i,
    // response read, write ended, version known, chunk checked, chunk sealed
    input wire [4:0]     event_i,
    input wire [1:0]     rsp_line_i,
    input wire [1:0]     wsg_line_i,
    input wire [1:0]     known_line_i,
    input wire [1:0]     verified_line_i,
    input wire [1:0]     sealed_line_i,
    input wire           wsg_full_i,
    input wire           known_zero_i,
    input wire           known_last_i,
    input wire           failed_i,
    input wire           sealed_last_i,
    input wire           unsealed_i
);
  localparam int unsigned N = 3;
  typedef logic [N-1:0] lines_t;
  localparam lines_t CLASS[2] = '{3'h4, 3'h3};
  seg_t [1:0] seg;
  for (genvar d = 0; d < 2; d++) begin : g_seg
    always_comb begin
      seg[d] = '0;
      seg[d].region = {2'd0, seg_region_i[d]};
      seg[d].chunk = {38'd0, seg_chunk_i[d]};
      seg[d].size = AXI_SIZE_64;
      seg[d].beats = 9'd1;
      seg[d].first = 1'b1;
      seg[d].last = 1'b1;
      if (seg_refuse_i[d] || (d == 1 && seg_region_i[d] == 2'd0)) seg[d].refuse = REFUSE_READ_ONLY;
    end
  end
  logic rsp_valid, wsg_valid, fetch_valid, fetch_write, ver_valid, new_valid, taken, spec_taken,
      spec_used, spec_failed, merge_valid, seal_valid;
  logic fetching, dirty, write_held;
  lseg_t lseg;
  seg_t of;
  line_t fetch_line, new_line, merge_line, seal_line;
  reg_idx_t merge_region, seal_region;
  chunk_idx_t merge_chunk, seal_chunk;
  lines_t readable;

  // ---- work in flight, by line; the chunk each line was allocated for ----
  logic [6:0] reads[N];
  logic [1:0] writes[N];
  logic room_rd, room_wr;
  lines_t asks, fetches, seals;
  lines_t good, used;            // its bytes are known; it is allocated
  logic [1:0] name_region[N], name_chunk[N];
  logic [2:0] frozen;            // until a wipe
  logic rsp_done, wsg_done, known, known_dead, verified, sealed, unsealed, drop;
  logic clr_1, clr_2, held_1, held_2;
  always_comb begin
    room_rd = rsp_room_i;
    room_wr = wsg_room_i;
    for (int i = 0; i < int'(N); i++) begin
      if (reads[i] == '1) room_rd = 1'b0;
      if (writes[i] == '1) room_wr = 1'b0;
    end
  end
  assign rsp_done = event_i[0] && rsp_line_i < 2'd3 && reads[rsp_line_i] != '0;
  assign wsg_done = event_i[1] && wsg_line_i < 2'd3 && writes[wsg_line_i] != '0;
  assign known_dead = frozen[name_region[known_line_i]];
  assign known = event_i[2] && known_line_i < 2'd3 &&
      (asks[known_line_i] || (fetches[known_line_i] && known_dead));
  assign verified = event_i[3] && verified_line_i < 2'd3 && fetches[verified_line_i] &&
      !asks[verified_line_i] &&
      !(known && known_line_i == verified_line_i);
  assign unsealed = event_i[4] && unsealed_i && sealed_line_i < 2'd3 && seals[sealed_line_i] &&
      frozen[name_region[sealed_line_i]];
  assign sealed = event_i[4] && !unsealed_i && sealed_line_i < 2'd3 && seals[sealed_line_i];
  assign drop = drop_i && hold_i == 2'b11 && held_1 && held_2 && !dirty && !write_held && !fetching;

  shef_lookup #(
      .NRegions(3), .BigLines(2), .SmallLines(1), .ChunkW(2), .IsOutput(16'd4), .HasVersions(16'd2),
      .IsBig(16'd3),
      .RegionId({{13{8'hff}}, 8'd2, 8'd1, 8'd0}), .Prefetch({{14{4'd0}}, 4'd1, 4'd1}),
      .NumChunks({{13{40'd4}}, 40'd4, 40'd4, 40'd4})
  ) dut (
      .clk_i, .rst_ni, .clr_i, .stop_i, .hold_rd_i(hold_i[0]), .hold_wr_i(hold_i[1]),
      .frozen_i({13'd0, frozen}),
      .rd_seg_i(seg[0]), .rd_valid_i(seg_valid_i[0]), .rd_ready_o(), .wr_seg_i(seg[1]),
      .wr_valid_i(seg_valid_i[1]),
      .wr_ready_o(), .held_o(), .rsp_valid_o(rsp_valid), .rsp_room_i(room_rd), .lseg_o(lseg),
      .seg_o(of),
      .wsg_valid_o(wsg_valid), .wsg_room_i(room_wr),
      .fetch_valid_o(fetch_valid), .fetch_line_o(fetch_line), .fetch_write_o(fetch_write),
      .ver_valid_o(ver_valid), .ver_ready_i,
      .new_valid_o(new_valid), .new_line_o(new_line), .taken_o(taken), .short_o(),
      .spec_taken_o(spec_taken), .spec_used_o(spec_used),
      .spec_failed_o(spec_failed), .merge_valid_o(merge_valid), .merge_ready_i,
      .merge_line_o(merge_line), .merge_region_o(merge_region),
      .merge_chunk_o(merge_chunk), .ask_valid_o(), .ask_ready_i, .ask_bit_i,
      .rsp_done_i(rsp_done), .rsp_line_i({4'd0, rsp_line_i}), .wsg_done_i(wsg_done),
      .wsg_line_i({4'd0, wsg_line_i}), .wsg_full_i,
      .known_i(known), .known_line_i({4'd0, known_line_i}),
      .known_zero_i(known_zero_i && !known_dead), .known_last_i,
      .known_dead_i(known_dead), .verified_i(verified && !failed_i),
      .verified_line_i({4'd0, verified_line_i}),
      .failed_i(verified && failed_i), .filled_i(1'b0), .filled_line_i('0),
      .sealed_i(sealed), .sealed_line_i({4'd0, sealed_line_i}), .sealed_last_i,
      .unsealed_i(unsealed), .unsealed_line_i({4'd0, sealed_line_i}),
      .flush_i, .drop_i(drop), .drop_mask_i('1),
      .seal_valid_o(seal_valid), .seal_line_o(seal_line), .seal_region_o(seal_region),
      .seal_chunk_o(seal_chunk),
      .readable_o(readable), .fetched_o(), .closed_o(), .asked_o(), .last_o(), .dead_o(),
      .fetching_o(fetching),
      .dirty_o(dirty), .write_held_o(write_held), .rd_refusal_valid_o(),
      .rd_refusal_room_i(refusal_room_i), .refusal_o()
  );

  logic init = 1'b0;
  logic take;
  logic [1:0] l;                 // symbolic line, constant
  assign take = taken || spec_taken;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    l <= l;
    assume (l < 2'd3);
    assume (seg_region_i[0] < 2'd3 && seg_region_i[1] < 2'd3);
    // a wipe includes a stop, and takes time
    if (clr_i) assume (stop_i);
    if (clr_1 && !clr_2) assume (clr_i);
    clr_1 <= rst_ni && clr_i;
    clr_2 <= rst_ni && clr_1;
    held_1 <= rst_ni && hold_i == 2'b11;
    held_2 <= rst_ni && held_1;
    frozen <= (!rst_ni || clr_i) ? '0 : frozen | freeze_i;
    for (int i = 0; i < int'(N); i++) begin
      if (!rst_ni || clr_i) begin
        reads[i] <= '0;
        writes[i] <= '0;
        good[i] <= 1'b0;
        used[i] <= 1'b0;
        asks[i] <= 1'b0;
        fetches[i] <= 1'b0;
        seals[i] <= 1'b0;
      end else begin
        reads[i] <= reads[i] + 7'(rsp_valid && !lseg.err && lseg.line == 6'(i)) -
            7'(rsp_done && rsp_line_i == 2'(i));
        writes[i] <= writes[i] + 2'(wsg_valid && !lseg.err && lseg.line == 6'(i)) -
            2'(wsg_done && wsg_line_i == 2'(i));
        if (take && new_line == 6'(i)) begin
          used[i] <= 1'b1;
          good[i] <= wsg_valid && of.region == 4'd2;
          name_region[i] <= of.region[1:0];
          name_chunk[i] <= of.chunk[1:0];
        end else if ((verified && !failed_i && verified_line_i == 2'(i)) ||
            (known && known_zero_i && !known_dead && known_line_i == 2'(i)) ||
            (wsg_done && wsg_full_i && wsg_line_i == 2'(i))) good[i] <= 1'b1;
        if (ver_valid && ver_ready_i && fetch_valid && fetch_line == 6'(i)) asks[i] <= 1'b1;
        else if (known && known_line_i == 2'(i)) asks[i] <= 1'b0;
        if ((fetch_valid && !fetch_write && fetch_line == 6'(i)) ||
            (merge_valid && merge_ready_i && merge_line == 6'(i))) fetches[i] <= 1'b1;
        else if ((verified && verified_line_i == 2'(i)) ||
            (known && (known_zero_i || known_dead) && known_line_i == 2'(i))) fetches[i] <= 1'b0;
        if (seal_valid && seal_line == 6'(i)) seals[i] <= 1'b1;
        else if ((sealed || unsealed) && sealed_line_i == 2'(i)) seals[i] <= 1'b0;
      end
    end
  end

  logic to_l;
  assign to_l = (rsp_valid || wsg_valid) && !lseg.err && lseg.line == {4'd0, l};
  always_comb begin
    if (init && rst_ni) begin
      // the gate
      if (readable[l]) assert (good[l]);
      if (to_l && !take)
        assert (used[l] && name_region[l] == of.region[1:0] && name_chunk[l] == of.chunk[1:0]);
      if (to_l && take) assert (new_line == {4'd0, l});
      if (wsg_valid && !lseg.err) assert (of.region != '0);
      // a line is reallocated only when nothing is in flight in it
      if (take && new_line == {4'd0, l})
        assert (reads[l] == '0 && writes[l] == '0 && !asks[l] && !fetches[l] && !seals[l]);
      if (take) assert (!stop_i && new_line < 6'd3);
      // the output is the chunk the line was allocated for, and whole
      if (seal_valid && seal_line == {4'd0, l})
        assert (good[l] && writes[l] == '0 && name_region[l] == seal_region[1:0] &&
            name_chunk[l] == seal_chunk[1:0] && seal_region != '0);
      if (merge_valid && merge_line == {4'd0, l})
        assert (name_region[l] == merge_region[1:0] && name_chunk[l] == merge_chunk[1:0]);
    end
    cover (init && rst_ni && readable[l] && reads[l] == 7'd2 && name_region[l] == 2'd1);
    cover (init && rst_ni && seal_valid && seal_line == {4'd0, l} && l == 2'd1);
    cover (init && rst_ni && seal_valid && name_region[seal_line[1:0]] == 2'd2);
    cover (init && rst_ni && take && new_line == {4'd0, l} && used[l] && !clr_1);
    cover (init && rst_ni && spec_used);
    cover (init && rst_ni && spec_failed);
    cover (init && rst_ni && merge_valid);
  end

  // ---- the steps of a line ----
  // What a line may become in one cycle without being allocated. failed: its chunk did not match;
  // last: its version cannot be raised.
  function automatic logic legal(input line_status_t from, input line_status_t to,
      input logic failed, input logic last);
    logic state, request, bytes, name, dead;
    dead = from.name inside {N_FROZEN, N_DEAD};
    unique case (from.state)
      S_FREE: state = to.state == S_FREE;
      S_AHEAD: state = to.state inside {S_AHEAD, S_SPEC, S_CLEAN, S_DIRTY} ||
          (to.state == S_FREE && failed);
      S_SPEC: state = to.state inside {S_SPEC, S_CLEAN, S_DIRTY} ||
          (to.state == S_FREE && failed);
      S_CLEAN: state = to.state inside {S_CLEAN, S_DIRTY};
      S_DIRTY, S_EVICT: state = to.state inside {S_DIRTY, S_EVICT, S_SEAL} ||
          (to.state == S_CLEAN && (dead || last));
      S_SEAL: state = to.state inside {S_SEAL, S_CLEAN};
      default: state = 1'b0;
    endcase
    unique case (from.request)
      R_NONE: request = to.request inside {R_NONE, R_CHUNK};
      R_VERSION: request = to.request inside {R_VERSION, R_NONE};
      R_CHUNK: request = to.request inside {R_CHUNK, R_NONE};
      default: request = to.request inside {R_BOTH, R_CHUNK, R_NONE};
    endcase
    unique case (from.bytes)
      B_PART: bytes = to.bytes inside {B_PART, B_WANTED, B_WHOLE};
      B_WANTED: bytes = to.bytes inside {B_WANTED, B_WHOLE} || (to.bytes == B_PART && dead);
      B_WHOLE: bytes = to.bytes == B_WHOLE || (to.bytes == B_PART && dead);
      default: bytes = 1'b0;
    endcase
    name = from.name == N_LIVE || to.name inside {N_LOST, N_DEAD};
    return state && request && bytes && name;
  endfunction
  // a line that is allocated, and as what
  function automatic logic legal_take(input line_status_t from, input line_status_t to);
    return from.state inside {S_FREE, S_SPEC, S_CLEAN} && from.request == R_NONE &&
        from.bytes != B_WANTED && from.reads == '0 && from.writes == '0 &&
        to.state inside {S_AHEAD, S_CLEAN, S_DIRTY} && to.bytes != B_WANTED && to.name == N_LIVE &&
        !to.fetched && !to.full && !to.last;
  endfunction
  // the line in the last cycle, and what happened to it then
  line_status_t was[N];
  lines_t take_1, failed_1, last_1;
  logic same_life;               // neither reset nor wiped in the last cycle
  always_ff @(posedge clk_i) begin
    same_life <= rst_ni && !clr_i;
    for (int i = 0; i < int'(N); i++) begin
      was[i] <= dut.line_q[i];
      take_1[i] <= take && new_line == 6'(i);
      failed_1[i] <= verified && failed_i && verified_line_i == 2'(i);
      last_1[i] <= known && known_last_i && known_line_i == 2'(i);
    end
  end

  // ---- supporting invariants ----
  function automatic logic one_at_most(input lines_t x);
    return (x & (x - 1'b1)) == '0;
  endfunction
  function automatic lines_t one_hot(input line_t n);
    return lines_t'(64'd1 << n);
  endfunction
  lines_t merges, sealing, busy;   // busy: something is in flight in it
  assign merges = dut.merge_valid_q ? one_hot(dut.merge_line_q) : '0;
  assign sealing = dut.seal_one_q;
  always_comb
    for (int i = 0; i < int'(N); i++)
      busy[i] = reads[i] != '0 || writes[i] != '0 || asks[i] || fetches[i] || seals[i];
  always_comb begin
    if (init && rst_ni) begin
      assert (one_at_most(dut.merge_cand_q) && one_at_most(dut.seal_cand_q) &&
          (!dut.merge_valid_q || dut.merge_line_q < 6'd3));
      assert ((merges & (fetches | asks)) == '0 && (seals & sealing) == '0 &&
          (sealing == '0 || sealing == one_hot(dut.seal_line_q)));
      assert ((readable & ~good) == '0);
      if (dut.spec_go && dut.spec_valid) assert ((dut.u_prefetch.match_q & dut.live) == '0);
      if (dut.spec_valid) assert (dut.spec_name.region <= 4'd1);
    end
  end
  for (genvar i = 0; i < int'(N); i++) begin : g_line
    always_comb begin
      if (init && rst_ni) begin
        if (same_life) begin
          if (take_1[i]) assert (legal_take(was[i], dut.line_q[i]));
          else assert (legal(was[i], dut.line_q[i], failed_1[i], last_1[i]));
        end
        assert (dut.line_q[i].reads == reads[i] && dut.line_q[i].writes == writes[i]);
        assert (dut.line_q[i].request ==
            line_request_e'({fetches[i] || merges[i], asks[i]}));
        assert ((dut.line_q[i].state == S_SEAL) == (seals[i] || sealing[i]));
        unique case (dut.line_q[i].state)
          S_FREE: assert (dut.line_q[i].request == R_NONE && dut.line_q[i].bytes != B_WANTED &&
              reads[i] == '0 && writes[i] == '0);
          S_AHEAD, S_SPEC: assert (dut.line_q[i].bytes != B_WANTED && reads[i] == '0 &&
              writes[i] == '0);
          S_CLEAN: ;
          S_DIRTY, S_EVICT: assert (name_region[i] != 2'd0);
          S_SEAL: assert (dut.line_q[i].request == R_NONE && writes[i] == '0 && good[i] &&
              name_region[i] != 2'd0);
          default: assert (1'b0);
        endcase
        assert (dut.line_q[i].bytes inside {B_PART, B_WANTED, B_WHOLE});
        if (dut.line_q[i].state != S_FREE) assert (used[i]);
        if (writes[i] != '0) assert (name_region[i] != 2'd0);
        if (used[i])
          assert (dut.name_q[i] == {2'd0, name_region[i], name_chunk[i]} && name_region[i] < 2'd3);
        if (dut.dead_o[i]) assert (used[i] && frozen[name_region[i]]);
        // the comparisons are exact for the bits of the names
        if (dut.live[i]) begin
          for (int d = 0; d < 2; d++) begin
            if (dut.b_valid_q[d])
              assert (dut.b_match_q[d][i] == (dut.name_q[i] == dut.b_name[d]));
            if (dut.d_valid_q[d])
              assert (dut.d_match_q[d][i] == (dut.name_q[i] == dut.d_name[d]));
          end
          if (dut.spec_valid)
            assert (dut.u_prefetch.match_q[i] == (dut.name_q[i] == dut.spec_name));
          for (int j = 0; j < i; j++)
            if (dut.live[j])
              assert (dut.name_q[i] != dut.name_q[j]);
        end
      end
    end
  end
  for (genvar d = 0; d < 2; d++) begin : g_side
    always_comb begin
      if (init && rst_ni && dut.d_valid_q[d]) begin
        if (dut.d_seg_q[d].refuse != REFUSE_NONE) assert (dut.look_q[d].bad);
        assert (dut.d_seg_q[d].region < 4'd3 &&
            (d == 0 || dut.d_seg_q[d].region != '0 || dut.d_seg_q[d].refuse != REFUSE_NONE));
        assert (dut.look_q[d].out == (dut.d_seg_q[d].region == 4'd2));
        if (!clr_1) begin
          if (!dut.look_q[d].hit) assert (dut.d_line[d] == '0);
          if (dut.look_q[d].hit && !dut.look_q[d].bad && dut.d_line[d] == '0)
            assert (dut.run_q == '0);
          if (dut.look_q[d].hit && dut.d_line[d] != '0)
            assert (dut.d_line[d] == one_hot(dut.look_q[d].line));
        end
        if (d == 1 && dut.look_q[d].hit && (dut.d_line[d] & dut.seal) != '0)
          assert (dut.look_q[d].seal && !dut.look_q[d].dirty);
      end
      if (init && rst_ni && dut.b_valid_q[d])
        assert (dut.b_seg_q[d].region < 4'd3 &&
            (d == 0 || dut.b_seg_q[d].region != '0 || dut.b_seg_q[d].refuse != REFUSE_NONE));
    end
  end
  for (genvar c = 0; c < 2; c++) begin : g_class
    always_comb begin
      if (init && rst_ni) begin
        assert (dut.cand_ok[c] == (dut.cand[c] != '0));
        assert (one_at_most(dut.cand[c]) && one_at_most(dut.g_class[c].u_victim.next_q) &&
            (dut.cand[c] & dut.g_class[c].u_victim.next_q) == '0);
        if (dut.cand_ok[c]) assert (dut.cand[c] == one_hot(dut.cand_line[c]));
        assert (((dut.cand[c] | dut.g_class[c].u_victim.next_q | dut.g_class[c].u_victim.pool_q) &
            (busy | ~(dut.avail & CLASS[c]))) == '0);
      end
    end
  end
  logic unused;
  assign unused = ^{new_valid, lseg, of, clr_2};
endmodule
`default_nettype wire
