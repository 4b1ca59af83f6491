// Ids of AXI for a port with fewer of them: each wide id that has bursts in flight has one narrow
// id, so that the order within an id is kept.
//
// ask_*: a burst asks for the narrow id of its wide id (combinational; ask_ready_o: there is one),
// and takes it (ask_take_i). done_*: the wide id of a narrow one, and the end of its oldest burst
// (done_take_i). At most 2^CountBits - 1 bursts of an id are in flight.
`default_nettype none
module shef_f2_ids #(
    parameter int unsigned WideBits = 8,
    parameter int unsigned NarrowBits = 6,
    parameter int unsigned CountBits = 8
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic [WideBits-1:0] ask_i,
    input  wire logic                ask_take_i,
    output logic                     ask_ready_o,
    output logic [NarrowBits-1:0]    ask_o,
    input  wire logic [NarrowBits-1:0] done_i,
    input  wire logic                done_take_i,
    output logic [WideBits-1:0]      done_o
);
  localparam int unsigned N = 1 << NarrowBits;
  typedef logic [NarrowBits-1:0] narrow_t;

  logic [N-1:0][WideBits-1:0] wide_q;
  logic [N-1:0][CountBits-1:0] count_q;  // bursts in flight
  logic known, free;
  narrow_t known_at, free_at;
  always_comb begin
    known = 1'b0;
    free = 1'b0;
    known_at = '0;
    free_at = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (count_q[i] != '0 && wide_q[i] == ask_i) begin
        known = 1'b1;
        known_at = known_at | narrow_t'(i);
      end
      if (count_q[i] == '0) begin
        free = 1'b1;
        free_at = narrow_t'(i);
      end
    end
  end
  assign ask_o = known ? known_at : free_at;
  assign ask_ready_o = known ? count_q[known_at] != '1 : free;
  assign done_o = wide_q[done_i];

  wire take = ask_take_i && ask_ready_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wide_q <= '0;
      count_q <= '0;
    end else begin
      if (take) wide_q[ask_o] <= ask_i;
      for (int unsigned i = 0; i < N; i++) begin
        if ((take && ask_o == narrow_t'(i)) !=
            (done_take_i && done_i == narrow_t'(i) && count_q[i] != '0))
          count_q[i] <= take && ask_o == narrow_t'(i) ? count_q[i] + 1'b1 : count_q[i] - 1'b1;
      end
    end
  end
endmodule
`default_nettype wire
