// Fault unit: keeps the first fault and the first refusal, counts both, and stops the whole Shield.
//
// fault_valid_i and refusal_valid_i are pulses. stopped_o rises one cycle after the first fault and stays.
// internal_i is a level from a countermeasure inside the Shield (FAULT_INTERNAL, counted once).
// clear_i (a wipe or a new session) forgets everything, except after a time-out: a port that timed out is not used again
// before reset, so that record stays until rst_ni. Counters stop at their largest value.
`default_nettype none
module shef_fault (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic               clear_i,
    input  wire logic               fault_valid_i,
    input  wire shef_pkg::fault_t   fault_i,
    input  wire logic               refusal_valid_i,
    input  wire shef_pkg::refusal_t refusal_i,
    input  wire logic               internal_i,
    output logic                    stopped_o,
    output shef_pkg::fault_t        fault_o,
    output logic [31:0]             fault_count_o,
    output shef_pkg::refusal_t      refusal_o,
    output logic [31:0]             refusal_count_o
);
  import shef_pkg::*;

  logic stopped_q, internal_q, timeout_q, internal_rise, refused_q;
  fault_t fault_q, fault_new;
  refusal_t refusal_q;
  logic [31:0] fault_count_q, refusal_count_q;

  assign stopped_o = stopped_q;
  assign fault_o = fault_q;
  assign fault_count_o = fault_count_q;
  assign refusal_o = refusal_q;
  assign refusal_count_o = refusal_count_q;

  assign internal_rise = internal_i && !internal_q;

  always_comb begin
    fault_new = fault_i;
    if (!fault_valid_i) begin
      fault_new = '0;
      fault_new.kind = FAULT_INTERNAL;
      fault_new.region = 8'hff;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stopped_q <= 1'b0;
      internal_q <= 1'b0;
      timeout_q <= 1'b0;
      refused_q <= 1'b0;
      fault_q <= '0;
      refusal_q <= '0;
      fault_count_q <= '0;
      refusal_count_q <= '0;
    end else begin
      internal_q <= internal_i;
      if (fault_valid_i && fault_i.kind == FAULT_TIMEOUT) timeout_q <= 1'b1;
      if (clear_i) begin
        if (!timeout_q) begin
          stopped_q <= 1'b0;
          fault_q <= '0;
          fault_count_q <= '0;
        end
        refused_q <= 1'b0;
        refusal_q <= '0;
        refusal_count_q <= '0;
      end
      if (fault_valid_i || internal_rise) begin
        stopped_q <= 1'b1;
        if (!stopped_q) fault_q <= fault_new;
        if (fault_count_q != 32'hffff_ffff) fault_count_q <= fault_count_q + 32'd1;
      end
      if (refusal_valid_i && !clear_i) begin
        refused_q <= 1'b1;
        if (!refused_q) refusal_q <= refusal_i;
        if (refusal_count_q != 32'hffff_ffff) refusal_count_q <= refusal_count_q + 32'd1;
      end
    end
  end

endmodule
`default_nettype wire
