// AES-128/256 forward cipher (FIPS 197) with four S-boxes, one column per cycle, and a stored key schedule: small
// instead of fast, for the few blocks of the control plane.
//
// Key: start_key_i (one cycle while ready_o) with key256_i; then the 16 or 32 key bytes on key_valid_i/key_ready_o/
// key_data_i. The schedule takes one cycle per word, 44 or 60 in all; ready_o is high again when it is stored.
// Block: start_block_i (one cycle while ready_o) with block_i (byte 0 in [127:120]); 44 or 60 cycles later ready_o is
// high and block_o holds the result until the next start.
// wipe_i (level) clears every register at once and the schedule memory in 64 cycles; wiped_o (level while wipe_i)
// says that both are done. Reset does the same; ready_o is low until then.
`default_nettype none
module shef_aes_iter (
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

  localparam logic [7:0] SBOX[256] = '{
      8'h63, 8'h7c, 8'h77, 8'h7b, 8'hf2, 8'h6b, 8'h6f, 8'hc5, 8'h30, 8'h01, 8'h67, 8'h2b, 8'hfe, 8'hd7, 8'hab, 8'h76,
      8'hca, 8'h82, 8'hc9, 8'h7d, 8'hfa, 8'h59, 8'h47, 8'hf0, 8'had, 8'hd4, 8'ha2, 8'haf, 8'h9c, 8'ha4, 8'h72, 8'hc0,
      8'hb7, 8'hfd, 8'h93, 8'h26, 8'h36, 8'h3f, 8'hf7, 8'hcc, 8'h34, 8'ha5, 8'he5, 8'hf1, 8'h71, 8'hd8, 8'h31, 8'h15,
      8'h04, 8'hc7, 8'h23, 8'hc3, 8'h18, 8'h96, 8'h05, 8'h9a, 8'h07, 8'h12, 8'h80, 8'he2, 8'heb, 8'h27, 8'hb2, 8'h75,
      8'h09, 8'h83, 8'h2c, 8'h1a, 8'h1b, 8'h6e, 8'h5a, 8'ha0, 8'h52, 8'h3b, 8'hd6, 8'hb3, 8'h29, 8'he3, 8'h2f, 8'h84,
      8'h53, 8'hd1, 8'h00, 8'hed, 8'h20, 8'hfc, 8'hb1, 8'h5b, 8'h6a, 8'hcb, 8'hbe, 8'h39, 8'h4a, 8'h4c, 8'h58, 8'hcf,
      8'hd0, 8'hef, 8'haa, 8'hfb, 8'h43, 8'h4d, 8'h33, 8'h85, 8'h45, 8'hf9, 8'h02, 8'h7f, 8'h50, 8'h3c, 8'h9f, 8'ha8,
      8'h51, 8'ha3, 8'h40, 8'h8f, 8'h92, 8'h9d, 8'h38, 8'hf5, 8'hbc, 8'hb6, 8'hda, 8'h21, 8'h10, 8'hff, 8'hf3, 8'hd2,
      8'hcd, 8'h0c, 8'h13, 8'hec, 8'h5f, 8'h97, 8'h44, 8'h17, 8'hc4, 8'ha7, 8'h7e, 8'h3d, 8'h64, 8'h5d, 8'h19, 8'h73,
      8'h60, 8'h81, 8'h4f, 8'hdc, 8'h22, 8'h2a, 8'h90, 8'h88, 8'h46, 8'hee, 8'hb8, 8'h14, 8'hde, 8'h5e, 8'h0b, 8'hdb,
      8'he0, 8'h32, 8'h3a, 8'h0a, 8'h49, 8'h06, 8'h24, 8'h5c, 8'hc2, 8'hd3, 8'hac, 8'h62, 8'h91, 8'h95, 8'he4, 8'h79,
      8'he7, 8'hc8, 8'h37, 8'h6d, 8'h8d, 8'hd5, 8'h4e, 8'ha9, 8'h6c, 8'h56, 8'hf4, 8'hea, 8'h65, 8'h7a, 8'hae, 8'h08,
      8'hba, 8'h78, 8'h25, 8'h2e, 8'h1c, 8'ha6, 8'hb4, 8'hc6, 8'he8, 8'hdd, 8'h74, 8'h1f, 8'h4b, 8'hbd, 8'h8b, 8'h8a,
      8'h70, 8'h3e, 8'hb5, 8'h66, 8'h48, 8'h03, 8'hf6, 8'h0e, 8'h61, 8'h35, 8'h57, 8'hb9, 8'h86, 8'hc1, 8'h1d, 8'h9e,
      8'he1, 8'hf8, 8'h98, 8'h11, 8'h69, 8'hd9, 8'h8e, 8'h94, 8'h9b, 8'h1e, 8'h87, 8'he9, 8'hce, 8'h55, 8'h28, 8'hdf,
      8'h8c, 8'ha1, 8'h89, 8'h0d, 8'hbf, 8'he6, 8'h42, 8'h68, 8'h41, 8'h99, 8'h2d, 8'h0f, 8'hb0, 8'h54, 8'hbb, 8'h16
  };

  function automatic logic [31:0] sub_word(input logic [31:0] w);
    return {SBOX[w[31:24]], SBOX[w[23:16]], SBOX[w[15:8]], SBOX[w[7:0]]};
  endfunction

  function automatic logic [7:0] xtime(input logic [7:0] x);
    return {x[6:0], 1'b0} ^ (x[7] ? 8'h1b : 8'h00);
  endfunction

  function automatic logic [31:0] mix_column(input logic [31:0] w);
    logic [7:0] a, b, c, d, all;
    {a, b, c, d} = w;
    all = a ^ b ^ c ^ d;
    return {a ^ all ^ xtime(a ^ b), b ^ all ^ xtime(b ^ c), c ^ all ^ xtime(c ^ d), d ^ all ^ xtime(d ^ a)};
  endfunction

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
  logic [5:0] word_q;          // schedule word: being written (key) or read (rounds), also the scrub address
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
      expanded = old_word ^ (expand_sub ? sbox_out : last_q) ^ (expand_rot ? {rcon_q, 24'd0} : 32'd0);
      column = state_in_q[127:96] ^ old_word;
      if (!first_round) column = (final_round ? sbox_out : mix_column(sbox_out)) ^ old_word;
    end
  end

  logic clear;
  assign clear = !rst_ni || (wipe_i && !scrubbed_q && state_q != S_SCRUB);

  // Rotation brings the next column to the top, so ShiftRows is a fixed diagonal; the fourth column ends a round.
  always_ff @(posedge clk_i) begin
    if (clear) state_in_q <= '0;
    else if (state_q == S_IDLE && !wipe_i && !start_key_i && start_block_i) state_in_q <= block_i;
    else if (state_q == S_ROUND)
      state_in_q <= (word_q[1:0] == 2'd3) ? {state_out_q, column} : {state_in_q[95:0], state_in_q[127:96]};
  end
  always_ff @(posedge clk_i) begin
    if (clear) state_out_q <= '0;
    else if (state_q == S_ROUND) state_out_q <= (word_q == last_word) ? '0 : {state_out_q[63:0], column};
  end

  logic write_enable;
  logic [31:0] write_data;
  assign write_enable = state_q == S_SCRUB || state_q == S_EXPAND || (state_q == S_KEY_IN && key_valid_i && byte_q == 2'd3);
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
      for (int i = 0; i < 64; i++) assert (schedule_q[i] == '0) else $error("word %0d survives a wipe", i);
    end
  end
`endif

endmodule
`default_nettype wire
