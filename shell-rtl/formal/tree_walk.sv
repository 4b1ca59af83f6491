// shef_tree_walk: no node is requested or filled while a write of it is unanswered. While a node is
// in flight, no version is read from it, no request is answered from it and no node is sealed with
// it, except by an order that waits for its check. Two levels, two sets. The directories respond
// with anything, but never give away a way with a node in flight, nor hold a node that was sent
// out.
`default_nettype none
module tree_walk
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
(
    input wire                       clk_i,
    input wire                       rst_ni,
    input wire                       stop_i,
    input wire [MAX_REGIONS-1:0]     bad_i,
    input wire                       req_valid_i,
    input wire [1:0]                 req_kind_i,
    input wire reg_idx_t             req_region_i,
    input wire chunk_idx_t           req_chunk_i,
    input wire [7:0]                 hit_i,
    input wire way_t [7:0]           hit_way_i,
    input wire [7:0]                 room_i,
    input wire way_t [7:0]           victim_way_i,
    input wire [7:0]                 victim_dirty_i,
    input wire reg_idx_t [7:0]       victim_region_i,
    input wire node_t [7:0]          victim_node_i,
    input wire                       ver_ready_i,
    input wire version_t             ver_i,
    input wire                       fast_ready_i,
    input wire                       op_ready_i,
    input wire                       slow_done_i,
    input wire                       fill_done_i,
    input wire                       drop_valid_i,
    input wire slot_t                drop_slot_i,
    input wire                       ack_valid_i,
    input wire slot_t                ack_slot_i,
    input wire                       ar_ready_i
);
  localparam logic [MAX_REGIONS-1:0][2:0] LEVELS_OF = {{14{3'd0}}, 3'd1, 3'd2};
  logic req_ready, touch_take, touch_mark, ver_valid, fast_valid, op_valid, ar_valid, idle;
  logic [7:0] look_en, touch_en;
  reg_idx_t [TREE_TABLE-1:0] look_region;
  node_t [TREE_TABLE-1:0] look_node;
  reg_idx_t touch_region, ver_region;
  node_t touch_node, ver_node;
  way_t touch_way, ver_way;
  logic [3:0] busy;
  level_t ver_level;
  tree_op_t op;
  logic [63:0] ar_addr;
  shef_tree_walk #(.Sets(2), .Levels(2), .LevelsOf(LEVELS_OF)) dut (
      .clk_i, .rst_ni, .clr_i(1'b0), .stop_i, .bad_i, .req_valid_i, .req_ready_o(req_ready),
      .req_kind_i, .req_region_i, .req_chunk_i,
      .look_en_o(look_en), .look_region_o(look_region), .look_node_o(look_node), .busy_o(busy),
      .hit_i, .hit_way_i, .room_i, .victim_way_i,
      .victim_dirty_i, .victim_region_i, .victim_node_i, .touch_en_o(touch_en),
      .touch_take_o(touch_take), .touch_mark_o(touch_mark),
      .touch_region_o(touch_region), .touch_node_o(touch_node), .touch_way_o(touch_way),
      .ver_valid_o(ver_valid), .ver_ready_i, .ver_level_o(ver_level), .ver_region_o(ver_region),
      .ver_node_o(ver_node),
      .ver_way_o(ver_way), .ver_i, .fast_valid_o(fast_valid), .fast_ready_i, .op_valid_o(op_valid),
      .op_ready_i, .op_o(op), .slow_done_i,
      .fill_done_i, .drop_valid_i, .drop_slot_i, .ack_valid_i, .ack_slot_i, .ar_valid_o(ar_valid),
      .ar_ready_i, .ar_addr_o(ar_addr),
      .idle_o(idle)
  );

  logic init = 1'b0;
  // a node, and whether a write of it is unanswered, in which slot
  level_t level;
  reg_idx_t region;
  node_t node;
  logic out, mine;
  slot_t slot;
  // a place in a directory, and whether a node is in flight to it
  level_t at_level;
  logic at_set;
  way_t at_way;
  logic coming;
  logic [3:0] number;
  logic take, evict, root;
  logic is_parent;   // the place is that of the current parent
  assign take = op_valid && op.kind == OP_FILL;
  assign evict = op_valid && op.kind == OP_EVICT;
  assign mine = op.level == level && op.region == region && op.node == node;
  assign root = 3'(op.level + 3'd1) == LEVELS_OF[op.region];
  assign is_parent = at_level == 3'(op.level + 3'd1) && at_set == op.node[3] &&
      at_way == op.parent_way && !root;
  always_ff @(posedge clk_i) begin
    level <= level;
    region <= region;
    node <= node;
    at_level <= at_level;
    at_set <= at_set;
    at_way <= at_way;
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (req_region_i <= 4'd1 && req_kind_i != 2'd3);
    for (int i = 0; i < 2; i++)
      assume (3'(i) < LEVELS_OF[victim_region_i[i][0]] && victim_region_i[i] <= 4'd1);
    // the directories: a node that was sent out is not a victim, a way with a node in flight is not
    // given away
    if (evict && mine) assume (!out);
    if (take && coming)
      assume (!(op.level == at_level && op.node[0] == at_set && op.way == at_way));
    // the executor and the memory respond only if they owe a response
    if (!dut.filling_q[dut.fill_rp_q]) assume (!fill_done_i);
    if (!dut.slot_busy_q[ack_slot_i]) assume (!ack_valid_i);
    if (!dut.slot_busy_q[drop_slot_i]) assume (!drop_valid_i);
    if (dut.slow_q == '0) assume (!slow_done_i);
    if (!rst_ni) begin
      out <= 1'b0;
      coming <= 1'b0;
    end else begin
      if ((ack_valid_i && ack_slot_i == slot) || (drop_valid_i && drop_slot_i == slot)) out <= 1'b0;
      if (evict && mine && op_ready_i) begin
        out <= 1'b1;
        slot <= op.slot;
      end
      if (fill_done_i && dut.fill_rp_q == number) coming <= 1'b0;
      if (take && op_ready_i && op.level == at_level && op.node[0] == at_set &&
          op.way == at_way) begin
        coming <= 1'b1;
        number <= dut.fill_wp_q;
      end
    end
  end

  always_comb begin
    if (init && rst_ni) begin
      if (out) assert (dut.slot_busy_q[slot] && dut.slot_q[slot] == {level, region, node});
      if (coming) assert (dut.filling_q[number] &&
          dut.fill_q[number][4:1] == {at_level[0], at_set, at_way} &&
          dut.fill_q[number][6:5] == at_level[2:1]);
      // the walker's current level
      assert (dut.level_q <= 3'd1 && dut.level_q < LEVELS_OF[dut.region_q[dut.level_q][0]]);
      for (int i = 0; i < 3; i++) assert (dut.region_q[i] <= 4'd1);
      if ((dut.state_q == 3'd4 || dut.state_q == 3'd5) && out)
        assert (!(dut.level_q == level && dut.region == region && dut.node == node));
      // requests and fills
      if (take && out) assert (!mine);
      if (take) assert (!op.known || op.version == ver_i);
      if (take && op.known && op.fetched) assert (op.version != '0);
      if (ver_valid)
        assert (!(out && ver_region == region && ver_node == node &&
            3'(ver_level - 3'd1) == level));
      // uses
      if (ver_valid && coming)
        assert (!(at_level == ver_level && at_set == ver_node[3] && at_way == ver_way &&
            ver_level != LEVELS_OF[ver_region]));
      if (evict && coming && is_parent) assert (op.check_first);
      if ((fast_valid || (op_valid && (op.kind == OP_ASK || op.kind == OP_BUMP))) && coming &&
          at_level == '0 && !bad_i[op.region]) begin
        if (at_set == op.node[0] && at_way == op.way) assert (op.check_first && !fast_valid);
      end
      if (stop_i) assert (!op_valid && !fast_valid && !ver_valid && !req_ready);
    end
    cover (init && rst_ni && evict && mine && op.check_first && coming && is_parent);
    cover (init && rst_ni && take && out && op.node == node && op.level == 3'd1);
    cover (init && rst_ni && fast_valid && fast_ready_i);
  end
endmodule
`default_nettype wire
