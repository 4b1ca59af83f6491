// Storage node: puts files of 4 KiB records from a client's region into slots of a store, gets them
// back, and lets no record pass that its policy does not allow.
//
// Registers, commands and records: README.md. Memory: AXI4 master acc_*, bursts of a record; id 0
// for records from and to the client and for results, 1 for the store, 2 for commands. Reads run
// ahead of the writes, across commands: R and W are busy in every cycle but two for each command. A
// read of a record waits until an earlier write of it is answered. A response other than OKAY ends
// the run with STATUS.error: no further request is made, and outstanding responses are awaited.
`default_nettype none
module shef_accel
  import shef_pkg::*;
  import shef_storage_pkg::*;
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
  localparam logic [31:0] MAX_COMMANDS = 32'h0001_0000;
  localparam logic [31:0] MAX_SLOTS = 32'h0001_0000;   // 64 GiB
  localparam logic [31:0] MAX_BLOCKS = 32'h0010_0000;  // 4 GiB

  // ---- registers ----
  wire [13:0][31:0] args;
  wire [31:0] commands = args[0];
  wire [31:0] slots = args[1];
  wire [31:0] put_blocks = args[2];
  wire [31:0] get_blocks = args[3];
  wire [57:0] commands_line = 58'({args[5], args[4]} >> 6);
  wire [57:0] put_line = 58'({args[7], args[6]} >> 6);
  wire [57:0] store_line = 58'({args[9], args[8]} >> 6);
  wire [57:0] get_line = 58'({args[11], args[10]} >> 6);
  wire [57:0] results_line = 58'({args[13], args[12]} >> 6);
  wire refuse = commands == '0 || commands > MAX_COMMANDS || slots == '0 || slots > MAX_SLOTS ||
      put_blocks > MAX_BLOCKS || get_blocks > MAX_BLOCKS || args[4][5:0] != '0 ||
      args[6][11:0] != '0 || args[8][11:0] != '0 || args[10][11:0] != '0 || args[12][5:0] != '0;
  wire start, busy, error, over;
  wire [2:0] read_idle, read_fail;
  wire [1:0] write_idle, write_fail;
  wire [31:0] answered, stored, released, refused, bad;
  logic [31:0] cycles_q;

  shef_kit_regs #(.NArgs(14), .NResults(5)) u_regs (
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
    .results_i({cycles_q, bad, refused, released, stored}),
    .refuse_i(refuse),
    .start_o(start),
    .busy_o(busy),
    .error_o(error),
    .end_i(over),
    .fail_i(read_fail != '0 || write_fail != '0),
    .irq_o
  );

  logic lines_q;   // the read of the commands is to be requested
  wire lines_ready;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cycles_q <= '0;
      lines_q <= 1'b0;
    end else if (start) begin
      cycles_q <= '0;
      lines_q <= 1'b1;
    end else begin
      if (busy) cycles_q <= cycles_q + 32'd1;
      if (lines_ready) lines_q <= 1'b0;
    end
  end

  // ---- commands ----
  wire line_valid, line_ready, asked_valid, asked_ready, command_valid, command_ready;
  wire [511:0] line;
  command_t asked, command;
  wire put_ask, put_asked, store_ask, store_asked;
  wire [57:0] put_at, store_at;
  wire [1:0] b_valid;
  shef_storage_ask u_ask (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .stop_i(error),
    .slots_i(slots),
    .put_blocks_i(put_blocks),
    .get_blocks_i(get_blocks),
    .put_line_i(put_line),
    .store_line_i(store_line),
    .line_valid_i(line_valid),
    .line_ready_o(line_ready),
    .line_i(line),
    .command_valid_o(asked_valid),
    .command_ready_i(asked_ready),
    .command_o(asked),
    .put_valid_o(put_ask),
    .put_ready_i(put_asked),
    .put_at_o(put_at),
    .store_valid_o(store_ask),
    .store_ready_i(store_asked),
    .store_at_o(store_at),
    .write_done_i(b_valid[1])
  );

  // Commands whose records are requested, or about to be.
  wire [2:0] sweep;
  wire queues_cleared;
  wire [3:0] queued;
  shef_sweep #(.Words(8)) u_sweep (
    .clk_i,
    .clear_i,
    .addr_o(sweep),
    .cleared_o(queues_cleared)
  );
  shef_fifo #(.W($bits(command_t)), .Depth(8)) u_commands (
    .clk_i,
    .rst_ni,
    .clr_i(clear_i || start),
    .zero_addr_i(sweep),
    .in_valid_i(asked_valid),
    .in_ready_o(asked_ready),
    .in_data_i(asked),
    .out_valid_o(command_valid),
    .out_ready_i(command_ready),
    .out_data_o(command),
    .count_o(queued)
  );

  // ---- records and results ----
  wire put_valid, put_ready, stored_valid, stored_ready;
  wire [511:0] put_data, stored_data, data;
  wire to_get_valid, to_get_ready, to_store_valid, to_store_ready, move_idle;
  wire [1:0] lines_valid, lines_taken;   // lines to write: [0] to the client, [1] to the store
  typedef struct packed {
    logic [57:0] line;
    logic [31:0] beats;
  } lines_t;
  lines_t write_lines;
  shef_storage_move u_move (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .stop_i(error),
    .store_line_i(store_line),
    .get_line_i(get_line),
    .results_line_i(results_line),
    .command_valid_i(command_valid),
    .command_ready_o(command_ready),
    .command_i(command),
    .put_valid_i(put_valid),
    .put_ready_o(put_ready),
    .put_i(put_data),
    .store_valid_i(stored_valid),
    .store_ready_o(stored_ready),
    .store_i(stored_data),
    .to_store_cmd_valid_o(lines_valid[1]),
    .to_store_cmd_ready_i(lines_taken[1]),
    .to_get_cmd_valid_o(lines_valid[0]),
    .to_get_cmd_ready_i(lines_taken[0]),
    .cmd_line_o(write_lines.line),
    .cmd_beats_o(write_lines.beats),
    .to_store_valid_o(to_store_valid),
    .to_store_ready_i(to_store_ready),
    .to_get_valid_o(to_get_valid),
    .to_get_ready_i(to_get_ready),
    .data_o(data),
    .answered_o(answered),
    .stored_o(stored),
    .released_o(released),
    .refused_o(refused),
    .bad_o(bad),
    .idle_o(move_idle)
  );

  lines_t [1:0] next;
  wire [1:0] next_valid, next_ready;
  wire [1:0][2:0] nexts;
  for (genvar i = 0; i < 2; i++) begin : g_lines
    shef_fifo #(.W($bits(lines_t)), .Depth(4)) u_lines (
      .clk_i,
      .rst_ni,
      .clr_i(clear_i || start),
      .zero_addr_i(sweep[1:0]),
      .in_valid_i(lines_valid[i]),
      .in_ready_o(lines_taken[i]),
      .in_data_i(write_lines),
      .out_valid_o(next_valid[i]),
      .out_ready_i(next_ready[i]),
      .out_data_o(next[i]),
      .count_o(nexts[i])
    );
  end

  // ---- memory ----
  axi_ax_t [2:0] ar;
  axi_ax_t [1:0] aw;
  axi_w_t [1:0] w;
  wire [2:0] ar_valid, ar_ready, r_valid, r_ready;
  wire [1:0] aw_valid, aw_ready, w_valid, w_ready, b_ready;
  wire [4:0] cleared;
  shef_kit_read #(.Burst(64), .Depth(512), .Id(8'd0)) u_put (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(cleared[2]),
    .start_i(start),
    .stop_i(error),
    .idle_o(read_idle[0]),
    .fail_o(read_fail[0]),
    .cmd_valid_i(put_ask),
    .cmd_ready_o(put_asked),
    .cmd_line_i(put_at),
    .cmd_beats_i(32'(RECORD)),
    .data_valid_o(put_valid),
    .data_ready_i(put_ready),
    .data_o(put_data),
    .acc_ar_o(ar[0]),
    .acc_ar_valid_o(ar_valid[0]),
    .acc_ar_ready_i(ar_ready[0]),
    .acc_r_i,
    .acc_r_valid_i(r_valid[0]),
    .acc_r_ready_o(r_ready[0])
  );
  shef_kit_read #(.Burst(64), .Depth(512), .Id(8'd1)) u_stored (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(cleared[3]),
    .start_i(start),
    .stop_i(error),
    .idle_o(read_idle[1]),
    .fail_o(read_fail[1]),
    .cmd_valid_i(store_ask),
    .cmd_ready_o(store_asked),
    .cmd_line_i(store_at),
    .cmd_beats_i(32'(RECORD)),
    .data_valid_o(stored_valid),
    .data_ready_i(stored_ready),
    .data_o(stored_data),
    .acc_ar_o(ar[1]),
    .acc_ar_valid_o(ar_valid[1]),
    .acc_ar_ready_i(ar_ready[1]),
    .acc_r_i,
    .acc_r_valid_i(r_valid[1]),
    .acc_r_ready_o(r_ready[1])
  );
  shef_kit_read #(.Burst(8), .Depth(16), .Id(8'd2)) u_lines (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(cleared[4]),
    .start_i(start),
    .stop_i(error),
    .idle_o(read_idle[2]),
    .fail_o(read_fail[2]),
    .cmd_valid_i(lines_q),
    .cmd_ready_o(lines_ready),
    .cmd_line_i(commands_line),
    .cmd_beats_i(commands),
    .data_valid_o(line_valid),
    .data_ready_i(line_ready),
    .data_o(line),
    .acc_ar_o(ar[2]),
    .acc_ar_valid_o(ar_valid[2]),
    .acc_ar_ready_i(ar_ready[2]),
    .acc_r_i,
    .acc_r_valid_i(r_valid[2]),
    .acc_r_ready_o(r_ready[2])
  );
  shef_kit_write #(.Depth(256), .Id(8'd0)) u_get (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(cleared[0]),
    .start_i(start),
    .stop_i(error),
    .idle_o(write_idle[0]),
    .fail_o(write_fail[0]),
    .cmd_valid_i(next_valid[0]),
    .cmd_ready_o(next_ready[0]),
    .cmd_line_i(next[0].line),
    .cmd_beats_i(next[0].beats),
    .data_valid_i(to_get_valid),
    .data_ready_o(to_get_ready),
    .data_i(data),
    .acc_aw_o(aw[0]),
    .acc_aw_valid_o(aw_valid[0]),
    .acc_aw_ready_i(aw_ready[0]),
    .acc_w_o(w[0]),
    .acc_w_valid_o(w_valid[0]),
    .acc_w_ready_i(w_ready[0]),
    .acc_b_i,
    .acc_b_valid_i(b_valid[0]),
    .acc_b_ready_o(b_ready[0])
  );
  shef_kit_write #(.Depth(256), .Id(8'd1)) u_store (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(cleared[1]),
    .start_i(start),
    .stop_i(error),
    .idle_o(write_idle[1]),
    .fail_o(write_fail[1]),
    .cmd_valid_i(next_valid[1]),
    .cmd_ready_o(next_ready[1]),
    .cmd_line_i(next[1].line),
    .cmd_beats_i(next[1].beats),
    .data_valid_i(to_store_valid),
    .data_ready_o(to_store_ready),
    .data_i(data),
    .acc_aw_o(aw[1]),
    .acc_aw_valid_o(aw_valid[1]),
    .acc_aw_ready_i(aw_ready[1]),
    .acc_w_o(w[1]),
    .acc_w_valid_o(w_valid[1]),
    .acc_w_ready_i(w_ready[1]),
    .acc_b_i,
    .acc_b_valid_i(b_valid[1]),
    .acc_b_ready_o(b_ready[1])
  );
  shef_storage_port u_port (
    .clk_i,
    .rst_ni,
    .clear_i,
    .ar_i(ar),
    .ar_valid_i(ar_valid),
    .ar_ready_o(ar_ready),
    .r_valid_o(r_valid),
    .aw_i(aw),
    .aw_valid_i(aw_valid),
    .aw_ready_o(aw_ready),
    .w_i(w),
    .w_valid_i(w_valid),
    .w_ready_o(w_ready),
    .b_valid_o(b_valid),
    .acc_aw_o,
    .acc_aw_valid_o,
    .acc_aw_ready_i,
    .acc_w_o,
    .acc_w_valid_o,
    .acc_w_ready_i,
    .acc_b_i,
    .acc_b_valid_i,
    .acc_b_ready_o,
    .acc_ar_o,
    .acc_ar_valid_o,
    .acc_ar_ready_i,
    .acc_r_i,
    .acc_r_valid_i,
    .acc_r_ready_o
  );
  assign cleared_o = queues_cleared && cleared == '1;
  wire done = answered == commands && move_idle && next_valid == '0;
  assign over = busy && !start && write_idle == '1 && read_idle == '1 && (error || done);

  wire unused = &{1'b0, queued, nexts, r_ready, b_ready};
endmodule
`default_nettype wire
