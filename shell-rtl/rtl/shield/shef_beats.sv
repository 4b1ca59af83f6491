// Which beats of each gathered line were touched, and which are whole.
//
// new_*: forget a line. put_*: a beat of a line was written and is whole or not; put_touched_o (also without put_valid_i): was it
// touched before; put_full_o says in the same cycle whether the line is whole with it (up to put_last_i). ask_*: combinational: was the beat touched. All marks die with clr_i.
`default_nettype none
module shef_beats
  import shef_set_pkg::*;
#(
    parameter int unsigned NLines = 40
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         clr_i,
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
  logic [63:0] whole_next;
  logic [63:0] want;

  assign put_touched_o = touched_q[put_line_i][put_beat_i];
  assign ask_touched_o = touched_q[ask_line_i][ask_beat_i];
  assign want = 64'hffff_ffff_ffff_ffff >> (6'd63 - put_last_i);
  assign whole_next = whole_q[put_line_i] | (64'(put_whole_i) << put_beat_i);
  assign put_full_o = (whole_next & want) == want;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      for (int i = 0; i < int'(NLines); i++) begin
        touched_q[i] <= '0;
        whole_q[i] <= '0;
      end
    end else begin
      if (put_valid_i) begin
        touched_q[put_line_i][put_beat_i] <= 1'b1;
        whole_q[put_line_i] <= whole_next;
      end
      if (new_valid_i) begin
        touched_q[new_line_i] <= '0;
        whole_q[new_line_i] <= '0;
      end
    end
  end
endmodule
`default_nettype wire
