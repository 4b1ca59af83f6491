// One stage of the AES pipeline: the round key memory of this round (NKeys keys) and Lanes rounds that share it.
//
// Stage 0 is the whitening, 1..13 are full rounds, 14 is the last round. An input with pass_i goes through unchanged
// (stages 1..4 of AES-128). No back-pressure: what comes with valid_i is at state_o one cycle later; without valid_i
// the stage keeps its state and does nothing. wr_* writes a round key. clear_i zeroes the state register (not the memory).
`default_nettype none
module shef_aes_stage #(
  parameter int unsigned Lanes = 4,
  parameter int unsigned NKeys = 16,
  parameter int unsigned Index = 1,
  parameter bit TableForm = shef_aes_pkg::TABLE_FORM,
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

  logic [127:0] rk_mem[NKeys];

  always_ff @(posedge clk_i) begin
    if (wr_en_i) rk_mem[wr_key_slot_i] <= wr_key_i;
  end

  logic [128*Lanes-1:0] state_q;

  if (Index == 0) begin : gen_white
    wire unused_pass = pass_i;
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        for (int l = 0; l < Lanes; l++) state_q[128*l+:128] <= state_i[128*l+:128] ^ rk_mem[key_slot_i];
      end
    end
  end else if (Index == AES_STAGES - 1) begin : gen_last
    wire unused_pass = pass_i;
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        for (int l = 0; l < Lanes; l++) state_q[128*l+:128] <= round_last(state_i[128*l+:128], rk_mem[key_slot_i]);
      end
    end
  end else if (TableForm) begin : gen_table
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        if (Index <= 4 && pass_i) state_q <= state_i;
        else begin
          for (int l = 0; l < Lanes; l++) state_q[128*l+:128] <= round_table(state_i[128*l+:128], rk_mem[key_slot_i]);
        end
      end
    end
  end else begin : gen_logic
    always_ff @(posedge clk_i) begin
      if (clear_i) state_q <= '0;
      else if (valid_i) begin
        if (Index <= 4 && pass_i) state_q <= state_i;
        else begin
          for (int l = 0; l < Lanes; l++) state_q[128*l+:128] <= round_logic(state_i[128*l+:128], rk_mem[key_slot_i]);
        end
      end
    end
  end

  assign state_o = state_q;
endmodule
`default_nettype wire
