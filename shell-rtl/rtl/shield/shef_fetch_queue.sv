// Fetch queue: chunks to fetch, with their versions, and lines to fill.
//
// take_*: a line was allocated for a chunk (pulse, at most Depth wait); take_write_i: by a write,
// which needs only its version. Lines leave in that order, with the response of the version query
// if there is one (ans_*, valid/ready); a chunk that was never written needs no memory. merge_*: a
// line to fill (valid/ready). Both take turns when both wait. chunk_valid_o: chunk_o is to be
// fetched; chunk_go_i: it was, in the same cycle. known_o: the version of line_o arrived, or its
// region is frozen (dead_o) and no version comes. sealed_*: a line was given a new version (pulse).
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_fetch_queue
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NLines = 40,
    parameter int unsigned Depth = 64,
    parameter logic [MAX_REGIONS-1:0] HasVersions = '0
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire               stop_i,
    input  wire  [ZERO_W-1:0] zero_addr_i,
    input  wire  [MAX_REGIONS-1:0] frozen_i,

    input  wire               take_valid_i,
    input  wire  line_t       take_line_i,
    input  wire  reg_idx_t    take_region_i,
    input  wire  chunk_idx_t  take_chunk_i,
    input  wire               take_write_i,
    input  wire               merge_valid_i,
    output logic              merge_ready_o,
    input  wire  line_t       merge_line_i,
    input  wire  reg_idx_t    merge_region_i,
    input  wire  chunk_idx_t  merge_chunk_i,

    output line_t             line_o,        // at the head
    output reg_idx_t          region_o,
    input  wire  version_t    epoch_i,       // of that region
    input  wire               ans_valid_i,
    output logic              ans_ready_o,
    input  wire  version_t    ans_version_i,
    input  wire               ans_zero_i,    // never written
    input  wire               ans_last_i,    // it cannot be raised
    input  wire               ans_none_i,    // there is no version
    input  wire               sealed_valid_i,
    input  wire  line_t       sealed_line_i,
    input  wire  version_t    sealed_version_i,

    output logic              known_o,
    output logic              known_zero_o,
    output logic              known_last_o,
    output logic              dead_o,

    output logic              chunk_valid_o,
    output chunk_t            chunk_o,
    input  wire               chunk_go_i
);
  logic valid, write, asks, fetches, merge, turn_q;
  chunk_idx_t index;
  version_t version_q[NLines];   // of the chunk in the line, as in memory

  shef_fifo #(.W(LINE_W + REGION_W + CHUNK_INDEX_W + 1), .Depth(Depth)) u_fifo (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
      .in_valid_i(take_valid_i), .in_ready_o(),
      .in_data_i({take_line_i, take_region_i, take_chunk_i, take_write_i}),
      .out_valid_o(valid), .out_ready_i((asks || dead_o) ? known_o : (chunk_go_i && !merge)),
      .out_data_o({line_o, region_o, index, write}), .count_o()
  );
  assign asks = HasVersions[region_o];
  assign dead_o = frozen_i[region_o];
  // the table of versions accepts one value a cycle, and seals have priority
  assign fetches = valid && !write && !dead_o &&
      (!asks || (ans_valid_i && !ans_zero_i && !ans_none_i && !sealed_valid_i));
  assign merge = merge_valid_i && (!fetches || turn_q);
  assign merge_ready_o = chunk_go_i && merge;
  // a region without versions is about to be frozen
  assign known_o = valid && !stop_i &&
      (dead_o ? (!asks || ans_valid_i)
              : (asks && ans_valid_i && !ans_none_i && !sealed_valid_i &&
              ((chunk_go_i && !merge) || write || ans_zero_i)));
  assign known_zero_o = ans_zero_i && !dead_o;
  assign known_last_o = ans_last_i;
  assign ans_ready_o = known_o && asks;

  assign chunk_valid_o = merge || fetches;
  always_comb begin
    chunk_o = '{line: line_o, region: region_o, chunk: index, version: asks ? ans_version_i
        : epoch_i};
    if (merge) chunk_o = '{line: merge_line_i, region: merge_region_i, chunk: merge_chunk_i,
        version: version_q[merge_line_i]};
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_q <= 1'b0;
    else if (chunk_go_i) turn_q <= !merge;
    if (clr_i) version_q[(32'(zero_addr_i) < NLines) ? line_t'(zero_addr_i) : line_t'(NLines -
        1)] <= '0;
    else if (sealed_valid_i) version_q[sealed_line_i] <= sealed_version_i;
    else if (known_o && asks) version_q[line_o] <= ans_version_i;
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
