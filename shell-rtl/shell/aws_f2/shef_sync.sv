// Synchroniser of one bit: two flip-flops of the clock that reads it.
//
// The source is a flip-flop of another clock, without logic behind it. No reset: the value follows
// the source two edges later.
`default_nettype none
module shef_sync (
    input  wire logic clk_i,
    input  wire logic d_i,
    output logic      q_o
);
  (* ASYNC_REG = "TRUE" *) logic meta_q;
  (* ASYNC_REG = "TRUE" *) logic sync_q;
  assign q_o = sync_q;

  always_ff @(posedge clk_i) begin
    meta_q <= d_i;
    sync_q <= meta_q;
  end
endmodule
`default_nettype wire
