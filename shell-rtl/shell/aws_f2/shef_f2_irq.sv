// Interrupts in the shell of AWS F2.
//
// dma_irq_*, irq_*: from shef_system, on core_clk_i; the accelerator's is ACCELERATOR_VECTOR.
// req_o: one cycle of main_clk_i for each interrupt, never a second one of a vector before ack_i;
// interrupts of a vector that wait become one. dropped_o: an interrupt of a vector that the shell
// does not have. run_i as in shef_f2_pcim; low drops what waits.
`default_nettype none
module shef_f2_irq
  import shef_f2_pkg::*;
(
    input  wire logic main_clk_i,
    input  wire logic main_rst_ni,
    input  wire logic run_i,
    output logic [15:0] req_o,
    input  wire logic [15:0] ack_i,
    output logic      dropped_o,
    input  wire logic core_clk_i,
    input  wire logic dma_irq_valid_i,
    input  wire logic [15:0] dma_irq_vector_i,
    output logic      dma_irq_ready_o,
    input  wire logic irq_req_i,
    output logic      irq_ack_o
);
  logic main_path_rst_n, core_path_rst_n;
  shef_reset_sync u_main_rst (
      .clk_i(main_clk_i),
      .rst_ni(run_i),
      .rst_no(main_path_rst_n)
  );
  shef_reset_sync u_core_rst (
      .clk_i(core_clk_i),
      .rst_ni(run_i),
      .rst_no(core_path_rst_n)
  );

  // The path is up.
  logic up_q;
  always_ff @(posedge main_clk_i or negedge main_path_rst_n) begin
    if (!main_path_rst_n) up_q <= 1'b0;
    else up_q <= 1'b1;
  end

  logic ready, valid;
  logic [15:0] vector;
  assign dma_irq_ready_o = ready;
  assign irq_ack_o = ready && irq_req_i && !dma_irq_valid_i;

  shef_async_fifo #(.W(16), .Depth(16)) u_vectors (
      .wr_clk_i(core_clk_i), .wr_rst_ni(core_path_rst_n),
      .wr_valid_i(dma_irq_valid_i || irq_req_i), .wr_ready_o(ready),
      .wr_data_i(dma_irq_valid_i ? dma_irq_vector_i : ACCELERATOR_VECTOR),
      .rd_clk_i(main_clk_i), .rd_rst_ni(main_path_rst_n),
      .rd_valid_o(valid), .rd_ready_i(1'b1), .rd_data_o(vector)
  );

  logic [15:0] wait_q, open_q, req_q;  // to be raised; raised and not acknowledged
  wire [15:0] raise = wait_q & ~open_q;
  assign req_o = req_q;
  assign dropped_o = valid && up_q && vector[15:4] != '0;

  always_ff @(posedge main_clk_i) begin
    if (!main_rst_ni) begin
      wait_q <= '0;
      open_q <= '0;
      req_q <= '0;
    end else begin
      req_q <= up_q ? raise : '0;
      open_q <= (open_q & ~ack_i) | (up_q ? raise : '0);
      if (!up_q) begin
        wait_q <= '0;
      end else begin
        wait_q <= wait_q & ~raise;
        if (valid && vector[15:4] == '0) wait_q[vector[3:0]] <= 1'b1;
      end
    end
  end
endmodule
`default_nettype wire
