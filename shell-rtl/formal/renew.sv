// shef_renew: a session begins and ends with a wipe, which ends when everything is clear, the
// accelerator has cleared its memories and its ports owe nothing. It reports failure if the
// accelerator did not do so in time. Faults are erased at a start only. A limit of 5 cycles.
`default_nettype none
module renew (
    input wire clk_i,
    input wire rst_ni,
    input wire full_i,
    input wire begin_i,
    input wire end_i,
    input wire ctrl_wiped_i,
    input wire set_wiped_i,
    input wire quiet_i,
    input wire cleared_i
);
  logic wipe, fault_clear, done, failed, clear_done, acc_clear;
  shef_renew #(.LimitCycles(5)) dut (
      .clk_i, .rst_ni, .full_i, .begin_i, .end_i, .wipe_o(wipe), .fault_clear_o(fault_clear),
      .done_o(done), .failed_o(failed), .clear_done_o(clear_done), .ctrl_wiped_i, .set_wiped_i,
      .quiet_i, .acc_clear_o(acc_clear), .cleared_i
  );

  logic init = 1'b0;
  logic begun, asked;      // the wipe is that of a start; a wipe is due
  logic [2:0] cleaning;    // cycles of an unfinished clear of the accelerator
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni) begin
      begun <= 1'b0;
      asked <= 1'b0;
    end else if (full_i || done) asked <= 1'b0;
    else if (!asked && (begin_i || end_i)) begin
      asked <= 1'b1;
      begun <= begin_i;
    end
    if (!rst_ni || !acc_clear || (cleared_i && quiet_i)) cleaning <= '0;
    else if (cleaning != 3'd5) cleaning <= cleaning + 3'd1;
  end
  always_comb begin
    if (init && rst_ni) begin
      if (done) assert (wipe && ctrl_wiped_i && set_wiped_i && acc_clear);
      if (done && !failed) assert (cleared_i && quiet_i);
      if (clear_done) assert (acc_clear && ((cleared_i && quiet_i) || cleaning == 3'd5));
      if (acc_clear && cleared_i && quiet_i) assert (clear_done);
      if (fault_clear) assert (wipe && begun);
      if (wipe) assert (asked);
      // supporting invariants
      assert (asked == (dut.state_q != 2'd0));
      assert (dut.state_q != 2'd3);
      if (asked) assert (dut.begins_q == begun);
      if (dut.state_q == 2'd1) assert (begun);
      if (acc_clear) assert (dut.timer_q == cleaning && dut.state_q != 2'd1);
      assert (dut.timer_q <= 3'd5);
    end
    cover (init && rst_ni && done && !failed && begun);
    cover (init && rst_ni && done && failed && !begun);
    cover (init && rst_ni && wipe && acc_clear && cleared_i && !quiet_i);
  end
endmodule
`default_nettype wire
