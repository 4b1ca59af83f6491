// shef_written: a chunk is handed on for sealing at most once between two clears of its region. A
// query returns the state of its bit. The count never misses a seal. Two output regions of 64
// chunks.
`default_nettype none
module written
  import shef_set_pkg::*;
(
    input wire       clk_i,
    input wire       rst_ni,
    input wire       clear_i,
    input wire [1:0] clear_mask_i,
    input wire       set_valid_i,
    input wire       set_region_i,
    input wire [5:0] set_chunk_i,
    input wire       ask_valid_i,
    input wire       ask_region_i,
    input wire [5:0] ask_chunk_i
);
  logic busy, set_ready, set_done, set_twice, ask_ready, ask_bit;

  shef_written #(.NRegions(2), .Words(4), .FirstWord({{14{32'd0}}, 32'd2, 32'd0}),
      .NumWords({{14{32'd0}}, 32'd2, 32'd2})) dut (
      .clk_i, .rst_ni, .clr_i(1'b0), .busy_o(busy), .clear_i, .clear_mask_i,
      .set_valid_i, .set_ready_o(set_ready), .set_region_i({3'd0, set_region_i}),
      .set_chunk_i({34'd0, set_chunk_i}),
      .set_done_o(set_done), .set_twice_o(set_twice),
      .ask_valid_i, .ask_ready_o(ask_ready), .ask_region_i({3'd0, ask_region_i}),
      .ask_chunk_i({34'd0, ask_chunk_i}),
      .ask_bit_o(ask_bit),
      .count_region_i('0), .count_o(), .map_region_i('0), .map_valid_i(1'b0), .map_word_i('0),
      .map_o()
  );

  // a symbolic chunk
  logic r;
  logic [5:0] c;
  always_ff @(posedge clk_i) begin
    r <= r;
    c <= c;
  end
  logic sealed;          // it was handed on since its region was cleared
  logic clean;           // its region was cleared since reset
  logic mine_q, ask_mine_q, init = 1'b0;
  logic mine;
  assign mine = set_valid_i && set_ready && set_region_i == r && set_chunk_i == c;

  // the region is being cleared: requested, or the sweep is in it
  logic clearing;
  assign clearing = dut.todo_q[r] || (dut.sweep_q && dut.sweep_region_q == {3'd0, r});

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    // the control unit clears only when no seal is in flight
    if (init && (dut.set_read_q || (set_valid_i && set_ready))) assume (!clear_i);
    mine_q <= rst_ni && mine;
    ask_mine_q <= rst_ni && ask_valid_i && ask_ready && ask_region_i == r && ask_chunk_i == c;
    if (!rst_ni) sealed <= 1'b0;
    else if (clearing) sealed <= 1'b0;
    else if (mine_q && set_done && !set_twice) sealed <= 1'b1;
  end

  logic [1:0] w;
  assign w = {r, c[5]};
  logic [1:0] left;
  assign left = dut.sweep_left_q[1:0];
  always_comb begin
    if (init && rst_ni) begin
      assert (set_done == dut.set_read_q);
      // at most once
      if (mine_q && set_done && !set_twice) assert (!sealed);
      if (ask_mine_q) assert (ask_bit == sealed);
      // supporting invariants
      assert (mine_q == (dut.set_read_q && dut.set_addr_q == w && dut.set_bit_q == c[4:0]));
      if (mine_q) assert (dut.word_q[c[4:0]] == sealed);
      if (ask_mine_q) assert (dut.ask_q && dut.ask_bit_q == c[4:0] && dut.word_q[c[4:0]] == sealed);
      if (dut.set_read_q) assert (!dut.sweep_q && dut.todo_q == '0);
      if (!clearing && !mine_q) assert (dut.mem_q[w][c[4:0]] == sealed);
      if (clearing) assert (!mine_q);
      if (dut.sweep_q) begin
        assert (dut.sweep_region_q < 4'd2);
        assert (dut.sweep_left_q == 32'd1 || dut.sweep_left_q == 32'd2);
        assert (dut.sweep_addr_q == {dut.sweep_region_q[0], left == 2'd1});
        // the word behind the sweep is zero already
        if (dut.sweep_region_q == {3'd0, r} && !dut.todo_q[r] && left == 2'd1 && c[5] == 1'b0)
          assert (dut.mem_q[w] == '0);
      end
    end
  end

  always_comb begin
    cover (init && rst_ni && mine_q && set_done && set_twice);
    cover (init && rst_ni && ask_mine_q && ask_bit);
    cover (init && rst_ni && sealed && clearing);
  end
endmodule
`default_nettype wire
