// SHA-256 and HMAC-SHA-256 (32-byte key) on a stream of bytes, for the control plane.
//
// Commands (cmd_valid_i/cmd_ready_o; cmd_ready_o high = idle, the last command is complete):
//   0 HASH_INIT   start a plain hash
//   1 HMAC_INIT   start an HMAC; 32 key bytes follow on `in`
//   2 ABSORB      len_i message bytes follow on `in` (0 is allowed; any number of ABSORB, together
//                 below 2^32 bytes)
//   3 FINAL       pads, then outputs 32 bytes on `out`; afterwards the unit holds nothing of
//                 key, message or digest
// Any other command completes at once without effect. `in` and `out` are valid/ready byte streams
// without a combinational path between them.
// Cycles: 129 per 64-byte block taken, FINAL of a hash at most 258 + 32, of an HMAC three more
// blocks.
// wipe_i (level) clears every register; cmd_ready_o while wipe_i is high reports completion, and
// the unit accepts no command. ok_o is always 1.
`default_nettype none
module shef_hmac (
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

  localparam logic [3:0] CMD_HASH_INIT = 4'd0;
  localparam logic [3:0] CMD_HMAC_INIT = 4'd1;
  localparam logic [3:0] CMD_ABSORB = 4'd2;
  localparam logic [3:0] CMD_FINAL = 4'd3;

  localparam logic [7:0] IPAD = 8'h36;
  localparam logic [7:0] OPAD = 8'h5c;

  typedef enum logic [3:0] {
    S_IDLE,
    S_KEY,         // key bytes in, xor ipad
    S_KEY_FILL,    // rest of the inner key block
    S_ABSORB,
    S_PAD_ONE,     // 0x80
    S_PAD_ZERO,
    S_PAD_LENGTH,
    S_OUTER_KEY,   // key xor opad; the inner digest takes the key's place
    S_OUTER_FILL,
    S_OUTER_INIT,
    S_OUTER_DIGEST,
    S_OUT,
    S_CLEAR
  } state_e;

  state_e state_q;
  logic hmac_q;            // an HMAC, its inner hash not yet finished
  logic wiped_q;
  logic [15:0] left_q;     // remaining ABSORB bytes
  logic [4:0] index_q;
  logic [31:0] total_q;    // bytes fed since the hash began
  logic [255:0] key_q;     // key, later inner digest; byte 0 on top

  logic sha_wipe, sha_init, sha_valid, sha_ready;
  logic [7:0] sha_data;
  logic [255:0] digest;
  logic [7:0] digest_byte;
  logic feed;              // a byte goes into the hash in this cycle

  shef_sha256 u_sha256 (
      .clk_i,
      .rst_ni,
      .wipe_i(sha_wipe),
      .init_i(sha_init),
      .drop_i(state_q == S_IDLE),
      .valid_i(sha_valid),
      .ready_o(sha_ready),
      .data_i(sha_data),
      .digest_o(digest)
  );

  assign ok_o = 1'b1;
  assign cmd_ready_o = (state_q == S_IDLE) && sha_ready && (!wipe_i || wiped_q);
  always_comb begin
    digest_byte = 8'd0;
    if (state_q == S_OUTER_KEY || state_q == S_OUT) digest_byte = digest[{~index_q, 3'b000}+:8];
  end
  assign out_valid_o = (state_q == S_OUT) && sha_ready && !wipe_i;
  assign out_data_o = out_valid_o ? digest_byte : 8'd0;
  assign in_ready_o = ((state_q == S_KEY) || (state_q == S_ABSORB)) && sha_ready && !wipe_i;
  assign sha_wipe = wipe_i || (state_q == S_CLEAR);

  logic cmd_go;
  assign cmd_go = cmd_valid_i && cmd_ready_o && !wipe_i;
  assign sha_init = (cmd_go && (cmd_i == CMD_HASH_INIT || cmd_i == CMD_HMAC_INIT)) ||
      (state_q == S_OUTER_INIT);

  always_comb begin
    sha_valid = 1'b0;
    sha_data  = 8'd0;
    unique case (state_q)
      S_KEY: begin
        sha_valid = in_valid_i;
        sha_data  = in_data_i ^ IPAD;
      end
      S_KEY_FILL: begin
        sha_valid = 1'b1;
        sha_data  = IPAD;
      end
      S_ABSORB: begin
        sha_valid = in_valid_i;
        sha_data  = in_data_i;
      end
      S_PAD_ONE: begin
        sha_valid = 1'b1;
        sha_data  = 8'h80;
      end
      S_PAD_ZERO: sha_valid = 1'b1;
      S_PAD_LENGTH: begin
        sha_valid = 1'b1;
        unique case (index_q[2:0])
          3'd3: sha_data = {5'd0, total_q[31:29]};
          3'd4: sha_data = total_q[28:21];
          3'd5: sha_data = total_q[20:13];
          3'd6: sha_data = total_q[12:5];
          3'd7: sha_data = {total_q[4:0], 3'd0};
          default: sha_data = 8'd0;
        endcase
      end
      S_OUTER_KEY: begin
        sha_valid = 1'b1;
        sha_data  = key_q[255:248] ^ OPAD;
      end
      S_OUTER_FILL: begin
        sha_valid = 1'b1;
        sha_data  = OPAD;
      end
      S_OUTER_DIGEST: begin
        sha_valid = 1'b1;
        sha_data  = key_q[255:248];
      end
      default: ;
    endcase
  end

  assign feed = sha_valid && sha_ready;

  // The hash state is the finished inner digest until the outer hash starts in the middle of its
  // key block.
  always_ff @(posedge clk_i) begin
    if (!rst_ni || wipe_i || state_q == S_CLEAR) key_q <= '0;
    else if (feed && state_q == S_KEY) key_q <= {key_q[247:0], in_data_i};
    else if (feed && state_q == S_OUTER_KEY) key_q <= {key_q[247:0], digest_byte};
    else if (feed && state_q == S_OUTER_DIGEST) key_q <= {key_q[247:0], 8'd0};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || wipe_i) begin
      state_q <= S_IDLE;
      hmac_q  <= 1'b0;
      left_q  <= '0;
      index_q <= '0;
      total_q <= '0;
      wiped_q <= wipe_i;
    end else begin
      wiped_q <= 1'b0;
      unique case (state_q)
        S_IDLE: begin
          index_q <= '0;
          if (cmd_go) begin
            unique case (cmd_i)
              CMD_HASH_INIT: begin
                hmac_q  <= 1'b0;
                total_q <= '0;
              end
              CMD_HMAC_INIT: begin
                hmac_q  <= 1'b1;
                total_q <= '0;
                state_q <= S_KEY;
              end
              CMD_ABSORB: begin
                left_q <= len_i;
                if (len_i != 16'd0) state_q <= S_ABSORB;
              end
              CMD_FINAL: state_q <= S_PAD_ONE;
              default: ;
            endcase
          end
        end
        S_KEY:
        if (feed) begin
          total_q <= total_q + 32'd1;
          index_q <= index_q + 5'd1;
          if (index_q == 5'd31) state_q <= S_KEY_FILL;
        end
        S_KEY_FILL:
        if (feed) begin
          total_q <= total_q + 32'd1;
          index_q <= index_q + 5'd1;
          if (index_q == 5'd31) state_q <= S_IDLE;
        end
        S_ABSORB:
        if (feed) begin
          total_q <= total_q + 32'd1;
          left_q  <= left_q - 16'd1;
          if (left_q == 16'd1) state_q <= S_IDLE;
        end
        S_PAD_ONE:
        if (feed) begin
          index_q <= '0;
          state_q <= (total_q[5:0] == 6'd55) ? S_PAD_LENGTH : S_PAD_ZERO;
          // zero bytes before the length, less one, mod 64
          left_q  <= {10'd0, 6'd54 - total_q[5:0]};
        end
        S_PAD_ZERO:
        if (feed) begin
          left_q <= {10'd0, left_q[5:0] - 6'd1};
          if (left_q[5:0] == 6'd0) state_q <= S_PAD_LENGTH;
        end
        S_PAD_LENGTH:
        if (feed) begin
          index_q <= index_q + 5'd1;
          if (index_q[2:0] == 3'd7) begin
            index_q <= '0;
            hmac_q  <= 1'b0;
            state_q <= hmac_q ? S_OUTER_KEY : S_OUT;
          end
        end
        S_OUTER_KEY:
        if (feed) begin
          index_q <= index_q + 5'd1;
          if (index_q == 5'd31) state_q <= S_OUTER_INIT;
        end
        S_OUTER_INIT: state_q <= S_OUTER_FILL;
        S_OUTER_FILL:
        if (feed) begin
          index_q <= index_q + 5'd1;
          if (index_q == 5'd31) state_q <= S_OUTER_DIGEST;
        end
        S_OUTER_DIGEST:
        if (feed) begin
          total_q <= 32'd96;
          index_q <= index_q + 5'd1;
          if (index_q == 5'd31) state_q <= S_PAD_ONE;
        end
        S_OUT:
        if (out_valid_o && out_ready_i) begin
          index_q <= index_q + 5'd1;
          if (index_q == 5'd31) state_q <= S_CLEAR;
        end
        S_CLEAR: begin
          total_q <= '0;
          state_q <= S_IDLE;
        end
        default: state_q <= S_IDLE;
      endcase
    end
  end

endmodule
`default_nettype wire
