// shef_fault: the first fault is kept. A fault stops the Shield from the next cycle until it is
// cleared, and only a reset clears a time-out. The same for the first refusal. Each one is counted,
// however many come in a cycle, and only a clear lowers the counts. Two sets.
`default_nettype none
module fault
  import shef_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire           clear_i,
    input wire [1:0]     fault_valid_i,
    input wire fault_t   fault0_i,
    input wire fault_t   fault1_i,
    input wire [1:0]     refusal_valid_i,
    input wire refusal_t refusal0_i,
    input wire refusal_t refusal1_i,
    input wire           internal_i
);
  logic stopped;
  fault_t kept;
  refusal_t refusal;
  logic [31:0] faults, refusals;
  shef_fault #(.NSets(2)) dut (
      .clk_i, .rst_ni, .clear_i, .fault_valid_i, .fault_i({fault1_i, fault0_i}), .refusal_valid_i,
      .refusal_i({refusal1_i, refusal0_i}),
      .internal_i,
      .stopped_o(stopped), .fault_o(kept), .fault_count_o(faults), .refusal_o(refusal),
      .refusal_count_o(refusals)
  );

  function automatic logic [32:0] sum(input logic [31:0] count, input logic [2:0] more);
    logic [32:0] x;
    x = {1'b0, count} + 33'(more);
    return x[32] ? 33'hffff_ffff : x;
  endfunction

  logic init = 1'b0;
  logic stopped_q, timeout_q, clear_q, event_q, internal_q, refused_q;
  fault_t kept_q, first_q;
  refusal_t refusal_q, refused_first_q;
  logic [2:0] more_faults_q, more_refusals_q;   // of the cycle before
  logic [31:0] faults_q, refusals_q;
  logic hit, live;
  assign hit = fault_valid_i != '0 || (internal_i && !internal_q);
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    internal_q <= rst_ni && internal_i;
    stopped_q <= rst_ni && stopped;
    kept_q <= kept;
    refusal_q <= refusal;
    faults_q <= faults;
    refusals_q <= refusals;
    clear_q <= clear_i;
    event_q <= rst_ni && hit;
    refused_q <= rst_ni && refusals != '0;
    first_q <= fault_valid_i[0] ? fault0_i : fault1_i;
    refused_first_q <= refusal_valid_i[0] ? refusal0_i : refusal1_i;
    more_faults_q <= 3'(fault_valid_i[0]) + 3'(fault_valid_i[1]) + 3'(internal_i && !internal_q);
    more_refusals_q <= 3'(refusal_valid_i[0]) + 3'(refusal_valid_i[1]);
    live <= rst_ni;
    if (fault_valid_i == '0)
      first_q <= '{kind: FAULT_INTERNAL, region: 8'hff, chunk: '0, version: '0};
    if (!rst_ni) timeout_q <= 1'b0;
    else if ((fault_valid_i[0] && fault0_i.kind == FAULT_TIMEOUT) ||
        (fault_valid_i[1] && fault1_i.kind == FAULT_TIMEOUT)) timeout_q <= 1'b1;
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (dut.timeout_q == timeout_q && dut.internal_q == internal_q);
      assert (dut.faulted_q == stopped);
      // not the reverse: a saturated count may be cleared and hit in the same cycle
      if (faults != '0) assert (stopped);
      assert (dut.refused_q == (refusals != '0));
      if (timeout_q) assert (stopped);
      if (event_q) assert (stopped);
      if (stopped_q && !clear_q) assert (stopped && kept == kept_q && faults >= faults_q);
      if (timeout_q && stopped_q && !event_q) assert (stopped && kept == kept_q);
      if (event_q && !stopped_q) assert (kept == first_q);
      if (refused_q && !clear_q) assert (refusal == refusal_q && refusals >= refusals_q);
      if (live && !refused_q && !clear_q && more_refusals_q != '0)
        assert (refusal == refused_first_q);
      if (live && !clear_q) begin
        assert ({1'b0, refusals} == sum(refusals_q, more_refusals_q));
        assert ({1'b0, faults} == sum(faults_q, more_faults_q));
      end
    end
    cover (init && rst_ni && stopped && faults == 32'd2 && kept.kind == FAULT_TAG);
    cover (init && rst_ni && stopped_q && !stopped);
    cover (init && rst_ni && timeout_q && clear_q && stopped);
    cover (init && rst_ni && refusals == 32'd2);
  end
endmodule
`default_nettype wire
