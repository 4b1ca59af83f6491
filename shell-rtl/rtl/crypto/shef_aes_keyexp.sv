// AES key expansion, one round key a cycle (FIPS 197, 5.2).
//
// start_i (pulse, while idle) takes the key: byte 0 in key_i[255:248], AES-128 uses key_i[255:128].
// From the next cycle wr_en_o writes one round key a cycle: slots 0..14 for AES-256; slots 0, 5..14
// for AES-128, whose pipeline passes the stages between. done_o is high in the cycle of the last
// write. 15 or 11 cycles. The key registers are zero when idle.
`default_nettype none
module shef_aes_keyexp (
  input  wire         clk_i,
  input  wire         clear_i,
  input  wire         start_i,
  input  wire         key256_i,
  input  wire [255:0] key_i,
  output wire         wr_en_o,
  output wire [  3:0] wr_slot_o,
  output wire [127:0] wr_key_o,
  output wire         done_o
);
  import shef_aes_pkg::*;

  logic busy_q;
  logic key256_q;
  logic [3:0] slot_q;
  logic [7:0] rcon_q;
  logic [127:0] a_q;  // the round key of slot_q
  logic [127:0] b_q;  // AES-256: the one after it

  function automatic logic [127:0] next_key(input logic [127:0] old, input logic [31:0] t);
    logic [31:0] w0, w1, w2, w3;
    w0 = old[127:96] ^ t;
    w1 = old[95:64] ^ w0;
    w2 = old[63:32] ^ w1;
    w3 = old[31:0] ^ w2;
    return {w0, w1, w2, w3};
  endfunction

  wire [31:0] last_word = key256_q ? b_q[31:0] : a_q[31:0];
  // AES-256 computes the key two slots ahead: odd slots have no rotation and no constant
  wire rotate = !key256_q || !slot_q[0];
  wire [31:0] sub_in = rotate ? {last_word[23:0], last_word[31:24]} : last_word;
  wire [31:0] temp = sub_word(sub_in) ^ (rotate ? {rcon_q, 24'd0} : 32'd0);
  wire last = slot_q == 4'd14;

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      busy_q <= 1'b0;
      key256_q <= 1'b0;
      slot_q <= '0;
      rcon_q <= '0;
      a_q <= '0;
      b_q <= '0;
    end else if (start_i) begin
      busy_q <= 1'b1;
      key256_q <= key256_i;
      slot_q <= '0;
      rcon_q <= 8'h01;
      a_q <= key_i[255:128];
      b_q <= key256_i ? key_i[127:0] : '0;
    end else if (busy_q) begin
      if (last) begin
        busy_q <= 1'b0;
        a_q <= '0;
        b_q <= '0;
      end else begin
        slot_q <= (!key256_q && slot_q == 4'd0) ? 4'd5 : slot_q + 4'd1;
        if (rotate) rcon_q <= xtime(rcon_q);
        a_q <= key256_q ? b_q : next_key(a_q, temp);
        b_q <= key256_q ? next_key(a_q, temp) : '0;
      end
    end
  end

  assign wr_en_o = busy_q;
  assign wr_slot_o = slot_q;
  assign wr_key_o = a_q;
  assign done_o = busy_q && last;
endmodule
`default_nettype wire
