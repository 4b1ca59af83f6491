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
  (* ASYNC_REG = "TRUE" *) logic [Stages-2:0] stage_q;
  (* ASYNC_REG = "TRUE" *) logic rst_q;
  assign rst_no = rst_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      stage_q <= '0;
      rst_q <= 1'b0;
    end else begin
      stage_q <= (Stages - 1)'({stage_q, 1'b1});
      rst_q <= stage_q[Stages-2];
    end
  end
endmodule
`default_nettype wire
