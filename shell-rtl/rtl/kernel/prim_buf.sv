// A buffer cell: a wire. Ibex instantiates it by this name and leaves its implementation to the
// user.
`default_nettype none
module prim_buf #(
    parameter int unsigned Width = 1
) (
    input  wire logic [Width-1:0] in_i,
    output logic [Width-1:0]      out_o
);

  assign out_o = in_i;

endmodule
`default_nettype wire
