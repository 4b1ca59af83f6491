// Store of the ingest accelerator: two halves of a group each. One is filled column by column while
// the other leaves row by row, with the sparse lists expanded by the inverse index.
//
// Fill: begin_i takes a free half (half_free_o, for half_i) with its rows; index_valid_i and
// in_valid_i write lines; the line with place.last completes the half.
// group port: valid/ready, once for each group, with its number of output lines.
// line port: valid/ready; a row is its dense line and then a list for each sparse feature. One line
// a cycle, and a gap of one cycle between groups.
//
// Dense values are in 16 banks, each row and each column skewed by one bank, so that a line of 16
// rows of a feature is written in a cycle, and a line of 16 features of a row is read in a cycle.
`default_nettype none
module shef_ingest_store
  import shef_ingest_pkg::*;
(
  input  wire              clk_i,
  input  wire              rst_ni,
  input  wire              clear_i,
  output wire              cleared_o,
  input  wire              start_i,
  input  wire        [2:0] sparse_i,       // features
  output wire              idle_o,         // both halves are free, and all groups are announced

  input  wire              half_i,
  output wire              half_free_o,
  input  wire              begin_i,
  input  wire        [6:0] rows_i,
  input  wire              index_valid_i,
  input  wire        [2:0] index_sparse_i,
  input  wire line_t       index_i,
  input  wire              in_valid_i,
  input  wire place_t      in_place_i,
  input  wire line_t       in_line_i,

  output wire              group_valid_o,
  input  wire              group_ready_i,
  output wire       [31:0] group_lines_o,

  output wire              line_valid_o,
  input  wire              line_ready_i,
  output line_t            line_o
);
  logic [1:0] taken_q, full_q;
  logic [6:0] rows_q[2];

  // ---- leaving: step 0 counts, 1 has the index line, 2 the list's number, 3 the line ----
  logic out_half_q, leaving_q, group_q;
  logic [31:0] group_lines_q;
  logic [5:0] row_q[3];
  logic [2:0] sub_q[3];          // 0: the dense line, k + 1: list of sparse feature k
  logic [2:0] half_q;            // of steps 1 to 3
  logic [3:1] valid_q, last_q;
  logic [5:0] entry_q;
  logic dense_q;
  logic [3:0] turn_q;
  line_t index_q, list_q, banks_q;
  wire move = !valid_q[3] || line_ready_i;
  wire last_sub = sub_q[0] == sparse_i;
  wire last_row = 7'(row_q[0]) + 7'd1 == rows_q[out_half_q];
  wire last = leaving_q && last_sub && last_row;
  wire go = !leaving_q && full_q[out_half_q] && !group_q;
  wire freed = valid_q[3] && last_q[3] && line_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      {taken_q, full_q, out_half_q, leaving_q, group_q, half_q, valid_q, last_q} <= '0;
      rows_q <= '{default: '0};
      row_q <= '{default: '0};
      sub_q <= '{default: '0};
      {entry_q, dense_q, turn_q, group_lines_q} <= '0;
    end else begin
      if (begin_i) begin
        taken_q[half_i] <= 1'b1;
        rows_q[half_i] <= rows_i;
      end
      if (in_valid_i && in_place_i.last) full_q[in_place_i.half] <= 1'b1;
      if (group_ready_i) group_q <= 1'b0;
      if (go) begin
        {leaving_q, group_q} <= '1;
        group_lines_q <= 32'(rows_q[out_half_q]) * (32'(sparse_i) + 32'd1);
        row_q[0] <= '0;
        sub_q[0] <= '0;
      end
      if (move) begin
        valid_q <= {valid_q[2:1], leaving_q};
        last_q <= {last_q[2:1], last};
        half_q <= {half_q[1:0], out_half_q};
        row_q[1:2] <= row_q[0:1];
        sub_q[1:2] <= sub_q[0:1];
        if (leaving_q) begin
          sub_q[0] <= last_sub ? '0 : sub_q[0] + 3'd1;
          if (last_sub) row_q[0] <= row_q[0] + 6'd1;
          if (last) begin
            leaving_q <= 1'b0;
            out_half_q <= !out_half_q;
          end
        end
        entry_q <= index_q[row_q[1][5:2]][8*row_q[1][1:0]+:6];
        dense_q <= sub_q[2] == '0;
        turn_q <= row_q[2][3:0];
      end
      if (move && last) full_q[out_half_q] <= 1'b0;
      if (freed) taken_q[half_q[2]] <= 1'b0;
    end
  end

  assign half_free_o = !taken_q[half_i];
  assign group_valid_o = group_q;
  assign group_lines_o = group_lines_q;
  assign idle_o = taken_q == '0 && !group_q;

  // ---- memories ----
  logic [9:0] sweep;
  shef_sweep #(.Words(1024)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);

  line_t index_mem[16];
  line_t list_mem[1024];
  wire [2:0] sparse0 = sub_q[0] - 3'd1;
  wire [2:0] sparse2 = sub_q[2] - 3'd1;
  wire in_list = in_valid_i && in_place_i.list;
  wire in_dense = in_valid_i && !in_place_i.list;
  always_ff @(posedge clk_i) begin
    if (clear_i) index_mem[sweep[3:0]] <= '0;
    else if (index_valid_i) index_mem[{half_i, index_sparse_i}] <= index_i;
    if (!rst_ni) index_q <= '0;
    else if (move) index_q <= index_mem[{out_half_q, sparse0}];
    if (clear_i) list_mem[sweep] <= '0;
    else if (in_list) begin
      list_mem[{in_place_i.half, in_place_i.sparse, in_place_i.entry}] <= in_line_i;
    end
    if (!rst_ni) list_q <= '0;
    else if (move) list_q <= list_mem[{half_q[1], sparse2, entry_q}];
  end

  // Value of row i and feature f (both modulo 16) is in bank i + f.
  for (genvar b = 0; b < LANES; b++) begin : g_bank
    logic [31:0] mem[128];
    wire [3:0] lane = 4'(b) - in_place_i.dense;
    wire [3:0] feature = 4'(b) - row_q[2][3:0];
    always_ff @(posedge clk_i) begin
      if (clear_i) mem[sweep[6:0]] <= '0;
      else if (in_dense) begin
        mem[{in_place_i.half, in_place_i.rows, in_place_i.dense}] <= in_line_i[lane];
      end
      if (!rst_ni) banks_q[b] <= '0;
      else if (move) banks_q[b] <= mem[{half_q[1], row_q[2][5:4], feature}];
    end
  end

  line_t turned;
  always_comb begin
    for (int unsigned f = 0; f < DENSE; f++) turned[f] = banks_q[4'(f) + turn_q];
  end
  assign line_valid_o = valid_q[3];
  assign line_o = dense_q ? turned : list_q;
endmodule
`default_nettype wire
