// Clock buffer of the FPGA in simulation.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module BUFGCE (
    input  wire logic I,
    input  wire logic CE,
    output logic O
);
  assign O = I;
endmodule
`default_nettype wire
