// Counts the blocks sealed by each region key, and reports when a key is exhausted.
//
// use_i: a chunk of use_region_i is about to be sealed. exhausted_o rises early enough that every
// line in flight can still be sealed below the limit of 2^LimitLog2 blocks. Only the end of the key
// (clr_i) zeroes the counts.
`default_nettype none
module shef_key_use
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter int unsigned NLines = 40,
    parameter int unsigned LimitLog2 = 48,
    parameter log2_tab_t ChunkLog2 = '0
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,
    input  wire                  clr_i,
    input  wire                  use_i,
    input  wire  reg_idx_t       use_region_i,
    output logic [NRegions-1:0]  exhausted_o
);
  if (LimitLog2 > 48) begin : g_bad_limit
    $error("shef_key_use: a region key may seal at most 2^48 blocks");
  end

  for (genvar r = 0; r < int'(NRegions); r++) begin : g_region
    // blocks of a chunk and its mask
    localparam longint unsigned COST =
        (64'd1 << ((ChunkLog2[r] < 4'd6 ? 4'd6 : ChunkLog2[r]) - 4'd4)) + 64'd1;
    // every line, and an accepted burst of 64 chunks
    localparam longint unsigned MARGIN = COST * (64'(NLines) + 64'd68);
    logic [48:0] used_q;
    logic exhausted_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) begin
        used_q <= '0;
        exhausted_q <= 1'b0;
      end else begin
        if (use_i && use_region_i == reg_idx_t'(r)) used_q <= used_q + 49'(COST);
        if (64'(used_q) + MARGIN >= (64'd1 << LimitLog2)) exhausted_q <= 1'b1;
      end
    end
    assign exhausted_o[r] = exhausted_q;
  end
endmodule
`default_nettype wire
