// Versions of the chunks of a set behind one interface: epochs and written map (`output`), counters (`counted`).
//
// ask_*: the written bit of a chunk of an `output` region, one cycle after the handshake. ver_*: valid/ready, a chunk of a region
// that has versions of its own; the answers wait in order (ans_*, valid/ready), those of a region's mode in a queue of that mode, so that
// ans_region_i says which one is looked at. set_*: valid/ready, one chunk to be sealed: its version for that seal comes with
// set_done_o, one at a time; set_refused_o: there is none (sealed already in this epoch, or exhausted), nothing may be sealed
// then; set_last_o: it is the last one. Zeroing: busy_o until done. Latencies are those of the blocks inside; the answer of a
// counter is there two cycles after the question.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are left open by name)
module shef_versions
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter int unsigned Depth = 64,                           // questions on their way
    parameter int unsigned MapWords = 1,
    parameter logic [MAX_REGIONS-1:0][31:0] MapFirst = '0,
    parameter logic [MAX_REGIONS-1:0][31:0] MapNum = '0,
    parameter int unsigned CountWords = 0,                       // 0: no counted region
    parameter logic [MAX_REGIONS-1:0][31:0] CountFirst = '0,
    parameter logic [MAX_REGIONS-1:0] CountWide = '0,
    parameter int unsigned CountW = 36,
    parameter logic [MAX_REGIONS-1:0] IsOutput = '0
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,
    input  wire                  clr_i,
    input  wire [ZERO_W-1:0]     zero_addr_i,
    output logic                 busy_o,
    input  wire version_t [NRegions-1:0] epoch_i,

    input  wire                  clear_i,         // written map: these regions begin anew
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

    input  wire                  set_valid_i,
    output logic                 set_ready_o,
    input  wire  reg_idx_t       set_region_i,
    input  wire  chunk_idx_t     set_chunk_i,
    output logic                 set_done_o,
    output version_t             set_version_o,
    output logic                 set_refused_o,
    output logic                 set_last_o,

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
  } answer_t;

  // ---- output ----
  logic map_busy, map_set_ready, map_done, map_twice;
  version_t epoch;

  shef_written #(.NRegions(NRegions), .Words(MapWords), .FirstWord(MapFirst), .NumWords(MapNum)) i_written (
      .clk_i, .rst_ni, .clr_i, .busy_o(map_busy), .clear_i, .clear_mask_i,
      .set_valid_i(set_valid_i && IsOutput[set_region_i]), .set_ready_o(map_set_ready), .set_region_i, .set_chunk_i,
      .set_done_o(map_done), .set_twice_o(map_twice),
      .ask_valid_i, .ask_ready_o, .ask_region_i, .ask_chunk_i, .ask_bit_o,
      .count_region_i, .count_o, .map_region_i, .map_valid_i, .map_word_i, .map_o
  );
  always_comb begin
    epoch = '0;
    for (int unsigned r = 0; r < NRegions; r++) if (set_region_i == reg_idx_t'(r)) epoch = epoch_i[r];
  end

  // ---- counted ----
  logic count_busy, count_ask_ready, count_set_ready, count_done, count_refused, count_last, count_answered;
  version_t count_version;
  answer_t count_answer;

  if (CountWords != 0) begin : g_counted
    logic in_valid, in_last;
    version_t in_version;
    shef_counters #(.Words(CountWords), .FirstWord(CountFirst), .IsWide(CountWide), .NarrowW(CountW)) i_counters (
        .clk_i, .rst_ni, .clr_i, .busy_o(count_busy),
        .ask_valid_i(ver_valid_i && ver_ready_o), .ask_ready_o(count_ask_ready), .ask_region_i, .ask_chunk_i,
        .ans_valid_o(in_valid), .ans_version_o(in_version), .ans_last_o(in_last),
        .set_valid_i(set_valid_i && !IsOutput[set_region_i]), .set_ready_o(count_set_ready), .set_region_i, .set_chunk_i,
        .set_done_o(count_done), .set_version_o(count_version), .set_refused_o(count_refused), .set_last_o(count_last)
    );
    shef_fifo #(.W($bits(answer_t)), .Depth(Depth)) i_answers (
        .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
        .in_valid_i(in_valid), .in_ready_o(), .in_data_i({in_version, in_version == '0, in_last}),
        .out_valid_o(count_answered), .out_ready_i(ans_ready_i), .out_data_o(count_answer), .count_o()
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
    assign unused = ^{ver_valid_i, ans_ready_i};
  end

  // ---- all ----
  logic unused;
  assign unused = ^{ans_region_i, zero_addr_i};
  assign busy_o = map_busy || count_busy;
  assign ver_ready_o = count_ask_ready;
  assign ans_valid_o = count_answered;
  assign {ans_version_o, ans_zero_o, ans_last_o} = count_answer;
  assign set_ready_o = IsOutput[set_region_i] ? map_set_ready : count_set_ready;
  assign set_done_o = map_done || count_done;
  assign set_version_o = count_done ? count_version : epoch;
  assign set_refused_o = count_done ? count_refused : map_twice;
  assign set_last_o = count_done && count_last;
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
