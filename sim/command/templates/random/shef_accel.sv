// Counts how often each value occurs: a histogram of the low 10 bits of 32-bit words, in a table of
// counters in card memory.
//
// Registers: 0x00 CTRL, write 1: start; 0x04 STATUS: bit 0 busy, bit 1 done, bit 2 error; 0x08 LINES
// of 64 bytes to count; 0x10 SOURCE, 0x14 TABLE, 0x18 TARGET: addresses, multiples of 4 KiB. Any other
// address returns SLVERR. Writes while busy have no effect.
//
// One access at a time, of one beat: the table is zeroed; each word of the source increments its
// counter; the table is copied to the target. Which chunk of the table is read and written, and when,
// the host can see: see README.md.
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
  // ---- registers ----
  logic [31:0] lines_q, source_q, table_q, target_q;
  logic busy, done_q, error_q;
  logic bvalid_q, rvalid_q;
  logic [1:0] bresp_q, rresp_q;
  logic [31:0] rdata_q;

  // AW and W are taken together, one write at a time.
  wire write = reg_awvalid_i && reg_wvalid_i && !bvalid_q;
  wire change = write && !busy && reg_wstrb_i == 4'hf;
  wire start = change && reg_awaddr_i == 16'h00 && reg_wdata_i[0];
  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_arready_o = !rvalid_q;
  assign reg_bvalid_o = bvalid_q;
  assign reg_bresp_o = bresp_q;
  assign reg_rvalid_o = rvalid_q;
  assign reg_rresp_o = rresp_q;
  assign reg_rdata_o = rdata_q;

  function automatic logic known(input logic [15:0] addr);
    return addr inside {16'h00, 16'h04, 16'h08, 16'h10, 16'h14, 16'h18};
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {lines_q, source_q, table_q, target_q, rdata_q} <= '0;
      {bvalid_q, rvalid_q} <= '0;
      {bresp_q, rresp_q} <= {AXI_OKAY, AXI_OKAY};
    end else begin
      if (write) begin
        bvalid_q <= 1'b1;
        bresp_q <= known(reg_awaddr_i) && reg_awaddr_i != 16'h04 ? AXI_OKAY : AXI_SLVERR;
      end else if (reg_bready_i) bvalid_q <= 1'b0;
      if (change) begin
        unique case (reg_awaddr_i)
          16'h08: lines_q <= reg_wdata_i;
          16'h10: source_q <= reg_wdata_i;
          16'h14: table_q <= reg_wdata_i;
          16'h18: target_q <= reg_wdata_i;
          default: ;
        endcase
      end
      if (reg_arvalid_i && !rvalid_q) begin
        rvalid_q <= 1'b1;
        rresp_q <= known(reg_araddr_i) ? AXI_OKAY : AXI_SLVERR;
        unique case (reg_araddr_i)
          16'h04: rdata_q <= {29'd0, error_q, done_q, busy};
          16'h08: rdata_q <= lines_q;
          16'h10: rdata_q <= source_q;
          16'h14: rdata_q <= table_q;
          16'h18: rdata_q <= target_q;
          default: rdata_q <= '0;
        endcase
      end else if (reg_rready_i) rvalid_q <= 1'b0;
    end
  end
  assign irq_o = done_q;

  // ---- steps: each is one access ----
  typedef enum logic [2:0] {IDLE, CLEAR, FETCH, READ, WRITE, LOAD, STORE} step_e;
  localparam logic [31:0] LAST = 32'd63;  // line of the table: 1024 counters of 32 bits
  step_e step_q;
  logic asked_q, sent_q;    // the step's AR or AW is accepted; its W beat is
  logic [31:0] line_q;      // of the table, or of the source
  logic [3:0] word_q;       // of the line of the source
  logic [511:0] source_line_q, table_line_q;

  assign busy = step_q != IDLE;
  wire reading = step_q inside {FETCH, READ, LOAD};
  wire writing = step_q inside {CLEAR, WRITE, STORE};
  wire [9:0] value = source_line_q[{word_q, 5'd0}+:10];
  wire [3:0] lane = value[3:0];           // the counter in its line
  wire [31:0] count = table_line_q[{lane, 5'd0}+:32];

  logic [31:0] addr;
  always_comb begin
    unique case (step_q)
      FETCH: addr = source_q + {line_q[25:0], 6'd0};
      READ, WRITE: addr = table_q + {20'd0, value[9:4], 6'd0};
      STORE: addr = target_q + {line_q[25:0], 6'd0};
      default: addr = table_q + {line_q[25:0], 6'd0};
    endcase
  end
  wire axi_ax_t request = '{id: '0, addr: {32'd0, addr}, len: 8'd0, size: AXI_SIZE_64,
      burst: AXI_BURST_INCR};
  // A request stays as it is until it is accepted, and R and B are always accepted.
  assign acc_ar_o = request;
  assign acc_ar_valid_o = reading && !asked_q;
  assign acc_r_ready_o = 1'b1;
  assign acc_aw_o = request;
  assign acc_aw_valid_o = writing && !asked_q;
  assign acc_w_valid_o = writing && !sent_q;
  assign acc_b_ready_o = 1'b1;
  // A counter is four bytes of its line: the strobes select them.
  assign acc_w_o.data = step_q == CLEAR ? '0 : step_q == WRITE ? {16{count + 32'd1}} : table_line_q;
  assign acc_w_o.strb = step_q == WRITE ? 64'hf << {lane, 2'd0} : '1;
  assign acc_w_o.last = 1'b1;

  wire over = acc_r_valid_i || acc_b_valid_i;
  // The data of a refused access is zero, and no result.
  wire refused = acc_r_valid_i && acc_r_i.resp != AXI_OKAY ||
      acc_b_valid_i && acc_b_i.resp != AXI_OKAY;

  // Reset clears every register, and there is no memory in this module.
  assign cleared_o = clear_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= IDLE;
      {done_q, error_q, asked_q, sent_q} <= '0;
      {line_q, word_q, source_line_q, table_line_q} <= '0;
    end else if (start) begin
      step_q <= CLEAR;
      {done_q, error_q, line_q, word_q} <= '0;
    end else begin
      if (acc_ar_valid_o && acc_ar_ready_i || acc_aw_valid_o && acc_aw_ready_i) asked_q <= 1'b1;
      if (acc_w_valid_o && acc_w_ready_i) sent_q <= 1'b1;
      if (acc_r_valid_i && step_q == FETCH) source_line_q <= acc_r_i.data;
      if (acc_r_valid_i && step_q != FETCH) table_line_q <= acc_r_i.data;
      if (busy && over) begin
        {asked_q, sent_q} <= '0;
        unique case (step_q)
          CLEAR: begin
            line_q <= line_q == LAST ? '0 : line_q + 32'd1;
            if (line_q == LAST) step_q <= lines_q == '0 ? LOAD : FETCH;
          end
          FETCH: step_q <= READ;
          READ: step_q <= WRITE;
          WRITE: begin
            word_q <= word_q + 4'd1;
            step_q <= READ;
            if (word_q == '1) begin
              line_q <= line_q + 32'd1 == lines_q ? '0 : line_q + 32'd1;
              step_q <= line_q + 32'd1 == lines_q ? LOAD : FETCH;
            end
          end
          LOAD: step_q <= STORE;
          default: begin  // STORE
            line_q <= line_q + 32'd1;
            step_q <= line_q == LAST ? IDLE : LOAD;
            done_q <= line_q == LAST;
          end
        endcase
        if (refused) begin
          step_q <= IDLE;
          {done_q, error_q} <= 2'b11;
        end
      end
    end
  end

  wire unused = ^{acc_r_i.id, acc_r_i.last, acc_b_i.id};
endmodule
`default_nettype wire
