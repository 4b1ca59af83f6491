// First-word-fall-through FIFO.
//
// Handshake: valid/ready on both sides; valid never waits for ready. A word written in one cycle is
// at the output in the next. Throughput one word a cycle. Depth is a power of two, at least 2.
// clr_i empties it; while clr_i is high the word at zero_addr_i (modulo Depth) is written with
// zeros, so a sweep over Depth addresses leaves nothing behind.
`default_nettype none
module shef_fifo #(
    parameter int unsigned W = 8,
    parameter int unsigned Depth = 4,
    localparam int unsigned PW = $clog2(Depth)
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clr_i,
    input  wire [PW-1:0] zero_addr_i,
    input  wire          in_valid_i,
    output logic         in_ready_o,
    input  wire [ W-1:0] in_data_i,
    output logic         out_valid_o,
    input  wire          out_ready_i,
    output logic [W-1:0] out_data_o,
    output logic [ PW:0] count_o
);
  (* ram_style = "distributed" *) logic [W-1:0] mem_q[Depth];
  logic [PW-1:0] wp_q, rp_q;
  logic [PW:0] count_q;
  logic push, pop;

  assign in_ready_o = (count_q != (PW + 1)'(Depth));
  assign out_valid_o = (count_q != '0);
  assign out_data_o = mem_q[rp_q];
  assign count_o = count_q;
  assign push = in_valid_i && in_ready_o;
  assign pop = out_valid_o && out_ready_i;

  always_ff @(posedge clk_i) begin
    if (clr_i || push) mem_q[clr_i ? zero_addr_i : wp_q] <= clr_i ? '0 : in_data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      wp_q <= '0;
      rp_q <= '0;
      count_q <= '0;
    end else begin
      if (push) wp_q <= wp_q + 1'b1;
      if (pop) rp_q <= rp_q + 1'b1;
      if (push != pop) count_q <= push ? count_q + 1'b1 : count_q - 1'b1;
    end
  end
endmodule
`default_nettype wire
