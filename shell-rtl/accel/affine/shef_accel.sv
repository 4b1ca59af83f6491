// Affine transform: for each pixel of the target, the pixel of the source at a * column + b * row +
// c and d * column + e * row + f in 16.16 fixed point, bilinear, at four pixels a cycle.
//
// Registers: README.md. Memory: AXI4 master acc_*, all ids 0. The source is in tiles of 8 x 8
// pixels, 64 bytes each, which are read one by one as the target needs them, with up to 256 in
// flight; the target is written in rows, in bursts of up to 64 beats. A run takes a quarter of a
// cycle for each pixel, more where a group of four pixels needs several tiles that are not among
// those on chip. A response other than OKAY ends the run with STATUS.error: no further request is
// made, and outstanding responses are awaited.
`default_nettype none
module shef_accel
  import shef_pkg::*;
  import shef_affine_pkg::*;
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
  localparam int unsigned MAPS = 4;
  localparam int unsigned FIRST_MAP = 10;        // argument of the first map's a
  localparam logic [31:0] MAX_SIDE = 32'd512;    // pixels
  localparam logic [31:0] MAX_LINES = 32'd8;     // of a row of the target
  localparam logic [31:0] MAX_SHIFT = 32'h4000_0000;  // c, f: 16384.0
  localparam logic [31:0] MAX_SLOPE = 32'h0002_0000;  // a, b, d, e: 2.0

  // ---- registers ----
  wire [FIRST_MAP+6*MAPS-1:0][31:0] args;
  wire [31:0] width = args[0];
  wire [31:0] height = args[1];
  wire [31:0] lines = args[2];
  wire [31:0] rows = args[3];
  wire [31:0] maps = args[4];
  wire [31:0] border = args[5];
  wire [57:0] source_line = 58'({args[7], args[6]} >> 6);
  wire [57:0] target_line = 58'({args[9], args[8]} >> 6);
  map_t [MAPS-1:0] map;
  logic refuse;
  function automatic logic beyond(input logic [31:0] x, input logic [31:0] limit);
    return (x[31] ? -x : x) > limit;
  endfunction
  always_comb begin
    refuse = width == '0 || width > MAX_SIDE || height == '0 || height > MAX_SIDE ||
        lines == '0 || lines > MAX_LINES || rows == '0 || rows > MAX_SIDE ||
        maps == '0 || maps > 32'(MAPS) || border > 32'd255 ||
        args[6][5:0] != '0 || args[8][5:0] != '0;
    for (int unsigned i = 0; i < MAPS; i++) begin
      map[i] = '{a: args[FIRST_MAP+6*i], b: args[FIRST_MAP+6*i+1], c: args[FIRST_MAP+6*i+2],
          d: args[FIRST_MAP+6*i+3], e: args[FIRST_MAP+6*i+4], f: args[FIRST_MAP+6*i+5]};
      if (i < maps && (beyond(map[i].a, MAX_SLOPE) || beyond(map[i].b, MAX_SLOPE) ||
          beyond(map[i].d, MAX_SLOPE) || beyond(map[i].e, MAX_SLOPE) ||
          beyond(map[i].c, MAX_SHIFT) || beyond(map[i].f, MAX_SHIFT))) refuse = 1'b1;
    end
  end
  wire start, busy, error, over;
  wire read_idle, read_fail, write_idle, write_fail;
  logic [31:0] cycles_q;

  shef_kit_regs #(.NArgs(FIRST_MAP + 6 * MAPS), .NResults(1)) u_regs (
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

  logic target_q;   // the command of the target is to be given
  wire target_ready;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cycles_q <= '0;
      target_q <= 1'b0;
    end else if (start) begin
      cycles_q <= '0;
      target_q <= 1'b1;
    end else begin
      if (busy) cycles_q <= cycles_q + 32'd1;
      if (target_ready || over) target_q <= 1'b0;
    end
  end

  // ---- groups, their tiles, their pixels ----
  wire group_valid, group_ready;
  wire group_t group;
  shef_affine_walk u_walk (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .width_i(width[9:0]),
    .height_i(height[9:0]),
    .lines_i(lines[3:0]),
    .rows_i(rows[9:0]),
    .maps_i(maps[2:0]),
    .map_i(map),
    .group_valid_o(group_valid),
    .group_ready_i(group_ready),
    .group_o(group)
  );
  wire tiles_cleared;
  wire tile_valid, tile_ready;
  wire [11:0] tile;
  wire beat_valid, beat_ready;
  wire [511:0] beat;
  wire taps_valid, taps_ready;
  wire [PIXELS-1:0][3:0][7:0] taps;
  wire [PIXELS-1:0][7:0] fx, fy;
  shef_affine_tiles u_tiles (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(tiles_cleared),
    .start_i(start),
    .pitch_i(7'((width[9:0] + 10'd7) >> 3)),
    .border_i(border[7:0]),
    .group_valid_i(group_valid),
    .group_ready_o(group_ready),
    .group_i(group),
    .cmd_valid_o(tile_valid),
    .cmd_ready_i(tile_ready),
    .cmd_tile_o(tile),
    .data_valid_i(beat_valid),
    .data_ready_o(beat_ready),
    .data_i(beat),
    .taps_valid_o(taps_valid),
    .taps_ready_i(taps_ready),
    .taps_o(taps),
    .fx_o(fx),
    .fy_o(fy)
  );
  wire line_valid, line_ready;
  wire [511:0] line;
  shef_affine_blend u_blend (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .taps_valid_i(taps_valid),
    .taps_ready_o(taps_ready),
    .taps_i(taps),
    .fx_i(fx),
    .fy_i(fy),
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
    .cmd_valid_i(tile_valid),
    .cmd_ready_o(tile_ready),
    .cmd_line_i(source_line + 58'(tile)),
    .cmd_beats_i(32'd1),
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
    .cmd_valid_i(target_q),
    .cmd_ready_o(target_ready),
    .cmd_line_i(target_line),
    .cmd_beats_i(32'(lines[3:0]) * 32'(rows[9:0]) * 32'(maps[2:0])),
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
  assign cleared_o = tiles_cleared && read_cleared && write_cleared;
  assign over = busy && !start && !target_q && write_idle && (!error || read_idle);
endmodule
`default_nettype wire
