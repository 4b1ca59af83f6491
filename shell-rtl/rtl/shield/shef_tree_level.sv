// Node cache of one tree level: four ways, a directory and the counters (the tags of nodes are not
// kept).
//
// look_*: one lookup; in the next cycle, and until the next lookup, hit_o and hit_way_o locate the
// node, and room_o and victim_* the way for a miss: an empty one, else the least recently used
// (tree bits) that `busy_i` does not name.
// touch_*: that way of the set was used; with take it now holds the given node, clean; with mark it
// is dirty. At least one cycle lies between a touch and the next lookup.
// rd_*: all eight counters one cycle later, kept until the next read. wr_*: the counters that
// `wr_lanes_i` names. While clr_i is high the words at zero_addr_i are zeroed: a sweep over 4 *
// Sets addresses zeroes everything.
`default_nettype none
module shef_tree_level
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
#(
    parameter int unsigned Sets = 128,
    localparam int unsigned SW = $clog2(Sets)
) (
    input  wire                clk_i,
    input  wire                clr_i,
    input  wire [ZERO_W-1:0]   zero_addr_i,

    input  wire                look_en_i,
    input  wire  reg_idx_t     look_region_i,
    input  wire  node_t        look_node_i,
    input  wire [3:0]          busy_i,
    output logic               hit_o,
    output way_t               hit_way_o,
    output logic               room_o,
    output way_t               victim_way_o,
    output logic               victim_dirty_o,
    output reg_idx_t           victim_region_o,
    output node_t              victim_node_o,

    input  wire                touch_en_i,
    input  wire                touch_take_i,
    input  wire                touch_mark_i,
    input  wire  reg_idx_t     touch_region_i,
    input  wire  node_t        touch_node_i,
    input  wire  way_t         touch_way_i,

    input  wire                rd_en_i,
    input  wire [SW-1:0]       rd_set_i,
    input  wire  way_t         rd_way_i,
    output logic [383:0]       rd_data_o,
    input  wire [7:0]          wr_lanes_i,
    input  wire [SW-1:0]       wr_set_i,
    input  wire  way_t         wr_way_i,
    input  wire [383:0]        wr_data_i
);
  localparam int unsigned TW = NODE_W - SW;

  typedef struct packed {
    logic valid;
    reg_idx_t region;
    logic [TW-1:0] tag;
  } entry_t;

  // ---- directory ----
  logic [SW-1:0] look_set, touch_set, zero_set, set_q;
  entry_t [3:0] entry;
  logic [3:0] dirty, same, valid, pick;
  logic hit_q;
  way_t hit_way_q;
  logic [2:0] age_mem_q[Sets];
  logic [2:0] age_q, age_next;
  way_t oldest;
  assign look_set = look_node_i[SW-1:0];
  assign touch_set = touch_node_i[SW-1:0];
  assign zero_set = (32'(zero_addr_i) < Sets) ? SW'(zero_addr_i) : SW'(Sets - 1);


  function automatic way_t first_of(input logic [3:0] x);
    way_t n;
    n = '0;
    for (int i = 3; i >= 0; i--) if (x[i]) n = way_t'(i);
    return n;
  endfunction

  for (genvar w = 0; w < 4; w++) begin : g_way
    (* ram_style = "distributed" *) entry_t mem_q[Sets];
    (* ram_style = "distributed" *) logic dirty_mem_q[Sets];
    entry_t entry_q, look;
    logic dirty_q, here;
    assign here = touch_en_i && touch_way_i == way_t'(w);
    always_ff @(posedge clk_i) begin
      if (clr_i || (here && touch_take_i))
        mem_q[clr_i ? zero_set : touch_set] <= clr_i ? '0
            : '{valid: 1'b1, region: touch_region_i, tag: touch_node_i[NODE_W-1:SW]};
    end
    always_ff @(posedge clk_i) begin
      if (clr_i || (here && (touch_take_i || touch_mark_i)))
        dirty_mem_q[clr_i ? zero_set : touch_set] <= !clr_i && touch_mark_i;
    end
    assign look = mem_q[look_set];
    assign same[w] = look.valid && look.region == look_region_i &&
        look.tag == look_node_i[NODE_W-1:SW];
    always_ff @(posedge clk_i) begin
      if (clr_i) begin
        entry_q <= '0;
        dirty_q <= 1'b0;
      end else if (look_en_i) begin
        entry_q <= look;
        dirty_q <= dirty_mem_q[look_set];
      end
    end
    assign entry[w] = entry_q;
    assign dirty[w] = dirty_q;
    assign valid[w] = entry_q.valid;
  end

  always_ff @(posedge clk_i) begin
    if (clr_i) begin
      set_q <= '0;
      hit_q <= 1'b0;
      hit_way_q <= '0;
      age_q <= '0;
    end else if (look_en_i) begin
      set_q <= look_set;
      hit_q <= same != '0;
      hit_way_q <= first_of(same);
      age_q <= age_mem_q[look_set];
    end else if (touch_en_i) age_q <= age_next;
  end

  // bit 0: the older half is ways 2, 3; bit 1: way 1 is older than 0; bit 2: way 3 is older than 2
  always_comb begin
    age_next = age_q;
    age_next[0] = !touch_way_i[1];
    if (touch_way_i[1]) age_next[2] = !touch_way_i[0];
    else age_next[1] = !touch_way_i[0];
  end
  always_ff @(posedge clk_i) begin
    if (clr_i) age_mem_q[zero_set] <= '0;
    else if (touch_en_i) age_mem_q[touch_set] <= age_next;
  end

  assign oldest = {age_q[0], age_q[0] ? age_q[2] : age_q[1]};
  assign hit_o = hit_q;
  assign hit_way_o = hit_way_q;
  assign pick = (valid != '1) ? ~valid : ~busy_i;
  assign room_o = pick != '0;
  assign victim_way_o = pick[oldest] ? oldest : first_of(pick);
  assign victim_dirty_o = valid[victim_way_o] && dirty[victim_way_o];
  assign victim_region_o = entry[victim_way_o].region;
  assign victim_node_o = {entry[victim_way_o].tag, set_q};

  // ---- counters ----
  logic [383:0] mem_q[4*Sets];
  logic [383:0] rd_data_q;
  logic [SW+1:0] wr_addr, zero_addr;
  assign wr_addr = {wr_set_i, wr_way_i};
  assign zero_addr = (32'(zero_addr_i) < 4 * Sets) ? (SW + 2)'(zero_addr_i)
      : (SW + 2)'(4 * Sets - 1);
  always_ff @(posedge clk_i) begin
    if (clr_i) mem_q[zero_addr] <= '0;
    else if (&wr_lanes_i) mem_q[wr_addr] <= wr_data_i;
    else for (int i = 0; i < 8; i++)
      if (wr_lanes_i[i]) mem_q[wr_addr][48*i+:48] <= wr_data_i[48*i+:48];
  end
  always_ff @(posedge clk_i) begin
    if (clr_i) rd_data_q <= '0;
    else if (rd_en_i) rd_data_q <= mem_q[{rd_set_i, rd_way_i}];
  end
  assign rd_data_o = rd_data_q;
endmodule
`default_nettype wire
