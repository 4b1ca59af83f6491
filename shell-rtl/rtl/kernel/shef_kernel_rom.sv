// Boot ROM of the Security Kernel: the words of shef_kernel_rom_pkg, followed by zeros.
//
// Two read ports; the word follows its address by one cycle.
`default_nettype none
module shef_kernel_rom (
    input  wire logic        clk_i,
    input  wire logic [13:0] a_addr_i,
    output logic [31:0]      a_rdata_o,
    input  wire logic [13:0] b_addr_i,
    output logic [31:0]      b_rdata_o
);
  import shef_kernel_rom_pkg::WORDS;

  localparam int unsigned N = $size(WORDS);
  localparam int unsigned W = $clog2(N);

  logic [31:0] words_q[N];
  initial words_q = WORDS;

  always_ff @(posedge clk_i) begin
    a_rdata_o <= 32'(a_addr_i) < N ? words_q[W'(a_addr_i)] : 32'd0;
    b_rdata_o <= 32'(b_addr_i) < N ? words_q[W'(b_addr_i)] : 32'd0;
  end

endmodule
`default_nettype wire
