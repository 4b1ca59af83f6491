// GHASH of whole chunks and of tree nodes without a feedback multiplication (NIST SP 800-38D, 6.4),
// 16*Lanes bytes a cycle.
//
//   S = sum over the beats of c0*H^(4p+5) + c1*H^(4p+4) + c2*H^(4p+3) + c3*H^(4p+2), plus len*H
//
// with p = beats after this one. A memory holds the powers of a region, word p = {H^(4p+5), ..,
// H^(4p+2)}; len*H is a constant of the key. Slots 0 and 1 let two chunks interleave; slot 2 is for
// messages of one beat, first and last in one. Each has its accumulator. Keys 0..15 are those of
// regions, 64 words each (NRegions of them have words), 16.. those of nodes, one word each.
//
// gh port: valid/ready, a beat every 4/Lanes cycles; beats of one slot in the order first .. last.
// s port: one result per gh_last, in order, no back-pressure, 6 cycles after the last beat's
// handshake (7 and 9 with two and one lane).
// ld port (only while it holds no beats): product ld_a*ld_b, reduced, at ld_valid_o 6 cycles later,
// in order. pw port writes a word of powers, lh port writes len*H. clear_i zeroes every register;
// the memories are cleared by writes.
`default_nettype none
module shef_ghash #(
  parameter int unsigned NRegions = 16,
  parameter int unsigned NNodes = 0,
  parameter int unsigned Lanes = 4,
  parameter int unsigned UserW = 8,
  parameter bit TableForm = shef_aes_pkg::TABLE_FORM,
  localparam int unsigned NKeys = 16 + NNodes,
  localparam int unsigned KeyW = $clog2(NKeys),
  localparam int unsigned Words = 64 * NRegions + NNodes,
  localparam int unsigned WordW = $clog2(Words)
) (
  input  wire              clk_i,
  input  wire              clear_i,
  input  wire              enable_i,
  input  wire              pw_en_i,
  input  wire  [WordW-1:0] pw_addr_i,
  input  wire  [    511:0] pw_data_i,
  input  wire              lh_en_i,
  input  wire  [ KeyW-1:0] lh_key_i,
  input  wire  [    127:0] lh_data_i,
  input  wire              ld_valid_i,
  input  wire  [    127:0] ld_a_i,
  input  wire  [    127:0] ld_b_i,
  output wire              ld_valid_o,
  output wire  [    127:0] ld_o,
  input  wire              gh_valid_i,
  output wire              gh_ready_o,
  input  wire  [ KeyW-1:0] gh_key_i,
  input  wire  [      1:0] gh_slot_i,
  input  wire              gh_first_i,
  input  wire              gh_last_i,
  input  wire  [      5:0] gh_pow_i,
  input  wire  [    511:0] gh_data_i,
  input  wire  [UserW-1:0] gh_user_i,
  output wire              s_valid_o,
  output wire  [      1:0] s_slot_o,
  output wire  [    127:0] s_o,
  output wire  [UserW-1:0] s_user_o,
  output wire              idle_o
);
  localparam int unsigned Phases = 4 / Lanes;
  localparam int unsigned W = 128 * Lanes;

  typedef struct packed {
    logic load;
    logic [1:0] slot;
    logic first;
    logic last;
    logic [KeyW-1:0] key;
    logic [UserW-1:0] user;
  } tag_t;

  // ---- powers and len*H ----
  logic [511:0] pow_mem[Words];
  logic [511:0] pow_q;
  logic [127:0] lh_mem[NKeys];
  wire accept = gh_valid_i && gh_ready_o;
  logic [10:0] pow_addr;
  if (NNodes == 0) begin : g_no_node
    assign pow_addr = {1'b0, gh_key_i, gh_pow_i};
  end else begin : g_node
    assign pow_addr = gh_key_i[4] ? 11'(64 * NRegions) + {7'd0, gh_key_i[3:0]}
        : {1'b0, gh_key_i[3:0], gh_pow_i};
  end

  always_ff @(posedge clk_i) begin
    if (pw_en_i) pow_mem[pw_addr_i] <= pw_data_i;
    if (clear_i) pow_q <= '0;
    else if (accept) pow_q <= pow_mem[pow_addr[WordW-1:0]];
  end
  if (WordW < 11) begin : g_unused
    wire unused_addr = &{1'b0, pow_addr[10:WordW]};
  end
  always_ff @(posedge clk_i) begin
    if (lh_en_i) lh_mem[lh_key_i] <= lh_data_i;
  end

  // ---- operand stage: holds a beat for all its phases ----
  logic op_valid_q;
  logic op_load_q;
  logic [1:0] phase_q;
  logic [511:0] data_q;
  logic [127:0] ld_b_q;
  tag_t op_tag_q;
  wire op_end = Phases == 1 || phase_q == 2'(Phases - 1) || op_load_q;

  assign gh_ready_o = enable_i && (!op_valid_q || op_end) && !ld_valid_i;

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      op_valid_q <= 1'b0;
      op_load_q <= 1'b0;
      phase_q <= '0;
      data_q <= '0;
      ld_b_q <= '0;
      op_tag_q <= '0;
    end else if (ld_valid_i) begin
      op_valid_q <= 1'b1;
      op_load_q <= 1'b1;
      phase_q <= '0;
      data_q <= {ld_a_i, 384'd0};
      ld_b_q <= ld_b_i;
      op_tag_q <= '{load: 1'b1, slot: 2'd0, first: 1'b1, last: 1'b1, key: '0, user: '0};
    end else if (accept) begin
      op_valid_q <= 1'b1;
      op_load_q <= 1'b0;
      phase_q <= '0;
      data_q <= gh_data_i;
      op_tag_q <= '{load: 1'b0, slot: gh_slot_i, first: gh_first_i, last: gh_last_i, key: gh_key_i,
          user: gh_user_i};
    end else if (op_valid_q) begin
      if (op_end) begin
        op_valid_q <= 1'b0;
        if (op_load_q) begin
          data_q <= '0;
          ld_b_q <= '0;
        end
      end else phase_q <= phase_q + 2'd1;
    end
  end

  logic [W-1:0] op_a;
  logic [W-1:0] op_b;
  tag_t op_tag;
  if (Phases == 1) begin : g_op1
    assign op_a = data_q;
    // the other lanes' operand is zero
    assign op_b = {op_load_q ? ld_b_q : pow_q[511:384], pow_q[383:0]};
    assign op_tag = op_tag_q;
  end else begin : g_op
    // lane 0 is in the top bits: phase 0 takes the top part
    wire [1:0] part = 2'(Phases - 1) - phase_q;
    assign op_a = data_q[W*part+:W];
    always_comb begin
      op_b = pow_q[W*part+:W];
      if (op_load_q) op_b[W-1-:128] = ld_b_q;  // the other lane's operand is zero
    end
    always_comb begin
      op_tag = op_tag_q;
      op_tag.first = op_tag_q.first && phase_q == 2'd0;
      op_tag.last = op_tag_q.last && op_end;
    end
  end

  // ---- multiply ----
  logic mul_valid;
  logic mul_idle;
  logic [254:0] mul_product;
  tag_t mul_tag;
  shef_ghash_mul #(.Lanes(Lanes), .TagW($bits(tag_t)), .TableForm(TableForm)) u_mul (
    .clk_i,
    .clear_i,
    .valid_i(op_valid_q),
    .tag_i(op_tag),
    .a_i(op_a),
    .b_i(op_b),
    .valid_o(mul_valid),
    .tag_o(mul_tag),
    .product_o(mul_product),
    .idle_o(mul_idle)
  );

  // ---- accumulate: one unreduced sum per slot; a finished sum moves on to the reduction ----
  logic [254:0] acc_q[3];
  logic [254:0] sum_q;
  logic sum_valid_q;
  logic sum_load_q;
  logic [1:0] sum_slot_q;
  logic [KeyW-1:0] sum_key_q;
  logic [UserW-1:0] sum_user_q;
  logic [254:0] sum;
  assign sum = mul_tag.first ? mul_product : (acc_q[mul_tag.slot] ^ mul_product);

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      acc_q[0] <= '0;
      acc_q[1] <= '0;
      acc_q[2] <= '0;
      sum_q <= '0;
      sum_valid_q <= 1'b0;
      sum_load_q <= 1'b0;
      sum_slot_q <= '0;
      sum_key_q <= '0;
      sum_user_q <= '0;
    end else begin
      sum_valid_q <= mul_valid && mul_tag.last;
      if (mul_valid) begin
        if (mul_tag.last) begin
          sum_q <= sum;
          sum_load_q <= mul_tag.load;
          sum_slot_q <= mul_tag.slot;
          sum_key_q <= mul_tag.key;
          sum_user_q <= mul_tag.user;
        end else acc_q[mul_tag.slot] <= sum;
      end
    end
  end

  // ---- reduction modulo x^128 + x^7 + x^2 + x + 1 ----
  // Bit 254-k of the sum is the coefficient of x^k.
  function automatic logic [127:0] reduce(input logic [254:0] p);
    logic [127:0] h, o;
    h = {p[126:0], 1'b0};
    o = {h[6:0], 121'd0} ^ {h[1:0], 126'd0};
    return p[254:127] ^ h ^ (h >> 1) ^ (h >> 2) ^ (h >> 7) ^ o ^ (o >> 1) ^ (o >> 2) ^ (o >> 7);
  endfunction

  logic s_valid_q, ld_valid_q;
  logic [1:0] s_slot_q;
  logic [127:0] s_q;
  logic [UserW-1:0] s_user_q;
  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      s_valid_q <= 1'b0;
      ld_valid_q <= 1'b0;
      s_slot_q <= '0;
      s_q <= '0;
      s_user_q <= '0;
    end else begin
      s_valid_q <= sum_valid_q && !sum_load_q;
      ld_valid_q <= sum_valid_q && sum_load_q;
      if (sum_valid_q) begin
        s_q <= reduce(sum_q) ^ (sum_load_q ? 128'd0 : lh_mem[sum_key_q]);
        s_slot_q <= sum_slot_q;
        s_user_q <= sum_user_q;
      end
    end
  end

  assign s_valid_o = s_valid_q;
  assign ld_valid_o = ld_valid_q;
  assign ld_o = s_q;
  assign s_o = s_q;
  assign s_slot_o = s_slot_q;
  assign s_user_o = s_user_q;
  assign idle_o = !op_valid_q && mul_idle && !sum_valid_q && !s_valid_q && !ld_valid_q;
endmodule
`default_nettype wire
