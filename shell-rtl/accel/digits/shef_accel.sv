// The digits accelerator: nearest-neighbour classification (k = 3) of rows of 64 pixel bytes, four
// queries a pass.
//
// Registers: AXI4-Lite slave reg_* (README.md). Memory: AXI4 master acc_*, all ids 0, 64-byte
// beats, bursts of up to 64 beats inside a 4 KiB page. R and B are always accepted. A training row
// is used every cycle, requests run ahead across passes: a run takes query_batches * (training rows
// + 4) cycles plus one latency, if memory delivers a beat a cycle. A response other than OKAY sets
// STATUS.error: no further request is made, outstanding responses are awaited, the run finishes.
// irq_o (level) is STATUS.done.
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
  // ---- registers and run control ----
  logic start;
  logic busy_q;
  logic done_q;
  logic error_q;
  logic [63:0] cycles_q;
  logic [63:0] train_addr, query_addr, result_addr, label_addr;
  logic [31:0] train_rows, query_rows;

  shef_digits_regs u_regs (
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
    .start_o(start),
    .busy_i(busy_q),
    .done_i(done_q),
    .error_i(error_q),
    .cycles_i(cycles_q),
    .train_addr_o(train_addr),
    .query_addr_o(query_addr),
    .result_addr_o(result_addr),
    .label_addr_o(label_addr),
    .train_rows_o(train_rows),
    .query_rows_o(query_rows)
  );

  wire sizes_ok = train_rows != '0 && train_rows <= 32'd4096 && query_rows != '0 &&
      query_rows <= 32'd65535;
  wire run = start && sizes_ok;
  logic fetch_done, store_idle, store_all;
  logic r_error, b_error;
  logic [3:0] settle_q;  // cycles in which the last beats leave the pipeline
  wire quiet = fetch_done && store_idle && (error_q || store_all);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      done_q <= 1'b0;
      error_q <= 1'b0;
      cycles_q <= '0;
      settle_q <= '0;
    end else if (start) begin
      busy_q <= sizes_ok;
      done_q <= !sizes_ok;
      error_q <= !sizes_ok;
      cycles_q <= '0;
      settle_q <= '0;
    end else if (busy_q) begin
      cycles_q <= cycles_q + 64'd1;
      if (r_error || b_error) error_q <= 1'b1;
      settle_q <= (quiet && error_q) ? settle_q + 4'd1 : 4'd0;
      if (quiet && (!error_q || settle_q == '1)) begin
        busy_q <= 1'b0;
        done_q <= 1'b1;
      end
    end
  end
  assign irq_o = done_q;

  // ---- memory ----
  logic reserve_valid, reserve_ready;
  logic beat_label, beat_query, beat_row, beat_first, beat_last;
  logic [511:0] beat_data;
  logic [11:0] beat_index;
  logic [3:0] beat_queries;

  shef_digits_fetch u_fetch (
    .clk_i,
    .rst_ni,
    .start_i(run),
    .stop_i(error_q),
    .done_o(fetch_done),
    .train_line_i(train_addr[63:6]),
    .query_line_i(query_addr[63:6]),
    .label_line_i(label_addr[63:6]),
    .train_rows_i(train_rows[12:0]),
    .query_rows_i(query_rows[15:0]),
    .reserve_valid_o(reserve_valid),
    .reserve_ready_i(reserve_ready),
    .acc_ar_o,
    .acc_ar_valid_o,
    .acc_ar_ready_i,
    .acc_r_i,
    .acc_r_valid_i,
    .acc_r_ready_o,
    .r_error_o(r_error),
    .beat_label_o(beat_label),
    .beat_query_o(beat_query),
    .beat_row_o(beat_row),
    .beat_data_o(beat_data),
    .beat_index_o(beat_index),
    .beat_first_o(beat_first),
    .beat_last_o(beat_last),
    .beat_queries_o(beat_queries)
  );

  logic [5:0] sweep;  // of both memories
  logic push_q;
  logic [511:0] push_data_q;
  wire [16:0] rows_up = {1'b0, query_rows[15:0]} + 17'd3;

  shef_digits_store u_store (
    .clk_i,
    .rst_ni,
    .clear_i,
    .sweep_i(sweep),
    .start_i(run),
    .stop_i(error_q),
    .line_i(result_addr[63:6]),
    .beats_i(rows_up[16:2]),
    .idle_o(store_idle),
    .all_o(store_all),
    .reserve_valid_i(reserve_valid),
    .reserve_ready_o(reserve_ready),
    .push_i(push_q && busy_q),
    .push_data_i(push_data_q),
    .acc_aw_o,
    .acc_aw_valid_o,
    .acc_aw_ready_i,
    .acc_w_o,
    .acc_w_valid_o,
    .acc_w_ready_i,
    .acc_b_i,
    .acc_b_valid_i,
    .acc_b_ready_o,
    .b_error_o(b_error)
  );

  // ---- labels: 64 words of 64 ----
  // The label of a row is needed three cycles after its beat.
  shef_sweep #(.Words(64)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  logic [255:0] label_mem[64];
  logic [255:0] label_word;
  always_comb begin
    label_word = '0;
    if (beat_label) begin
      for (int i = 0; i < 64; i++) label_word[4*i+:4] = beat_data[8*i+:4];
    end
  end
  logic [2:0] row_q;
  logic [2:0] last_q;
  logic [3:0] queries_q[4];
  logic [11:0] row_index_q;
  logic [3:0] label_q[2];
  always_ff @(posedge clk_i) begin
    if (clear_i) label_mem[sweep] <= '0;
    else if (beat_label) label_mem[beat_index[5:0]] <= label_word;
    if (!rst_ni) row_index_q <= '0;
    else if (beat_row) row_index_q <= beat_index;
    if (row_q[0]) label_q[0] <= label_mem[row_index_q[11:6]][{row_index_q[5:0], 2'b00}+:4];
    if (row_q[1]) label_q[1] <= label_q[0];
    if (!rst_ni) for (int i = 0; i < 2; i++) label_q[i] <= '0;
  end

  // ---- the four queries ----
  logic [21:0] near_distance[4];
  logic [47:0] near_index[4];
  logic [11:0] near_label[4];
  for (genvar q = 0; q < 4; q++) begin : g_near
    shef_digits_near u_near (
      .clk_i,
      .rst_ni,
      .query_we_i(beat_query && beat_index[1:0] == 2'(q)),
      .data_i(beat_data),
      .row_valid_i(beat_row && beat_queries[q]),
      .row_first_i(beat_first),
      .row_index_i(beat_index),
      .label_i(label_q[1]),
      .distance_o(near_distance[q]),
      .index_o(near_index[q]),
      .label_o(near_label[q])
    );
  end

  // ---- vote and result beat ----
  function automatic logic [127:0] record(input logic [21:0] distance, input logic [47:0] index,
                                          input logic [11:0] labels);
    logic [3:0] l0, l1, l2, winner;
    logic e01, e02, e12;
    logic [1:0] votes;
    {l2, l1, l0} = labels;
    e01 = !index[31] && l1 == l0;
    e02 = !index[47] && l2 == l0;
    e12 = !index[47] && l2 == l1;
    if (e12 && !e01) begin
      winner = l1;
      votes = 2'd2;
    end else begin
      winner = l0;
      votes = 2'd1 + {1'b0, e01} + {1'b0, e02};
    end
    return {32'd0, 10'd0, distance, index, 6'd0, votes, 4'd0, winner};
  endfunction

  logic pass_end_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      row_q <= '0;
      last_q <= '0;
      pass_end_q <= 1'b0;
      push_q <= 1'b0;
      push_data_q <= '0;
    end else begin
      row_q <= {row_q[1:0], beat_row};
      last_q <= {last_q[1:0], beat_row && beat_last};
      pass_end_q <= last_q[2];
      push_q <= pass_end_q;
      if (pass_end_q) begin
        for (int q = 0; q < 4; q++) begin
          push_data_q[128*q+:128] <= queries_q[3][q]
              ? record(near_distance[q], near_index[q], near_label[q]) : '0;
        end
      end
    end
    if (beat_row) queries_q[0] <= beat_queries;
    if (row_q[0]) queries_q[1] <= queries_q[0];
    if (row_q[1]) queries_q[2] <= queries_q[1];
    if (row_q[2]) queries_q[3] <= queries_q[2];
    if (!rst_ni) for (int i = 0; i < 4; i++) queries_q[i] <= '0;
  end

  wire unused = &{1'b0, row_q[2], rows_up[1:0], train_addr[5:0], query_addr[5:0], result_addr[5:0],
                  label_addr[5:0]};
endmodule
`default_nettype wire
