// Reads of the window to card memory: splits each into bursts of at most 8 beats inside 512 bytes,
// and answers in request order.
//
// Handshake: AR and R as AXI4 slave, AR and R (always accepted) as AXI4 master of card memory, with
// a separate id for each of the Slots bursts in flight. Open reads are accepted. One beat a cycle;
// three cycles from AR to AR, four from R to R.
// cut_i (level): reads that are open, and those that come, are answered with zeros and SLVERR, and
// send no further burst; it stays until quiet_o (level, nothing in flight at memory), or hold_i.
// hold_i (level, with cut_i): resets what is at memory. owed_o, bad_o: as in shef_dma_reader.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_h2c_reads
  import shef_pkg::*;
  import shef_h2c_pkg::*;
#(
    parameter logic [63:0] CardBytes = 64'h4_0000_0000,
    parameter int unsigned Open = 32,
    parameter int unsigned Slots = 64
) (
    input  wire           clk_i,
    input  wire           rst_ni,
    input  wire           hold_i,
    input  wire           cut_i,
    input  wire  axi_ax_t ar_i,
    input  wire           ar_valid_i,
    output logic          ar_ready_o,
    output axi_r_t        r_o,
    output logic          r_valid_o,
    input  wire           r_ready_i,
    output axi_ax_t       mem_ar_o,
    output logic          mem_ar_valid_o,
    input  wire           mem_ar_ready_i,
    input  wire  axi_r_t  mem_r_i,
    input  wire           mem_r_valid_i,
    output logic          quiet_o,
    output logic          owed_o,
    output logic          bad_o
);
  localparam int unsigned OW = $clog2(Open);
  localparam int unsigned IW = $clog2(8 * Slots + 1);

  typedef struct packed {
    logic [AXI_ID_W-1:0] id;
    logic [7:0] len;
    h2c_kind_e kind;
  } read_t;

  typedef struct packed {
    logic [57:0] line;  // address / 64
    logic [5:0] len;
  } burst_t;

  // ---- open reads ----
  read_t in, head;
  logic push, pop, head_valid;
  logic [OW:0] count;
  assign in = '{id: ar_i.id, len: ar_i.len, 
      kind: h2c_kind(ar_i.addr, ar_i.len, ar_i.size, ar_i.burst, CardBytes, cut_i)};
  assign push = ar_valid_i && ar_ready_o;
  shef_fifo #(.W($bits(read_t)), .Depth(Open)) u_open (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(ar_valid_i), .in_ready_o(ar_ready_o), .in_data_i(in),
      .out_valid_o(head_valid), .out_ready_i(pop), .out_data_o(head), .count_o(count)
  );

  // ---- bursts: no more reads than are open ----
  burst_t whole;
  logic whole_valid, part_ready, part, part_end;
  logic [5:0] done_q, line, left;  // beats of the read that are requested; line in its page
  logic [6:0] room, part_beats;    // up to the end of the 512 bytes
  shef_fifo #(.W($bits(burst_t)), .Depth(Open)) u_whole (
      .clk_i, .rst_ni(rst_ni && !cut_i), .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(push && in.kind == H2C_MEMORY), .in_ready_o(),
      .in_data_i({ar_i.addr[63:6], ar_i.len[5:0]}),
      .out_valid_o(whole_valid), .out_ready_i(part && part_end), .out_data_o(whole), .count_o()
  );
  assign line = whole.line[5:0] + done_q;
  assign left = whole.len - done_q;
  assign room = 7'd8 - {4'd0, line[2:0]};
  assign part_end = {1'b0, left} < room;
  assign part_beats = part_end ? {1'b0, left} + 7'd1 : room;
  assign part = whole_valid && !cut_i && part_ready;

  // ---- card memory ----
  logic beat_valid, beat_ready;
  logic [511:0] beat;
  logic [1:0] resp;
  shef_dma_reader #(
      .Slots(Slots),
      .Beats(8)
  ) u_reader (
      .clk_i,
      .rst_ni(rst_ni && !hold_i),
      .req_valid_i(whole_valid && !cut_i),
      .req_ready_o(part_ready),
      .req_line_i({whole.line[57:6], line}),
      .req_beats_i(part_beats),
      .ar_o(mem_ar_o),
      .ar_valid_o(mem_ar_valid_o),
      .ar_ready_i(mem_ar_ready_i),
      .r_i(mem_r_i),
      .r_valid_i(mem_r_valid_i),
      .beat_valid_o(beat_valid),
      .beat_ready_i(beat_ready),
      .beat_o(beat),
      .resp_o(resp),
      .owed_o,
      .bad_o
  );

  // ---- responses ----
  axi_r_t r_q;
  logic r_valid_q, stale, fill, load;
  logic [OW:0] stale_q;    // open reads that were cut, the oldest ones
  logic [7:0] at_q;        // beats of the oldest read that are answered
  logic [IW-1:0] inside_q; // beats that the reader owes
  assign stale = cut_i || stale_q != '0;
  assign fill = stale || head.kind != H2C_MEMORY;
  assign load = head_valid && (!r_valid_q || r_ready_i) && (fill || beat_valid);
  assign pop = load && at_q == head.len;
  assign beat_ready = cut_i || (load && !fill);
  assign r_o = r_q;
  assign r_valid_o = r_valid_q;
  assign quiet_o = inside_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_q <= '0;
      r_valid_q <= 1'b0;
      stale_q <= '0;
      at_q <= '0;
      done_q <= '0;
      inside_q <= '0;
    end else begin
      if (load) begin
        r_q <= '{
            id: head.id,
            data: fill ? '0 : beat,
            resp: !fill ? resp : head.kind == H2C_OUTSIDE ? AXI_OKAY : AXI_SLVERR,
            last: pop
        };
        at_q <= pop ? '0 : at_q + 1'b1;
      end
      if (load || r_ready_i) r_valid_q <= load;

      if (cut_i) stale_q <= count + (OW + 1)'(push) - (OW + 1)'(pop);
      else if (pop && stale_q != '0) stale_q <= stale_q - 1'b1;

      if (cut_i) done_q <= '0;
      else if (part) done_q <= part_end ? '0 : done_q + part_beats[5:0];
      if (hold_i) inside_q <= '0;
      else inside_q <= inside_q + (part ? IW'(part_beats) : '0) - IW'(beat_valid && beat_ready);
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
