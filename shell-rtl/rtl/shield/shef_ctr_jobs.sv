// Key stream jobs of one direction: four counter blocks for each beat of each chunk, in chunk
// order.
//
// Handshake: chunks in (valid, always room: Depth is the number of lines), jobs out (valid/ready),
// one a cycle.
// take_i: the consumer took one keystream word. Jobs are issued only while Credits words have room.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_ctr_jobs
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Depth = 64,
    parameter int unsigned Credits = 32,
    parameter log2_tab_t ChunkLog2 = '0
) (
    input  wire             clk_i,
    input  wire             rst_ni,
    input  wire             clr_i,
    input  wire [ZERO_W-1:0] zero_addr_i,
    input  wire             chunk_valid_i,
    input  wire  chunk_t    chunk_i,
    input  wire             take_i,
    output logic            job_valid_o,
    input  wire             job_ready_i,
    output ctr_job_t        job_o,
    output logic            busy_o       // chunks wait here
);
  localparam int unsigned CW = $clog2(Credits) + 1;
  chunk_t head;
  logic head_valid, step, last;
  logic [5:0] beat_q, last_beat;
  logic [CW-1:0] used_q;

  shef_fifo #(.W($bits(chunk_t)), .Depth(Depth)) u_fifo (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
      .in_valid_i(chunk_valid_i), .in_ready_o(), .in_data_i(chunk_i),
      .out_valid_o(head_valid), .out_ready_i(step && last), .out_data_o(head), .count_o()
  );

  assign last_beat = 6'((7'd1 << (ChunkLog2[head.region] - 4'd6)) - 7'd1);
  assign last = beat_q == last_beat;
  assign job_valid_o = head_valid && used_q != CW'(Credits);
  assign busy_o = head_valid;
  assign step = job_valid_o && job_ready_i;
  assign job_o = '{region: head.region, chunk: head.chunk, version: head.version,
      ctr: {24'd0, beat_q, 2'd2}};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      beat_q <= '0;
      used_q <= '0;
    end else begin
      if (step) beat_q <= last ? '0 : beat_q + 1'b1;
      if (step != take_i) used_q <= step ? used_q + 1'b1 : used_q - 1'b1;
    end
  end
  logic unused;
  assign unused = ^{head.line, zero_addr_i};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
