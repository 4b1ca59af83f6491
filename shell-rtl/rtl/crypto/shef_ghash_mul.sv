// Sum of Lanes carry-less 128 x 128 products, not reduced, in three register stages: operands (of
// the leaves, where that is faster to simulate), leaf products (summed over the lanes inside the
// leaves), recombination.
//
// No handshake, no back-pressure: product_o belongs to the operands of three cycles before; valid_o
// indicates that their valid_i was high. first/last/slot/tag accompany them. A stage without valid
// input does nothing. clear_i zeroes all registers.
//
// TableForm 1: Karatsuba down to 32 bits, leaves by integer multiplication with holes (fast in
// simulation).
// TableForm 0: Karatsuba down to 8 bits, leaves by AND and XOR (synthesis). Both give the same
// bits.
`default_nettype none
module shef_ghash_mul #(
  parameter int unsigned Lanes = 4,
  parameter int unsigned TagW = 8,
  parameter bit TableForm = shef_aes_pkg::TABLE_FORM
) (
  input  wire                  clk_i,
  input  wire                  clear_i,
  input  wire                  valid_i,
  input  wire  [     TagW-1:0] tag_i,
  input  wire  [128*Lanes-1:0] a_i,
  input  wire  [128*Lanes-1:0] b_i,
  output wire                  valid_o,
  output wire  [     TagW-1:0] tag_o,
  output wire  [        254:0] product_o,
  output wire                  idle_o
);
  logic [2:0] valid_q;
  logic [TagW-1:0] tag_q[3];

  always_ff @(posedge clk_i) begin
    if (clear_i) valid_q <= '0;
    else valid_q <= {valid_q[1:0], valid_i};
    if (valid_i) tag_q[0] <= tag_i;
    if (valid_q[0]) tag_q[1] <= tag_q[0];
    if (valid_q[1]) tag_q[2] <= tag_q[1];
  end

  logic [255:0] product_q;

  if (TableForm) begin : g_table
    // A 32 x 32 carry-less product: operands with three holes between their bits, so that the sums
    // of an integer product stay inside four bits, of which the lowest is the parity.
    function automatic logic [63:0] clmul32(input logic [31:0] x, input logic [31:0] y);
      logic [63:0] x0, x1, x2, x3, y0, y1, y2, y3, z0, z1, z2, z3;
      x0 = {32'd0, x & 32'h1111_1111};
      x1 = {32'd0, x & 32'h2222_2222};
      x2 = {32'd0, x & 32'h4444_4444};
      x3 = {32'd0, x & 32'h8888_8888};
      y0 = {32'd0, y & 32'h1111_1111};
      y1 = {32'd0, y & 32'h2222_2222};
      y2 = {32'd0, y & 32'h4444_4444};
      y3 = {32'd0, y & 32'h8888_8888};
      z0 = (x0 * y0) ^ (x1 * y3) ^ (x2 * y2) ^ (x3 * y1);
      z1 = (x0 * y1) ^ (x1 * y0) ^ (x2 * y3) ^ (x3 * y2);
      z2 = (x0 * y2) ^ (x1 * y1) ^ (x2 * y0) ^ (x3 * y3);
      z3 = (x0 * y3) ^ (x1 * y2) ^ (x2 * y1) ^ (x3 * y0);
      return (z0 & 64'h1111_1111_1111_1111) | (z1 & 64'h2222_2222_2222_2222) |
          (z2 & 64'h4444_4444_4444_4444)
          | (z3 & 64'h8888_8888_8888_8888);
    endfunction

    // Nine leaf operands of 32 bits: {low, high, low^high} of {low, high, low^high}; WORDS selects
    // the words of the operand. Separate registers, not arrays: faster in simulation.
    localparam logic [8:0][3:0] WORDS = {4'hf, 4'ha, 4'h5, 4'hc, 4'h8, 4'h4, 4'h3, 4'h2, 4'h1};

    for (genvar k = 0; k < 9; k++) begin : g_leaf
      for (genvar l = 0; l < Lanes; l++) begin : g_lane
        logic [31:0] a_q;
        logic [31:0] b_q;
        always_ff @(posedge clk_i) begin
          if (clear_i) begin
            a_q <= '0;
            b_q <= '0;
          end else if (valid_i) begin
            a_q <= (WORDS[k][0] ? a_i[128*l+:32] : 32'd0) ^
                (WORDS[k][1] ? a_i[128*l+32+:32] : 32'd0)
                ^ (WORDS[k][2] ? a_i[128*l+64+:32] : 32'd0) ^
                    (WORDS[k][3] ? a_i[128*l+96+:32] : 32'd0);
            b_q <= (WORDS[k][0] ? b_i[128*l+:32] : 32'd0) ^
                (WORDS[k][1] ? b_i[128*l+32+:32] : 32'd0)
                ^ (WORDS[k][2] ? b_i[128*l+64+:32] : 32'd0) ^
                    (WORDS[k][3] ? b_i[128*l+96+:32] : 32'd0);
          end
        end
      end
      logic [63:0] p_q;
      if (Lanes == 4) begin : g_l4
        always_ff @(posedge clk_i) begin
          if (clear_i) p_q <= '0;
          else if (valid_q[0]) begin
            p_q <= clmul32(g_lane[0].a_q, g_lane[0].b_q) ^
                clmul32(g_lane[1].a_q, g_lane[1].b_q)
                ^ clmul32(g_lane[2].a_q, g_lane[2].b_q) ^
                    clmul32(g_lane[3].a_q, g_lane[3].b_q);
          end
        end
      end else if (Lanes == 2) begin : g_l2
        always_ff @(posedge clk_i) begin
          if (clear_i) p_q <= '0;
          else if (valid_q[0]) begin
            p_q <= clmul32(g_lane[0].a_q, g_lane[0].b_q) ^
                clmul32(g_lane[1].a_q, g_lane[1].b_q);
          end
        end
      end else begin : g_l1
        always_ff @(posedge clk_i) begin
          if (clear_i) p_q <= '0;
          else if (valid_q[0]) p_q <= clmul32(g_lane[0].a_q, g_lane[0].b_q);
        end
      end
    end

    function automatic logic [127:0] join64(input logic [63:0] lo, input logic [63:0] hi,
        input logic [63:0] mid);
      logic [63:0] m;
      m = lo ^ hi ^ mid;
      return {hi ^ {32'd0, m[63:32]}, lo ^ {m[31:0], 32'd0}};
    endfunction

    always_ff @(posedge clk_i) begin
      if (clear_i) product_q <= '0;
      else if (valid_q[1]) begin
        product_q <= {
          join64(g_leaf[3].p_q, g_leaf[4].p_q, g_leaf[5].p_q),
          join64(g_leaf[0].p_q, g_leaf[1].p_q, g_leaf[2].p_q)
        } ^ {
          64'd0,
          join64(
            g_leaf[0].p_q ^ g_leaf[3].p_q ^ g_leaf[6].p_q,
            g_leaf[1].p_q ^ g_leaf[4].p_q ^ g_leaf[7].p_q,
            g_leaf[2].p_q ^ g_leaf[5].p_q ^ g_leaf[8].p_q
          ),
          64'd0
        };
      end
    end
  end else begin : g_logic
    function automatic logic [14:0] clmul8(input logic [7:0] x, input logic [7:0] y);
      logic [14:0] z;
      z = '0;
      for (int i = 0; i < 8; i++) z = z ^ (y[i] ? 15'(x) << i : 15'd0);
      return z;
    endfunction

    // Operands one level down: part 3*i + k takes {low, high, low^high} of part i by k. Two levels
    // are before the registers, two after them.
    function automatic logic [8:0][31:0] parts32(input logic [127:0] x);
      logic [2:0][63:0] x64;
      logic [8:0][31:0] y;
      x64 = {x[127:64] ^ x[63:0], x[127:64], x[63:0]};
      for (int i = 0; i < 3; i++) begin
        y[3*i] = x64[i][31:0];
        y[3*i+1] = x64[i][63:32];
        y[3*i+2] = x64[i][63:32] ^ x64[i][31:0];
      end
      return y;
    endfunction
    function automatic logic [80:0][7:0] leaves(input logic [8:0][31:0] x);
      logic [2:0][15:0] x16;
      logic [80:0][7:0] y;
      for (int i = 0; i < 9; i++) begin
        x16 = {x[i][31:16] ^ x[i][15:0], x[i][31:16], x[i][15:0]};
        for (int k = 0; k < 3; k++) begin
          y[9*i+3*k] = x16[k][7:0];
          y[9*i+3*k+1] = x16[k][15:8];
          y[9*i+3*k+2] = x16[k][15:8] ^ x16[k][7:0];
        end
      end
      return y;
    endfunction

    logic [8:0][31:0] a_q[Lanes];
    logic [8:0][31:0] b_q[Lanes];
    logic [80:0][14:0] p_d;
    logic [80:0][14:0] p_q;

    always_comb begin
      logic [80:0][7:0] al, bl;
      p_d = '0;
      for (int l = 0; l < Lanes; l++) begin
        al = leaves(a_q[l]);
        bl = leaves(b_q[l]);
        for (int k = 0; k < 81; k++) p_d[k] = p_d[k] ^ clmul8(al[k], bl[k]);
      end
    end

    always_ff @(posedge clk_i) begin
      if (clear_i) begin
        for (int l = 0; l < Lanes; l++) begin
          a_q[l] <= '0;
          b_q[l] <= '0;
        end
        p_q <= '0;
      end else begin
        if (valid_i) begin
          for (int l = 0; l < Lanes; l++) begin
            a_q[l] <= parts32(a_i[128*l+:128]);
            b_q[l] <= parts32(b_i[128*l+:128]);
          end
        end
        if (valid_q[0]) p_q <= p_d;
      end
    end

    function automatic logic [30:0] join8(input logic [14:0] lo, input logic [14:0] hi,
        input logic [14:0] mid);
      return {hi, 1'b0, lo} ^ {8'd0, lo ^ hi ^ mid, 8'd0};
    endfunction
    function automatic logic [62:0] join16(input logic [30:0] lo, input logic [30:0] hi,
        input logic [30:0] mid);
      return {hi, 1'b0, lo} ^ {16'd0, lo ^ hi ^ mid, 16'd0};
    endfunction
    function automatic logic [126:0] join32(input logic [62:0] lo, input logic [62:0] hi,
        input logic [62:0] mid);
      return {hi, 1'b0, lo} ^ {32'd0, lo ^ hi ^ mid, 32'd0};
    endfunction
    function automatic logic [254:0] join64(input logic [126:0] lo, input logic [126:0] hi,
        input logic [126:0] mid);
      return {hi, 1'b0, lo} ^ {64'd0, lo ^ hi ^ mid, 64'd0};
    endfunction

    logic [26:0][30:0] p16;
    logic [8:0][62:0] p32;
    logic [2:0][126:0] p64;
    always_comb begin
      for (int k = 0; k < 27; k++) p16[k] = join8(p_q[3*k], p_q[3*k+1], p_q[3*k+2]);
      for (int k = 0; k < 9; k++) p32[k] = join16(p16[3*k], p16[3*k+1], p16[3*k+2]);
      for (int k = 0; k < 3; k++) p64[k] = join32(p32[3*k], p32[3*k+1], p32[3*k+2]);
    end

    always_ff @(posedge clk_i) begin
      if (clear_i) product_q <= '0;
      else if (valid_q[1]) product_q <= {1'b0, join64(p64[0], p64[1], p64[2])};
    end
  end

  wire unused_top = product_q[255];
  assign product_o = product_q[254:0];
  assign valid_o = valid_q[2];
  assign tag_o = tag_q[2];
  assign idle_o = valid_q == '0;
endmodule
`default_nettype wire
