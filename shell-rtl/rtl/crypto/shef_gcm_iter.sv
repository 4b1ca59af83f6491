// AES-128/256-GCM (SP 800-38D, 96-bit IV) on a stream of bytes, small and slow, for the control
// plane.
//
// Commands (cmd_valid_i/cmd_ready_o; cmd_ready_o high = idle, the last command is complete):
//   0 INIT    len_i[0]: 256-bit key, len_i[1]: decrypt; 16 or 32 key bytes, then 12 IV bytes follow
//             on `in`
//   1 AAD     len_i bytes of additional data follow on `in` (0 allowed, repeatable, all before
//             DATA)
//   2 DATA    len_i bytes follow on `in`, and as many return on `out` (0 allowed, repeatable)
//   3 FINAL   the 16 bytes of the computed tag on `out`; the caller compares them, also in
//             decryption
// Any other command completes at once without effect. `in` and `out` are valid/ready byte streams
// without a combinational path between them. The unit buffers at most one byte, so DATA needs both
// served. Below 2^32 bytes in total, of AAD and of data each.
// Cycles: INIT about 180 (256-bit key); AAD 1 per byte; DATA 2 per byte and 64 per 16 bytes; FINAL
// about 100.
// wipe_i (level) clears every register and, in 64 cycles, the key schedule; cmd_ready_o while
// wipe_i is high reports completion, and the unit accepts no command. Reset does the same. ok_o is
// always 1.
`default_nettype none
module shef_gcm_iter (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic wipe_i,
    input wire logic cmd_valid_i,
    output logic cmd_ready_o,
    input wire logic [3:0] cmd_i,
    input wire logic [15:0] len_i,
    input wire logic in_valid_i,
    output logic in_ready_o,
    input wire logic [7:0] in_data_i,
    output logic out_valid_o,
    input wire logic out_ready_i,
    output logic [7:0] out_data_o,
    output logic ok_o
);

  localparam logic [3:0] CMD_INIT = 4'd0;
  localparam logic [3:0] CMD_AAD = 4'd1;
  localparam logic [3:0] CMD_DATA = 4'd2;
  localparam logic [3:0] CMD_FINAL = 4'd3;

  typedef enum logic [3:0] {
    S_IDLE,
    S_KEY,
    S_IV,
    S_HASH_KEY,    // start E(0)
    S_HASH_WAIT,
    S_AAD,
    S_AAD_PAD,     // zeros up to a whole block, before the first data byte
    S_DATA,
    S_DATA_WAIT,   // the unit computes the next key stream block
    S_DATA_PAD,    // zeros up to a whole block, before the lengths
    S_LENGTHS,
    S_TAG_WAIT,
    S_TAG
  } state_e;

  state_e state_q;
  logic decrypt_q;
  logic [15:0] left_q;       // remaining bytes of AAD or DATA
  logic [3:0] index_q;       // byte of the IV, of the current GHASH block or of the tag
  logic [95:0] iv_q;
  logic [31:0] counter_q;    // of the next key stream block
  logic stream_q;            // block_o of the cipher is the key stream of the current block
  logic [31:0] aad_bytes_q;
  logic [31:0] data_bytes_q;
  logic out_valid_q;
  logic [7:0] out_data_q;

  // GHASH, a byte of the block per cycle: product += byte * H x^(8 i). hash_q shifts out the last
  // sum at the same time.
  logic [127:0] hash_key_q;
  logic [127:0] hash_power_q;
  logic [127:0] hash_q;
  logic [127:0] product_q;

  function automatic logic [127:0] times_x(input logic [127:0] v);
    return {1'b0, v[127:1]} ^ {v[0] ? 8'he1 : 8'h00, 120'd0};
  endfunction

  function automatic logic [127:0] times_x8(input logic [127:0] v);
    logic [127:0] r;
    r = v;
    for (int i = 0; i < 8; i++) r = times_x(r);
    return r;
  endfunction

  function automatic logic [127:0] times_byte(input logic [7:0] b, input logic [127:0] v);
    logic [127:0] r, p;
    r = '0;
    p = v;
    for (int i = 7; i >= 0; i--) begin
      r = r ^ (p & {128{b[i]}});
      p = times_x(p);
    end
    return r;
  endfunction

  logic aes_wiped, aes_ready, aes_start_key, aes_key_ready, aes_start_block;
  logic [127:0] aes_in, aes_out;
  logic cmd_go;

  shef_aes_iter u_aes (
      .clk_i,
      .rst_ni,
      .wipe_i,
      .wiped_o(aes_wiped),
      .ready_o(aes_ready),
      .start_key_i(aes_start_key),
      .key256_i(len_i[0]),
      .key_valid_i(in_valid_i && state_q == S_KEY),
      .key_ready_o(aes_key_ready),
      .key_data_i(in_data_i),
      .start_block_i(aes_start_block),
      .block_i(aes_in),
      .block_o(aes_out)
  );

  assign ok_o = 1'b1;
  assign cmd_ready_o = state_q == S_IDLE && !out_valid_q && aes_ready && (!wipe_i || aes_wiped);
  assign cmd_go = cmd_valid_i && cmd_ready_o && !wipe_i;
  assign aes_start_key = cmd_go && cmd_i == CMD_INIT;

  logic hash_valid, stream_missing;
  logic [7:0] hash_byte, stream_byte, length_byte;
  logic [31:0] length_bytes;
  logic take_data;

  assign stream_byte = aes_out[{~index_q, 3'b000}+:8];
  assign stream_missing = state_q == S_DATA && !stream_q;
  assign take_data = state_q == S_DATA && stream_q && in_valid_i && !out_valid_q;
  assign aes_start_block = aes_ready && (state_q == S_HASH_KEY || stream_missing
                                         || (state_q == S_LENGTHS && index_q == 4'd15));
  always_comb begin
    aes_in = 128'd0;
    if (stream_missing) aes_in = {iv_q, counter_q};
    else if (state_q == S_LENGTHS) aes_in = {iv_q, 32'd1};
  end

  assign length_bytes = index_q[3] ? data_bytes_q : aad_bytes_q;
  always_comb begin
    unique case (index_q[2:0])
      3'd3: length_byte = {5'd0, length_bytes[31:29]};
      3'd4: length_byte = length_bytes[28:21];
      3'd5: length_byte = length_bytes[20:13];
      3'd6: length_byte = length_bytes[12:5];
      3'd7: length_byte = {length_bytes[4:0], 3'd0};
      default: length_byte = 8'd0;
    endcase
  end

  always_comb begin
    in_ready_o = 1'b0;
    hash_valid = 1'b0;
    hash_byte  = 8'd0;
    unique case (state_q)
      S_KEY: in_ready_o = aes_key_ready;
      S_IV: in_ready_o = 1'b1;
      S_AAD: begin
        in_ready_o = 1'b1;
        hash_valid = in_valid_i;
        hash_byte  = in_data_i;
      end
      S_DATA: begin
        in_ready_o = stream_q && !out_valid_q;
        hash_valid = take_data;
        hash_byte  = decrypt_q ? in_data_i : in_data_i ^ stream_byte;
      end
      S_AAD_PAD, S_DATA_PAD: hash_valid = 1'b1;
      S_LENGTHS: begin
        hash_valid = 1'b1;
        hash_byte  = length_byte;
      end
      default: ;
    endcase
    if (wipe_i) in_ready_o = 1'b0;
  end

  assign out_valid_o = (out_valid_q || state_q == S_TAG) && !wipe_i;
  always_comb begin
    out_data_o = out_data_q;
    if (state_q == S_TAG) out_data_o = hash_q[127:120] ^ stream_byte;
  end

  // ---- GHASH registers ----
  logic clear, hash_start, hash_key_known, tag_taken, block_end;
  logic [7:0] hash_in;
  logic hash_valid_q, hash_end_q;
  logic [7:0] hash_byte_q;
  assign clear = !rst_ni || wipe_i;
  assign hash_start = cmd_go && cmd_i == CMD_INIT;
  assign hash_key_known = state_q == S_HASH_WAIT && aes_ready;
  assign tag_taken = state_q == S_TAG && out_ready_i;
  assign block_end = index_q == 4'd15;
  assign hash_in = hash_q[127:120] ^ hash_byte_q;

  // bytes are multiplied one cycle after they arrive; the tag is requested long after the last one
  always_ff @(posedge clk_i) begin
    if (clear) begin
      hash_valid_q <= 1'b0;
      hash_end_q <= 1'b0;
      hash_byte_q <= '0;
    end else begin
      hash_valid_q <= hash_valid;
      hash_end_q <= block_end;
      hash_byte_q <= hash_byte;
    end
  end
  always_ff @(posedge clk_i) begin
    if (clear || (tag_taken && block_end)) hash_key_q <= '0;
    else if (hash_key_known) hash_key_q <= aes_out;
  end
  always_ff @(posedge clk_i) begin
    if (clear || hash_start) hash_q <= '0;
    else if (hash_valid_q && hash_end_q) hash_q <= product_q ^ times_byte(hash_in, hash_power_q);
    else if (hash_valid_q || tag_taken) hash_q <= {hash_q[119:0], 8'd0};
  end
  always_ff @(posedge clk_i) begin
    if (clear || hash_start || (hash_valid_q && hash_end_q)) product_q <= '0;
    else if (hash_valid_q) product_q <= product_q ^ times_byte(hash_in, hash_power_q);
  end
  always_ff @(posedge clk_i) begin
    if (clear || (tag_taken && block_end)) hash_power_q <= '0;
    else if (hash_key_known) hash_power_q <= aes_out;
    else if (hash_valid_q) hash_power_q <= hash_end_q ? hash_key_q : times_x8(hash_power_q);
  end

  always_ff @(posedge clk_i) begin
    if (clear) begin
      state_q <= S_IDLE;
      decrypt_q <= 1'b0;
      left_q <= '0;
      index_q <= '0;
      iv_q <= '0;
      counter_q <= '0;
      stream_q <= 1'b0;
      aad_bytes_q <= '0;
      data_bytes_q <= '0;
      out_valid_q <= 1'b0;
      out_data_q <= '0;
    end else begin
      if (out_valid_q && out_ready_i) begin
        out_valid_q <= 1'b0;
        out_data_q  <= '0;
      end

      if (hash_valid) index_q <= index_q + 4'd1;

      unique case (state_q)
        S_IDLE:
        if (cmd_go) begin
          left_q <= len_i;
          unique case (cmd_i)
            CMD_INIT: begin
              state_q <= S_KEY;
              decrypt_q <= len_i[1];
              index_q <= '0;
              counter_q <= 32'd2;
              stream_q <= 1'b0;
              aad_bytes_q <= '0;
              data_bytes_q <= '0;
            end
            CMD_AAD: if (len_i != 16'd0) state_q <= S_AAD;
            CMD_DATA:
            if (len_i != 16'd0)
              state_q <= (data_bytes_q == 32'd0 && index_q != 4'd0) ? S_AAD_PAD : S_DATA;
            CMD_FINAL: state_q <= (index_q != 4'd0) ? S_DATA_PAD : S_LENGTHS;
            default: ;
          endcase
        end
        S_KEY: if (aes_ready) state_q <= S_IV;
        S_IV:
        if (in_valid_i) begin
          iv_q <= {iv_q[87:0], in_data_i};
          index_q <= index_q + 4'd1;
          if (index_q == 4'd11) begin
            index_q <= '0;
            state_q <= S_HASH_KEY;
          end
        end
        S_HASH_KEY: state_q <= S_HASH_WAIT;
        S_HASH_WAIT:
        if (aes_ready) begin
          state_q <= S_IDLE;
        end
        S_AAD:
        if (in_valid_i) begin
          aad_bytes_q <= aad_bytes_q + 32'd1;
          left_q <= left_q - 16'd1;
          if (left_q == 16'd1) state_q <= S_IDLE;
        end
        S_AAD_PAD: if (index_q == 4'd15) state_q <= S_DATA;
        S_DATA:
        if (stream_missing) begin
          counter_q <= counter_q + 32'd1;
          state_q   <= S_DATA_WAIT;
        end else if (take_data) begin
          out_valid_q <= 1'b1;
          out_data_q <= in_data_i ^ stream_byte;
          data_bytes_q <= data_bytes_q + 32'd1;
          left_q <= left_q - 16'd1;
          if (index_q == 4'd15) stream_q <= 1'b0;
          if (left_q == 16'd1) state_q <= S_IDLE;
        end
        S_DATA_WAIT:
        if (aes_ready) begin
          stream_q <= 1'b1;
          state_q  <= S_DATA;
        end
        S_DATA_PAD: if (index_q == 4'd15) state_q <= S_LENGTHS;
        S_LENGTHS: if (index_q == 4'd15) state_q <= S_TAG_WAIT;
        S_TAG_WAIT: if (aes_ready) state_q <= S_TAG;
        S_TAG:
        if (out_ready_i) begin
          index_q <= index_q + 4'd1;
          if (index_q == 4'd15) begin
            state_q <= S_IDLE;
            iv_q <= '0;
          end
        end
        default: state_q <= S_IDLE;
      endcase
    end
  end

endmodule
`default_nettype wire
