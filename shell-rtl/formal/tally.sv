// shef_tally: it never reports room while the maximum number of lines is marked, if each new mark
// is announced one cycle ahead. When no mark is left, it reports room soon.
`default_nettype none
module tally (
    input wire       clk_i,
    input wire       rst_ni,
    input wire       up_i,
    input wire [3:0] line_i,     // line of the new mark
    input wire [8:0] keep_i
);
  localparam int unsigned N = 9;
  localparam int unsigned LIMIT = 3;
  logic [N-1:0] x, x_1, x_2;     // marks, now and in the last cycles
  logic room;
  shef_tally #(.N(N), .Limit(LIMIT)) dut (.clk_i, .rst_ni, .clr_i(1'b0), .x_i(x), .up_i,
      .room_o(room));

  function automatic logic [3:0] count(input logic [N-1:0] marks);
    logic [3:0] n;
    n = '0;
    for (int i = 0; i < int'(N); i++) n = n + 4'(marks[i]);
    return n;
  endfunction
  logic init = 1'b0;
  logic [2:0] quiet;             // cycles without marks
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    // no new mark without room
    if (up_i) assume (room);
    x <= rst_ni ? (x & keep_i) | (up_i ? 9'(32'd1 << line_i) : '0) : '0;
    x_1 <= rst_ni ? x : '0;
    x_2 <= rst_ni ? x_1 : '0;
    if (!rst_ni || up_i || x != '0) quiet <= '0;
    else if (quiet != '1) quiet <= quiet + 1'b1;
  end
  always_comb begin
    if (init && rst_ni) begin
      if (room) assert (count(x) < 4'(LIMIT));
      assert (count(x) <= 4'(LIMIT));
      if (quiet >= 3'd4) assert (room);
      // supporting invariants
      assert (dut.part_q[0] == count({1'b0, x_1[7:0]}) && dut.part_q[1] == {3'd0, x_1[8]} &&
          dut.count_q == {3'd0, count(x_2)});
      assert (count(x) <= count(x_2) + 4'(dut.up_q[0]) + 4'(dut.up_q[1]) &&
          count(x_1) <= count(x_2) + 4'(dut.up_q[1]));
      if (quiet >= 3'd1) assert (x == '0 && !dut.up_q[0]);
      if (quiet >= 3'd2) assert (x_1 == '0 && dut.up_q == '0);
      if (quiet >= 3'd3) assert (x_2 == '0);
    end
    cover (init && rst_ni && count(x) == 4'(LIMIT));
    cover (init && rst_ni && room && count(x) == 4'(LIMIT - 1) && up_i);
    cover (init && rst_ni && quiet == 3'd4 && x_2 == '0);
  end
endmodule
`default_nettype wire
