// LeNet-5 in int8: class and scores of images of 32 x 32 pixels, with 160 multipliers.
//
// Registers: README.md. Memory: AXI4 master acc_*, all ids 0, bursts of up to 64 beats. Images go
// through the network in batches of 64, layer by layer: the layer's weights are read, then the
// inputs of one image after the other while the image before is computed, and the outputs are
// written to the feature maps, from which the next layer reads them when all are acknowledged. A
// run takes 3,142 cycles for an image, and 1,469 for the weights of a batch. A response other than
// OKAY ends the run with STATUS.error: no further request is made, and outstanding responses are
// awaited.
`default_nettype none
module shef_accel
  import shef_pkg::*;
  import shef_lenet_pkg::*;
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
  localparam logic [31:0] MAX_IMAGES = 32'd1024;
  localparam logic [7:0] MAX_SHIFT = 8'd24;
  localparam int unsigned IMAGE_LINES = 16;

  // ---- registers ----
  wire [9:0][31:0] args;
  wire [31:0] count = args[0];
  wire [3:0][7:0] shifts = args[1];
  wire [57:0] weights_line = 58'({args[3], args[2]} >> 6);
  wire [57:0] images_line = 58'({args[5], args[4]} >> 6);
  wire [57:0] maps_line = 58'({args[7], args[6]} >> 6);
  wire [57:0] result_line = 58'({args[9], args[8]} >> 6);
  wire refuse = count == '0 || count > MAX_IMAGES || shifts[0] > MAX_SHIFT ||
      shifts[1] > MAX_SHIFT || shifts[2] > MAX_SHIFT || shifts[3] > MAX_SHIFT ||
      args[2][5:0] != '0 || args[4][5:0] != '0 || args[6][5:0] != '0 || args[8][5:0] != '0;
  wire start, busy, error, over;
  wire read_idle, read_fail, write_idle, write_fail;
  logic [31:0] cycles_q;

  shef_kit_regs #(.NArgs(10), .NResults(1)) u_regs (
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

  // ---- batches and layers ----
  typedef enum logic [2:0] {S_IDLE, S_WEIGHTS, S_INPUTS, S_OUTPUTS, S_RUN} state_e;
  state_e state_q;
  logic next_q;           // first cycle of a further layer
  layer_t layer_q;
  logic [9:0] done_q;     // images of earlier batches
  wire shape_t s = shape(layer_q);
  wire shape_t prior = shape(layer_q - 3'd1);
  wire [10:0] left = count[10:0] - 11'(done_q);
  wire [6:0] images = left < 11'(BATCH) ? 7'(left) : 7'(BATCH);
  wire first = start || next_q;  // empties all stages
  wire read_ready, outputs_ready;
  wire layer_end = state_q == S_RUN && write_idle;
  wire batch_end = layer_end && layer_q == 3'(LAYERS - 1);
  wire run_end = batch_end && left == 11'(images);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= S_IDLE;
      next_q <= 1'b0;
      layer_q <= '0;
      done_q <= '0;
      cycles_q <= '0;
    end else if (start) begin
      state_q <= S_WEIGHTS;
      next_q <= 1'b0;
      layer_q <= '0;
      done_q <= '0;
      cycles_q <= '0;
    end else begin
      if (busy) cycles_q <= cycles_q + 32'd1;
      next_q <= layer_end && !run_end;
      case (state_q)
        S_WEIGHTS: if (read_ready) state_q <= S_INPUTS;
        S_INPUTS: if (read_ready) state_q <= S_OUTPUTS;
        S_OUTPUTS: if (outputs_ready) state_q <= S_RUN;
        S_RUN:
        if (layer_end) begin
          state_q <= S_WEIGHTS;
          layer_q <= batch_end ? '0 : layer_q + 3'd1;
          if (batch_end) done_q <= done_q + 10'(images);
        end
        default: ;
      endcase
      if (over) state_q <= S_IDLE;
    end
  end
  assign over = busy && !start && (error ? read_idle && write_idle : run_end);

  logic [57:0] read_line, write_line;
  logic [31:0] read_beats;
  always_comb begin
    read_line = weights_line + 58'(s.offset);
    read_beats = 32'(s.lines);
    if (state_q == S_INPUTS) begin
      read_beats = 32'(images) * 32'(s.in_lines);
      read_line = layer_q == '0 ? images_line + 58'(done_q) * 58'(IMAGE_LINES) :
          maps_line + 58'(prior.map);
    end
    write_line = layer_q == 3'(LAYERS - 1) ? result_line + 58'(done_q) : maps_line + 58'(s.map);
  end

  // ---- layers ----
  wire beat_valid, beat_ready;
  wire [511:0] beat;
  wire line_valid, line_ready;
  wire [511:0] line;
  wire en, full, image_done;
  wire fetch_t fetch;
  wire step_t step, sum;
  fetch_t fetch_q;
  step_t step_q;
  wire [1:0][255:0] rows;
  wire [LANES-1:0][TAPS-1:0][7:0] weights;
  wire [2:0] group;
  wire [LANES-1:0][15:0] biases;
  wire [LANES-1:0][31:0] sums;
  wire store_cleared;

  shef_lenet_store u_store (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(store_cleared),
    .begin_i(first),
    .layer_i(layer_q),
    .data_valid_i(beat_valid),
    .data_ready_o(beat_ready),
    .data_i(beat),
    .en_i(en),
    .full_o(full),
    .done_i(image_done),
    .fetch_i(fetch),
    .rows_o(rows),
    .weights_o(weights),
    .group_i(group),
    .biases_o(biases)
  );
  shef_lenet_steps u_steps (
    .clk_i,
    .rst_ni,
    .begin_i(first),
    .layer_i(layer_q),
    .full_i(full),
    .en_i(en),
    .fetch_o(fetch),
    .step_o(step),
    .done_o(image_done)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fetch_q <= '0;
      step_q <= '0;
    end else if (first) step_q <= '0;
    else if (en) begin
      fetch_q <= fetch;
      step_q <= step;
    end
  end
  shef_lenet_array u_array (
    .clk_i,
    .rst_ni,
    .begin_i(first),
    .en_i(en),
    .pairs_i(layer_q == '0),
    .step_i(step_q),
    .swap_i(fetch_q.swap),
    .single_i(fetch_q.single),
    .x_i(fetch_q.x),
    .rows_i(rows),
    .weights_i(weights),
    .sum_o(sum),
    .sums_o(sums)
  );
  shef_lenet_post u_post (
    .clk_i,
    .rst_ni,
    .begin_i(first),
    .layer_i(layer_q),
    .shift_i(layer_q == 3'(LAYERS - 1) ? '0 : 5'(shifts[layer_q[1:0]])),
    .en_o(en),
    .sum_i(sum),
    .sums_i(sums),
    .group_o(group),
    .biases_i(biases),
    .line_valid_o(line_valid),
    .line_ready_i(line_ready),
    .line_o(line)
  );

  // ---- memory ----
  wire read_cleared, write_cleared;
  shef_kit_read u_read (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(read_cleared),
    .start_i(start),
    .stop_i(error),
    .idle_o(read_idle),
    .fail_o(read_fail),
    .cmd_valid_i(state_q == S_WEIGHTS || state_q == S_INPUTS),
    .cmd_ready_o(read_ready),
    .cmd_line_i(read_line),
    .cmd_beats_i(read_beats),
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
    .cmd_valid_i(state_q == S_OUTPUTS),
    .cmd_ready_o(outputs_ready),
    .cmd_line_i(write_line),
    .cmd_beats_i(32'(images) * 32'(s.out_lines)),
    .data_valid_i(line_valid),
    .data_ready_o(line_ready),
    .data_i(line),
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
  assign cleared_o = store_cleared && read_cleared && write_cleared;

  wire unused = &{1'b0, s, prior, fetch_q};
endmodule
`default_nettype wire
