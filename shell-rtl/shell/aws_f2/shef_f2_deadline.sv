// Deadline of accesses that are answered in order: late_o tells when the oldest one can no longer
// wait.
//
// push_i, pop_i: an access begins, the oldest one ends. work_i: cycles that all open ones need if
// nothing makes them wait. late_o (level, from a flip-flop, low in the cycle after a pop): the age
// of the oldest one and work_i reach Cycles, less a margin. If from then on one unit of work is
// done in each cycle, every access ends within Cycles cycles of its push, unless work_i was more
// than Cycles at its push.
// Ages are counted in steps of Step cycles, and stop at the highest value.
`default_nettype none
module shef_f2_deadline #(
    parameter int unsigned Open = 32,
    parameter int unsigned Cycles = 1250,
    parameter int unsigned Step = 32,    // power of two
    parameter int unsigned WorkBits = 14
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic push_i,
    input  wire logic pop_i,
    input  wire logic [WorkBits-1:0] work_i,
    output logic      late_o
);
  localparam int unsigned OW = $clog2(Open);
  localparam int unsigned SW = $clog2(Step);
  localparam int unsigned AW = $clog2(Cycles / Step + 2);
  localparam int unsigned SumBits = (WorkBits > AW + SW ? WorkBits : AW + SW) + 1;
  // An age is behind by less than a step, and late_o by a cycle.
  localparam int unsigned Limit = Cycles - Step - 4;

  logic [Open-1:0][AW-1:0] age_q;
  logic [OW-1:0] put_q, take_q;
  logic [SW-1:0] step_q;
  logic any, late_q;
  logic [OW:0] count_q;
  assign any = count_q != '0;
  wire [SumBits-1:0] due = SumBits'({age_q[take_q], SW'(0)}) + SumBits'(work_i);
  assign late_o = late_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      age_q <= '0;
      put_q <= '0;
      take_q <= '0;
      step_q <= '0;
      count_q <= '0;
      late_q <= 1'b0;
    end else begin
      step_q <= step_q + 1'b1;
      for (int unsigned i = 0; i < Open; i++)
        if (step_q == '1 && age_q[i] != '1) age_q[i] <= age_q[i] + 1'b1;
      if (push_i) begin
        age_q[put_q] <= '0;
        put_q <= put_q + 1'b1;
      end
      if (pop_i) take_q <= take_q + 1'b1;
      if (push_i != pop_i) count_q <= push_i ? count_q + 1'b1 : count_q - 1'b1;
      late_q <= any && !pop_i && due >= SumBits'(Limit);
    end
  end
endmodule
`default_nettype wire
