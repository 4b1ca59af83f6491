// Tracks which beats of each gathered line are touched and which are complete.
//
// new_*: reset a line. put_*: a beat of a line was written, completely or not; put_touched_o (also
// without put_valid_i): it was already touched; put_full_o reports in the same cycle whether the
// beat completes the line (up to put_last_i). ask_*: combinational: the beat was touched. clr_i
// drops all marks, and while it is high the words at zero_addr_i are written with zeros. The marks
// are in distributed RAM with one write port; a flag marks a reset line until its first put.
`default_nettype none
module shef_beats
  import shef_set_pkg::*;
#(
    parameter int unsigned NLines = 40
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         clr_i,
    input  wire [ZERO_W-1:0] zero_addr_i,
    input  wire         new_valid_i,
    input  wire  line_t new_line_i,
    input  wire         put_valid_i,
    input  wire  line_t put_line_i,
    input  wire [5:0]   put_beat_i,
    input  wire         put_whole_i,
    input  wire [5:0]   put_last_i,    // last beat of the chunk
    output logic        put_touched_o, // before this put
    output logic        put_full_o,
    input  wire  line_t ask_line_i,
    input  wire [5:0]   ask_beat_i,
    output logic        ask_touched_o
);
  logic [63:0] touched_q[NLines];
  logic [63:0] whole_q[NLines];
  // no beat of the line was put: the memories hold data of an earlier chunk
  logic [NLines-1:0] fresh_q;
  logic [63:0] touched, whole, whole_next;
  logic [63:0] want;

  assign touched = fresh_q[put_line_i] ? '0 : touched_q[put_line_i];
  assign whole = fresh_q[put_line_i] ? '0 : whole_q[put_line_i];
  assign put_touched_o = touched[put_beat_i];
  assign ask_touched_o = !fresh_q[ask_line_i] && touched_q[ask_line_i][ask_beat_i];
  assign want = 64'hffff_ffff_ffff_ffff >> (6'd63 - put_last_i);
  assign whole_next = whole | (64'(put_whole_i) << put_beat_i);
  assign put_full_o = (whole_next & want) == want;

  always_ff @(posedge clk_i) begin
    if (clr_i) begin
      touched_q[zero_addr_i[LINE_W-1:0]] <= '0;
      whole_q[zero_addr_i[LINE_W-1:0]] <= '0;
    end else if (put_valid_i) begin
      touched_q[put_line_i] <= touched | (64'd1 << put_beat_i);
      whole_q[put_line_i] <= whole_next;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) fresh_q <= '1;
    else begin
      if (put_valid_i) fresh_q[put_line_i] <= 1'b0;
      if (new_valid_i) fresh_q[new_line_i] <= 1'b1;
    end
  end
  logic unused;
  assign unused = ^zero_addr_i;
endmodule
`default_nettype wire
