// One queue of the DMA engine: registers, state and interrupts.
//
// write_i is a pulse with register offset and value; invalid writes are dropped. read_i selects
// data_o combinationally. Address and length of the ring and the interrupt can be written while the
// queue is off. clear_i (level) turns the queue off and then zeroes its registers; quiet_o (level)
// indicates that it is off. dead_i (level): the engine has no access to its ports any more. A queue
// that is turned off shows it only when it has nothing in flight on a bus.
// irq_valid_o is held, with the same vector, until irq_ready_i. The other ports are those of
// shef_dma_work.
`default_nettype none
module shef_dma_queue
  import shef_pkg::*;
  import shef_dma_pkg::*;
  import shef_dma_regs_pkg::*;
#(
    parameter int unsigned Queue = 0,
    parameter logic [63:0] CardBytes = 64'h4_0000_0000
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clear_i,
    input  wire          dead_i,
    output logic         quiet_o,
    input  wire          write_i,
    input  wire  [5:0]   write_reg_i,
    input  wire  [31:0]  write_data_i,
    input  wire  [5:0]   read_i,
    output logic [31:0]  data_o,

    output logic         fetch_valid_o,
    input  wire          fetch_ready_i,
    output fetch_t       fetch_o,
    input  wire          beat_valid_i,
    input  wire  desc_t  beat_i,
    input  wire          beat_error_i,
    input  wire          beat_last_i,
    output logic [1:0]   piece_valid_o,
    input  wire  [1:0]   piece_ready_i,
    output piece_t       piece_o,
    input  wire          done_valid_i,
    input  wire          done_last_i,
    input  wire status_e done_status_i,
    output logic         cpl_valid_o,
    input  wire          cpl_ready_i,
    output cpl_t         cpl_o,
    input  wire          told_i,
    input  wire          told_ok_i,

    output logic         irq_valid_o,
    input  wire          irq_ready_i,
    output logic [15:0]  irq_vector_o
);
  life_e life_q;
  logic stopping_q, on, off, enable, sense, tail_ok, fails, idle, busy, failed;
  logic [63:0] ring_q;
  logic [31:0] entries_q, interrupt_q, tail_q, head;

  assign off = life_q == LIFE_OFF;
  assign on = life_q == LIFE_ON && !stopping_q;
  assign quiet_o = off;
  assign sense = ring_q[11:0] == '0 && entries_q <= MAX_ENTRIES && entries_q >= 32'd2 &&
      (entries_q & (entries_q - 32'd1)) == '0;
  assign enable = write_i && write_reg_i == DMA_CONTROL_OFFSET &&
      write_data_i == DMA_CONTROL_COMMAND_ENABLE && off && sense && !clear_i && !dead_i;
  // The doorbell only advances, and not past the capacity of the ring.
  assign tail_ok = write_data_i - head <= entries_q && write_data_i - head >= tail_q - head;
  assign fails = on && (failed || dead_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      life_q <= LIFE_OFF;
      stopping_q <= 1'b0;
      ring_q <= '0;
      entries_q <= '0;
      interrupt_q <= '0;
      tail_q <= '0;
    end else begin
      if (write_i) begin
        unique case (write_reg_i)
          DMA_RING_LO_OFFSET: if (off) ring_q[31:0] <= write_data_i;
          DMA_RING_HI_OFFSET: if (off) ring_q[63:32] <= write_data_i;
          DMA_ENTRIES_OFFSET: if (off) entries_q <= write_data_i;
          DMA_INTERRUPT_OFFSET: if (off) interrupt_q <= write_data_i;
          DMA_TAIL_OFFSET: if (on && tail_ok) tail_q <= write_data_i;
          DMA_CONTROL_OFFSET:
            if (write_data_i == DMA_CONTROL_COMMAND_OFF && !off) stopping_q <= 1'b1;
          default: ;
        endcase
      end
      if (enable) begin
        life_q <= LIFE_ON;
        tail_q <= '0;
      end
      if (fails) life_q <= LIFE_FAILED;
      if (stopping_q && !busy) begin
        life_q <= LIFE_OFF;
        stopping_q <= 1'b0;
        tail_q <= '0;
      end
      if (clear_i) begin
        if (!off) stopping_q <= !(stopping_q && !busy);
        else begin
          ring_q <= '0;
          entries_q <= '0;
          interrupt_q <= '0;
          tail_q <= '0;
        end
      end
    end
  end

  always_comb begin
    unique case (read_i)
      DMA_RING_LO_OFFSET: data_o = ring_q[31:0];
      DMA_RING_HI_OFFSET: data_o = ring_q[63:32];
      DMA_ENTRIES_OFFSET: data_o = entries_q;
      DMA_TAIL_OFFSET: data_o = tail_q;
      DMA_STATUS_OFFSET: data_o = 32'(life_q);
      DMA_INTERRUPT_OFFSET: data_o = interrupt_q;
      default: data_o = '0;
    endcase
  end

  shef_dma_work #(
      .Queue(Queue),
      .CardBytes(CardBytes)
  ) u_work (
      .clk_i,
      .rst_ni,
      .on_i(on),
      .start_i(enable),
      .cancel_i(write_i && write_reg_i == DMA_CONTROL_OFFSET &&
      write_data_i == DMA_CONTROL_COMMAND_CANCEL),
      .ring_i(ring_q),
      .entries_i(entries_q[12:0]),
      .tail_i(tail_q),
      .head_o(head),
      .idle_o(idle),
      .busy_o(busy),
      .failed_o(failed),
      .fetch_valid_o,
      .fetch_ready_i,
      .fetch_o,
      .beat_valid_i,
      .beat_i,
      .beat_error_i,
      .beat_last_i,
      .piece_valid_o,
      .piece_ready_i,
      .piece_o,
      .done_valid_i,
      .done_last_i,
      .done_status_i,
      .cpl_valid_o,
      .cpl_ready_i,
      .cpl_o,
      .told_i,
      .told_ok_i
  );

  // ---- interrupts: one for many completions, at the latest when nothing is left ----
  logic [15:0] untold_q;  // completions not covered by an interrupt yet
  logic irq_q, due, news;
  assign news = interrupt_q[31:16] != '0 && ((told_i && told_ok_i && on) || fails);
  assign due = untold_q != '0 && (untold_q >= interrupt_q[31:16] || idle ||
      life_q == LIFE_FAILED) && !irq_q;
  assign irq_valid_o = irq_q;
  assign irq_vector_o = interrupt_q[15:0];
  always_ff @(posedge clk_i) begin
    if (!rst_ni || off) begin
      untold_q <= '0;
      irq_q <= 1'b0;
    end else begin
      if (due) untold_q <= 16'(news);
      else if (news) untold_q <= untold_q + 16'd1;
      if (due) irq_q <= 1'b1;
      else if (irq_ready_i) irq_q <= 1'b0;
    end
  end
endmodule
`default_nettype wire
