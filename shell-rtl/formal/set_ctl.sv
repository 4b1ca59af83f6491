// shef_set_ctl: a stop condition stops the set from the next cycle until a wipe. With FreezeRegion
// a fault of one region's data freezes that region until a wipe, and the others stop the set. A
// first fault is reported once. An epoch only increases during a session, only a wipe clears it,
// and it never changes without a clear of its map in the next cycle. A wipe completes only after
// the sweep has reached every word (`wipe` proves that it leaves zeros). A command cuts off writes
// only after the accelerator has owed one for 1023 cycles without a gap. Assumed: a first epoch
// arrives while no command runs. Two regions, both with epochs; four words.
`default_nettype none
module set_ctl
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire             clk_i,
    input wire             rst_ni,
    input wire             freeze_i,        // which of the two policies is checked
    input wire             enable_i,
    input wire             stop_i,
    input wire             epoch_we_i,
    input wire             epoch_region_i,
    input wire version_t   epoch_i,
    input wire             cmd_valid_i,
    input wire set_cmd_e   cmd_i,
    input wire             cmd_region_i,
    input wire version_t   cmd_epoch_i,
    input wire             write_held_i,
    input wire             write_owed_i,
    input wire             lines_dirty_i,
    input wire             tag_fail_i,
    input wire             tag_region_i,
    input wire             node_fail_i,
    input wire             node_internal_i,
    input wire             node_region_i,
    input wire             rd_fault_i,
    input wire fault_t     rd_i,
    input wire             wr_fault_i,
    input wire             twice_i,
    input wire             late_i,
    input wire             wipe_i,
    input wire             port_idle_i
);
  localparam id_tab_t ID = {{14{8'hff}}, 8'd1, 8'd0};
  logic [1:0] kill, stop, halted, cmd_ready, cmd_done, cmd_idle, fault_valid, clr, clear, wiped;
  logic [1:0][MAX_REGIONS-1:0] frozen;
  version_t [1:0][1:0] epoch;
  logic [1:0][1:0] clear_mask;
  fault_t [1:0] fault;
  chunk_t failed;
  logic [1:0][10:0] dut_kill;
  logic [1:0][ZERO_W-1:0] zero;
  logic [ZERO_W-1:0] word;       // symbolic word of the memories, constant
  logic init = 1'b0;
  assign failed = '{line: '0, region: {3'd0, tag_region_i}, chunk: 40'd3, version: 48'd5};
  for (genvar p = 0; p < 2; p++) begin : g_policy
    shef_set_ctl #(.NRegions(2), .SweepWords(4), .FreezeRegion(p == 1), .RegionId(ID),
        .HasEpoch(16'd3)) dut (
        .clk_i, .rst_ni, .enable_i, .stop_i, .stop_o(stop[p]), .frozen_o(frozen[p]),
        .epoch_we_i, .epoch_region_i({3'd0, epoch_region_i}), .epoch_i, .epoch_o(epoch[p]),
        .epoch_zero_o(), .clear_map_o(clear[p]),
        .clear_mask_o(clear_mask[p]), .map_busy_i(1'b0),
        .cmd_valid_i, .cmd_ready_o(cmd_ready[p]), .cmd_i, .cmd_region_i({3'd0, cmd_region_i}),
        .cmd_epoch_i, .cmd_done_o(cmd_done[p]), .cmd_err_o(),
        .hold_rd_o(), .hold_wr_o(), .flush_lines_o(), .flush_tags_o(), .kill_writes_o(kill[p]),
        .drop_o(), .drop_mask_o(), .drop_tags_o(),
        .write_held_i, .write_owed_i, .lines_dirty_i, .lines_fetching_i(1'b0), .tags_dirty_i(1'b0),
        .cmd_idle_o(cmd_idle[p]),
        .tag_fail_i, .tag_fail_chunk_i(failed), .twice_i, .twice_region_i({3'd0, tag_region_i}),
        .twice_chunk_i('0),
        .node_fail_i, .node_internal_i, .node_region_i({3'd0, node_region_i}), .node_index_i('0),
        .node_version_i('0),
        .rd_fault_valid_i(rd_fault_i), .rd_fault_i(rd_i), .wr_fault_valid_i(wr_fault_i),
        .wr_fault_i('{kind: FAULT_BUS, region: 8'hff, chunk: '0, version: '0}), .late_i,
        .fault_valid_o(fault_valid[p]), .fault_o(fault[p]),
        .wipe_i, .wipe_done_o(wiped[p]), .clr_o(clr[p]), .zero_addr_o(zero[p]), .gcm_wiped_i(1'b1),
        .port_idle_i
    );
    assign halted[p] = dut.halt_q;
    assign dut_kill[p] = dut.flush_lines_o ? dut.kill_q : '0;
    // the sweep reaches that word before the wipe completes
    logic seen, calm, clearing;
    always_ff @(posedge clk_i) begin
      calm <= port_idle_i || late_i;
      clearing <= dut.wipe_q == 2'd1;   // W_CLEAR
      if (!clr[p]) seen <= 1'b0;
      else if (zero[p] == word) seen <= 1'b1;
    end
    always_comb begin
      if (init && rst_ni) begin
        if (wiped[p]) assert (clr[p] && seen);
        assert (dut.zero_addr_q < 16'd4 && (!clr[p] || seen || word >= dut.zero_addr_q));
        if (clr[p] && dut.swept_q) assert (dut.zero_addr_q == 16'd3 && seen);
        if (dut.wipe_q == 2'd2) assert (dut.swept_q);   // W_DONE
        // nor before memory owes nothing, or is dead
        if (dut.wipe_q == 2'd2 && clearing) assert (calm);
      end
      cover (init && rst_ni && wiped[p] && word == 16'd2);
    end
  end

  // the checked policy; constant
  logic p;
  logic r;                       // symbolic region, constant
  logic rd_own, any, stops, freezes;
  assign rd_own = rd_i.kind == FAULT_BUS && rd_i.region != 8'hff;
  assign any = tag_fail_i || node_fail_i || rd_fault_i || wr_fault_i || twice_i || late_i;
  // with the policy `region`: faults of no region, and faults other than of data
  assign stops = !p ? any : twice_i || (node_fail_i && node_internal_i) ||
      (rd_fault_i && !rd_own) || wr_fault_i;
  assign freezes = p && ((tag_fail_i && tag_region_i == r) || (node_fail_i && node_region_i == r) ||
      (rd_fault_i && rd_own && rd_i.region == {7'd0, r}));
  logic must_stop, must_freeze, told, quiet;
  // number of preceding cycles in which the accelerator owed a write, without a gap
  logic [9:0] owed;
  version_t last;
  logic clr_q, en_q, live;       // live: no reset in the cycle before
  always_ff @(posedge clk_i) begin
    p <= p;
    r <= r;
    word <= word;
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (p == freeze_i);
    assume (word < 16'd4);
    assume (rd_i.region == 8'hff || rd_i.region <= 8'd1);
    if (epoch_we_i) assume (cmd_idle[p] && !cmd_valid_i);
    assume (rd_i.kind == FAULT_BUS || rd_i.kind == FAULT_PROTOCOL);
    clr_q <= clr[p];
    en_q <= enable_i;
    live <= rst_ni;
    last <= epoch[p][r];
    if (!rst_ni || clr[p]) begin
      must_stop <= 1'b0;
      must_freeze <= 1'b0;
      told <= 1'b0;
    end else begin
      // a second fault in the cycle of a first one that does not stop is not lost: it stops or
      // freezes as well
      if (stops) must_stop <= 1'b1;
      if (freezes && !stop[p]) must_freeze <= 1'b1;
      if (fault_valid[p] && must_stop) told <= 1'b1;
    end
    quiet <= rst_ni && !any;
    if (!rst_ni || !write_owed_i) owed <= '0;
    else if (owed != '1) owed <= owed + 1'b1;
  end
  always_comb begin
    if (init && rst_ni) begin
      if (must_stop) assert (stop[p] && halted[p]);
      if (stop_i || clr[p]) assert (stop[p]);
      if (must_freeze) assert (frozen[p][r]);
      if (!p) assert (frozen[p] == '0);
      if (told && quiet) assert (!fault_valid[p]);
      if (fault_valid[p]) assert (fault[p].kind != FAULT_NONE);
      if (fault_valid[p]) assert (!quiet);
      // a write is cut off only after the accelerator has owed it for 1023 cycles
      if (kill[p]) assert (owed == 10'd1023);
      assert (dut_kill[p] <= {1'b0, owed} + 11'd1);
      // epochs
      if (live && clr_q) assert (epoch[p][r] == '0);
      if (live && epoch[p][r] != last && !clr_q)
        assert ((epoch[p][r] > last || !en_q) && clear[p] && clear_mask[p][r]);
    end
    cover (init && rst_ni && p && must_freeze && !stop[p] && frozen[p] == 16'd2 && cmd_done[p]);
    cover (init && rst_ni && told && must_stop);
    cover (init && rst_ni && epoch[p][r] > last && last != '0 && en_q);
  end
  logic unused;
  assign unused = ^{cmd_ready, wiped};
endmodule
`default_nettype wire
