// Noise in simulation: from the ports of the top, on the kernel's clock. As in the image, it was
// never measured.
`default_nettype none
/* verilator lint_off UNUSEDSIGNAL */
module shef_f2_noise (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic kernel_clk_i,
    output logic      valid_o,
    output logic      bit_o,
    output logic      seeded_o,
    output logic      unmeasured_o
);
  assign valid_o = $root.shef_f2_top.noise_valid_i;
  assign bit_o = $root.shef_f2_top.noise_bit_i;
  assign seeded_o = $root.shef_f2_top.noise_seeded_i;
  assign unmeasured_o = 1'b1;
endmodule
`default_nettype wire
