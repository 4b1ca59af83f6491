// Compares the number of marked lines with a limit: room_o reports that fewer than Limit are
// marked, including new marks that the count has not seen.
//
// up_i (one more is marked now) is added at once, until the count has seen it; a release shows
// three cycles later. So room_o is never high when there is no room.
`default_nettype none
module shef_tally #(
    parameter int unsigned N = 40,
    parameter int unsigned Limit = 30
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         clr_i,
    input  wire [N-1:0] x_i,
    input  wire         up_i,      // x_i has one more in the next cycle
    output logic        room_o
);
  localparam int unsigned G = 8;
  localparam int unsigned PARTS = (N + G - 1) / G;
  typedef logic [6:0] count_t;

  logic [3:0] part_q[PARTS];
  count_t count, count_q;
  logic [1:0] up_q;        // marked one and two cycles ago
  count_t seen;

  assign seen = count_q + count_t'(up_q[0]) + count_t'(up_q[1]);
  always_comb begin
    count = '0;
    for (int unsigned p = 0; p < PARTS; p++) count = count + count_t'(part_q[p]);
  end

  for (genvar p = 0; p < PARTS; p++) begin : g_part
    localparam int unsigned W = (p + 1 == PARTS) ? N - p * G : G;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) part_q[p] <= '0;
      else part_q[p] <= 4'($countones(x_i[p*G+:W]));
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      count_q <= '0;
      up_q <= '0;
      room_o <= 1'b0;
    end else begin
      count_q <= count;
      up_q <= {up_q[0], up_i};
      room_o <= up_i ? seen < count_t'((Limit > 0) ? Limit - 1 : 0) : seen < count_t'(Limit);
    end
  end
endmodule
`default_nettype wire
