// Clocks of the core in the shell of AWS F2, from clk_main_a0 alone.
//
// An MMCM without a reconfiguration port makes core_clk_o: 1,000 MHz / (CoreDiv8 / 8). Nothing that
// the instance controls changes it. kernel_clk_o is half of it, and each of its edges is one of
// core_clk_o; kernel_tick_o is high in each cycle of core_clk_o that ends with one.
// locked_o is synchronous to clk_i. An MMCM that stays unlocked for RetryCycles is reset.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs of cells that are not needed are named and left open)
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
  localparam real Divide = CoreDiv8 / 8.0;

  logic feedback, core_clk, locked, mmcm_rst_q;

  MMCME4_BASE #(
      .CLKIN1_PERIOD(4.0),
      .DIVCLK_DIVIDE(1),
      .CLKFBOUT_MULT_F(4.0),
      .CLKOUT0_DIVIDE_F(Divide)
  ) u_mmcm (
      .CLKIN1(clk_i),
      .CLKFBIN(feedback),
      .CLKFBOUT(feedback),
      .CLKOUT0(core_clk),
      .LOCKED(locked),
      .PWRDWN(1'b0),
      .RST(mmcm_rst_q),
      .CLKFBOUTB(), .CLKOUT0B(), .CLKOUT1(), .CLKOUT1B(), .CLKOUT2(), .CLKOUT2B(), .CLKOUT3(),
      .CLKOUT3B(), .CLKOUT4(), .CLKOUT5(), .CLKOUT6()
  );
  BUFGCE u_core (
      .I(core_clk),
      .CE(1'b1),
      .O(core_clk_o)
  );
  BUFGCE_DIV #(
      .BUFGCE_DIVIDE(2)
  ) u_kernel (
      .I(core_clk),
      .CE(1'b1),
      .CLR(1'b0),
      .O(kernel_clk_o)
  );

  // ---- the cycles that end with an edge of the kernel's clock ----
  logic kernel_q, core_q;
  always_ff @(posedge kernel_clk_o) kernel_q <= !kernel_q;
  always_ff @(posedge core_clk_o) core_q <= kernel_q;
  assign kernel_tick_o = kernel_q == core_q;

  // ---- lock ----
  shef_sync u_locked (
      .clk_i,
      .d_i(locked),
      .q_o(locked_o)
  );

  logic [$clog2(RetryCycles+1)-1:0] wait_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wait_q <= '0;
      mmcm_rst_q <= 1'b1;
    end else begin
      mmcm_rst_q <= !locked_o && wait_q < 16;
      wait_q <= locked_o || wait_q == ($clog2(RetryCycles+1))'(RetryCycles) ? '0 : wait_q + 1'b1;
    end
  end
endmodule
`default_nettype wire
