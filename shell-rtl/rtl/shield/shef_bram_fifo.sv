// FIFO in block RAM: a simple dual port RAM whose read register is the output word.
//
// Handshake: valid/ready on both sides. A word written in one cycle is at the output two cycles
// later. Throughput one word a cycle. Depth is a power of two. The FIFO holds Depth words in
// addition to the output register; in_ready_o counts those only, and count_o counts every word
// inside.
// clr_i empties it and zeroes the word at zero_addr_i (modulo Depth) and the output register.
`default_nettype none
module shef_bram_fifo #(
    parameter int unsigned W = 8,
    parameter int unsigned Depth = 4,
    localparam int unsigned PW = $clog2(Depth)
) (
    input  wire            clk_i,
    input  wire            rst_ni,
    input  wire            clr_i,
    input  wire  [ PW-1:0] zero_addr_i,
    input  wire            in_valid_i,
    output logic           in_ready_o,
    input  wire  [  W-1:0] in_data_i,
    output logic           out_valid_o,
    input  wire            out_ready_i,
    output logic [  W-1:0] out_data_o,
    output logic [ PW+1:0] count_o
);
  logic [W-1:0] mem_q[Depth];
  logic [W-1:0] out_q;
  logic out_valid_q;
  logic [PW-1:0] wp_q, rp_q;
  logic [PW:0] count_q;  // words in the RAM
  logic push, load;

  assign in_ready_o = (count_q != (PW + 1)'(Depth));
  assign push = in_valid_i && in_ready_o;
  assign load = (count_q != '0) && (!out_valid_q || out_ready_i);
  assign out_valid_o = out_valid_q;
  assign out_data_o = out_q;
  assign count_o = (PW + 2)'(count_q) + (PW + 2)'(out_valid_q);

  always_ff @(posedge clk_i) begin
    if (clr_i) mem_q[zero_addr_i] <= '0;
    else if (push) mem_q[wp_q] <= in_data_i;
  end

  always_ff @(posedge clk_i) begin
    if (clr_i) out_q <= '0;
    else if (load) out_q <= mem_q[rp_q];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      wp_q <= '0;
      rp_q <= '0;
      count_q <= '0;
      out_valid_q <= 1'b0;
    end else begin
      if (push) wp_q <= wp_q + 1'b1;
      if (load) rp_q <= rp_q + 1'b1;
      if (push != load) count_q <= push ? count_q + 1'b1 : count_q - 1'b1;
      if (load) out_valid_q <= 1'b1;
      else if (out_ready_i) out_valid_q <= 1'b0;
    end
  end
endmodule
`default_nettype wire
