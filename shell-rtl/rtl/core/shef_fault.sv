// Fault unit: records the first fault and the first refusal, counts all, and stops the whole
// Shield.
//
// fault_valid_i and refusal_valid_i are pulses, one per engine set. Of several in one cycle the
// lowest set's is recorded, and all are counted. stopped_o rises one cycle after the first stopping
// fault and stays. With OnFault = ON_FAULT_REGION a tag, node or bus fault of a region does not
// stop the Shield: its set freezes that region.
// internal_i is a level from a countermeasure inside the Shield (FAULT_INTERNAL, counted once).
// clear_i (a wipe or a new session) erases everything, except after a time-out: a port that timed
// out is not used again before reset, so that record stays until rst_ni. Counters saturate.
`default_nettype none
module shef_fault
  import shef_pkg::*;
#(
    parameter int unsigned NSets = 1,
    parameter on_fault_e OnFault = ON_FAULT_SHIELD
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic               clear_i,
    input  wire logic [NSets-1:0]   fault_valid_i,
    input  wire fault_t [NSets-1:0] fault_i,
    input  wire logic [NSets-1:0]   refusal_valid_i,
    input  wire refusal_t [NSets-1:0] refusal_i,
    input  wire logic               internal_i,
    output logic                    stopped_o,
    output fault_t                  fault_o,
    output logic [31:0]             fault_count_o,
    output refusal_t                refusal_o,
    output logic [31:0]             refusal_count_o
);
  logic faulted_q, stopped_q, internal_q, timeout_q, internal_rise, refused_q, stops, timeout;
  fault_t fault_q, fault_new;
  refusal_t refusal_q, refusal_new;
  logic [31:0] fault_count_q, refusal_count_q;
  logic [2:0] faults, refusals;

  assign stopped_o = stopped_q;
  assign fault_o = fault_q;
  assign fault_count_o = fault_count_q;
  assign refusal_o = refusal_q;
  assign refusal_count_o = refusal_count_q;

  assign internal_rise = internal_i && !internal_q;

  function automatic logic of_region(input fault_kind_e kind, input logic [7:0] region);
    return region != 8'hff && (kind == FAULT_TAG || kind == FAULT_NODE || kind == FAULT_BUS);
  endfunction

  always_comb begin
    faults = 3'(internal_rise);
    refusals = '0;
    stops = internal_rise;
    timeout = 1'b0;
    fault_new = '0;
    fault_new.kind = FAULT_INTERNAL;
    fault_new.region = 8'hff;
    refusal_new = '0;
    for (int s = int'(NSets) - 1; s >= 0; s--) begin
      if (fault_valid_i[s]) begin
        faults = faults + 1'b1;
        fault_new = fault_i[s];
        if (fault_i[s].kind == FAULT_TIMEOUT) timeout = 1'b1;
        if (OnFault != ON_FAULT_REGION || !of_region(fault_i[s].kind, fault_i[s].region))
          stops = 1'b1;
      end
      if (refusal_valid_i[s]) begin
        refusals = refusals + 1'b1;
        refusal_new = refusal_i[s];
      end
    end
  end

  function automatic logic [31:0] add(input logic [31:0] a, input logic [2:0] n);
    logic [32:0] sum;
    sum = {1'b0, a} + 33'(n);
    return sum[32] ? '1 : sum[31:0];
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      faulted_q <= 1'b0;
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
      if (timeout) timeout_q <= 1'b1;
      if (clear_i) begin
        if (!timeout_q) begin
          faulted_q <= 1'b0;
          stopped_q <= 1'b0;
          fault_q <= '0;
          fault_count_q <= '0;
        end
        refused_q <= 1'b0;
        refusal_q <= '0;
        refusal_count_q <= '0;
      end
      if (faults != '0) begin
        faulted_q <= 1'b1;
        if (stops) stopped_q <= 1'b1;
        if (!faulted_q || (clear_i && !timeout_q)) fault_q <= fault_new;
        fault_count_q <= add(fault_count_q, faults);
      end
      if (refusals != '0 && !clear_i) begin
        refused_q <= 1'b1;
        if (!refused_q) refusal_q <= refusal_new;
        refusal_count_q <= add(refusal_count_q, refusals);
      end
    end
  end

endmodule
`default_nettype wire
