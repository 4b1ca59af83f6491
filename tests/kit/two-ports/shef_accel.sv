// A filter between two memory ports: y[i] = GAIN * x[i] + x[i-1] over words of 32 bits, x[-1] = 0.
//
// Registers (AXI4-Lite, 32 bit): 0x00 CTRL, write 1: start; 0x04 STATUS: bit 0 busy, bit 1 done,
// bit 2 error; 0x08 BLOCKS of 256 bytes; 0x0c GAIN; 0x10 X, 0x14 Y, 0x18 STATE: addresses, multiples
// of 256; 0x1c SUM of all words of y, read-only.
// Memory: port 0 reads x, four beats a burst, two bursts at a time by two ids. Port 1 writes y, and at
// the end one narrow beat of 8 bytes with BLOCKS and SUM to STATE + 8. After a response other than
// OKAY the run issues no further requests. irq_o (level) is STATUS.done.
`default_nettype none
module shef_accel
  import shef_pkg::*;
(
  input  wire           clk_i,
  input  wire           rst_ni,
  input  wire           clear_i,
  output wire           cleared_o,

  input  wire   [15:0]  reg_awaddr_i,
  input  wire           reg_awvalid_i,
  output wire           reg_awready_o,
  input  wire   [31:0]  reg_wdata_i,
  input  wire   [ 3:0]  reg_wstrb_i,
  input  wire           reg_wvalid_i,
  output wire           reg_wready_o,
  output wire   [ 1:0]  reg_bresp_o,
  output wire           reg_bvalid_o,
  input  wire           reg_bready_i,
  input  wire   [15:0]  reg_araddr_i,
  input  wire           reg_arvalid_i,
  output wire           reg_arready_o,
  output wire   [31:0]  reg_rdata_o,
  output wire   [ 1:0]  reg_rresp_o,
  output wire           reg_rvalid_o,
  input  wire           reg_rready_i,

  output axi_ax_t [1:0] acc_aw_o,
  output wire     [1:0] acc_aw_valid_o,
  input  wire     [1:0] acc_aw_ready_i,
  output axi_w_t  [1:0] acc_w_o,
  output wire     [1:0] acc_w_valid_o,
  input  wire     [1:0] acc_w_ready_i,
  input  wire axi_b_t [1:0] acc_b_i,
  input  wire     [1:0] acc_b_valid_i,
  output wire     [1:0] acc_b_ready_o,
  output axi_ax_t [1:0] acc_ar_o,
  output wire     [1:0] acc_ar_valid_o,
  input  wire     [1:0] acc_ar_ready_i,
  input  wire axi_r_t [1:0] acc_r_i,
  input  wire     [1:0] acc_r_valid_i,
  output wire     [1:0] acc_r_ready_o,

  output wire           irq_o
);
  // Reset clears every register, and there are no other memories.
  assign cleared_o = clear_i;

  // ---- registers ----
  logic [31:0] blocks_q, gain_q, x_q, y_q, state_q, sum_q;
  logic start_q, busy, done_q, error_q;
  logic bvalid_q, rvalid_q;
  logic [1:0] bresp_q, rresp_q;
  logic [31:0] rdata_q;

  wire write = reg_awvalid_i && reg_wvalid_i && !bvalid_q;
  wire change = write && !busy && !start_q && reg_wstrb_i == 4'hf;
  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_arready_o = !rvalid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {blocks_q, gain_q, x_q, y_q, state_q} <= '0;
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
        bresp_q <= reg_awaddr_i inside {16'h00, 16'h08, 16'h0c, 16'h10, 16'h14, 16'h18}
            ? AXI_OKAY : AXI_SLVERR;
      end else if (reg_bready_i) bvalid_q <= 1'b0;
      if (change) begin
        unique case (reg_awaddr_i)
          16'h08: blocks_q <= reg_wdata_i;
          16'h0c: gain_q <= reg_wdata_i;
          16'h10: x_q <= reg_wdata_i;
          16'h14: y_q <= reg_wdata_i;
          16'h18: state_q <= reg_wdata_i;
          default: ;
        endcase
      end
      if (reg_arvalid_i && !rvalid_q) begin
        rvalid_q <= 1'b1;
        rresp_q <= AXI_OKAY;
        unique case (reg_araddr_i)
          16'h00: rdata_q <= '0;
          16'h04: rdata_q <= {29'd0, error_q, done_q && !start_q, busy || start_q};
          16'h08: rdata_q <= blocks_q;
          16'h0c: rdata_q <= gain_q;
          16'h10: rdata_q <= x_q;
          16'h14: rdata_q <= y_q;
          16'h18: rdata_q <= state_q;
          16'h1c: rdata_q <= sum_q;
          default: begin
            rdata_q <= '0;
            rresp_q <= AXI_SLVERR;
          end
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
  typedef enum logic [1:0] {IDLE, FILTER, STATE} step_e;
  step_e step_q;
  logic [31:0] read_q, written_q, answered_q;  // blocks
  logic [1:0] asked_q, full_q;                 // by slot: its AR is taken; its data are there
  logic [511:0] slot_q[2][4];
  logic [1:0] at_q[2];                         // beat of the slot's burst
  logic aw_taken_q, w_taken_q;                 // of the present burst on port 1: AW; last W beat
  logic [1:0] beat_q;
  logic [31:0] before_q;                       // the word before the present beat

  assign busy = step_q != IDLE;
  wire filtering = step_q == FILTER;
  wire saving = step_q == STATE;

  // port 0: block n goes to the slot and id n mod 2
  wire slot = read_q[0];
  assign acc_ar_o[0] = '{id: {7'd0, slot}, addr: {32'd0, x_q} + {24'd0, read_q, 8'd0}, len: 8'd3,
      size: AXI_SIZE_64, burst: AXI_BURST_INCR};
  assign acc_ar_valid_o[0] = filtering && read_q != blocks_q && !asked_q[slot] && !error_q;
  assign acc_r_ready_o[0] = 1'b1;
  wire from = acc_r_i[0].id[0];
  wire r = acc_r_valid_i[0] && acc_r_ready_o[0];
  assign acc_aw_o[0] = '0;
  assign acc_aw_valid_o[0] = 1'b0;
  assign acc_w_o[0] = '0;
  assign acc_w_valid_o[0] = 1'b0;
  assign acc_b_ready_o[0] = 1'b1;

  // port 1
  wire present = written_q[0];
  wire writing = saving || filtering && full_q[present] && (!error_q || aw_taken_q);
  wire [511:0] x = slot_q[present][beat_q];

  function automatic logic [511:0] filter(
      input logic [511:0] words, input logic [31:0] earlier, input logic [31:0] gain);
    logic [511:0] z;
    for (int i = 0; i < 16; i++)
      z[32*i+:32] = gain * words[32*i+:32] + (i == 0 ? earlier : words[32*((i + 15) % 16)+:32]);
    return z;
  endfunction

  function automatic logic [31:0] total(input logic [511:0] words);
    logic [31:0] z;
    z = '0;
    for (int i = 0; i < 16; i++) z += words[32*i+:32];
    return z;
  endfunction

  wire [511:0] y = filter(x, before_q, gain_q);
  wire [7:0] id = 8'd0;
  assign acc_aw_o[1] = saving
      ? '{id: id, addr: {32'd0, state_q} + 64'd8, len: 8'd0, size: 3'd3, burst: AXI_BURST_INCR}
      : '{id: id, addr: {32'd0, y_q} + {24'd0, written_q, 8'd0}, len: 8'd3, size: AXI_SIZE_64,
          burst: AXI_BURST_INCR};
  assign acc_aw_valid_o[1] = writing && !aw_taken_q;
  assign acc_w_o[1].data = saving ? {384'd0, sum_q, blocks_q, 64'd0} : y;
  assign acc_w_o[1].strb = saving ? 64'hff00 : '1;
  assign acc_w_o[1].last = saving || beat_q == 2'd3;
  assign acc_w_valid_o[1] = writing && !w_taken_q;
  assign acc_b_ready_o[1] = 1'b1;
  wire w = acc_w_valid_o[1] && acc_w_ready_i[1];
  wire b = acc_b_valid_i[1] && acc_b_ready_o[1];
  assign acc_ar_o[1] = '0;
  assign acc_ar_valid_o[1] = 1'b0;
  assign acc_r_ready_o[1] = 1'b1;

  wire aw_over = aw_taken_q || acc_aw_valid_o[1] && acc_aw_ready_i[1];
  wire w_over = w_taken_q || w && acc_w_o[1].last;
  wire sent = writing && aw_over && w_over;
  wire bad = r && acc_r_i[0].resp != AXI_OKAY || b && acc_b_i[1].resp != AXI_OKAY;
  // all responses have arrived: those of all blocks, or after an error those of accepted requests
  wire answered = answered_q == written_q && (written_q == blocks_q
      || error_q && (asked_q & ~full_q) == '0 && !aw_taken_q && !w_taken_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= IDLE;
      {read_q, written_q, answered_q} <= '0;
      {asked_q, full_q} <= '0;
      {aw_taken_q, w_taken_q} <= '0;
      beat_q <= '0;
      before_q <= '0;
      sum_q <= '0;
      done_q <= 1'b0;
      error_q <= 1'b0;
      for (int i = 0; i < 2; i++) begin
        at_q[i] <= '0;
        for (int k = 0; k < 4; k++) slot_q[i][k] <= '0;
      end
    end else begin
      if (acc_ar_valid_o[0] && acc_ar_ready_i[0]) begin
        read_q <= read_q + 32'd1;
        asked_q[slot] <= 1'b1;
      end
      if (r) begin
        slot_q[from][at_q[from]] <= acc_r_i[0].data;
        at_q[from] <= at_q[from] + 2'd1;
        if (acc_r_i[0].last) full_q[from] <= 1'b1;
      end
      if (acc_aw_valid_o[1] && acc_aw_ready_i[1]) aw_taken_q <= 1'b1;
      if (w) begin
        if (filtering) begin
          beat_q <= beat_q + 2'd1;
          before_q <= x[511:480];
          sum_q <= sum_q + total(y);
        end
        if (acc_w_o[1].last) w_taken_q <= 1'b1;
      end
      if (sent) begin
        {aw_taken_q, w_taken_q} <= {saving, saving};
        if (filtering) begin
          written_q <= written_q + 32'd1;
          asked_q[present] <= 1'b0;
          full_q[present] <= 1'b0;
        end
      end
      if (b && filtering) answered_q <= answered_q + 32'd1;
      if (bad) error_q <= 1'b1;
      unique case (step_q)
        IDLE: if (start_q) begin
          step_q <= FILTER;
          {read_q, written_q, answered_q} <= '0;
          before_q <= '0;
          sum_q <= '0;
          done_q <= 1'b0;
          error_q <= 1'b0;
        end
        FILTER: if (answered) begin
          step_q <= error_q ? IDLE : STATE;
          done_q <= error_q;
          {asked_q, full_q} <= '0;
        end
        default: if (b) begin
          step_q <= IDLE;
          done_q <= 1'b1;
          {aw_taken_q, w_taken_q} <= '0;
        end
      endcase
    end
  end

  wire unused = ^{acc_aw_ready_i[0], acc_w_ready_i[0], acc_b_i[0], acc_b_valid_i[0], acc_b_i[1].id,
      acc_ar_ready_i[1], acc_r_i[1], acc_r_valid_i[1], acc_r_i[0].id[7:1]};
endmodule
`default_nettype wire
