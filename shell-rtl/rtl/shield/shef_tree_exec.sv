// Executor of shef_tree: executes the walker's orders on the counters, in order.
//
// FILL: stores the node's counters and hands its tag to the check, with its parent's counter as the
// version. That counter may itself be unverified; then this check is conclusive only if the
// parent's succeeds as well, and nothing but this check uses it. EVICT: raises and stores the
// parent's counter, and only then sends the node to be sealed with it. ASK, BUMP: answered from
// level 0. An order that uses a counter for anything but a check (EVICT, ASK, BUMP), and whose node
// was in flight when the order was given (check_first), waits until every earlier check is done.
//
// op_*, r_*: in order; r_valid_i is always accepted. fast_*: valid/ready, an ASK or BUMP between
// the orders, answered two cycles later, one every two cycles. rsp_*: one pulse per response. Nodes
// are read and written on cn_*/cw_*: own_* is the node itself, on own_data_i one cycle later; par_*
// a counter in its parent (or in the root table), on par_version_i two cycles later. mac_*:
// valid/ready. A response for a region with a failed node is a refusal (exhausted, version 0).
// stop_i: nothing advances. clr_i drops everything.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_tree_exec
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
(
    input  wire                    clk_i,
    input  wire                    rst_ni,
    input  wire                    clr_i,
    input  wire [ZERO_W-1:0]       zero_addr_i,
    input  wire                    stop_i,
    input  wire [MAX_REGIONS-1:0]  bad_i,

    input  wire                    op_valid_i,
    output logic                   op_ready_o,
    input  wire                    fast_valid_i,
    output logic                   fast_ready_o,
    input  wire  tree_op_t         op_i,          // of op_* and fast_*
    output logic                   slow_done_o,
    output logic                   drop_valid_o,
    output slot_t                  drop_slot_o,
    output logic                   rsp_valid_o,
    output logic                   rsp_bump_o,
    output version_t               rsp_version_o,
    output logic                   rsp_exhausted_o,

    input  wire                    r_valid_i,
    input  wire [511:0]            r_data_i,

    output logic                   own_en_o,
    output level_t                 own_level_o,
    output node_t                  own_node_o,
    output way_t                   own_way_o,
    input  wire [383:0]            own_data_i,     // one cycle later, kept
    output logic                   par_en_o,
    output level_t                 par_level_o,
    output reg_idx_t               par_region_o,
    output node_t                  par_child_o,
    output way_t                   par_way_o,
    input  wire  version_t         par_version_i,  // two cycles later, kept
    output logic                   hold_o,         // nodes are not readable by other blocks

    output logic [7:0]             wr_lanes_o,
    // a counter in the parent of wr_node_o, else in the node itself
    output logic                   wr_parent_o,
    output level_t                 wr_level_o,
    output reg_idx_t               wr_region_o,
    output node_t                  wr_node_o,
    output way_t                   wr_way_o,
    output logic [383:0]           wr_data_o,

    output logic                   mac_valid_o,
    input  wire                    mac_ready_i,
    output tree_mac_t              mac_o,
    output logic [511:0]           mac_data_o,
    input  wire                    check_done_i,
    output logic                   overflow_o,     // an inner counter is at its limit
    output chunk_idx_t             overflow_index_o,
    output reg_idx_t               overflow_region_o,
    output logic                   idle_o
);
  localparam int unsigned FW = $clog2(TREE_FILLS);

  typedef enum logic [1:0] {B_IDLE, B_READ, B_GO, B_SEAL} state_e;
  state_e state_q;
  tree_op_t op;
  logic op_valid, pop, beat_valid, beat_pop;
  logic [511:0] beat_raw, beat;
  version_t sealed_q;

  shef_fifo #(.W($bits(tree_op_t)), .Depth(16)) u_ops (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[3:0]),
      .in_valid_i(op_valid_i), .in_ready_o(op_ready_o), .in_data_i(op_i),
      .out_valid_o(op_valid), .out_ready_i(pop), .out_data_o(op), .count_o()
  );
  // never full: the walker requests at most TREE_FILLS nodes
  shef_fifo #(.W(512), .Depth(TREE_FILLS)) u_beats (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[FW-1:0]),
      .in_valid_i(r_valid_i), .in_ready_o(), .in_data_i(r_data_i),
      .out_valid_o(beat_valid), .out_ready_i(beat_pop), .out_data_o(beat_raw), .count_o()
  );
  assign beat = byte_reverse512(beat_raw);

  // ---- the order at the head ----
  logic go, ready, evict_ok, slow, fill, fill_zero, raise, seal, drop, busy, busy_q, bump_q, issue;
  version_t fill_version;
  logic [5:0] checks_q;   // in flight

  assign ready = !op.check_first || checks_q == '0;
  assign go = op_valid && !stop_i && state_q == B_IDLE;
  assign busy = busy_q || bump_q;
  assign slow = go && (op.kind == OP_ASK || op.kind == OP_BUMP) && ready && !busy;
  assign evict_ok = go && op.kind == OP_EVICT && ready && !busy;   // after the BUMP before it

  assign fill_version = op.known ? op.version : par_version_i;
  // the walker never orders a fetched node of version 0
  assign fill_zero = !op.fetched || (!op.known && par_version_i == '0);
  assign fill = op_valid && !stop_i && op.kind == OP_FILL && (!op.fetched || beat_valid) &&
      !bump_q && mac_ready_i &&
      ((state_q == B_IDLE && (op.known || !op.fetched)) || state_q == B_GO);
  assign raise = op_valid && !stop_i && op.kind == OP_EVICT && state_q == B_GO &&
      par_version_i != '1;
  assign overflow_o = op_valid && !stop_i && op.kind == OP_EVICT && state_q == B_GO &&
      par_version_i == '1;
  assign overflow_index_o = {1'b0, op.level, op.node};
  assign overflow_region_o = op.region;
  assign seal = op_valid && !stop_i && state_q == B_SEAL && mac_ready_i;
  assign drop = (evict_ok && bad_i[op.region]) || overflow_o;
  assign pop = slow || fill || seal || drop;
  assign beat_pop = fill && op.fetched;
  assign slow_done_o = slow;
  assign drop_valid_o = drop;
  assign drop_slot_o = op.slot;

  // ---- reads ----
  assign hold_o = op_valid && op.kind == OP_EVICT && (state_q != B_IDLE || evict_ok);
  assign fast_ready_o = !busy && !hold_o && !slow;
  assign issue = slow || (fast_valid_i && fast_ready_o);
  assign par_en_o = (evict_ok && !bad_i[op.region]) ||
      (go && op.kind == OP_FILL && op.fetched && !op.known);
  assign par_level_o = op.level + 3'd1;
  assign par_region_o = op.region;
  assign par_child_o = op.node;
  assign par_way_o = op.parent_way;
  assign own_en_o = issue || (par_en_o && op.kind == OP_EVICT);
  always_comb begin
    own_level_o = op.level;
    own_node_o = op.node;
    own_way_o = op.way;
    if (fast_ready_o) begin   // else nothing of op_i is read
      own_level_o = op_i.level;
      own_node_o = op_i.node;
      own_way_o = op_i.way;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      state_q <= B_IDLE;
      sealed_q <= '0;
    end else begin
      unique case (state_q)
        B_IDLE: if (par_en_o) state_q <= B_READ;
        B_READ: state_q <= B_GO;
        B_GO: begin
          if (fill || drop) state_q <= B_IDLE;
          if (raise) begin
            state_q <= B_SEAL;
            sealed_q <= par_version_i + 48'd1;
          end
        end
        default: if (seal) state_q <= B_IDLE;
      endcase
    end
  end

  // ---- responses, from level 0 ----
  // A response that raises its counter stores it and reports it a cycle after the read.
  tree_op_t ask_q, ask;
  version_t counter, counter_q, next;
  logic refuse, asks_bump, bump_now;
  assign ask = slow ? op : op_i;
  assign asks_bump = ask_q.kind == OP_BUMP;
  assign counter = own_data_i[tree_bit(ask_q.lane)+:48];
  assign next = counter_q + 48'd1;
  assign refuse = bad_i[ask_q.region];
  assign bump_now = bump_q && !refuse && counter_q != '1 && !stop_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      busy_q <= 1'b0;
      bump_q <= 1'b0;
      ask_q <= '0;
      counter_q <= '0;
      rsp_valid_o <= 1'b0;
      rsp_bump_o <= 1'b0;
      rsp_version_o <= '0;
      rsp_exhausted_o <= 1'b0;
    end else begin
      busy_q <= issue;
      bump_q <= busy_q && asks_bump && !stop_i;
      if (issue) ask_q <= ask;
      if (busy_q) counter_q <= counter;
      rsp_valid_o <= ((busy_q && !asks_bump) || bump_q) && !stop_i;
      if (busy) begin
        rsp_bump_o <= bump_q;
        rsp_exhausted_o <= refuse || (bump_q && counter_q == '1);
        rsp_version_o <= refuse ? '0 : bump_now ? next : bump_q ? counter_q : counter;
      end
    end
  end

  // ---- writes ----
  always_comb begin
    wr_lanes_o = '0;
    wr_parent_o = 1'b0;
    wr_level_o = op.level;
    wr_region_o = op.region;
    wr_node_o = op.node;
    wr_way_o = op.way;
    wr_data_o = fill_zero ? '0 : beat[511:128];
    if (bump_now) begin
      wr_lanes_o = 8'd1 << ~ask_q.lane;
      wr_level_o = '0;
      wr_region_o = ask_q.region;
      wr_node_o = ask_q.node;
      wr_way_o = ask_q.way;
      wr_data_o = {8{next}};
    end else if (fill) wr_lanes_o = '1;
    else if (raise) begin
      wr_lanes_o = 8'd1 << ~op.node[2:0];
      wr_parent_o = 1'b1;
      wr_level_o = op.level + 3'd1;
      wr_way_o = op.parent_way;
      wr_data_o = {8{par_version_i + 48'd1}};
    end
  end

  // ---- tags ----
  assign mac_valid_o = (fill && mac_ready_i) || (op_valid && !stop_i && state_q == B_SEAL);
  always_comb begin
    mac_o = '{kind: fill_zero ? MAC_NONE
        : MAC_CHECK, level: op.level, region: op.region, node: op.node, version: fill_version,
        slot: '0};
    mac_data_o = beat;
    if (state_q == B_SEAL) begin
      mac_o.kind = MAC_SEAL;
      mac_o.version = sealed_q;
      mac_o.slot = op.slot;
      mac_data_o = {own_data_i, 128'd0};
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) checks_q <= '0;
    else checks_q <= checks_q + 6'(fill) - 6'(check_done_i);
  end
  assign idle_o = !op_valid && !busy && !rsp_valid_o;
  logic unused;
  assign unused = ^{zero_addr_i, ask_q};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
