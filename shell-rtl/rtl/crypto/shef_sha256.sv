// SHA-256 compression (FIPS 180-4) on a stream of bytes, one round per cycle. No padding: the
// caller supplies whole blocks.
//
// init_i (one cycle, only while ready_o, no byte in the same cycle) sets the hash state to its
// initial value; with drop_i it also drops a partial block.
// valid_i/ready_o/data_i: message bytes. Every 64th byte starts a compression; ready_o is low for
// its 65 cycles, so a block takes 129 cycles. digest_o (byte 0 in [255:248]) is valid while
// ready_o.
// wipe_i clears every register and has precedence.
`default_nettype none
module shef_sha256 (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic wipe_i,
    input wire logic init_i,
    input wire logic drop_i,
    input wire logic valid_i,
    output logic ready_o,
    input wire logic [7:0] data_i,
    output logic [255:0] digest_o
);

  localparam logic [31:0] K[64] = '{
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
      32'h748f82ee, 32'h78a5636f, 32'h84c87814, 32'h8cc70208, 32'h90befffa, 32'ha4506ceb,
      32'hbef9a3f7, 32'hc67178f2
  };

  localparam logic [255:0] INITIAL = {
      32'h6a09e667, 32'hbb67ae85, 32'h3c6ef372, 32'ha54ff53a,
      32'h510e527f, 32'h9b05688c, 32'h1f83d9ab, 32'h5be0cd19
  };

  function automatic logic [31:0] rotr(input logic [31:0] x, input int unsigned n);
    return (x >> n) | (x << (32 - n));
  endfunction

  logic [255:0] hash_q;     // H0 in the top word
  logic [255:0] work_q;     // a in the top word; equal to hash_q between compressions
  logic [511:0] sched_q;    // W[t] in the top word
  logic [31:0] hkw_q;       // h + K[t] + W[t] of the next round, computed in the cycle before it
  logic [23:0] partial_q;   // bytes of the word being assembled
  logic [5:0] count_q;      // bytes of the block received
  logic [6:0] round_q;
  logic busy_q;

  assign ready_o  = !busy_q;
  assign digest_o = hash_q;

  // W[t+16] of W[t], W[t+1], W[t+9], W[t+14]
  function automatic logic [31:0] next_word(input logic [31:0] w0, input logic [31:0] w1,
      input logic [31:0] w9,
                                            input logic [31:0] w14);
    return (rotr(w14, 17) ^ rotr(w14, 19) ^ (w14 >> 10)) + w9 +
        (rotr(w1, 7) ^ rotr(w1, 18) ^ (w1 >> 3)) + w0;
  endfunction

  // v: a to g; hkw: h + K[t] + W[t]
  function automatic logic [255:0] next_work(input logic [223:0] v, input logic [31:0] hkw);
    logic [31:0] a, b, c, d, e, f, g, t1, t2;
    {a, b, c, d, e, f, g} = v;
    t1 = hkw + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g));
    t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    return {t1 + t2, a, b, c, d + t1, e, f, g};
  endfunction

  function automatic logic [255:0] add_words(input logic [255:0] x, input logic [255:0] y);
    logic [255:0] z;
    for (int i = 0; i < 8; i++) z[32*i+:32] = x[32*i+:32] + y[32*i+:32];
    return z;
  endfunction

  logic clear, start, take, round, last;
  assign clear = !rst_ni || wipe_i;
  assign start = !busy_q && init_i;
  assign take = !busy_q && !init_i && valid_i;
  assign round = busy_q && !round_q[6];
  assign last = busy_q && round_q[6];

  always_ff @(posedge clk_i) begin
    if (clear) begin
      partial_q <= '0;
      count_q   <= '0;
      round_q   <= '0;
      busy_q    <= 1'b0;
    end else if (busy_q) begin
      round_q <= last ? 7'd0 : round_q + 7'd1;
      busy_q  <= !last;
    end else if (start) begin
      if (drop_i) count_q <= '0;
    end else if (take) begin
      count_q   <= count_q + 6'd1;
      partial_q <= {partial_q[15:0], data_i};
      busy_q    <= count_q == 6'd63;
    end
  end

  // A separate block for each wide register: simulators then need no copies of them.
  always_ff @(posedge clk_i) begin
    if (clear) work_q <= '0;
    else if (start) work_q <= INITIAL;
    else if (round) work_q <= next_work(work_q[255:32], hkw_q);
    else if (last) work_q <= add_words(hash_q, work_q);
  end

  // h is g of the round before; W[t] is at the top only in its own round
  logic [31:0] next_h, next_k;
  assign next_h = round ? work_q[63:32] : work_q[31:0];
  assign next_k = round ? K[round_q[5:0]+6'd1] : K[0];
  always_ff @(posedge clk_i) begin
    if (clear) hkw_q <= '0;
    else if (round || take) hkw_q <= next_h + next_k + sched_q[479:448];
  end

  always_ff @(posedge clk_i) begin
    if (clear) hash_q <= '0;
    else if (start) hash_q <= INITIAL;
    else if (last) hash_q <= add_words(hash_q, work_q);
  end

  always_ff @(posedge clk_i) begin
    if (clear) sched_q <= '0;
    else if (round)
      sched_q <= {sched_q[479:0], next_word(sched_q[511:480], sched_q[479:448], sched_q[223:192],
          sched_q[63:32])};
    else if (take && count_q[1:0] == 2'd3) sched_q <= {sched_q[479:0], partial_q, data_i};
  end

endmodule
`default_nettype wire
