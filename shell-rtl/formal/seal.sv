// shef_seal with shef_versions: no chunk is handed to AES twice under one version, so no pair of
// key and IV is used twice: each version of a symbolic chunk is above the one before, between two
// wipes. A chunk of an `output` region has its region's epoch, one of a `counted` region the new
// value of its counter. Under a stop no version is raised, no line read, no key stream requested,
// nothing encrypted leaves and no tag is stored. A frozen region starts no seal. Assumed of the
// control unit: an epoch only increases, with a clear of the region's map, and while nothing is
// being sealed. The directory may send any chunk at any time. One `output` and one `counted` region
// of two chunks each; the versions may be queried at any time.
`default_nettype none
module seal
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
(
    input wire       clk_i,
    input wire       rst_ni,
    input wire       stop_i,
    input wire       frozen_i,
    input wire       chunk_valid_i,
    input wire       region_i,
    input wire       chunk_i,
    input wire       tag_gnt_i,
    input wire       mask_ready_i,
    input wire       raise_i,
    input wire       ask_valid_i,
    input wire       ver_valid_i,
    input wire       ask_region_i,
    input wire       ask_chunk_i,
    input wire       get_ready_i,
    input wire       ks_valid_i,
    input wire       beat_fire_i,
    input wire       mask_valid_i,
    input wire       acked_i,
    input wire       s_valid_i,
    input wire       put_ready_i
);
  localparam logic [MAX_REGIONS-1:0][31:0] NO = '0;
  logic init = 1'b0;
  logic raise, raise_q, begun;
  // places in the queue; chunks with due tags, with due acknowledgements
  logic [2:0] room, owed_s, owed_b;
  logic r, c, mine;                   // symbolic chunk, constant
  version_t last;
  logic [1:0] times;
  logic set_valid, set_ready, set_done, set_refused, set_last, go, twice, dropped, get_valid,
      beat_valid, put_valid, done, seal_idle, map_busy, chunk;
  reg_idx_t region;
  chunk_idx_t index;
  line_t line;
  version_t set_version, version, epoch;
  logic tag_req;
  assign chunk = chunk_valid_i && room != '0;
  shef_seal #(.Depth(4), .ChunkLog2({16{4'd6}}), .Base('0), .IsPlain('0)) dut (
      .clk_i, .rst_ni, .clr_i(1'b0), .stop_i, .frozen_i({15'd0, frozen_i}), .zero_addr_i('0),
      .chunk_valid_i(chunk), .chunk_line_i('0), .chunk_region_i({3'd0, region_i}),
      .chunk_index_i({39'd0, chunk_i}),
      .head_region_o(region), .head_chunk_o(index), .head_line_o(line),
      .set_valid_o(set_valid), .set_ready_i(set_ready), .set_done_i(set_done),
      .set_version_i(set_version), .set_refused_i(set_refused),
      .set_last_i(set_last), .head_version_o(version), .tag_req_o(tag_req), .tag_gnt_i,
      .mask_ready_i, .tagref_i('0),
      .go_o(go), .twice_o(twice), .dropped_o(dropped),
      .get_valid_o(get_valid), .get_ready_i, .get_line_o(), .get_beat_o(), .get_all_i(1'b0),
      .get_touched_i(1'b0), .get_data_i('0), .get_mark_i('0),
      .ks_valid_i, .ks_i('0), .beat_valid_o(beat_valid), .beat_fire_i(beat_fire_i && beat_valid),
      .beat_o(), .beat_strb_o(), .beat_plain_o(), .beat_region_o(),
      .beat_first_o(), .beat_last_o(), .beat_pow_o(), .burst_end_o(), .burst_addr_o(),
      .burst_len_o(),
      .s_valid_i(s_valid_i && owed_s != '0), .s_i('0), .tag_get_o(), .mask_valid_i, .mask_i('0),
      .put_valid_o(put_valid), .put_ready_i,
      .put_tag_o(), .acked_i(acked_i && owed_b != '0), .done_o(done), .done_line_o(),
      .done_last_o(), .waits_o(), .idle_o(seal_idle)
  );
  shef_versions #(
      .NRegions(2), .Depth(4), .MapWords(2), .MapNum({{14{32'd0}}, 32'd0, 32'd1}), .MapFirst(NO),
      .CountWords(2), .CountFirst(NO),
      .CountW(3), .IsOutput(16'd1)
  ) u_versions (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0), .busy_o(map_busy), .epoch_i({48'd0, epoch}),
      .clear_i(raise_q), .clear_mask_i(2'b01),
      .ask_valid_i, .ask_ready_o(), .ver_valid_i, .ver_ready_o(),
      .ask_region_i({3'd0, ask_region_i}), .ask_chunk_i({39'd0, ask_chunk_i}), .ask_bit_o(),
      .ans_region_i('0), .ans_valid_o(), .ans_ready_i(1'b0), .ans_version_o(), .ans_zero_o(),
      .ans_last_o(), .ans_none_o(),
      .set_valid_i(set_valid), .set_ready_o(set_ready), .set_region_i(region), .set_chunk_i(index),
      .set_done_o(set_done),
      .set_version_o(set_version), .set_refused_o(set_refused), .set_last_o(set_last),
      .touch_valid_i(1'b0), .touch_region_i('0), .touch_chunk_i('0), .tree_valid_o(),
      .tree_ready_i(1'b0), .tree_kind_o(), .tree_region_o(),
      .tree_chunk_o(), .tree_rsp_i(1'b0), .tree_rsp_bump_i(1'b0), .tree_rsp_version_i('0),
      .tree_rsp_last_i(1'b0),
      .count_region_i('0), .count_o(), .map_region_i('0), .map_valid_i(1'b0), .map_word_i('0),
      .map_o()
  );

  // ---- the control unit: an epoch from 1 on, the clear in the cycle after it is raised ----
  assign raise = raise_i && seal_idle && !chunk && begun && !map_busy && !raise_q && epoch != '1;
  assign mine = go && region == {3'd0, r} && index == {39'd0, c};
  always_ff @(posedge clk_i) begin
    r <= r;
    c <= c;
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (raise_q || map_busy) assume (!chunk_valid_i);
    if (!rst_ni) begin
      epoch <= 48'd1;
      raise_q <= 1'b0;
      begun <= 1'b0;
      room <= 3'd4;
      owed_s <= '0;
      owed_b <= '0;
      last <= '0;
      times <= '0;
    end else begin
      begun <= 1'b1;
      raise_q <= raise;
      if (raise) epoch <= epoch + 1'b1;
      room <= room - 3'(chunk) + 3'(done) + 3'(dropped);
      owed_s <= owed_s + 3'(go) - 3'(s_valid_i && owed_s != '0);
      owed_b <= owed_b + 3'(go) - 3'(acked_i && owed_b != '0);
      if (mine) begin
        last <= version;
        if (times != '1) times <= times + 1'b1;
      end
    end
  end
  logic waits, going;
  assign waits = dut.state_q == 2'd1;    // ST_WAIT
  assign going = dut.state_q == 2'd2;    // ST_GO
  always_comb begin
    if (init && rst_ni) begin
      if (mine) assert (version > last && (r || version == epoch));
      if (stop_i) assert (!set_valid && !tag_req && !go && !get_valid && !beat_valid &&
          !put_valid && !done);
      if (frozen_i && region == '0) assert (!set_valid && !go);
    end
    cover (init && rst_ni && mine && times == 2'd1 && r);
    cover (init && rst_ni && mine && times == 2'd1 && !r);
    cover (init && rst_ni && twice);
    cover (init && rst_ni && done);
  end

  // ---- supporting invariants ----
  logic head_mine, set_2;             // the symbolic chunk is at the head; a raise is under way
  // the last version that its counter gave; its value in memory, now and next
  version_t given, stored, raised;
  logic sealed, swept;                // its written bit; its counter has been zeroed
  function automatic version_t of(input logic [71:0] x);
    return {12'd0, c ? x[71:36] : x[35:0]};
  endfunction
  assign head_mine = dut.head_valid && region == {3'd0, r} && index == {39'd0, c};
  assign set_2 = head_mine && r && u_versions.g_counted.u_counters.done_q;
  assign stored = of(u_versions.g_counted.u_counters.g_bank[0].mem_q[0]);
  assign raised = of(u_versions.g_counted.u_counters.word_q);
  assign sealed = u_versions.u_written.mem_q[0][{4'd0, c}];
  assign swept = !u_versions.g_counted.u_counters.sweep_q ||
      u_versions.g_counted.u_counters.sweep_addr_q != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) given <= '0;
    else if (set_2 && !set_refused) given <= set_version;
  end
  always_comb begin
    if (init && rst_ni) begin
      // the queue: only requested chunks, and idle while epochs are raised or maps cleared
      assert (dut.u_queue.count_q <= 3'd4 &&
          2'(dut.u_queue.wp_q - dut.u_queue.rp_q) == dut.u_queue.count_q[1:0]);
      for (int k = 0; k < 4; k++)
        if ({1'b0, 2'(2'(k) - dut.u_queue.rp_q)} < dut.u_queue.count_q)
          assert (dut.u_queue.mem_q[k][43:41] == '0 && dut.u_queue.mem_q[k][39:1] == '0);
      if (dut.head_valid) assert (region <= 4'd1 && index <= 40'd1);
      if (raise_q || map_busy || !begun) assert (!dut.head_valid);
      if (dut.state_q != 2'd0) assert (dut.head_valid);
      // one version at a time, for the head
      assert (waits == (u_versions.u_written.set_read_q || u_versions.g_counted.u_counters.set_q ||
          u_versions.g_counted.u_counters.done_q));
      if (waits) assert (u_versions.u_written.set_read_q == (region == '0));
      // output: a chunk whose bit is clear was not sealed in this epoch
      if (u_versions.u_written.set_read_q)
        assert (!u_versions.u_written.set_addr_q &&
            u_versions.u_written.set_bit_q == {4'd0, index[0]} &&
            u_versions.u_written.word_q == u_versions.u_written.mem_q[0]);
      assert (epoch != '0);
      if (!r) begin
        assert (last <= epoch);
        if (raise_q || u_versions.u_written.todo_q[0] || u_versions.u_written.sweep_q || !sealed)
          assert (last < epoch);
        if (going && head_mine) assert (version == epoch && last < epoch && sealed);
      end
      if (u_versions.u_written.sweep_q)
        assert (!u_versions.u_written.sweep_addr_q && u_versions.u_written.sweep_left_q == 32'd1);
      if (!begun) assert (u_versions.u_written.todo_q == '1 && !u_versions.u_written.sweep_q);
      // counted: the counter holds the last version given
      if (r) begin
        assert (last <= given && given <= 48'd7);
        if (!swept || u_versions.g_counted.u_counters.sweep_q) assert (given == '0);
        if (swept) assert (stored == given);
        if (set_2) assert (u_versions.g_counted.u_counters.value_q == given + 1'b1 &&
            u_versions.g_counted.u_counters.refused_q == (given == 48'd7) &&
            u_versions.g_counted.u_counters.raise_q == !u_versions.g_counted.u_counters.refused_q);
        if (set_2 && !set_refused) assert (raised == given + 1'b1);
        if (going && head_mine) assert (version == given && last < given);
        if (!set_2 && u_versions.g_counted.u_counters.raise_q) assert (raised == given);
      end
      assert (!(u_versions.g_counted.u_counters.set_q && u_versions.g_counted.u_counters.done_q));
      if (u_versions.g_counted.u_counters.set_q)
        assert (u_versions.g_counted.u_counters.addr_q == '0 &&
            !u_versions.g_counted.u_counters.wide_q &&
            u_versions.g_counted.u_counters.high_q == index[0] &&
            !u_versions.g_counted.u_counters.sweep_q &&
            u_versions.g_counted.u_counters.g_bank[0].read_q ==
            u_versions.g_counted.u_counters.g_bank[0].mem_q[0]);
      if (u_versions.g_counted.u_counters.raise_q)
        assert (u_versions.g_counted.u_counters.done_q &&
            u_versions.g_counted.u_counters.raise_addr_q == '0 &&
            !u_versions.g_counted.u_counters.sweep_q);
    end
  end
  logic unused;
  assign unused = ^{line, put_valid, tag_req, set_last};
endmodule
`default_nettype wire
