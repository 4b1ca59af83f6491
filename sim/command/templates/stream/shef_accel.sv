// Adds a number to every 32-bit word of one region, and writes the sums to another.
//
// Registers: 0x00 CTRL, write 1: start; 0x04 STATUS: bit 0 busy, bit 1 done, bit 2 error; 0x08 BURSTS
// of 1 KiB; 0x10 SOURCE, 0x14 TARGET: addresses, multiples of 1 KiB; 0x18 ADDEND. Any other address
// returns SLVERR. Writes while busy have no effect.
//
// A buffer of four bursts lies between reads and writes, so that the memory's latency does not
// matter: reads are requested as long as the buffer has room for a whole burst, and a write is
// requested when a whole burst is in the buffer. So R and B are always accepted, and no W beat of a
// requested burst has to wait for a read.
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
  localparam int unsigned BEATS = 16;  // of a burst
  localparam int unsigned DEPTH = 64;  // of the buffer, in beats

  // ---- registers ----
  logic [31:0] bursts_q, source_q, target_q, addend_q;
  logic busy_q, done_q, error_q;
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

  function automatic logic known(input logic [15:0] addr);
    return addr inside {16'h00, 16'h04, 16'h08, 16'h10, 16'h14, 16'h18};
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {bursts_q, source_q, target_q, addend_q, rdata_q} <= '0;
      {bvalid_q, rvalid_q} <= '0;
      {bresp_q, rresp_q} <= {AXI_OKAY, AXI_OKAY};
    end else begin
      if (write) begin
        bvalid_q <= 1'b1;
        bresp_q <= known(reg_awaddr_i) && reg_awaddr_i != 16'h04 ? AXI_OKAY : AXI_SLVERR;
      end else if (reg_bready_i) bvalid_q <= 1'b0;
      if (change) begin
        unique case (reg_awaddr_i)
          16'h08: bursts_q <= reg_wdata_i;
          16'h10: source_q <= reg_wdata_i;
          16'h14: target_q <= reg_wdata_i;
          16'h18: addend_q <= reg_wdata_i;
          default: ;
        endcase
      end
      if (reg_arvalid_i && !rvalid_q) begin
        rvalid_q <= 1'b1;
        rresp_q <= known(reg_araddr_i) ? AXI_OKAY : AXI_SLVERR;
        unique case (reg_araddr_i)
          16'h04: rdata_q <= {29'd0, error_q, done_q, busy_q};
          16'h08: rdata_q <= bursts_q;
          16'h10: rdata_q <= source_q;
          16'h14: rdata_q <= target_q;
          16'h18: rdata_q <= addend_q;
          default: rdata_q <= '0;
        endcase
      end else if (reg_rready_i) rvalid_q <= 1'b0;
    end
  end
  assign irq_o = done_q;

  // ---- the computation: a beat has 16 words ----
  function automatic logic [511:0] compute(input logic [511:0] x, input logic [31:0] addend);
    logic [511:0] y;
    for (int i = 0; i < 16; i++) y[32*i+:32] = x[32*i+:32] + addend;
    return y;
  endfunction

  // ---- the buffer: reset does not clear a memory, so it is zeroed between sessions ----
  logic [511:0] buffer_q[DEPTH];
  logic [$clog2(DEPTH)-1:0] sweep, put_q, get_q;
  shef_sweep #(.Words(DEPTH)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  always_ff @(posedge clk_i) begin
    if (clear_i) buffer_q[sweep] <= '0;
    else if (acc_r_valid_i) buffer_q[put_q] <= compute(acc_r_i.data, addend_q);
  end

  // ---- bursts ----
  logic [31:0] asked_q, read_q, sent_q, written_q;  // read requests, reads, write requests, writes
  logic [$clog2(DEPTH):0] free_q;    // beats of the buffer that are reserved for no read
  logic [$clog2(DEPTH):0] filled_q;  // beats in the buffer that belong to no write request yet
  logic [$clog2(DEPTH):0] due_q;     // W beats of accepted write requests
  logic ar_valid_q, aw_valid_q;
  logic [31:0] ar_addr_q, aw_addr_q;

  // A request stays until it is accepted, also after an error.
  wire ask = busy_q && !error_q && asked_q != bursts_q && free_q >= BEATS &&
      (!ar_valid_q || acc_ar_ready_i);
  wire send = busy_q && !error_q && filled_q >= BEATS && (!aw_valid_q || acc_aw_ready_i);
  wire r_beat = acc_r_valid_i;
  wire w_beat = acc_w_valid_o && acc_w_ready_i;
  wire aw_taken = aw_valid_q && acc_aw_ready_i;
  // The data of a refused access is zero, and no result.
  wire refused = acc_r_valid_i && acc_r_i.resp != AXI_OKAY ||
      acc_b_valid_i && acc_b_i.resp != AXI_OKAY;
  // After an error, the job ends when nothing is open any more.
  wire quiet = !ar_valid_q && !aw_valid_q && read_q == asked_q && written_q == sent_q;

  assign acc_ar_o = '{id: '0, addr: {32'd0, ar_addr_q}, len: 8'(BEATS - 1), size: AXI_SIZE_64,
      burst: AXI_BURST_INCR};
  assign acc_ar_valid_o = ar_valid_q;
  assign acc_r_ready_o = 1'b1;
  assign acc_aw_o = '{id: '0, addr: {32'd0, aw_addr_q}, len: 8'(BEATS - 1), size: AXI_SIZE_64,
      burst: AXI_BURST_INCR};
  assign acc_aw_valid_o = aw_valid_q;
  assign acc_w_o = '{data: buffer_q[get_q], strb: '1, last: get_q[$clog2(BEATS)-1:0] == '1};
  assign acc_w_valid_o = due_q != '0;
  assign acc_b_ready_o = 1'b1;

  localparam int unsigned W = $clog2(DEPTH) + 1;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {busy_q, done_q, error_q, ar_valid_q, aw_valid_q} <= '0;
      {asked_q, read_q, sent_q, written_q, ar_addr_q, aw_addr_q} <= '0;
      {free_q, filled_q, due_q, put_q, get_q} <= '0;
    end else if (start) begin
      {busy_q, done_q, error_q} <= 3'b100;
      {asked_q, read_q, sent_q, written_q} <= '0;
      {filled_q, due_q, put_q, get_q} <= '0;
      free_q <= W'(DEPTH);
    end else begin
      if (ask) ar_addr_q <= source_q + {asked_q[21:0], 10'd0};
      if (send) aw_addr_q <= target_q + {sent_q[21:0], 10'd0};
      ar_valid_q <= ask || ar_valid_q && !acc_ar_ready_i;
      aw_valid_q <= send || aw_valid_q && !acc_aw_ready_i;
      asked_q <= asked_q + 32'(ask);
      sent_q <= sent_q + 32'(send);
      read_q <= read_q + 32'(r_beat && acc_r_i.last);
      written_q <= written_q + 32'(acc_b_valid_i);
      put_q <= put_q + $bits(put_q)'(r_beat);
      get_q <= get_q + $bits(get_q)'(w_beat);
      free_q <= free_q - (ask ? W'(BEATS) : '0) + W'(w_beat);
      filled_q <= filled_q - (send ? W'(BEATS) : '0) + W'(r_beat);
      due_q <= due_q + (aw_taken ? W'(BEATS) : '0) - W'(w_beat);
      if (busy_q && refused) error_q <= 1'b1;
      if (busy_q && (written_q == bursts_q || error_q && quiet)) {busy_q, done_q} <= 2'b01;
    end
  end

  wire unused = ^{acc_r_i.id, acc_b_i.id};
endmodule
`default_nettype wire
