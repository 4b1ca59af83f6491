// Steps of a layer of the network, image by image: counters, and addresses of inputs and weights.
//
// begin_i (one cycle) starts a layer. While full_i is high, the input of the next image is there; a
// step is at fetch_o and step_o in each cycle of step_o.valid with en_i high. done_o is high in the
// last step of an image.
`default_nettype none
module shef_lenet_steps
  import shef_lenet_pkg::*;
(
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         begin_i,
    input  wire layer_t layer_i,
    input  wire         full_i,
    input  wire         en_i,
    output fetch_t      fetch_o,
    output step_t       step_o,
    output wire         done_o
);
  wire shape_t s = shape(layer_i);
  logic [2:0] tap_q, depth_q;
  logic [1:0] pool_q;
  logic [3:0] col_q, row_q;
  logic [8:0] weights_q;
  wire filters = layer_i < 3'd2;
  wire depth_last = depth_q == s.depth;
  wire tap_last = tap_q == (depth_last ? s.rest : s.taps);
  wire sum_last = tap_last && depth_last;
  wire pool_last = pool_q == s.pool;
  wire col_last = col_q == s.col;
  wire image_last = pool_last && col_last && row_q == s.row;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || begin_i) begin
      {tap_q, depth_q, pool_q, col_q, row_q, weights_q} <= '0;
    end else if (full_i && en_i) begin
      tap_q <= tap_last ? '0 : tap_q + 3'd1;
      if (tap_last) depth_q <= depth_last ? '0 : depth_q + 3'd1;
      weights_q <= sum_last && (filters || image_last) ? '0 : weights_q + 9'd1;
      if (sum_last) begin
        pool_q <= pool_last ? '0 : pool_q + 2'd1;
        if (pool_last) begin
          col_q <= col_last ? '0 : col_q + 4'd1;
          if (col_last) row_q <= row_q == s.row ? '0 : row_q + 4'd1;
        end
      end
    end
  end

  // ---- inputs ----
  // Layer 0: rows 2n and 2n + 1 of the picture in a line. Layer 1: of each row a line with that of
  // channels 0 and 1, one with 2 and 3, one with 4 and 5. Others: all bytes of a line, five of each
  // half at a time.
  wire [4:0] at_row = 5'(row_q) << 1;
  wire [4:0] row_0 = at_row + 5'(pool_q[0]) + (5'(tap_q) << 1);
  wire [4:0] row_1 = at_row + 5'(pool_q[1]) + 5'(tap_q);
  wire [5:0] line_1 = (6'(row_1) << 1) + 6'(row_1) + 6'(depth_q);
  always_comb begin
    fetch_o.weights = weights_q;
    fetch_o.swap = 1'b0;
    fetch_o.single = 1'b0;
    case (layer_i)
      3'd0: begin
        fetch_o.low = (6'(row_0) + 6'd1) >> 1;
        fetch_o.high = 6'(row_0) >> 1;
        fetch_o.swap = row_0[0];
        fetch_o.single = tap_last;
        fetch_o.x = 5'(col_q) << 1;
      end
      3'd1: begin
        fetch_o.low = line_1;
        fetch_o.high = line_1;
        fetch_o.x = (5'(col_q) << 1) + 5'(pool_q[0]);
      end
      default: begin
        fetch_o.low = 6'(depth_q);
        fetch_o.high = 6'(depth_q);
        // The seventh window ends with the line; three of its bytes are also in the sixth.
        fetch_o.x = tap_q == 3'd6 ? 5'd27 : (5'(tap_q) << 2) + 5'(tap_q);
      end
    endcase
  end
  assign step_o = '{valid: full_i, first: tap_q == '0 && depth_q == '0, last: sum_last,
      pool_first: pool_q == '0, pool_last: pool_last, col: col_q, image_last: image_last};
  assign done_o = full_i && sum_last && image_last;

  wire unused = &{1'b0, s};
endmodule
`default_nettype wire
