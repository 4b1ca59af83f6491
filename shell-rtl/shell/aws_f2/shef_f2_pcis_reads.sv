// Reads of PCIS, on the shell's clock: forwards them to the core, and answers each in time, in
// order, whatever the core does.
//
// Handshake: ar, r as on PCIS, at most Open reads; ask: reads for the core (valid/ready), beat: its
// data (valid/ready), in order. ar_ready_o never waits for the core. A read is forwarded if link_i
// is high, else it is answered at once. An answer of this module is all ones with SLVERR; it
// replaces the beats that the core does not deliver by the deadline, or before link_i falls. The
// core's beats for them are dropped when they come, before those of later reads.
// The last beat is offered within Cycles cycles of ar_valid_i, not counting those in which the
// shell does not take a beat, unless the open reads had more beats than that.
// up_i: low while the path to the core is in reset: then the core owes nothing (owed_o).
// late_o (pulse): a read was answered without the core although link_i was high.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_f2_pcis_reads
  import shef_pkg::*;
#(
    parameter int unsigned Open = 32,
    parameter int unsigned Cycles = 1250,
    parameter int unsigned Step = 32,
    parameter int unsigned OwedBits = 13  // the core owes at most half as many beats, and one burst
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic         up_i,
    input  wire logic         link_i,
    output logic              owed_o,
    input  wire logic [15:0]  ar_id_i,
    input  wire logic [63:0]  ar_addr_i,
    input  wire logic [7:0]   ar_len_i,
    input  wire logic         ar_valid_i,
    output logic              ar_ready_o,
    output logic [15:0]       r_id_o,
    output logic [511:0]      r_data_o,
    output logic [1:0]        r_resp_o,
    output logic              r_last_o,
    output logic              r_valid_o,
    input  wire logic         r_ready_i,
    output logic [57:0]       ask_line_o,  // address / 64
    output logic [5:0]        ask_len_o,
    output logic              ask_valid_o,
    input  wire logic         ask_ready_i,
    input  wire logic [511:0] beat_i,
    input  wire logic [1:0]   resp_i,
    input  wire logic         beat_valid_i,
    output logic              beat_ready_o,
    output logic              late_o
);
  localparam int unsigned OW = $clog2(Open);
  localparam int unsigned WorkBits = OW + 10;
  typedef logic [OwedBits-1:0] owed_t;

  typedef struct packed {
    logic [15:0] id;
    logic [7:0] len;
    logic forward;
    logic late;
  } read_t;

  logic unused;
  assign unused = ^ar_addr_i[5:0];

  owed_t owed_q, skip_q;   // beats that the core owes, and those of them that will be dropped

  // ---- open reads ----
  read_t in, head;
  logic push, pop, head_valid, room;
  logic [OW:0] count;
  logic [WorkBits-1:0] beats_q;  // of the open reads, to be offered
  // In reset, nothing is accepted: it would be lost.
  assign ar_ready_o = rst_ni && room;
  assign push = ar_valid_i && ar_ready_o;
  assign ask_line_o = ar_addr_i[63:6];
  assign ask_len_o = ar_len_i[5:0];
  assign ask_valid_o = push && link_i && ar_len_i[7:6] == '0 && !owed_q[OwedBits-1];
  assign in = '{
      id: ar_id_i,
      len: ar_len_i,
      forward: ask_valid_o && ask_ready_i,
      late: link_i && !(ask_valid_o && ask_ready_i)
  };
  shef_fifo #(.W($bits(read_t)), .Depth(Open)) u_open (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(ar_valid_i), .in_ready_o(room), .in_data_i(in),
      .out_valid_o(head_valid), .out_ready_i(pop), .out_data_o(head), .count_o(count)
  );

  logic late;
  shef_f2_deadline #(
      .Open(Open),
      .Cycles(Cycles - 2),  // from ar_valid_i, and to r_valid_o
      .Step(Step),
      .WorkBits(WorkBits)
  ) u_deadline (
      .clk_i,
      .rst_ni,
      .push_i(push),
      .pop_i(pop),
      .work_i(beats_q + WorkBits'(count)),
      .late_o(late)
  );

  // ---- beats ----
  logic [OW:0] stale_q;    // open reads from before the path was reset, the oldest ones
  logic [7:0] at_q;        // beats of the oldest read that were offered
  logic filled_q;          // one of them was late
  logic mine, real_beat, load, fill;
  assign mine = head.forward && up_i && stale_q == '0;
  assign real_beat = mine && beat_valid_i && skip_q == '0;
  assign load = head_valid && (!r_valid_o || r_ready_i) &&
      (!mine || real_beat || late || !link_i);
  assign fill = load && mine && !real_beat;
  assign pop = load && at_q == head.len;
  assign beat_ready_o = skip_q != '0 || owed_q == '0 || (load && real_beat);
  assign owed_o = owed_q != '0;

  always_ff @(posedge clk_i) begin
    if (load) begin
      r_id_o <= head.id;
      r_data_o <= real_beat ? beat_i : '1;
      r_resp_o <= real_beat ? resp_i : AXI_SLVERR;
      r_last_o <= pop;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beats_q <= '0;
      r_valid_o <= 1'b0;
      at_q <= '0;
      filled_q <= 1'b0;
      stale_q <= '0;
      owed_q <= '0;
      skip_q <= '0;
      late_o <= 1'b0;
    end else begin
      beats_q <= beats_q + (push ? WorkBits'(ar_len_i) + 1'b1 : '0) - WorkBits'(load);
      if (load || r_ready_i) r_valid_o <= load;
      if (load) begin
        at_q <= pop ? '0 : at_q + 1'b1;
        filled_q <= !pop && (filled_q || (fill && link_i));
      end
      late_o <= pop && (head.late || filled_q || (fill && link_i));

      if (!up_i) begin
        stale_q <= count + (OW + 1)'(push) - (OW + 1)'(pop);
        owed_q <= '0;
        skip_q <= '0;
      end else begin
        if (pop && stale_q != '0) stale_q <= stale_q - 1'b1;
        owed_q <= owed_q + (in.forward && push ? owed_t'(ar_len_i) + 1'b1 : '0) -
            owed_t'(beat_valid_i && beat_ready_o && owed_q != '0);
        skip_q <= skip_q + owed_t'(fill) - owed_t'(beat_valid_i && skip_q != '0);
      end
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
