// MMCM of the FPGA in simulation: its first output and its lock come from the top, because rate, phase
// and lock belong to the test bench.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module MMCME4_BASE #(
    parameter real CLKIN1_PERIOD = 0.0,
    parameter int DIVCLK_DIVIDE = 1,
    parameter real CLKFBOUT_MULT_F = 5.0,
    parameter real CLKOUT0_DIVIDE_F = 1.0
) (
    input  wire logic CLKIN1,
    input  wire logic CLKFBIN,
    output logic CLKFBOUT, CLKFBOUTB,
    output logic CLKOUT0, CLKOUT0B, CLKOUT1, CLKOUT1B, CLKOUT2, CLKOUT2B, CLKOUT3, CLKOUT3B,
    output logic CLKOUT4, CLKOUT5, CLKOUT6,
    output logic LOCKED,
    input  wire logic PWRDWN,
    input  wire logic RST
);
  assign CLKOUT0 = $root.shef_f2_top.core_clk;
  assign LOCKED = $root.shef_f2_top.core_locked;
  assign {CLKFBOUT, CLKFBOUTB, CLKOUT0B, CLKOUT1, CLKOUT1B, CLKOUT2, CLKOUT2B, CLKOUT3, CLKOUT3B,
      CLKOUT4, CLKOUT5, CLKOUT6} = '0;
endmodule
`default_nettype wire
