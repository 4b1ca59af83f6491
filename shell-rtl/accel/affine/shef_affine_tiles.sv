// Tiles of the affine transform: reads the tiles that groups need, and gives the four neighbours of
// each pixel.
//
// Each of four banks holds 32 tiles of 8 x 8 pixels, one line of memory each. A group looks its
// tiles up in the directory and waits in a queue; a tile that is missing is requested at once and
// replaces another one. The queue runs up to Depth groups ahead of the tiles that have arrived,
// which hides the latency of the memory. A tile is stored when its group is at the head, so that
// those before it still find the replaced one.
//
// Handshake: group_*, cmd_*, data_* and taps_* valid/ready. Throughput: one group a cycle, or one
// tile a cycle for a group with several missing tiles. start_i forgets all tiles; clear_i zeroes
// them.
`default_nettype none
module shef_affine_tiles
  import shef_affine_pkg::*;
#(
    parameter int unsigned Depth = 256  // of the queue, a power of two
) (
    input  wire            clk_i,
    input  wire            rst_ni,
    input  wire            clear_i,
    output wire            cleared_o,
    input  wire            start_i,
    input  wire      [6:0] pitch_i,       // tiles of a row of the source
    input  wire      [7:0] border_i,

    input  wire            group_valid_i,
    output wire            group_ready_o,
    input  wire group_t    group_i,

    output wire            cmd_valid_o,   // a tile to read
    input  wire            cmd_ready_i,
    output wire     [11:0] cmd_tile_o,
    input  wire            data_valid_i,  // the tiles, in this order
    output wire            data_ready_o,
    input  wire    [511:0] data_i,

    output wire            taps_valid_o,
    input  wire            taps_ready_i,
    output wire [PIXELS-1:0][3:0][7:0] taps_o,  // upper left, upper right, lower left, lower right
    output wire [PIXELS-1:0][7:0] fx_o,
    output wire [PIXELS-1:0][7:0] fy_o
);
  localparam int unsigned TILES = 32;  // of a bank
  localparam int unsigned IW = $clog2(TILES);

  // ---- directory ---- Tile (column, row) of a bank's up to 32 x 32 has the place column + 11 *
  // row: those of a part of a straight line in any direction are in many places. Place and column
  // tell the row.
  logic [3:0][TILES-1:0] known_q;
  logic [3:0][TILES-1:0][4:0] col_q;
  logic [3:0][IW-1:0] index;
  logic [3:0] missing;
  logic [1:0] bank;                     // the first one that misses its tile
  always_comb begin
    bank = '0;
    for (int i = 3; i >= 0; i--) begin
      index[i] = group_i.col[i][5:1] + group_i.row[i][5:1] * 5'd11;
      missing[i] = group_i.need[i] &&
          !(known_q[i][index[i]] && col_q[i][index[i]] == group_i.col[i][5:1]);
      if (missing[i]) bank = 2'(i);
    end
  end
  wire fill = missing != '0;
  wire last = (missing & (missing - 4'd1)) == '0;

  logic cmd_valid_q;
  logic [11:0] cmd_tile_q;
  wire queue_ready;
  wire look = group_valid_i && queue_ready && (!fill || !cmd_valid_q || cmd_ready_i);
  assign group_ready_o = look && last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      known_q <= '0;
      col_q <= '0;
      cmd_valid_q <= 1'b0;
      cmd_tile_q <= '0;
    end else if (start_i) begin
      known_q <= '0;
      cmd_valid_q <= 1'b0;
    end else begin
      if (cmd_ready_i) cmd_valid_q <= 1'b0;
      if (look && fill) begin
        known_q[bank][index[bank]] <= 1'b1;
        col_q[bank][index[bank]] <= group_i.col[bank][5:1];
        cmd_valid_q <= 1'b1;
        cmd_tile_q <= 12'(group_i.row[bank]) * 12'(pitch_i) + 12'(group_i.col[bank]);
      end
    end
  end
  assign cmd_valid_o = cmd_valid_q;
  assign cmd_tile_o = cmd_tile_q;

  // ---- groups that wait for tiles ----
  typedef struct packed {
    logic fill;       // take a tile into this bank first
    logic [1:0] bank;
    logic last;       // then the group is complete
    logic [3:0][IW-1:0] index;
    place_t [PIXELS-1:0] places;
  } item_t;
  localparam int unsigned QW = $bits(item_t);
  localparam item_t ITEM_IN = '0;
  item_t item_in;
  always_comb begin
    item_in = ITEM_IN;
    item_in.fill = fill;
    item_in.bank = bank;
    item_in.last = last;
    item_in.index = index;
    item_in.places = group_i.places;
  end
  logic [$clog2(Depth)-1:0] sweep;
  shef_sweep #(.Words(Depth)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  wire item_valid;
  wire item_ready;
  wire [QW-1:0] item_bits;
  wire item_t item = item_bits;
  wire [$clog2(Depth)+1:0] count;
  shef_bram_fifo #(.W(QW), .Depth(Depth)) u_queue (
    .clk_i,
    .rst_ni,
    .clr_i(clear_i || start_i),
    .zero_addr_i(sweep),
    .in_valid_i(look),
    .in_ready_o(queue_ready),
    .in_data_i(item_in),
    .out_valid_o(item_valid),
    .out_ready_i(item_ready),
    .out_data_o(item_bits),
    .count_o(count)
  );

  // ---- banks: a tile is written in the cycle before its group reads ----
  (* ram_style = "distributed" *) logic [511:0] bank_mem[4][TILES];
  logic read_valid_q, taps_valid_q;
  logic [3:0][IW-1:0] read_index_q;
  place_t [PIXELS-1:0] places_q;
  wire taps_slot = !taps_valid_q || taps_ready_i;
  wire read_slot = !read_valid_q || taps_slot;
  assign item_ready = read_slot && (!item.fill || data_valid_i);
  assign data_ready_o = item_valid && item.fill && read_slot;
  wire go = item_valid && item_ready;
  for (genvar b = 0; b < 4; b++) begin : g_bank
    always_ff @(posedge clk_i) begin
      if (clear_i) bank_mem[b][sweep[IW-1:0]] <= '0;
      else if (go && item.fill && item.bank == 2'(b)) bank_mem[b][item.index[b]] <= data_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_valid_q <= 1'b0;
      read_index_q <= '0;
      places_q <= '0;
    end else if (start_i) read_valid_q <= 1'b0;
    else if (read_slot) begin
      read_valid_q <= go && item.last;
      read_index_q <= item.index;
      places_q <= item.places;
    end
  end

  // ---- neighbours ----
  logic [PIXELS-1:0][3:0][7:0] taps, taps_q;
  logic [PIXELS-1:0][7:0] fx_q, fy_q;
  logic [3:0][511:0] window;
  always_comb begin
    for (int b = 0; b < 4; b++) window[b] = bank_mem[b][read_index_q[b]];
    for (int k = 0; k < int'(PIXELS); k++) begin
      for (int tap = 0; tap < 4; tap++) begin
        logic [3:0] x, y;
        x = places_q[k].x + 4'(tap & 1);
        y = places_q[k].y + 4'(tap >> 1);
        taps[k][tap] = places_q[k].in_x[tap[0]] && places_q[k].in_y[tap[1]] ?
            window[{y[3], x[3]}][{y[2:0], x[2:0], 3'd0}+:8] : border_i;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taps_valid_q <= 1'b0;
      taps_q <= '0;
      {fx_q, fy_q} <= '0;
    end else if (start_i) taps_valid_q <= 1'b0;
    else if (taps_slot) begin
      taps_valid_q <= read_valid_q;
      taps_q <= taps;
      for (int k = 0; k < int'(PIXELS); k++) {fx_q[k], fy_q[k]} <= {places_q[k].fx, places_q[k].fy};
    end
  end
  assign taps_valid_o = taps_valid_q;
  assign taps_o = taps_q;
  assign fx_o = fx_q;
  assign fy_o = fy_q;

  wire unused = &{1'b0, count};
endmodule
`default_nettype wire
