// shef_bram_fifo: no word is lost, doubled or reordered; the count is right; a wiped FIFO is empty.
`default_nettype none
module bram_fifo (
    input wire       clk_i,
    input wire       rst_ni,
    input wire       clr_i,
    input wire       in_valid_i,
    input wire [7:0] in_data_i,
    input wire       out_ready_i
);
  logic in_ready, out_valid;
  logic [7:0] out_data;
  logic [3:0] count;
  shef_bram_fifo #(.W(8), .Depth(4)) dut (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(2'd0), .in_valid_i, .in_ready_o(in_ready), .in_data_i,
      .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data), .count_o(count)
  );
  axi_channel #(.W(8)) u_out (.clk_i, .rst_ni(rst_ni && !clr_i), .valid_i(out_valid),
      .ready_i(out_ready_i), .data_i(out_data), .break_i(1'b0));

  logic [3:0] at;                  // symbolic constant
  logic [3:0] pushed, loaded, popped;
  logic [7:0] word;
  logic init = 1'b0;
  logic push, pop, load;
  assign push = in_valid_i && in_ready;
  assign pop = out_valid && out_ready_i;
  assign load = dut.load;
  always_ff @(posedge clk_i) at <= at;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni || clr_i) begin
      pushed <= '0;
      loaded <= '0;
      popped <= '0;
    end else begin
      pushed <= pushed + 4'(push);
      loaded <= loaded + 4'(load);
      popped <= popped + 4'(pop);
      if (push && pushed == at) word <= in_data_i;
    end
  end
  logic [3:0] held, in_ram;
  logic seen;                      // the tracked word is in the FIFO
  assign held = pushed - popped;
  assign in_ram = pushed - loaded;
  assign seen = 4'(at - popped) < held;
  always_comb begin
    if (init && rst_ni && !clr_i) begin
      assert (in_ram <= 4'd4 && 4'(loaded - popped) <= 4'd1 && held <= 4'd5);
      assert (count == held && in_ready == (in_ram != 4'd4));
      assert (dut.count_q == in_ram[2:0] && dut.wp_q == pushed[1:0] && dut.rp_q == loaded[1:0]);
      assert (dut.out_valid_q == (loaded != popped));
      if (seen) assert (((at == popped && loaded != popped) ? dut.out_q : dut.mem_q[at[1:0]]) ==
          word);
      if (seen && at == popped && out_valid) assert (out_data == word);
    end
    cover (init && rst_ni && !clr_i && held == 4'd5 && popped != '0);
    cover (init && rst_ni && !clr_i && seen && at == 4'd6 && pop && at == popped);
  end
endmodule
`default_nettype wire
