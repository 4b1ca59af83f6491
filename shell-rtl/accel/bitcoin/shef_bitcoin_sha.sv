// The 64 rounds of SHA-256 as a pipeline of 64 stages: one block a cycle.
//
// state_o belongs to the state and block of 64 cycles with en_i before; the caller adds the state
// before the rounds. While en_i is low nothing moves. The stages have no reset: 64 cycles of
// constants leave nothing of earlier blocks.
`default_nettype none
module shef_bitcoin_sha
  import shef_bitcoin_pkg::*;
(
    input  wire         clk_i,
    input  wire         en_i,
    input  wire [255:0] state_i,
    input  wire [511:0] block_i,
    output wire [255:0] state_o
);
  wire [64:0][255:0] state;
  wire [64:0][511:0] words;
  assign state[0] = state_i;
  assign words[0] = block_i;
  assign state_o = state[64];

  for (genvar i = 0; i < 64; i++) begin : g_round
    shef_bitcoin_round u_round (
      .clk_i,
      .en_i,
      .k_i(ROUND[63-i]),
      .state_i(state[i]),
      .words_i(words[i]),
      .state_o(state[i+1]),
      .words_o(words[i+1])
    );
  end
  wire unused = &{1'b0, words[64]};
endmodule
`default_nettype wire
