// Microcode and constants of shef_p256.
//
// Numbers are 264 bits wide: four limbs of 66 bits, limb 0 lowest; Montgomery form is x R mod p
// with R = 2^264. Additions and subtractions do not reduce: a product of values below A p and B p
// is below (1 + A B / 256) p, and along this program no value reaches 34 p (the constants of OP_SUB
// are the smallest powers of two above the subtrahend's bound), far below the 256 p that fit.
// Between iterations X < 3.5 p, Y < 5.5 p, Z < 4.1 p.
// Point formulas: Renes, Costello, Batina 2015 (eprint 2015/1060), algorithms 4 and 6, complete for
// a = -3 and odd order.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_p256_pkg;

  typedef enum logic [3:0] {
    OP_MUL = 4'd0,  // d = a b / 2^264 mod p (Montgomery)
    OP_ADD = 4'd1,  // d = a + b
    OP_SUB = 4'd2,  // d = a - b + 2^c p
    OP_SUBR = 4'd3,  // d = a - b modulo 2^264, flag = borrow
    OP_SELECT = 4'd4,  // d = flag ? a : b
    OP_MOV = 4'd5,  // d = b
    OP_SQUARE = 4'd6,  // d = a^(2^n) (n Montgomery squarings), n = {b, c}
    OP_ROTATE = 4'd7,  // d = 256-bit a rotated left by one, flag = its old top bit
    OP_ZERO = 4'd8,  // flag = (a == 0)
    OP_OK = 4'd9,  // ok = ok and flag
    OP_OK_NOT = 4'd10,  // ok = ok and not flag
    OP_LOOP = 4'd11,  // go to {b, c}, 255 times
    OP_JUMP = 4'd12,  // go to {b, c}
    OP_END = 4'd13,  // command complete
    OP_LOAD = 4'd14,  // not in programs: shift bytes in
    OP_READ = 4'd15   // not in programs: rotate bytes out
  } op_e;

  typedef struct packed {
    op_e op;
    logic [3:0] d;
    logic [3:0] a;
    logic [4:0] b;  // 0..15 register, 16..23 constant
    logic [2:0] c;
  } instr_t;

  // registers
  localparam logic [4:0] R_K = 5'd0;
  localparam logic [4:0] R_PX = 5'd1;
  localparam logic [4:0] R_PY = 5'd2;
  localparam logic [4:0] R_QX = 5'd3;
  localparam logic [4:0] R_QY = 5'd4;
  localparam logic [4:0] R_RX = 5'd5;
  localparam logic [4:0] R_RY = 5'd6;
  localparam logic [4:0] R_RZ = 5'd7;
  localparam logic [4:0] R_AX = 5'd8;
  localparam logic [4:0] R_AY = 5'd9;
  localparam logic [4:0] R_AZ = 5'd10;
  localparam logic [4:0] R_T0 = 5'd11;
  localparam logic [4:0] R_T1 = 5'd12;
  localparam logic [4:0] R_T2 = 5'd13;
  localparam logic [4:0] R_T3 = 5'd14;
  localparam logic [4:0] R_T4 = 5'd15;

  // constants, second operand only
  localparam logic [4:0] C_ONE = 5'd16;
  localparam logic [4:0] C_MONT_ONE = 5'd17;
  localparam logic [4:0] C_MONT_R2 = 5'd18;
  localparam logic [4:0] C_MONT_B = 5'd19;
  localparam logic [4:0] C_MONT_GX = 5'd20;
  localparam logic [4:0] C_MONT_GY = 5'd21;
  localparam logic [4:0] C_P = 5'd22;
  localparam logic [4:0] C_N = 5'd23;

  localparam logic [65:0] CONSTANT[32] = '{
      // 1
      66'h00000000000000001, 66'h00000000000000000,
      66'h00000000000000000, 66'h00000000000000000,
      // R
      66'h00000000000000100, 66'h3ffffffc000000000,
      66'h3ffffffffffffffff, 66'h000000003fffffffb,
      // R^2
      66'h00000000000030000, 66'h3fffeffffffffc000,
      66'h3ffffffffffffefff, 66'h0000013fffffff7ff,
      // b R
      66'h09cdf6229c4bddfdc, 66'h33c017327210c2436,
      66'h09a220abf7212ed6a, 66'h000c01877821d20d0,
      // x(G) R
      66'h1e730d418a9143c18, 66'h16ea57f11fb6d805e,
      66'h21fb732b776225107, 66'h002417ddaf4dd5719,
      // y(G) R
      66'h1f25357ce95560a85, 66'h2d2ae390d46791737,
      66'h0de88688dd21f3258, 66'h001c7fc62aa217615,
      // p
      66'h3ffffffffffffffff, 66'h0000000003fffffff,
      66'h01000000000000000, 66'h003fffffffc000000,
      // n
      66'h0f3b9cac2fc632551, 66'h3ef39beab69c5e7a1, 66'h00fffffffffffffff, 66'h003fffffffc000000
  };

  // 2^c p for OP_SUB
  localparam logic [65:0] MULTIPLE[32] = '{
      // 0
      66'h00000000000000000, 66'h00000000000000000,
      66'h00000000000000000, 66'h00000000000000000,
      // 2 p
      66'h3fffffffffffffffe, 66'h0000000007fffffff,
      66'h02000000000000000, 66'h007fffffff8000000,
      // 4 p
      66'h3fffffffffffffffc, 66'h000000000ffffffff,
      66'h04000000000000000, 66'h00ffffffff0000000,
      // 8 p
      66'h3fffffffffffffff8, 66'h000000001ffffffff,
      66'h08000000000000000, 66'h01fffffffe0000000,
      // 16 p
      66'h3fffffffffffffff0, 66'h000000003ffffffff,
      66'h10000000000000000, 66'h03fffffffc0000000,
      // 32 p
      66'h3ffffffffffffffe0, 66'h000000007ffffffff,
      66'h20000000000000000, 66'h07fffffff80000000,
      66'd0, 66'd0, 66'd0, 66'd0,
      66'd0, 66'd0, 66'd0, 66'd0
  };

  // Registers are below 16: the top bit of d and a is always 0.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic instr_t do3(input op_e op, input logic [4:0] d, input logic [4:0] a,
      input logic [4:0] b,
                                 input logic [2:0] c);
    return '{op: op, d: d[3:0], a: a[3:0], b: b, c: c};
  endfunction

  function automatic instr_t square(input logic [4:0] d, input logic [4:0] a, input logic [7:0] n);
    return '{op: OP_SQUARE, d: d[3:0], a: a[3:0], b: n[7:3], c: n[2:0]};
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  function automatic instr_t jump(input op_e op, input logic [7:0] target);
    return '{op: op, d: 4'd0, a: 4'd0, b: target[7:3], c: target[2:0]};
  endfunction

  // entry points and jump targets
  localparam logic [7:0] AT_MUL_G = 8'd0;
  localparam logic [7:0] AT_MUL = 8'd3;
  localparam logic [7:0] AT_SCALE = 8'd5;
  localparam logic [7:0] AT_BIT = 8'd8;
  localparam logic [7:0] AT_CHECK_POINT = 8'd129;
  localparam logic [7:0] AT_CHECK_K = 8'd149;

  localparam int unsigned PROGRAM_LENGTH = 155;
  localparam instr_t PROGRAM[PROGRAM_LENGTH] = '{
      // MUL_G
      do3(OP_MOV, R_QX, R_K, C_MONT_GX, 3'd0),  // Q = G
      do3(OP_MOV, R_QY, R_K, C_MONT_GY, 3'd0),
      jump(OP_JUMP, AT_SCALE),
      // MUL
      do3(OP_MUL, R_QX, R_PX, C_MONT_R2, 3'd0),  // Q = P in Montgomery form
      do3(OP_MUL, R_QY, R_PY, C_MONT_R2, 3'd0),
      // SCALE
      do3(OP_SUBR, R_RX, R_RX, R_RX, 3'd0),  // R = infinity = (0 : 1 : 0)
      do3(OP_MOV, R_RY, R_K, C_MONT_ONE, 3'd0),
      do3(OP_SUBR, R_RZ, R_RZ, R_RZ, 3'd0),
      // BIT
      do3(OP_MUL, R_T0, R_RX, R_RX, 3'd0),  // R -> A = 2 R
      do3(OP_MUL, R_T1, R_RY, R_RY, 3'd0),
      do3(OP_MUL, R_T2, R_RZ, R_RZ, 3'd0),
      do3(OP_MUL, R_T3, R_RX, R_RY, 3'd0),
      do3(OP_ADD, R_T3, R_T3, R_T3, 3'd0),
      do3(OP_MUL, R_AZ, R_RX, R_RZ, 3'd0),
      do3(OP_ADD, R_AZ, R_AZ, R_AZ, 3'd0),
      do3(OP_MUL, R_AY, R_T2, C_MONT_B, 3'd0),
      do3(OP_SUB, R_AY, R_AY, R_AZ, 3'd2),
      do3(OP_ADD, R_AX, R_AY, R_AY, 3'd0),
      do3(OP_ADD, R_AY, R_AX, R_AY, 3'd0),
      do3(OP_SUB, R_AX, R_T1, R_AY, 3'd4),
      do3(OP_ADD, R_AY, R_T1, R_AY, 3'd0),
      do3(OP_MUL, R_AY, R_AX, R_AY, 3'd0),
      do3(OP_MUL, R_AX, R_AX, R_T3, 3'd0),
      do3(OP_ADD, R_T3, R_T2, R_T2, 3'd0),
      do3(OP_ADD, R_T2, R_T2, R_T3, 3'd0),
      do3(OP_MUL, R_AZ, R_AZ, C_MONT_B, 3'd0),
      do3(OP_SUB, R_AZ, R_AZ, R_T2, 3'd2),
      do3(OP_SUB, R_AZ, R_AZ, R_T0, 3'd1),
      do3(OP_ADD, R_T3, R_AZ, R_AZ, 3'd0),
      do3(OP_ADD, R_AZ, R_AZ, R_T3, 3'd0),
      do3(OP_ADD, R_T3, R_T0, R_T0, 3'd0),
      do3(OP_ADD, R_T0, R_T3, R_T0, 3'd0),
      do3(OP_SUB, R_T0, R_T0, R_T2, 3'd2),
      do3(OP_MUL, R_T0, R_T0, R_AZ, 3'd0),
      do3(OP_ADD, R_AY, R_AY, R_T0, 3'd0),
      do3(OP_MUL, R_T0, R_RY, R_RZ, 3'd0),
      do3(OP_ADD, R_T0, R_T0, R_T0, 3'd0),
      do3(OP_MUL, R_AZ, R_T0, R_AZ, 3'd0),
      do3(OP_SUB, R_AX, R_AX, R_AZ, 3'd1),
      do3(OP_MUL, R_AZ, R_T0, R_T1, 3'd0),
      do3(OP_ADD, R_AZ, R_AZ, R_AZ, 3'd0),
      do3(OP_ADD, R_AZ, R_AZ, R_AZ, 3'd0),
      do3(OP_MUL, R_T0, R_AX, R_QX, 3'd0),  // A + Q -> R
      do3(OP_MUL, R_T1, R_AY, R_QY, 3'd0),
      do3(OP_MUL, R_T2, R_AZ, C_MONT_ONE, 3'd0),
      do3(OP_ADD, R_T3, R_AX, R_AY, 3'd0),
      do3(OP_ADD, R_T4, R_QX, R_QY, 3'd0),
      do3(OP_MUL, R_T3, R_T3, R_T4, 3'd0),
      do3(OP_ADD, R_T4, R_T0, R_T1, 3'd0),
      do3(OP_SUB, R_T3, R_T3, R_T4, 3'd2),
      do3(OP_ADD, R_T4, R_AY, R_AZ, 3'd0),
      do3(OP_ADD, R_RX, R_QY, C_MONT_ONE, 3'd0),
      do3(OP_MUL, R_T4, R_T4, R_RX, 3'd0),
      do3(OP_ADD, R_RX, R_T1, R_T2, 3'd0),
      do3(OP_SUB, R_T4, R_T4, R_RX, 3'd2),
      do3(OP_ADD, R_RX, R_AX, R_AZ, 3'd0),
      do3(OP_ADD, R_RY, R_QX, C_MONT_ONE, 3'd0),
      do3(OP_MUL, R_RX, R_RX, R_RY, 3'd0),
      do3(OP_ADD, R_RY, R_T0, R_T2, 3'd0),
      do3(OP_SUB, R_RY, R_RX, R_RY, 3'd2),
      do3(OP_MUL, R_RZ, R_T2, C_MONT_B, 3'd0),
      do3(OP_SUB, R_RX, R_RY, R_RZ, 3'd1),
      do3(OP_ADD, R_RZ, R_RX, R_RX, 3'd0),
      do3(OP_ADD, R_RX, R_RX, R_RZ, 3'd0),
      do3(OP_SUB, R_RZ, R_T1, R_RX, 3'd5),
      do3(OP_ADD, R_RX, R_T1, R_RX, 3'd0),
      do3(OP_MUL, R_RY, R_RY, C_MONT_B, 3'd0),
      do3(OP_ADD, R_T1, R_T2, R_T2, 3'd0),
      do3(OP_ADD, R_T2, R_T1, R_T2, 3'd0),
      do3(OP_SUB, R_RY, R_RY, R_T2, 3'd2),
      do3(OP_SUB, R_RY, R_RY, R_T0, 3'd1),
      do3(OP_ADD, R_T1, R_RY, R_RY, 3'd0),
      do3(OP_ADD, R_RY, R_T1, R_RY, 3'd0),
      do3(OP_ADD, R_T1, R_T0, R_T0, 3'd0),
      do3(OP_ADD, R_T0, R_T1, R_T0, 3'd0),
      do3(OP_SUB, R_T0, R_T0, R_T2, 3'd2),
      do3(OP_MUL, R_T1, R_T4, R_RY, 3'd0),
      do3(OP_MUL, R_T2, R_T0, R_RY, 3'd0),
      do3(OP_MUL, R_RY, R_RX, R_RZ, 3'd0),
      do3(OP_ADD, R_RY, R_RY, R_T2, 3'd0),
      do3(OP_MUL, R_RX, R_T3, R_RX, 3'd0),
      do3(OP_SUB, R_RX, R_RX, R_T1, 3'd1),
      do3(OP_MUL, R_RZ, R_T4, R_RZ, 3'd0),
      do3(OP_MUL, R_T1, R_T3, R_T0, 3'd0),
      do3(OP_ADD, R_RZ, R_RZ, R_T1, 3'd0),
      do3(OP_ROTATE, R_K, R_K, R_K, 3'd0),  // flag = next bit of k, from the top
      do3(OP_SELECT, R_RX, R_RX, R_AX, 3'd0),  // R = bit ? A + Q : A
      do3(OP_SELECT, R_RY, R_RY, R_AY, 3'd0),
      do3(OP_SELECT, R_RZ, R_RZ, R_AZ, 3'd0),
      jump(OP_LOOP, AT_BIT),
      square(R_T0, R_RZ, 8'd1),  // T3 = Z^(p - 2); Tn holds Z^(2^k - 1), k as noted
      do3(OP_MUL, R_T0, R_T0, R_RZ, 3'd0),  // T0: 2
      square(R_T1, R_T0, 8'd1),
      do3(OP_MUL, R_T1, R_T1, R_RZ, 3'd0),  // T1: 3
      square(R_T2, R_T1, 8'd3),
      do3(OP_MUL, R_T2, R_T2, R_T1, 3'd0),  // T2: 6
      square(R_T3, R_T2, 8'd6),
      do3(OP_MUL, R_T2, R_T3, R_T2, 3'd0),  // T2: 12
      square(R_T2, R_T2, 8'd3),
      do3(OP_MUL, R_T1, R_T2, R_T1, 3'd0),  // T1: 15
      square(R_T2, R_T1, 8'd15),
      do3(OP_MUL, R_T1, R_T2, R_T1, 3'd0),  // T1: 30
      square(R_T2, R_T1, 8'd2),
      do3(OP_MUL, R_T0, R_T2, R_T0, 3'd0),  // T0: 32
      square(R_T3, R_T0, 8'd32),  // ffffffff 00000001
      do3(OP_MUL, R_T3, R_T3, R_RZ, 3'd0),
      square(R_T3, R_T3, 8'd128),  // 00000000 00000000 00000000 ffffffff
      do3(OP_MUL, R_T3, R_T3, R_T0, 3'd0),
      square(R_T3, R_T3, 8'd32),  // ffffffff
      do3(OP_MUL, R_T3, R_T3, R_T0, 3'd0),
      square(R_T3, R_T3, 8'd30),  // fffffffd
      do3(OP_MUL, R_T3, R_T3, R_T1, 3'd0),
      square(R_T3, R_T3, 8'd2),
      do3(OP_MUL, R_T3, R_T3, R_RZ, 3'd0),
      do3(OP_MUL, R_RX, R_RX, R_T3, 3'd0),  // affine, out of Montgomery form, below p
      do3(OP_MUL, R_RX, R_RX, C_ONE, 3'd0),
      do3(OP_SUBR, R_T0, R_RX, C_P, 3'd0),
      do3(OP_SELECT, R_RX, R_RX, R_T0, 3'd0),
      do3(OP_MUL, R_RY, R_RY, R_T3, 3'd0),
      do3(OP_MUL, R_RY, R_RY, C_ONE, 3'd0),
      do3(OP_SUBR, R_T0, R_RY, C_P, 3'd0),
      do3(OP_SELECT, R_RY, R_RY, R_T0, 3'd0),
      do3(OP_MUL, R_T4, R_RZ, R_T3, 3'd0),  // ok = Z Z^-1 is not 0
      do3(OP_MUL, R_T4, R_T4, C_ONE, 3'd0),
      do3(OP_SUBR, R_T0, R_T4, C_P, 3'd0),
      do3(OP_SELECT, R_T4, R_T4, R_T0, 3'd0),
      do3(OP_ZERO, R_K, R_T4, R_K, 3'd0),
      do3(OP_OK_NOT, R_K, R_K, R_K, 3'd0),
      do3(OP_END, R_K, R_K, R_K, 3'd0),
      // CHECK_POINT
      do3(OP_SUBR, R_T0, R_PX, C_P, 3'd0),  // coordinates below p
      do3(OP_OK, R_K, R_K, R_K, 3'd0),
      do3(OP_SUBR, R_T0, R_PY, C_P, 3'd0),
      do3(OP_OK, R_K, R_K, R_K, 3'd0),
      do3(OP_MUL, R_T0, R_PX, C_MONT_R2, 3'd0),  // x^3 - 3 x + b - y^2 = 0
      do3(OP_MUL, R_T1, R_PY, C_MONT_R2, 3'd0),
      do3(OP_MUL, R_T1, R_T1, R_T1, 3'd0),
      do3(OP_MUL, R_T2, R_T0, R_T0, 3'd0),
      do3(OP_MUL, R_T2, R_T2, R_T0, 3'd0),
      do3(OP_ADD, R_T3, R_T0, R_T0, 3'd0),
      do3(OP_ADD, R_T3, R_T3, R_T0, 3'd0),
      do3(OP_SUB, R_T2, R_T2, R_T3, 3'd2),
      do3(OP_ADD, R_T2, R_T2, C_MONT_B, 3'd0),
      do3(OP_SUB, R_T2, R_T2, R_T1, 3'd1),
      do3(OP_MUL, R_T2, R_T2, C_ONE, 3'd0),
      do3(OP_SUBR, R_T3, R_T2, C_P, 3'd0),
      do3(OP_SELECT, R_T2, R_T2, R_T3, 3'd0),
      do3(OP_ZERO, R_K, R_T2, R_K, 3'd0),
      do3(OP_OK, R_K, R_K, R_K, 3'd0),
      do3(OP_END, R_K, R_K, R_K, 3'd0),
      // CHECK_K
      do3(OP_SUBR, R_T0, R_K, C_N, 3'd0),  // 0 < k < n
      do3(OP_OK, R_K, R_K, R_K, 3'd0),
      do3(OP_ZERO, R_K, R_K, R_K, 3'd0),
      do3(OP_OK_NOT, R_K, R_K, R_K, 3'd0),
      do3(OP_SUBR, R_T0, R_T0, R_T0, 3'd0),  // T0 holds no trace of k
      do3(OP_END, R_K, R_K, R_K, 3'd0)
  };

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
