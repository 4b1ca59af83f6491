// Written map: one bit for each chunk of the `output` regions, set before the chunk's AES jobs
// start and cleared only by a new epoch or a wipe. It makes a second seal under one version
// impossible.
//
// set_*: one chunk to mark. set_done_o comes one cycle after the handshake, with set_twice_o when
// the bit was set already (the caller must not seal then). ask_*: ask_bit_o holds the answer one
// cycle after ask_ready_o was high with ask_valid_i. map_*: the word of 32 chunks at map_word_i,
// two cycles later. clear_i: one pulse starts zeroing the regions of clear_mask_i; busy_o until
// done. count_o: chunks marked in that region.
`default_nettype none
module shef_written
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter int unsigned Words = 1,
    parameter logic [MAX_REGIONS-1:0][31:0] FirstWord = '0,  // of each region in the memory
    parameter logic [MAX_REGIONS-1:0][31:0] NumWords = '0,   // 0: not an output region
    localparam int unsigned AW = (Words > 1) ? $clog2(Words) : 1
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,
    input  wire                  clr_i,         // wipe: zero everything
    output logic                 busy_o,

    input  wire                  clear_i,
    input  wire  [NRegions-1:0]  clear_mask_i,

    input  wire                  set_valid_i,
    output logic                 set_ready_o,
    input  wire  reg_idx_t       set_region_i,
    input  wire  chunk_idx_t     set_chunk_i,
    output logic                 set_done_o,
    output logic                 set_twice_o,

    input  wire                  ask_valid_i,
    output logic                 ask_ready_o,
    input  wire  reg_idx_t       ask_region_i,
    input  wire  chunk_idx_t     ask_chunk_i,
    output logic                 ask_bit_o,

    input  wire  reg_idx_t       count_region_i,
    output logic [31:0]          count_o,
    input  wire  reg_idx_t       map_region_i,
    input  wire                  map_valid_i,   // the region exists in this set
    input  wire  [25:0]          map_word_i,
    output logic [31:0]          map_o
);
  logic [31:0] mem_q[Words];
  logic [31:0] count_q[NRegions];

  // ---- zeroing: one region after the other ----
  logic [NRegions-1:0] todo_q;
  logic sweep_q;
  reg_idx_t sweep_region_q;
  logic [AW-1:0] sweep_addr_q;
  logic [31:0] sweep_left_q;
  reg_idx_t next_region;
  logic next_valid;
  logic [NRegions-1:0] next_one;

  always_comb begin
    next_region = '0;
    next_valid = 1'b0;
    next_one = '0;
    for (int r = int'(NRegions) - 1; r >= 0; r--) begin
      if (todo_q[r]) begin
        next_region = reg_idx_t'(r);
        next_one = NRegions'(1) << r;
        next_valid = 1'b1;
      end
    end
  end
  assign busy_o = sweep_q || next_valid;

  // ---- one chunk marked: read, then write ----
  logic set_read_q;
  logic [AW-1:0] set_addr_q;
  logic [4:0] set_bit_q;
  reg_idx_t set_region_q;
  logic [31:0] word_q;  // read register of the port
  logic ask_q;
  logic [4:0] ask_bit_q;
  logic [AW-1:0] rd_addr;
  logic rd_en;

  assign set_ready_o = !set_read_q && !busy_o;
  assign ask_ready_o = !(set_valid_i && set_ready_o) && !busy_o && !set_read_q;
  assign rd_en = (set_valid_i && set_ready_o) || (ask_valid_i && ask_ready_o);

  function automatic logic [AW-1:0] word_addr(input reg_idx_t region, input logic [34:0] word);
    return AW'({3'd0, FirstWord[region]} + word);
  endfunction

  assign rd_addr = (set_valid_i && set_ready_o)
      ? word_addr(set_region_i, set_chunk_i[CHUNK_INDEX_W-1:5])
                                                : word_addr(ask_region_i,
                                                ask_chunk_i[CHUNK_INDEX_W-1:5]);
  assign ask_bit_o = ask_q && word_q[ask_bit_q];
  assign set_twice_o = word_q[set_bit_q];
  assign set_done_o = set_read_q;

  always_ff @(posedge clk_i) begin
    if (clr_i) word_q <= '0;
    else if (rd_en) word_q <= mem_q[rd_addr];
    if (sweep_q) mem_q[sweep_addr_q] <= '0;
    else if (set_read_q) mem_q[set_addr_q] <= word_q | (32'd1 << set_bit_q);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      set_read_q <= 1'b0;
      set_addr_q <= '0;
      set_bit_q <= '0;
      set_region_q <= '0;
      ask_q <= 1'b0;
      ask_bit_q <= '0;
    end else begin
      set_read_q <= set_valid_i && set_ready_o;
      if (set_valid_i && set_ready_o) begin
        set_addr_q <= rd_addr;
        set_bit_q <= set_chunk_i[4:0];
        set_region_q <= set_region_i;
      end
      ask_q <= ask_valid_i && ask_ready_o;
      if (ask_valid_i) ask_bit_q <= ask_chunk_i[4:0];
    end
  end

  // the sweep continues through a wipe: reset and wipe request every region
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      todo_q <= '1;
      sweep_q <= 1'b0;
      sweep_region_q <= '0;
      sweep_addr_q <= '0;
      sweep_left_q <= '0;
    end else begin
      if (sweep_q) begin
        sweep_addr_q <= sweep_addr_q + 1'b1;
        sweep_left_q <= sweep_left_q - 1'b1;
        if (sweep_left_q == 32'd1) sweep_q <= 1'b0;
      end else if (next_valid) begin
        todo_q <= todo_q & ~next_one;
        sweep_region_q <= next_region;
        sweep_q <= (NumWords[next_region] != '0);
        sweep_addr_q <= AW'(FirstWord[next_region]);
        sweep_left_q <= NumWords[next_region];
      end
      if (clear_i)
        todo_q <= (next_valid && !sweep_q) ? ((todo_q & ~next_one) | clear_mask_i)
            : (todo_q | clear_mask_i);
    end
  end

  for (genvar r = 0; r < NRegions; r++) begin : g_count
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i || (sweep_q && sweep_region_q == reg_idx_t'(r))) count_q[r] <= '0;
      else if (set_read_q && !set_twice_o && set_region_q == reg_idx_t'(r))
        count_q[r] <= count_q[r] + 1'b1;
    end
  end
  always_comb begin
    count_o = '0;
    for (int unsigned r = 0; r < NRegions; r++)
      if (count_region_i == reg_idx_t'(r)) count_o = count_q[r];
  end

  // ---- read-out ----
  logic map_ok_q, map_out_ok_q;
  logic [AW-1:0] map_addr_q;
  logic [31:0] map_word_q;

  assign map_o = map_out_ok_q ? map_word_q : '0;
  always_ff @(posedge clk_i) begin
    map_ok_q <= map_valid_i && ({6'b0, map_word_i} < NumWords[map_region_i]);
    map_addr_q <= word_addr(map_region_i, {9'b0, map_word_i});
    map_out_ok_q <= map_ok_q;
    if (clr_i) map_word_q <= '0;
    else if (map_ok_q) map_word_q <= mem_q[map_addr_q];
  end

endmodule
`default_nettype wire
