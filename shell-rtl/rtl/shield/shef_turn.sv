// Round-robin arbiter among N requests: holds the grant until done_i, then moves to the next
// requester.
//
// req_i are levels. valid_o: the granted one requests; sel_o is its number, and stays while valid_o
// is high and in the gaps of a transfer in progress. done_i: the granted one ends with this cycle.
// Combinational from req_i to sel_o and valid_o. A requester waits for at most one turn of each of
// the others. With First < N, requester First is chosen before the others, whose order it does not
// change: it waits for at most the turn in progress, and the others wait while it requests.
`default_nettype none
module shef_turn #(
    parameter int unsigned N = 2,
    parameter int unsigned First = N,
    localparam int unsigned NW = (N > 1) ? $clog2(N) : 1
) (
    input  wire           clk_i,
    input  wire           rst_ni,
    input  wire  [N-1:0]  req_i,
    input  wire           done_i,
    output logic          valid_o,
    output logic [NW-1:0] sel_o
);
  logic held_q, first_q;
  logic [NW-1:0] sel_q, pick;

  // the nearest one after the last, cyclically; the last one itself comes last
  always_comb begin
    pick = sel_q;
    for (int unsigned k = N - 1; k > 0; k--) begin
      for (int unsigned i = 0; i < N; i++)
        if (sel_q == NW'((i + N - k) % N) && req_i[i]) pick = NW'(i);
    end
    for (int unsigned i = 0; i < N; i++) if (i == First && req_i[i]) pick = NW'(i);
  end
  assign sel_o = !held_q ? pick : first_q ? NW'(First) : sel_q;
  assign valid_o = req_i[sel_o];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
      first_q <= 1'b0;
      sel_q <= '0;
    end else begin
      held_q <= (held_q || valid_o) && !(valid_o && done_i);
      if (valid_o) first_q <= First < N && sel_o == NW'(First);
      if (valid_o && !(First < N && sel_o == NW'(First))) sel_q <= sel_o;
    end
  end
endmodule
`default_nettype wire
