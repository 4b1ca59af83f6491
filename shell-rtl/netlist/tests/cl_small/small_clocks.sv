// Clocks of the small custom logic.
`default_nettype none
module small_clocks (
    input  wire logic clk_i,
    output logic      core_clk_o,
    output logic      kernel_clk_o,
    output logic      locked_o
);
  logic feedback, core_clk, locked, dclk, drp_en;
  assign dclk = 1'b0;
  assign drp_en = 1'b0;
  MMCME4_ADV u_mmcm (
      .CLKIN1(clk_i), .CLKIN2(1'b0), .CLKINSEL(1'b1), .CLKFBIN(feedback), .CLKFBOUT(feedback),
      .CLKOUT0(core_clk), .LOCKED(locked), .RST(1'b0), .PWRDWN(1'b0),
      .DCLK(dclk), .DEN(drp_en), .DWE(1'b0), .DADDR('0), .DI('0),
      .PSCLK(1'b0), .PSEN(1'b0), .PSINCDEC(1'b0), .CDDCREQ(1'b0)
  );
  BUFGCE u_core (.I(core_clk), .CE(1'b1), .O(core_clk_o));
  BUFGCE_DIV #(.BUFGCE_DIVIDE(2)) u_kernel (.I(core_clk), .CE(1'b1), .CLR(1'b0), .O(kernel_clk_o));
  shef_sync u_locked (.clk_i, .d_i(locked), .q_o(locked_o));
endmodule
`default_nettype wire
