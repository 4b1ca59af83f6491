// AES-GCM engine of a set: keystream blocks and GHASH at up to 64 bytes a cycle, keys of up to 16
// regions and their tree nodes.
//
// A key slot is {node, place}: 0..15 hold data keys (the first NRegions have powers), 16.. the node
// keys of the first NNodes.
// key port: valid/ready. Takes a key and expands it: round keys, powers of H, len*H for the
// region's chunk size or, with key_node_i, for a message of 48 bytes of additional data and no
// text. key_ready_o is low until everything is stored (about 50 cycles + 11 per 64 bytes of the
// chunk) and while anything is in the pipelines; job_ready_o and gh_ready_o are then low too. Never
// load the key of a slot that has pending work.
// job port: valid/ready, four counter blocks a job, one job every 4/Lanes cycles; ks port: the four
// encrypted blocks, in order, no back-pressure, 15 cycles later (17 with two lanes, 19 with one),
// job_user_i accompanies them.
// gh port: valid/ready, 64 bytes of cipher text a beat, one beat every 4/Lanes cycles; gh_pow_i =
// beats of the chunk after this one. s port: one result per gh_last_i, in order, no back-pressure,
// 6 cycles later (7, 9): GHASH including the length block. Beats of slot 0 and slot 1 may
// interleave; slot 2 takes single beats (first and last in one): those of a node are a zero block
// and its 48 bytes.
// wipe_i (level) zeroes every key, power and register; wipe_done_o is high, while wipe_i is, when
// all are zero (64 * NRegions + NNodes cycles). Reset does the same before the first key is taken.
//
// Blocks have byte 0 in their top bits; of four blocks, block 0 is in [511:384].
`default_nettype none
module shef_gcm #(
  parameter int unsigned NRegions = 16,
  parameter int unsigned NNodes = 0,
  parameter int unsigned Lanes = 4,
  parameter int unsigned UserW = 8,
  parameter bit TableForm = shef_aes_pkg::TABLE_FORM,
  parameter bit SboxRam = 1'b0                // S-boxes of the AES lanes in block RAM
) (
  input  wire              clk_i,
  input  wire              rst_ni,
  input  wire              wipe_i,
  output wire              wipe_done_o,

  input  wire              key_valid_i,
  output wire              key_ready_o,
  input  wire  [      3:0] key_region_i,
  input  wire              key_node_i,
  input  wire              key256_i,
  input  wire  [      3:0] chunk_log2_i,
  input  wire  [    255:0] key_i,

  input  wire              job_valid_i,
  output wire              job_ready_o,
  input  wire  [      4:0] job_key_i,
  input  wire  [    511:0] job_block_i,
  input  wire  [UserW-1:0] job_user_i,
  output wire              ks_valid_o,
  output wire  [    511:0] ks_o,
  output wire  [UserW-1:0] ks_user_o,

  input  wire              gh_valid_i,
  output wire              gh_ready_o,
  input  wire  [      4:0] gh_key_i,
  input  wire  [      1:0] gh_slot_i,
  input  wire              gh_first_i,
  input  wire              gh_last_i,
  input  wire  [      5:0] gh_pow_i,
  input  wire  [    511:0] gh_data_i,
  input  wire  [UserW-1:0] gh_user_i,
  output wire              s_valid_o,
  output wire  [      1:0] s_slot_o,
  output wire  [    127:0] s_o,
  output wire  [UserW-1:0] s_user_o
);
  localparam int unsigned NKeys = 16 + NNodes;
  localparam int unsigned KeyW = $clog2(NKeys);
  localparam int unsigned Words = 64 * NRegions + NNodes;
  localparam int unsigned WordW = $clog2(Words);

  typedef enum logic [3:0] {
    ST_CLEAR,   // zero the memories
    ST_WIPED,   // wait for the end of wipe_i
    ST_IDLE,
    ST_EXPAND,  // round keys
    ST_H_REQ,   // H = E(0)
    ST_H_WAIT,
    ST_PRE,     // H^2 .. H^5, len*H
    ST_PRE_WAIT,
    ST_WRITE,   // a word of powers
    ST_STEP     // the next word: four products with H^4
  } state_e;

  state_e state_q;
  logic [WordW-1:0] sweep_q;
  logic [KeyW-1:0] key_q;  // slot
  logic node_q;
  logic [3:0] chunk_log2_q;
  logic [NKeys-1:0] key128_q;
  logic [127:0] h_q;
  logic [127:0] h4_q;
  logic [511:0] cur_q;  // {H^(4j+5), H^(4j+4), H^(4j+3), H^(4j+2)}
  logic [5:0] word_q;
  logic [2:0] step_q;  // ST_PRE: which product; ST_STEP: products started
  logic [1:0] back_q;  // ST_STEP: products returned

  wire clear = !rst_ni || wipe_i || state_q == ST_CLEAR;
  wire idle = state_q == ST_IDLE && !wipe_i;

  // ---- AES ----
  logic aes_idle, gh_idle;
  logic exp_wr, exp_done;
  logic [3:0] exp_round;
  logic [127:0] exp_key;
  logic aes_ready, aes_valid;
  logic [UserW:0] aes_user;

  assign key_ready_o = idle && aes_idle && gh_idle;
  wire key_accept = key_valid_i && key_ready_o;
  wire key_node = NNodes != 0 && key_node_i;
  wire [KeyW-1:0] key_slot = KeyW'({key_node, key_region_i});

  shef_aes_keyexp u_keyexp (
    .clk_i,
    .clear_i(clear),
    .start_i(key_accept),
    .key256_i,
    .key_i,
    .wr_en_o(exp_wr),
    .wr_slot_o(exp_round),
    .wr_key_o(exp_key),
    .done_o(exp_done)
  );

  wire sweep_keys = state_q == ST_CLEAR && sweep_q < WordW'(NKeys);
  wire own_job = state_q == ST_H_REQ;

  assign job_ready_o = idle && aes_ready;
  shef_aes_lanes #(.Lanes(Lanes), .NKeys(NKeys), .UserW(UserW + 1), .TableForm(TableForm),
      .SboxRam(SboxRam)) u_aes (
    .clk_i,
    .clear_i(clear),
    .key128_i(key128_q),
    .wr_en_i(sweep_keys || exp_wr),
    .wr_all_i(sweep_keys),
    .wr_round_i(exp_round),
    .wr_key_slot_i(sweep_keys ? sweep_q[KeyW-1:0] : key_q),
    .wr_key_i(sweep_keys ? 128'd0 : exp_key),
    .job_valid_i(own_job || (job_valid_i && idle)),
    .job_ready_o(aes_ready),
    .job_key_i(own_job ? key_q : job_key_i[KeyW-1:0]),
    .job_block_i(own_job ? 512'd0 : job_block_i),
    .job_user_i({own_job, own_job ? UserW'(0) : job_user_i}),
    .ks_valid_o(aes_valid),
    .ks_o,
    .ks_user_o(aes_user),
    .idle_o(aes_idle)
  );
  assign ks_valid_o = aes_valid && !aes_user[UserW];
  assign ks_user_o = aes_user[UserW-1:0];

  // ---- GHASH ----
  logic ld_back;
  logic [127:0] ld_product;
  logic ld_valid;
  logic [127:0] ld_a, ld_b;
  wire [127:0] len_block = node_q ? {64'd384, 64'd0} : 128'd1 << ({1'b0, chunk_log2_q} + 5'd3);
  wire pre_len = step_q == 3'd4;

  always_comb begin
    ld_valid = 1'b0;
    ld_a = cur_q[511:384];
    ld_b = h_q;
    if (state_q == ST_PRE) begin
      ld_valid = 1'b1;
      if (step_q == 3'd0) ld_a = h_q;
      else if (pre_len) ld_a = len_block;
    end else if (state_q == ST_STEP) begin
      ld_valid = !step_q[2];
      ld_a = cur_q[128*step_q[1:0]+:128];
      ld_b = h4_q;
    end
  end

  wire sweep = state_q == ST_CLEAR;
  wire [10:0] load_addr = node_q ? 11'(64 * NRegions) + {7'd0, key_q[3:0]}
      : {1'b0, key_q[3:0], word_q};
  if (WordW < 11) begin : g_unused
    wire unused_addr = &{1'b0, load_addr[10:WordW]};
  end
  if (NNodes == 0) begin : g_unused_node
    wire unused_node = &{1'b0, key_node_i, job_key_i[4], gh_key_i[4]};
  end
  shef_ghash #(.NRegions(NRegions), .NNodes(NNodes), .Lanes(Lanes), .UserW(UserW),
      .TableForm(TableForm)) u_ghash (
    .clk_i,
    .clear_i(clear),
    .enable_i(idle),
    .pw_en_i(sweep || state_q == ST_WRITE),
    .pw_addr_i(sweep ? sweep_q : load_addr[WordW-1:0]),
    .pw_data_i(sweep ? 512'd0 : cur_q),
    .lh_en_i(sweep_keys || (state_q == ST_PRE_WAIT && ld_back && pre_len)),
    .lh_key_i(sweep_keys ? sweep_q[KeyW-1:0] : key_q),
    .lh_data_i(sweep_keys ? 128'd0 : ld_product),
    .ld_valid_i(ld_valid),
    .ld_a_i(ld_a),
    .ld_b_i(ld_b),
    .ld_valid_o(ld_back),
    .ld_o(ld_product),
    .gh_valid_i,
    .gh_ready_o,
    .gh_key_i(gh_key_i[KeyW-1:0]),
    .gh_slot_i,
    .gh_first_i,
    .gh_last_i,
    .gh_pow_i,
    .gh_data_i,
    .gh_user_i,
    .s_valid_o,
    .s_slot_o,
    .s_o,
    .s_user_o,
    .idle_o(gh_idle)
  );

  // ---- key load ----
  wire [6:0] beats = 7'd1 << (chunk_log2_q - 4'd6);
  wire last_word = {1'b0, word_q} == beats - 7'd1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || (wipe_i && state_q != ST_CLEAR && state_q != ST_WIPED)) begin
      state_q <= ST_CLEAR;
      sweep_q <= '0;
      key_q <= '0;
      node_q <= 1'b0;
      chunk_log2_q <= '0;
      key128_q <= '0;
      h_q <= '0;
      h4_q <= '0;
      cur_q <= '0;
      word_q <= '0;
      step_q <= '0;
      back_q <= '0;
    end else begin
      unique case (state_q)
        ST_CLEAR: begin
          sweep_q <= sweep_q + WordW'(1);
          if (sweep_q == WordW'(Words - 1)) state_q <= ST_WIPED;
        end
        ST_WIPED: if (!wipe_i) state_q <= ST_IDLE;
        ST_IDLE: begin
          if (key_accept) begin
            state_q <= ST_EXPAND;
            key_q <= key_slot;
            node_q <= key_node;
            chunk_log2_q <= key_node ? 4'd6 : chunk_log2_i;
            key128_q[key_slot] <= !key256_i;
          end
        end
        ST_EXPAND: if (exp_done) state_q <= ST_H_REQ;
        ST_H_REQ: if (aes_ready) state_q <= ST_H_WAIT;
        ST_H_WAIT: begin
          if (aes_valid) begin
            h_q <= ks_o[511:384];
            step_q <= '0;
            word_q <= '0;
            state_q <= ST_PRE;
          end
        end
        ST_PRE: state_q <= ST_PRE_WAIT;
        ST_PRE_WAIT: begin
          if (ld_back) begin
            step_q <= step_q + 3'd1;
            state_q <= ST_PRE;
            if (pre_len) begin
              state_q <= ST_WRITE;
              h_q <= '0;
            end else begin
              cur_q <= {ld_product, cur_q[511:128]};
              if (step_q == 3'd2) h4_q <= ld_product;
            end
          end
        end
        ST_WRITE: begin
          step_q <= '0;
          back_q <= '0;
          if (last_word) begin
            state_q <= ST_IDLE;
            cur_q <= '0;
            h4_q <= '0;
          end else begin
            state_q <= ST_STEP;
            word_q <= word_q + 6'd1;
          end
        end
        ST_STEP: begin
          if (!step_q[2]) step_q <= step_q + 3'd1;
          if (ld_back) begin
            cur_q <= {ld_product, cur_q[511:128]};
            back_q <= back_q + 2'd1;
            if (back_q == 2'd3) state_q <= ST_WRITE;
          end
        end
        default: state_q <= ST_CLEAR;
      endcase
    end
  end

  assign wipe_done_o = wipe_i && state_q == ST_WIPED;
endmodule
`default_nettype wire
