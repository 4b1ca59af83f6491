// An accelerator with faults, for tests of what shows them.
//
// Registers: 0x00, write n: start job n; 0x04: bit 1 done; 0x08: result; 0x0c: a word that reset
// does not clear. Job 0 works: port 0 reads two beats, port 1 writes one. Job 1 never ends: port 0
// takes its data after the response of port 1, and port 1 takes this after the data. Job 2 reads a
// beat with each of two ids, and takes the first to come for that of the first request: the result
// has its low 16 bits above those of the other. Job 3: the result is the word at 0x0c.
`default_nettype none
module shef_accel
  import shef_pkg::*;
(
  input  wire          clk_i,
  input  wire          rst_ni,
  input  wire          clear_i,
  output wire          cleared_o,

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

  output axi_ax_t [1:0] acc_aw_o,
  output logic    [1:0] acc_aw_valid_o,
  input  wire     [1:0] acc_aw_ready_i,
  output axi_w_t  [1:0] acc_w_o,
  output logic    [1:0] acc_w_valid_o,
  input  wire     [1:0] acc_w_ready_i,
  input  wire axi_b_t [1:0] acc_b_i,
  input  wire     [1:0] acc_b_valid_i,
  output logic    [1:0] acc_b_ready_o,
  output axi_ax_t [1:0] acc_ar_o,
  output logic    [1:0] acc_ar_valid_o,
  input  wire     [1:0] acc_ar_ready_i,
  input  wire axi_r_t [1:0] acc_r_i,
  input  wire     [1:0] acc_r_valid_i,
  output logic    [1:0] acc_r_ready_o,

  output wire          irq_o
);
  localparam logic [1:0] DEADLOCK = 2'd1, ORDER = 2'd2, CONTENTS = 2'd3;
  assign cleared_o = clear_i;

  logic bvalid_q, rvalid_q;
  logic [31:0] rdata_q, result_q, word_q;
  logic [1:0] job_q;
  logic [1:0] asks_q, beats_q;  // requests of port 0 that are left, and beats that are missing
  logic aw_q, w_q, b_q;         // of port 1: to be sent, to be sent, missing
  logic busy_q, done_q;

  wire write = reg_awvalid_i && reg_wvalid_i && !bvalid_q;
  wire start = write && reg_awaddr_i == 16'h00 && !busy_q;
  wire [1:0] job = reg_wdata_i[1:0];
  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_bvalid_o = bvalid_q;
  assign reg_bresp_o = AXI_OKAY;
  assign reg_arready_o = !rvalid_q;
  assign reg_rvalid_o = rvalid_q;
  assign reg_rdata_o = rdata_q;
  assign reg_rresp_o = AXI_OKAY;
  assign irq_o = done_q;

  wire read_over = beats_q == '0;
  wire beat = acc_r_valid_i[0] && acc_r_ready_o[0];
  always_comb begin
    acc_ar_o = '0;
    acc_ar_o[0] = '{id: asks_q == 2'd2 ? 8'd0 : 8'd1, addr: asks_q == 2'd2 ? 64'h0 : 64'h200,
        len: job_q == ORDER ? 8'd0 : 8'd1, size: AXI_SIZE_64, burst: AXI_BURST_INCR};
    acc_ar_valid_o = {1'b0, asks_q != '0};
    acc_r_ready_o = {1'b1, job_q != DEADLOCK || !b_q};
    acc_aw_o = '0;
    acc_aw_o[1] = '{id: '0, addr: 64'h1_0000, len: '0, size: AXI_SIZE_64, burst: AXI_BURST_INCR};
    acc_aw_valid_o = {aw_q, 1'b0};
    acc_w_o = '0;
    acc_w_o[1] = '{data: 512'(job_q), strb: '1, last: 1'b1};
    acc_w_valid_o = {w_q, 1'b0};
    acc_b_ready_o = {job_q != DEADLOCK || read_over, 1'b1};
  end

  always_ff @(posedge clk_i) begin
    if (write && reg_awaddr_i == 16'h0c) word_q <= reg_wdata_i;
    if (!rst_ni) begin
      {bvalid_q, rvalid_q, busy_q, done_q, aw_q, w_q, b_q} <= '0;
      {rdata_q, result_q} <= '0;
      {job_q, asks_q, beats_q} <= '0;
    end else begin
      if (write) bvalid_q <= 1'b1;
      else if (reg_bready_i) bvalid_q <= 1'b0;
      if (reg_arvalid_i && !rvalid_q) begin
        rvalid_q <= 1'b1;
        unique case (reg_araddr_i)
          16'h04: rdata_q <= {30'd0, done_q, busy_q};
          16'h08: rdata_q <= result_q;
          16'h0c: rdata_q <= word_q;
          default: rdata_q <= '0;
        endcase
      end else if (reg_rready_i) rvalid_q <= 1'b0;

      if (acc_ar_valid_o[0] && acc_ar_ready_i[0]) asks_q <= asks_q - 1'b1;
      if (beat) begin
        beats_q <= beats_q - 1'b1;
        result_q <= {result_q[15:0], acc_r_i[0].data[15:0]};
      end
      if (acc_aw_ready_i[1]) aw_q <= 1'b0;
      if (acc_w_ready_i[1]) w_q <= 1'b0;
      if (acc_b_valid_i[1] && acc_b_ready_o[1]) b_q <= 1'b0;
      if (busy_q && read_over && !b_q) begin
        busy_q <= 1'b0;
        done_q <= 1'b1;
        if (job_q == CONTENTS) result_q <= word_q;
      end
      if (start) begin
        job_q <= job;
        busy_q <= 1'b1;
        done_q <= 1'b0;
        asks_q <= job == CONTENTS ? 2'd0 : job == ORDER ? 2'd2 : 2'd1;
        beats_q <= job == CONTENTS ? 2'd0 : 2'd2;
        {aw_q, w_q, b_q} <= job inside {ORDER, CONTENTS} ? 3'b000 : 3'b111;
      end
    end
  end

  wire unused = ^{reg_wstrb_i, acc_r_i, acc_b_i, acc_r_valid_i, acc_b_valid_i, acc_ar_ready_i,
      acc_aw_ready_i, acc_w_ready_i};
endmodule
`default_nettype wire
