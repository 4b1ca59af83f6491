// Round-robin choice among N lines: the first set bit of x_i above the last choice. If there is no
// higher bit, that cycle makes no choice, and the next one begins below.
//
// Handshake: one_o is the choice (one-hot or zero), in the same cycle; next_i: it was used,
// continue from there.
`default_nettype none
module shef_pick #(
    parameter int unsigned N = 40
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clr_i,
    input  wire  [N-1:0] x_i,
    input  wire          next_i,
    output logic [N-1:0] one_o
);
  logic [N-1:0] above_q;      // all bits above the last choice
  logic [N-1:0] left, minus;

  assign left = x_i & above_q;
  assign minus = ~left + 1'b1;   // the first set bit, and all clear bits above it
  assign one_o = left & minus;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) above_q <= '1;
    else if (next_i) above_q <= (left == '0) ? '1 : left ^ minus;
  end
endmodule
`default_nettype wire
