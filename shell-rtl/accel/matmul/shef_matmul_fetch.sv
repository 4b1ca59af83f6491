// Reads of the matrix product: panels of 32 rows of A and tiles of 128 columns of B, two of each.
//
// Commands go to a shef_kit_read, whose beats come back in their order. For each tile, all panels
// of A are read. A panel is one command. A tile is a command for each row of B, given whenever no
// panel can be read, so that the next tile arrives while the present one is used. The first tile
// is read before the second panel.
//
// Memories: a panel's row r is in bank r / 8, at {slot, line of the row, r mod 8}; a row k of a
// tile has its line j in bank j, at {slot, k}. Slots alternate. panels_o and tiles_o count what
// has arrived since the start, panels_used_i and tiles_used_i what may be overwritten. Reads take
// one cycle.
`default_nettype none
module shef_matmul_fetch (
  input  wire               clk_i,
  input  wire               rst_ni,
  input  wire               clear_i,
  output wire               cleared_o,
  input  wire               start_i,
  input  wire               stop_i,        // no more commands

  input  wire        [10:0] rows_i,        // of A
  input  wire        [ 6:0] depth_i,       // lines in a row of A
  input  wire        [ 6:0] width_i,       // lines in a row of B
  input  wire        [57:0] a_line_i,
  input  wire        [57:0] b_line_i,

  output wire               cmd_valid_o,
  input  wire               cmd_ready_i,
  output wire        [57:0] cmd_line_o,
  output wire        [31:0] cmd_beats_o,
  input  wire               beat_valid_i,
  output wire               beat_ready_o,
  input  wire       [511:0] beat_i,

  output logic       [15:0] panels_o,
  output logic       [ 3:0] tiles_o,
  input  wire        [15:0] panels_used_i,
  input  wire        [ 3:0] tiles_used_i,
  input  wire        [ 9:0] a_addr_i,
  output logic [3:0][511:0] a_o,
  input  wire               b_read_i,
  input  wire        [ 2:0] b_bank_i,
  input  wire        [10:0] b_addr_i,
  output wire       [511:0] b_o            // of the bank of the last read
);
  // ---- commands ----
  logic a_done_q, b_done_q;               // everything is requested
  logic [10:0] a_row_q;                   // first row of the next panel
  logic [57:0] a_line_q, b_line_q, b_tile_line_q;
  logic [6:0] a_col_q, b_col_q;           // lines of B left of the tile
  logic [10:0] b_row_q;
  logic [15:0] a_asked_q;                 // panels
  logic [3:0] b_asked_q;                  // tiles that are requested in full
  wire [10:0] depth = {depth_i, 4'd0};    // rows of B
  wire [10:0] a_left = rows_i - a_row_q;
  wire a_short = a_left < 11'd32;         // 16 rows
  wire [11:0] a_beats = a_short ? {1'b0, depth_i, 4'd0} : {depth_i, 5'd0};
  wire [6:0] b_left = width_i - b_col_q;
  wire [6:0] b_beats = b_left < 7'd8 ? b_left : 7'd8;

  wire a_can = !a_done_q && a_asked_q - panels_used_i < 16'd2 &&
      (a_asked_q == '0 || b_asked_q != '0);
  wire b_can = !b_done_q && b_asked_q - tiles_used_i < 4'd2;
  wire tag_ready;
  wire take = cmd_valid_o && cmd_ready_i;
  wire a_take = take && a_can;
  wire b_take = take && !a_can;
  wire a_last = a_left <= 11'd32;         // of the tile
  wire b_last = b_row_q == depth - 11'd1;
  assign cmd_valid_o = (a_can || b_can) && tag_ready && !stop_i;
  assign cmd_line_o = a_can ? a_line_q : b_line_q;
  assign cmd_beats_o = a_can ? 32'(a_beats) : 32'(b_beats);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {a_done_q, b_done_q} <= '1;
      {a_row_q, b_row_q, a_line_q, b_line_q, b_tile_line_q} <= '0;
      {a_col_q, b_col_q, a_asked_q, b_asked_q} <= '0;
    end else if (start_i) begin
      {a_done_q, b_done_q} <= '0;
      {a_row_q, b_row_q, a_col_q, b_col_q, a_asked_q, b_asked_q} <= '0;
      a_line_q <= a_line_i;
      {b_line_q, b_tile_line_q} <= {2{b_line_i}};
    end else begin
      if (a_take) begin
        a_asked_q <= a_asked_q + 1'b1;
        a_row_q <= a_last ? '0 : a_row_q + 11'd32;
        a_line_q <= a_last ? a_line_i : a_line_q + 58'(a_beats);
        if (a_last) begin
          a_col_q <= a_col_q + 7'd8;
          a_done_q <= width_i - a_col_q <= 7'd8;
        end
      end
      if (b_take) begin
        b_row_q <= b_last ? '0 : b_row_q + 1'b1;
        b_line_q <= b_last ? b_tile_line_q + 58'd8 : b_line_q + 58'(width_i);
        if (b_last) begin
          b_asked_q <= b_asked_q + 1'b1;
          b_tile_line_q <= b_tile_line_q + 58'd8;
          b_col_q <= b_col_q + 7'd8;
          b_done_q <= b_left <= 7'd8;
        end
      end
    end
  end

  // ---- what the beats belong to ----
  wire tag_valid, tag_b;
  wire [11:0] tag_beats;
  logic [11:0] beat_q;                    // beats of the command that have arrived
  logic [4:0] in_row_q;                   // of the panel
  logic [5:0] in_line_q;                  // of the row
  logic [9:0] in_k_q;                     // row of the tile
  wire beat = beat_valid_i && beat_ready_o;
  wire cmd_end = beat_q == tag_beats - 1'b1;
  wire row_end = in_line_q == 6'(depth_i - 1'b1);
  wire tile_end = in_k_q == 10'(depth - 1'b1);
  assign beat_ready_o = tag_valid;
  logic [10:0] sweep;
  wire [6:0] tags;

  shef_fifo #(.W(13), .Depth(64)) u_tags (
    .clk_i,
    .rst_ni,
    .clr_i(clear_i || start_i),
    .zero_addr_i(sweep[5:0]),
    .in_valid_i(take),
    .in_ready_o(tag_ready),
    .in_data_i({!a_can, cmd_beats_o[11:0]}),
    .out_valid_o(tag_valid),
    .out_ready_i(beat && cmd_end),
    .out_data_o({tag_b, tag_beats}),
    .count_o(tags)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      {beat_q, in_row_q, in_line_q, in_k_q, panels_o, tiles_o} <= '0;
    end else if (beat) begin
      beat_q <= cmd_end ? '0 : beat_q + 1'b1;
      if (tag_b) begin
        if (cmd_end) in_k_q <= tile_end ? '0 : in_k_q + 1'b1;
        if (cmd_end && tile_end) tiles_o <= tiles_o + 1'b1;
      end else begin
        in_line_q <= row_end ? '0 : in_line_q + 1'b1;
        if (cmd_end) begin
          in_row_q <= '0;
          panels_o <= panels_o + 1'b1;
        end else if (row_end) in_row_q <= in_row_q + 1'b1;
      end
    end
  end

  // ---- memories ----
  shef_sweep #(.Words(2048)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);

  wire a_write = beat && !tag_b;
  wire b_write = beat && tag_b;
  wire [9:0] a_to = {panels_o[0], in_line_q, in_row_q[2:0]};
  wire [10:0] b_to = {tiles_o[0], in_k_q};
  for (genvar i = 0; i < 4; i++) begin : g_a
    logic [511:0] mem[1024];
    always_ff @(posedge clk_i) begin
      if (clear_i) mem[sweep[9:0]] <= '0;
      else if (a_write && in_row_q[4:3] == 2'(i)) mem[a_to] <= beat_i;
      if (!rst_ni) a_o[i] <= '0;
      else a_o[i] <= mem[a_addr_i];
    end
  end

  logic [2:0] bank_q;
  wire [7:0][511:0] b_words;
  for (genvar i = 0; i < 8; i++) begin : g_b
    logic [511:0] mem[2048];
    logic [511:0] word_q;
    assign b_words[i] = word_q;
    always_ff @(posedge clk_i) begin
      if (clear_i) mem[sweep] <= '0;
      else if (b_write && beat_q[2:0] == 3'(i)) mem[b_to] <= beat_i;
      if (!rst_ni) word_q <= '0;
      else if (b_read_i && b_bank_i == 3'(i)) word_q <= mem[b_addr_i];
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) bank_q <= '0;
    else if (b_read_i) bank_q <= b_bank_i;
  end
  assign b_o = b_words[bank_q];

  wire unused = &{1'b0, tags, cmd_beats_o[31:12]};
endmodule
`default_nettype wire
