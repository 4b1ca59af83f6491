// Encrypts blocks of 64 bits with XTEA, under a key that only its owner knows. All data are in
// registers: there is no card memory.
//
// Registers: 0x00 CTRL, write 1: start; 0x04 STATUS: bit 0 busy, bit 1 done; 0x10 to 0x1c KEY, write
// only; 0x20 and 0x24 BLOCK; 0x28 and 0x2c RESULT, read only. Any other access returns SLVERR. Writes
// while busy have no effect. A block takes 64 cycles.
`default_nettype none
module shef_accel
  import shef_pkg::*;
(
  input  wire          clk_i,
  input  wire          rst_ni,
  input  wire          clear_i,     // between sessions, in reset: zero all memories
  output wire          cleared_o,   // they are zero; held until clear_i falls

  // Registers: AXI4-Lite slave. Only the owner reaches it, over the sealed channel.
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

  // Memory: AXI4 master, 64 bytes a beat, plaintext. Bursts are INCR, and stay in one region and in
  // one page of 4 KiB.
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

  output wire          irq_o        // level: a hint to the host to look at the status
);
  localparam logic [31:0] DELTA = 32'h9e37_79b9;

  logic [3:0][31:0] key_q;
  logic [1:0][31:0] block_q;
  logic [31:0] left_q, right_q, sum_q;
  logic [5:0] step_q;  // half of a round
  logic busy_q, done_q;

  // ---- registers ----
  logic bvalid_q, rvalid_q;
  logic [1:0] bresp_q, rresp_q;
  logic [31:0] rdata_q;

  // AW and W are taken together, one write at a time.
  wire write = reg_awvalid_i && reg_wvalid_i && !bvalid_q;
  wire change = write && !busy_q && reg_wstrb_i == 4'hf;
  wire start = change && reg_awaddr_i == 16'h00 && reg_wdata_i[0];
  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_arready_o = !rvalid_q;
  assign reg_bvalid_o = bvalid_q;
  assign reg_bresp_o = bresp_q;
  assign reg_rvalid_o = rvalid_q;
  assign reg_rresp_o = rresp_q;
  assign reg_rdata_o = rdata_q;

  function automatic logic writable(input logic [15:0] addr);
    return addr inside {16'h00, 16'h10, 16'h14, 16'h18, 16'h1c, 16'h20, 16'h24};
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {key_q, block_q, rdata_q} <= '0;
      {bvalid_q, rvalid_q} <= '0;
      {bresp_q, rresp_q} <= {AXI_OKAY, AXI_OKAY};
    end else begin
      if (write) begin
        bvalid_q <= 1'b1;
        bresp_q <= writable(reg_awaddr_i) ? AXI_OKAY : AXI_SLVERR;
      end else if (reg_bready_i) bvalid_q <= 1'b0;
      if (change && reg_awaddr_i[15:4] == 12'h1) key_q[reg_awaddr_i[3:2]] <= reg_wdata_i;
      if (change && reg_awaddr_i[15:3] == 13'h4) block_q[reg_awaddr_i[2]] <= reg_wdata_i;
      if (reg_arvalid_i && !rvalid_q) begin
        rvalid_q <= 1'b1;
        rresp_q <= AXI_OKAY;
        unique case (reg_araddr_i)
          16'h04: rdata_q <= {30'd0, done_q, busy_q};
          16'h20: rdata_q <= block_q[0];
          16'h24: rdata_q <= block_q[1];
          // Only whole results, and none of an earlier block.
          16'h28: rdata_q <= done_q ? left_q : '0;
          16'h2c: rdata_q <= done_q ? right_q : '0;
          default: begin
            rdata_q <= '0;
            rresp_q <= AXI_SLVERR;
          end
        endcase
      end else if (reg_rready_i) rvalid_q <= 1'b0;
    end
  end
  assign irq_o = done_q;

  // ---- XTEA: half of a round a cycle ----
  function automatic logic [31:0] mix(input logic [31:0] x);
    return ((x << 4) ^ (x >> 5)) + x;
  endfunction
  wire [31:0] next_sum = sum_q + DELTA;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {left_q, right_q, sum_q, step_q, busy_q, done_q} <= '0;
    end else if (start) begin
      {left_q, right_q} <= {block_q[0], block_q[1]};
      {sum_q, step_q} <= '0;
      {busy_q, done_q} <= 2'b10;
    end else if (busy_q) begin
      if (!step_q[0]) begin
        left_q <= left_q + (mix(right_q) ^ (sum_q + key_q[sum_q[1:0]]));
        sum_q <= next_sum;
      end else right_q <= right_q + (mix(left_q) ^ (sum_q + key_q[sum_q[12:11]]));
      step_q <= step_q + 6'd1;
      if (step_q == '1) {busy_q, done_q} <= 2'b01;
    end
  end

  // Reset clears every register, and there are no memories: nothing is left for the next session.
  assign cleared_o = clear_i;

  // ---- no card memory: no requests ----
  assign acc_aw_o = '0;
  assign acc_aw_valid_o = 1'b0;
  assign acc_w_o = '0;
  assign acc_w_valid_o = 1'b0;
  assign acc_b_ready_o = 1'b1;
  assign acc_ar_o = '0;
  assign acc_ar_valid_o = 1'b0;
  assign acc_r_ready_o = 1'b1;
  wire unused = ^{acc_aw_ready_i, acc_w_ready_i, acc_b_i, acc_b_valid_i, acc_ar_ready_i, acc_r_i,
      acc_r_valid_i};
endmodule
`default_nettype wire
