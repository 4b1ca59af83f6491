// One row of the multiplier array: 16 sums of products, of one row of A and 16 columns of B.
//
// load_i writes the next 16 words of the row, turn_i makes them the present ones. word_i selects
// one of the present words; two cycles later b_i has the words of B that it is multiplied by.
// mul_i is high in that cycle, add_i in the next one, with first_i if the sums begin anew. Each
// lane multiplies and adds modulo 2^32: three DSP48.
//
// The sums leave through a chain of rows: take_i copies them to the chain, shift_i moves the chain
// by one row, from below_i. The next products may be added in the cycle after take_i.
`default_nettype none
module shef_matmul_row (
  input  wire          clk_i,
  input  wire          rst_ni,
  input  wire          load_i,
  input  wire  [511:0] line_i,
  input  wire          turn_i,
  input  wire  [  3:0] word_i,
  input  wire          step_i,   // word_i is used
  input  wire          mul_i,
  input  wire  [511:0] b_i,
  input  wire          add_i,
  input  wire          first_i,
  input  wire          take_i,
  input  wire          shift_i,
  input  wire  [511:0] below_i,
  output logic [511:0] chain_o
);
  logic [511:0] next_q, line_q, product_q, sum_q;
  logic [31:0] early_q, a_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {next_q, line_q, product_q, sum_q, chain_o} <= '0;
      {early_q, a_q} <= '0;
    end else begin
      if (load_i) next_q <= line_i;
      if (turn_i) line_q <= next_q;
      if (step_i) early_q <= line_q[32*word_i+:32];
      a_q <= early_q;
      if (mul_i) begin
        for (int i = 0; i < 16; i++) product_q[32*i+:32] <= a_q * b_i[32*i+:32];
      end
      if (add_i) begin
        for (int i = 0; i < 16; i++) begin
          sum_q[32*i+:32] <= (first_i ? 32'd0 : sum_q[32*i+:32]) + product_q[32*i+:32];
        end
      end
      if (take_i) chain_o <= sum_q;
      else if (shift_i) chain_o <= below_i;
    end
  end
endmodule
`default_nettype wire
