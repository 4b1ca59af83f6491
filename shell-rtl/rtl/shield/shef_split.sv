// Checks a burst of the accelerator, finds its region and cuts it into one segment per chunk.
//
// Handshake: AX valid/ready in, segments valid/ready out, both registered. Latency two cycles, one
// segment a cycle. A burst that must be refused becomes one segment with the kind of refusal and
// all its beats. epoch_zero_i and exhausted_i are levels, one bit per region; enable_i low refuses
// everything. stop_i has no effect here.
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
  logic take;  // stage 2 accepts the decoded burst

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

  // Bases and sizes of regions are multiples of 4 KiB, and a burst stays in its page: the page
  // identifies the region, and the low bits alone the byte in a chunk.
  localparam int unsigned PAGE = 12;
  refuse_kind_e refuse;
  reg_idx_t region;
  chunk_idx_t chunk;
  logic [PAGE-1:0] first;       // byte of the first beat in the page, aligned to the beat size
  logic [PAGE-1:0] at;          // the same in beats
  logic [PAGE-1:0] offset;      // of the first beat in its chunk
  logic [PAGE-1:0] chunk_last;  // number of a chunk's last beat
  logic [14:0] last;            // byte of the last beat, from the start of the page of the first
  logic [NRegions-1:0] match;

  always_comb begin
    first = ax_q.addr[PAGE-1:0] & ~(PAGE'(7'h7f >> (3'd7 - ax_q.size)));
    at = first >> ax_q.size;
    last = {3'b0, ax_q.addr[PAGE-1:0]} + (15'(ax_q.len) << ax_q.size);
    match = '0;
    region = '0;
    chunk = '0;
    offset = '0;
    chunk_last = '0;
    refuse = REFUSE_NONE;
    for (int unsigned r = 0; r < NRegions; r++) begin
      match[r] = {1'b0, ax_q.addr[63:PAGE]} >= {1'b0, Regions[r].base[63:PAGE]} &&
          {1'b0, ax_q.addr[63:PAGE]} < {1'b0, Regions[r].base[63:PAGE]} +
          {1'b0, Regions[r].size[63:PAGE]};
      if (match[r]) begin
        region |= reg_idx_t'(r);
        chunk |= CHUNK_INDEX_W'({ax_q.addr[63:PAGE] - Regions[r].base[63:PAGE],
            first} >> Regions[r].chunk_log2);
        offset |= first & ((PAGE'(1) << Regions[r].chunk_log2) - 1'b1);
        chunk_last |= ((PAGE'(1) << Regions[r].chunk_log2) - 1'b1) >> ax_q.size;
        if (IsWrite && Regions[r].mode == MODE_INPUT) refuse = REFUSE_READ_ONLY;
        else if (Regions[r].mode == MODE_NONE) refuse = REFUSE_RANGE;
        else if (epoch_zero_i[r] && (Regions[r].mode == MODE_INPUT ||
            Regions[r].mode == MODE_OUTPUT)) refuse = REFUSE_EPOCH_ZERO;
        else if (IsWrite && exhausted_i[r]) refuse = REFUSE_EXHAUSTED;
      end
    end
    if (match == '0) refuse = REFUSE_RANGE;
    if (ax_q.burst != AXI_BURST_INCR || ax_q.size > AXI_SIZE_64 || last[14:PAGE] != '0)
      refuse = REFUSE_BURST;
    if (!enable_i) refuse = REFUSE_NOT_KEYED;
  end

  // ---- stage 2: one segment a cycle ----
  seg_t seg_q;                              // .beats and .last are computed below
  logic busy_q;
  logic [7:0] left_q;                       // beats left, less one
  // beats from the segment's first to the end of its chunk, less one; of a whole chunk
  logic [PAGE-1:0] room_q, chunk_last_q;
  logic step, more;

  assign more = seg_q.refuse == REFUSE_NONE && {4'd0, left_q} > room_q;
  always_comb begin
    seg_o = seg_q;
    seg_o.beats = {1'b0, more ? room_q[7:0] : left_q} + 9'd1;
    seg_o.last = !more;
  end

  logic unused;
  assign unused = ^last[PAGE-1:0];   // only whether it is in the page

  assign seg_valid_o = busy_q;
  assign step = busy_q && seg_ready_i;
  assign take = ax_valid_q && (!busy_q || (step && !more));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      seg_q <= '0;
      left_q <= '0;
      room_q <= '0;
      chunk_last_q <= '0;
    end else if (take) begin
      busy_q <= 1'b1;
      left_q <= ax_q.len;
      room_q <= chunk_last & ~at;
      chunk_last_q <= chunk_last;
      seg_q <= '{id: ax_q.id, refuse: refuse, region: region, chunk: chunk, offset: offset,
          size: ax_q.size, beats: 9'd0,
                 first: 1'b1, last: 1'b0, addr: ax_q.addr};
    end else if (step) begin
      if (!more) busy_q <= 1'b0;
      left_q <= left_q - room_q[7:0] - 8'd1;
      room_q <= chunk_last_q;
      seg_q.chunk <= seg_q.chunk + 1'b1;
      seg_q.offset <= '0;
      seg_q.first <= 1'b0;
    end
  end
endmodule
`default_nettype wire
