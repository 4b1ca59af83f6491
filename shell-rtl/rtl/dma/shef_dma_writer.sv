// Write side of a mover: collects beats into whole bursts, sends them, and reports the end of each
// piece when all its bursts are acknowledged.
//
// Handshake: beats in and bursts in (valid/ready), a burst with or after its last beat; AXI4 AW/W
// under id 0, B always accepted. W never waits for data inside a burst. At most Open bursts are
// outstanding. done_valid_o is a pulse, in the order of the pieces; the status is Error if a B of
// the piece was not OKAY, else that of the piece. One beat a cycle.
// owed_o (level): a B is outstanding. bad_o (pulse): an unowed B.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_dma_writer
  import shef_pkg::*;
  import shef_dma_pkg::*;
#(
    parameter int unsigned Depth = 128,       // beats, at least two bursts
    parameter int unsigned Bursts = 16,       // waiting to be sent
    // bursts, and pieces without one, that await their response
    parameter int unsigned Open = 32,
    // AWADDR is that of the beat, not that of its first byte
    parameter bit WholeBeats = 1'b0,
    parameter status_e Error = ST_CARD
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          beat_valid_i,
    output logic         beat_ready_o,
    input  wire  [511:0] beat_i,
    input  wire  [63:0]  strb_i,
    input  wire          burst_valid_i,
    output logic         burst_ready_o,
    input  wire  burst_t burst_i,
    output axi_ax_t      aw_o,
    output logic         aw_valid_o,
    input  wire          aw_ready_i,
    output axi_w_t       w_o,
    output logic         w_valid_o,
    input  wire          w_ready_i,
    input  wire  axi_b_t b_i,
    input  wire          b_valid_i,
    output logic         done_valid_o,
    output done_t        done_o,
    output logic         owed_o,
    output logic         bad_o
);
  typedef struct packed {
    logic answered;  // by a B
    logic ends;
    done_t done;
  } owed_t;

  logic fifo_valid, fifo_pop, burst_valid, burst_pop, order_room, order_valid, order_pop;
  logic [511:0] fifo_data;
  logic [63:0] fifo_strb;
  burst_t burst;
  owed_t order_in, order;

  shef_bram_fifo #(.W(576), .Depth(Depth)) u_beats (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(beat_valid_i), .in_ready_o(beat_ready_o), .in_data_i({strb_i, beat_i}),
      .out_valid_o(fifo_valid), .out_ready_i(fifo_pop), .out_data_o({fifo_strb, fifo_data}),
      .count_o()
  );
  shef_fifo #(.W($bits(burst_t)), .Depth(Bursts)) u_bursts (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(burst_valid_i), .in_ready_o(burst_ready_o), .in_data_i(burst_i),
      .out_valid_o(burst_valid), .out_ready_i(burst_pop), .out_data_o(burst), .count_o()
  );
  shef_fifo #(.W($bits(owed_t)), .Depth(Open)) u_order (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(burst_pop), .in_ready_o(order_room), .in_data_i(order_in),
      .out_valid_o(order_valid), .out_ready_i(order_pop), .out_data_o(order), .count_o()
  );

  // ---- AW and W ----
  axi_ax_t aw_q;
  axi_w_t w_q;
  logic aw_valid_q, w_valid_q, active_q, aw_free, w_free, load, load_end, start;
  logic [6:0] left_q;

  assign aw_free = !aw_valid_q || aw_ready_i;
  assign w_free = !w_valid_q || w_ready_i;
  assign load = active_q && w_free && fifo_valid;
  assign load_end = load && left_q == 7'd1;
  assign start = burst_valid && burst.beats != '0 && order_room && aw_free &&
      (!active_q || load_end);
  assign burst_pop = start || (burst_valid && burst.beats == '0 && order_room);
  assign order_in = '{
      answered: burst.beats != '0,
      ends: burst.ends,
      done: '{q: burst.q, last: burst.last, status: burst.status}
  };
  assign fifo_pop = load;
  assign aw_o = aw_q;
  assign aw_valid_o = aw_valid_q;
  assign w_o = w_q;
  assign w_valid_o = w_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      active_q <= 1'b0;
      left_q <= '0;
      aw_q <= '0;
      w_q <= '0;
    end else begin
      if (aw_free) aw_valid_q <= start;
      if (start) begin
        aw_q <= '{
            id: '0,
            addr: {burst.addr[63:6], WholeBeats ? 6'd0 : burst.addr[5:0]},
            len: {1'b0, burst.beats} - 8'd1,
            size: AXI_SIZE_64,
            burst: AXI_BURST_INCR
        };
        active_q <= 1'b1;
        left_q <= burst.beats;
      end else if (load_end) active_q <= 1'b0;
      else if (load) left_q <= left_q - 7'd1;
      if (w_free) w_valid_q <= load;
      if (load) w_q <= '{data: fifo_data, strb: fifo_strb, last: left_q == 7'd1};
    end
  end

  // ---- B ----
  logic [$clog2(Open):0] owed_q;  // bursts that have no B yet
  logic b_take, b_valid, b_pop, b_error;
  status_e status_q, status;
  assign owed_o = owed_q != '0;
  assign b_take = b_valid_i && owed_q != '0 && b_i.id == '0;
  assign bad_o = b_valid_i && !b_take;
  // The end of a piece without a burst may precede the burst of the next response.
  shef_fifo #(.W(1), .Depth(Open)) u_answers (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(b_take), .in_ready_o(), .in_data_i(b_i.resp != AXI_OKAY),
      .out_valid_o(b_valid), .out_ready_i(b_pop), .out_data_o(b_error), .count_o()
  );
  assign order_pop = order_valid && (!order.answered || b_valid);
  assign b_pop = order_valid && order.answered;
  always_comb begin
    status = status_q;
    if (status == ST_DONE && order.answered && b_error) status = Error;
    if (status == ST_DONE) status = order.done.status;
  end
  assign done_valid_o = order_pop && order.ends;
  assign done_o = '{q: order.done.q, last: order.done.last, status: status};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      owed_q <= '0;
      status_q <= ST_DONE;
    end else begin
      if (start != b_take) owed_q <= start ? owed_q + 1'b1 : owed_q - 1'b1;
      if (order_pop) status_q <= order.ends ? ST_DONE : status;
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
