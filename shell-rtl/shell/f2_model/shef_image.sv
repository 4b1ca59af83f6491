// Identity of an image in simulation: from the ports of the top.
`default_nettype none
module shef_image (
    output logic [255:0] uds_o,
    output logic [1:0]   root_o,
    output logic [255:0] target_o,
    output logic [255:0] shell_o,
    output logic [2:0]   shell_flags_o,
    output logic         debug_o,
    output logic [255:0] design_o
);
  assign uds_o = $root.shef_f2_top.uds_i;
  assign root_o = $root.shef_f2_top.root_i;
  assign target_o = $root.shef_f2_top.target_i;
  assign shell_o = $root.shef_f2_top.shell_i;
  assign shell_flags_o = $root.shef_f2_top.shell_flags_i;
  assign debug_o = $root.shef_f2_top.debug_i;
  assign design_o = $root.shef_f2_top.design_i;
endmodule
`default_nettype wire
