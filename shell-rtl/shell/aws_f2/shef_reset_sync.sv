// Reset of a clock domain: asserted at once, also without a clock, released Stages edges after
// rst_ni.
//
// rst_ni comes from a flip-flop.
`default_nettype none
module shef_reset_sync #(
    parameter int unsigned Stages = 3
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    output logic      rst_no
);
  (* ASYNC_REG = "TRUE" *) logic [Stages-1:0] stage_q;
  assign rst_no = stage_q[Stages-1];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) stage_q <= '0;
    else stage_q <= {stage_q[Stages-2:0], 1'b1};
  end
endmodule
`default_nettype wire
