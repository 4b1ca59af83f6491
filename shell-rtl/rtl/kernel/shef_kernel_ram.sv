// A memory of the Security Kernel: Words words of 32 bits.
//
// a: reads; b: reads and writes bytes. A word follows its address by one cycle; a read that
// collides with a write of the same word returns undefined data. While clear_i is high, every cycle
// writes zero at b_addr_i, and reads return zero.
`default_nettype none
module shef_kernel_ram #(
    parameter int unsigned Words = 65536,
    localparam int unsigned AW = $clog2(Words)
) (
    input  wire logic          clk_i,
    input  wire logic          clear_i,
    input  wire logic [AW-1:0] a_addr_i,
    output logic [31:0]        a_rdata_o,
    input  wire logic [AW-1:0] b_addr_i,
    input  wire logic [3:0]    b_we_i,
    input  wire logic [31:0]   b_wdata_i,
    output logic [31:0]        b_rdata_o
);

  logic [31:0] words_q[Words];
  wire [3:0] we = b_we_i | {4{clear_i}};
  wire [31:0] wdata = clear_i ? 32'd0 : b_wdata_i;

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 4; i++) if (we[i]) words_q[b_addr_i][8*i+:8] <= wdata[8*i+:8];
    b_rdata_o <= clear_i ? 32'd0 : words_q[b_addr_i];
  end

  always_ff @(posedge clk_i) a_rdata_o <= clear_i ? 32'd0 : words_q[a_addr_i];

endmodule
`default_nettype wire
