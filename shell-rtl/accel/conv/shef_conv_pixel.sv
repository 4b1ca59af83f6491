// One pixel of the multiplier array: sums of products for 32 filters at one place of the output.
//
// load_i writes 16 channels of the pixel of the input in this column. turn_i copies those of the
// column two to the left to the present line, shift_i those of the present line to the right.
// word_i selects one of the present channels; two cycles later weights_i has the weights that it
// is multiplied by. mul_i is high in that cycle, add_i in the next one, with first_i if the sums
// begin anew. Each lane multiplies and adds modulo 2^32: three DSP48.
//
// The sums leave through a chain of pixels: take_i copies them to the chain, move_i moves the
// chain by one pixel, from below_i. The next products may be added in the cycle after take_i.
`default_nettype none
module shef_conv_pixel (
  input  wire           clk_i,
  input  wire           rst_ni,
  input  wire           load_i,
  input  wire  [ 511:0] load_line_i,
  output logic [ 511:0] next_o,
  input  wire           turn_i,
  input  wire  [ 511:0] turn_line_i,
  input  wire           shift_i,
  input  wire  [ 511:0] shift_line_i,
  output logic [ 511:0] line_o,
  input  wire  [   3:0] word_i,
  input  wire           step_i,   // word_i is used
  input  wire           mul_i,
  input  wire  [1023:0] weights_i,
  input  wire           add_i,
  input  wire           first_i,
  input  wire           take_i,
  input  wire           move_i,
  input  wire  [1023:0] below_i,
  output logic [1023:0] chain_o
);
  logic [1023:0] product_q, sum_q;
  logic [31:0] early_q, value_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {next_o, line_o, product_q, sum_q, chain_o} <= '0;
      {early_q, value_q} <= '0;
    end else begin
      if (load_i) next_o <= load_line_i;
      if (turn_i) line_o <= turn_line_i;
      else if (shift_i) line_o <= shift_line_i;
      if (step_i) early_q <= line_o[32*word_i+:32];
      value_q <= early_q;
      if (mul_i) begin
        for (int i = 0; i < 32; i++) product_q[32*i+:32] <= value_q * weights_i[32*i+:32];
      end
      if (add_i) begin
        for (int i = 0; i < 32; i++) begin
          sum_q[32*i+:32] <= (first_i ? 32'd0 : sum_q[32*i+:32]) + product_q[32*i+:32];
        end
      end
      if (take_i) chain_o <= sum_q;
      else if (move_i) chain_o <= below_i;
    end
  end
endmodule
`default_nettype wire
