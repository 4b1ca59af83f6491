// AES encryption pipeline, Lanes blocks a cycle in lockstep, all under one key.
//
// Job port: valid/ready, four blocks a job (block 0 in [511:384]); a job every 4/Lanes cycles.
// Output: in order, no back-pressure, 15 cycles after the handshake with four lanes (17 with two,
// 19 with one). The round keys of NKeys keys are written through wr_* (round 0..14; AES-128 uses 0
// and 5..14). key128_i bit k: key slot k holds an AES-128 key. It must not change for a slot that
// has jobs in the pipeline. SboxRam: S-boxes in block RAM. clear_i zeroes all state registers;
// idle_o: the pipeline holds no job.
`default_nettype none
module shef_aes_lanes #(
  parameter int unsigned Lanes = 4,
  parameter int unsigned NKeys = 16,
  parameter int unsigned UserW = 8,
  parameter bit TableForm = shef_aes_pkg::TABLE_FORM,
  parameter bit SboxRam = 1'b0,
  localparam int unsigned KeyW = $clog2(NKeys)
) (
  input  wire              clk_i,
  input  wire              clear_i,
  input  wire  [NKeys-1:0] key128_i,
  input  wire              wr_en_i,
  input  wire              wr_all_i,
  input  wire  [      3:0] wr_round_i,
  input  wire  [ KeyW-1:0] wr_key_slot_i,
  input  wire  [    127:0] wr_key_i,
  input  wire              job_valid_i,
  output wire              job_ready_o,
  input  wire  [ KeyW-1:0] job_key_i,
  input  wire  [    511:0] job_block_i,
  input  wire  [UserW-1:0] job_user_i,
  output wire              ks_valid_o,
  output wire  [    511:0] ks_o,
  output wire  [UserW-1:0] ks_user_o,
  output wire              idle_o
);
  import shef_aes_pkg::*;

  localparam int unsigned Phases = 4 / Lanes;
  localparam int unsigned W = 128 * Lanes;

  // ---- input of the pipeline: Lanes blocks, and whether they are the last of their job ----
  logic in_valid, in_last;
  logic [KeyW-1:0] in_key;
  logic [W-1:0] in_block;
  logic [UserW-1:0] in_user;
  logic in_busy;

  if (Phases == 1) begin : g_in1
    assign job_ready_o = 1'b1;
    assign in_valid = job_valid_i;
    assign in_last = 1'b1;
    assign in_key = job_key_i;
    assign in_block = job_block_i;
    assign in_user = job_user_i;
    assign in_busy = 1'b0;
  end else begin : g_in
    logic valid_q;
    logic [1:0] phase_q;
    logic [KeyW-1:0] key_q;
    logic [511:0] block_q;
    logic [UserW-1:0] user_q;
    wire last = phase_q == 2'(Phases - 1);
    assign job_ready_o = !valid_q || last;
    always_ff @(posedge clk_i) begin
      if (clear_i) begin
        valid_q <= 1'b0;
        phase_q <= '0;
        key_q <= '0;
        block_q <= '0;
        user_q <= '0;
      end else if (job_ready_o) begin
        valid_q <= job_valid_i;
        phase_q <= '0;
        if (job_valid_i) begin
          key_q <= job_key_i;
          block_q <= job_block_i;
          user_q <= job_user_i;
        end
      end else begin
        phase_q <= phase_q + 2'd1;
        block_q <= block_q << W;
      end
    end
    assign in_valid = valid_q;
    assign in_last = last;
    assign in_key = key_q;
    assign in_block = block_q[511-:W];
    assign in_user = user_q;
    assign in_busy = valid_q;
  end

  // ---- the stages ----
  logic [AES_STAGES-1:0] valid_q;
  logic [AES_STAGES-1:0] last_q;
  logic [KeyW-1:0] key_q[AES_STAGES];
  logic [UserW-1:0] user_q[AES_STAGES];
  logic [W-1:0] state[AES_STAGES];

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      valid_q <= '0;
      last_q <= '0;
    end else begin
      valid_q <= {valid_q[AES_STAGES-2:0], in_valid};
      last_q <= {last_q[AES_STAGES-2:0], in_last};
    end
    if (in_valid) begin
      key_q[0] <= in_key;
      user_q[0] <= in_user;
    end
    for (int i = 1; i < AES_STAGES; i++) begin
      if (valid_q[i-1]) begin
        key_q[i] <= key_q[i-1];
        user_q[i] <= user_q[i-1];
      end
    end
  end

  for (genvar i = 0; i < AES_STAGES; i++) begin : g_stage
    wire wr_here = wr_en_i && (wr_all_i || wr_round_i == 4'(i));
    if (i == 0) begin : g_first
      shef_aes_stage #(.Lanes(Lanes), .NKeys(NKeys), .Index(i), .TableForm(TableForm),
          .SboxRam(SboxRam)) u_stage (
        .clk_i,
        .clear_i,
        .wr_en_i(wr_here),
        .wr_key_slot_i,
        .wr_key_i,
        .valid_i(in_valid),
        .pass_i(1'b0),
        .key_slot_i(in_key),
        .state_i(in_block),
        .state_o(state[i])
      );
    end else begin : g_next
      shef_aes_stage #(.Lanes(Lanes), .NKeys(NKeys), .Index(i), .TableForm(TableForm),
          .SboxRam(SboxRam)) u_stage (
        .clk_i,
        .clear_i,
        .wr_en_i(wr_here),
        .wr_key_slot_i,
        .wr_key_i,
        .valid_i(valid_q[i-1]),
        .pass_i(key128_i[key_q[i-1]]),
        .key_slot_i(key_q[i-1]),
        .state_i(state[i-1]),
        .state_o(state[i])
      );
    end
  end

  // ---- output: gather the blocks of a job ----
  if (Phases == 1) begin : g_out1
    assign ks_o = state[AES_STAGES-1];
  end else begin : g_out
    logic [511-W:0] hold_q;
    always_ff @(posedge clk_i) begin
      if (clear_i) hold_q <= '0;
      else if (valid_q[AES_STAGES-1]) hold_q <= (512 - W)'({hold_q, state[AES_STAGES-1]});
    end
    assign ks_o = {hold_q, state[AES_STAGES-1]};
  end
  assign ks_valid_o = valid_q[AES_STAGES-1] && last_q[AES_STAGES-1];
  assign ks_user_o = user_q[AES_STAGES-1];
  assign idle_o = valid_q == '0 && !in_busy;
endmodule
`default_nettype wire
