// Ingestion for recommendation models: columns of raw features become rows of a batch.
//
// Registers: README.md. Memory: AXI4 master acc_*, all ids 0, bursts of up to 64 beats. The lines
// of the configuration and then of all columns are read in one stream, one a cycle, into a store of
// two halves; rows leave it at one line a cycle. A group of rows is written when all of it has been
// read and checked. A malformed configuration or group, or a response other than OKAY, ends the run
// with STATUS.error: no further request is made, and outstanding responses are awaited.
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
  localparam logic [31:0] MAX_LINES = 32'h0100_0000;  // of the columns: 1 GiB
  localparam logic [31:0] MAX_ROWS = 32'h0100_0000;
  localparam logic [31:0] CONFIG_LINES = 32'd20;

  // ---- registers ----
  wire [8:0][31:0] args;
  wire [31:0] lines = args[0];
  wire [31:0] rows = args[1];
  wire [2:0] sparse = args[2][2:0];
  wire [57:0] config_line = 58'({args[4], args[3]} >> 6);
  wire [57:0] columns_line = 58'({args[6], args[5]} >> 6);
  wire [57:0] batch_line = 58'({args[8], args[7]} >> 6);
  wire refuse = lines == '0 || lines > MAX_LINES || rows == '0 || rows > MAX_ROWS ||
      args[2] == '0 || args[2] > 32'(shef_ingest_pkg::SPARSE) || args[3][5:0] != '0 ||
      args[5][5:0] != '0 || args[7][5:0] != '0;
  wire start, busy, error, over;
  wire read_idle, read_fail, write_idle, write_fail, load_fail;
  logic [31:0] cycles_q;

  shef_kit_regs #(.NArgs(9), .NResults(1)) u_regs (
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
    .fail_i(read_fail || write_fail || load_fail),
    .irq_o
  );

  // ---- commands: the configuration, then the columns; each group of rows ----
  logic config_q, columns_q;  // to be requested
  logic [57:0] next_line_q;   // of the batch
  wire read_ready, group_valid, group_ready;
  wire [31:0] group_lines;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {config_q, columns_q} <= '0;
      {cycles_q, next_line_q} <= '0;
    end else if (start) begin
      {config_q, columns_q} <= '1;
      cycles_q <= '0;
      next_line_q <= batch_line;
    end else begin
      if (busy) cycles_q <= cycles_q + 32'd1;
      if (read_ready) begin
        config_q <= 1'b0;
        if (!config_q) columns_q <= 1'b0;
      end
      if (group_valid && group_ready) next_line_q <= next_line_q + 58'(group_lines);
      if (over) {config_q, columns_q} <= '0;
    end
  end

  // ---- lines ----
  wire in_valid, in_ready, out_valid, out_ready;
  wire shef_ingest_pkg::line_t in_line, out_line, done_line;
  wire shef_ingest_pkg::place_t done_place;
  wire half, half_free, begin_group, index_valid, done_valid, all_loaded, store_idle;
  wire [6:0] group_rows;
  wire [2:0] index_sparse;
  wire [3:0] sweep;
  wire bounds_cleared, store_cleared, read_cleared, write_cleared;
  shef_sweep #(.Words(16)) u_sweep (
    .clk_i,
    .clear_i,
    .addr_o(sweep),
    .cleared_o(bounds_cleared)
  );
  shef_ingest_load u_load (
    .clk_i,
    .rst_ni,
    .clear_i,
    .sweep_i(sweep),
    .start_i(start),
    .stop_i(error || !busy),
    .lines_i(lines),
    .rows_i(rows),
    .sparse_i(sparse),
    .fail_o(load_fail),
    .all_o(all_loaded),
    .line_valid_i(in_valid),
    .line_ready_o(in_ready),
    .line_i(in_line),
    .half_free_i(half_free),
    .half_o(half),
    .begin_o(begin_group),
    .rows_o(group_rows),
    .index_valid_o(index_valid),
    .index_sparse_o(index_sparse),
    .out_valid_o(done_valid),
    .out_place_o(done_place),
    .out_line_o(done_line)
  );
  shef_ingest_store u_store (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(store_cleared),
    .start_i(start),
    .sparse_i(sparse),
    .idle_o(store_idle),
    .half_i(half),
    .half_free_o(half_free),
    .begin_i(begin_group),
    .rows_i(group_rows),
    .index_valid_i(index_valid),
    .index_sparse_i(index_sparse),
    .index_i(in_line),
    .in_valid_i(done_valid),
    .in_place_i(done_place),
    .in_line_i(done_line),
    .group_valid_o(group_valid),
    .group_ready_i(group_ready),
    .group_lines_o(group_lines),
    .line_valid_o(out_valid),
    .line_ready_i(out_ready),
    .line_o(out_line)
  );

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
    .cmd_valid_i(config_q || columns_q),
    .cmd_ready_o(read_ready),
    .cmd_line_i(config_q ? config_line : columns_line),
    .cmd_beats_i(config_q ? CONFIG_LINES : lines),
    .data_valid_o(in_valid),
    .data_ready_i(in_ready),
    .data_o(in_line),
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
    .cmd_valid_i(group_valid),
    .cmd_ready_o(group_ready),
    .cmd_line_i(next_line_q),
    .cmd_beats_i(group_lines),
    .data_valid_i(out_valid),
    .data_ready_o(out_ready),
    .data_i(out_line),
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
  assign cleared_o = bounds_cleared && store_cleared && read_cleared && write_cleared;
  assign over = busy && !start && write_idle && (error ? read_idle : all_loaded && store_idle);
endmodule
`default_nettype wire
