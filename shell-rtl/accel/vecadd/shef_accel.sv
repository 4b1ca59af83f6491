// Vector addition: sum[i] = a[i] + b[i] over words of 32 bits, at one beat of 16 words a cycle.
//
// Registers: README.md. Memory: AXI4 master acc_*, all ids 0, bursts of up to 64 beats. Blocks of 64
// lines of a and b are read in turn; each beat of b is added to that of a and goes to the sums. The
// R channel is busy in every cycle, W in every other one: a run takes 2 * LINES cycles plus one
// latency. A response other than OKAY ends the run with STATUS.error: no further request is made,
// and outstanding responses are awaited.
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
  localparam int unsigned BLOCK = 64;                // lines of a before those of b
  localparam logic [31:0] MAX_LINES = 32'h0100_0000; // 1 GiB a vector

  // ---- registers ----
  wire [6:0][31:0] args;
  wire [31:0] lines = args[0];
  wire [57:0] a_line = 58'({args[2], args[1]} >> 6);
  wire [57:0] b_line = 58'({args[4], args[3]} >> 6);
  wire [57:0] sum_line = 58'({args[6], args[5]} >> 6);
  wire refuse = lines == '0 || lines > MAX_LINES || args[1][5:0] != '0 || args[3][5:0] != '0 ||
      args[5][5:0] != '0;
  wire start, busy, error, over;
  wire read_idle, read_fail, write_idle, write_fail;
  logic [31:0] cycles_q;

  shef_kit_regs #(.NArgs(7), .NResults(1)) u_regs (
    .clk_i,
    .rst_ni,
    .reg_awaddr_i,
    .reg_awvalid_i,
    .reg_awready_o,
    .reg_wdata_i,
    .reg_wstrb_i,
    .reg_wvalid_i,
    .reg_wready_o,
    .reg_bresp_o,
    .reg_bvalid_o,
    .reg_bready_i,
    .reg_araddr_i,
    .reg_arvalid_i,
    .reg_arready_o,
    .reg_rdata_o,
    .reg_rresp_o,
    .reg_rvalid_o,
    .reg_rready_i,
    .args_o(args),
    .results_i(cycles_q),
    .refuse_i(refuse),
    .start_o(start),
    .busy_o(busy),
    .error_o(error),
    .end_i(over),
    .fail_i(read_fail || write_fail),
    .irq_o
  );

  // ---- commands: a block of a, then the same block of b ----
  logic [31:0] asked_q;   // lines of a whose blocks are requested
  logic second_q;         // b is next
  logic asking_q;
  logic sum_q;            // the command of the sums is to be given
  wire [31:0] left = lines - asked_q;
  wire [31:0] block = left < 32'(BLOCK) ? left : 32'(BLOCK);
  wire read_ready, sum_ready;
  wire asked = asking_q && read_ready;

  // ---- beats ----
  logic [511:0] block_mem[BLOCK];
  logic [511:0] a_q;
  logic [31:0] in_q;      // lines of a whose block has arrived
  logic [5:0] beat_q;     // in the block
  logic adding_q;         // the beats are those of b
  wire beat_valid, beat_ready, write_ready;
  wire [511:0] beat;
  wire [31:0] in_left = lines - in_q;
  wire last_beat = beat_q == 6'(BLOCK - 1) || 32'(beat_q) + 32'd1 == in_left;
  wire take = beat_valid && beat_ready;
  assign beat_ready = !adding_q || write_ready;
  wire [5:0] next_beat = last_beat ? '0 : beat_q + 1'b1;

  function automatic logic [511:0] add(input logic [511:0] x, input logic [511:0] y);
    logic [511:0] z;
    for (int i = 0; i < 16; i++) z[32*i+:32] = x[32*i+:32] + y[32*i+:32];
    return z;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {asked_q, in_q, beat_q, cycles_q} <= '0;
      {second_q, asking_q, sum_q, adding_q} <= '0;
    end else if (start) begin
      {asked_q, in_q, beat_q, cycles_q} <= '0;
      {second_q, adding_q} <= '0;
      {asking_q, sum_q} <= '1;
    end else begin
      if (busy) cycles_q <= cycles_q + 32'd1;
      if (asked) begin
        second_q <= !second_q;
        if (second_q) begin
          asked_q <= asked_q + block;
          asking_q <= block != left;
        end
      end
      if (sum_ready) sum_q <= 1'b0;
      if (take) begin
        beat_q <= next_beat;
        if (last_beat) begin
          adding_q <= !adding_q;
          if (adding_q) in_q <= in_q + 32'(beat_q) + 32'd1;
        end
      end
      if (over) {asking_q, sum_q} <= '0;
    end
  end

  // The beat of a that the next beat of b is added to is read a cycle before.
  wire [5:0] sweep;
  wire block_cleared, read_cleared, write_cleared;
  shef_sweep #(.Words(BLOCK)) u_sweep (
    .clk_i,
    .clear_i,
    .addr_o(sweep),
    .cleared_o(block_cleared)
  );
  always_ff @(posedge clk_i) begin
    if (clear_i) block_mem[sweep] <= '0;
    else if (take && !adding_q) block_mem[beat_q] <= beat;
    if (!rst_ni) a_q <= '0;
    else if (take && !adding_q && last_beat && beat_q == '0) a_q <= beat;
    else a_q <= block_mem[take ? next_beat : beat_q];
  end

  // ---- memory ----
  shef_kit_read u_read (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(read_cleared),
    .start_i(start),
    .stop_i(error),
    .idle_o(read_idle),
    .fail_o(read_fail),
    .cmd_valid_i(asking_q),
    .cmd_ready_o(read_ready),
    .cmd_line_i((second_q ? b_line : a_line) + 58'(asked_q)),
    .cmd_beats_i(block),
    .data_valid_o(beat_valid),
    .data_ready_i(beat_ready),
    .data_o(beat),
    .acc_ar_o,
    .acc_ar_valid_o,
    .acc_ar_ready_i,
    .acc_r_i,
    .acc_r_valid_i,
    .acc_r_ready_o
  );
  shef_kit_write u_write (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(write_cleared),
    .start_i(start),
    .stop_i(error),
    .idle_o(write_idle),
    .fail_o(write_fail),
    .cmd_valid_i(sum_q),
    .cmd_ready_o(sum_ready),
    .cmd_line_i(sum_line),
    .cmd_beats_i(lines),
    .data_valid_i(beat_valid && adding_q),
    .data_ready_o(write_ready),
    .data_i(add(a_q, beat)),
    .acc_aw_o,
    .acc_aw_valid_o,
    .acc_aw_ready_i,
    .acc_w_o,
    .acc_w_valid_o,
    .acc_w_ready_i,
    .acc_b_i,
    .acc_b_valid_i,
    .acc_b_ready_o
  );
  assign cleared_o = block_cleared && read_cleared && write_cleared;
  assign over = busy && !start && write_idle && (error ? read_idle : !sum_q && in_q == lines);
endmodule
`default_nettype wire
