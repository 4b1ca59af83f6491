// Memories of the network's accelerator: weights and biases of a layer, and inputs of two images.
//
// begin_i (one cycle) starts a layer. Then beats come (data_*, valid/ready): a line of biases for
// each group of 16 outputs, three lines of weights for each step, and the inputs, image by image.
// full_o is high while the inputs of the image that is next are there; done_i (with en_i) ends it.
// What fetch_i names is at rows_o and weights_o a cycle later, if en_i is high; biases_o is that of
// group_i at once. clear_i zeroes all.
`default_nettype none
module shef_lenet_store
  import shef_lenet_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clear_i,
    output wire          cleared_o,
    input  wire          begin_i,
    input  wire layer_t  layer_i,

    input  wire          data_valid_i,
    output wire          data_ready_o,
    input  wire  [511:0] data_i,

    input  wire          en_i,
    output wire          full_o,
    input  wire          done_i,
    input  wire fetch_t  fetch_i,
    output wire [1:0][255:0] rows_o,                   // lower and upper half
    output wire [LANES-1:0][TAPS-1:0][7:0] weights_o,
    input  wire    [2:0] group_i,
    output wire [LANES-1:0][15:0] biases_o
);
  localparam int unsigned WORDS = 512;
  wire shape_t s = shape(layer_i);

  // ---- where a beat goes ----
  logic [3:0] biases_q;    // lines of biases that are there
  logic [10:0] block_q;    // lines of weights and biases that are there
  logic [1:0] third_q;     // of a word of weights
  logic [8:0] word_q;
  logic fill_q;            // image that is being filled
  logic [5:0] line_q;
  logic [1:0] full_q;      // images
  logic use_q;             // image that is next
  wire is_bias = biases_q != groups(layer_i);
  wire is_weight = !is_bias && block_q != s.lines;
  wire is_input = !is_bias && !is_weight;
  wire take = data_valid_i && data_ready_o;
  wire line_last = line_q + 6'd1 == s.in_lines;
  assign data_ready_o = !is_input || !full_q[fill_q];
  assign full_o = full_q[use_q];
  always_ff @(posedge clk_i) begin
    if (!rst_ni || begin_i) begin
      {biases_q, block_q, third_q, word_q} <= '0;
      {fill_q, line_q, full_q, use_q} <= '0;
    end else begin
      if (take && !is_input) block_q <= block_q + 11'd1;
      if (take && is_bias) biases_q <= biases_q + 4'd1;
      if (take && is_weight) begin
        third_q <= third_q == 2'd2 ? '0 : third_q + 2'd1;
        if (third_q == 2'd2) word_q <= word_q + 9'd1;
      end
      if (take && is_input) begin
        line_q <= line_last ? '0 : line_q + 6'd1;
        if (line_last) begin
          fill_q <= !fill_q;
          full_q[fill_q] <= 1'b1;
        end
      end
      if (done_i && en_i) begin
        use_q <= !use_q;
        full_q[use_q] <= 1'b0;
      end
    end
  end

  // ---- memories ----
  logic [8:0] sweep;
  shef_sweep #(.Words(WORDS)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  logic [511:0] weights_0_mem[WORDS], weights_1_mem[WORDS];
  logic [255:0] weights_2_mem[WORDS];
  logic [255:0] low_mem[128], high_mem[128];
  logic [255:0] bias_mem[8];
  logic [1279:0] weights_q;
  logic [1:0][255:0] rows_q;
  wire [8:0] weights_at = clear_i ? sweep : word_q;
  wire [6:0] input_at = clear_i ? sweep[6:0] : {fill_q, line_q};
  wire [511:0] beat = clear_i ? '0 : data_i;
  always_ff @(posedge clk_i) begin
    if (clear_i || take && is_weight && third_q == 2'd0) weights_0_mem[weights_at] <= beat;
    if (clear_i || take && is_weight && third_q == 2'd1) weights_1_mem[weights_at] <= beat;
    if (clear_i || take && is_weight && third_q == 2'd2) weights_2_mem[weights_at] <= beat[255:0];
    if (clear_i || take && is_input) begin
      low_mem[input_at] <= beat[255:0];
      high_mem[input_at] <= beat[511:256];
    end
    if (clear_i || take && is_bias)
      bias_mem[clear_i ? sweep[2:0] : biases_q[2:0]] <= beat[255:0];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      weights_q <= '0;
      rows_q <= '0;
    end else if (en_i) begin
      weights_q <= {weights_2_mem[fetch_i.weights], weights_1_mem[fetch_i.weights],
          weights_0_mem[fetch_i.weights]};
      rows_q <= {high_mem[{use_q, fetch_i.high}], low_mem[{use_q, fetch_i.low}]};
    end
  end
  assign weights_o = weights_q;
  assign rows_o = rows_q;
  assign biases_o = bias_mem[group_i];

  wire unused = &{1'b0, s, fetch_i};
endmodule
`default_nettype wire
