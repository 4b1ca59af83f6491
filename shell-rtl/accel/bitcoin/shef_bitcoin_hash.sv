// Double SHA-256 of a header whose first 64 bytes are hashed already: one header a cycle.
//
// hash_o belongs to the block of 130 cycles with en_i before, and is as Bitcoin displays it: the
// last byte of the digest on top. first_o is the digest of the block alone, 65 cycles after it.
// state_i is constant until then.
`default_nettype none
module shef_bitcoin_hash
  import shef_bitcoin_pkg::*;
(
    input  wire         clk_i,
    input  wire         en_i,
    input  wire [255:0] state_i,  // before the block
    input  wire [511:0] block_i,
    output wire [255:0] first_o,
    output wire [255:0] hash_o
);
  logic [255:0] first_q, second_q;
  wire [255:0] first, second;

  shef_bitcoin_sha u_first (
    .clk_i,
    .en_i,
    .state_i,
    .block_i,
    .state_o(first)
  );
  // The digest as a message: 256 bits, a one, zeros and the length.
  shef_bitcoin_sha u_second (
    .clk_i,
    .en_i,
    .state_i(SHA_START),
    .block_i({first_q, 32'h8000_0000, 192'd0, 32'd256}),
    .state_o(second)
  );
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      first_q <= add(first, state_i);
      second_q <= add(second, SHA_START);
    end
  end
  assign first_o = first_q;
  for (genvar i = 0; i < 32; i++) begin : g_byte
    assign hash_o[8*i+:8] = second_q[8*(31-i)+:8];
  end
endmodule
`default_nettype wire
