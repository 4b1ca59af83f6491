// The multiplier array of the matrix product: 32 rows of A by 16 columns of B, 512 products a
// cycle.
//
// For each tile of B, for each panel of A, for each 16 columns of the tile: the products of all k
// are summed, and the 32 lines of sums leave at sum_*, row by row, also those below the last row
// of A. A window is 16 columns of the panel, a line for each row. The next one is loaded while the
// present one is used, so the array works in every cycle as long as panels and tiles have arrived
// and the sums of 16 columns leave before the next ones are complete.
`default_nettype none
module shef_matmul_array (
  input  wire               clk_i,
  input  wire               rst_ni,
  input  wire               start_i,

  input  wire        [10:0] rows_i,        // of A
  input  wire        [ 6:0] depth_i,       // lines in a row of A
  input  wire        [ 6:0] width_i,       // lines in a row of B

  input  wire        [15:0] panels_i,
  input  wire        [ 3:0] tiles_i,
  output wire        [15:0] panels_used_o,
  output logic       [ 3:0] tiles_used_o,
  output wire        [ 9:0] a_addr_o,
  input  wire  [3:0][511:0] a_i,
  output wire               b_read_o,
  output wire        [ 2:0] b_bank_o,
  output wire        [10:0] b_addr_o,
  input  wire       [511:0] b_i,

  output wire               sum_valid_o,
  input  wire               sum_ready_i,
  output wire       [511:0] sum_o
);
  // ---- next window ----
  typedef struct packed {
    logic       slot;       // of the tile
    logic [2:0] column;     // 16 columns of the tile
    logic [5:0] line;       // of the rows of A
    logic       last;       // of these columns
    logic       tile_last;  // of the tile
  } window_t;

  logic loading_q;          // windows are left
  logic [6:0] col_q;        // lines of B left of the tile
  logic [10:0] row_q;       // first row of the panel
  logic [2:0] column_q;
  logic [5:0] line_q;
  logic [15:0] panel_q;     // panels before this one since the start, of all tiles
  logic [3:0] tile_q;
  logic [3:0] read_q;       // lines of each bank that are read
  logic write_q;            // the line read in the last cycle goes to next
  logic [2:0] write_row_q;
  logic next_valid_q;
  window_t next_q, now_q;
  logic now_valid_q;
  wire turn;

  wire [6:0] left = width_i - col_q;
  wire [2:0] last_column = left < 7'd8 ? 3'(left - 1'b1) : 3'd7;
  wire line_last = line_q == 6'(depth_i - 1'b1);
  wire column_last = column_q == last_column;
  wire row_last = rows_i - row_q <= 11'd32;
  wire all_last = left <= 7'd8;
  // The window before is in use or not complete: it stays in next.
  wire ready = loading_q && panel_q != panels_i && tile_q != tiles_i;
  wire read = ready && !read_q[3] && (!next_valid_q || turn);
  wire load_end = write_q && write_row_q == 3'd7;
  assign panels_used_o = panel_q;
  assign a_addr_o = {panel_q[0], line_q, read_q[2:0]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      loading_q <= start_i;
      {col_q, row_q, column_q, line_q, panel_q, tile_q, read_q} <= '0;
      {write_q, write_row_q, next_valid_q, next_q} <= '0;
    end else begin
      write_q <= read;
      write_row_q <= read_q[2:0];
      if (read) read_q <= read_q + 1'b1;
      if (turn) next_valid_q <= 1'b0;
      if (load_end) begin
        read_q <= '0;
        next_valid_q <= 1'b1;
        next_q <= '{slot: tile_q[0], column: column_q, line: line_q, last: line_last,
            tile_last: line_last && column_last && row_last};
        line_q <= line_last ? '0 : line_q + 1'b1;
        if (line_last) column_q <= column_last ? '0 : column_q + 1'b1;
        if (line_last && column_last) begin
          panel_q <= panel_q + 1'b1;
          row_q <= row_last ? '0 : row_q + 11'd32;
          if (row_last) begin
            tile_q <= tile_q + 1'b1;
            col_q <= col_q + 7'd8;
            loading_q <= !all_last;
          end
        end
      end
    end
  end

  // ---- steps: a word of each row by a line of B ----
  logic [3:0] word_q;
  logic result_q;           // sums are complete, or will be in a few cycles, and have not left
  wire window_end = word_q == 4'd15;
  wire step = now_valid_q && !(window_end && now_q.last && result_q);
  wire final_step = step && window_end && now_q.last;
  wire sums_out;
  assign turn = next_valid_q && (!now_valid_q || step && window_end);
  assign b_read_o = step;
  assign b_bank_o = now_q.column;
  assign b_addr_o = {now_q.slot, now_q.line, word_q};

  // The stages behind a step: B is read, B is selected, multiply, add.
  logic [3:0] valid_q, first_q, last_q;
  logic [511:0] b_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      {word_q, now_valid_q, now_q, result_q, tiles_used_o} <= '0;
      {valid_q, first_q, last_q} <= '0;
      b_q <= '0;
    end else begin
      if (step) word_q <= word_q + 1'b1;
      if (turn) begin
        now_valid_q <= 1'b1;
        now_q <= next_q;
      end else if (step && window_end) now_valid_q <= 1'b0;
      if (final_step) result_q <= 1'b1;
      else if (sums_out) result_q <= 1'b0;
      if (final_step && now_q.tile_last) tiles_used_o <= tiles_used_o + 1'b1;
      valid_q <= {valid_q[2:0], step};
      first_q <= {first_q[2:0], now_q.line == '0 && word_q == '0};
      last_q <= {last_q[2:0], final_step};
      if (valid_q[0]) b_q <= b_i;
    end
  end

  // ---- sums: they leave through row 0 ----
  logic [5:0] out_q;        // rows in the chain
  wire shift = sum_valid_o && sum_ready_i;
  assign sum_valid_o = out_q != '0;
  assign sums_out = shift && out_q == 6'd1;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) out_q <= '0;
    else if (last_q[3]) out_q <= 6'd32;
    else if (shift) out_q <= out_q - 1'b1;
  end

  wire [32:0][511:0] chain;
  assign chain[32] = '0;
  assign sum_o = chain[0];
  for (genvar i = 0; i < 32; i++) begin : g_row
    shef_matmul_row u_row (
      .clk_i,
      .rst_ni,
      .load_i(write_q && write_row_q == 3'(i % 8)),
      .line_i(a_i[i/8]),
      .turn_i(turn),
      .word_i(word_q),
      .step_i(step),
      .mul_i(valid_q[1]),
      .b_i(b_q),
      .add_i(valid_q[2]),
      .first_i(first_q[2]),
      .take_i(last_q[3]),
      .shift_i(shift),
      .below_i(chain[i+1]),
      .chain_o(chain[i])
    );
  end

  wire unused = &{1'b0, valid_q[3], first_q[3]};
endmodule
`default_nettype wire
