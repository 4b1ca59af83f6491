// Round-robin choice made in advance, kept in registers until it is used or has left the set. A
// choice takes three cycles, its use none.
//
// one_o is the choice (one-hot or zero), index_o its number; ok_o: it is in the set now. used_i:
// request the next one.
`default_nettype none
module shef_choice #(
    parameter int unsigned N = 32,
    localparam int unsigned W = $clog2(N)
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clr_i,
    input  wire  [N-1:0] set_i,
    input  wire          used_i,
    output logic [N-1:0] one_o,
    output logic [W-1:0] index_o,
    output logic         ok_o
);
  logic [N-1:0] pool_q, next_q, one_q, pick;
  logic [W-1:0] index_q, next_index;
  logic load, load_next;
  assign one_o = one_q;
  assign index_o = index_q;
  assign ok_o = (one_q & set_i) != '0;
  assign load = used_i || !ok_o;
  assign load_next = load || next_q == '0;

  shef_pick #(.N(N)) u_pick (.clk_i, .rst_ni, .clr_i, .x_i(pool_q & ~next_q), .next_i(load_next),
      .one_o(pick));

  always_comb begin
    next_index = '0;
    for (int i = 0; i < int'(N); i++) if (next_q[i]) next_index |= W'(i);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      pool_q <= '0;
      next_q <= '0;
      one_q <= '0;
      index_q <= '0;
    end else begin
      pool_q <= set_i & ~one_q & ~next_q;
      if (load_next) next_q <= pick;
      if (load) begin
        one_q <= next_q;
        index_q <= next_index;
      end
    end
  end
endmodule
`default_nettype wire
