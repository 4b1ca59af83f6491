// The multiplier array of the convolution: the 27 pixels of a row by 32 filters, 864 products a
// cycle.
//
// For each row of the output, for each group of filters: the products of all rows of the filter
// that lie in the image, of all channels and of the 5 columns of the filter are summed, and the
// sums leave at sum_*, pixel by pixel, also those to the right of the image. A window is a row of
// the input with 16 channels; it is used for 5 columns of the filter, and the next one is loaded
// in this time. So the array works in every cycle as long as rows and weights have arrived and
// sums leave before the next ones are complete.
`default_nettype none
module shef_conv_array (
  input  wire           clk_i,
  input  wire           rst_ni,
  input  wire           start_i,

  input  wire  [  10:0] images_i,
  input  wire  [   4:0] height_i,
  input  wire  [   4:0] width_i,
  input  wire  [   2:0] depth_i,       // lines of channels in a pixel
  input  wire  [   3:0] groups_i,      // of 32 filters

  input  wire  [  15:0] rows_i,
  input  wire  [   3:0] weights_i,
  output logic [  15:0] rows_used_o,
  output wire  [  10:0] pixel_addr_o,
  input  wire  [ 511:0] pixel_i,
  output wire           weight_read_o,
  output wire  [   2:0] weight_group_o,
  output wire  [  11:0] weight_addr_o,
  input  wire  [1023:0] weight_i,

  output wire           sum_valid_o,
  input  wire           sum_ready_i,
  output wire  [1023:0] sum_o
);
  localparam int unsigned WIDTH = 27;

  // ---- next window ----
  typedef struct packed {
    logic [2:0] group;
    logic [7:0] line;    // of the weights of a filter, in steps of 16
    logic       first;   // of the sums
    logic       last;
  } window_t;

  logic loading_q;          // windows are left
  logic [10:0] image_q;
  logic [15:0] base_q;      // rows of the images before
  logic [4:0] y_q;          // row of the output
  logic [2:0] group_q;
  logic [2:0] tap_q;        // row of the filter
  logic [2:0] line_q;       // 16 channels
  logic [4:0] read_q;       // pixels of the window that are read
  logic [7:0] read_line_q;  // of the row: that of the next pixel
  logic write_q;            // the line read in the last cycle goes to next
  logic [4:0] write_x_q;
  logic next_valid_q, now_valid_q;
  window_t next_q, now_q;
  wire turn;

  // The first and the last row of the filter that lie in the image.
  function automatic logic [2:0] first_tap(input logic [4:0] y);
    return y < 5'd2 ? 3'd2 - 3'(y) : 3'd0;
  endfunction
  wire [4:0] below = height_i - 5'd1 - y_q;
  wire [2:0] last_tap = below < 5'd2 ? 3'd2 + 3'(below) : 3'd4;
  wire tap_last = tap_q == last_tap;
  wire line_last = line_q == depth_i - 1'b1;
  wire group_last = 4'(group_q) == groups_i - 1'b1;
  wire y_last = below == '0;
  wire image_last = image_q == images_i - 1'b1;
  wire [15:0] row = base_q + 16'(y_q) + 16'(tap_q);  // of the input, plus 2
  wire [2:0] slot = row[2:0] - 3'd2;

  wire ready = loading_q && rows_i + 16'd2 > row && weights_i > 4'(group_q);
  wire read = ready && read_q != width_i && (!next_valid_q || turn);
  wire load_end = write_q && write_x_q == width_i - 1'b1;
  wire [4:0] next_y = y_last ? '0 : y_q + 1'b1;
  assign pixel_addr_o = {slot, read_line_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      loading_q <= start_i;
      {image_q, base_q, y_q, group_q, line_q, read_q, read_line_q} <= '0;
      tap_q <= first_tap('0);
      {write_q, write_x_q, next_valid_q, next_q, rows_used_o} <= '0;
    end else begin
      write_q <= read;
      write_x_q <= read_q;
      if (read) begin
        read_q <= read_q + 1'b1;
        read_line_q <= read_line_q + 8'(depth_i);
      end
      if (turn) next_valid_q <= 1'b0;
      if (load_end) begin
        read_q <= '0;
        next_valid_q <= 1'b1;
        next_q <= '{group: group_q, line: 8'(tap_q) * (8'(depth_i) * 8'd5) + 8'(line_q),
            first: tap_q == first_tap(y_q) && line_q == '0, last: tap_last && line_last};
        line_q <= line_last ? '0 : line_q + 1'b1;
        read_line_q <= line_last ? '0 : 8'(line_q) + 1'b1;
        if (line_last) tap_q <= tap_last ? first_tap(group_last ? next_y : y_q) : tap_q + 1'b1;
        if (line_last && tap_last) begin
          group_q <= group_last ? '0 : group_q + 1'b1;
          if (group_last) begin
            // The next row of the output needs this one's rows from the second on.
            rows_used_o <= y_last ? base_q + 16'(height_i) :
                y_q == '0 ? base_q : base_q + 16'(y_q) - 1'b1;
            y_q <= next_y;
            if (y_last) begin
              base_q <= base_q + 16'(height_i);
              image_q <= image_q + 1'b1;
              loading_q <= !image_last;
            end
          end
        end
      end
    end
  end

  // ---- steps: a channel of each pixel by its weights in 32 filters ----
  logic [3:0] word_q;
  logic [2:0] column_q;     // of the filter
  logic [7:0] column_line_q;
  logic result_q;           // sums are complete, or will be in a few cycles, and have not left
  wire word_end = word_q == 4'd15;
  wire window_end = word_end && column_q == 3'd4;
  wire step = now_valid_q && !(window_end && now_q.last && result_q);
  wire final_step = step && window_end && now_q.last;
  wire sums_out;
  assign turn = next_valid_q && (!now_valid_q || step && window_end);
  assign weight_read_o = step;
  assign weight_group_o = now_q.group;
  assign weight_addr_o = {now_q.line + column_line_q, word_q};

  // The stages behind a step: weights are read, selected, multiply, add.
  logic [3:0] valid_q, first_q, last_q;
  logic [1023:0] weight_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      {word_q, column_q, column_line_q, now_valid_q, now_q, result_q} <= '0;
      {valid_q, first_q, last_q} <= '0;
      weight_q <= '0;
    end else begin
      if (step) begin
        word_q <= word_q + 1'b1;
        if (word_end) begin
          column_q <= window_end ? '0 : column_q + 1'b1;
          column_line_q <= window_end ? '0 : column_line_q + 8'(depth_i);
        end
      end
      if (turn) begin
        now_valid_q <= 1'b1;
        now_q <= next_q;
      end else if (step && window_end) now_valid_q <= 1'b0;
      if (final_step) result_q <= 1'b1;
      else if (sums_out) result_q <= 1'b0;
      valid_q <= {valid_q[2:0], step};
      first_q <= {first_q[2:0], now_q.first && column_q == '0 && word_q == '0};
      last_q <= {last_q[2:0], final_step};
      if (valid_q[0]) weight_q <= weight_i;
    end
  end

  // ---- sums: they leave through pixel 0 ----
  logic [4:0] out_q;        // pixels in the chain
  wire move = sum_valid_o && sum_ready_i;
  assign sum_valid_o = out_q != '0;
  assign sums_out = move && out_q == 5'd1;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) out_q <= '0;
    else if (last_q[3]) out_q <= 5'(WIDTH);
    else if (move) out_q <= out_q - 1'b1;
  end

  // Column j of the lines has pixel j - 2 of the input: two zeros, the pixels, and zeros from the
  // right. Pixels of the array have the first 27 columns, the other two are here.
  wire [WIDTH-1:0][511:0] next;
  wire [WIDTH+2:0][511:0] line;
  wire [WIDTH:0][1023:0] chain;
  logic [1:0][511:0] tail_q;
  wire shift = step && word_end;
  function automatic logic [511:0] in_image(input logic [511:0] pixel, input logic in);
    return in ? pixel : '0;
  endfunction
  always_ff @(posedge clk_i) begin
    if (!rst_ni) tail_q <= '0;
    else if (turn) begin
      tail_q <= {in_image(next[WIDTH-1], width_i > 5'(WIDTH - 1)),
          in_image(next[WIDTH-2], width_i > 5'(WIDTH - 2))};
    end else if (shift) tail_q <= {512'd0, tail_q[1]};
  end
  assign line[WIDTH+2:WIDTH] = {512'd0, tail_q};
  assign chain[WIDTH] = '0;
  assign sum_o = chain[0];
  for (genvar i = 0; i < WIDTH; i++) begin : g_pixel
    wire [511:0] turn_line;
    if (i < 2) begin : g_border
      assign turn_line = '0;
    end else begin : g_image
      assign turn_line = in_image(next[i-2], width_i > 5'(i - 2));
    end
    shef_conv_pixel u_pixel (
      .clk_i,
      .rst_ni,
      .load_i(write_q && write_x_q == 5'(i)),
      .load_line_i(pixel_i),
      .next_o(next[i]),
      .turn_i(turn),
      .turn_line_i(turn_line),
      .shift_i(shift),
      .shift_line_i(line[i+1]),
      .line_o(line[i]),
      .word_i(word_q),
      .step_i(step),
      .mul_i(valid_q[1]),
      .weights_i(weight_q),
      .add_i(valid_q[2]),
      .first_i(first_q[2]),
      .take_i(last_q[3]),
      .move_i(move),
      .below_i(chain[i+1]),
      .chain_o(chain[i])
    );
  end

  wire unused = &{1'b0, valid_q[3], first_q[3], line[0], line[WIDTH+2]};
endmodule
`default_nettype wire
