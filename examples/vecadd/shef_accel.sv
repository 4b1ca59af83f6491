// Vector addition: result = a + b over blocks of 512 bytes (128 words of 32 bits), through a
// scratch buffer.
//
// Registers (AXI4-Lite, 32 bit): 0x00 CTRL, write 1: start; 0x04 STATUS: bit 0 busy, bit 1 done,
// bit 2 error; 0x08 BLOCKS; 0x10 A, 0x14 B, 0x18 SUMS, 0x1c RESULT, 0x20 PROGRESS: addresses,
// multiples of 512. Any other address returns SLVERR. Writes while busy have no effect.
// Memory: AXI4 master acc_*, bursts of eight beats, one at a time. First pass: for each block read
// a, read b, write the sums; second pass: read the sums, write the result; then write one beat with
// the number of blocks to PROGRESS. After a response other than OKAY the run issues no further
// requests and sets STATUS.error. irq_o (level) is STATUS.done.
`default_nettype none
module shef_accel
  import shef_pkg::*;
(
  input  wire          clk_i,
  input  wire          rst_ni,
  input  wire          clear_i,     // zero all memories, in reset
  output wire          cleared_o,   // done, until clear_i falls

  input  wire   [15:0] reg_awaddr_i,
  input  wire          reg_awvalid_i,
  output wire          reg_awready_o,
  input  wire   [31:0] reg_wdata_i,
  input  wire   [ 3:0] reg_wstrb_i,
  input  wire          reg_wvalid_i,
  output wire          reg_wready_o,
  output wire   [ 1:0] reg_bresp_o,
  output wire          reg_bvalid_o,
  input  wire          reg_bready_i,
  input  wire   [15:0] reg_araddr_i,
  input  wire          reg_arvalid_i,
  output wire          reg_arready_o,
  output wire   [31:0] reg_rdata_o,
  output wire   [ 1:0] reg_rresp_o,
  output wire          reg_rvalid_o,
  input  wire          reg_rready_i,

  output axi_ax_t      acc_aw_o,
  output wire          acc_aw_valid_o,
  input  wire          acc_aw_ready_i,
  output axi_w_t       acc_w_o,
  output wire          acc_w_valid_o,
  input  wire          acc_w_ready_i,
  input  wire axi_b_t  acc_b_i,
  input  wire          acc_b_valid_i,
  output wire          acc_b_ready_o,
  output axi_ax_t      acc_ar_o,
  output wire          acc_ar_valid_o,
  input  wire          acc_ar_ready_i,
  input  wire axi_r_t  acc_r_i,
  input  wire          acc_r_valid_i,
  output wire          acc_r_ready_o,

  output wire          irq_o
);
  localparam int unsigned BEATS = 8;

  // Reset clears every register, and there are no other memories.
  assign cleared_o = clear_i;

  // ---- registers ----
  logic [31:0] blocks_q, a_q, b_q, sums_q, result_q, progress_q;
  logic start_q, busy, done_q, error_q;
  logic bvalid_q, rvalid_q;
  logic [1:0] bresp_q, rresp_q;
  logic [31:0] rdata_q;

  wire write = reg_awvalid_i && reg_wvalid_i && !bvalid_q;
  wire change = write && !busy && !start_q && reg_wstrb_i == 4'hf;
  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_arready_o = !rvalid_q;

  function automatic logic known(input logic [15:0] addr);
    return addr inside {16'h00, 16'h04, 16'h08, 16'h10, 16'h14, 16'h18, 16'h1c, 16'h20};
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {blocks_q, a_q, b_q, sums_q, result_q, progress_q} <= '0;
      start_q <= 1'b0;
      bvalid_q <= 1'b0;
      bresp_q <= AXI_OKAY;
      rvalid_q <= 1'b0;
      rresp_q <= AXI_OKAY;
      rdata_q <= '0;
    end else begin
      start_q <= change && reg_awaddr_i == 16'h00 && reg_wdata_i[0];
      if (write) begin
        bvalid_q <= 1'b1;
        bresp_q <= known(reg_awaddr_i) && reg_awaddr_i != 16'h04 ? AXI_OKAY : AXI_SLVERR;
      end else if (reg_bready_i) bvalid_q <= 1'b0;
      if (change) begin
        unique case (reg_awaddr_i)
          16'h08: blocks_q <= reg_wdata_i;
          16'h10: a_q <= reg_wdata_i;
          16'h14: b_q <= reg_wdata_i;
          16'h18: sums_q <= reg_wdata_i;
          16'h1c: result_q <= reg_wdata_i;
          16'h20: progress_q <= reg_wdata_i;
          default: ;
        endcase
      end
      if (reg_arvalid_i && !rvalid_q) begin
        rvalid_q <= 1'b1;
        rresp_q <= known(reg_araddr_i) ? AXI_OKAY : AXI_SLVERR;
        unique case (reg_araddr_i)
          16'h04: rdata_q <= {29'd0, error_q, done_q && !start_q, busy || start_q};
          16'h08: rdata_q <= blocks_q;
          16'h10: rdata_q <= a_q;
          16'h14: rdata_q <= b_q;
          16'h18: rdata_q <= sums_q;
          16'h1c: rdata_q <= result_q;
          16'h20: rdata_q <= progress_q;
          default: rdata_q <= '0;
        endcase
      end else if (reg_rready_i) rvalid_q <= 1'b0;
    end
  end
  assign reg_bvalid_o = bvalid_q;
  assign reg_bresp_o = bresp_q;
  assign reg_rvalid_o = rvalid_q;
  assign reg_rresp_o = rresp_q;
  assign reg_rdata_o = rdata_q;
  assign irq_o = done_q;

  // ---- run ----
  typedef enum logic [2:0] {IDLE, READ_A, READ_B, WRITE_SUMS, READ_SUMS, WRITE_RESULT,
      WRITE_PROGRESS} step_e;
  step_e step_q;
  logic [31:0] block_q;
  logic asked_q;                      // the step's AR or AW is taken
  logic sent_q;                       // the step's last W beat is taken
  logic [$clog2(BEATS)-1:0] beat_q;
  logic [511:0] buffer_q[BEATS];

  assign busy = step_q != IDLE;
  wire reading = step_q inside {READ_A, READ_B, READ_SUMS};
  wire writing = step_q inside {WRITE_SUMS, WRITE_RESULT, WRITE_PROGRESS};
  wire single = step_q == WRITE_PROGRESS;
  wire last_block = block_q + 32'd1 == blocks_q;
  wire bad = acc_r_valid_i && acc_r_i.resp != AXI_OKAY || acc_b_valid_i && acc_b_i.resp != AXI_OKAY;
  wire over = acc_r_valid_i && acc_r_i.last || acc_b_valid_i;  // the step's last response

  logic [31:0] base;
  always_comb begin
    unique case (step_q)
      READ_A: base = a_q;
      READ_B: base = b_q;
      WRITE_SUMS, READ_SUMS: base = sums_q;
      WRITE_RESULT: base = result_q;
      default: base = progress_q;
    endcase
  end
  wire [63:0] addr = {32'd0, base} + (single ? 64'd0 : {23'd0, block_q, 9'd0});
  wire axi_ax_t ask = '{id: '0, addr: addr, len: single ? 8'd0
      : 8'(BEATS - 1), size: AXI_SIZE_64, burst: AXI_BURST_INCR};
  assign acc_ar_o = ask;
  assign acc_aw_o = ask;
  assign acc_ar_valid_o = reading && !asked_q;
  assign acc_aw_valid_o = writing && !asked_q;
  assign acc_w_valid_o = writing && !sent_q;
  assign acc_w_o.data = single ? 512'(blocks_q) : buffer_q[beat_q];
  assign acc_w_o.strb = '1;
  assign acc_w_o.last = single || beat_q == '1;
  assign acc_r_ready_o = 1'b1;
  assign acc_b_ready_o = 1'b1;

  function automatic logic [511:0] add(input logic [511:0] x, input logic [511:0] y);
    logic [511:0] z;
    for (int i = 0; i < 16; i++) z[32*i+:32] = x[32*i+:32] + y[32*i+:32];
    return z;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= IDLE;
      block_q <= '0;
      asked_q <= 1'b0;
      sent_q <= 1'b0;
      beat_q <= '0;
      done_q <= 1'b0;
      error_q <= 1'b0;
      for (int i = 0; i < BEATS; i++) buffer_q[i] <= '0;
    end else begin
      if (start_q) begin
        step_q <= READ_A;
        block_q <= '0;
        done_q <= blocks_q == 32'd0;
        error_q <= 1'b0;
        if (blocks_q == 32'd0) step_q <= IDLE;
      end
      if (acc_ar_valid_o && acc_ar_ready_i || acc_aw_valid_o && acc_aw_ready_i) asked_q <= 1'b1;
      if (acc_w_valid_o && acc_w_ready_i) begin
        beat_q <= beat_q + 1'b1;
        if (acc_w_o.last) begin
          sent_q <= 1'b1;
          beat_q <= '0;
        end
      end
      if (acc_r_valid_i) begin
        buffer_q[beat_q] <= step_q == READ_B ? add(buffer_q[beat_q], acc_r_i.data) : acc_r_i.data;
        beat_q <= acc_r_i.last ? '0 : beat_q + 1'b1;
      end
      if (bad) error_q <= 1'b1;
      if (busy && over) begin
        asked_q <= 1'b0;
        sent_q <= 1'b0;
        unique case (step_q)
          READ_A: step_q <= READ_B;
          READ_B: step_q <= WRITE_SUMS;
          WRITE_SUMS: begin
            step_q <= last_block ? READ_SUMS : READ_A;
            block_q <= last_block ? '0 : block_q + 32'd1;
          end
          READ_SUMS: step_q <= WRITE_RESULT;
          WRITE_RESULT: begin
            step_q <= last_block ? WRITE_PROGRESS : READ_SUMS;
            block_q <= last_block ? '0 : block_q + 32'd1;
          end
          default: begin
            step_q <= IDLE;
            done_q <= 1'b1;
          end
        endcase
        if (bad || error_q) begin
          step_q <= IDLE;
          done_q <= 1'b1;
        end
      end
    end
  end

  wire unused = ^{acc_r_i.id, acc_b_i.id};
endmodule
`default_nettype wire
