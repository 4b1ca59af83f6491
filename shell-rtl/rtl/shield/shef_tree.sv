// Counter trees of a set: versions of chunks whose counters are in memory, under a tree with its
// top on chip.
//
// req_*: valid/ready, served in order. ASK: the chunk's version. BUMP: raise it and return the new
// one, or refuse (rsp_exhausted_o) when it is all ones. TOUCH: fetch the chunk's node, without a
// response. rsp_*: one pulse per ASK and BUMP; three cycles after the request when its node is on
// chip, one request every two cycles; requests behind a missing node advance as far as they can
// (walker and executor). A region whose node fails its check is reported once on fault_*
// (internal_o: an inner counter at its limit instead); from then on its requests are refused:
// version 0, rsp_exhausted_o, also for ASK.
// ar_*, r_*: reads of 64-byte nodes, responses in order, always accepted. wb_*: node writes; ack_i:
// one was acknowledged, in order.
// job_*, ks_*, gh_*, s_*: tag masks and hashes under the region's node key; results in order,
// always accepted. A node is used only after it is verified up to the root table; a counter is
// raised before the node under it is sealed with it, so no version seals twice. Nodes are written
// back only to make room.
// stop_i: no request is accepted or answered, and nothing new leaves. clr_i (with stop_i): a sweep
// of tree_sweep_words addresses zeroes everything. idle_o: memory and crypto owe nothing; with
// stop_i: nothing waits to leave.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_tree
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [NRegions-1:0] Regions = '0,
    parameter int unsigned Sets = 128,     // of each node cache, four ways
    parameter int unsigned RootLog2 = 16   // entries a region may have in the root table
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,
    input  wire                  clr_i,
    input  wire [ZERO_W-1:0]     zero_addr_i,
    input  wire                  stop_i,

    input  wire                  req_valid_i,
    output logic                 req_ready_o,
    input  wire [1:0]            req_kind_i,
    input  wire  reg_idx_t       req_region_i,
    input  wire  chunk_idx_t     req_chunk_i,
    output logic                 rsp_valid_o,
    output logic                 rsp_bump_o,
    output version_t             rsp_version_o,
    output logic                 rsp_exhausted_o,

    output logic                 ar_valid_o,
    input  wire                  ar_ready_i,
    output logic [63:0]          ar_addr_o,
    input  wire                  r_valid_i,
    input  wire [511:0]          r_data_i,
    output logic                 wb_valid_o,
    input  wire                  wb_ready_i,
    output logic [63:0]          wb_addr_o,
    output logic [511:0]         wb_data_o,
    input  wire                  ack_i,

    output logic                 job_valid_o,
    input  wire                  job_ready_i,
    output reg_idx_t             job_region_o,
    output chunk_idx_t           job_index_o,
    output version_t             job_version_o,
    input  wire                  ks_valid_i,
    input  wire [127:0]          ks_i,
    output logic                 gh_valid_o,
    input  wire                  gh_ready_i,
    output reg_idx_t             gh_region_o,
    output logic [511:0]         gh_data_o,
    input  wire                  s_valid_i,
    input  wire [127:0]          s_i,

    output logic                 fault_valid_o,
    output reg_idx_t             fault_region_o,
    output chunk_idx_t           fault_index_o,
    output version_t             fault_version_o,
    output logic                 fault_internal_o,
    output logic                 idle_o
);
  localparam int unsigned SW = $clog2(Sets);

  function automatic logic [MAX_REGIONS-1:0][2:0] tab_levels();
    logic [MAX_REGIONS-1:0][2:0] t;
    t = '0;
    for (int unsigned r = 0; r < NRegions; r++) t[r] = 3'(tree_levels(Regions[r], RootLog2));
    return t;
  endfunction
  function automatic logic [MAX_REGIONS-1:0][TREE_TABLE-1:0][63:0] tab_base();
    logic [MAX_REGIONS-1:0][TREE_TABLE-1:0][63:0] t;
    t = '0;
    for (int unsigned r = 0; r < NRegions; r++)
      for (int unsigned l = 0; l < tree_levels(Regions[r], RootLog2); l++)
        t[r][l] = tree_base(Regions[r], l);
    return t;
  endfunction
  function automatic logic [MAX_REGIONS-1:0][16:0] tab_root();
    logic [MAX_REGIONS-1:0][16:0] t;
    logic [16:0] sum;
    t = '0;
    sum = '0;
    for (int unsigned r = 0; r < NRegions; r++) begin
      t[r] = sum;
      sum = sum + 17'(tree_roots(Regions[r], RootLog2));
    end
    return t;
  endfunction
  function automatic int unsigned num_levels();
    int unsigned n;
    n = 1;
    for (int unsigned r = 0; r < NRegions; r++)
      if (tree_levels(Regions[r], RootLog2) > n) n = tree_levels(Regions[r], RootLog2);
    return n;
  endfunction
  function automatic int unsigned num_roots();
    int unsigned n;
    n = 0;
    for (int unsigned r = 0; r < NRegions; r++) n = n + tree_roots(Regions[r], RootLog2);
    return (n == 0) ? 1 : n;
  endfunction

  localparam int unsigned LEVELS = num_levels();
  localparam int unsigned ROOTS = num_roots();
  localparam logic [MAX_REGIONS-1:0][2:0] LEVELS_OF = tab_levels();
  localparam logic [MAX_REGIONS-1:0][TREE_TABLE-1:0][63:0] BASE = tab_base();
  localparam logic [MAX_REGIONS-1:0][16:0] ROOT_FIRST = tab_root();

  if (Sets < 2 || (Sets & (Sets - 1)) != 0) begin : g_bad_sets
    $error("shef_tree: Sets is a power of two, at least 2");
  end
  if (ROOTS > 131072) begin : g_bad_roots
    $error("shef_tree: the root table holds at most 2^17 counters");
  end

  // ---- walker and executor ----
  logic [MAX_REGIONS-1:0] bad_q;
  logic [TREE_TABLE-1:0] look_en, hit, room, victim_dirty, touch_en;
  way_t [TREE_TABLE-1:0] hit_way, victim_way;
  reg_idx_t [TREE_TABLE-1:0] victim_region;
  node_t [TREE_TABLE-1:0] victim_node;
  reg_idx_t [TREE_TABLE-1:0] look_region;
  node_t [TREE_TABLE-1:0] look_node;
  reg_idx_t touch_region, ver_region, par_region, wr_region, cnt_region;
  node_t touch_node, ver_node, own_node, par_child, wr_node, cnt_child;
  way_t touch_way, ver_way, own_way, par_way, wr_way, cnt_way;
  level_t ver_level, own_level, par_level, wr_level, cnt_level, cnt_level_q, own_level_q;
  logic [3:0] busy;
  logic touch_take, touch_mark, ver_valid, ver_ready, fast_valid, fast_ready, op_valid, op_ready,
      slow_done, drop_valid, ack_valid;
  logic own_en, par_en, hold, wr_parent, mac_valid, mac_ready, done_valid, done_bad, overflow,
      walk_idle, exec_idle, mac_idle;
  tree_op_t op;
  chunk_idx_t overflow_index;
  reg_idx_t overflow_region;
  slot_t drop_slot, ack_slot;
  logic [7:0] wr_lanes;
  logic [383:0] wr_data, own_data;
  logic [511:0] mac_data, wb_blocks;
  tree_mac_t mac, done, wb;
  version_t counter, ver_q, par_q;

  shef_tree_walk #(.Sets(Sets), .Levels(LEVELS), .LevelsOf(LEVELS_OF), .Base(BASE)) u_walk (
      .clk_i, .rst_ni, .clr_i, .stop_i, .bad_i(bad_q),
      .req_valid_i, .req_ready_o, .req_kind_i, .req_region_i, .req_chunk_i,
      .look_en_o(look_en), .look_region_o(look_region), .look_node_o(look_node), .busy_o(busy),
      .hit_i(hit), .hit_way_i(hit_way),
      .room_i(room), .victim_way_i(victim_way), .victim_dirty_i(victim_dirty),
      .victim_region_i(victim_region),
      .victim_node_i(victim_node), .touch_en_o(touch_en), .touch_take_o(touch_take),
      .touch_mark_o(touch_mark),
      .touch_region_o(touch_region), .touch_node_o(touch_node), .touch_way_o(touch_way),
      .ver_valid_o(ver_valid), .ver_ready_i(ver_ready), .ver_level_o(ver_level),
      .ver_region_o(ver_region), .ver_node_o(ver_node),
      .ver_way_o(ver_way), .ver_i(ver_q),
      .fast_valid_o(fast_valid), .fast_ready_i(fast_ready), .op_valid_o(op_valid),
      .op_ready_i(op_ready), .op_o(op),
      .slow_done_i(slow_done), .fill_done_i(done_valid), .drop_valid_i(drop_valid),
      .drop_slot_i(drop_slot),
      .ack_valid_i(ack_valid && ack_i), .ack_slot_i(ack_slot),
      .ar_valid_o, .ar_ready_i, .ar_addr_o, .idle_o(walk_idle)
  );

  shef_tree_exec u_exec (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i, .stop_i, .bad_i(bad_q),
      .op_valid_i(op_valid), .op_ready_o(op_ready), .fast_valid_i(fast_valid),
      .fast_ready_o(fast_ready), .op_i(op),
      .slow_done_o(slow_done), .drop_valid_o(drop_valid), .drop_slot_o(drop_slot),
      .rsp_valid_o, .rsp_bump_o, .rsp_version_o, .rsp_exhausted_o, .r_valid_i, .r_data_i,
      .own_en_o(own_en), .own_level_o(own_level), .own_node_o(own_node), .own_way_o(own_way),
      .own_data_i(own_data),
      .par_en_o(par_en), .par_level_o(par_level), .par_region_o(par_region),
      .par_child_o(par_child), .par_way_o(par_way),
      .par_version_i(par_q), .hold_o(hold),
      .wr_lanes_o(wr_lanes), .wr_parent_o(wr_parent), .wr_level_o(wr_level),
      .wr_region_o(wr_region), .wr_node_o(wr_node),
      .wr_way_o(wr_way), .wr_data_o(wr_data),
      .mac_valid_o(mac_valid), .mac_ready_i(mac_ready), .mac_o(mac), .mac_data_o(mac_data),
      .check_done_i(done_valid),
      .overflow_o(overflow), .overflow_index_o(overflow_index),
      .overflow_region_o(overflow_region), .idle_o(exec_idle)
  );

  shef_tree_mac u_mac (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i, .stop_i,
      .in_valid_i(mac_valid), .in_ready_o(mac_ready), .in_i(mac), .in_data_i(mac_data),
      .job_valid_o, .job_ready_i, .job_region_o, .job_index_o, .job_version_o, .ks_valid_i, .ks_i,
      .gh_valid_o, .gh_ready_i, .gh_region_o, .gh_data_o, .s_valid_i, .s_i,
      .done_valid_o(done_valid), .done_bad_o(done_bad), .done_o(done),
      .wb_valid_o, .wb_ready_i, .wb_o(wb), .wb_data_o(wb_blocks), .idle_o(mac_idle)
  );
  assign wb_addr_o = BASE[wb.region][wb.level] + 64'({wb.node, 6'd0});
  assign wb_data_o = byte_reverse512(wb_blocks);

  shef_fifo #(.W($bits(slot_t)), .Depth(TREE_SLOTS)) u_acks (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$bits(slot_t)-1:0]),
      .in_valid_i(wb_valid_o && wb_ready_i), .in_ready_o(), .in_data_i(wb.slot),
      .out_valid_o(ack_valid), .out_ready_i(ack_i), .out_data_o(ack_slot), .count_o()
  );

  // ---- counters: those of nodes, and the root table ----
  assign ver_ready = !par_en && !hold;
  assign cnt_level = par_en ? par_level : ver_level;
  assign cnt_region = par_en ? par_region : ver_region;
  assign cnt_child = par_en ? par_child : ver_node;
  assign cnt_way = par_en ? par_way : ver_way;
  logic cnt_en, cnt_root, cnt_root_q, cnt_par_q, cnt_ver_q;
  lane_t cnt_lane_q;
  logic [TREE_TABLE-1:0][383:0] level_data;
  version_t root_data;
  assign cnt_en = par_en || (ver_valid && ver_ready);
  assign cnt_root = cnt_level == LEVELS_OF[cnt_region];

  for (genvar l = 0; l < int'(LEVELS); l++) begin : g_level
    logic own_here, cnt_here, wr_here, unused_node;
    node_t rd_node, wr_at;
    assign own_here = own_en && own_level == level_t'(l);
    // the requested counters are those of parents; a level never gets both requests
    assign cnt_here = l != 0 && cnt_en && !cnt_root && cnt_level == level_t'(l);
    assign wr_here = wr_level == level_t'(l) && !(wr_parent && wr_level == LEVELS_OF[wr_region]);
    assign rd_node = cnt_here ? cnt_child >> 3 : own_node;
    assign wr_at = wr_parent ? wr_node >> 3 : wr_node;
    assign unused_node = ^{rd_node, wr_at};
    shef_tree_level #(.Sets(Sets)) u_level (
        .clk_i, .clr_i, .zero_addr_i,
        .look_en_i(look_en[l]), .look_region_i(look_region[l]), .look_node_i(look_node[l]),
        .busy_i(busy), .hit_o(hit[l]),
        .hit_way_o(hit_way[l]), .room_o(room[l]), .victim_way_o(victim_way[l]),
        .victim_dirty_o(victim_dirty[l]),
        .victim_region_o(victim_region[l]), .victim_node_o(victim_node[l]),
        .touch_en_i(touch_en[l]), .touch_take_i(touch_take), .touch_mark_i(touch_mark),
        .touch_region_i(touch_region),
        .touch_node_i(touch_node), .touch_way_i(touch_way),
        .rd_en_i(own_here || cnt_here), .rd_set_i(rd_node[SW-1:0]),
        .rd_way_i(cnt_here ? cnt_way : own_way),
        .rd_data_o(level_data[l]),
        .wr_lanes_i(wr_here ? wr_lanes : 8'd0), .wr_set_i(wr_at[SW-1:0]), .wr_way_i(wr_way),
        .wr_data_i(wr_data)
    );
  end

  for (genvar l = int'(LEVELS); l < int'(TREE_TABLE); l++) begin : g_none
    assign {hit[l], room[l], victim_dirty[l]} = '0;
    assign {hit_way[l], victim_way[l]} = '0;
    assign victim_region[l] = '0;
    assign victim_node[l] = '0;
    assign level_data[l] = '0;
  end

  shef_tree_root #(.Words(ROOTS)) u_root (
      .clk_i, .clr_i, .zero_addr_i,
      .rd_en_i(cnt_en && cnt_root), .rd_addr_i(ROOT_FIRST[cnt_region] + 17'(cnt_child)),
      .rd_data_o(root_data),
      .wr_en_i(wr_parent && wr_lanes != '0 && wr_level == LEVELS_OF[wr_region]),
      .wr_addr_i(ROOT_FIRST[wr_region] + 17'(wr_node)), .wr_data_i(wr_data[47:0])
  );

  assign own_data = level_data[own_level_q];
  assign counter = cnt_root_q ? root_data : level_data[cnt_level_q][tree_bit(cnt_lane_q)+:48];
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      own_level_q <= '0;
      cnt_level_q <= '0;
      cnt_lane_q <= '0;
      cnt_root_q <= 1'b0;
      cnt_par_q <= 1'b0;
      cnt_ver_q <= 1'b0;
      ver_q <= '0;
      par_q <= '0;
    end else begin
      cnt_par_q <= par_en;
      cnt_ver_q <= cnt_en && !par_en;
      if (own_en) own_level_q <= own_level;
      if (cnt_en) begin
        cnt_level_q <= cnt_root ? '0 : cnt_level;
        cnt_lane_q <= cnt_child[2:0];
        cnt_root_q <= cnt_root;
      end
      if (cnt_ver_q) ver_q <= counter;
      if (cnt_par_q) par_q <= counter;
    end
  end

  // ---- faults: the first of each region ----
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      bad_q <= '0;
      fault_valid_o <= 1'b0;
      fault_region_o <= '0;
      fault_index_o <= '0;
      fault_version_o <= '0;
      fault_internal_o <= 1'b0;
    end else begin
      fault_valid_o <= 1'b0;
      if (overflow) begin
        bad_q[overflow_region] <= 1'b1;
        fault_valid_o <= 1'b1;
        fault_internal_o <= 1'b1;
        fault_region_o <= overflow_region;
        fault_index_o <= overflow_index;
        fault_version_o <= '1;
      end
      if (done_valid && done_bad) begin
        bad_q[done.region] <= 1'b1;
        fault_valid_o <= !bad_q[done.region];
        fault_internal_o <= 1'b0;
        fault_region_o <= done.region;
        fault_index_o <= {1'b0, done.level, done.node};
        fault_version_o <= done.version;
      end
    end
  end

  logic unused;
  assign unused = ^{look_en, look_region, look_node, touch_en, done, wb};
  assign idle_o = !ar_valid_o && !wb_valid_o && (stop_i || (walk_idle && exec_idle && mac_idle));
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
