// Scalar multiplication on NIST P-256 in constant time, for the control plane.
//
// Commands (cmd_valid_i/cmd_ready_o; cmd_ready_o high = idle, the last command is complete):
//   0 LOAD_K  1 LOAD_X  2 LOAD_Y   32 bytes, big-endian, on `in`
//   3 MUL          result = k (x, y)       ok_o = result is not the point at infinity
//   4 MUL_G        result = k G            ok_o likewise
//   5 CHECK_POINT  ok_o = x < p, y < p and (x, y) is on the curve; MUL computes nonsense for other
//                  points
//   6 CHECK_K      ok_o = 0 < k < n
//   7 READ_X  8 READ_Y             32 bytes of the last result on `out`, big-endian; repeatable (0
//                                  at infinity)
// Any other command completes at once without effect. k, x, y and the result stay until the next
// load or wipe. ok_o belongs to the last command of 3..6. `in` and `out` are valid/ready byte
// streams without a combinational path between them.
//
// Every command takes the same number of cycles whatever k, x and y are, and accesses the same
// addresses in the same order: one fixed program (shef_p256_pkg), whose only decisions on data are
// operand selections.
// Cycles from acceptance: MUL 219,839, MUL_G 219,807, CHECK_POINT 180, CHECK_K 19, LOAD 160, READ
// 192 (no stalls).
// Structure: 16 registers of 264 bits in a memory of 64 words of 66 bits with two read ports
// (distributed RAM), one 66 x 66 multiplier, product-scanning Montgomery multiplication in 21
// cycles, additions in 5.
// wipe_i (level) clears every register at once and the memory in 64 cycles; cmd_ready_o while
// wipe_i is high reports completion, and the unit accepts no command. Reset does the same.
`default_nettype none
module shef_p256
  import shef_p256_pkg::*;
(
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

  typedef enum logic [2:0] {
    S_SCRUB,
    S_IDLE,
    S_FETCH,
    S_RUN,
    S_BYTES  // LOAD or READ
  } state_e;

  // ---- Montgomery multiplication: the work of each step ----
  // Steps 0..15 read the limbs of one partial product, in the order of the columns i + j; two
  // multiplier stages later (steps 3..18) it is accumulated. Column k of the sum, less its low limb
  // m (k < 4; p = -1 mod 2^66), moves on to column k + 1, and m p adds m 2^30 to column k + 1, m
  // 2^60 to k + 2 and m (2^58 - 2^26) to k + 3.
  localparam logic [1:0] LIMB_A[16] = '{0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 1, 2, 3, 2, 3, 3};
  localparam logic [1:0] LIMB_B[16] = '{0, 1, 0, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 3, 2, 3};
  // bit s: product s is the first of its column
  localparam logic [15:0] COLUMN_FIRST = 16'b1010_0100_0100_1011;
  // first product of columns 1..4: m 2^30 is added
  localparam logic [15:0] ADD_NEAR = 16'b0000_0100_0100_1010;
  localparam logic [15:0] ADD_FAR = 16'b1100_1000_1001_0000;       // the two higher terms are added

  state_e state_q;
  instr_t instr_q;
  logic [7:0] pc_q;
  logic [4:0] step_q;
  logic [6:0] repeat_q;     // of OP_SQUARE
  logic [7:0] bit_q;        // iterations of OP_LOOP, bytes of LOAD and READ
  logic flag_q;
  logic ok_q;
  logic scrubbed_q;
  logic [5:0] scrub_q;

  logic [65:0] file_q[64];

  logic [65:0] factor_a_q, factor_b_q;  // b negated for a subtraction
  logic [65:0] multiple_q;         // of p, for ADD and SUB
  // 4 i + j: 17 bits of factor a from 17 i on, times 17 bits of b from 17 j on
  logic [33:0] part_q[16];
  logic [131:0] product_q;
  logic [135:0] sum_q;
  logic [65:0] near_q, far_q;      // m of the last column but one and the one before
  logic [127:0] reduce_q;          // near_q 2^60 + far_q (2^58 - 2^26)
  logic [1:0] carry_q;             // of ADD, SUB, SUBR
  logic zero_q;                    // of ZERO
  logic [7:0] top_q;               // of ROTATE, LOAD, READ

  assign ok_o = ok_q;
  assign cmd_ready_o = state_q == S_IDLE && (!wipe_i || scrubbed_q);
  assign in_ready_o = state_q == S_BYTES && instr_q.op == OP_LOAD && step_q == 5'd0 && !wipe_i;
  assign out_valid_o = state_q == S_BYTES && instr_q.op == OP_READ && step_q == 5'd1 && !wipe_i;
  assign out_data_o = out_valid_o ? top_q : 8'd0;

  logic multiply, subtract;
  assign multiply = instr_q.op == OP_MUL || instr_q.op == OP_SQUARE;
  assign subtract = instr_q.op == OP_SUB || instr_q.op == OP_SUBR;

  // ---- operands ----
  logic [1:0] limb_a, limb_b, limb_s;
  logic [3:0] reg_a;
  logic [4:0] reg_b;
  logic [65:0] operand_a, operand_b;
  logic shifting;
  assign shifting = instr_q.op == OP_ROTATE || instr_q.op == OP_LOAD || instr_q.op == OP_READ;
  // step of a shifting instruction: 0 takes the incoming bits, 1..4 the limbs; READ has one more
  // step before
  assign limb_s = (instr_q.op == OP_READ) ? 2'(step_q - 5'd2) : 2'(step_q - 5'd1);
  always_comb begin
    limb_a = step_q[1:0];
    limb_b = step_q[1:0];
    if (multiply) begin
      limb_a = LIMB_A[step_q[3:0]];
      limb_b = LIMB_B[step_q[3:0]];
    end else if (shifting) begin
      limb_a = (step_q == 5'd0) ? 2'd3 : limb_s;
    end
    reg_a = instr_q.a;
    reg_b = instr_q.b;
    if (instr_q.op == OP_SQUARE) begin
      if (repeat_q != '0) reg_a = instr_q.d;
      reg_b = {1'b0, reg_a};
    end
  end
  assign operand_a = file_q[{reg_a, limb_a}];
  assign operand_b = reg_b[4] ? CONSTANT[{reg_b[2:0], limb_b}] : file_q[{reg_b[3:0], limb_b}];

  // ---- one limb of an addition or subtraction, a step after its operands were read ----
  // A subtraction adds ~b and one; carry_q then holds the true carry (-1, 0, 1) plus one.
  logic [67:0] add_result;
  logic [1:0] add_carry;
  always_comb begin
    add_carry = (step_q == 5'd1) ? {1'b0, subtract} : carry_q;
    add_result = {2'b00, factor_a_q} + {{2{subtract}}, factor_b_q} + {2'b00, multiple_q} +
        {66'd0, add_carry};
  end

  // ---- write port ----
  logic write_enable;
  logic [5:0] write_address;
  logic [65:0] write_data;
  always_comb begin
    write_enable = 1'b0;
    write_address = {instr_q.d, step_q[1:0]};
    write_data = '0;
    if (state_q == S_SCRUB) begin
      write_enable  = 1'b1;
      write_address = scrub_q;
    end else if (state_q == S_RUN || state_q == S_BYTES) begin
      unique case (instr_q.op)
        OP_MUL, OP_SQUARE: begin
          write_enable = step_q == 5'd16 || step_q >= 5'd18;
          write_data = (step_q == 5'd20) ? sum_q[131:66] : sum_q[65:0];
          unique case (step_q)
            5'd16: write_address[1:0] = 2'd0;
            5'd18: write_address[1:0] = 2'd1;
            5'd19: write_address[1:0] = 2'd2;
            default: write_address[1:0] = 2'd3;
          endcase
        end
        OP_ADD, OP_SUB, OP_SUBR: begin
          write_enable = step_q != 5'd0;
          write_address[1:0] = 2'(step_q - 5'd1);
          write_data = add_result[65:0];
        end
        OP_SELECT: begin
          write_enable = 1'b1;
          write_data   = flag_q ? operand_a : operand_b;
        end
        OP_MOV: begin
          write_enable = 1'b1;
          write_data   = operand_b;
        end
        OP_ROTATE, OP_LOAD, OP_READ: begin
          write_enable = (instr_q.op == OP_READ) ? step_q >= 5'd2 : step_q != 5'd0;
          write_address[1:0] = limb_s;
          write_data = (instr_q.op == OP_ROTATE) ? {operand_a[64:0], top_q[7]}
              : {operand_a[57:0], top_q};
          if (limb_s == 2'd3) write_data[65:58] = '0;  // registers that shift hold 256 bits
        end
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk_i) if (write_enable) file_q[write_address] <= write_data;

  // ---- the multiplier: sixteen small products, then their sum ----
  // Products two apart do not overlap: eight rows to add up.
  logic [67:0] wide_a, wide_b;
  logic [135:0] rows;
  assign wide_a = {2'b00, factor_a_q};
  assign wide_b = {2'b00, factor_b_q};
  always_comb begin
    rows = '0;
    for (int i = 0; i < 4; i++) begin
      rows = rows + (136'({part_q[4*i+2], part_q[4*i]}) << (17 * i)) +
          (136'({part_q[4*i+3], part_q[4*i+1]}) << (17 * i + 17));
    end
  end

  // ---- sequencer ----
  logic last_step;
  always_comb begin
    unique case (instr_q.op)
      OP_MUL: last_step = step_q == 5'd20;
      OP_SQUARE: last_step = step_q == 5'd20 && repeat_q == 7'({instr_q.b, instr_q.c} - 8'd1);
      OP_ROTATE, OP_ADD, OP_SUB, OP_SUBR, OP_ZERO: last_step = step_q == 5'd4;
      OP_OK, OP_OK_NOT, OP_LOOP, OP_JUMP, OP_END: last_step = 1'b1;
      default: last_step = step_q == 5'd3;
    endcase
  end

  function automatic instr_t fetch(input logic [7:0] pc);
    return (pc < 8'(PROGRAM_LENGTH)) ? PROGRAM[pc] : do3(OP_END, R_K, R_K, R_K, 3'd0);
  endfunction

  logic accumulate;
  logic [3:0] product;     // number of the product being accumulated
  assign accumulate = state_q == S_RUN && multiply && step_q >= 5'd3 && step_q <= 5'd18;
  assign product = 4'(step_q - 5'd3);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || (wipe_i && !scrubbed_q && state_q != S_SCRUB)) begin
      state_q <= S_SCRUB;
      instr_q <= '0;
      pc_q <= '0;
      step_q <= '0;
      repeat_q <= '0;
      bit_q <= '0;
      flag_q <= 1'b0;
      ok_q <= 1'b0;
      scrubbed_q <= 1'b0;
      scrub_q <= '0;
      factor_a_q <= '0;
      factor_b_q <= '0;
      multiple_q <= '0;
      for (int i = 0; i < 16; i++) part_q[i] <= '0;
      product_q <= '0;
      sum_q <= '0;
      near_q <= '0;
      far_q <= '0;
      reduce_q <= '0;
      carry_q <= '0;
      zero_q <= 1'b0;
      top_q <= '0;
    end else begin
      if (!wipe_i) scrubbed_q <= 1'b0;
      unique case (state_q)
        S_SCRUB: begin
          scrub_q <= scrub_q + 6'd1;
          if (scrub_q == 6'd63) begin
            state_q <= S_IDLE;
            scrubbed_q <= wipe_i;
          end
        end

        S_IDLE:
        if (cmd_valid_i && !wipe_i) begin
          step_q   <= '0;
          repeat_q <= '0;
          bit_q    <= '0;
          unique case (cmd_i)
            4'd0, 4'd1, 4'd2: begin
              state_q <= S_BYTES;
              instr_q <= do3(OP_LOAD, {1'b0, cmd_i}, {1'b0, cmd_i}, R_K, 3'd0);
            end
            4'd3, 4'd4, 4'd5, 4'd6: begin
              state_q <= S_FETCH;
              ok_q <= 1'b1;
              unique case (cmd_i[1:0])
                2'd3: pc_q <= AT_MUL;
                2'd0: pc_q <= AT_MUL_G;
                2'd1: pc_q <= AT_CHECK_POINT;
                default: pc_q <= AT_CHECK_K;
              endcase
            end
            4'd7, 4'd8: begin
              state_q <= S_BYTES;
              instr_q <= do3(OP_READ, cmd_i[0] ? R_RX : R_RY, cmd_i[0] ? R_RX : R_RY, R_K, 3'd0);
            end
            default: ;
          endcase
        end

        S_FETCH: begin
          state_q <= S_RUN;
          instr_q <= fetch(pc_q);
          pc_q <= pc_q + 8'd1;
        end

        S_RUN: begin
          step_q <= step_q + 5'd1;
          if (last_step) begin
            step_q <= '0;
            repeat_q <= '0;
            instr_q <= fetch(pc_q);
            pc_q <= pc_q + 8'd1;
          end else if (instr_q.op == OP_SQUARE && step_q == 5'd20) begin
            step_q <= '0;
            repeat_q <= repeat_q + 7'd1;
          end
          unique case (instr_q.op)
            OP_MUL, OP_SQUARE: begin
              if (step_q <= 5'd15) begin
                factor_a_q <= operand_a;
                factor_b_q <= operand_b;
              end
              if (step_q <= 5'd16) begin
                for (int i = 0; i < 16; i++)
                  part_q[i] <= {17'd0, wide_a[17*(i/4)+:17]} * {17'd0, wide_b[17*(i%4)+:17]};
              end
              product_q <= rows[131:0];
              if (step_q == 5'd2) begin
                sum_q  <= '0;
                near_q <= '0;
                far_q  <= '0;
              end
              if (accumulate) begin
                sum_q <= (COLUMN_FIRST[product] ? {66'd0, sum_q[135:66]} : sum_q) +
                    {4'd0, product_q}
                         + (ADD_NEAR[product] ? {40'd0, sum_q[65:0], 30'd0} : ADD_FAR[product]
                         ? {8'd0, reduce_q} : '0);
                reduce_q <= {2'd0, near_q, 60'd0} + {4'd0, far_q, 58'd0} - {36'd0, far_q, 26'd0};
                if (COLUMN_FIRST[product]) begin
                  near_q <= ADD_NEAR[product] ? sum_q[65:0] : '0;
                  far_q  <= near_q;
                end
              end
            end
            OP_ADD, OP_SUB, OP_SUBR: begin
              factor_a_q <= operand_a;
              factor_b_q <= operand_b ^ {66{subtract}};
              multiple_q <= MULTIPLE[{instr_q.c, step_q[1:0]}];
              carry_q <= add_result[67:66] + {1'b0, subtract};
              if (instr_q.op == OP_SUBR && step_q != 5'd0) flag_q <= add_result[67];
            end
            OP_ROTATE:
            if (step_q == 5'd0) begin
              top_q  <= operand_a[57:50];
              flag_q <= operand_a[57];
            end else begin
              top_q <= {operand_a[65], 7'd0};
            end
            OP_ZERO: begin
              factor_a_q <= operand_a;
              zero_q <= step_q == 5'd0 || (zero_q && factor_a_q == '0);
              if (step_q != 5'd0) flag_q <= zero_q && factor_a_q == '0;
            end
            OP_OK: ok_q <= ok_q && flag_q;
            OP_OK_NOT: ok_q <= ok_q && !flag_q;
            OP_LOOP: begin
              bit_q <= bit_q + 8'd1;
              if (bit_q != 8'd255) begin
                state_q <= S_FETCH;
                pc_q <= {instr_q.b, instr_q.c};
              end
            end
            OP_JUMP: begin
              state_q <= S_FETCH;
              pc_q <= {instr_q.b, instr_q.c};
            end
            OP_END: state_q <= S_IDLE;
            default: ;
          endcase
        end

        // LOAD: take a byte, shift the four limbs. READ: take the top byte, output it, shift it in
        // at the bottom.
        S_BYTES: begin
          if (instr_q.op == OP_LOAD) begin
            if (step_q != 5'd0 || in_valid_i) step_q <= (step_q == 5'd4) ? 5'd0 : step_q + 5'd1;
            if (step_q == 5'd0) top_q <= in_data_i;
          end else begin
            if (step_q != 5'd1 || out_ready_i) step_q <= (step_q == 5'd5) ? 5'd0 : step_q + 5'd1;
            if (step_q == 5'd0) top_q <= operand_a[57:50];
          end
          if (step_q >= 5'd2 || (instr_q.op == OP_LOAD && step_q == 5'd1))
            top_q <= operand_a[65:58];
          if (step_q == ((instr_q.op == OP_LOAD) ? 5'd4 : 5'd5)) begin
            bit_q <= bit_q + 8'd1;
            if (bit_q == 8'd31) begin
              state_q <= S_IDLE;
              top_q   <= '0;
            end
          end
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
        assert (file_q[i] == '0) else $error("word %0d survives a wipe", i);
    end
  end
`endif

  logic unused;
  assign unused = ^{len_i, rows[135:132]};

endmodule
`default_nettype wire
