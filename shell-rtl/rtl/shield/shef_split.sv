// Checks a burst of the accelerator, finds its region and cuts it into one segment per chunk.
//
// Handshake: AX valid/ready in, segments valid/ready out, both registered. Latency two cycles, one segment a cycle.
// A burst that must be refused becomes one segment that holds its kind and all its beats. epoch_zero_i and exhausted_i are
// levels, one bit per region; enable_i low refuses everything. stop_i makes no difference here.
`default_nettype none
module shef_split
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [NRegions-1:0] Regions = '0,
    parameter bit IsWrite = 1'b0
) (
    input  wire                   clk_i,
    input  wire                   rst_ni,
    input  wire                   enable_i,
    input  wire  [NRegions-1:0]   epoch_zero_i,
    input  wire  [NRegions-1:0]   exhausted_i,
    input  wire  axi_ax_t         ax_i,
    input  wire                   ax_valid_i,
    output logic                  ax_ready_o,
    output seg_t                  seg_o,
    output logic                  seg_valid_o,
    input  wire                   seg_ready_i
);
  // ---- stage 1: decode ----
  axi_ax_t ax_q;
  logic ax_valid_q;
  logic take;  // stage 2 takes the decoded burst

  assign ax_ready_o = !ax_valid_q || take;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ax_valid_q <= 1'b0;
      ax_q <= '0;
    end else if (ax_ready_o) begin
      ax_valid_q <= ax_valid_i;
      if (ax_valid_i) ax_q <= ax_i;
    end
  end

  refuse_kind_e refuse;
  reg_idx_t region;
  logic found;
  logic [63:0] start;   // of the first beat, aligned to the beat size
  logic [14:0] span;    // bytes from there to the end of the burst
  logic [15:0] page_end;
  logic [63:0] rel;     // start relative to the region
  logic [3:0] clog2;    // of the region's chunk
  logic [11:0] offset;
  chunk_idx_t chunk;

  always_comb begin
    start = ax_q.addr & ~((64'h7f >> (3'd7 - ax_q.size)));
    span = 15'(({7'b0, ax_q.len} + 15'd1) << ax_q.size);
    page_end = {4'b0, start[11:0]} + {1'b0, span};
    region = '0;
    found = 1'b0;
    rel = '0;
    clog2 = 4'd6;
    refuse = REFUSE_RANGE;
    for (int unsigned r = 0; r < NRegions; r++) begin
      if (ax_q.addr >= Regions[r].base && ax_q.addr - Regions[r].base < Regions[r].size) begin
        found = 1'b1;
        region = reg_idx_t'(r);
        rel = start - Regions[r].base;
        clog2 = Regions[r].chunk_log2;
        if (IsWrite && Regions[r].mode == MODE_INPUT) refuse = REFUSE_READ_ONLY;
        else if (Regions[r].mode == MODE_NONE) refuse = REFUSE_RANGE;
        else if (epoch_zero_i[r] && (Regions[r].mode == MODE_INPUT || Regions[r].mode == MODE_OUTPUT)) refuse = REFUSE_EPOCH_ZERO;
        else if (IsWrite && exhausted_i[r]) refuse = REFUSE_EXHAUSTED;
        else refuse = REFUSE_NONE;
      end
    end
    if (!found) refuse = REFUSE_RANGE;
    if (ax_q.burst != AXI_BURST_INCR || ax_q.size > AXI_SIZE_64 || page_end > 16'd4096) refuse = REFUSE_BURST;
    if (!enable_i) refuse = REFUSE_NOT_KEYED;
    chunk = '0;
    for (int unsigned r = 0; r < NRegions; r++) begin
      if (region == reg_idx_t'(r)) chunk = CHUNK_INDEX_W'(rel >> Regions[r].chunk_log2);
    end
    offset = rel[11:0] & (12'hfff >> (4'd12 - clog2));
  end

  // ---- stage 2: one segment a cycle ----
  seg_t seg_q;      // .beats counts all beats that are left
  logic busy_q;
  logic [3:0] clog2_q;
  logic [8:0] room;  // beats from seg_q.offset to the end of the chunk, at most 256 asked for
  logic [12:0] room_bytes;
  logic step;

  assign room_bytes = (13'd1 << clog2_q) - {1'b0, seg_q.offset};

  always_comb begin
    // a burst has at most 256 beats, so a wider count of free beats may saturate
    logic [12:0] r;
    r = room_bytes >> seg_q.size;
    room = (r > 13'd256) ? 9'd256 : r[8:0];
    seg_o = seg_q;
    seg_o.last = 1'b1;
    if (seg_q.refuse == REFUSE_NONE && seg_q.beats > room) begin
      seg_o.beats = room;
      seg_o.last = 1'b0;
    end
  end

  assign seg_valid_o = busy_q;
  assign step = busy_q && seg_ready_i;
  assign take = ax_valid_q && (!busy_q || (step && seg_o.last));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      seg_q <= '0;
      clog2_q <= 4'd6;
    end else if (take) begin
      busy_q <= 1'b1;
      clog2_q <= clog2;
      seg_q.id <= ax_q.id;
      seg_q.refuse <= refuse;
      seg_q.region <= region;
      seg_q.chunk <= chunk;
      seg_q.offset <= offset;
      seg_q.size <= ax_q.size;
      seg_q.beats <= {1'b0, ax_q.len} + 9'd1;
      seg_q.first <= 1'b1;
      seg_q.last <= 1'b1;
      seg_q.addr <= ax_q.addr;
    end else if (step) begin
      if (seg_o.last) busy_q <= 1'b0;
      seg_q.beats <= seg_q.beats - seg_o.beats;
      seg_q.chunk <= seg_q.chunk + 1'b1;
      seg_q.offset <= '0;
      seg_q.first <= 1'b0;
    end
  end
endmodule
`default_nettype wire
