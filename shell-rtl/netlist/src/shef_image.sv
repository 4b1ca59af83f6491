// The identity of an image, without a secret: it stands in for the one that `shef cloud new` writes.
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
  assign uds_o = '0;
  assign root_o = 2'd3;
  assign target_o = '0;
  assign shell_o = '0;
  assign shell_flags_o = '0;
  assign debug_o = 1'b0;
  assign design_o = '0;
endmodule
`default_nettype wire
