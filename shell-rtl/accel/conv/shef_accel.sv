// Convolution: 5 x 5 filters, padding 2, stride 1, over words of 32 bits, modulo 2^32, by 864
// multipliers, for a batch of images.
//
// Registers and layout: README.md. Memory: AXI4 master acc_*, all ids 0, bursts of up to 64 beats.
// All weights stay on chip, so weights, images and output cross the bus once. Rows of the images
// are read ahead, and rows of the output are written while the next ones are computed. An image of
// 27 x 27 pixels, 96 channels and 256 filters takes 495,360 cycles; before the first one, the
// weights take the time of their 38,400 lines. A response other than OKAY ends the run with
// STATUS.error: no further request is made, and outstanding responses are awaited.
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
  // ---- registers ----
  wire [10:0][31:0] args;
  wire [10:0] images = args[0][10:0];
  wire [4:0] height = args[1][4:0];
  wire [4:0] width = args[2][4:0];
  wire [2:0] depth = args[3][6:4];     // lines of channels in a pixel
  wire [3:0] groups = args[4][8:5];    // of 32 filters
  wire [57:0] image_line = 58'({args[6], args[5]} >> 6);
  wire [57:0] weight_line = 58'({args[8], args[7]} >> 6);
  wire [57:0] out_line = 58'({args[10], args[9]} >> 6);
  function automatic logic bad(input logic [31:0] n, input logic [31:0] max);
    return n == '0 || n > max;
  endfunction
  wire refuse = bad(args[0], 32'd1024) || bad(args[1], 32'd27) || bad(args[2], 32'd27) ||
      bad(args[3], 32'd96) || args[3][3:0] != '0 || bad(args[4], 32'd256) || args[4][4:0] != '0 ||
      args[5][5:0] != '0 || args[7][5:0] != '0 || args[9][5:0] != '0;
  wire start, busy, error, over;
  wire read_idle, read_fail, write_idle, write_fail;
  logic [31:0] cycles_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start) cycles_q <= '0;
    else if (busy) cycles_q <= cycles_q + 32'd1;
  end

  shef_kit_regs #(.NArgs(11), .NResults(1)) u_regs (
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

  // ---- from memory ----
  wire fetch_cleared, store_cleared, read_cleared, write_cleared;
  wire read_cmd, read_ready, beat_valid, beat_ready;
  wire [57:0] read_line;
  wire [31:0] read_beats;
  wire [511:0] beat;
  wire [15:0] rows, rows_used;
  wire [3:0] weights;
  wire [10:0] pixel_addr;
  wire [511:0] pixel;
  wire weight_read;
  wire [2:0] weight_group;
  wire [11:0] weight_addr;
  wire [1023:0] weight;

  shef_kit_read u_read (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(read_cleared),
    .start_i(start),
    .stop_i(error),
    .idle_o(read_idle),
    .fail_o(read_fail),
    .cmd_valid_i(read_cmd),
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
  shef_conv_fetch u_fetch (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(fetch_cleared),
    .start_i(start),
    .stop_i(error || !busy),
    .images_i(images),
    .height_i(height),
    .width_i(width),
    .depth_i(depth),
    .groups_i(groups),
    .image_line_i(image_line),
    .weight_line_i(weight_line),
    .cmd_valid_o(read_cmd),
    .cmd_ready_i(read_ready),
    .cmd_line_o(read_line),
    .cmd_beats_o(read_beats),
    .beat_valid_i(beat_valid),
    .beat_ready_o(beat_ready),
    .beat_i(beat),
    .rows_o(rows),
    .groups_o(weights),
    .rows_used_i(rows_used),
    .pixel_addr_i(pixel_addr),
    .pixel_o(pixel),
    .weight_read_i(weight_read),
    .weight_group_i(weight_group),
    .weight_addr_i(weight_addr),
    .weight_o(weight)
  );

  // ---- products ----
  wire sum_valid, sum_ready;
  wire [1023:0] sum;
  shef_conv_array u_array (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .images_i(images),
    .height_i(height),
    .width_i(width),
    .depth_i(depth),
    .groups_i(groups),
    .rows_i(rows),
    .weights_i(weights),
    .rows_used_o(rows_used),
    .pixel_addr_o(pixel_addr),
    .pixel_i(pixel),
    .weight_read_o(weight_read),
    .weight_group_o(weight_group),
    .weight_addr_o(weight_addr),
    .weight_i(weight),
    .sum_valid_o(sum_valid),
    .sum_ready_i(sum_ready),
    .sum_o(sum)
  );

  // ---- to memory ----
  wire stored;
  wire write_cmd, write_ready, data_valid, data_ready;
  wire [57:0] write_line;
  wire [31:0] write_beats;
  wire [511:0] data;
  shef_conv_store u_store (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(store_cleared),
    .start_i(start),
    .done_o(stored),
    .images_i(images),
    .height_i(height),
    .width_i(width),
    .groups_i(groups),
    .line_i(out_line),
    .sum_valid_i(sum_valid),
    .sum_ready_o(sum_ready),
    .sum_i(sum),
    .cmd_valid_o(write_cmd),
    .cmd_ready_i(write_ready),
    .cmd_line_o(write_line),
    .cmd_beats_o(write_beats),
    .data_valid_o(data_valid),
    .data_ready_i(data_ready),
    .data_o(data)
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
    .cmd_valid_i(write_cmd),
    .cmd_ready_o(write_ready),
    .cmd_line_i(write_line),
    .cmd_beats_i(write_beats),
    .data_valid_i(data_valid),
    .data_ready_o(data_ready),
    .data_i(data),
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
  assign cleared_o = fetch_cleared && store_cleared && read_cleared && write_cleared;
  assign over = busy && !start && write_idle && (error ? read_idle : stored);

  wire unused = &{1'b0, args[0][31:11], args[1][31:5], args[2][31:5], args[3][31:7],
      args[3][3:0], args[4][31:9], args[4][4:0]};
endmodule
`default_nettype wire
