// Watchdog for one owed response: when wait_i is high without progress_i for Cycles cycles, late_o
// rises and stays high until reset.
`default_nettype none
module shef_watch #(
    parameter int unsigned Cycles = 4096
) (
    input  wire  clk_i,
    input  wire  rst_ni,
    input  wire  wait_i,
    input  wire  progress_i,
    output logic late_o
);
  localparam int unsigned CW = $clog2(Cycles + 1);
  logic [CW-1:0] count_q;
  logic late_q;
  assign late_o = late_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
      late_q <= 1'b0;
    end else begin
      if (!wait_i || progress_i) count_q <= '0;
      else if (count_q != CW'(Cycles)) count_q <= count_q + 1'b1;
      if (count_q == CW'(Cycles)) late_q <= 1'b1;
    end
  end
endmodule
`default_nettype wire
