// Sums of the convolution on their way to memory: a row of up to 27 pixels by 256 filters.
//
// Sums of 32 filters arrive at sum_*, 27 pixels for each group of filters. When all groups are
// there, the pixels that exist go to a shef_kit_write, with one command. done_o: the commands of
// all rows are given.
`default_nettype none
module shef_conv_store (
  input  wire           clk_i,
  input  wire           rst_ni,
  input  wire           clear_i,
  output wire           cleared_o,
  input  wire           start_i,
  output logic          done_o,

  input  wire  [  10:0] images_i,
  input  wire  [   4:0] height_i,
  input  wire  [   4:0] width_i,
  input  wire  [   3:0] groups_i,
  input  wire  [  57:0] line_i,     // of the output

  input  wire           sum_valid_i,
  output wire           sum_ready_o,
  input  wire  [1023:0] sum_i,

  output wire           cmd_valid_o,
  input  wire           cmd_ready_i,
  output wire  [  57:0] cmd_line_o,
  output wire  [  31:0] cmd_beats_o,
  output wire           data_valid_o,
  input  wire           data_ready_i,
  output wire  [ 511:0] data_o
);
  logic [1023:0] mem[256];         // at {pixel, group}
  logic [1023:0] data_q;
  logic high_q;                    // of the two lines in data_q
  logic [10:0] image_q;
  logic [4:0] row_q;
  logic [57:0] line_q;
  logic [4:0] in_x_q, out_x_q;
  logic [2:0] in_group_q, out_group_q;
  logic reading_q, asking_q;       // data and the command of the row are left
  logic data_valid_q;

  wire [2:0] last_group = 3'(groups_i - 1'b1);
  wire [9:0] beats = {9'(width_i) * 9'(groups_i), 1'b0};
  wire in_end = in_group_q == last_group;
  wire out_end = out_group_q == last_group;
  wire sum = sum_valid_i && sum_ready_o;
  wire read = reading_q && (!data_valid_q || data_ready_i && high_q);
  wire read_end = read && out_end && out_x_q == width_i - 1'b1;
  wire cmd = cmd_valid_o && cmd_ready_i;
  // The data and the command of the row leave independently.
  wire row_end = (reading_q || asking_q) && (!reading_q || read_end) && (!asking_q || cmd);
  wire image_end = row_q == height_i - 1'b1;
  assign sum_ready_o = !reading_q && !asking_q && !done_o;
  assign cmd_valid_o = asking_q;
  assign cmd_line_o = line_q;
  assign cmd_beats_o = 32'(beats);
  assign data_valid_o = data_valid_q;
  assign data_o = high_q ? data_q[1023:512] : data_q[511:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      {image_q, row_q, in_x_q, in_group_q, out_x_q, out_group_q} <= '0;
      {reading_q, asking_q, data_valid_q, high_q} <= '0;
      done_o <= !rst_ni;
      line_q <= rst_ni ? line_i : '0;
    end else begin
      if (sum) begin
        in_x_q <= in_x_q == 5'd26 ? '0 : in_x_q + 1'b1;
        if (in_x_q == 5'd26) begin
          in_group_q <= in_end ? '0 : in_group_q + 1'b1;
          {reading_q, asking_q} <= {2{in_end}};
        end
      end
      if (data_valid_q && data_ready_i) high_q <= !high_q;
      if (read) begin
        data_valid_q <= 1'b1;
        out_group_q <= out_end ? '0 : out_group_q + 1'b1;
        if (out_end) out_x_q <= read_end ? '0 : out_x_q + 1'b1;
        if (read_end) reading_q <= 1'b0;
      end else if (data_ready_i && high_q) data_valid_q <= 1'b0;
      if (cmd) begin
        asking_q <= 1'b0;
        line_q <= line_q + 58'(beats);
      end
      if (row_end) begin
        row_q <= image_end ? '0 : row_q + 1'b1;
        if (image_end) begin
          image_q <= image_q + 1'b1;
          done_o <= image_q == images_i - 1'b1;
        end
      end
    end
  end

  logic [7:0] sweep;
  shef_sweep #(.Words(256)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o);
  always_ff @(posedge clk_i) begin
    if (clear_i) mem[sweep] <= '0;
    else if (sum) mem[{in_x_q, in_group_q}] <= sum_i;
    if (!rst_ni) data_q <= '0;
    else if (read) data_q <= mem[{out_x_q, out_group_q}];
  end
endmodule
`default_nettype wire
