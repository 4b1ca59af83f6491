// Time-outs of a memory port: reports when memory owes a response for too long.
//
// Any owed response counts as progress, since the lines bound the number of owed responses.
// Responses of one kind come in order, but memory may serve the other kinds first for as long as
// the accelerator makes requests: so each kind has a longer separate time-out. Kinds are data, tags
// and, with HasTree, nodes.
//
// ar_*, w_*: a request waits, and is accepted. owed_*_i: responses of that kind are owed on R and
// on B; took_*_i: one arrived. late_o: a response is late; stays until reset. One cycle late.
`default_nettype none
module shef_watches #(
    parameter int unsigned Cycles = 4096,
    parameter bit HasTree = 1'b1
) (
    input  wire        clk_i,
    input  wire        rst_ni,
    input  wire        ar_wait_i,
    input  wire        ar_taken_i,
    input  wire        w_wait_i,
    input  wire        w_taken_i,
    input  wire  [2:0] owed_r_i,
    input  wire  [2:0] took_r_i,
    input  wire  [2:0] owed_b_i,
    input  wire  [2:0] took_b_i,
    output logic       late_o
);
  localparam int unsigned KINDS = HasTree ? 3 : 2;
  localparam int unsigned KIND_CYCLES = 16 * Cycles;
  logic [3:0] late_each;
  logic [1:0][KINDS-1:0] late_kind;

  shef_watch #(.Cycles(Cycles)) u_ar (.clk_i, .rst_ni, .wait_i(ar_wait_i), .progress_i(ar_taken_i),
      .late_o(late_each[0]));
  shef_watch #(.Cycles(Cycles)) u_r (.clk_i, .rst_ni, .wait_i(owed_r_i != '0),
      .progress_i(took_r_i != '0), .late_o(late_each[1]));
  shef_watch #(.Cycles(Cycles)) u_b (.clk_i, .rst_ni, .wait_i(owed_b_i != '0),
      .progress_i(took_b_i != '0), .late_o(late_each[2]));
  shef_watch #(.Cycles(Cycles)) u_w (.clk_i, .rst_ni, .wait_i(w_wait_i), .progress_i(w_taken_i),
      .late_o(late_each[3]));
  for (genvar k = 0; k < int'(KINDS); k++) begin : g_kind
    shef_watch #(.Cycles(KIND_CYCLES)) u_r (
        .clk_i, .rst_ni, .wait_i(owed_r_i[k]), .progress_i(took_r_i[k]), .late_o(late_kind[0][k]));
    shef_watch #(.Cycles(KIND_CYCLES)) u_b (
        .clk_i, .rst_ni, .wait_i(owed_b_i[k]), .progress_i(took_b_i[k]), .late_o(late_kind[1][k]));
  end
  assign late_o = late_each != '0 || late_kind != '0;
endmodule
`default_nettype wire
