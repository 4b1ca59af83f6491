// Read stream of an accelerator: beats of memory in the order of its commands, AXI4 read channels.
//
// A command is a number of 64-byte lines (beats_i, at least 1) from line_i on; it is cut into bursts
// of at most Burst beats that cross no multiple of Burst lines. A burst is requested when the buffer
// has room for all of it, so R is always accepted and data_ready_i may stay low for any time.
// Throughput: one beat a cycle, up to Depth beats in flight. A beat is at data_o two cycles after R.
// A burst lasts beyond the end of its command: commands may follow each other without a gap.
//
// A response other than OKAY raises fail_o for a cycle. Its data are zero. While stop_i is high no
// request is made and commands wait; idle_o is high when nothing is in flight and no request is
// pending. start_i empties the buffer and drops the command in hand: only while idle_o is high.
// clear_i zeroes the buffer.
`default_nettype none
module shef_kit_read
  import shef_pkg::*;
#(
    parameter int unsigned Burst = 64,   // beats, a power of two, at most 64
    parameter int unsigned Depth = 256,  // beats, a power of two, at least 2 * Burst
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

    output wire          data_valid_o,
    input  wire          data_ready_i,
    output wire  [511:0] data_o,

    output axi_ax_t      acc_ar_o,
    output wire          acc_ar_valid_o,
    input  wire          acc_ar_ready_i,
    input  wire axi_r_t  acc_r_i,
    input  wire          acc_r_valid_i,
    output wire          acc_r_ready_o
);
  localparam int unsigned BW = $clog2(Burst) + 1;
  localparam int unsigned DW = $clog2(Depth) + 1;

  // ---- command in hand ----
  logic [57:0] line_q;
  logic [31:0] left_q;
  wire [BW-1:0] room = BW'(Burst) - BW'(line_q[$clog2(Burst)-1:0]);  // up to the boundary
  wire [BW-1:0] beats = left_q < 32'(room) ? BW'(left_q) : room;
  wire last = left_q == 32'(beats);

  // ---- requests ----
  logic ar_valid_q;
  logic [57:0] ar_line_q;
  logic [7:0] ar_len_q;
  logic [DW-1:0] free_q;      // beats of the buffer that belong to no request
  logic [DW-1:0] flight_q;    // beats that were requested and have not arrived
  wire slot = !ar_valid_q || acc_ar_ready_i;
  wire ask = left_q != '0 && !stop_i && slot && free_q >= DW'(beats);
  wire take = cmd_valid_i && cmd_ready_o;
  wire beat = acc_r_valid_i;
  wire pop = data_valid_o && data_ready_i;
  assign cmd_ready_o = left_q == '0 || ask && last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line_q <= '0;
      left_q <= '0;
      ar_valid_q <= 1'b0;
      ar_line_q <= '0;
      ar_len_q <= '0;
      free_q <= DW'(Depth);
      flight_q <= '0;
    end else if (start_i) begin
      left_q <= '0;
      free_q <= DW'(Depth);
    end else begin
      if (take) begin
        line_q <= cmd_line_i;
        left_q <= cmd_beats_i;
      end else if (ask) begin
        line_q <= line_q + 58'(beats);
        left_q <= left_q - 32'(beats);
      end
      if (slot) ar_valid_q <= ask;
      if (ask) begin
        ar_line_q <= line_q;
        ar_len_q <= 8'(beats) - 8'd1;
      end
      free_q <= free_q - (ask ? DW'(beats) : '0) + DW'(pop);
      flight_q <= flight_q + (ask ? DW'(beats) : '0) - DW'(beat);
    end
  end

  assign acc_ar_o = '{id: Id, addr: {ar_line_q, 6'd0}, len: ar_len_q, size: AXI_SIZE_64,
      burst: AXI_BURST_INCR};
  assign acc_ar_valid_o = ar_valid_q;
  assign acc_r_ready_o = 1'b1;
  assign idle_o = !ar_valid_q && flight_q == '0;
  assign fail_o = beat && acc_r_i.resp != AXI_OKAY;

  // ---- buffer ----
  logic [$clog2(Depth)-1:0] sweep;
  shef_sweep #(.Words(Depth)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  wire full_n;
  wire [$clog2(Depth)+1:0] count;
  shef_bram_fifo #(.W(512), .Depth(Depth)) u_buffer (
    .clk_i,
    .rst_ni,
    .clr_i(clear_i || start_i),
    .zero_addr_i(sweep),
    .in_valid_i(beat),
    .in_ready_o(full_n),
    .in_data_i(acc_r_i.data),
    .out_valid_o(data_valid_o),
    .out_ready_i(data_ready_i),
    .out_data_o(data_o),
    .count_o(count)
  );

  wire unused = &{1'b0, full_n, count, acc_r_i.id, acc_r_i.last};
endmodule
`default_nettype wire
