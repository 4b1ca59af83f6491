// shef_split: the segments of a burst add up to its beats, none leaves its chunk, the first and the
// last are marked once, and a refused burst is one segment. One region of each chunk size class: 64
// B, 512 B, 4 KiB.
`default_nettype none
module split
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire       clk_i,
    input wire       rst_ni,
    input wire       enable_i,
    input wire       ax_valid_i,
    input wire [7:0] ax_len_i,
    input wire [2:0] ax_size_i,
    input wire [1:0] ax_burst_i,
    input wire [15:0] ax_addr_i,
    input wire       seg_ready_i
);
  localparam region_cfg_t [2:0] REGIONS = {
    region_cfg_t'{id: 8'd2, mode: MODE_OUTPUT, base: 64'h6000, size: 64'h2000, tag_base: 64'h1_0000,
    chunk_log2: 4'd12, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd1, mode: MODE_INPUT, base: 64'h4000, size: 64'h2000, tag_base: 64'h2_0000,
    chunk_log2: 4'd9, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd0, mode: MODE_OUTPUT, base: 64'h2000, size: 64'h2000, tag_base: 64'h3_0000,
    chunk_log2: 4'd6, key256: 1'b1, set: 2'd0, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0}};
  axi_ax_t ax;
  seg_t seg;
  logic ax_ready, seg_valid;
  assign ax = '{id: 8'd5, addr: {48'd0, ax_addr_i}, len: ax_len_i, size: ax_size_i,
      burst: ax_burst_i};

  shef_split #(.NRegions(3), .Regions(REGIONS), .IsWrite(1'b0)) dut (
      .clk_i, .rst_ni, .enable_i, .epoch_zero_i('0), .exhausted_i('0),
      .ax_i(ax), .ax_valid_i, .ax_ready_o(ax_ready), .seg_o(seg), .seg_valid_o(seg_valid),
      .seg_ready_i
  );

  // the current burst: its beats, and those that have left
  logic [8:0] asked, left;
  logic first, init = 1'b0;
  logic [15:0] next;        // address of the next segment, aligned to the beat size
  logic [2:0] size;
  logic waited;
  seg_t last;
  logic [15:0] at;
  logic [15:0] bytes;
  logic [15:0] chunk_bytes;
  assign chunk_bytes = (seg.region == 4'd0) ? 16'd64 : (seg.region == 4'd1) ? 16'd512 : 16'd4096;
  assign at = ((seg.region == 4'd0) ? 16'h2000 : (seg.region == 4'd1) ? 16'h4000 : 16'h6000) +
      ((seg.region == 4'd0) ? {seg.chunk[9:0], 6'd0} : (seg.region == 4'd1) ? {seg.chunk[6:0], 9'd0}
      : {seg.chunk[3:0], 12'd0}) +
      {4'd0, seg.offset};
  assign bytes = 16'(seg.beats) << seg.size;

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    waited <= rst_ni && seg_valid && !seg_ready_i;
    last <= seg;
    if (!rst_ni) begin
      first <= 1'b1;
      left <= '0;
    end else begin
      if (dut.take) begin
        asked <= {1'b0, dut.ax_q.len} + 9'd1;
        left <= {1'b0, dut.ax_q.len} + 9'd1;
        size <= dut.ax_q.size;
        next <= {dut.ax_q.addr[15:12], dut.first};
        first <= 1'b1;
      end else if (seg_valid && seg_ready_i) begin
        left <= left - seg.beats;
        next <= next + bytes;
        first <= 1'b0;
      end
    end
  end

  always_comb begin
    if (init && rst_ni && seg_valid) begin
      assert ({1'b0, dut.left_q} + 9'd1 == left && left != '0 && left <= 9'd256);
      assert (seg.size == size && seg.first == first);
      assert (seg.beats != '0 && seg.beats <= left);
      assert (seg.last == (seg.beats == left));
      if (seg.refuse != REFUSE_NONE) assert (seg.first && seg.last && seg.beats == asked);
      else begin
        assert (size <= 3'd6 && seg.region <= 4'd2);
        assert (at == next);
        assert ({4'b0, seg.offset} + bytes <= chunk_bytes);
        // a segment other than the last ends with its chunk
        if (!seg.last) assert ({4'b0, seg.offset} + bytes == chunk_bytes);
        // the burst stays within its page
        assert ({4'b0, next[11:0]} + (16'(left) << size) <= 16'd4096);
        assert (dut.chunk_last_q == 12'((chunk_bytes - 16'd1) >> size) &&
            dut.room_q == (dut.chunk_last_q & ~(seg.offset >> size)));
        assert (((seg.offset >> size) << size) == seg.offset);
      end
    end
    if (init && rst_ni && waited) assert (seg_valid && seg == last);
  end

  always_comb begin
    cover (init && rst_ni && seg_valid && seg.refuse == REFUSE_NONE && seg.last && !seg.first &&
        seg.region == 4'd0 && seg.size == 3'd3);
    cover (init && rst_ni && seg_valid && seg.refuse == REFUSE_BURST);
    cover (init && rst_ni && seg_valid && seg.refuse == REFUSE_RANGE && waited);
  end
endmodule
`default_nettype wire
