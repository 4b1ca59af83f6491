// shef_counters: the version given to a chunk is one above its last one, starting at 1, up to the
// limit; then there is no other. A query returns the last version given. Between two wipes, for a
// symbolic chunk: one region of narrow counters (two bits here), two in a word, and one of wide
// ones.
`default_nettype none
module counters
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire       clk_i,
    input wire       rst_ni,
    input wire       clr_i,
    input wire       ask_valid_i,
    input wire       ask_region_i,
    input wire [1:0] ask_chunk_i,
    input wire       set_valid_i,
    input wire       set_region_i,
    input wire [1:0] set_chunk_i
);
  logic busy, ask_ready, ans_valid, ans_last, set_ready, set_done, set_refused, set_last;
  version_t ans_version, set_version;
  shef_counters #(.Words(4), .FirstWord({{14{32'd0}}, 32'd2, 32'd0}), .IsWide(16'd2),
      .NarrowW(2)) dut (
      .clk_i, .rst_ni, .clr_i, .busy_o(busy),
      .ask_valid_i, .ask_ready_o(ask_ready), .ask_region_i({3'd0, ask_region_i}),
      .ask_chunk_i({38'd0, ask_chunk_i}),
      .ans_valid_o(ans_valid), .ans_version_o(ans_version), .ans_last_o(ans_last),
      .set_valid_i, .set_ready_o(set_ready), .set_region_i({3'd0, set_region_i}),
      .set_chunk_i({38'd0, set_chunk_i}),
      .set_done_o(set_done), .set_version_o(set_version), .set_refused_o(set_refused),
      .set_last_o(set_last)
  );

  logic init = 1'b0;
  logic r;                       // symbolic chunk, constant
  logic [1:0] c;
  version_t last;                // its last version
  logic set_1, set_2, ask_1;     // it was raised one, two cycles ago; it was queried
  version_t most;
  logic [1:0] word;
  assign most = r ? '1 : 48'd3;
  assign word = r ? {1'b1, c[0]} : {1'b0, c[1]};
  always_ff @(posedge clk_i) begin
    r <= r;
    c <= c;
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    // the wide region has two chunks; a chunk is not queried while it is being raised
    assume (!ask_region_i || !ask_chunk_i[1]);
    assume (!set_region_i || !set_chunk_i[1]);
    assume (!r || !c[1]);
    if (ask_valid_i && ask_region_i == r && ask_chunk_i == c) assume (!set_1 && !set_2);
    set_1 <= rst_ni && !clr_i && set_valid_i && set_ready && set_region_i == r && set_chunk_i == c;
    set_2 <= rst_ni && !clr_i && set_1;
    ask_1 <= rst_ni && !clr_i && ask_valid_i && ask_ready && ask_region_i == r && ask_chunk_i == c;
    if (!rst_ni || clr_i) last <= '0;
    else if (set_2 && set_done && !set_refused) last <= set_version;
  end
  // the counter in its word
  function automatic version_t of(input logic [71:0] x);
    return r ? x[47:0] : {12'd0, c[0] ? x[71:36] : x[35:0]};
  endfunction
  logic [71:0] held;
  version_t stored;
  assign held = dut.g_bank[0].mem_q[word];
  assign stored = of(held);
  logic passed;                  // a sweep has zeroed it
  assign passed = !dut.sweep_q || dut.sweep_addr_q > word;
  version_t raised;              // the value to be written
  assign raised = of(dut.word_q);
  always_comb begin
    if (init && rst_ni && !clr_i && !dut.clr_q) begin
      if (set_2) assert (set_done && set_refused == (last == most));
      if (set_2 && !set_refused)
        assert (set_version == last + 1'b1 && set_version != '0 &&
            set_last == (set_version == most));
      if (ask_1) assert (ans_valid && ans_version == last && ans_last == (last == most));
    end
    if (init && rst_ni) begin
      // supporting invariants
      assert (last <= most &&
          (!dut.sweep_q || (!set_1 && !set_2 && !ask_1 && !dut.raise_q && !dut.set_q)));
      assert (!dut.sweep_q || last == '0);
      if (passed && !(dut.raise_q && dut.raise_addr_q == {1'b0, word}) && !set_2)
        assert (stored == last);
      if (passed && dut.sweep_q) assert (held == '0);
      if (set_1) assert (dut.set_q && dut.addr_q == {1'b0, word} && dut.wide_q == r &&
          dut.high_q == c[0] && dut.g_bank[0].read_q == held);
      // The other half of its word may be raised in the same cycle. A raise in the same word is of
      // the other half.
      if (dut.set_q && dut.addr_q == {1'b0, word} && !set_1) assert (!r && dut.high_q != c[0]);
      if (ask_1) assert (dut.ask_q && dut.addr_q == {1'b0, word} && dut.wide_q == r &&
          dut.high_q == c[0] && of(dut.g_bank[0].read_q) == last);
      if (set_2) assert (dut.done_q && dut.raise_q == !dut.refused_q &&
          dut.value_q == last + 1'b1 && dut.refused_q == (last == most) && stored == last);
      if (set_2 && dut.raise_q) assert (dut.raise_addr_q == {1'b0, word} && raised == last + 1'b1);
      if (!set_2 && dut.raise_q && dut.raise_addr_q == {1'b0, word})
        assert (raised == last && stored == last);
      if (dut.set_q)
        assert (!dut.raise_q && dut.addr_q[2] == 1'b0 &&
            dut.g_bank[0].read_q == dut.g_bank[0].mem_q[dut.addr_q[1:0]] &&
            dut.wide_q == dut.addr_q[1]);
      if (dut.raise_q) assert (dut.raise_addr_q[2] == 1'b0 && dut.done_q);
      if (dut.done_q) assert (!dut.set_q || !dut.raise_q);
    end
    cover (init && rst_ni && set_2 && set_done && set_refused && !r);
    cover (init && rst_ni && ask_1 && ans_version == 48'd2 && r);
  end
endmodule
`default_nettype wire
