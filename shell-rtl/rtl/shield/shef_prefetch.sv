// Prefetch: offers the next chunk of a read stream to the directory until a line holds it.
//
// rd_i, wr_i: a read or a write of that region and chunk was decided (pulses). load_o: next_*_o is
// loaded in this cycle, when rd_idle_i lets the directory compare it with all lines; match_i is the
// result, in the same cycle. valid_o: the chunk region_o, chunk_o is on offer; go_o: no line has it
// and it may allocate one; take_i: it allocated one. Later allocations are tracked through took_i
// and taker_i (a read, a write, the chunk on offer) and take_one_i (one-hot). stream_o: a stream
// continues; end_o: it ended, and so does the offer. A chunk may allocate a line two cycles after
// load_o at the earliest.
`default_nettype none
module shef_prefetch
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NLines = 40,
    parameter int unsigned ChunkW = CHUNK_INDEX_W,
    parameter logic [MAX_REGIONS-1:0] IsOutput = '0,
    parameter logic [MAX_REGIONS-1:0] IsBig = '0,
    parameter logic [MAX_REGIONS-1:0][3:0] Prefetch = '0,
    parameter logic [MAX_REGIONS-1:0][CHUNK_INDEX_W-1:0] NumChunks = '0,
    localparam int unsigned NameW = REGION_W + ChunkW
) (
    input  wire                   clk_i,
    input  wire                   rst_ni,
    input  wire                   clr_i,
    input  wire                   stop_i,      // no stream now
    input  wire                   lost_i,      // lines lose their names: no go_o in the next cycle
    input  wire  [MAX_REGIONS-1:0] frozen_i,

    input  wire                   rd_i,
    input  wire  reg_idx_t        rd_region_i,
    input  wire  [ChunkW-1:0]     rd_chunk_i,
    input  wire                   wr_i,
    input  wire  reg_idx_t        wr_region_i,

    input  wire                   rd_idle_i,
    output logic                  load_o,
    output reg_idx_t              next_region_o,
    output logic [ChunkW-1:0]     next_chunk_o,
    input  wire  [NLines-1:0]     match_i,     // lines with its name
    input  wire  [NLines-1:0]     live_i,      // lines with a valid name

    output logic                  valid_o,
    output logic                  go_o,
    output reg_idx_t              region_o,
    output logic [ChunkW-1:0]     chunk_o,
    input  wire                   take_i,
    input  wire  [1:0]            room_i,      // for one more line of each class
    input  wire  [2:0]            took_i,
    input  wire  [1:0][NameW-1:0] taker_i,     // region and chunk
    input  wire  [NLines-1:0]     take_one_i,

    output logic                  stream_o,
    output logic                  end_o
);
  typedef struct packed {
    reg_idx_t region;
    logic [ChunkW-1:0] chunk;
  } name_t;
  name_t next, name_q, ours;
  logic wanted, hit, taken;
  logic [2:0] same;
  logic [NLines-1:0] match_q;

  shef_ahead #(.ChunkW(ChunkW), .IsOutput(IsOutput), .Prefetch(Prefetch),
      .NumChunks(NumChunks)) u_ahead (
      .clk_i, .rst_ni, .clr_i, .stop_i, .rd_i, .rd_region_i, .rd_chunk_i, .wr_i, .wr_region_i,
      .stream_o, .end_o, .next_valid_o(wanted), .next_take_i(load_o), .region_o(next.region),
      .next_chunk_o(next.chunk)
  );
  assign next_region_o = next.region;
  assign next_chunk_o = next.chunk;
  assign region_o = name_q.region;
  assign chunk_o = name_q.chunk;
  assign load_o = wanted && !valid_o && rd_idle_i;
  assign hit = (match_q & live_i) != '0;
  assign ours = load_o ? next : name_q;
  assign same = {ours == name_q, ours == taker_i[1], ours == taker_i[0]};
  assign taken = (took_i & same) != '0;   // a line is allocated for our chunk

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      valid_o <= 1'b0;
      go_o <= 1'b0;
      name_q <= '0;
      match_q <= '0;
    end else begin
      go_o <= valid_o && !hit && !taken && room_i[IsBig[name_q.region]] &&
          !frozen_i[name_q.region] && !lost_i;
      if (load_o) begin
        valid_o <= 1'b1;
        name_q <= next;
      end else if (take_i || hit) begin
        valid_o <= 1'b0;
      end
      match_q <= ((load_o ? match_i : match_q) & ~take_one_i) | (taken ? take_one_i : '0);
      if (end_o) valid_o <= 1'b0;
    end
  end
endmodule
`default_nettype wire
