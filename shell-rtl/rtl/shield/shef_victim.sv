// Victim choice of one class of lines: the next line to allocate, chosen in advance, and one behind
// it.
//
// avail_i: available lines of the class. ok_o: there is a candidate, one_o (one-hot) with the
// number line_o. take_i: it is allocated, in the same cycle. hit_i: lines that segments go into in
// this cycle, which stop being candidates; no line is hit in a cycle with an allocation. hit_up_i,
// line_i: the same by segment (read, write), and the line of each, hit or not; cand_hit_i: that
// line is the candidate. A line that becomes available is a candidate three cycles later at the
// earliest; one candidate a cycle.
`default_nettype none
module shef_victim
  import shef_set_pkg::*;
#(
    parameter int unsigned N = 40
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire  [N-1:0]      avail_i,
    input  wire  [N-1:0]      hit_i,
    input  wire  [1:0]        hit_up_i,
    input  wire  [1:0][N-1:0] line_i,
    input  wire  [1:0]        cand_hit_i,
    input  wire               take_i,
    output logic              ok_o,
    output logic [N-1:0]      one_o,
    output line_t             line_o
);
  logic [N-1:0] pool_q, next_q, one;
  logic [1:0] next_hit, held;   // by the segment of that side, if it goes into its line
  logic next_ok;

  assign next_hit = {(line_i[1] & next_q) != '0, (line_i[0] & next_q) != '0};
  assign next_ok = next_q != '0;
  assign held = ok_o ? cand_hit_i : next_hit;
  shef_pick #(.N(N)) u_pick (
      .clk_i, .rst_ni, .clr_i, .x_i(pool_q & ~next_q & ~one_o),
      .next_i(take_i || !ok_o || !next_ok), .one_o(one)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      pool_q <= '0;
      next_q <= '0;
      one_o <= '0;
      line_o <= '0;
      ok_o <= 1'b0;
    end else begin
      pool_q <= avail_i & ~next_q & ~one_o & ~hit_i;
      if (take_i) begin
        next_q <= one;
        one_o <= next_q;
        ok_o <= next_ok;
      end else begin
        next_q <= ((!ok_o || !next_ok) ? one : next_q) & ~hit_i;
        one_o <= (ok_o ? one_o : next_q) & ~hit_i;
        ok_o <= (ok_o || next_ok) && (hit_up_i & held) == '0;
      end
      if (take_i || !ok_o) line_o <= index_of(64'(next_q));
    end
  end
endmodule
`default_nettype wire
