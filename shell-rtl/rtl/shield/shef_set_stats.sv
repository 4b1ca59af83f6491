// Statistics of a set: registers its events and counts them.
//
// event_i: the events of this cycle, each counted in every cycle in which it is high. With HasFront
// a cache precedes the set and counts the first six (front_i). cnt_o: the count of sel_i, one cycle
// later, as in shef_stats; an event reaches it one cycle later than there.
`default_nettype none
module shef_set_stats
  import shef_set_pkg::*;
#(
    parameter bit HasFront = 1'b0
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire  set_events_t event_i,
    input  wire  [5:0]        front_i,
    input  wire  [3:0]        sel_i,
    output logic [47:0]       cnt_o
);
  logic [15:0] event_q;

  always_ff @(posedge clk_i) begin
    event_q <= '0;
    if (rst_ni && !clr_i) begin
      event_q <= event_i;
      if (HasFront) event_q[5:0] <= front_i;
    end
  end
  shef_stats u_stats (.clk_i, .rst_ni, .clr_i, .event_i(event_q), .sel_i, .cnt_o);

  logic unused;
  assign unused = ^front_i;
endmodule
`default_nettype wire
