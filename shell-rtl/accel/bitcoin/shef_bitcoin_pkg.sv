// SHA-256 (FIPS 180-4) as functions: a round, a step of the message schedule, the final addition.
//
// A state is {a, b, c, d, e, f, g, h} and a block is {W0, .. W15}, first word on top.
`default_nettype none
package shef_bitcoin_pkg;
  localparam logic [255:0] SHA_START = {
    32'h6a09e667, 32'hbb67ae85, 32'h3c6ef372, 32'ha54ff53a,
    32'h510e527f, 32'h9b05688c, 32'h1f83d9ab, 32'h5be0cd19
  };

  // Constants of the rounds: that of round 0 is on top.
  localparam logic [63:0][31:0] ROUND = {
    32'h428a2f98, 32'h71374491, 32'hb5c0fbcf, 32'he9b5dba5,
    32'h3956c25b, 32'h59f111f1, 32'h923f82a4, 32'hab1c5ed5,
    32'hd807aa98, 32'h12835b01, 32'h243185be, 32'h550c7dc3,
    32'h72be5d74, 32'h80deb1fe, 32'h9bdc06a7, 32'hc19bf174,
    32'he49b69c1, 32'hefbe4786, 32'h0fc19dc6, 32'h240ca1cc,
    32'h2de92c6f, 32'h4a7484aa, 32'h5cb0a9dc, 32'h76f988da,
    32'h983e5152, 32'ha831c66d, 32'hb00327c8, 32'hbf597fc7,
    32'hc6e00bf3, 32'hd5a79147, 32'h06ca6351, 32'h14292967,
    32'h27b70a85, 32'h2e1b2138, 32'h4d2c6dfc, 32'h53380d13,
    32'h650a7354, 32'h766a0abb, 32'h81c2c92e, 32'h92722c85,
    32'ha2bfe8a1, 32'ha81a664b, 32'hc24b8b70, 32'hc76c51a3,
    32'hd192e819, 32'hd6990624, 32'hf40e3585, 32'h106aa070,
    32'h19a4c116, 32'h1e376c08, 32'h2748774c, 32'h34b0bcb5,
    32'h391c0cb3, 32'h4ed8aa4a, 32'h5b9cca4f, 32'h682e6ff3,
    32'h748f82ee, 32'h78a5636f, 32'h84c87814, 32'h8cc70208,
    32'h90befffa, 32'ha4506ceb, 32'hbef9a3f7, 32'hc67178f2
  };

  function automatic logic [31:0] rotate(input logic [31:0] x, input int unsigned n);
    return x >> n | x << (32 - n);
  endfunction

  // The state after a round with message word w and constant k.
  function automatic logic [255:0] next_state(input logic [255:0] state, input logic [31:0] w,
                                              input logic [31:0] k);
    logic [31:0] a, b, c, d, e, f, g, h, t1, t2;
    {a, b, c, d, e, f, g, h} = state;
    t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k + w;
    t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    return {t1 + t2, a, b, c, d + t1, e, f, g};
  endfunction

  // The sixteen message words from the next one on.
  function automatic logic [511:0] next_words(input logic [511:0] words);
    logic [31:0] w0, w1, w9, w14;
    w0 = words[511:480];
    w1 = words[479:448];
    w9 = words[223:192];
    w14 = words[63:32];
    return {words[479:0], w0 + (rotate(w1, 7) ^ rotate(w1, 18) ^ w1 >> 3) + w9 +
        (rotate(w14, 17) ^ rotate(w14, 19) ^ w14 >> 10)};
  endfunction

  // Word by word: the digest is the state after 64 rounds plus the state before them.
  function automatic logic [255:0] add(input logic [255:0] x, input logic [255:0] y);
    logic [255:0] z;
    for (int i = 0; i < 8; i++) z[32*i+:32] = x[32*i+:32] + y[32*i+:32];
    return z;
  endfunction

  function automatic logic [31:0] swap(input logic [31:0] x);
    return {x[7:0], x[15:8], x[23:16], x[31:24]};
  endfunction
endpackage
`default_nettype wire
