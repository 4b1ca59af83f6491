// One round of SHA-256 with its step of the message schedule: a stage of a pipeline.
//
// The outputs belong to the inputs of the last cycle with en_i. No reset: see shef_bitcoin_sha.
`default_nettype none
module shef_bitcoin_round
  import shef_bitcoin_pkg::*;
(
    input  wire          clk_i,
    input  wire          en_i,
    input  wire  [ 31:0] k_i,      // constant of the round
    input  wire  [255:0] state_i,
    input  wire  [511:0] words_i,  // sixteen message words, that of this round on top
    output logic [255:0] state_o,
    output logic [511:0] words_o
);
  // One function for all stages: it stays in the processor's cache, and a simulation takes 0.6 of
  // the time.
  /* verilator no_inline_module */
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      state_o <= next_state(state_i, words_i[511:480], k_i);
      words_o <= next_words(words_i);
    end
  end
endmodule
`default_nettype wire
