// shef_skid: words leave in order, no word is lost or duplicated, and the output is stable while it
// waits.
`default_nettype none
module skid (
    input wire       clk_i,
    input wire       rst_ni,
    input wire       in_valid_i,
    input wire [7:0] in_data_i,
    input wire       out_ready_i
);
  logic in_ready, out_valid;
  logic [7:0] out_data;

  shef_skid #(.W(8)) dut (
      .clk_i, .rst_ni, .clr_i(1'b0), .in_valid_i, .in_ready_o(in_ready), .in_data_i,
      .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data)
  );

  logic [2:0] at, pushed, popped;
  logic [7:0] word, last;
  logic seen, waited, init = 1'b0;
  logic push, pop;
  logic [2:0] held, ahead;
  assign push = in_valid_i && in_ready;
  assign pop = out_valid && out_ready_i;
  assign held = pushed - popped;
  assign ahead = at - popped;

  always_ff @(posedge clk_i) at <= at;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    waited <= rst_ni && out_valid && !out_ready_i;
    last <= out_data;
    if (!rst_ni) begin
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

  always_comb begin
    if (init && rst_ni) begin
      assert (held == {2'b0, dut.out_valid_q} + {2'b0, dut.skid_valid_q});
      assert (dut.out_valid_q || !dut.skid_valid_q);
      assert (seen == (ahead < held));
      if (seen && ahead == 3'd0) assert (dut.out_q == word);
      if (seen && ahead == 3'd1) assert (dut.skid_q == word);
      if (waited) assert (out_valid && out_data == last);
    end
  end

  always_comb begin
    cover (init && rst_ni && held == 3'd2 && seen && ahead == 3'd1);
    cover (init && rst_ni && waited && pop && popped == 3'd3);
  end
endmodule
`default_nettype wire
