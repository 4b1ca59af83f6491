// Array of 160 multipliers: 16 lanes that each add ten products to their sum.
//
// A step comes with its rows and weights; four cycles later it is in the sums (sums_o, sum_o.valid
// in the last step of a sum). One step a cycle; nothing moves while en_i is low. begin_i empties
// it.
`default_nettype none
module shef_lenet_array
  import shef_lenet_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          begin_i,
    input  wire          en_i,
    input  wire          pairs_i,  // lanes 6 to 11 work on the column to the right
    input  wire step_t   step_i,
    input  wire          swap_i,
    input  wire          single_i,
    input  wire    [4:0] x_i,
    input  wire [1:0][255:0] rows_i,
    input  wire [LANES-1:0][TAPS-1:0][7:0] weights_i,
    output wire step_t   sum_o,
    output wire [LANES-1:0][31:0] sums_o
);
  localparam int unsigned ROW_TAPS = TAPS / 2;
  step_t [3:0] step_q;   // at the input, the products, their sums, the accumulators
  logic [1:0][ROW_TAPS:0][7:0] bytes_q;
  logic [LANES-1:0][TAPS-1:0][7:0] weights_q;
  logic [LANES-1:0][TAPS-1:0][15:0] products_q;
  logic [LANES-1:0][19:0] dots_q;
  logic [LANES-1:0][31:0] sums_q;

  function automatic logic [ROW_TAPS:0][7:0] window(input logic [255:0] row, input logic [4:0] x);
    return 48'(row >> {x, 3'd0});
  endfunction
  function automatic logic [19:0] dot(input logic [TAPS-1:0][15:0] products);
    logic [19:0] sum;
    sum = '0;
    for (int t = 0; t < int'(TAPS); t++) sum = sum + 20'($signed(products[t]));
    return sum;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= '0;
      {bytes_q, weights_q, products_q, dots_q, sums_q} <= '0;
    end else if (begin_i) step_q <= '0;
    else if (en_i) begin
      step_q <= {step_q[2:0], step_i};
      bytes_q[0] <= window(rows_i[swap_i], x_i);
      bytes_q[1] <= single_i ? '0 : window(rows_i[!swap_i], x_i);
      weights_q <= weights_i;
      for (int l = 0; l < int'(LANES); l++) begin
        for (int t = 0; t < int'(TAPS); t++) begin
          products_q[l][t] <= 16'($signed(weights_q[l][t])) * 16'($signed(
              bytes_q[t/int'(ROW_TAPS)][t%int'(ROW_TAPS)+int'(pairs_i && l >= 6 && l < 12)]));
        end
        dots_q[l] <= dot(products_q[l]);
        if (step_q[2].valid)
          sums_q[l] <= (step_q[2].first ? '0 : sums_q[l]) + 32'($signed(dots_q[l]));
      end
    end
  end
  step_t sum;
  always_comb begin
    sum = step_q[3];
    sum.valid = step_q[3].valid && step_q[3].last;
  end
  assign sum_o = sum;
  assign sums_o = sums_q;
endmodule
`default_nettype wire
