// Accelerator of the tests between sessions: writes a pattern over a range of memory, reads it back
// and counts the wrong words.
//
// Registers: 0x00 CTRL, write 1: start; 0x04 STATUS: bit 0 done, bit 1 an answer was not OKAY; 0x08
// BLOCKS of 512 bytes; 0x0c SEED of the pattern; 0x10 BASE, a multiple of 512; 0x14 WRONG words;
// 0x18 MODE: bit 0 writes, bit 1 reads back; 0x1c INDEX and 0x20 KEPT: first word of the beat at
// INDEX in the memory that keeps the beats read last. The word at index i of a run is SEED + i.
// After a write to 0x24 it no longer clears its memory, and reports this. 0x28 HOLD: bit 0 accepts
// no R, bit 1 accepts no B. Bursts of eight beats, one at a time, AW and W at once.
`default_nettype none
module shef_accel
  import shef_pkg::*;
(
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        clear_i,     // zero all memories, in reset
    output logic             cleared_o,   // done, until clear_i falls
    input  wire logic [15:0] reg_awaddr_i,
    input  wire logic        reg_awvalid_i,
    output logic             reg_awready_o,
    input  wire logic [31:0] reg_wdata_i,
    input  wire logic [3:0]  reg_wstrb_i,
    input  wire logic        reg_wvalid_i,
    output logic             reg_wready_o,
    output logic [1:0]       reg_bresp_o,
    output logic             reg_bvalid_o,
    input  wire logic        reg_bready_i,
    input  wire logic [15:0] reg_araddr_i,
    input  wire logic        reg_arvalid_i,
    output logic             reg_arready_o,
    output logic [31:0]      reg_rdata_o,
    output logic [1:0]       reg_rresp_o,
    output logic             reg_rvalid_o,
    input  wire logic        reg_rready_i,
    output axi_ax_t          acc_aw_o,
    output logic             acc_aw_valid_o,
    input  wire logic        acc_aw_ready_i,
    output axi_w_t           acc_w_o,
    output logic             acc_w_valid_o,
    input  wire logic        acc_w_ready_i,
    input  wire axi_b_t      acc_b_i,
    input  wire logic        acc_b_valid_i,
    output logic             acc_b_ready_o,
    output axi_ax_t          acc_ar_o,
    output logic             acc_ar_valid_o,
    input  wire logic        acc_ar_ready_i,
    input  wire axi_r_t      acc_r_i,
    input  wire logic        acc_r_valid_i,
    output logic             acc_r_ready_o,
    output logic             irq_o
);
  // ---- registers ----
  logic [31:0] regs_q[8];
  logic [31:0] wrong_q, rdata_q;
  logic bvalid_q, rvalid_q, start_q, done_q, error_q, write;
  logic [1:0] hold_q;
  logic [511:0] kept_mem_q[256];

  assign write = reg_awvalid_i && reg_wvalid_i && !bvalid_q;
  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_bvalid_o = bvalid_q;
  assign reg_bresp_o = AXI_OKAY;
  assign reg_arready_o = !rvalid_q;
  assign reg_rvalid_o = rvalid_q;
  assign reg_rdata_o = rdata_q;
  assign reg_rresp_o = AXI_OKAY;
  assign irq_o = done_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < 8; i++) regs_q[i] <= '0;
      {bvalid_q, rvalid_q, start_q} <= '0;
      hold_q <= '0;
      rdata_q <= '0;
    end else begin
      start_q <= write && reg_awaddr_i == 16'h00;
      if (write) begin
        if (!reg_awaddr_i[5]) regs_q[reg_awaddr_i[4:2]] <= reg_wdata_i;
        if (reg_awaddr_i == 16'h28) hold_q <= reg_wdata_i[1:0];
        bvalid_q <= 1'b1;
      end else if (reg_bready_i) bvalid_q <= 1'b0;
      if (reg_arvalid_i && !rvalid_q) begin
        rvalid_q <= 1'b1;
        unique case (reg_araddr_i)
          16'h04: rdata_q <= {30'd0, error_q, done_q && !start_q};
          16'h14: rdata_q <= wrong_q;
          16'h20: rdata_q <= kept_mem_q[regs_q[7][7:0]][31:0];
          default: rdata_q <= regs_q[reg_araddr_i[4:2]];
        endcase
      end else if (reg_rready_i) rvalid_q <= 1'b0;
    end
  end

  // ---- run ----
  typedef enum logic [1:0] {IDLE, WRITE, READ} step_e;
  step_e step_q;
  logic asked_q, sent_q, last_block, over, got_r, got_b;
  logic [31:0] block_q;
  logic [2:0] beat_q;
  logic [511:0] pattern;
  logic [4:0] bad;
  axi_ax_t ask;

  always_comb begin
    bad = '0;
    for (int i = 0; i < 16; i++) begin
      pattern[32*i+:32] = regs_q[3] + {block_q[24:0], beat_q, 4'(i)};
      if (acc_r_i.data[32*i+:32] != pattern[32*i+:32]) bad = bad + 1'b1;
    end
  end
  assign ask = '{id: '0, addr: {32'd0, regs_q[4]} + {23'd0, block_q, 9'd0}, len: 8'd7,
      size: AXI_SIZE_64, burst: AXI_BURST_INCR};
  assign acc_ar_o = ask;
  assign acc_aw_o = ask;
  assign acc_ar_valid_o = step_q == READ && !asked_q;
  assign acc_aw_valid_o = step_q == WRITE && !asked_q;
  assign acc_w_valid_o = step_q == WRITE && !sent_q;
  assign acc_w_o.data = pattern;
  assign acc_w_o.strb = '1;
  assign acc_w_o.last = beat_q == '1;
  assign acc_r_ready_o = !hold_q[0];
  assign acc_b_ready_o = !hold_q[1];
  assign got_r = acc_r_valid_i && acc_r_ready_o;
  assign got_b = acc_b_valid_i && acc_b_ready_o;
  assign last_block = block_q + 32'd1 == regs_q[2];
  assign over = got_b || (got_r && acc_r_i.last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= IDLE;
      {asked_q, sent_q, done_q, error_q} <= '0;
      block_q <= '0;
      beat_q <= '0;
      wrong_q <= '0;
    end else begin
      if (start_q) begin
        step_q <= regs_q[6][0] ? WRITE : READ;
        block_q <= '0;
        wrong_q <= '0;
        done_q <= 1'b0;
        error_q <= 1'b0;
      end
      if ((acc_ar_valid_o && acc_ar_ready_i) || (acc_aw_valid_o && acc_aw_ready_i)) asked_q <= 1'b1;
      if (acc_w_valid_o && acc_w_ready_i) begin
        beat_q <= beat_q + 1'b1;
        if (acc_w_o.last) sent_q <= 1'b1;
      end
      if (got_r) begin
        beat_q <= beat_q + 1'b1;
        wrong_q <= wrong_q + 32'(bad);
      end
      if ((got_r && acc_r_i.resp != AXI_OKAY) || (got_b && acc_b_i.resp != AXI_OKAY))
        error_q <= 1'b1;
      if (step_q != IDLE && over) begin
        {asked_q, sent_q} <= '0;
        block_q <= last_block ? '0 : block_q + 32'd1;
        if (last_block) begin
          step_q <= (step_q == WRITE && regs_q[6][1]) ? READ : IDLE;
          done_q <= step_q == READ || !regs_q[6][1];
        end
      end
    end
  end

  // ---- not cleared by reset ----
  logic deaf_q = 1'b0;
  logic [7:0] sweep;
  logic swept;
  shef_sweep #(.Words(256)) u_sweep (.clk_i, .clear_i(clear_i && !deaf_q), .addr_o(sweep),
      .cleared_o(swept));
  assign cleared_o = swept;
  always_ff @(posedge clk_i) begin
    if (clear_i) kept_mem_q[sweep] <= '0;
    else if (got_r) kept_mem_q[{block_q[4:0], beat_q}] <= acc_r_i.data;
    if (rst_ni && write && reg_awaddr_i == 16'h24) deaf_q <= 1'b1;
  end

  logic unused;
  assign unused = ^{reg_wstrb_i, acc_b_i.id, acc_r_i.id, regs_q[0], regs_q[1], regs_q[5],
      regs_q[6][31:2], regs_q[7][31:8], block_q[31:25]};
endmodule
`default_nettype wire
