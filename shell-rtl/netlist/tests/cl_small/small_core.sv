// The core of the small custom logic: a sum behind three modules.
`default_nettype none
module small_core (
    input  wire logic        clk_i,
    input  wire logic        kernel_clk_i,
    input  wire logic [31:0] word_i,
    input  wire logic [7:0]  setting_i,
    output logic [31:0]      sum_o,
    output logic             busy_o
);
  logic [31:0] sum_q, far, near;
  logic busy_q, kernel_q;
  logic [7:0] setting_q;
  always_ff @(posedge clk_i) begin
    setting_q <= setting_i;
    sum_q <= near + 32'(setting_q);
    busy_q <= kernel_q;
  end
  // Related clocks.
  always_ff @(posedge kernel_clk_i) kernel_q <= ^sum_q;
  assign sum_o = sum_q;
  assign busy_o = busy_q;
  small_step u_far (.value_i(word_i), .value_o(far));
  small_step u_near (.value_i(far), .value_o(near));
endmodule
`default_nettype wire
