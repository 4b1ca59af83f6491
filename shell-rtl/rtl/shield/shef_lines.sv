// The lines with their ports: written by decryption and the accelerator, read by responses and the
// seal.
//
// fill_*: a beat of a chunk from memory, always accepted; bytes that the accelerator has already
// written are newer and stay. put_*: a beat of a write (valid/ready), accepted in every cycle
// without a fill; put_full_o: with it every byte of the chunk was written. new_*: the marks of that
// line are reset. rsp_get_*, seal_get_*: a beat to read (valid/ready), in turns when both wait; its
// data, its marks and the state of its line follow in the next cycle.
`default_nettype none
module shef_lines
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned BigLines = 8,
    parameter int unsigned SmallLines = 32,
    localparam int unsigned NLines = BigLines + SmallLines
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire  [ZERO_W-1:0] zero_addr_i,

    input  wire               new_valid_i,
    input  wire  line_t       new_line_i,

    input  wire               fill_valid_i,
    input  wire  line_t       fill_line_i,
    input  wire  [5:0]        fill_beat_i,
    input  wire  [511:0]      fill_data_i,

    input  wire               put_valid_i,
    output logic              put_ready_o,
    input  wire  line_t       put_line_i,
    input  wire  [5:0]        put_beat_i,
    input  wire  axi_w_t      put_w_i,
    input  wire  [5:0]        put_last_i,    // last beat of the line's chunk
    output logic              put_full_o,    // with this beat every byte was written

    input  wire  [NLines-1:0] fetched_i,     // all bytes of the line are valid, whatever the marks
    input  wire               rsp_get_valid_i,
    output logic              rsp_get_ready_o,
    input  wire  line_t       rsp_get_line_i,
    input  wire  [5:0]        rsp_get_beat_i,
    input  wire               seal_get_valid_i,
    output logic              seal_get_ready_o,
    input  wire  line_t       seal_get_line_i,
    input  wire  [5:0]        seal_get_beat_i,
    output logic [511:0]      data_o,
    output logic [63:0]       mark_o,
    output logic              all_o,         // the line was fetched
    output logic              touched_o      // the beat has marks
);
  logic rd_seal, rd, rd_turn_q, wr_touched, rd_touched;
  line_t wr_line, rd_line;
  logic [5:0] wr_beat, rd_beat;
  logic [63:0] wr_be, wr_mark, old_mark, new_mark;
  logic [511:0] wr_data;

  logic unused;
  assign unused = put_w_i.last;   // beats are counted by AWLEN

  // ---- the write port ----
  assign put_ready_o = !fill_valid_i;
  assign new_mark = put_w_i.strb | (wr_touched ? old_mark : 64'd0);
  always_comb begin
    wr_line = put_line_i;
    wr_beat = put_beat_i;
    wr_be = put_w_i.strb;
    wr_data = '0;
    wr_mark = new_mark;
    if (fill_valid_i) begin
      wr_line = fill_line_i;
      wr_beat = fill_beat_i;
      wr_be = wr_touched ? ~old_mark : '1;
      wr_data = fill_data_i;
      wr_mark = old_mark;
    end else if (put_valid_i) wr_data = put_w_i.data;
  end

  shef_beats #(.NLines(NLines)) u_beats (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i, .new_valid_i, .new_line_i,
      .put_valid_i(put_valid_i && put_ready_o), .put_line_i(wr_line), .put_beat_i(wr_beat),
      .put_whole_i(&new_mark),
      .put_last_i, .put_touched_o(wr_touched), .put_full_o,
      .ask_line_i(rd_line), .ask_beat_i(rd_beat), .ask_touched_o(rd_touched)
  );

  // ---- the read port ----
  assign rd_seal = seal_get_valid_i && (!rsp_get_valid_i || rd_turn_q);
  assign seal_get_ready_o = rd_seal;
  assign rsp_get_ready_o = !rd_seal;
  assign rd = seal_get_valid_i || rsp_get_valid_i;
  assign rd_line = rd_seal ? seal_get_line_i : rsp_get_line_i;
  assign rd_beat = rd_seal ? seal_get_beat_i : rsp_get_beat_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_turn_q <= 1'b0;
      all_o <= 1'b0;
      touched_o <= 1'b0;
    end else if (rd) begin
      rd_turn_q <= !rd_seal;
      all_o <= fetched_i[rd_line];
      touched_o <= rd_touched;
    end
  end

  shef_line_ram #(.BigLines(BigLines), .SmallLines(SmallLines)) u_ram (
      .clk_i, .clr_i, .zero_addr_i,
      .wr_en_i(fill_valid_i || put_valid_i), .wr_line_i(wr_line), .wr_beat_i(wr_beat),
      .wr_be_i(wr_be), .wr_data_i(wr_data),
      .wr_mark_i(wr_mark), .mark_o(old_mark),
      .rd_en_i(rd), .rd_line_i(rd_line), .rd_beat_i(rd_beat), .rd_data_o(data_o), .rd_mark_o(mark_o)
  );
endmodule
`default_nettype wire
