// Sums of the matrix product on their way to memory: a panel of 32 rows by up to 128 columns.
//
// Lines arrive at sum_*, 32 for each 16 columns of the tile. When all columns are there, the rows
// of the panel that exist go to a shef_kit_write, a command for each. Panels follow each other
// down the matrix, then come those of the next tile. done_o: the commands of all rows are given.
`default_nettype none
module shef_matmul_store (
  input  wire          clk_i,
  input  wire          rst_ni,
  input  wire          clear_i,
  output wire          cleared_o,
  input  wire          start_i,
  output logic         done_o,

  input  wire   [10:0] rows_i,     // of the result
  input  wire   [ 6:0] width_i,    // lines in a row
  input  wire   [57:0] line_i,     // of the result

  input  wire          sum_valid_i,
  output wire          sum_ready_o,
  input  wire  [511:0] sum_i,

  output wire          cmd_valid_o,
  input  wire          cmd_ready_i,
  output wire   [57:0] cmd_line_o,
  output wire   [31:0] cmd_beats_o,
  output wire          data_valid_o,
  input  wire          data_ready_i,
  output wire  [511:0] data_o
);
  logic [511:0] mem[256];          // at {row, 16 columns}
  logic [511:0] data_q;
  logic [6:0] col_q;               // lines of a row left of the tile
  logic [10:0] row_q;              // first row of the panel
  logic [57:0] line_q, tile_line_q;
  logic [2:0] in_col_q;
  logic [4:0] in_row_q;
  logic reading_q, asking_q;       // data and commands of the panel are left
  logic [4:0] out_row_q, cmd_row_q;
  logic [2:0] out_col_q;
  logic data_valid_q;

  wire [6:0] left = width_i - col_q;
  wire [6:0] cols = left < 7'd8 ? left : 7'd8;
  wire [2:0] last_col = 3'(cols - 1'b1);
  wire [10:0] rows_left = rows_i - row_q;
  wire [4:0] last_row = rows_left < 11'd32 ? 5'd15 : 5'd31;
  wire panel_last = rows_left <= 11'd32;
  wire tile_last = left <= 7'd8;

  wire sum = sum_valid_i && sum_ready_o;
  wire read = reading_q && (!data_valid_q || data_ready_i);
  wire cmd = cmd_valid_o && cmd_ready_i;
  // The panel's data and commands leave independently.
  wire read_end = read && out_row_q == last_row && out_col_q == last_col;
  wire cmd_end = cmd && cmd_row_q == last_row;
  wire panel_end = (reading_q || asking_q) && (!reading_q || read_end) && (!asking_q || cmd_end);
  assign sum_ready_o = !reading_q && !asking_q && !done_o;
  assign cmd_valid_o = asking_q;
  assign cmd_line_o = line_q;
  assign cmd_beats_o = 32'(cols);
  assign data_valid_o = data_valid_q;
  assign data_o = data_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      {col_q, row_q, in_col_q, in_row_q, out_row_q, out_col_q, cmd_row_q} <= '0;
      {reading_q, asking_q, data_valid_q} <= '0;
      done_o <= !rst_ni;
      {line_q, tile_line_q} <= rst_ni ? {2{line_i}} : '0;
    end else begin
      if (sum) begin
        in_row_q <= in_row_q + 1'b1;
        if (in_row_q == 5'd31) begin
          in_col_q <= in_col_q == last_col ? '0 : in_col_q + 1'b1;
          {reading_q, asking_q} <= {2{in_col_q == last_col}};
        end
      end
      if (read) begin
        data_valid_q <= 1'b1;
        out_col_q <= out_col_q == last_col ? '0 : out_col_q + 1'b1;
        if (out_col_q == last_col) out_row_q <= out_row_q == last_row ? '0 : out_row_q + 1'b1;
        if (read_end) reading_q <= 1'b0;
      end else if (data_ready_i) data_valid_q <= 1'b0;
      if (cmd) begin
        line_q <= line_q + 58'(width_i);
        cmd_row_q <= cmd_end ? '0 : cmd_row_q + 1'b1;
        if (cmd_end) asking_q <= 1'b0;
      end
      if (panel_end) begin
        row_q <= panel_last ? '0 : row_q + 11'd32;
        if (panel_last) begin
          col_q <= col_q + 7'd8;
          line_q <= tile_line_q + 58'd8;
          tile_line_q <= tile_line_q + 58'd8;
          done_o <= tile_last;
        end
      end
    end
  end

  logic [7:0] sweep;
  shef_sweep #(.Words(256)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  always_ff @(posedge clk_i) begin
    if (clear_i) mem[sweep] <= '0;
    else if (sum) mem[{in_row_q, in_col_q}] <= sum_i;
    if (!rst_ni) data_q <= '0;
    else if (read) data_q <= mem[{out_row_q, out_col_q}];
  end
endmodule
`default_nettype wire
