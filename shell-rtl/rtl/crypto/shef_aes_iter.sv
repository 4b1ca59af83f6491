// AES-128/256 forward cipher (FIPS 197) with four S-boxes, one column per cycle, and a stored key
// schedule: small instead of fast, for the few blocks of the control plane.
//
// Key: start_key_i (one cycle while ready_o) with key256_i; then the 16 or 32 key bytes on
// key_valid_i/key_ready_o/key_data_i. The schedule takes one cycle per word, 44 or 60 in all;
// ready_o is high again when it is stored.
// Block: start_block_i (one cycle while ready_o) with block_i (byte 0 in [127:120]); 44 or 60
// cycles later ready_o is high and block_o holds the result until the next start.
// wipe_i (level) clears every register at once and the schedule memory in 64 cycles; wiped_o (level
// while wipe_i) reports that both are done. Reset does the same; ready_o is low until then.
`default_nettype none
module shef_aes_iter
  import shef_aes_pkg::mix_column, shef_aes_pkg::sub_word, shef_aes_pkg::xtime;
(
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic wipe_i,
    output logic wiped_o,
    output logic ready_o,
    input wire logic start_key_i,
    input wire logic key256_i,
    input wire logic key_valid_i,
    output logic key_ready_o,
    input wire logic [7:0] key_data_i,
    input wire logic start_block_i,
    input wire logic [127:0] block_i,
    output logic [127:0] block_o
);

  typedef enum logic [2:0] {
    S_SCRUB,
    S_IDLE,
    S_KEY_IN,
    S_EXPAND,
    S_ROUND
  } state_e;

  state_e state_q;
  logic scrubbed_q;
  logic key256_q;
  // schedule word being written (key) or read (rounds); also the scrub address
  logic [5:0] word_q;
  logic [31:0] schedule_q[64];
  logic [31:0] last_q;         // the schedule word before word_q; key bytes are assembled here
  logic [1:0] byte_q;
  logic [2:0] phase_q;         // word_q modulo the key length in words
  logic [7:0] rcon_q;
  logic [127:0] state_in_q;    // rotates by a column per cycle
  logic [95:0] state_out_q;    // finished columns of this round

  assign ready_o = state_q == S_IDLE;
  assign wiped_o = wipe_i && scrubbed_q;
  assign key_ready_o = state_q == S_KEY_IN;
  assign block_o = state_in_q;

  logic [5:0] first_expanded, last_word;
  assign first_expanded = key256_q ? 6'd8 : 6'd4;
  assign last_word = key256_q ? 6'd59 : 6'd43;

  logic first_round, final_round;
  assign first_round = word_q[5:2] == 4'd0;
  assign final_round = word_q[5:2] == last_word[5:2];

  // one S-box row for both uses
  logic [31:0] sbox_in, sbox_out, old_word, expanded, column;
  logic expand_sub, expand_rot;
  assign expand_rot = phase_q == 3'd0;
  assign expand_sub = expand_rot || (key256_q && phase_q == 3'd4);
  always_comb begin
    sbox_in = 32'd0;
    if (state_q == S_EXPAND) begin
      if (expand_sub) sbox_in = expand_rot ? {last_q[23:0], last_q[31:24]} : last_q;
    end else if (state_q == S_ROUND) begin
      sbox_in = {state_in_q[127:120], state_in_q[87:80], state_in_q[47:40], state_in_q[7:0]};
    end
  end

  logic [5:0] read_address;
  assign read_address = (state_q == S_EXPAND) ? word_q - first_expanded : word_q;
  always_comb begin
    sbox_out = '0;
    old_word = '0;
    expanded = '0;
    column = '0;
    if (state_q == S_EXPAND || state_q == S_ROUND) begin
      sbox_out = sub_word(sbox_in);
      old_word = schedule_q[read_address];
      expanded = old_word ^ (expand_sub ? sbox_out : last_q) ^
          (expand_rot ? {rcon_q, 24'd0} : 32'd0);
      column = state_in_q[127:96] ^ old_word;
      if (!first_round) column = (final_round ? sbox_out : mix_column(sbox_out)) ^ old_word;
    end
  end

  logic clear;
  assign clear = !rst_ni || (wipe_i && !scrubbed_q && state_q != S_SCRUB);

  // Rotation brings the next column to the top, so ShiftRows is a fixed diagonal; the fourth column
  // ends a round.
  always_ff @(posedge clk_i) begin
    if (clear) state_in_q <= '0;
    else if (state_q == S_IDLE && !wipe_i && !start_key_i && start_block_i) state_in_q <= block_i;
    else if (state_q == S_ROUND)
      state_in_q <= (word_q[1:0] == 2'd3) ? {state_out_q, column}
          : {state_in_q[95:0], state_in_q[127:96]};
  end
  always_ff @(posedge clk_i) begin
    if (clear) state_out_q <= '0;
    else if (state_q == S_ROUND)
      state_out_q <= (word_q == last_word) ? '0 : {state_out_q[63:0], column};
  end

  logic write_enable;
  logic [31:0] write_data;
  assign write_enable = state_q == S_SCRUB || state_q == S_EXPAND ||
      (state_q == S_KEY_IN && key_valid_i && byte_q == 2'd3);
  always_comb begin
    write_data = 32'd0;
    if (state_q == S_KEY_IN) write_data = {last_q[23:0], key_data_i};
    else if (state_q == S_EXPAND) write_data = expanded;
  end
  always_ff @(posedge clk_i) if (write_enable) schedule_q[word_q] <= write_data;

  always_ff @(posedge clk_i) begin
    if (clear) begin
      state_q <= S_SCRUB;
      scrubbed_q <= 1'b0;
      key256_q <= 1'b0;
      word_q <= '0;
      last_q <= '0;
      byte_q <= '0;
      phase_q <= '0;
      rcon_q <= '0;
    end else begin
      if (!wipe_i) scrubbed_q <= 1'b0;
      unique case (state_q)
        S_SCRUB: begin
          word_q <= word_q + 6'd1;
          if (word_q == 6'd63) begin
            state_q <= S_IDLE;
            scrubbed_q <= wipe_i;
          end
        end
        S_IDLE:
        if (!wipe_i) begin
          word_q <= '0;
          byte_q <= '0;
          if (start_key_i) begin
            state_q <= S_KEY_IN;
            key256_q <= key256_i;
          end else if (start_block_i) begin
            state_q <= S_ROUND;
          end
        end
        S_KEY_IN:
        if (key_valid_i) begin
          last_q <= {last_q[23:0], key_data_i};
          byte_q <= byte_q + 2'd1;
          if (byte_q == 2'd3) begin
            word_q <= word_q + 6'd1;
            if (word_q == first_expanded - 6'd1) begin
              state_q <= S_EXPAND;
              phase_q <= '0;
              rcon_q  <= 8'h01;
            end
          end
        end
        S_EXPAND: begin
          last_q <= expanded;
          word_q <= word_q + 6'd1;
          phase_q <= (phase_q == (key256_q ? 3'd7 : 3'd3)) ? 3'd0 : phase_q + 3'd1;
          if (expand_rot) rcon_q <= xtime(rcon_q);
          if (word_q == last_word) begin
            state_q <= S_IDLE;
            last_q  <= '0;
          end
        end
        S_ROUND: begin
          word_q <= word_q + 6'd1;
          if (word_q == last_word) state_q <= S_IDLE;
        end
        default: state_q <= S_IDLE;
      endcase
    end
  end

`ifndef SYNTHESIS
  logic was_scrub_q;
  always_ff @(posedge clk_i) begin
    was_scrub_q <= rst_ni && state_q == S_SCRUB;
    if (rst_ni && was_scrub_q && state_q != S_SCRUB) begin
      for (int i = 0; i < 64; i++)
        assert (schedule_q[i] == '0) else $error("word %0d survives a wipe", i);
    end
  end
`endif

endmodule
`default_nettype wire
