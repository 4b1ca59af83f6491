// shef_fifo: no word is lost, duplicated or reordered; the count is correct; a wiped FIFO is empty.
// The proof tracks a symbolic place in the stream: the word written as number `at` is the word read
// as number `at`.
`default_nettype none
module fifo (
    input wire       clk_i,
    input wire       rst_ni,
    input wire       clr_i,
    input wire       in_valid_i,
    input wire [7:0] in_data_i,
    input wire       out_ready_i
);
  logic in_ready, out_valid;
  logic [7:0] out_data;
  logic [2:0] count;

  shef_fifo #(.W(8), .Depth(4)) dut (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(2'd0),
      .in_valid_i, .in_ready_o(in_ready), .in_data_i,
      .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data), .count_o(count)
  );

  logic [3:0] at;                     // symbolic constant
  logic [3:0] pushed, popped;         // modulo 16, the FIFO holds 4
  logic [7:0] word;
  logic seen, init = 1'b0;
  logic push, pop;
  assign push = in_valid_i && in_ready;
  assign pop = out_valid && out_ready_i;

  always_ff @(posedge clk_i) at <= at;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni || clr_i) begin
      pushed <= '0;
      popped <= '0;
      seen <= 1'b0;
    end else begin
      if (push) pushed <= pushed + 1'b1;
      if (pop) popped <= popped + 1'b1;
      if (push && pushed == at) begin
        word <= in_data_i;
        seen <= 1'b1;
      end else if (pop && popped == at) seen <= 1'b0;
    end
  end

  logic [3:0] held;
  assign held = pushed - popped;
  logic [3:0] ahead;                  // words before the tracked one
  assign ahead = at - popped;
  always_comb begin
    if (init && rst_ni && !clr_i) begin
      assert (held <= 4'd4 && count == held[2:0]);
      assert (in_ready == (held != 4'd4));
      assert (out_valid == (held != 4'd0));
      assert (dut.wp_q == pushed[1:0] && dut.rp_q == popped[1:0]);
      assert (seen == (ahead < held));
      if (seen) assert (dut.mem_q[at[1:0]] == word);
      if (seen && ahead == 4'd0) assert (out_data == word);
    end
  end

  always_comb begin
    cover (init && rst_ni && held == 4'd4 && popped != '0 && push == 1'b0);
    cover (init && rst_ni && seen && ahead == 4'd0 && pop && at == 4'd5);
  end
endmodule
`default_nettype wire
