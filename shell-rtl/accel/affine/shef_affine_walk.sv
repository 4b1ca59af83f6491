// Walk of the affine transform: for each group of four pixels of the target, row by row, where they
// lie in the source. Up to four maps are walked one after the other.
//
// Handshake: group_* valid/ready; three cycles from start_i to the first group, then one a cycle.
// The coefficients a and d are at most 2.0 in size, so a group lies in two by two tiles. All
// numbers are 16.16 in 32 bits and never overflow (README.md). start_i drops what is in flight.
`default_nettype none
module shef_affine_walk
  import shef_affine_pkg::*;
(
    input  wire           clk_i,
    input  wire           rst_ni,
    input  wire           start_i,
    input  wire     [9:0] width_i,   // of the source
    input  wire     [9:0] height_i,
    input  wire     [3:0] lines_i,   // of a row of the target: lines of 64 pixels
    input  wire     [9:0] rows_i,    // of the target
    input  wire     [2:0] maps_i,
    input  wire map_t [3:0] map_i,

    output wire           group_valid_o,
    input  wire           group_ready_i,
    output wire group_t   group_o
);
  // ---- position in the target ----
  logic walking_q, first_q;   // first: the map's first group is to be prepared
  logic [1:0] map_q;
  logic [7:0] col_q, cols_q;  // group in the row, groups of a row
  logic [9:0] row_q;
  logic [31:0] x_q, y_q, row_x_q, row_y_q;  // of the group's first pixel, of the row's
  wire map_t map = map_i[map_q];
  wire last_col = col_q + 8'd1 == cols_q;
  wire last_row = row_q + 10'd1 == rows_i;
  wire last_map = 3'(map_q) + 3'd1 == maps_i;

  logic points_valid_q, group_valid_q;
  wire group_slot = !group_valid_q || group_ready_i;
  wire points_slot = !points_valid_q || group_slot;
  wire step = walking_q && !first_q && points_slot;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {walking_q, first_q} <= '0;
      map_q <= '0;
      {col_q, cols_q} <= '0;
      row_q <= '0;
      {x_q, y_q, row_x_q, row_y_q} <= '0;
    end else if (start_i) begin
      {walking_q, first_q} <= '1;
      map_q <= '0;
      cols_q <= 8'(lines_i) << 4;
    end else if (first_q) begin
      first_q <= 1'b0;
      {col_q, row_q} <= '0;
      {x_q, y_q} <= {map.c, map.f};
      {row_x_q, row_y_q} <= {map.c + map.b, map.f + map.e};
    end else if (step) begin
      if (!last_col) begin
        col_q <= col_q + 8'd1;
        {x_q, y_q} <= {x_q + (map.a << 2), y_q + (map.d << 2)};
      end else begin
        col_q <= '0;
        row_q <= row_q + 10'd1;
        {x_q, y_q} <= {row_x_q, row_y_q};
        {row_x_q, row_y_q} <= {row_x_q + map.b, row_y_q + map.e};
        if (last_row) begin
          first_q <= !last_map;
          walking_q <= !last_map;
          map_q <= map_q + 2'd1;
        end
      end
    end
  end

  // ---- the four pixels in the source, without the lowest fraction bits ----
  logic [PIXELS-1:0][23:0] px_q, py_q;
  function automatic logic [23:0] point(input logic [31:0] first, input logic [31:0] step_by,
                                        input logic [1:0] k);
    return 24'((first + (k[1] ? step_by << 1 : '0) + (k[0] ? step_by : '0)) >> 8);
  endfunction
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      points_valid_q <= 1'b0;
      {px_q, py_q} <= '0;
    end else if (start_i) points_valid_q <= 1'b0;
    else if (points_slot) begin
      points_valid_q <= step;
      for (int k = 0; k < int'(PIXELS); k++) begin
        px_q[k] <= point(x_q, map.a, 2'(k));
        py_q[k] <= point(y_q, map.d, 2'(k));
      end
    end
  end

  // ---- their tiles ----
  group_t group, group_q;
  function automatic logic covers(input logic [15:0] at, input logic [9:0] size);
    return !at[15] && at[14:0] < 15'(size);
  endfunction
  always_comb begin
    logic [15:0] x, y;
    logic [5:0] col, row;
    group = '0;
    for (int k = 0; k < int'(PIXELS); k++) begin
      x = px_q[k][23:8];
      y = py_q[k][23:8];
      group.places[k] = '{x: x[3:0], y: y[3:0], fx: px_q[k][7:0], fy: py_q[k][7:0],
          in_x: {covers(x + 16'd1, width_i), covers(x, width_i)},
          in_y: {covers(y + 16'd1, height_i), covers(y, height_i)}};
      for (int tap = 0; tap < 4; tap++) begin
        if (group.places[k].in_x[tap[0]] && group.places[k].in_y[tap[1]])
          group.need[{y[3] ^ (tap[1] && y[2:0] == '1), x[3] ^ (tap[0] && x[2:0] == '1)}] = 1'b1;
      end
    end
    // The first of the two columns and rows is that of one end of the group.
    x = $signed(px_q[0][23:8]) < $signed(px_q[PIXELS-1][23:8]) ? px_q[0][23:8] :
        px_q[PIXELS-1][23:8];
    y = $signed(py_q[0][23:8]) < $signed(py_q[PIXELS-1][23:8]) ? py_q[0][23:8] :
        py_q[PIXELS-1][23:8];
    col = x[8:3];
    row = y[8:3];
    for (int bank = 0; bank < 4; bank++) begin
      group.col[bank] = col + 6'(col[0] != bank[0]);
      group.row[bank] = row + 6'(row[0] != bank[1]);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      group_valid_q <= 1'b0;
      group_q <= '0;
    end else if (start_i) group_valid_q <= 1'b0;
    else if (group_slot) begin
      group_valid_q <= points_valid_q;
      group_q <= group;
    end
  end
  assign group_valid_o = group_valid_q;
  assign group_o = group_q;
endmodule
`default_nettype wire
