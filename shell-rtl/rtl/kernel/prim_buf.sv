// A wire, as Ibex names it: its sources leave this cell to who builds with them.
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
