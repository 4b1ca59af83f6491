// shef_dma_banks, two ports: towards each, AW, W and AR follow the handshake rules if the engine
// does. A burst goes to the port of its region, unchanged, and to no other. All bursts of a
// direction in flight are at one port, which receives their W beats, after their AW, and supplies
// each response. Nothing is lost. The counters are correct and do not wrap. Three regions, one of
// them `bypass`. R and B are free.
`default_nettype none
module dma_banks
  import shef_pkg::*;
(
    input wire                 clk_i,
    input wire                 rst_ni,
    input wire axi_req_t       dma_i,      // b_ready and r_ready are not used
    input wire axi_rsp_t [1:0] mem_rsp_i
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
  axi_req_t dma_req;
  axi_rsp_t dma_rsp;
  axi_req_t [1:0] mem_req;
  always_comb begin
    dma_req = dma_i;
    {dma_req.b_ready, dma_req.r_ready} = '1;
  end
  shef_dma_banks #(.NPorts(2), .NRegions(3), .Regions(REGIONS), .NSets(2), .Sets(SETS)) dut (
      .clk_i, .rst_ni, .dma_req_i(dma_req), .dma_rsp_o(dma_rsp), .mem_req_o(mem_req), .mem_rsp_i
  );
  axi_address #(.Assume(1'b1)) u_aw (.clk_i, .rst_ni, .valid_i(dma_req.aw_valid),
      .ready_i(dma_rsp.aw_ready), .ax_i(dma_req.aw));
  axi_address #(.Assume(1'b1)) u_ar (.clk_i, .rst_ni, .valid_i(dma_req.ar_valid),
      .ready_i(dma_rsp.ar_ready), .ax_i(dma_req.ar));
  axi_channel #(.W($bits(axi_w_t)), .Assume(1'b1)) u_w (.clk_i, .rst_ni, .valid_i(dma_req.w_valid),
      .ready_i(dma_rsp.w_ready), .data_i(dma_req.w), .break_i(1'b0));
  for (genvar p = 0; p < 2; p++) begin : g_port
    axi_address u_maw (.clk_i, .rst_ni, .valid_i(mem_req[p].aw_valid),
        .ready_i(mem_rsp_i[p].aw_ready), .ax_i(mem_req[p].aw));
    axi_address u_mar (.clk_i, .rst_ni, .valid_i(mem_req[p].ar_valid),
        .ready_i(mem_rsp_i[p].ar_ready), .ax_i(mem_req[p].ar));
    axi_channel #(.W($bits(axi_w_t))) u_mw (.clk_i, .rst_ni, .valid_i(mem_req[p].w_valid),
        .ready_i(mem_rsp_i[p].w_ready), .data_i(mem_req[p].w), .break_i(1'b0));
  end

  // ---- bursts in flight at each port: reads, writes, writes without their last beat ----
  logic init = 1'b0;
  logic [9:0] reads[2], writes[2], beats[2];
  logic [1:0] ar_asks, aw_asks, w_asks, ar_fire, aw_fire, w_fire, w_end, r_end, b_end;
  always_comb begin
    for (int p = 0; p < 2; p++) begin
      ar_asks[p] = mem_req[p].ar_valid;
      aw_asks[p] = mem_req[p].aw_valid;
      w_asks[p] = mem_req[p].w_valid;
      ar_fire[p] = mem_req[p].ar_valid && mem_rsp_i[p].ar_ready;
      aw_fire[p] = mem_req[p].aw_valid && mem_rsp_i[p].aw_ready;
      w_fire[p] = mem_req[p].w_valid && mem_rsp_i[p].w_ready;
      w_end[p] = w_fire[p] && mem_req[p].w.last;
      r_end[p] = mem_rsp_i[p].r_valid && mem_rsp_i[p].r.last && reads[p] != '0;
      b_end[p] = mem_rsp_i[p].b_valid && writes[p] != '0;
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
        if (mem_req[p].ar_valid)
          assert (dma_req.ar_valid && mem_req[p].ar == dma_req.ar &&
              at_second(dma_req.ar.addr) == (p == 1) && reads[1-p] == '0);
        if (mem_req[p].aw_valid)
          assert (dma_req.aw_valid && mem_req[p].aw == dma_req.aw &&
              at_second(dma_req.aw.addr) == (p == 1) && writes[1-p] == '0 && beats[1-p] == '0);
        // after its AW
        if (mem_req[p].w_valid)
          assert (dma_req.w_valid && mem_req[p].w == dma_req.w && beats[p] != '0 &&
              beats[1-p] == '0);
        assert (mem_req[p].b_ready && mem_req[p].r_ready);
        // requested data come from that port, all of it
        if (mem_rsp_i[p].r_valid && reads[p] != '0)
          assert (dma_rsp.r_valid && dma_rsp.r == mem_rsp_i[p].r);
        if (mem_rsp_i[p].b_valid && writes[p] != '0)
          assert (dma_rsp.b_valid && dma_rsp.b == mem_rsp_i[p].b);
        // and they do come
        if (dma_req.ar_valid && reads[1-p] == '0 && reads[p] < 10'd255 &&
            at_second(dma_req.ar.addr) == (p == 1)) assert (mem_req[p].ar_valid);
        if (dma_req.aw_valid && writes[1-p] == '0 && beats[1-p] == '0 && writes[p] < 10'd255 &&
            beats[p] < 10'd255 && at_second(dma_req.aw.addr) == (p == 1))
          assert (mem_req[p].aw_valid);
        if (dma_req.w_valid && beats[p] != '0) assert (mem_req[p].w_valid);
      end
      if (dma_req.ar_valid) assert (dma_rsp.ar_ready == (ar_fire != '0));
      if (dma_req.aw_valid) assert (dma_rsp.aw_ready == (aw_fire != '0));
      if (dma_req.w_valid) assert (dma_rsp.w_ready == (w_fire != '0));
      if (dma_rsp.r_valid)
        assert ((mem_rsp_i[0].r_valid && dma_rsp.r == mem_rsp_i[0].r && reads[1] == '0) ||
            (mem_rsp_i[1].r_valid && dma_rsp.r == mem_rsp_i[1].r && reads[0] == '0));
      if (dma_rsp.b_valid)
        assert ((mem_rsp_i[0].b_valid && dma_rsp.b == mem_rsp_i[0].b && writes[1] == '0) ||
            (mem_rsp_i[1].b_valid && dma_rsp.b == mem_rsp_i[1].b && writes[0] == '0));
      // the counters do not wrap, and the traffic is at the block's port
      assert (reads[!rp] == '0 && reads[rp] <= 10'd255 && {2'd0, dut.g_banks.reads_q} == reads[rp]);
      assert (writes[!wp] == '0 && writes[wp] <= 10'd255 &&
          {2'd0, dut.g_banks.writes_q} == writes[wp]);
      assert (beats[!wp] == '0 && beats[wp] <= 10'd255 &&
          {2'd0, dut.g_banks.w_owed_q} == beats[wp]);
    end
    // another port waits
    cover (init && rst_ni && reads[1] == 10'd2 && dma_req.ar_valid && ar_asks == '0 &&
        dma_rsp.r_valid);
    // an unowed response
    cover (init && rst_ni && mem_req[0].ar_valid && rp && mem_rsp_i[1].r_valid && reads[1] == '0);
    cover (init && rst_ni && writes[0] == 10'd2 && beats[0] == 10'd1 && w_end[0] &&
        dma_rsp.b_valid);
    // a response before its data
    cover (init && rst_ni && beats[0] == 10'd1 && writes[0] == '0 && dma_req.aw_valid &&
        aw_asks == '0);
    // the two directions change ports independently
    cover (init && rst_ni && wp && aw_fire[0] && reads[1] != '0);
    // W waits for its AW
    cover (init && rst_ni && aw_fire[1] && dma_req.aw.addr == 64'h2_0fc0 && dma_req.w_valid &&
        w_asks == '0);
  end
endmodule
`default_nettype wire
