// Merges the refusals of reads and writes into one stream.
//
// Handshake: two inputs valid/ready; the output is a pulse a cycle, registered. Reads and writes
// take turns.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_refusals
  import shef_pkg::*;
(
    input  wire              clk_i,
    input  wire              rst_ni,
    input  wire  [1:0]       valid_i,
    output logic [1:0]       ready_o,
    input  wire refusal_t [1:0] refusal_i,
    output logic             valid_o,
    output refusal_t         refusal_o
);
  logic [1:0] head_valid, take;
  refusal_t [1:0] head;
  logic side, turn_q;

  for (genvar d = 0; d < 2; d++) begin : g_side
    shef_fifo #(.W($bits(refusal_t)), .Depth(4)) u_fifo (
        .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
        .in_valid_i(valid_i[d]), .in_ready_o(ready_o[d]), .in_data_i(refusal_i[d]),
        .out_valid_o(head_valid[d]), .out_ready_i(take[d]), .out_data_o(head[d]), .count_o()
    );
  end
  assign side = (head_valid == 2'b11) ? turn_q : head_valid[1];
  assign take = (head_valid == '0) ? 2'b00 : (2'b01 << side);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= 1'b0;
      valid_o <= 1'b0;
      refusal_o <= '0;
    end else begin
      valid_o <= head_valid != '0;
      if (head_valid != '0) begin
        refusal_o <= head[side];
        turn_q <= !side;
      end
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
