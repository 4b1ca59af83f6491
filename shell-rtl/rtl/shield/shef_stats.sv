// Statistics of a set: counts of 16 events, 48 bits each, saturating.
//
// event_i: one bit each, counted every cycle. cnt_o: the count of sel_i, one cycle later; it lags
// the events by at most 18 cycles. One adder serves all counts in turn, from small counters that it
// empties. While clr_i is high (16 cycles at least) everything is zeroed; clr_i must have been high
// since power-up before the first count is read.
`default_nettype none
module shef_stats (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         clr_i,
    input  wire  [15:0] event_i,
    input  wire  [3:0]  sel_i,
    output logic [47:0] cnt_o
);
  logic [47:0] mem_q[16];
  logic [4:0] few_q[16];   // events since the last turn: at most 16
  logic [3:0] turn_q, add_turn_q;
  logic [47:0] old_q, cnt_q;
  logic [4:0] add_q;
  logic [48:0] sum;

  assign sum = {1'b0, old_q} + 49'(add_q);
  assign cnt_o = cnt_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      old_q <= '0;
      add_q <= '0;
      cnt_q <= '0;
      for (int i = 0; i < 16; i++) few_q[i] <= '0;
    end else begin
      old_q <= mem_q[turn_q];
      add_q <= few_q[turn_q];
      cnt_q <= mem_q[sel_i];
      for (int i = 0; i < 16; i++) begin
        if (turn_q == 4'(i)) few_q[i] <= {4'd0, event_i[i]};
        else if (event_i[i]) few_q[i] <= few_q[i] + 1'b1;
      end
    end
    // continues through a wipe
    turn_q <= rst_ni ? turn_q + 1'b1 : '0;
    add_turn_q <= turn_q;
    if (clr_i) mem_q[turn_q] <= '0;
    else mem_q[add_turn_q] <= sum[48] ? '1 : sum[47:0];
  end
endmodule
`default_nettype wire
