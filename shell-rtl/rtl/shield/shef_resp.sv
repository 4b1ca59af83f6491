// Responses: the only way to the accelerator's R channel. Segments leave in the order of their
// addresses. A segment's beats are read only from a readable line, so no beat leaves before its
// chunk was verified.
//
// Handshake: segments in (room_o: one more fits), line reads (get_*: request, granted by
// get_ready_i, data one cycle later on get_data_i/get_keep_i), R valid/ready. One beat a cycle; two
// cycles from a readable line to R.
// stop_i: every waiting segment gets SLVERR and zeros. clr_i (wipe): the lines and the buffered
// data are gone; waiting segments get errors, also after clr_i.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_resp
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NLines = 40,
    parameter int unsigned Depth = 64
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               stop_i,
    input  wire               clr_i,
    input  wire [ZERO_W-1:0]  zero_addr_i,

    input  wire               seg_valid_i,
    output logic              room_o,
    input  wire  lseg_t       seg_i,
    input  wire [NLines-1:0]  readable_i,
    input  wire [NLines-1:0]  dead_i,         // lines of frozen regions: answered with errors

    output logic              get_valid_o,
    input  wire               get_ready_i,
    output line_t             get_line_o,
    output logic [5:0]        get_beat_o,
    // one cycle after the request: all bytes of the word are valid
    input  wire               get_all_i,
    input  wire               get_none_i,     // no byte is
    input  wire [511:0]       get_data_i,
    input  wire [63:0]        get_mark_i,

    // the head segment read its last beat: its line is released
    output logic              done_o,
    output line_t             done_line_o,
    output logic              waits_o,        // the head segment waits for its chunk
    output logic              idle_o,

    output axi_r_t            r_o,
    output logic              r_valid_o,
    input  wire               r_ready_i
);
  localparam int unsigned OutDepth = 4;

  lseg_t head;
  logic head_valid, head_pop;
  logic [$clog2(Depth):0] count;
  logic [$clog2(Depth):0] poison_q;  // number at the head that belong to a wiped session
  logic bad;

  shef_fifo #(.W($bits(lseg_t)), .Depth(Depth)) u_queue (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(seg_valid_i), .in_ready_o(room_o), .in_data_i(seg_i),
      .out_valid_o(head_valid), .out_ready_i(head_pop), .out_data_o(head),
      .count_o(count)
  );

  // ---- head segment ----
  logic [8:0] beat_q;      // beats of the head that have left
  logic [11:0] offset_q;
  logic [11:0] offset;
  logic out_room, issue, fetch;
  logic [2:0] out_count;
  logic stage_q, stage_err_q, stage_last_q;
  logic [AXI_ID_W-1:0] stage_id_q;

  assign bad = head.err || stop_i || poison_q != '0 || dead_i[head.line];
  assign offset = (beat_q == '0) ? head.offset : offset_q;
  assign out_room = out_count + 3'(stage_q) < 3'(OutDepth);
  assign get_valid_o = head_valid && out_room && !bad && readable_i[head.line];
  assign get_line_o = head.line;
  assign get_beat_o = offset[11:6];
  assign fetch = get_valid_o && get_ready_i;
  assign issue = fetch || (head_valid && out_room && bad);
  assign head_pop = issue && (beat_q + 9'd1 == head.beats);
  assign done_o = head_pop && !head.err && poison_q == '0 && !clr_i;
  assign done_line_o = head.line;
  assign waits_o = head_valid && !bad && !readable_i[head.line];
  assign idle_o = !head_valid && !stage_q && out_count == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q <= '0;
      offset_q <= '0;
      poison_q <= '0;
      stage_q <= 1'b0;
      stage_err_q <= 1'b0;
      stage_last_q <= 1'b0;
      stage_id_q <= '0;
    end else begin
      if (issue) begin
        beat_q <= head_pop ? '0 : beat_q + 1'b1;
        offset_q <= offset + (12'd1 << head.size);
      end
      if (clr_i) poison_q <= count - ($clog2(Depth)+1)'(head_pop);
      else if (head_pop && poison_q != '0) poison_q <= poison_q - 1'b1;
      stage_q <= issue;
      if (issue) begin
        stage_err_q <= bad;
        stage_last_q <= head.last && head_pop;
        stage_id_q <= head.id;
      end
    end
  end

  // ---- gate ----
  logic [511:0] gated;
  always_comb begin
    gated = '0;
    if (stage_q && !stage_err_q && !clr_i && !get_none_i) begin
      gated = get_data_i;
      if (!get_all_i && !(&get_mark_i)) gated = keep_marked(get_data_i, get_mark_i);
    end
  end

  // ---- output: data and the rest separate, so that a wipe can drop the data ----
  axi_r_t r;
  logic [AXI_ID_W-1:0] out_id;
  logic out_last, out_err;
  logic [511:0] out_data;
  logic [1:0] zero_out;
  logic [2:0] wiped_count_q;  // words at the head whose data was wiped

  assign zero_out = zero_addr_i[1:0];

  shef_fifo #(.W(AXI_ID_W + 2), .Depth(OutDepth)) u_out_ctl (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(stage_q), .in_ready_o(),
      .in_data_i({stage_id_q, stage_last_q, stage_err_q || clr_i}),
      .out_valid_o(r_valid_o), .out_ready_i(r_ready_i), .out_data_o({out_id, out_last, out_err}),
      .count_o(out_count)
  );

  logic [511:0] out_mem_q[OutDepth];
  logic [1:0] wp_q, rp_q;
  always_ff @(posedge clk_i) begin
    if (clr_i) out_mem_q[zero_out] <= '0;
    else if (stage_q) out_mem_q[wp_q] <= gated;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wp_q <= '0;
      rp_q <= '0;
      wiped_count_q <= '0;
    end else begin
      if (stage_q) wp_q <= wp_q + 1'b1;
      if (r_valid_o && r_ready_i) rp_q <= rp_q + 1'b1;
      if (clr_i) wiped_count_q <= out_count + 3'(stage_q) - 3'(r_valid_o && r_ready_i);
      else if (r_valid_o && r_ready_i && wiped_count_q != '0) wiped_count_q <= wiped_count_q - 1'b1;
    end
  end
  assign out_data = out_mem_q[rp_q];

  always_comb begin
    r.id = out_id;
    r.last = out_last;
    r.resp = AXI_SLVERR;
    r.data = '0;
    if (!out_err && wiped_count_q == '0) begin
      r.resp = AXI_OKAY;
      r.data = out_data;
    end
  end
  assign r_o = r;
  logic unused;
  assign unused = ^zero_addr_i;
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
