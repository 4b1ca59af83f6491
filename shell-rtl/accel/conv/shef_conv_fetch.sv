// Reads of the convolution: all weights once, and the rows of the images one after the other.
//
// Commands go to a shef_kit_read, whose beats come back in their order: three rows, the weights (a
// command for each group of 32 filters), and the other rows as they find room.
//
// Memories: the weights of a group at {group, weight of a filter}, 32 filters a word; 8 rows of
// the images, a row r at {r mod 8, line of the row}. rows_o and groups_o count what has arrived
// since the start, rows_used_i the rows that may be overwritten. Reads take one cycle.
`default_nettype none
module shef_conv_fetch (
  input  wire           clk_i,
  input  wire           rst_ni,
  input  wire           clear_i,
  output wire           cleared_o,
  input  wire           start_i,
  input  wire           stop_i,        // no more commands

  input  wire  [  10:0] images_i,
  input  wire  [   4:0] height_i,
  input  wire  [   4:0] width_i,
  input  wire  [   2:0] depth_i,       // lines of channels in a pixel
  input  wire  [   3:0] groups_i,      // of 32 filters
  input  wire  [  57:0] image_line_i,
  input  wire  [  57:0] weight_line_i,

  output wire           cmd_valid_o,
  input  wire           cmd_ready_i,
  output wire  [  57:0] cmd_line_o,
  output wire  [  31:0] cmd_beats_o,
  input  wire           beat_valid_i,
  output wire           beat_ready_o,
  input  wire  [ 511:0] beat_i,

  output logic [  15:0] rows_o,
  output logic [   3:0] groups_o,
  input  wire  [  15:0] rows_used_i,
  input  wire  [  10:0] pixel_addr_i,
  output logic [ 511:0] pixel_o,
  input  wire           weight_read_i,
  input  wire  [   2:0] weight_group_i,
  input  wire  [  11:0] weight_addr_i,
  output wire  [1023:0] weight_o       // of the group of the last read
);
  localparam int unsigned WEIGHTS = 25 * 96;  // of a filter

  // ---- commands ----
  logic rows_done_q;
  logic [10:0] image_q;
  logic [4:0] row_q;                          // of the image
  logic [15:0] rows_asked_q;
  logic [3:0] groups_asked_q;
  logic [57:0] row_line_q, weight_line_q;
  wire [7:0] row_beats = 8'(width_i) * 8'(depth_i);
  wire [12:0] group_beats = 13'(depth_i) * 13'd800;  // 5 * 5 * 16 weights, 2 lines each
  wire early = rows_asked_q < 16'd3;
  wire groups_done = groups_asked_q == groups_i;
  wire row_can = !rows_done_q && rows_asked_q - rows_used_i < 16'd8 && (early || groups_done);
  wire group_can = !groups_done && (!early || rows_done_q);
  wire tag_ready;
  wire take = cmd_valid_o && cmd_ready_i;
  wire image_end = row_q == height_i - 1'b1;
  assign cmd_valid_o = (row_can || group_can) && tag_ready && !stop_i;
  assign cmd_line_o = row_can ? row_line_q : weight_line_q;
  assign cmd_beats_o = row_can ? 32'(row_beats) : 32'(group_beats);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      rows_done_q <= !rst_ni;
      {image_q, row_q, rows_asked_q, groups_asked_q} <= '0;
      row_line_q <= rst_ni ? image_line_i : '0;
      weight_line_q <= rst_ni ? weight_line_i : '0;
    end else if (take && row_can) begin
      rows_asked_q <= rows_asked_q + 1'b1;
      row_line_q <= row_line_q + 58'(row_beats);
      row_q <= image_end ? '0 : row_q + 1'b1;
      if (image_end) begin
        image_q <= image_q + 1'b1;
        rows_done_q <= image_q == images_i - 1'b1;
      end
    end else if (take) begin
      groups_asked_q <= groups_asked_q + 1'b1;
      weight_line_q <= weight_line_q + 58'(group_beats);
    end
  end

  // ---- what the beats belong to ----
  wire tag_valid, tag_row;
  wire [12:0] tag_beats;
  logic [12:0] beat_q;                        // beats of the command that have arrived
  wire beat = beat_valid_i && beat_ready_o;
  wire cmd_end = beat_q == tag_beats - 1'b1;
  assign beat_ready_o = tag_valid;
  logic [11:0] sweep;
  wire [4:0] tags;

  shef_fifo #(.W(14), .Depth(16)) u_tags (
    .clk_i,
    .rst_ni,
    .clr_i(clear_i || start_i),
    .zero_addr_i(sweep[3:0]),
    .in_valid_i(take),
    .in_ready_o(tag_ready),
    .in_data_i({row_can, cmd_beats_o[12:0]}),
    .out_valid_o(tag_valid),
    .out_ready_i(beat && cmd_end),
    .out_data_o({tag_row, tag_beats}),
    .count_o(tags)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) {beat_q, rows_o, groups_o} <= '0;
    else if (beat) begin
      beat_q <= cmd_end ? '0 : beat_q + 1'b1;
      if (cmd_end && tag_row) rows_o <= rows_o + 1'b1;
      if (cmd_end && !tag_row) groups_o <= groups_o + 1'b1;
    end
  end

  // ---- memories ----
  shef_sweep #(.Words(WEIGHTS)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);

  logic [511:0] rows_mem[2048];
  always_ff @(posedge clk_i) begin
    if (clear_i) rows_mem[sweep[10:0]] <= '0;
    else if (beat && tag_row) rows_mem[{rows_o[2:0], beat_q[7:0]}] <= beat_i;
    if (!rst_ni) pixel_o <= '0;
    else pixel_o <= rows_mem[pixel_addr_i];
  end

  logic [2:0] group_q;
  wire [7:0][1023:0] words;
  for (genvar i = 0; i < 8; i++) begin : g_group
    logic [511:0] low_mem[WEIGHTS], high_mem[WEIGHTS];
    logic [1023:0] word_q;
    wire write = beat && !tag_row && groups_o[2:0] == 3'(i);
    assign words[i] = word_q;
    always_ff @(posedge clk_i) begin
      if (clear_i) low_mem[sweep] <= '0;
      else if (write && !beat_q[0]) low_mem[beat_q[12:1]] <= beat_i;
      if (clear_i) high_mem[sweep] <= '0;
      else if (write && beat_q[0]) high_mem[beat_q[12:1]] <= beat_i;
      if (!rst_ni) word_q <= '0;
      else if (weight_read_i && weight_group_i == 3'(i)) begin
        word_q <= {high_mem[weight_addr_i], low_mem[weight_addr_i]};
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) group_q <= '0;
    else if (weight_read_i) group_q <= weight_group_i;
  end
  assign weight_o = words[group_q];

  wire unused = &{1'b0, tags, cmd_beats_o[31:13]};
endmodule
`default_nettype wire
