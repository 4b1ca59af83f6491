// shef_dma_banks, two ports: towards each, AW, W and AR follow the handshake rules if the engine
// does. A burst goes to the port of its region, unchanged, and to no other. All bursts of a
// direction in flight are at one port, which receives their W beats, after their AW, and supplies
// each response. Nothing is lost. The counters are correct and do not wrap. Three regions, one of
// them `bypass`. R and B are free.
`default_nettype none
module dma_banks
  import shef_pkg::*;
(
    input wire            clk_i,
    input wire            rst_ni,
    input wire axi_ax_t   aw_i,
    input wire            aw_valid_i,
    input wire axi_w_t    w_i,
    input wire            w_valid_i,
    input wire axi_ax_t   ar_i,
    input wire            ar_valid_i,
    input wire [1:0]      aw_ready_i,
    input wire [1:0]      w_ready_i,
    input wire axi_b_t    b0_i,
    input wire axi_b_t    b1_i,
    input wire [1:0]      b_valid_i,
    input wire [1:0]      ar_ready_i,
    input wire axi_r_t    r0_i,
    input wire axi_r_t    r1_i,
    input wire [1:0]      r_valid_i
);
  localparam region_cfg_t [2:0] REGIONS = {
    region_cfg_t'{id: 8'd2, mode: MODE_BYPASS, base: 64'h8000, size: 64'h1000, tag_base: 64'h0,
    chunk_log2: 4'd6, key256: 1'b1, set: 2'd1, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd1, mode: MODE_INPUT, base: 64'h4000, size: 64'h2000, tag_base: 64'h2_0000,
    chunk_log2: 4'd9, key256: 1'b1, set: 2'd1, node_base: 64'h0, prefetch: 4'd0,
    wide_counter: 1'b0},
    region_cfg_t'{id: 8'd0, mode: MODE_OUTPUT, base: 64'h1_0000, size: 64'h8000,
    tag_base: 64'h3_0000, chunk_log2: 4'd6, key256: 1'b1, set: 2'd0, node_base: 64'h0,
    prefetch: 4'd0, wide_counter: 1'b0}};
  localparam set_cfg_t [1:0] SETS = {
    set_cfg_t'{lanes: 8'd1, big_lines: 16'd4, small_lines: 16'd4, ring_beats: 16'd64, acc: 2'd0,
    port: 2'd1, cache_bytes: 32'd0, cache_line: 13'd0},
    set_cfg_t'{lanes: 8'd1, big_lines: 16'd4, small_lines: 16'd4, ring_beats: 16'd64, acc: 2'd0,
    port: 2'd0, cache_bytes: 32'd0, cache_line: 13'd0}};
  // address ranges of the second port: data and tags (a page) of region 1, and region 2, which has
  // no tags
  function automatic logic at_second(input logic [63:0] addr);
    at_second = (addr >= 64'h4000 && addr < 64'h6000) || (addr >= 64'h8000 && addr < 64'h9000) ||
        (addr >= 64'h2_0000 && addr < 64'h2_1000);
  endfunction
  logic aw_ready, w_ready, ar_ready, b_valid, r_valid;
  axi_b_t b;
  axi_r_t r;
  axi_ax_t [1:0] maw, mar;
  axi_w_t [1:0] mw;
  axi_b_t [1:0] mb;
  axi_r_t [1:0] mr;
  logic [1:0] maw_valid, mw_valid, mar_valid;
  assign mb = {b1_i, b0_i};
  assign mr = {r1_i, r0_i};
  shef_dma_banks #(.NPorts(2), .NRegions(3), .Regions(REGIONS), .NSets(2), .Sets(SETS)) dut (
      .clk_i, .rst_ni,
      .dma_aw_i(aw_i), .dma_aw_valid_i(aw_valid_i), .dma_aw_ready_o(aw_ready), .dma_w_i(w_i),
      .dma_w_valid_i(w_valid_i), .dma_w_ready_o(w_ready),
      .dma_b_o(b), .dma_b_valid_o(b_valid), .dma_ar_i(ar_i), .dma_ar_valid_i(ar_valid_i),
      .dma_ar_ready_o(ar_ready), .dma_r_o(r), .dma_r_valid_o(r_valid),
      .mem_aw_o(maw), .mem_aw_valid_o(maw_valid), .mem_aw_ready_i(aw_ready_i), .mem_w_o(mw),
      .mem_w_valid_o(mw_valid), .mem_w_ready_i(w_ready_i),
      .mem_b_i(mb), .mem_b_valid_i(b_valid_i), .mem_ar_o(mar), .mem_ar_valid_o(mar_valid),
      .mem_ar_ready_i(ar_ready_i),
      .mem_r_i(mr), .mem_r_valid_i(r_valid_i)
  );
  axi_address #(.Assume(1'b1)) i_aw (.clk_i, .rst_ni, .valid_i(aw_valid_i), .ready_i(aw_ready),
      .ax_i(aw_i));
  axi_address #(.Assume(1'b1)) i_ar (.clk_i, .rst_ni, .valid_i(ar_valid_i), .ready_i(ar_ready),
      .ax_i(ar_i));
  axi_channel #(.W($bits(axi_w_t)), .Assume(1'b1)) i_w (.clk_i, .rst_ni, .valid_i(w_valid_i),
      .ready_i(w_ready), .data_i(w_i), .break_i(1'b0));
  for (genvar p = 0; p < 2; p++) begin : g_port
    axi_address i_maw (.clk_i, .rst_ni, .valid_i(maw_valid[p]), .ready_i(aw_ready_i[p]),
        .ax_i(maw[p]));
    axi_address i_mar (.clk_i, .rst_ni, .valid_i(mar_valid[p]), .ready_i(ar_ready_i[p]),
        .ax_i(mar[p]));
    axi_channel #(.W($bits(axi_w_t))) i_mw (.clk_i, .rst_ni, .valid_i(mw_valid[p]),
        .ready_i(w_ready_i[p]), .data_i(mw[p]), .break_i(1'b0));
  end

  // ---- bursts in flight at each port: reads, writes, writes without their last beat ----
  logic init = 1'b0;
  logic [9:0] reads[2], writes[2], beats[2];
  logic [1:0] ar_fire, aw_fire, w_end, r_end, b_end;
  always_comb begin
    for (int p = 0; p < 2; p++) begin
      ar_fire[p] = mar_valid[p] && ar_ready_i[p];
      aw_fire[p] = maw_valid[p] && aw_ready_i[p];
      w_end[p] = mw_valid[p] && w_ready_i[p] && mw[p].last;
      r_end[p] = r_valid_i[p] && mr[p].last && reads[p] != '0;
      b_end[p] = b_valid_i[p] && writes[p] != '0;
    end
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    for (int p = 0; p < 2; p++) begin
      if (!rst_ni) begin
        reads[p] <= '0;
        writes[p] <= '0;
        beats[p] <= '0;
      end else begin
        reads[p] <= reads[p] + 10'(ar_fire[p]) - 10'(r_end[p]);
        writes[p] <= writes[p] + 10'(aw_fire[p]) - 10'(b_end[p]);
        beats[p] <= beats[p] + 10'(aw_fire[p]) - 10'(w_end[p]);
      end
    end
  end

  logic rp, wp;
  assign rp = dut.g_banks.ar_port_q;
  assign wp = dut.g_banks.aw_port_q;
  always_comb begin
    if (init && rst_ni) begin
      for (int p = 0; p < 2; p++) begin
        // unchanged, to the port of its address
        if (mar_valid[p])
          assert (ar_valid_i && mar[p] == ar_i && at_second(ar_i.addr) == (p == 1) &&
              reads[1-p] == '0);
        if (maw_valid[p])
          assert (aw_valid_i && maw[p] == aw_i && at_second(aw_i.addr) == (p == 1) &&
              writes[1-p] == '0 && beats[1-p] == '0);
        // after its AW
        if (mw_valid[p]) assert (w_valid_i && mw[p] == w_i && beats[p] != '0 && beats[1-p] == '0);
        // requested data come from that port, all of it
        if (r_valid_i[p] && reads[p] != '0) assert (r_valid && r == mr[p]);
        if (b_valid_i[p] && writes[p] != '0) assert (b_valid && b == mb[p]);
        // and they do come
        if (ar_valid_i && reads[1-p] == '0 && reads[p] < 10'd255 &&
            at_second(ar_i.addr) == (p == 1)) assert (mar_valid[p]);
        if (aw_valid_i && writes[1-p] == '0 && beats[1-p] == '0 && writes[p] < 10'd255 &&
            beats[p] < 10'd255 && at_second(aw_i.addr) == (p == 1)) assert (maw_valid[p]);
        if (w_valid_i && beats[p] != '0) assert (mw_valid[p]);
      end
      if (ar_valid_i) assert (ar_ready == (ar_fire != '0));
      if (aw_valid_i) assert (aw_ready == (aw_fire != '0));
      if (w_valid_i) assert (w_ready == ((mw_valid & w_ready_i) != '0));
      if (r_valid)
        assert ((r_valid_i[0] && r == mr[0] && reads[1] == '0) ||
            (r_valid_i[1] && r == mr[1] && reads[0] == '0));
      if (b_valid)
        assert ((b_valid_i[0] && b == mb[0] && writes[1] == '0) ||
            (b_valid_i[1] && b == mb[1] && writes[0] == '0));
      // the counters do not wrap, and the traffic is at the block's port
      assert (reads[!rp] == '0 && reads[rp] <= 10'd255 && {2'd0, dut.g_banks.reads_q} == reads[rp]);
      assert (writes[!wp] == '0 && writes[wp] <= 10'd255 &&
          {2'd0, dut.g_banks.writes_q} == writes[wp]);
      assert (beats[!wp] == '0 && beats[wp] <= 10'd255 &&
          {2'd0, dut.g_banks.w_owed_q} == beats[wp]);
    end
    // another port waits
    cover (init && rst_ni && reads[1] == 10'd2 && ar_valid_i && mar_valid == '0 && r_valid);
    // an unowed response
    cover (init && rst_ni && mar_valid[0] && rp && r_valid_i[1] && reads[1] == '0);
    cover (init && rst_ni && writes[0] == 10'd2 && beats[0] == 10'd1 && mw_valid[0] && w_end[0] &&
        b_valid);
    // a response before its data
    cover (init && rst_ni && beats[0] == 10'd1 && writes[0] == '0 && aw_valid_i && maw_valid == '0);
    // the two directions change ports independently
    cover (init && rst_ni && wp && aw_fire[0] && reads[1] != '0);
    // W waits for its AW
    cover (init && rst_ni && aw_fire[1] && aw_i.addr == 64'h2_0fc0 && w_valid_i && mw_valid == '0);
  end
endmodule
`default_nettype wire
