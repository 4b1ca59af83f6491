// From sums to the lines of a layer's outputs: biases, scaling to int8, pooling, class of an image.
//
// Layers 0 to 3: (sum + bias + half) >> shift, limited to 0..127. Layer 0 gives three lines for
// each pooled row, with those of two channels each; layers 1 to 3 vectors of 16 bytes, four in a
// line. Layer 4: the sums with biases of ten lanes, and the number of the largest (the first one,
// if several are equal) behind them. Lines: valid/ready. en_o is low while an output waits for a
// line.
`default_nettype none
module shef_lenet_post
  import shef_lenet_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          begin_i,
    input  wire layer_t  layer_i,
    input  wire    [4:0] shift_i,
    output wire          en_o,
    input  wire step_t   sum_i,
    input  wire [LANES-1:0][31:0] sums_i,
    output wire    [2:0] group_o,
    input  wire [LANES-1:0][15:0] biases_i,

    output wire          line_valid_o,
    input  wire          line_ready_i,
    output wire  [511:0] line_o
);
  localparam int unsigned CHANNELS = 6;   // of layer 0
  localparam int unsigned CLASSES = 10;
  wire pairs = layer_i == 3'd0;
  wire classes = layer_i == 3'd4;

  // ---- biases, int8 ----
  step_t value_step_q, pool_step_q;
  logic [LANES-1:0][31:0] biased, biased_q;
  logic [LANES-1:0][7:0] value, pool_q;
  assign group_o = layer_i >= 3'd2 ? sum_i.col[2:0] : '0;
  wire [31:0] half = (32'd1 << shift_i) >> 1;
  function automatic logic [7:0] int8(input logic [31:0] x, input logic [4:0] by);
    logic [31:0] y;
    y = $unsigned($signed(x) >>> by);
    if (y[31]) return '0;
    return y > 32'd127 ? 8'd127 : y[7:0];
  endfunction
  function automatic logic [7:0] larger(input logic [7:0] a, input logic [7:0] b);
    return a > b ? a : b;
  endfunction
  always_comb begin
    for (int l = 0; l < int'(LANES); l++) begin
      biased[l] = sums_i[l] + 32'($signed(biases_i[l])) + (classes ? '0 : half);
      value[l] = int8(biased_q[l], shift_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {value_step_q, pool_step_q} <= '0;
      {biased_q, pool_q} <= '0;
    end else if (begin_i) begin
      {value_step_q, pool_step_q} <= '0;
    end else if (en_o) begin
      value_step_q <= sum_i;
      biased_q <= biased;
      pool_step_q <= value_step_q;
      if (value_step_q.valid) begin
        for (int l = 0; l < int'(LANES); l++) begin
          logic [7:0] v;
          v = value[l];
          if (pairs && l < int'(CHANNELS)) v = larger(v, value[l+int'(CHANNELS)]);
          pool_q[l] <= value_step_q.pool_first ? v : larger(pool_q[l], v);
        end
      end
    end
  end

  // ---- lines ----
  logic [CHANNELS-1:0][31:0][7:0] row_q;   // layer 0: a pooled row
  logic [LANES-1:0][31:0] line_q;          // layers 1 to 4
  logic [1:0] at_q;       // of the next vector in its line
  logic [1:0] emit_q;     // lines to be sent
  logic [3:0] scan_q;     // scores not yet compared
  logic [3:0] best_q;
  wire output_valid = pool_step_q.valid && pool_step_q.pool_last && !classes;
  wire scores_valid = value_step_q.valid && classes;
  wire busy = emit_q != '0 || scan_q != '0;
  assign en_o = !(busy && (output_valid || scores_valid));
  wire [3:0] looked_at = 4'(CLASSES) - scan_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {row_q, line_q} <= '0;
      {at_q, emit_q, scan_q, best_q} <= '0;
    end else if (begin_i) begin
      {row_q, line_q} <= '0;
      {at_q, emit_q, scan_q, best_q} <= '0;
    end else begin
      if (en_o && scores_valid) begin
        for (int c = 0; c < int'(CLASSES); c++) line_q[c] <= biased_q[c];
        scan_q <= 4'(CLASSES - 1);
        best_q <= '0;
      end
      if (scan_q != '0) begin
        scan_q <= scan_q - 4'd1;
        if ($signed(line_q[looked_at]) > $signed(line_q[best_q])) best_q <= looked_at;
        if (scan_q == 4'd1) emit_q <= 2'd1;
      end
      if (en_o && output_valid && pairs) begin
        for (int c = 0; c < int'(CHANNELS); c++) row_q[c][5'(pool_step_q.col)] <= pool_q[c];
        if (pool_step_q.col == shape(3'd0).col) emit_q <= 2'd3;
      end
      if (en_o && output_valid && !pairs) begin
        line_q[{at_q, 2'd0}+:4] <= pool_q;
        at_q <= pool_step_q.image_last ? '0 : at_q + 2'd1;
        if (at_q == 2'd3 || pool_step_q.image_last) emit_q <= 2'd1;
      end
      if (emit_q != '0 && line_ready_i) begin
        emit_q <= emit_q - 2'd1;
        if (emit_q == 2'd1) line_q <= '0;
      end
    end
  end
  logic [511:0] line;
  always_comb begin
    line = line_q;
    if (classes) line[32*CLASSES+:32] = 32'(best_q);
    if (pairs) begin
      case (emit_q)
        2'd3: line = {row_q[1], row_q[0]};
        2'd2: line = {row_q[3], row_q[2]};
        default: line = {row_q[5], row_q[4]};
      endcase
    end
  end
  assign line_valid_o = emit_q != '0;
  assign line_o = line;

  wire unused = &{1'b0, pool_step_q};
endmodule
`default_nettype wire
