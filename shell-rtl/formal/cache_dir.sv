// shef_cache_dir, the directory of the chunk cache: no chunk is in two ways. A chunk hits if and
// only if it was inserted and has not left since, at the line that it was given. Whenever a dirty
// chunk leaves, by eviction or by a walk, it is presented for write-back, once and under its own
// name; a clean one never is. After a walk nothing is dirty, and after a dropping walk or a wipe
// the directory is empty. A way that a waiting request uses is never reallocated. Assumed, as in
// the cache: no requests come during a walk or a wipe, a walk keeps its kind, and a wipe is held
// until it is done. Two sets, one symbolic chunk.
`default_nettype none
module cache_dir
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire              clk_i,
    input wire              rst_ni,
    input wire              clr_i,
    input wire              ask_valid_i,
    input wire  reg_idx_t   ask_region_i,
    input wire  chunk_idx_t ask_chunk_i,
    input wire              ask_skip_i,
    input wire              ask_write_i,
    input wire              out_ready_i,
    input wire  [3:0]       busy_i,
    input wire              walk_i,
    input wire              walk_drop_i,
    input wire              walk_ready_i,
    input wire  reg_idx_t   x_region_i,
    input wire  chunk_idx_t x_chunk_i
);
  logic clr_done, ask_ready, out_valid, out_hit, out_can, out_evict, walk_done, walk_valid;
  logic [2:0] out_line, walk_line;
  reg_idx_t out_region, walk_region;
  chunk_idx_t out_chunk, walk_chunk;
  logic out_set;
  shef_cache_dir #(.Sets(2)) dut (
      .clk_i, .rst_ni, .clr_i, .clr_done_o(clr_done), .ask_valid_i, .ask_ready_o(ask_ready),
      .ask_region_i, .ask_chunk_i, .ask_skip_i,
      .ask_write_i, .out_valid_o(out_valid), .out_ready_i, .out_hit_o(out_hit), .out_can_o(out_can),
      .out_line_o(out_line),
      .out_evict_o(out_evict), .out_region_o(out_region), .out_chunk_o(out_chunk),
      .out_set_o(out_set), .busy_i, .walk_i, .walk_drop_i,
      .walk_done_o(walk_done), .walk_valid_o(walk_valid), .walk_ready_i, .walk_line_o(walk_line),
      .walk_region_o(walk_region),
      .walk_chunk_o(walk_chunk)
  );

  logic init = 1'b0;
  logic cleared;                        // a wipe is done: before it the memory holds any value
  reg_idx_t x_region;                   // a symbolic chunk, constant
  chunk_idx_t x_chunk;
  logic x_set;
  logic here, dirty;                    // it is in the cache; it differs from memory
  logic [2:0] line;                     // its line
  logic was_walk, was_drop, was_clr, was_done, passed, shown;
  assign x_set = x_chunk[0];
  logic fire, mine, walks, walks_mine;
  assign fire = out_valid && out_ready_i;
  assign mine = dut.region_q == x_region && dut.chunk_q == x_chunk;
  assign walks = walk_valid && walk_ready_i;
  assign walks_mine = walks && walk_region == x_region && walk_chunk == x_chunk;

  always_comb begin
    // as in the cache
    assume (!(walk_i && clr_i));
    assume (cleared || clr_i || (!ask_valid_i && !walk_i) || !rst_ni);
    if (init && rst_ni) begin
      assume (!was_walk || walk_i || was_done);
      assume (!was_walk || !walk_i || walk_drop_i == was_drop);
      assume (!was_clr || clr_i || dut.clr_done_q);
    end
    // a decision is taken only if a way is available or not needed
    assume (!fire || dut.skip_q || out_can);
  end

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) begin
      assume (!rst_ni);
      x_region <= x_region_i;
      x_chunk <= x_chunk_i;
    end
    was_walk <= rst_ni && walk_i;
    was_drop <= walk_drop_i;
    was_clr <= rst_ni && clr_i;
    was_done <= rst_ni && walk_done;

    if (!rst_ni) begin
      cleared <= 1'b0;
      here <= 1'b0;
      dirty <= 1'b0;
    end else if (clr_i) begin
      here <= 1'b0;
      dirty <= 1'b0;
      if (clr_done) cleared <= 1'b1;
    end else begin
      if (fire && !dut.skip_q) begin
        if (mine) begin
          here <= 1'b1;
          line <= out_line;
          dirty <= dut.write_q || (here && dirty);
        end else if (here && out_line == line) begin
          here <= 1'b0;
          dirty <= 1'b0;
        end
      end
      if (walks_mine) dirty <= 1'b0;
      // a dropping walk has passed its set
      if (walk_i && dut.walk_q == 2'd2 && dut.dirty == '0 && dut.walk_set_q == x_set && walk_drop_i)
        here <= 1'b0;
    end
    if (!rst_ni || !walk_i) passed <= 1'b0;
    else if (dut.walk_q == 2'd2 && dut.dirty == '0 && dut.walk_set_q == x_set) passed <= 1'b1;
  end

  // the word of the chunk's set, from the memory
  logic [3:0] same, marked;
  logic [1:0] at;
  always_comb begin
    for (int w = 0; w < 4; w++) begin
      same[w] = dut.mem_q[x_set].way[w].valid && dut.mem_q[x_set].way[w].region == x_region &&
          dut.mem_q[x_set].way[w].chunk == x_chunk;
      marked[w] = dut.mem_q[x_set].way[w].dirty;
    end
    at = line[1:0];
  end

  always_comb begin
    if (init && rst_ni) begin
      // supporting invariants: walk and wipe advance only while requested, and a wipe leaves zeros
      // behind it
      assert (dut.walk_q == 2'd0 || was_walk);
      assert (!was_done || dut.walk_q == 2'd3 || (dut.walk_q == 2'd0 && !was_walk));
      assert (was_clr || (dut.clr_set_q == '0 && !dut.clr_done_q));
      assert (!was_clr || !was_walk);
      if (dut.clr_done_q || dut.clr_set_q == 1'b1) assert (dut.mem_q[0] == '0);
      if (dut.clr_done_q) assert (dut.mem_q[1] == '0);
      if (was_clr)
        assert (!here && !dirty && dut.walk_q == 2'd0 && !dut.walked_q && dut.word_q == '0 &&
            dut.set_q == '0 && dut.skip_q);
    end
    if (init && rst_ni && cleared && !clr_i) begin
      // the memory and its read request
      if (here) assert (same == 4'b1 << at && line[2] == x_set);
      else assert (same == '0);
      if (here && !(walk_i && dut.walk_set_q == x_set && dut.walk_q == 2'd2))
        assert (marked[at] == dirty);
      // every chunk is in its set
      for (int w = 0; w < 4; w++) begin
        assert (!dut.mem_q[0].way[w].valid || !dut.mem_q[0].way[w].chunk[0]);
        assert (!dut.mem_q[1].way[w].valid || dut.mem_q[1].way[w].chunk[0]);
      end
      // a waiting request has the memory's word, or reads it again
      if (dut.valid_q && !walk_i && !dut.walked_q) assert (dut.word_q == dut.mem_q[dut.set_q]);
      if (dut.valid_q && !dut.skip_q) assert (dut.set_q == dut.chunk_q[0]);
      // a walk presents each set's word with the remaining marks
      if (dut.walk_q == 2'd2) begin
        for (int w = 0; w < 4; w++) begin
          assert (dut.word_q.way[w].valid == dut.mem_q[dut.walk_set_q].way[w].valid);
          assert (dut.word_q.way[w].region == dut.mem_q[dut.walk_set_q].way[w].region);
          assert (dut.word_q.way[w].chunk == dut.mem_q[dut.walk_set_q].way[w].chunk);
          assert (!dut.word_q.way[w].dirty || dut.mem_q[dut.walk_set_q].way[w].dirty);
        end
        if (here && dut.walk_set_q == x_set) assert (dut.word_q.way[at].dirty == dirty);
      end
      // decisions
      if (out_valid && !dut.skip_q && mine) assert (out_hit == here && (!here || out_line == line));
      if (out_valid && !dut.skip_q && !mine && here && out_line == line && out_can) begin
        assert (!out_hit && out_evict == dirty && out_region == x_region && out_chunk == x_chunk);
      end
      if (out_valid && !dut.skip_q && out_evict && out_region == x_region && out_chunk == x_chunk)
        assert (here && dirty && out_line == line);
      if (out_valid && out_can && !out_hit && !dut.skip_q) assert (!busy_i[out_line[1:0]]);
      // walks
      if (walk_valid && walk_region == x_region && walk_chunk == x_chunk)
        assert (here && dirty && walk_line == line);
      if (walk_i && passed) assert (!dirty && (!walk_drop_i || !here));
      if (walk_i && dut.walk_q == 2'd3) assert (passed);
      if (walk_i && passed) assert (dut.walk_q == 2'd3 || dut.walk_set_q > x_set);
      if (walk_i && !passed && dut.walk_q != 2'd0) assert (dut.walk_set_q <= x_set);
      if (walk_done && walk_i) assert (!dirty && (!walk_drop_i || !here));
      assert (!dirty || here);
    end
    cover (init && rst_ni && cleared && here && dirty && fire && !mine && out_line == line);
    cover (init && rst_ni && walks_mine && walk_drop_i);
    cover (init && rst_ni && walk_done && here && !walk_drop_i && dut.valid_q);
    cover (init && rst_ni && cleared && clr_i && dut.valid_q);
    cover (init && rst_ni && cleared && out_valid && out_hit && mine && dirty && busy_i == 4'hf);
  end
endmodule
`default_nettype wire
