// Directory of the cache: tags, dirty marks and ages of a 4-way set-associative cache, in one
// memory word per set.
//
// Handshake: chunks in (ask_*, valid/ready), decisions out one cycle later (out_*, valid/ready),
// one a cycle; a word that was just changed is forwarded. A miss allocates an empty way, else the
// oldest by a tree of three bits, unless busy_i names it; without an available way out_can_o is low
// and the decision waits. A decision changes the directory when it is taken.
// walk_i (level): presents every dirty line once on walk_* (valid/ready), which is clean then; with
// walk_drop_i drops all lines; walk_done_o at the end. No request may come in that time. A waiting
// decision uses the state after the walk. clr_i drops everything, in Sets cycles (clr_done_o).
`default_nettype none
module shef_cache_dir
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Sets = 1024,
    localparam int unsigned IW = $clog2(Sets),
    localparam int unsigned LW = IW + 2
) (
    input  wire              clk_i,
    input  wire              rst_ni,
    input  wire              clr_i,
    output logic             clr_done_o,

    input  wire              ask_valid_i,
    output logic             ask_ready_o,
    input  wire  reg_idx_t   ask_region_i,
    input  wire  chunk_idx_t ask_chunk_i,
    input  wire              ask_skip_i,      // a refused segment: passes without a lookup
    input  wire              ask_write_i,

    output logic             out_valid_o,
    input  wire              out_ready_i,
    output logic             out_hit_o,
    output logic             out_can_o,       // a hit, or a way is available
    output logic [LW-1:0]    out_line_o,
    output logic             out_evict_o,     // the line's chunk must be written back first
    output reg_idx_t         out_region_o,    // of that chunk
    output chunk_idx_t       out_chunk_o,
    output logic [IW-1:0]    out_set_o,
    input  wire  [3:0]       busy_i,          // ways of out_set_o that a waiting segment still uses

    input  wire              walk_i,
    input  wire              walk_drop_i,
    output logic             walk_done_o,
    output logic             walk_valid_o,
    input  wire              walk_ready_i,
    output logic [LW-1:0]    walk_line_o,
    output reg_idx_t         walk_region_o,
    output chunk_idx_t       walk_chunk_o
);
  typedef struct packed {
    logic valid;
    logic dirty;
    reg_idx_t region;
    chunk_idx_t chunk;
  } way_t;
  typedef struct packed {
    logic [2:0] old;  // [0]: the pair 2,3 is older; [1]: of 0,1 it is 1; [2]: of 2,3 it is 3
    way_t [3:0] way;
  } word_t;

  word_t mem_q[Sets];
  word_t word_q, word_d;
  logic valid_q, skip_q, write_q, walked_q, again, we, step;
  logic [IW-1:0] set_q, rd_set;
  reg_idx_t region_q;
  chunk_idx_t chunk_q;

  // different regions that are used together map to different sets
  function automatic logic [IW-1:0] set_of(input reg_idx_t region, input logic [IW-1:0] chunk);
    return chunk ^ IW'({region, {(IW > REGION_W ? IW - REGION_W : 1){1'b0}}});
  endfunction
  function automatic logic [1:0] index_of(input logic [3:0] one);
    logic [1:0] n;
    n = 2'd0;
    for (int w = 0; w < 4; w++) if (one[w]) n = 2'(w);
    return n;
  endfunction
  function automatic logic [2:0] used(input logic [2:0] old, input logic [1:0] way);
    logic [2:0] n;
    n = old;
    n[0] = !way[1];
    if (way[1]) n[2] = !way[0];
    else n[1] = !way[0];
    return n;
  endfunction

  // ---- decision ----
  logic [3:0] hits, empty, take;
  logic [1:0] oldest, way;
  assign step = !valid_q || (out_valid_o && out_ready_i);
  assign ask_ready_o = step && !walk_i && !clr_i;
  assign oldest = {word_q.old[0], word_q.old[0] ? word_q.old[2] : word_q.old[1]};

  always_comb begin
    hits = '0;
    empty = '0;
    for (int w = 0; w < 4; w++) begin
      hits[w] = word_q.way[w].valid && word_q.way[w].region == region_q &&
          word_q.way[w].chunk == chunk_q;
      empty[w] = !word_q.way[w].valid;
    end
    take = hits;
    if (hits == '0) begin
      take = empty & ~busy_i;
      if (take == '0 && !busy_i[oldest]) take = 4'b1 << oldest;
      if (take == '0) take = ~busy_i;
      take = take & (~take + 4'd1);
    end
    way = index_of(take);
  end
  assign again = walked_q && !walk_i && valid_q;
  assign out_valid_o = valid_q && !walk_i && !again && !clr_i;
  assign out_hit_o = hits != '0 && !skip_q;
  assign out_can_o = take != '0;
  assign out_line_o = {set_q, way};
  assign out_evict_o = !out_hit_o && word_q.way[way].valid && word_q.way[way].dirty;
  assign out_region_o = word_q.way[way].region;
  assign out_chunk_o = word_q.way[way].chunk;
  assign out_set_o = set_q;

  // ---- walk ----
  typedef enum logic [1:0] {WK_IDLE, WK_READ, WK_SHOW, WK_DONE} walk_e;
  walk_e walk_q;
  logic [3:0] dirty;
  logic [1:0] walk_way;
  logic [IW-1:0] walk_set_q;
  always_comb for (int w = 0; w < 4; w++) dirty[w] = word_q.way[w].valid && word_q.way[w].dirty;
  assign walk_way = index_of(dirty & (~dirty + 4'd1));
  assign walk_valid_o = walk_q == WK_SHOW && dirty != '0;
  assign walk_line_o = {walk_set_q, walk_way};
  assign walk_region_o = word_q.way[walk_way].region;
  assign walk_chunk_o = word_q.way[walk_way].chunk;
  assign walk_done_o = walk_q == WK_DONE;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i || !walk_i) begin
      walk_q <= WK_IDLE;
      walk_set_q <= '0;
    end else begin
      unique case (walk_q)
        WK_IDLE: walk_q <= WK_READ;
        WK_READ: walk_q <= WK_SHOW;
        WK_SHOW:
        if (dirty == '0) begin
          walk_q <= (walk_set_q == IW'(Sets - 1)) ? WK_DONE : WK_READ;
          walk_set_q <= walk_set_q + 1'b1;
        end
        default: ;
      endcase
    end
  end

  // ---- the memory: one read, one write a cycle ----
  logic [IW-1:0] clr_set_q, wr_set;
  logic clr_done_q;
  assign clr_done_o = clr_done_q && clr_i;
  assign rd_set = walk_i ? walk_set_q : again ? set_q : set_of(ask_region_i, ask_chunk_i[IW-1:0]);
  always_comb begin
    word_d = word_q;
    we = 1'b0;
    wr_set = set_q;
    if (clr_i) begin
      we = 1'b1;
      wr_set = clr_set_q;
      word_d = '0;
    end else if (walk_q == WK_SHOW) begin
      we = dirty == '0;
      wr_set = walk_set_q;
      for (int w = 0; w < 4; w++) begin
        word_d.way[w].dirty = 1'b0;
        if (walk_drop_i) word_d.way[w] = '0;
      end
    end else if (out_valid_o && out_ready_i && !skip_q) begin
      we = 1'b1;
      word_d.old = used(word_q.old, way);
      word_d.way[way] = '{valid: 1'b1, dirty: write_q ||
          (out_hit_o && word_q.way[way].dirty), region: region_q, chunk: chunk_q};
    end
  end

  always_ff @(posedge clk_i) begin
    if (we) mem_q[wr_set] <= word_d;
    if (clr_i) word_q <= '0;
    else if (walk_q == WK_READ || again || (ask_valid_i && ask_ready_o))
      word_q <= (we && wr_set == rd_set) ? word_d : mem_q[rd_set];
    else if (walk_valid_o && walk_ready_i) word_q.way[walk_way].dirty <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      walked_q <= 1'b0;
      skip_q <= 1'b0;
      write_q <= 1'b0;
      set_q <= '0;
      region_q <= '0;
      chunk_q <= '0;
    end else if (clr_i) begin
      walked_q <= 1'b0;
      skip_q <= 1'b1;  // a segment that waits here gets an error
      set_q <= '0;
      region_q <= '0;
      chunk_q <= '0;
    end else begin
      walked_q <= walk_i;
      if (step && !walk_i) begin
        valid_q <= ask_valid_i;
        if (ask_valid_i) begin
          skip_q <= ask_skip_i;
          write_q <= ask_write_i;
          set_q <= rd_set;
          region_q <= ask_region_i;
          chunk_q <= ask_chunk_i;
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !clr_i) begin
      clr_set_q <= '0;
      clr_done_q <= 1'b0;
    end else begin
      clr_set_q <= clr_set_q + 1'b1;
      if (clr_set_q == IW'(Sets - 1)) clr_done_q <= 1'b1;
    end
  end
endmodule
`default_nettype wire
