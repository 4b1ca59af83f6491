// Clocks of the build with the native kernel: kernel and core have one clock.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
module shef_f2_clocks #(
    parameter int unsigned CoreDiv8 = 120,
    parameter int unsigned RetryCycles = 1 << 16
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    output logic      core_clk_o,
    output logic      kernel_clk_o,
    output logic      kernel_tick_o,
    output logic      locked_o
);
  assign core_clk_o = $root.shef_f2_top.core_clk;
  assign kernel_clk_o = $root.shef_f2_top.core_clk;
  assign kernel_tick_o = 1'b1;
  logic locked;
  shef_sync u_locked (
      .clk_i,
      .d_i($root.shef_f2_top.core_locked),
      .q_o(locked)
  );
  assign locked_o = rst_ni && locked;
endmodule
`default_nettype wire
