// Versions of the chunks of a set behind one interface: epochs and written map (`output`), counters
// (`counted`), tree (`tree`).
//
// ask_*: the written bit of a chunk of an `output` region, one cycle after the handshake. ver_*:
// valid/ready, a chunk of a region whose chunks have their own versions (of a `tree` always
// accepted, ver_ready_o is that of the counters). The responses wait in order (ans_*, valid/ready)
// in a separate queue for each mode, and ans_region_i selects the queue. set_*: valid/ready, one
// chunk to be sealed: its version for that seal comes with set_done_o, one at a time;
// set_refused_o: it has no version (sealed already in this epoch, or exhausted) and must not be
// sealed; set_last_o: it is the last one. touch_*: a hint for the tree, dropped when there is no
// room. tree_*: the tree's requests and responses. Zeroing: busy_o until done. Latencies are those
// of the blocks inside; the response of a counter is there two cycles after the query, that of the
// tree one cycle after its arrival.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_versions
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter int unsigned Depth = 64,                           // queries in flight
    parameter int unsigned MapWords = 1,
    parameter logic [MAX_REGIONS-1:0][31:0] MapFirst = '0,
    parameter logic [MAX_REGIONS-1:0][31:0] MapNum = '0,
    parameter int unsigned CountWords = 0,                       // 0: no counted region
    parameter logic [MAX_REGIONS-1:0][31:0] CountFirst = '0,
    parameter logic [MAX_REGIONS-1:0] CountWide = '0,
    parameter int unsigned CountW = 36,
    parameter logic [MAX_REGIONS-1:0] IsOutput = '0,
    parameter logic [MAX_REGIONS-1:0] IsTree = '0
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,
    input  wire                  clr_i,
    input  wire [ZERO_W-1:0]     zero_addr_i,
    output logic                 busy_o,
    input  wire version_t [NRegions-1:0] epoch_i,

    input  wire                  clear_i,         // written map: clear these regions
    input  wire  [NRegions-1:0]  clear_mask_i,

    input  wire                  ask_valid_i,
    output logic                 ask_ready_o,
    input  wire                  ver_valid_i,
    output logic                 ver_ready_o,
    input  wire  reg_idx_t       ask_region_i,    // of both
    input  wire  chunk_idx_t     ask_chunk_i,
    output logic                 ask_bit_o,

    input  wire  reg_idx_t       ans_region_i,
    output logic                 ans_valid_o,
    input  wire                  ans_ready_i,
    output version_t             ans_version_o,
    output logic                 ans_zero_o,
    output logic                 ans_last_o,
    output logic                 ans_none_o,      // no version: a node of the region failed

    input  wire                  set_valid_i,
    output logic                 set_ready_o,
    input  wire  reg_idx_t       set_region_i,
    input  wire  chunk_idx_t     set_chunk_i,
    output logic                 set_done_o,
    output version_t             set_version_o,
    output logic                 set_refused_o,
    output logic                 set_last_o,

    input  wire                  touch_valid_i,
    input  wire  reg_idx_t       touch_region_i,
    input  wire  chunk_idx_t     touch_chunk_i,

    output logic                 tree_valid_o,
    input  wire                  tree_ready_i,
    output tree_req_e            tree_kind_o,
    output reg_idx_t             tree_region_o,
    output chunk_idx_t           tree_chunk_o,
    input  wire                  tree_rsp_i,
    input  wire                  tree_rsp_bump_i,
    input  wire  version_t       tree_rsp_version_i,
    input  wire                  tree_rsp_last_i,

    input  wire  reg_idx_t       count_region_i,
    output logic [31:0]          count_o,
    input  wire  reg_idx_t       map_region_i,
    input  wire                  map_valid_i,
    input  wire  [25:0]          map_word_i,
    output logic [31:0]          map_o
);
  typedef struct packed {
    version_t version;
    logic zero;
    logic last;
    logic none;
  } answer_t;

  // ---- output ----
  logic map_busy, map_set_ready, map_done, map_twice;
  version_t epoch;

  shef_written #(.NRegions(NRegions), .Words(MapWords), .FirstWord(MapFirst),
      .NumWords(MapNum)) u_written (
      .clk_i, .rst_ni, .clr_i, .busy_o(map_busy), .clear_i, .clear_mask_i,
      .set_valid_i(set_valid_i && IsOutput[set_region_i]), .set_ready_o(map_set_ready),
      .set_region_i, .set_chunk_i,
      .set_done_o(map_done), .set_twice_o(map_twice),
      .ask_valid_i, .ask_ready_o, .ask_region_i, .ask_chunk_i, .ask_bit_o,
      .count_region_i, .count_o, .map_region_i, .map_valid_i, .map_word_i, .map_o
  );
  always_comb begin
    epoch = '0;
    for (int unsigned r = 0; r < NRegions; r++)
      if (set_region_i == reg_idx_t'(r)) epoch = epoch_i[r];
  end

  // ---- counted ----
  logic count_busy, count_ask_ready, count_set_ready, count_done, count_refused, count_last,
      count_answered;
  version_t count_version;
  answer_t count_answer;
  logic set_counted;
  assign set_counted = set_valid_i && !IsOutput[set_region_i] && !IsTree[set_region_i];

  if (CountWords != 0) begin : g_counted
    logic in_valid, in_last;
    version_t in_version;
    shef_counters #(.Words(CountWords), .FirstWord(CountFirst), .IsWide(CountWide),
        .NarrowW(CountW)) u_counters (
        .clk_i, .rst_ni, .clr_i, .busy_o(count_busy),
        .ask_valid_i(ver_valid_i && !IsTree[ask_region_i]), .ask_ready_o(count_ask_ready),
        .ask_region_i, .ask_chunk_i,
        .ans_valid_o(in_valid), .ans_version_o(in_version), .ans_last_o(in_last),
        .set_valid_i(set_counted), .set_ready_o(count_set_ready), .set_region_i, .set_chunk_i,
        .set_done_o(count_done), .set_version_o(count_version), .set_refused_o(count_refused),
        .set_last_o(count_last)
    );
    shef_fifo #(.W($bits(answer_t)), .Depth(Depth)) u_answers (
        .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
        .in_valid_i(in_valid), .in_ready_o(),
        .in_data_i({in_version, in_version == '0, in_last, 1'b0}),
        .out_valid_o(count_answered), .out_ready_i(ans_ready_i && !IsTree[ans_region_i]),
        .out_data_o(count_answer), .count_o()
    );
  end else begin : g_no_counted
    assign count_busy = 1'b0;
    assign count_ask_ready = 1'b0;
    assign count_set_ready = 1'b0;
    assign count_done = 1'b0;
    assign count_refused = 1'b0;
    assign count_last = 1'b0;
    assign count_version = '0;
    assign count_answered = 1'b0;
    assign count_answer = '0;
    logic unused;
    assign unused = set_counted;
  end

  // ---- tree ----
  typedef struct packed {
    reg_idx_t region;
    chunk_idx_t chunk;
  } name_t;
  logic tree_set, tree_set_ready, tree_answered, tree_done;
  answer_t tree_answer;

  if (IsTree != '0) begin : g_tree
    name_t asked, touched;
    logic ask_new, asks_wait, ask_fires, touch_waits, touch_fires;
    // a query goes on at once when no other waits
    assign ask_new = ver_valid_i && IsTree[ask_region_i];
    shef_fifo #(.W($bits(name_t)), .Depth(Depth)) u_asks (
        .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
        .in_valid_i(ask_new && (asks_wait || !ask_fires)), .in_ready_o(),
        .in_data_i({ask_region_i, ask_chunk_i}),
        .out_valid_o(asks_wait), .out_ready_i(ask_fires), .out_data_o(asked), .count_o()
    );
    shef_fifo #(.W($bits(name_t)), .Depth(4)) u_touches (
        .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[1:0]),
        .in_valid_i(touch_valid_i), .in_ready_o(), .in_data_i({touch_region_i, touch_chunk_i}),
        .out_valid_o(touch_waits), .out_ready_i(touch_fires), .out_data_o(touched), .count_o()
    );
    shef_fifo #(.W($bits(answer_t)), .Depth(Depth)) u_answers (
        .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
        .in_valid_i(tree_rsp_i && !tree_rsp_bump_i), .in_ready_o(),
        // a region with a failed node has no versions: neither zeros nor anything to fetch
        .in_data_i({tree_rsp_version_i, tree_rsp_version_i == '0 &&
        !tree_rsp_last_i, tree_rsp_last_i,
                     tree_rsp_version_i == '0 && tree_rsp_last_i}),
        .out_valid_o(tree_answered), .out_ready_i(ans_ready_i && IsTree[ans_region_i]),
        .out_data_o(tree_answer), .count_o()
    );
    assign tree_set = set_valid_i && IsTree[set_region_i];
    assign tree_set_ready = tree_ready_i;
    assign ask_fires = !tree_set && (asks_wait || ask_new) && tree_ready_i;
    assign touch_fires = !tree_set && !asks_wait && !ask_new && tree_ready_i;
    assign tree_done = tree_rsp_i && tree_rsp_bump_i;
    assign tree_valid_o = tree_set || asks_wait || ask_new || touch_waits;
    always_comb begin
      tree_kind_o = TREE_TOUCH;
      tree_region_o = touched.region;
      tree_chunk_o = touched.chunk;
      if (tree_set) begin
        tree_kind_o = TREE_BUMP;
        tree_region_o = set_region_i;
        tree_chunk_o = set_chunk_i;
      end else if (asks_wait) begin
        tree_kind_o = TREE_ASK;
        tree_region_o = asked.region;
        tree_chunk_o = asked.chunk;
      end else if (ask_new) begin
        tree_kind_o = TREE_ASK;
        tree_region_o = ask_region_i;
        tree_chunk_o = ask_chunk_i;
      end
    end
  end else begin : g_no_tree
    assign tree_set = 1'b0;
    assign tree_set_ready = 1'b0;
    assign tree_answered = 1'b0;
    assign tree_done = 1'b0;
    assign tree_answer = '0;
    assign tree_valid_o = 1'b0;
    assign tree_kind_o = TREE_TOUCH;
    assign tree_region_o = '0;
    assign tree_chunk_o = '0;
    logic unused_tree;
    assign unused_tree = ^{touch_valid_i, touch_region_i, touch_chunk_i, tree_ready_i, tree_rsp_i,
        tree_rsp_bump_i};
  end

  // ---- all ----
  logic ans_tree;
  assign ans_tree = IsTree[ans_region_i];
  assign busy_o = map_busy || count_busy;
  assign ver_ready_o = count_ask_ready;
  assign ans_valid_o = ans_tree ? tree_answered : count_answered;
  assign {ans_version_o, ans_zero_o, ans_last_o, ans_none_o} = ans_tree ? tree_answer
      : count_answer;
  assign set_ready_o = IsOutput[set_region_i] ? map_set_ready : IsTree[set_region_i]
      ? tree_set_ready : count_set_ready;
  assign set_done_o = map_done || count_done || tree_done;
  assign set_version_o = tree_done ? tree_rsp_version_i : count_done ? count_version : epoch;
  assign set_refused_o = tree_done ? tree_rsp_last_i : count_done ? count_refused : map_twice;
  assign set_last_o = tree_done ? tree_rsp_version_i == '1 : count_done && count_last;
  logic unused;
  assign unused = ^{zero_addr_i, ver_valid_i, ans_ready_i, tree_set};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
