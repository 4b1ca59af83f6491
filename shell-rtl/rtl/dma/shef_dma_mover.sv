// Moves pieces from one AXI4 port to another: reads them in bursts of up to ReadBeats beats, with
// up to ReadSlots outstanding, and writes them in bursts of up to WriteBeats beats. No burst
// crosses a multiple of its maximum length, so no burst crosses a page.
//
// Handshake: pieces valid/ready; done_valid_o is a pulse for each, in their order, when all its
// writes are acknowledged. One beat a cycle, several pieces in flight. owed_*_o and bad_o as in the
// blocks.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_dma_mover
  import shef_pkg::*;
  import shef_dma_pkg::*;
#(
    parameter int unsigned ReadBeats = 64,
    parameter int unsigned ReadSlots = 16,
    parameter int unsigned WriteBeats = 8,
    parameter int unsigned WriteDepth = 64,
    parameter bit WholeBeats = 1'b1,
    parameter status_e ReadSlaveError = ST_POISONED,
    parameter status_e ReadOtherError = ST_HOST,
    parameter status_e WriteError = ST_CARD
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          piece_valid_i,
    output logic         piece_ready_o,
    input  wire  piece_t piece_i,
    output logic         done_valid_o,
    output done_t        done_o,
    output axi_ax_t      ar_o,
    output logic         ar_valid_o,
    input  wire          ar_ready_i,
    input  wire  axi_r_t r_i,
    input  wire          r_valid_i,
    output axi_ax_t      aw_o,
    output logic         aw_valid_o,
    input  wire          aw_ready_i,
    output axi_w_t       w_o,
    output logic         w_valid_o,
    input  wire          w_ready_i,
    input  wire  axi_b_t b_i,
    input  wire          b_valid_i,
    output logic         owed_r_o,
    output logic         owed_b_o,
    output logic         bad_o
);
  localparam int unsigned RW = $clog2(ReadBeats);

  // ---- read bursts of the piece ----
  logic asks_q, accept, fifo_room, req_ready;
  logic [57:0] line_q;
  logic [6:0] left_q, room, count;
  assign piece_ready_o = !asks_q && fifo_room;
  assign accept = piece_valid_i && piece_ready_o;
  assign room = 7'(ReadBeats) - 7'(line_q[RW-1:0]);
  assign count = left_q < room ? left_q : room;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asks_q <= 1'b0;
      line_q <= '0;
      left_q <= '0;
    end else if (accept) begin
      asks_q <= piece_i.bytes != '0;
      line_q <= piece_i.src[63:6];
      left_q <= beats_of(piece_i.src[5:0], piece_i.bytes);
    end else if (asks_q && req_ready) begin
      asks_q <= left_q != count;
      line_q <= line_q + 58'(count);
      left_q <= left_q - count;
    end
  end

  logic piece_valid, piece_ready;
  piece_t piece;
  shef_fifo #(.W($bits(piece_t)), .Depth(32)) u_pieces (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(accept), .in_ready_o(fifo_room), .in_data_i(piece_i),
      .out_valid_o(piece_valid), .out_ready_i(piece_ready), .out_data_o(piece), .count_o()
  );

  logic in_valid, in_ready, out_valid, out_ready, burst_valid, burst_ready, bad_r, bad_b;
  logic [511:0] in_beat, out_beat;
  logic [63:0] out_strb;
  logic [1:0] in_resp;
  burst_t burst;
  assign bad_o = bad_r || bad_b;

  shef_dma_reader #(.Slots(ReadSlots), .Beats(ReadBeats)) u_read (
      .clk_i, .rst_ni,
      .req_valid_i(asks_q), .req_ready_o(req_ready), .req_line_i(line_q), .req_beats_i(count),
      .ar_o, .ar_valid_o, .ar_ready_i, .r_i, .r_valid_i,
      .beat_valid_o(in_valid), .beat_ready_i(in_ready), .beat_o(in_beat), .resp_o(in_resp),
      .owed_o(owed_r_o), .bad_o(bad_r)
  );
  shef_dma_align #(.Beats(WriteBeats), .SlaveError(ReadSlaveError),
      .OtherError(ReadOtherError)) u_align (
      .clk_i, .rst_ni,
      .piece_valid_i(piece_valid), .piece_ready_o(piece_ready), .piece_i(piece),
      .beat_valid_i(in_valid), .beat_ready_o(in_ready), .beat_i(in_beat), .resp_i(in_resp),
      .out_valid_o(out_valid), .out_ready_i(out_ready), .out_o(out_beat), .strb_o(out_strb),
      .burst_valid_o(burst_valid), .burst_ready_i(burst_ready), .burst_o(burst)
  );
  shef_dma_writer #(.Depth(WriteDepth), .WholeBeats(WholeBeats), .Error(WriteError)) u_write (
      .clk_i, .rst_ni,
      .beat_valid_i(out_valid), .beat_ready_o(out_ready), .beat_i(out_beat), .strb_i(out_strb),
      .burst_valid_i(burst_valid), .burst_ready_o(burst_ready), .burst_i(burst),
      .aw_o, .aw_valid_o, .aw_ready_i, .w_o, .w_valid_o, .w_ready_i, .b_i, .b_valid_i,
      .done_valid_o, .done_o, .owed_o(owed_b_o), .bad_o(bad_b)
  );
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
