// Address sweep that zeroes an accelerator's memories between sessions.
//
// While clear_i is high addr_o goes from 0 to Words - 1, one a cycle: write zero at addr_o into
// each memory (into a smaller one at its low bits). cleared_o rises when all were written and falls
// with clear_i. Works while the accelerator is held in reset.
`default_nettype none
module shef_sweep #(
    parameter int unsigned Words = 64,
    localparam int unsigned AddrW = Words > 1 ? $clog2(Words) : 1
) (
    input  wire logic        clk_i,
    input  wire logic        clear_i,
    output logic [AddrW-1:0] addr_o,
    output logic             cleared_o
);
  logic [AddrW-1:0] addr_q;
  logic all_q;

  assign addr_o = addr_q;
  assign cleared_o = clear_i && all_q;

  always_ff @(posedge clk_i) begin
    if (!clear_i) begin
      addr_q <= '0;
      all_q <= 1'b0;
    end else if (addr_q == AddrW'(Words - 1)) all_q <= 1'b1;
    else addr_q <= addr_q + 1'b1;
  end
endmodule
`default_nettype wire
