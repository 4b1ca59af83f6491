// A step of the small core.
`default_nettype none
module small_step (
    input  wire logic [31:0] value_i,
    output logic [31:0]      value_o
);
  assign value_o = value_i ^ 32'h5555_5555;
endmodule
`default_nettype wire
