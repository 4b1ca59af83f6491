// Bilinear interpolation of groups of four pixels, collected to lines of 64 pixels.
//
// value = (ul * (256-fx) * (256-fy) + ur * fx * (256-fy) + ll * (256-fx) * fy + lr * fx * fy +
// 2^15) / 2^16. Handshake: taps_* and line_* valid/ready, one group a cycle; a line follows its
// last group by three cycles. start_i drops what is in flight.
`default_nettype none
module shef_affine_blend
  import shef_affine_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          start_i,

    input  wire          taps_valid_i,
    output wire          taps_ready_o,
    input  wire [PIXELS-1:0][3:0][7:0] taps_i,
    input  wire [PIXELS-1:0][7:0] fx_i,
    input  wire [PIXELS-1:0][7:0] fy_i,

    output wire          line_valid_o,
    input  wire          line_ready_i,
    output wire  [511:0] line_o
);
  localparam int unsigned GROUPS = 64 / PIXELS;
  logic rows_valid_q, pixels_valid_q, line_valid_q;
  logic [PIXELS-1:0][15:0] upper_q, lower_q;  // between left and right, in 1/256
  logic [PIXELS-1:0][7:0] fy_q, pixels_q;
  logic [511:0] line_q;
  logic [3:0] at_q;
  wire go = !line_valid_q || line_ready_i;

  function automatic logic [15:0] across(input logic [7:0] left, input logic [7:0] right,
                                         input logic [7:0] f);
    return 16'(left) * (16'd256 - 16'(f)) + 16'(right) * 16'(f);
  endfunction
  function automatic logic [7:0] down(input logic [15:0] upper, input logic [15:0] lower,
                                      input logic [7:0] f);
    return 8'((24'(upper) * (24'd256 - 24'(f)) + 24'(lower) * 24'(f) + 24'h8000) >> 16);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {rows_valid_q, pixels_valid_q, line_valid_q} <= '0;
      {upper_q, lower_q, fy_q, pixels_q, line_q, at_q} <= '0;
    end else if (start_i) begin
      {rows_valid_q, pixels_valid_q, line_valid_q} <= '0;
      at_q <= '0;
    end else if (go) begin
      rows_valid_q <= taps_valid_i;
      pixels_valid_q <= rows_valid_q;
      for (int k = 0; k < int'(PIXELS); k++) begin
        upper_q[k] <= across(taps_i[k][0], taps_i[k][1], fx_i[k]);
        lower_q[k] <= across(taps_i[k][2], taps_i[k][3], fx_i[k]);
        fy_q[k] <= fy_i[k];
        pixels_q[k] <= down(upper_q[k], lower_q[k], fy_q[k]);
      end
      line_valid_q <= pixels_valid_q && at_q == 4'(GROUPS - 1);
      if (pixels_valid_q) begin
        at_q <= at_q + 4'd1;
        line_q <= {pixels_q, line_q[511:8*PIXELS]};
      end
    end
  end
  assign taps_ready_o = go;
  assign line_valid_o = line_valid_q;
  assign line_o = line_q;
endmodule
`default_nettype wire
