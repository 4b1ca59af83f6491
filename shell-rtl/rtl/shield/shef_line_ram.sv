// The lines: plaintext of chunks, 64 bytes per word, with a written mark for each byte.
//
// One write port (byte enables) and one read port (data one cycle later, in the read register until
// the next read). Line and beat address a word; lines 0 .. BigLines-1 have 64 words, the others 8.
// The byte marks can be read at the same address as the write, combinationally (mark_o), for the
// writer to merge. While clr_i is high the word at zero_addr_i and the registers are zeroed.
`default_nettype none
module shef_line_ram
  import shef_set_pkg::*;
#(
    parameter int unsigned BigLines = 8,
    parameter int unsigned SmallLines = 32,
    localparam int unsigned Words = BigLines * 64 + SmallLines * 8,
    localparam int unsigned AW = $clog2(Words)
) (
    input  wire              clk_i,
    input  wire              clr_i,
    input  wire [ZERO_W-1:0] zero_addr_i,

    input  wire              wr_en_i,
    input  wire  line_t      wr_line_i,
    input  wire [5:0]        wr_beat_i,
    input  wire [63:0]       wr_be_i,
    input  wire [511:0]      wr_data_i,
    input  wire [63:0]       wr_mark_i,
    output logic [63:0]      mark_o,

    input  wire              rd_en_i,
    input  wire  line_t      rd_line_i,
    input  wire [5:0]        rd_beat_i,
    output logic [511:0]     rd_data_o,
    output logic [63:0]      rd_mark_o
);
  logic [511:0] mem_q[Words];
  logic [63:0] mark_q[Words];
  logic [511:0] rd_data_q;
  logic [63:0] rd_mark_q;

  function automatic logic [AW-1:0] addr_of(input line_t line, input logic [5:0] beat);
    if (int'(line) < int'(BigLines)) return AW'({line, beat});
    else return AW'(BigLines * 64) + AW'({line - line_t'(BigLines), beat[2:0]});
  endfunction

  logic [AW-1:0] wr_addr, rd_addr, zero_addr;
  assign wr_addr = addr_of(wr_line_i, wr_beat_i);
  assign rd_addr = addr_of(rd_line_i, rd_beat_i);
  assign zero_addr = (32'(zero_addr_i) < Words) ? AW'(zero_addr_i) : AW'(Words - 1);

  always_ff @(posedge clk_i) begin
    if (clr_i) mem_q[zero_addr] <= '0;
    else if (wr_en_i) begin
      if (&wr_be_i) mem_q[wr_addr] <= wr_data_i;
      else for (int b = 0; b < 64; b++) if (wr_be_i[b]) mem_q[wr_addr][8*b+:8] <= wr_data_i[8*b+:8];
    end
  end
  always_ff @(posedge clk_i) begin
    if (clr_i) mark_q[zero_addr] <= '0;
    else if (wr_en_i) mark_q[wr_addr] <= wr_mark_i;
  end
  always_ff @(posedge clk_i) begin
    if (clr_i) begin
      rd_data_q <= '0;
      rd_mark_q <= '0;
    end else if (rd_en_i) begin
      rd_data_q <= mem_q[rd_addr];
      rd_mark_q <= mark_q[rd_addr];
    end
  end
  assign rd_data_o = rd_data_q;
  assign rd_mark_o = rd_mark_q;
  assign mark_o = mark_q[wr_addr];
endmodule
`default_nettype wire
