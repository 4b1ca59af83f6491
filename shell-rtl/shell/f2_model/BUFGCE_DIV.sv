// Dividing clock buffer of the FPGA in simulation. Every second edge; the latch keeps the choice while the input is high.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module BUFGCE_DIV #(
    parameter int BUFGCE_DIVIDE = 2
) (
    input  wire logic I,
    input  wire logic CE,
    input  wire logic CLR,
    output logic O
);
  logic phase_q, pass;
  always_ff @(posedge I) phase_q <= !phase_q;
  always_latch if (!I) pass = phase_q;
  assign O = I && pass;
endmodule
`default_nettype wire
