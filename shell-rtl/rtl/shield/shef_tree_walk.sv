// Walker of shef_tree: takes requests in order, finds or allocates a slot for every node they need,
// and issues orders to the executor. It knows the directories only, and never uses an unverified
// counter.
//
// A level needs a node: it is present, or a way is allocated for it. If the way holds a changed
// node, that node is written back first: its parent is needed at the level above (recursively),
// then EVICT. Then the new node's own parent is needed, then FILL. So resources are allocated from
// level 0 upwards, each level has at most one open need, the root table always has room, and the
// executor can execute every order without a later one: no deadlock. A node is requested from
// memory with its FILL, before the executor reaches it, but not while a write of it is unanswered,
// and not if its parent's counter is known to be 0.
//
// req_*: valid/ready. fast_*: valid/ready, an ASK or BUMP whose node is present and verified, when
// no other waits in the executor;
// op_*: valid/ready, everything else. ver_*: reads the counter of a node in its verified parent;
// the response comes two cycles after the handshake. ar_*: valid/ready, not the bus: it is never
// accepted while clr_i is high. A hit takes two cycles. stop_i: nothing advances. clr_i drops
// everything.
`default_nettype none
module shef_tree_walk
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
#(
    parameter int unsigned Sets = 128,
    parameter int unsigned Levels = 1,
    parameter logic [MAX_REGIONS-1:0][2:0] LevelsOf = '0,
    parameter logic [MAX_REGIONS-1:0][TREE_TABLE-1:0][63:0] Base = '0
) (
    input  wire                    clk_i,
    input  wire                    rst_ni,
    input  wire                    clr_i,
    input  wire                    stop_i,
    input  wire [MAX_REGIONS-1:0]  bad_i,         // regions with a failed node: no more walks

    input  wire                    req_valid_i,
    output logic                   req_ready_o,
    input  wire [1:0]              req_kind_i,
    input  wire  reg_idx_t         req_region_i,
    input  wire  chunk_idx_t       req_chunk_i,

    output logic [TREE_TABLE-1:0]      look_en_o,
    output reg_idx_t [TREE_TABLE-1:0] look_region_o,
    output node_t [TREE_TABLE-1:0] look_node_o,
    output logic [3:0]             busy_o,
    input  wire [TREE_TABLE-1:0]       hit_i,
    input  wire  way_t [TREE_TABLE-1:0] hit_way_i,
    input  wire [TREE_TABLE-1:0]       room_i,
    input  wire  way_t [TREE_TABLE-1:0] victim_way_i,
    input  wire [TREE_TABLE-1:0]       victim_dirty_i,
    input  wire  reg_idx_t [TREE_TABLE-1:0] victim_region_i,
    input  wire  node_t [TREE_TABLE-1:0] victim_node_i,
    output logic [TREE_TABLE-1:0]      touch_en_o,
    output logic                   touch_take_o,
    output logic                   touch_mark_o,
    output reg_idx_t               touch_region_o,
    output node_t                  touch_node_o,
    output way_t                   touch_way_o,

    output logic                   ver_valid_o,
    input  wire                    ver_ready_i,
    output level_t                 ver_level_o,   // of the parent
    output reg_idx_t               ver_region_o,
    output node_t                  ver_node_o,    // of the child
    output way_t                   ver_way_o,
    input  wire  version_t         ver_i,

    output logic                   fast_valid_o,
    input  wire                    fast_ready_i,
    output logic                   op_valid_o,
    input  wire                    op_ready_i,
    output tree_op_t               op_o,          // of fast_* and op_*
    input  wire                    slow_done_i,   // an ASK or BUMP of op_* was executed
    // the oldest FILL is done: verified, or known to be zeros
    input  wire                    fill_done_i,
    input  wire                    drop_valid_i,  // an EVICT will not happen
    input  wire  slot_t            drop_slot_i,
    input  wire                    ack_valid_i,   // a node write was acknowledged
    input  wire  slot_t            ack_slot_i,

    output logic                   ar_valid_o,
    input  wire                    ar_ready_i,
    output logic [63:0]            ar_addr_o,
    output logic                   idle_o
);
  localparam int unsigned SW = $clog2(Sets);
  localparam int unsigned FW = $clog2(TREE_FILLS);

  typedef enum logic [2:0] {
    F_IDLE,
    F_CALL,   // look a node up at level_q
    F_LOOK,   // present or not
    F_VER,    // the parent is present: fill the node, or request its version first
    F_WAIT,
    F_FILL,   // fill the node, the version is known
    F_EVICT   // the victim's parent is present
  } state_e;

  state_e state_q;
  level_t level_q;
  logic [1:0] kind_q;
  lane_t lane_q;
  // the needs of each level; entry Levels is the root table
  reg_idx_t region_q[TREE_TABLE];
  node_t node_q[TREE_TABLE];
  way_t way_q[TREE_TABLE];       // allocated for it
  lane_t victim_lane_q[TREE_TABLE];
  logic [TREE_TABLE-1:0] evict_q;   // the level above works for the victim
  way_t parent_way_q;        // of the node that level_q needs, or of its victim
  logic [4:0] slow_q;

  // ---- the current level ----
  logic hit, room, victim_dirty, bad, bad0, at_root, victim_root;
  way_t hit_way, victim_way;
  reg_idx_t region, victim_region, up_region;
  node_t node, victim_node, up_node;
  level_t up;
  logic [2:0] below;
  assign region = region_q[level_q];
  assign node = node_q[level_q];
  assign hit = hit_i[level_q];
  assign hit_way = hit_way_i[level_q];
  assign room = room_i[level_q];
  assign victim_way = victim_way_i[level_q];
  assign victim_region = victim_region_i[level_q];
  assign victim_node = victim_node_i[level_q];
  assign victim_dirty = victim_dirty_i[level_q] && !bad_i[victim_region];
  assign bad = bad_i[region];
  assign bad0 = bad_i[region_q[0]];
  assign up = level_q + 3'd1;
  assign below = level_q - 3'd1;
  assign at_root = up == LevelsOf[region];
  assign victim_root = up == LevelsOf[victim_region];
  assign up_region = region_q[up];
  assign up_node = node_q[up];

  logic answer, fill, fill_zero, fill_ok, evict, look_hit, look_miss, ask, taken, call_up;

  // ---- nodes in flight from memory, and unanswered writes ----
  typedef struct packed {
    level_t level;
    logic [SW-1:0] set;
    way_t way;
    logic zero;   // known to be zeros
  } place_t;
  typedef struct packed {
    level_t level;
    reg_idx_t region;
    node_t node;
  } name_t;

  place_t [TREE_FILLS-1:0] fill_q;
  logic [TREE_FILLS-1:0] filling_q;
  logic [FW-1:0] fill_wp_q, fill_rp_q;
  name_t [TREE_SLOTS-1:0] slot_q;
  logic [TREE_SLOTS-1:0] slot_busy_q;
  slot_t slot_pick;
  logic slot_room, fill_room, parent_busy, parent_zero;
  level_t ask_level;
  node_t ask_node;
  logic [3:0] busy, busy_zero;
  // ways of the previous cycle's set with nodes in flight, and those known to be zeros
  logic [3:0] busy_q, busy_zero_q;
  logic written_q;                   // a write of the node was unanswered
  logic settled_q;                   // and this was checked for the current parent

  // An entry that is still named although its node has arrived is not waited for any more.
  always_comb begin
    ask_level = up;
    ask_node = node >> 3;
    unique case (state_q)
      F_IDLE: begin
        ask_level = '0;
        ask_node = node_t'(req_chunk_i >> 3);
      end
      F_CALL, F_LOOK: begin
        ask_level = level_q;
        ask_node = node;
      end
      F_EVICT: ask_node = up_node;
      default: ;
    endcase
    busy = '0;
    busy_zero = '0;
    for (int i = 0; i < int'(TREE_FILLS); i++) begin
      if (filling_q[i] && fill_q[i].level == ask_level && fill_q[i].set == ask_node[SW-1:0]) begin
        busy |= 4'd1 << fill_q[i].way;
        busy_zero |= 4'(fill_q[i].zero) << fill_q[i].way;
      end
    end
    slot_pick = '0;
    for (int i = 0; i < int'(TREE_SLOTS); i++) if (!slot_busy_q[i]) slot_pick = slot_t'(i);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      busy_q <= '0;
      busy_zero_q <= '0;
      written_q <= 1'b0;
      settled_q <= 1'b0;
    end else begin
      busy_q <= busy;
      busy_zero_q <= busy_zero;
      written_q <= 1'b0;
      for (int i = 0; i < int'(TREE_SLOTS); i++)
        if (slot_busy_q[i] && slot_q[i] == {level_q, region, node}) written_q <= 1'b1;
      settled_q <= (state_q == F_VER && !fill) || (state_q == F_EVICT && !evict);
    end
  end
  assign slot_room = slot_busy_q != '1;
  assign fill_room = !filling_q[fill_wp_q];
  assign busy_o = busy_q;
  // and so is the node, if it has no unanswered write
  assign parent_zero = parent_busy && busy_zero_q[parent_way_q];
  assign parent_busy = busy_q[parent_way_q] &&
      up != LevelsOf[(state_q == F_EVICT) ? up_region : region];

  // ---- decisions ----
  assign ask = kind_q != TREE_TOUCH;
  assign answer = state_q == F_LOOK && level_q == '0 && ask && !stop_i && (hit_i[0] || bad0);
  assign fast_valid_o = answer && slow_q == '0 && (bad0 || !busy_q[hit_way_i[0]]);
  assign look_hit = state_q == F_LOOK && hit && (level_q != '0 || !ask || taken);
  assign look_miss = state_q == F_LOOK && !hit && room && !stop_i && !(level_q == '0 && bad);

  assign fill_zero = (state_q == F_FILL) ? ver_i == '0 : parent_zero;
  assign fill_ok = !stop_i && op_ready_i && fill_room && (fill_zero || !ar_valid_o || ar_ready_i);
  assign fill = fill_ok &&
      (state_q == F_FILL || (state_q == F_VER && settled_q && !written_q && parent_busy));
  assign evict = state_q == F_EVICT && settled_q && !stop_i && op_ready_i && slot_room;

  assign ver_valid_o = state_q == F_VER && settled_q && !stop_i && !written_q && !parent_busy;
  assign ver_level_o = up;
  assign ver_region_o = region;
  assign ver_node_o = node;
  assign ver_way_o = parent_way_q;

  always_comb begin
    op_o = '0;
    op_valid_o = 1'b0;
    op_o.level = level_q;
    op_o.region = region;
    op_o.node = node;
    op_o.way = way_q[level_q];
    op_o.parent_way = parent_way_q;
    unique case (state_q)
      F_LOOK: begin
        op_valid_o = answer && !fast_valid_o;
        op_o.kind = (kind_q == TREE_BUMP) ? OP_BUMP : OP_ASK;
        op_o.way = hit_way;
        op_o.lane = lane_q;
        op_o.check_first = busy_q[hit_way];
      end
      F_VER, F_FILL: begin
        op_valid_o = fill;
        op_o.kind = OP_FILL;
        op_o.known = state_q == F_FILL;
        op_o.version = (state_q == F_FILL) ? ver_i : '0;
        op_o.fetched = !fill_zero;
      end
      F_EVICT: begin
        op_valid_o = evict;
        op_o.kind = OP_EVICT;
        op_o.region = up_region;
        op_o.node = {up_node[NODE_W-4:0], victim_lane_q[level_q]};
        op_o.check_first = parent_busy;
        op_o.slot = slot_pick;
      end
      default: ;
    endcase
  end
  assign taken = (fast_valid_o && fast_ready_i) || (op_valid_o && op_ready_i && state_q == F_LOOK);

  // ---- directories ----
  assign req_ready_o = state_q == F_IDLE && !stop_i && !clr_i;
  always_comb begin
    look_en_o = '0;
    for (int i = 0; i < int'(TREE_TABLE); i++) begin
      look_region_o[i] = region_q[i];
      look_node_o[i] = node_q[i];
    end
    if (state_q == F_IDLE) begin
      look_en_o[0] = req_valid_i && req_ready_o;
      look_region_o[0] = req_region_i;
      look_node_o[0] = node_t'(req_chunk_i >> 3);
    end else if (state_q == F_CALL) look_en_o[level_q] = 1'b1;
  end
  // the state selects the directory early, the decision to touch it comes late
  always_comb begin
    touch_en_o = '0;
    touch_take_o = 1'b0;
    touch_mark_o = 1'b0;
    touch_region_o = region;
    touch_node_o = node;
    touch_way_o = way_q[level_q];
    unique case (state_q)
      F_LOOK: begin
        touch_en_o[level_q] = look_hit;
        touch_mark_o = level_q == '0 && kind_q == TREE_BUMP;
        touch_way_o = hit_way;
      end
      F_EVICT: begin
        touch_en_o[up] = evict && up != LevelsOf[up_region];
        touch_mark_o = 1'b1;
        touch_region_o = up_region;
        touch_node_o = up_node;
        touch_way_o = parent_way_q;
      end
      default: begin
        touch_en_o[level_q] = fill;
        touch_take_o = 1'b1;
      end
    endcase
  end

  // ---- state ----
  logic for_victim;
  // the next need is at the level above, unless that is the root table
  assign call_up = look_miss || evict;
  assign for_victim = look_miss && victim_dirty;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      state_q <= F_IDLE;
      level_q <= '0;
      kind_q <= '0;
      lane_q <= '0;
      evict_q <= '0;
      parent_way_q <= '0;
      for (int i = 0; i < int'(TREE_TABLE); i++) begin
        region_q[i] <= '0;
        node_q[i] <= '0;
        way_q[i] <= '0;
        victim_lane_q[i] <= '0;
      end
    end else begin
      unique case (state_q)
        F_IDLE: begin
          level_q <= '0;
          if (req_valid_i && req_ready_o) begin
            state_q <= F_LOOK;
            kind_q <= req_kind_i;
            lane_q <= req_chunk_i[2:0];
            region_q[0] <= req_region_i;
            node_q[0] <= node_t'(req_chunk_i >> 3);
          end
        end
        F_CALL: state_q <= F_LOOK;
        F_LOOK: begin
          if (taken || (look_hit && level_q == '0) || (level_q == '0 && bad && !ask))
            state_q <= F_IDLE;
          else if (look_hit) begin
            level_q <= below;
            parent_way_q <= hit_way;
            state_q <= evict_q[below] ? F_EVICT : F_VER;
          end else if (look_miss) begin
            for (int i = 0; i < int'(Levels); i++) begin
              if (level_q == level_t'(i)) begin
                way_q[i] <= victim_way;
                victim_lane_q[i] <= victim_node[2:0];
                evict_q[i] <= victim_dirty;
              end
            end
          end
        end
        F_VER: begin
          if (ver_valid_o && ver_ready_i) state_q <= F_WAIT;
        end
        F_WAIT: state_q <= F_FILL;
        F_EVICT: begin
          for (int i = 0; i < int'(Levels); i++)
            if (evict && level_q == level_t'(i)) evict_q[i] <= 1'b0;
        end
        default: ;
      endcase
      if (fill) begin
        level_q <= below;
        parent_way_q <= way_q[level_q];
        if (level_q != '0) state_q <= evict_q[below] ? F_EVICT : F_VER;
        else begin
          // look up again, to respond
          level_q <= '0;
          state_q <= ask ? F_CALL : F_IDLE;
        end
      end
      if (call_up) begin
        for (int i = 1; i <= int'(Levels); i++) begin
          if (up == level_t'(i)) begin
            region_q[i] <= for_victim ? victim_region : region;
            node_q[i] <= (for_victim ? victim_node : node) >> 3;
          end
        end
        if (for_victim ? victim_root : at_root) state_q <= for_victim ? F_EVICT : F_VER;
        else begin
          level_q <= up;
          state_q <= F_CALL;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) slow_q <= '0;
    else slow_q <= slow_q + 5'(op_valid_o && op_ready_i && state_q == F_LOOK) - 5'(slow_done_i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      fill_q <= '0;
      filling_q <= '0;
      fill_wp_q <= '0;
      fill_rp_q <= '0;
      slot_q <= '0;
      slot_busy_q <= '0;
    end else begin
      if (fill) begin
        fill_q[fill_wp_q] <= '{level: level_q, set: node[SW-1:0], way: way_q[level_q],
            zero: fill_zero};
        filling_q[fill_wp_q] <= 1'b1;
        fill_wp_q <= fill_wp_q + 1'b1;
      end
      if (fill_done_i) begin
        filling_q[fill_rp_q] <= 1'b0;
        fill_rp_q <= fill_rp_q + 1'b1;
      end
      if (evict) begin
        slot_q[slot_pick] <= '{level: level_q, region: op_o.region, node: op_o.node};
        slot_busy_q[slot_pick] <= 1'b1;
      end
      if (drop_valid_i) slot_busy_q[drop_slot_i] <= 1'b0;
      if (ack_valid_i) slot_busy_q[ack_slot_i] <= 1'b0;
    end
  end

  logic ar_valid_q;
  logic [63:0] ar_addr_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      ar_valid_q <= 1'b0;
      ar_addr_q <= '0;
    end else begin
      if (ar_ready_i) ar_valid_q <= 1'b0;
      if (fill && !fill_zero) begin
        ar_valid_q <= 1'b1;
        ar_addr_q <= Base[region][level_q] + 64'({node, 6'd0});
      end
    end
  end
  assign ar_valid_o = ar_valid_q;
  assign ar_addr_o = ar_addr_q;
  logic unused;
  assign unused = ^ask_node;
  assign idle_o = state_q == F_IDLE && filling_q == '0 && slot_busy_q == '0 && slow_q == '0;
endmodule
`default_nettype wire
