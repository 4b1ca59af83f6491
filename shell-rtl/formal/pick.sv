// shef_pick: the choice is one of the offered lines, or none. A line that stays offered is chosen
// after at most as many uses as there are lines.
`default_nettype none
module pick (
    input wire       clk_i,
    input wire       rst_ni,
    input wire       clr_i,
    input wire [4:0] x_i,
    input wire       next_i
);
  localparam int unsigned N = 5;
  logic [N-1:0] one;
  shef_pick #(.N(N)) dut (.clk_i, .rst_ni, .clr_i, .x_i, .next_i, .one_o(one));

  logic init = 1'b0;
  logic [3:0] l;                 // symbolic line, constant
  logic [3:0] waited;            // uses since it was offered
  logic [3:0] from;              // start of the choice
  always_comb begin
    from = 4'(N);
    for (int i = int'(N) - 1; i >= 0; i--) if (dut.above_q[i]) from = 4'(i);
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    l <= l;
    assume (l < 4'(N));
    if (!rst_ni || clr_i || !x_i[l] || (one[l] && next_i)) waited <= '0;
    else if (next_i) waited <= waited + 1'b1;
  end
  always_comb begin
    if (init && rst_ni) begin
      assert ((one & ~x_i) == '0 && (one & (one - 1'b1)) == '0);
      assert (waited <= 4'(N));
      // supporting invariants
      assert (dut.above_q == 5'(32'h1f << from));
      if (from <= l) assert (waited + (l - from) <= 4'(N));
      else assert (waited + l < from);
    end
    cover (init && rst_ni && waited == 4'(N) && one[l] && next_i);
    cover (init && rst_ni && x_i != '0 && one == '0);
  end
endmodule
`default_nettype wire
