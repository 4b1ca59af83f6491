// Stream detector of a region: finds sequential reads, and the next chunk worth prefetching.
//
// rd_i, wr_i: a read or a write of that region and chunk was decided (pulses). end_o: the stream
// ended, in the second cycle after the event that ends it; prefetched chunks are no longer kept.
// next_valid_o: next_chunk_o of region_o is the next one, taken with next_take_i.
`default_nettype none
module shef_ahead
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned ChunkW = CHUNK_INDEX_W,
    parameter logic [MAX_REGIONS-1:0] IsOutput = '0,
    parameter logic [MAX_REGIONS-1:0][3:0] Prefetch = '0,
    parameter logic [MAX_REGIONS-1:0][CHUNK_INDEX_W-1:0] NumChunks = '0
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire               stop_i,    // no stream now
    input  wire               rd_i,
    input  wire  reg_idx_t    rd_region_i,
    input  wire  [ChunkW-1:0] rd_chunk_i,
    input  wire               wr_i,
    input  wire  reg_idx_t    wr_region_i,

    output logic              stream_o,
    output logic              end_o,
    output logic              next_valid_o,
    input  wire               next_take_i,
    output reg_idx_t          region_o,
    output logic [ChunkW-1:0] next_chunk_o
);
  typedef logic [ChunkW+3:0] pos_t;   // a chunk, or one beyond the last

  logic rd_q, wr_q;                   // the event of the last cycle
  reg_idx_t rd_region_q, wr_region_q, region_q;
  // newest read chunk, the one after it; last to prefetch, next to prefetch
  pos_t rd_chunk_q, chunk_q, after_q, end_q, next_q;
  logic stream_q, wanted_q, moved_q, end_now_q;
  logic mine, follows, same, ends;

  assign mine = rd_region_q == region_q;
  assign follows = mine && rd_chunk_q == after_q;
  assign same = mine && rd_chunk_q == chunk_q;
  assign ends = (rd_q && Prefetch[rd_region_q] != '0 && !follows && !same) ||
      (wr_q && wr_region_q == region_q) || stop_i;
  assign stream_o = stream_q;
  assign end_o = end_now_q;
  assign next_valid_o = stream_q && wanted_q && !moved_q;
  assign region_o = region_q;
  assign next_chunk_o = next_q[ChunkW-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      rd_q <= 1'b0;
      wr_q <= 1'b0;
      rd_region_q <= '0;
      wr_region_q <= '0;
      rd_chunk_q <= '0;
      region_q <= '0;
      chunk_q <= '0;
      after_q <= '0;
      end_q <= '0;
      next_q <= '0;
      stream_q <= 1'b0;
      wanted_q <= 1'b0;
      moved_q <= 1'b0;
      end_now_q <= 1'b0;
    end else begin
      rd_q <= rd_i;
      wr_q <= wr_i;
      if (rd_i) begin
        rd_region_q <= rd_region_i;
        rd_chunk_q <= pos_t'(rd_chunk_i);
      end
      if (wr_i) wr_region_q <= wr_region_i;
      // valid one cycle after a change of next_q, end_q or the region
      wanted_q <= next_q <= end_q && next_q < pos_t'(NumChunks[region_q]);
      moved_q <= rd_q || next_take_i;
      if (next_take_i) next_q <= next_q + 1'b1;
      if (rd_q && Prefetch[rd_region_q] != '0 && !IsOutput[rd_region_q]) begin
        region_q <= rd_region_q;
        chunk_q <= rd_chunk_q;
        after_q <= rd_chunk_q + 1'b1;
        end_q <= rd_chunk_q + pos_t'(Prefetch[rd_region_q]);
        stream_q <= follows || (stream_q && same);
        if (follows && (!stream_q || next_q <= rd_chunk_q)) next_q <= rd_chunk_q + 1'b1;
      end
      end_now_q <= ends;
      if (ends) stream_q <= 1'b0;
    end
  end
endmodule
`default_nettype wire
