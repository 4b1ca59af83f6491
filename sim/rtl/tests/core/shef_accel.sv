// Accelerator of the core's test: a register file and a one-burst mover.
//
// 0x00..0x1c plain registers; 0x20 address; 0x24 command (1 reads 8 beats, 2 writes 8 beats of
// 32-bit words that repeat 0x00); 0x28 bit 0 done, bits 2:1 the worst response; 0x2c xor of all
// words read. 0x100 never answers, everything else errs.
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
  logic [31:0] regs_q[16];
  logic aw_q, w_q, b_q, r_q, hang_q;
  logic [15:0] addr_q;
  logic [31:0] data_q;
  logic arv_q, awv_q, wv_q, done_q, ran_q;
  logic [2:0] beat_q;
  logic [1:0] resp_q;

  assign cleared_o = clear_i;  // reset clears it all
  assign reg_awready_o = !aw_q;
  assign reg_wready_o = !w_q;
  assign reg_bvalid_o = b_q;
  assign reg_arready_o = !r_q && !hang_q;
  assign reg_rvalid_o = r_q;
  assign irq_o = done_q;

  axi_ax_t ax;
  always_comb begin
    ax = '0;
    ax.addr = {32'd0, regs_q[8]};
    ax.len = 8'd7;
    ax.size = AXI_SIZE_64;
    ax.burst = AXI_BURST_INCR;
  end
  assign acc_ar_o = ax;
  assign acc_aw_o = ax;
  assign acc_ar_valid_o = arv_q;
  assign acc_aw_valid_o = awv_q;
  assign acc_w_valid_o = wv_q;
  assign acc_w_o.data = {16{regs_q[0]}};
  assign acc_w_o.strb = '1;
  assign acc_w_o.last = beat_q == 3'd7;
  assign acc_b_ready_o = 1'b1;
  assign acc_r_ready_o = 1'b1;

  logic [31:0] fold;
  always_comb begin
    fold = '0;
    for (int i = 0; i < 16; i++) fold = fold ^ acc_r_i.data[32*i+:32];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < 16; i++) regs_q[i] <= '0;
      {aw_q, w_q, b_q, r_q, hang_q, arv_q, awv_q, wv_q, done_q, ran_q} <= '0;
      addr_q <= '0;
      data_q <= '0;
      beat_q <= '0;
      resp_q <= '0;
      reg_bresp_o <= '0;
      reg_rdata_o <= '0;
      reg_rresp_o <= '0;
    end else begin
      if (reg_awvalid_i && reg_awready_o) begin
        aw_q <= 1'b1;
        addr_q <= reg_awaddr_i;
      end
      if (reg_wvalid_i && reg_wready_o) begin
        w_q <= 1'b1;
        data_q <= reg_wdata_i;
      end
      if (aw_q && w_q && !b_q && addr_q != 16'h100) begin
        b_q <= 1'b1;
        reg_bresp_o <= addr_q < 16'h28 ? AXI_OKAY : AXI_SLVERR;
        if (addr_q < 16'h24) regs_q[addr_q[5:2]] <= data_q;
        if (addr_q == 16'h24) begin
          arv_q <= data_q == 32'd1;
          awv_q <= data_q == 32'd2;
          wv_q <= data_q == 32'd2;
          beat_q <= '0;
          done_q <= 1'b0;
          ran_q <= 1'b1;
          resp_q <= '0;
          regs_q[11] <= '0;
        end
      end
      if (b_q && reg_bready_i) {aw_q, w_q, b_q} <= '0;
      if (reg_arvalid_i && reg_arready_o) begin
        if (reg_araddr_i == 16'h100) hang_q <= 1'b1;
        else r_q <= 1'b1;
        reg_rresp_o <= reg_araddr_i < 16'h40 ? AXI_OKAY : AXI_SLVERR;
        reg_rdata_o <= reg_araddr_i == 16'h28 ? {29'd0, resp_q, done_q} : regs_q[reg_araddr_i[5:2]];
      end
      if (r_q && reg_rready_i) r_q <= 1'b0;

      if (arv_q && acc_ar_ready_i) arv_q <= 1'b0;
      if (awv_q && acc_aw_ready_i) awv_q <= 1'b0;
      if (wv_q && acc_w_ready_i) begin
        beat_q <= beat_q + 1'b1;
        if (beat_q == 3'd7) wv_q <= 1'b0;
      end
      if (acc_r_valid_i) begin
        regs_q[11] <= regs_q[11] ^ fold;
        resp_q <= resp_q | acc_r_i.resp;
        if (acc_r_i.last) done_q <= ran_q;
      end
      if (acc_b_valid_i) begin
        resp_q <= resp_q | acc_b_i.resp;
        done_q <= ran_q;
      end
    end
  end

  logic unused;
  assign unused = ^{reg_wstrb_i, acc_b_i.id, acc_r_i.id};

endmodule
`default_nettype wire
