// Write stream of an accelerator: beats to memory in the order of its commands, AXI4 write channels.
//
// A command is a number of 64-byte lines (beats_i, at least 1) from line_i on; it is cut into bursts
// of at most Burst beats that cross no multiple of Burst lines. A burst is requested when all of its
// beats are in the buffer, so no W beat waits for the accelerator, and B is always accepted.
// Throughput: one beat a cycle. Beats that come before their command wait in the buffer.
//
// A response other than OKAY raises fail_o for a cycle. While stop_i is high no request is made and
// commands wait; idle_o is high when every requested burst has been answered, no request is pending
// and no command is in hand (with stop_i, also with one). start_i empties the buffer and drops the
// command in hand: only while idle_o is high. clear_i zeroes the buffer.
`default_nettype none
module shef_kit_write
  import shef_pkg::*;
#(
    parameter int unsigned Burst = 64,   // beats, a power of two, at most 64
    parameter int unsigned Depth = 128,  // beats, a power of two, at least 2 * Burst
    parameter logic [AXI_ID_W-1:0] Id = '0
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clear_i,
    output wire          cleared_o,
    input  wire          start_i,
    input  wire          stop_i,
    output wire          idle_o,
    output wire          fail_o,

    input  wire          cmd_valid_i,
    output wire          cmd_ready_o,
    input  wire   [57:0] cmd_line_i,
    input  wire   [31:0] cmd_beats_i,

    input  wire          data_valid_i,
    output wire          data_ready_o,
    input  wire  [511:0] data_i,

    output axi_ax_t      acc_aw_o,
    output wire          acc_aw_valid_o,
    input  wire          acc_aw_ready_i,
    output axi_w_t       acc_w_o,
    output wire          acc_w_valid_o,
    input  wire          acc_w_ready_i,
    input  wire axi_b_t  acc_b_i,
    input  wire          acc_b_valid_i,
    output wire          acc_b_ready_o
);
  localparam int unsigned BW = $clog2(Burst) + 1;
  localparam int unsigned DW = $clog2(Depth) + 1;
  localparam int unsigned OPEN = 32;  // bursts whose W beats are not complete

  // ---- command in hand ----
  logic [57:0] line_q;
  logic [31:0] left_q;
  wire [BW-1:0] room = BW'(Burst) - BW'(line_q[$clog2(Burst)-1:0]);  // up to the boundary
  wire [BW-1:0] beats = left_q < 32'(room) ? BW'(left_q) : room;
  wire last = left_q == 32'(beats);

  // ---- requests ----
  logic aw_valid_q;
  logic [57:0] aw_line_q;
  logic [BW-1:0] aw_beats_q;
  logic [DW:0] held_q;       // beats in the buffer that belong to no request
  logic [31:0] open_q;       // requested bursts without a response
  wire lens_ready;
  wire aw_taken = aw_valid_q && acc_aw_ready_i;
  wire slot = !aw_valid_q || acc_aw_ready_i;
  // The command of a run that ended with an error is still in hand in the next run's first cycle.
  wire send = left_q != '0 && !stop_i && !start_i && slot && lens_ready &&
      held_q >= (DW + 1)'(beats);
  wire take = cmd_valid_i && cmd_ready_o;
  wire push = data_valid_i && data_ready_o;
  assign cmd_ready_o = left_q == '0 || send && last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line_q <= '0;
      left_q <= '0;
      aw_valid_q <= 1'b0;
      aw_line_q <= '0;
      aw_beats_q <= '0;
      held_q <= '0;
      open_q <= '0;
    end else if (start_i) begin
      left_q <= '0;
      held_q <= '0;
    end else begin
      if (take) begin
        line_q <= cmd_line_i;
        left_q <= cmd_beats_i;
      end else if (send) begin
        line_q <= line_q + 58'(beats);
        left_q <= left_q - 32'(beats);
      end
      if (slot) aw_valid_q <= send;
      if (send) begin
        aw_line_q <= line_q;
        aw_beats_q <= beats;
      end
      held_q <= held_q + (DW + 1)'(push) - (send ? (DW + 1)'(beats) : '0);
      open_q <= open_q + 32'(send) - 32'(acc_b_valid_i);
    end
  end

  assign acc_aw_o = '{id: Id, addr: {aw_line_q, 6'd0}, len: 8'(aw_beats_q) - 8'd1,
      size: AXI_SIZE_64, burst: AXI_BURST_INCR};
  assign acc_aw_valid_o = aw_valid_q;
  assign acc_b_ready_o = 1'b1;
  assign idle_o = !aw_valid_q && open_q == '0 && (left_q == '0 || stop_i);
  assign fail_o = acc_b_valid_i && acc_b_i.resp != AXI_OKAY;

  // ---- write data: the beats of accepted requests, burst by burst ----
  logic [BW-1:0] sent_q;  // beats of the burst at the head that are sent
  wire len_valid;
  wire [BW-1:0] len;
  wire beat_valid;
  wire w_beat = acc_w_valid_o && acc_w_ready_i;
  wire w_last = sent_q + 1'b1 == len;
  wire [511:0] w_data;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) sent_q <= '0;
    else if (w_beat) sent_q <= w_last ? '0 : sent_q + 1'b1;
  end
  assign acc_w_valid_o = len_valid && beat_valid;
  assign acc_w_o = '{data: w_data, strb: '1, last: w_last};

  // ---- buffers ----
  logic [$clog2(Depth)-1:0] sweep;
  shef_sweep #(.Words(Depth)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  wire [$clog2(Depth)+1:0] count;
  shef_bram_fifo #(.W(512), .Depth(Depth)) u_buffer (
    .clk_i,
    .rst_ni,
    .clr_i(clear_i || start_i),
    .zero_addr_i(sweep),
    .in_valid_i(data_valid_i),
    .in_ready_o(data_ready_o),
    .in_data_i(data_i),
    .out_valid_o(beat_valid),
    .out_ready_i(w_beat),
    .out_data_o(w_data),
    .count_o(count)
  );
  // Reserved when the request is made, so that an accepted one has room.
  logic [$clog2(OPEN):0] lens_q;
  wire len_in;
  wire [$clog2(OPEN):0] lens;
  assign lens_ready = lens_q != ($clog2(OPEN) + 1)'(OPEN);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) lens_q <= '0;
    else lens_q <= lens_q + ($clog2(OPEN) + 1)'(send) - ($clog2(OPEN) + 1)'(w_beat && w_last);
  end
  shef_fifo #(.W(BW), .Depth(OPEN)) u_lens (
    .clk_i,
    .rst_ni,
    .clr_i(clear_i),
    .zero_addr_i($clog2(OPEN)'(sweep)),
    .in_valid_i(aw_taken),
    .in_ready_o(len_in),
    .in_data_i(aw_beats_q),
    .out_valid_o(len_valid),
    .out_ready_i(w_beat && w_last),
    .out_data_o(len),
    .count_o(lens)
  );

  wire unused = &{1'b0, count, len_in, lens, acc_b_i.id};
endmodule
`default_nettype wire
