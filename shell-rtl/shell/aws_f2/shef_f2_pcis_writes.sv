// Writes of PCIS, on the shell's clock: forwards them to the core, and answers each in time, in
// order, whatever the core does.
//
// Handshake: aw, w, b as on PCIS, at most Open writes; data: beats for the core (valid, always
// accepted: at most Beats are at the core, or on the way), ask: their write (valid/ready), in the
// cycle of its last beat; done: its response (valid/ready), in order. aw_ready_o never waits for
// the core, w_ready_o waits for room, up to the deadline.
// A write is forwarded, as a whole, if link_i is high at its first beat and there is room; else its
// data are dropped, at once if link_i is low, and it is answered with SLVERR. So is one that the
// core does not answer by the deadline, or before link_i falls; the late response is dropped.
// A response is offered within Cycles cycles of aw_valid_i, not counting those in which the shell
// does not take a response or has no data, unless the open writes had more beats than that.
// up_i: low while the path to the core is in reset: then the core owes nothing (owed_o).
// late_o (pulse): a write was answered without the core although link_i was high.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_f2_pcis_writes
  import shef_pkg::*;
#(
    parameter int unsigned Open = 32,
    parameter int unsigned Cycles = 1250,
    parameter int unsigned Step = 32,
    parameter int unsigned Beats = 512,  // power of two
    parameter int unsigned Owed = 64     // writes at the core, or on the way
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        up_i,
    input  wire logic        link_i,
    output logic             owed_o,
    input  wire logic [15:0] aw_id_i,
    input  wire logic [63:0] aw_addr_i,
    input  wire logic [7:0]  aw_len_i,
    input  wire logic        aw_valid_i,
    output logic             aw_ready_o,
    input  wire logic        w_valid_i,
    output logic             w_ready_o,
    output logic [15:0]      b_id_o,
    output logic [1:0]       b_resp_o,
    output logic             b_valid_o,
    input  wire logic        b_ready_i,
    output logic             data_valid_o,
    output logic             data_last_o,
    output logic [57:0]      ask_line_o,  // address / 64
    output logic [5:0]       ask_len_o,
    output logic             ask_valid_o,
    input  wire logic        ask_ready_i,
    input  wire logic [1:0]  done_resp_i,
    input  wire logic        done_valid_i,
    output logic             done_ready_o,
    output logic             late_o
);
  localparam int unsigned OW = $clog2(Open);
  localparam int unsigned HW = $clog2(Beats) + 1;
  localparam int unsigned WorkBits = OW + 10;

  typedef struct packed {
    logic [15:0] id;
    logic [57:0] line;
    logic [7:0] len;
  } write_t;

  typedef struct packed {
    logic [15:0] id;
    logic forward;
    logic late;
  } answer_t;

  logic unused;
  assign unused = ^aw_addr_i[5:0];

  // ---- open writes ----
  logic push, pop, w_take, w_end, late_data, late_answer;
  logic [OW:0] open_q;
  logic [WorkBits-1:0] beats_q, work;  // beats of the open writes, to be taken
  // In reset, nothing is accepted: it would be lost.
  assign aw_ready_o = rst_ni && open_q != (OW + 1)'(Open);
  assign push = aw_valid_i && aw_ready_o;
  // a write with its data takes a cycle more, and its answer two
  assign work = beats_q + WorkBits'({open_q, 1'b0}) + WorkBits'(open_q);
  shef_f2_deadline #(
      .Open(Open), .Cycles(Cycles - 3), .Step(Step), .WorkBits(WorkBits)
  ) u_data_deadline (
      .clk_i, .rst_ni, .push_i(push), .pop_i(w_take && w_end), .work_i(work), .late_o(late_data)
  );
  shef_f2_deadline #(
      .Open(Open), .Cycles(Cycles - 3), .Step(Step), .WorkBits(WorkBits)
  ) u_answer_deadline (
      .clk_i, .rst_ni, .push_i(push), .pop_i(pop), .work_i(work), .late_o(late_answer)
  );

  // ---- data ----
  write_t at;
  logic at_valid, first, room, may, forward, forward_q, owed_room, owed_valid;
  logic [7:0] at_q;      // beats of the write that were taken
  logic [HW-1:0] held_q; // beats at the core, or reserved
  logic [5:0] owed_len;
  shef_fifo #(.W($bits(write_t)), .Depth(Open)) u_data (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(push), .in_ready_o(), .in_data_i({aw_id_i, aw_addr_i[63:6], aw_len_i}),
      .out_valid_o(at_valid), .out_ready_i(w_take && w_end), .out_data_o(at), .count_o()
  );
  assign first = at_q == '0;
  assign w_end = at_q == at.len;
  assign room = HW'(Beats) - held_q > HW'(at.len[5:0]) && owed_room && ask_ready_i;
  assign may = link_i && at.len[7:6] == '0;
  assign forward = first ? may && room : forward_q;
  assign w_ready_o = at_valid && (forward || !first || !may || late_data);
  assign w_take = w_valid_i && w_ready_o;
  assign data_valid_o = w_take && forward;
  assign data_last_o = w_end;
  assign ask_line_o = at.line;
  assign ask_len_o = at.len[5:0];
  assign ask_valid_o = w_take && w_end && forward;

  // ---- responses of the core, in order; those of dropped writes are skipped ----
  logic done;
  shef_fifo #(.W(6), .Depth(Owed)) u_owed (
      .clk_i, .rst_ni(rst_ni && up_i), .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(ask_valid_o), .in_ready_o(owed_room), .in_data_i(at.len[5:0]),
      .out_valid_o(owed_valid), .out_ready_i(done), .out_data_o(owed_len), .count_o()
  );
  assign done = done_valid_i && done_ready_o;
  assign owed_o = owed_valid || (forward_q && !first);

  // ---- answers ----
  answer_t in, head;
  logic head_valid, mine, real_done, fill;
  logic [OW:0] count, stale_q;            // answers from before the path was reset, the oldest ones
  logic [$clog2(Owed):0] skip_q;          // responses of the core that will be dropped
  assign in = '{id: at.id, forward: forward, late: link_i && !forward};
  shef_fifo #(.W($bits(answer_t)), .Depth(Open)) u_answers (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(w_take && w_end), .in_ready_o(), .in_data_i(in),
      .out_valid_o(head_valid), .out_ready_i(pop), .out_data_o(head), .count_o(count)
  );
  assign mine = head.forward && up_i && stale_q == '0;
  assign real_done = mine && done_valid_i && skip_q == '0;
  assign pop = head_valid && (!b_valid_o || b_ready_i) &&
      (!mine || real_done || late_answer || !link_i);
  assign fill = pop && mine && !real_done;
  assign done_ready_o = skip_q != '0 || !owed_valid || (pop && real_done);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q <= '0;
      beats_q <= '0;
      at_q <= '0;
      forward_q <= 1'b0;
      held_q <= '0;
      stale_q <= '0;
      skip_q <= '0;
      b_id_o <= '0;
      b_resp_o <= '0;
      b_valid_o <= 1'b0;
      late_o <= 1'b0;
    end else begin
      if (push != pop) open_q <= push ? open_q + 1'b1 : open_q - 1'b1;
      beats_q <= beats_q + (push ? WorkBits'(aw_len_i) + 1'b1 : '0) - WorkBits'(w_take);
      if (w_take) at_q <= w_end ? '0 : at_q + 1'b1;
      if (pop) begin
        b_id_o <= head.id;
        b_resp_o <= real_done ? done_resp_i : AXI_SLVERR;
      end
      if (pop || b_ready_i) b_valid_o <= pop;
      late_o <= pop && (head.late || (fill && link_i));

      if (!up_i) begin
        forward_q <= 1'b0;
        held_q <= '0;
        stale_q <= count + (OW + 1)'(w_take && w_end) - (OW + 1)'(pop);
        skip_q <= '0;
      end else begin
        if (w_take) forward_q <= forward;
        held_q <= held_q + (w_take && first && forward ? HW'(at.len) + 1'b1 : '0) -
            (done && owed_valid ? HW'(owed_len) + 1'b1 : '0);
        if (pop && stale_q != '0) stale_q <= stale_q - 1'b1;
        skip_q <= skip_q + ($clog2(Owed) + 1)'(fill) -
            ($clog2(Owed) + 1)'(done_valid_i && skip_q != '0);
      end
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
