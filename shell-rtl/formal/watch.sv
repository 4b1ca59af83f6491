// shef_watch: late_o rises if and only if wait_i was high without progress for Cycles cycles, and
// stays high.
`default_nettype none
module watch (
    input wire clk_i,
    input wire rst_ni,
    input wire wait_i,
    input wire progress_i
);
  localparam int unsigned Cycles = 6;
  logic late;
  shef_watch #(.Cycles(Cycles)) dut (.clk_i, .rst_ni, .wait_i, .progress_i, .late_o(late));

  logic init = 1'b0;
  logic [2:0] run;      // cycles of waiting in a row, saturating
  logic due, was_late;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    was_late <= rst_ni && late;
    if (!rst_ni) begin
      run <= '0;
      due <= 1'b0;
    end else begin
      if (!wait_i || progress_i) run <= '0;
      else if (run != 3'(Cycles)) run <= run + 1'b1;
      if (run == 3'(Cycles)) due <= 1'b1;
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (dut.count_q == run);
      assert (late == due);
      if (was_late) assert (late);
    end
    cover (init && rst_ni && late && !wait_i);
  end
endmodule
`default_nettype wire
