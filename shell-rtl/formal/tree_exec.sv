// shef_tree_exec: a node is sealed only under its parent's counter plus one, and only after that
// counter was stored. An order that needs a node in flight waits for every check. The stored
// counters of a fetched node are those that its check sees, under its parent's counter; for a
// counter of 0 they are zeros. A query returns the stored counter, a raise stores the value that it
// returns. Nothing happens while stopped.
`default_nettype none
module tree_exec
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
(
    input wire                    clk_i,
    input wire                    rst_ni,
    input wire                    stop_i,
    input wire [MAX_REGIONS-1:0]  bad_i,
    input wire                    op_valid_i,
    input wire                    fast_valid_i,
    input wire tree_op_t          op_i,
    input wire                    r_valid_i,
    input wire [511:0]            r_data_i,
    input wire [383:0]            own_data_i,
    input wire version_t          par_version_i,
    input wire                    mac_ready_i,
    input wire                    check_done_i
);
  logic op_ready, fast_ready, slow_done, drop, rsp, rsp_bump, rsp_exhausted, own_en, par_en, hold,
      wr_parent, mac_valid, overflow, idle;
  slot_t drop_slot;
  version_t rsp_version;
  level_t own_level, par_level, wr_level;
  node_t own_node, par_child, wr_node;
  way_t own_way, par_way, wr_way;
  reg_idx_t par_region, wr_region, overflow_region;
  chunk_idx_t overflow_index;
  logic [7:0] lanes;
  logic [383:0] wr_data;
  tree_mac_t mac;
  logic [511:0] mac_data;
  shef_tree_exec dut (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0), .stop_i, .bad_i,
      .op_valid_i, .op_ready_o(op_ready), .fast_valid_i, .fast_ready_o(fast_ready), .op_i,
      .slow_done_o(slow_done),
      .drop_valid_o(drop), .drop_slot_o(drop_slot), .rsp_valid_o(rsp), .rsp_bump_o(rsp_bump),
      .rsp_version_o(rsp_version),
      .rsp_exhausted_o(rsp_exhausted), .r_valid_i, .r_data_i,
      .own_en_o(own_en), .own_level_o(own_level), .own_node_o(own_node), .own_way_o(own_way),
      .own_data_i,
      .par_en_o(par_en), .par_level_o(par_level), .par_region_o(par_region),
      .par_child_o(par_child), .par_way_o(par_way), .par_version_i,
      .hold_o(hold), .wr_lanes_o(lanes), .wr_parent_o(wr_parent), .wr_level_o(wr_level),
      .wr_region_o(wr_region), .wr_node_o(wr_node),
      .wr_way_o(wr_way), .wr_data_o(wr_data),
      .mac_valid_o(mac_valid), .mac_ready_i, .mac_o(mac), .mac_data_o(mac_data), .check_done_i,
      .overflow_o(overflow), .overflow_index_o(overflow_index), .overflow_region_o(overflow_region),
      .idle_o(idle)
  );

  localparam logic [1:0] READ = 2'd1, GO = 2'd2, SEAL = 2'd3;
  logic init = 1'b0;
  logic [5:0] out;          // checks in flight
  logic raised;             // a counter was stored, its node is not sealed yet
  level_t raised_level;
  reg_idx_t raised_region;
  node_t raised_node;
  version_t raised_version;
  logic fill, sealing, evicting;
  // the last cycle's write of one counter of level 0, and its query
  logic wrote, wrote_stop, asked, asked_bump, asked_bad;
  version_t wrote_version, read_version, seen;
  assign fill = mac_valid && mac_ready_i && mac.kind != MAC_SEAL;
  assign sealing = mac_valid && mac_ready_i && mac.kind == MAC_SEAL;
  assign evicting = dut.op.kind == OP_EVICT && (dut.state_q != 2'd0 || par_en);

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    // the walker has at most TREE_FILLS nodes in flight, and gives no order twice
    if (out == 6'(TREE_FILLS)) assume (!mac_ready_i);
    if (out == '0) assume (!check_done_i);
    assume (!(op_valid_i && fast_valid_i));
    if (fast_valid_i) assume (op_i.kind == OP_ASK || op_i.kind == OP_BUMP);
    if (op_i.kind == OP_ASK || op_i.kind == OP_BUMP) assume (op_i.level == '0);
    if (op_i.known && op_i.fetched) assume (op_i.version != '0);
    if (!rst_ni) begin
      out <= '0;
      raised <= 1'b0;
      wrote <= 1'b0;
      asked <= 1'b0;
    end else begin
      out <= out + 6'(fill) - 6'(check_done_i);
      if (sealing) raised <= 1'b0;
      if (lanes != '0 && wr_parent) begin
        raised <= 1'b1;
        raised_level <= wr_level - 3'd1;
        raised_region <= wr_region;
        raised_node <= wr_node;
        raised_version <= wr_data[47:0];
      end
      wrote <= lanes != '0 && !wr_parent && !fill;
      wrote_version <= wr_data[47:0];
      wrote_stop <= stop_i;
      if (dut.busy_q) seen <= own_data_i[tree_bit(dut.ask_q.lane)+:48];
      asked <= (dut.busy_q && dut.ask_q.kind != OP_BUMP) || dut.bump_q;
      asked_bump <= dut.bump_q;
      asked_bad <= bad_i[dut.ask_q.region];
      read_version <= dut.bump_q ? seen : own_data_i[tree_bit(dut.ask_q.lane)+:48];
    end
  end

  tree_op_t order[16];
  for (genvar i = 0; i < 16; i++) begin : g_order
    assign order[i] = dut.u_ops.mem_q[i];
  end

  always_comb begin
    if (init && rst_ni) begin
      // orders in the queue
      assert (dut.u_ops.count_q <= 5'd16 &&
          4'(dut.u_ops.wp_q - dut.u_ops.rp_q) == dut.u_ops.count_q[3:0]);
      for (int i = 0; i < 16; i++)
        if (4'(4'(i) - dut.u_ops.rp_q) < dut.u_ops.count_q)
          assert (!(order[i].known && order[i].fetched) || order[i].version != '0);
      assert (dut.checks_q == out && out <= 6'(TREE_FILLS));
      assert (dut.state_q == 2'd0 || (dut.op_valid &&
          (dut.op.kind == OP_EVICT || dut.op.kind == OP_FILL)));
      assert (dut.state_q != SEAL || dut.op.kind == OP_EVICT);
      assert (raised == (dut.state_q == SEAL));
      if (raised) begin
        assert (raised_version == dut.sealed_q && raised_version != '0);
        assert (raised_level == dut.op.level && raised_region == dut.op.region &&
            raised_node == dut.op.node);
      end
      if (dut.state_q != 2'd0 && evicting && dut.op.check_first) assert (out == '0);
      // a counter is raised by one, in its own place, never past its limit, and nothing else of an
      // upper level is written
      if (lanes != '0 && wr_parent) begin
        assert (!raised && evicting && dut.state_q == GO && par_version_i != '1 &&
            wr_data == {8{par_version_i + 48'd1}});
        assert (lanes == 8'h80 >> wr_node[2:0] && wr_node == dut.op.node &&
            wr_region == dut.op.region && wr_level == dut.op.level + 3'd1);
        assert (!dut.op.check_first || out == '0);
      end
      // a seal is of the node whose counter was raised, once, under the new counter
      if (mac_valid && mac.kind == MAC_SEAL) begin
        assert (raised && mac.version == raised_version && mac.level == raised_level &&
            mac.region == raised_region && mac.node == raised_node);
        assert (mac_data == {own_data_i, 128'd0});
      end
      if (evicting) assert (!fast_ready);
      // an incoming node
      if (fill) begin
        assert (lanes == '1 && !wr_parent && wr_level == mac.level && wr_node == mac.node &&
            dut.op.kind == OP_FILL);
        assert (mac.version == (dut.op.known ? dut.op.version : par_version_i) || !dut.op.fetched);
        assert ((mac.kind == MAC_CHECK) == (dut.op.fetched && mac.version != '0));
        assert (wr_data == (mac.kind == MAC_CHECK ? mac_data[511:128] : '0));
      end
      if (slow_done) assert (!dut.op.check_first || out == '0);
      if (par_en && dut.op.kind == OP_EVICT) assert (!bad_i[dut.op.region]);
      // responses
      assert (!(dut.busy_q && dut.bump_q) &&
          (!dut.bump_q || (dut.ask_q.kind == OP_BUMP && dut.counter_q == seen)));
      if (rsp) begin
        assert (asked && rsp_bump == asked_bump);
        assert (rsp_exhausted == (asked_bad || (asked_bump && read_version == '1)));
        if (asked_bad) assert (rsp_version == '0 && !wrote);
        else if (!asked_bump) assert (rsp_version == read_version && !wrote);
        else if (!rsp_exhausted)
          assert (wrote && wrote_version == rsp_version && rsp_version == read_version + 48'd1);
        else assert (!wrote);
      end
      if (wrote) assert (rsp && rsp_bump && !wrote_stop);
      if (stop_i) assert (!mac_valid && lanes == '0 && !slow_done && !par_en && !drop && !overflow);
    end
    cover (init && rst_ni && sealing && dut.op.check_first);
    cover (init && rst_ni && fill && mac.kind == MAC_NONE && dut.op.fetched);
    cover (init && rst_ni && rsp && rsp_bump && !rsp_exhausted && dut.op_valid);
    cover (init && rst_ni && overflow);
  end
endmodule
`default_nettype wire
