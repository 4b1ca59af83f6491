// Geometry of the counter trees, and types shared by the blocks of shef_tree.
//
// Level 0 holds the versions of the chunks, eight in a node; level l + 1 those of the nodes of
// level l. The levels 0 .. T - 1 of a region are in memory, the versions of level T - 1 in the root
// table on chip.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
package shef_tree_pkg;
  import shef_pkg::*;
  import shef_set_pkg::*;

  localparam int unsigned TREE_MAX_LEVELS = 5;  // enough for 2^31 chunks
  localparam int unsigned TREE_TABLE = 8;       // entries of a table by level
  localparam int unsigned NODE_W = CHUNK_INDEX_W - 4;
  localparam int unsigned ROOT_BANK_WORDS = 4096;
  localparam int unsigned TREE_SLOTS = 8;       // node writes in flight
  localparam int unsigned TREE_FILLS = 16;      // nodes in flight from memory

  typedef logic [2:0] level_t;
  typedef logic [NODE_W-1:0] node_t;
  typedef logic [1:0] way_t;
  typedef logic [2:0] lane_t;                   // one of eight counters
  typedef logic [$clog2(TREE_SLOTS)-1:0] slot_t;

  typedef enum logic [1:0] {TREE_TOUCH = 2'd0, TREE_ASK = 2'd1, TREE_BUMP = 2'd2} tree_req_e;

  typedef enum logic [1:0] {OP_ASK = 2'd0, OP_BUMP = 2'd1, OP_FILL = 2'd2,
      OP_EVICT = 2'd3} tree_op_e;

  // the walker's orders for the executor, which executes them in this order
  typedef struct packed {
    tree_op_e kind;
    // a node for this may still be in flight: let every check finish before
    logic check_first;
    level_t level;
    reg_idx_t region;
    node_t node;        // FILL: filled; EVICT: written back; ASK, BUMP: of level 0
    way_t way;          // its way
    way_t parent_way;   // way of its parent, if that is a node
    lane_t lane;        // ASK, BUMP
    logic known;        // FILL: `version` is its parent's counter
    logic fetched;      // FILL: it was requested from memory
    version_t version;
    slot_t slot;        // EVICT
  } tree_op_t;

  // a node whose tag is checked or computed
  typedef enum logic [1:0] {MAC_NONE = 2'd0, MAC_CHECK = 2'd1, MAC_SEAL = 2'd2} tree_mac_e;
  typedef struct packed {
    tree_mac_e kind;
    level_t level;
    reg_idx_t region;
    node_t node;
    version_t version;
    slot_t slot;
  } tree_mac_t;

  // lowest bit of a counter among eight, child 0 in the top bits
  function automatic logic [8:0] tree_bit(input lane_t lane);
    return 9'd48 * {6'd0, ~lane};
  endfunction
  function automatic logic [63:0] tree_up(input logic [63:0] count);
    return (count + 64'd7) >> 3;
  endfunction
  // levels in memory
  function automatic int unsigned tree_levels(input region_cfg_t cfg, input int unsigned root_log2);
    logic [63:0] n;
    int unsigned t;
    n = tree_up(cfg.size >> cfg.chunk_log2);
    t = 1;
    for (int unsigned i = 1; i < TREE_MAX_LEVELS; i++) begin
      if (n > (64'd1 << root_log2)) begin
        n = tree_up(n);
        t = i + 1;
      end
    end
    return (cfg.mode == MODE_TREE) ? t : 0;
  endfunction
  // nodes of a level
  function automatic logic [63:0] tree_nodes(input region_cfg_t cfg, input int unsigned level);
    logic [63:0] n;
    n = tree_up(cfg.size >> cfg.chunk_log2);
    for (int unsigned i = 0; i < level; i++) n = tree_up(n);
    return n;
  endfunction
  // address of a level's first node
  function automatic logic [63:0] tree_base(input region_cfg_t cfg, input int unsigned level);
    logic [63:0] a;
    a = cfg.node_base;
    for (int unsigned i = 0; i < level; i++) a = a + (tree_nodes(cfg, i) << 6);
    return a;
  endfunction
  // entries of the root table
  function automatic int unsigned tree_roots(input region_cfg_t cfg, input int unsigned root_log2);
    int unsigned t;
    t = tree_levels(cfg, root_log2);
    return (t == 0) ? 0 : 32'(tree_nodes(cfg, t - 1));
  endfunction
  // addresses of the zeroising sweep, for `roots` entries in the root table of all regions
  function automatic int unsigned tree_sweep_words(input int unsigned sets,
      input int unsigned roots);
    int unsigned bank;
    bank = (roots < ROOT_BANK_WORDS) ? roots : ROOT_BANK_WORDS;
    return (bank > 4 * sets) ? bank : 4 * sets;
  endfunction
endpackage
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
