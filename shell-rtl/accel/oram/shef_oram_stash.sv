// Stash of the oblivious memory: up to 128 blocks, searched by id and picked by leaf.
//
// All requests take effect in their cycle and never wait; at most one of them in a cycle:
// insert_i: block_i goes to the lowest free slot, unless it is a dummy.
// find_i: remembers the slot of id_i, or the lowest free slot if the stash does not hold id_i.
// serve_i, from the second cycle after find_i on: the remembered slot gets leaf_i and, if write_i,
//   data_i; without write_i, a block that is not there stays so. data_o is that before, or zeros.
// pick_i: the block in the lowest slot whose leaf has the bits of leaf_i under mask_i leaves for
//   block_o, two cycles later with block_valid_o; a dummy if no block fits.
// held_o: blocks in the stash. There is always a free slot if at most MAX_LIMIT are held before a
// path is inserted. start_i empties the stash.
`default_nettype none
module shef_oram_stash
  import shef_oram_pkg::*;
(
  input  wire               clk_i,
  input  wire               rst_ni,
  input  wire               clear_i,
  output wire               cleared_o,
  input  wire               start_i,
  input  wire               insert_i,
  input  wire block_t       block_i,
  input  wire               find_i,
  input  wire               serve_i,
  input  wire               write_i,
  input  wire  [ID_W-1:0]   id_i,
  input  wire  [LEAF_W-1:0] leaf_i,
  input  wire  [LEAF_W-1:0] mask_i,
  input  wire       [479:0] data_i,
  output wire       [479:0] data_o,
  input  wire               pick_i,
  output wire               block_valid_o,
  output block_t            block_o,
  output wire  [SLOT_W:0]   held_o
);
  logic [SLOTS-1:0] valid_q;
  logic [SLOTS-1:0][ID_W-1:0] id_q;
  logic [SLOTS-1:0][LEAF_W-1:0] leaf_q;
  logic [SLOT_W:0] held_q;

  logic [SLOTS-1:0] same, fits;
  always_comb begin
    for (int unsigned i = 0; i < SLOTS; i++) begin
      same[i] = valid_q[i] && id_q[i] == id_i;
      fits[i] = valid_q[i] && ((leaf_q[i] ^ leaf_i) & mask_i) == '0;
    end
  end

  // Lowest bit of a set.
  function automatic logic [SLOT_W-1:0] lowest(input logic [SLOTS-1:0] set);
    logic [SLOT_W-1:0] n;
    n = '0;
    for (int i = SLOTS - 1; i >= 0; i--) if (set[i]) n = SLOT_W'(i);
    return n;
  endfunction
  wire [SLOT_W-1:0] free = lowest(~valid_q);
  wire [SLOT_W-1:0] picked = lowest(fits);
  wire found = |fits;
  wire insert = insert_i && block_i.real_block;

  logic hit_q;
  logic [SLOT_W-1:0] slot_q;   // found, or picked
  logic [1:0] pick_q;          // steps of a pick
  logic real_q;
  logic [ID_W-1:0] out_id_q;
  logic [LEAF_W-1:0] out_leaf_q;
  logic [479:0] data_q;
  wire create = serve_i && write_i && !hit_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {valid_q, id_q, leaf_q, held_q} <= '0;
      {hit_q, slot_q, pick_q, real_q, out_id_q, out_leaf_q} <= '0;
    end else if (start_i) begin
      {valid_q, held_q, hit_q, pick_q} <= '0;
    end else begin
      if (insert) begin
        valid_q[free] <= 1'b1;
        id_q[free] <= block_i.id;
        leaf_q[free] <= block_i.leaf;
      end
      if (find_i) begin
        hit_q <= |same;
        slot_q <= |same ? lowest(same) : free;
      end
      if (serve_i && (hit_q || write_i)) begin
        valid_q[slot_q] <= 1'b1;
        id_q[slot_q] <= id_i;
        leaf_q[slot_q] <= leaf_i;
      end
      if (pick_i) begin
        slot_q <= picked;
        real_q <= found;
        out_id_q <= id_q[picked];
        out_leaf_q <= leaf_q[picked];
        if (found) valid_q[picked] <= 1'b0;
      end
      pick_q <= {pick_q[0], pick_i};
      held_q <= held_q + (SLOT_W + 1)'(insert || create) - (SLOT_W + 1)'(pick_i && found);
    end
  end

  // ---- data: read at the slot found or picked, a cycle later ----
  logic [SLOT_W-1:0] sweep;
  shef_sweep #(.Words(SLOTS)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  logic [479:0] data_mem[SLOTS];
  logic out_real_q;
  logic [ID_W-1:0] id2_q;
  logic [LEAF_W-1:0] leaf2_q;
  always_ff @(posedge clk_i) begin
    if (clear_i) data_mem[sweep] <= '0;
    else if (insert) data_mem[free] <= block_i.data;
    else if (serve_i && write_i) data_mem[slot_q] <= data_i;
    if (!rst_ni) {data_q, out_real_q, id2_q, leaf2_q} <= '0;
    else begin
      data_q <= data_mem[slot_q];
      {out_real_q, id2_q, leaf2_q} <= {real_q, out_id_q, out_leaf_q};
    end
  end
  assign data_o = hit_q ? data_q : '0;
  assign block_valid_o = pick_q[1];
  assign block_o = out_real_q ? '{data: data_q, real_block: 1'b1, zero: '0, leaf: leaf2_q,
      id: id2_q} : '0;
  assign held_o = held_q;

  wire unused = &{1'b0, block_i.zero};
endmodule
`default_nettype wire
