// One stage of the AES pipeline: the round key memory of this round (NKeys keys) and Lanes rounds
// that share it.
//
// Stage 0 is the whitening, 1..13 are full rounds, 14 is the last round. An input with pass_i goes
// through unchanged (stages 1..4 of AES-128). No back-pressure: an input with valid_i is at state_o
// one cycle later; without valid_i the stage keeps its state and does nothing. wr_* writes a round
// key. clear_i zeroes the state register (not the memory).
//
// SboxRam: the S-boxes are block RAM, whose output register is that of the stage. So the state
// between two stages is the output of SubBytes of the next round, and the last stage has no
// S-boxes. The latency is the same.
`default_nettype none
module shef_aes_stage #(
  parameter int unsigned Lanes = 4,
  parameter int unsigned NKeys = 16,
  parameter int unsigned Index = 1,
  parameter bit TableForm = shef_aes_pkg::TABLE_FORM,
  parameter bit SboxRam = 1'b0,
  localparam int unsigned KeyW = $clog2(NKeys)
) (
  input  wire                  clk_i,
  input  wire                  clear_i,
  input  wire                  wr_en_i,
  input  wire  [     KeyW-1:0] wr_key_slot_i,
  input  wire  [        127:0] wr_key_i,
  input  wire                  valid_i,
  input  wire                  pass_i,
  input  wire  [     KeyW-1:0] key_slot_i,
  input  wire  [128*Lanes-1:0] state_i,
  output logic [128*Lanes-1:0] state_o
);
  import shef_aes_pkg::*;

  // the parts of a round other than its S-boxes and its key
  function automatic logic [127:0] shift_rows(input logic [127:0] s);
    return {
      s[127:120], s[87:80], s[47:40], s[7:0],
      s[95:88], s[55:48], s[15:8], s[103:96],
      s[63:56], s[23:16], s[111:104], s[71:64],
      s[31:24], s[119:112], s[79:72], s[39:32]
    };
  endfunction

  function automatic logic [127:0] mix_columns(input logic [127:0] s);
    return {mix_column(s[127:96]), mix_column(s[95:64]), mix_column(s[63:32]), mix_column(s[31:0])};
  endfunction

  logic [127:0] rk_mem[NKeys];

  always_ff @(posedge clk_i) begin
    if (wr_en_i) rk_mem[wr_key_slot_i] <= wr_key_i;
  end

  logic [128*Lanes-1:0] state_q;

  if (SboxRam && Index == AES_STAGES - 1) begin : g_ram_last
    wire unused_pass = pass_i;
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        for (int l = 0; l < Lanes; l++)
          state_q[128*l+:128] <= shift_rows(state_i[128*l+:128]) ^ rk_mem[key_slot_i];
      end
    end
  end else if (SboxRam) begin : g_ram
    logic [128*Lanes-1:0] sub_q;
    wire pass = Index >= 1 && Index <= 4 && pass_i;
    for (genvar l = 0; l < Lanes; l++) begin : g_lane
      wire [127:0] mixed = Index == 0 ? state_i[128*l+:128]
          : mix_columns(shift_rows(state_i[128*l+:128]));
      shef_aes_sbox_ram u_sbox (
        .clk_i, .clear_i, .en_i(valid_i && !pass), .state_i(mixed ^ rk_mem[key_slot_i]),
        .state_o(sub_q[128*l+:128])
      );
    end
    if (Index >= 1 && Index <= 4) begin : g_pass
      logic pass_q;
      logic [128*Lanes-1:0] hold_q;
      always_ff @(posedge clk_i) begin
        if (clear_i) begin
          pass_q <= 1'b0;
          hold_q <= '0;
        end else if (valid_i) begin
          pass_q <= pass;
          if (pass) hold_q <= state_i;
        end
      end
      assign state_q = pass_q ? hold_q : sub_q;
    end else begin : g_no_pass
      assign state_q = sub_q;
    end
  end else if (Index == 0) begin : g_white
    wire unused_pass = pass_i;
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        for (int l = 0; l < Lanes; l++)
          state_q[128*l+:128] <= state_i[128*l+:128] ^ rk_mem[key_slot_i];
      end
    end
  end else if (Index == AES_STAGES - 1) begin : g_last
    wire unused_pass = pass_i;
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        for (int l = 0; l < Lanes; l++)
          state_q[128*l+:128] <= round_last(state_i[128*l+:128], rk_mem[key_slot_i]);
      end
    end
  end else if (TableForm) begin : g_table
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        if (Index <= 4 && pass_i) state_q <= state_i;
        else begin
          for (int l = 0; l < Lanes; l++)
            state_q[128*l+:128] <= round_table(state_i[128*l+:128], rk_mem[key_slot_i]);
        end
      end
    end
  end else begin : g_logic
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        if (Index <= 4 && pass_i) state_q <= state_i;
        else begin
          for (int l = 0; l < Lanes; l++)
            state_q[128*l+:128] <= round_logic(state_i[128*l+:128], rk_mem[key_slot_i]);
        end
      end
    end
  end

  assign state_o = state_q;
endmodule
`default_nettype wire
