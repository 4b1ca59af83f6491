// Pseudo-random words from a key: ChaCha with 8 rounds, 256-bit key, 64-bit counter, nonce 0.
//
// start_i loads the key and starts at block 0. word port: valid/ready, the keystream in order, as
// little-endian words; 16 words every 34 cycles. A cycle computes half of a round, four quarter
// rounds side by side. The best known attack on ChaCha reaches 7 of 20 rounds, at about 2^238.
`default_nettype none
module shef_oram_random (
  input  wire              clk_i,
  input  wire              rst_ni,
  input  wire              start_i,
  input  wire [7:0][31:0]  key_i,
  output wire              word_valid_o,
  input  wire              word_ready_i,
  output wire      [31:0]  word_o
);
  localparam int unsigned HALVES = 16;  // of 8 rounds
  typedef logic [15:0][31:0] state_t;

  logic [7:0][31:0] key_q;
  logic [63:0] block_q;
  logic running_q;
  logic [4:0] half_q;
  logic [4:0] words_q;     // left in out_q
  state_t state_q, out_q;
  wire state_t first = {64'd0, block_q, key_q, 32'h6b20_6574, 32'h7962_2d32, 32'h3320_646e,
      32'h6170_7865};

  function automatic logic [31:0] rotate(input logic [31:0] x, input int unsigned n);
    return (x << n) | (x >> (32 - n));
  endfunction

  // Half of a round: columns in even rounds, diagonals in odd ones.
  state_t next;
  wire [1:0] step = half_q[1:0] - 2'd1;
  always_comb begin
    next = state_q;
    for (int unsigned i = 0; i < 4; i++) begin
      automatic logic [3:0] turn = step[1] ? 4'd1 : 4'd0;
      automatic logic [3:0] ia = 4'(i);
      automatic logic [3:0] ib = {2'd1, 2'(4'(i) + turn)};
      automatic logic [3:0] ic = {2'd2, 2'(4'(i) + 4'd2 * turn)};
      automatic logic [3:0] id = {2'd3, 2'(4'(i) + 4'd3 * turn)};
      automatic logic [31:0] a = state_q[ia];
      automatic logic [31:0] b = state_q[ib];
      automatic logic [31:0] c = state_q[ic];
      automatic logic [31:0] d = state_q[id];
      a += b;
      d = step[0] ? rotate(d ^ a, 8) : rotate(d ^ a, 16);
      c += d;
      b = step[0] ? rotate(b ^ c, 7) : rotate(b ^ c, 12);
      next[ia] = a;
      next[ib] = b;
      next[ic] = c;
      next[id] = d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      key_q <= '0;
      block_q <= '0;
      {running_q, half_q, words_q} <= '0;
      {state_q, out_q} <= '0;
    end else if (start_i) begin
      key_q <= key_i;
      block_q <= '0;
      running_q <= 1'b1;
      {half_q, words_q} <= '0;
    end else if (running_q) begin
      if (word_valid_o && word_ready_i) begin
        words_q <= words_q - 5'd1;
        out_q <= out_q >> 32;
      end
      if (words_q == '0) begin
        half_q <= half_q + 5'd1;
        state_q <= half_q == '0 ? first : next;
        if (half_q == 5'(HALVES + 1)) begin
          for (int i = 0; i < 16; i++) out_q[i] <= state_q[i] + first[i];
          block_q <= block_q + 64'd1;
          words_q <= 5'd16;
          half_q <= '0;
        end
      end
    end
  end

  assign word_valid_o = words_q != '0;
  assign word_o = out_q[0];
endmodule
`default_nettype wire
