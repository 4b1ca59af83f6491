// shef_f2_life against any clock, core, shell and host: the core runs without a request to wipe
// only after a start, which follows a wipe that was acknowledged or has run out of time, and a
// reset. It leaves reset only when no burst is open outside, and is in reset in the cycle after its
// clock is gone. A function-level reset is acknowledged once, and only in reset: after the wipe,
// or, if there can be none, after its bound; always within a bound, and within that of a wipe if
// the clock stays and no burst stays open. The medium is open only while the core is in reset and
// wiped, with no burst open. The memory controller is reset when the core did not end its wipe.
`default_nettype none
module f2_life (
    input wire clk_i,
    input wire rst_ni,
    input wire locked_i,
    input wire start_i,
    input wire reset_i,
    input wire flr_i,
    input wire power_off_i,
    input wire wiped_i,
    input wire quiet_i
);
  localparam int unsigned Wipe = 6, Flr = 7, Drain = 3, Hold = 2;
  localparam int unsigned Bound = Flr + Wipe + Drain + 2 * Hold + 9;
  localparam logic [2:0] LOCK = 3'd0, WIPE = 3'd1, DRAIN = 3'd2, HELD = 3'd3, RUN = 3'd4;  // of the dut
  logic flr_done, run, memory_run, wipe_req, running, held, wiping, unlocked;
  logic [31:0] cycles;
  shef_f2_life #(
      .WipeCycles(Wipe), .FlrCycles(Flr), .DrainCycles(Drain), .HoldCycles(Hold)
  ) dut (
      .clk_i, .rst_ni, .locked_i, .start_i, .reset_i, .flr_i, .flr_done_o(flr_done), .power_off_i,
      .wiped_i, .quiet_i, .run_o(run), .memory_run_o(memory_run), .wipe_req_o(wipe_req),
      .running_o(running), .held_o(held), .wiping_o(wiping), .unlocked_o(unlocked),
      .cycles_o(cycles)
  );

  logic init = 1'b0, past = 1'b0;
  logic locked_q, run_q, wipe_req_q, start_q, flr_q, pending_q, memory_q, memory_before_q, quiet_q;
  logic clean;           // wiped, or out of time, and not run since without a request to wipe
  logic unended;         // it ran out of time, and the memory was not reset since
  logic [5:0] waits;     // cycles of a reset without acknowledgement, with a clock and no open burst
  logic [3:0] wiping_q;  // cycles of the request with the core running
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    past <= init && rst_ni;
    if (!init) assume (!rst_ni);
    locked_q <= locked_i;
    run_q <= run;
    wipe_req_q <= wipe_req;
    start_q <= start_i;
    quiet_q <= quiet_i;
    flr_q <= rst_ni && flr_i;
    memory_q <= memory_run;
    memory_before_q <= memory_q;
    if (!rst_ni) begin
      clean <= 1'b0;
      unended <= 1'b0;
      pending_q <= 1'b0;
      waits <= '0;
      wiping_q <= '0;
    end else begin
      wiping_q <= run && wipe_req ? wiping_q + 4'(wiping_q != '1) : '0;
      if (run && !wipe_req) clean <= 1'b0;
      else if (run && wipe_req && locked_i && (wiped_i || wiping_q >= 4'(Wipe))) clean <= 1'b1;
      if (!memory_run) unended <= 1'b0;
      else if (run && wipe_req && locked_i && wiping_q == 4'(Wipe) && !wiped_i &&
          !clean) unended <= 1'b1;
      if (flr_i && !flr_q) pending_q <= 1'b1;
      else if (flr_done) pending_q <= 1'b0;
      waits <= pending_q && locked_i && (quiet_i || dut.state_q != LOCK) && !flr_done ?
          waits + 6'(waits != '1) : '0;
    end
  end

  wire [31:0] held_for = dut.timer_q > Hold ? Hold : dut.timer_q;

  // The acknowledgement of the last wipe is gone when the next begins.
  always_comb if (init && rst_ni && !(run && wipe_req)) assume (!wiped_i);

  // The shell asks again only after the acknowledgement.
  always_comb if (init && rst_ni && flr_i && !flr_q) assume (!pending_q && !flr_done);

  always_ff @(posedge clk_i) begin
    if (past && rst_ni) begin
      if (!locked_q) a_clock : assert (!run);
      if (run && !run_q && !wipe_req) a_start : assert (start_q && clean && !wipe_req_q);
      if (run && !run_q) a_quiet : assert (quiet_q);
      if (run && run_q && wipe_req_q) a_request : assert (wipe_req);
      if (held) a_held : assert (!run && clean && quiet_i);
      if (running) a_running : assert (run && !wipe_req || !locked_q);
      if (flr_done) begin
        a_asked : assert (pending_q);
        a_reset : assert (!run);
        a_wiped : assert (clean || dut.flr_wait_q >= Flr);
      end
      a_bound : assert (dut.flr_wait_q <= 32'(Bound));
      // Where the invariants lead.
      a_wait : assert (waits <= 6'(4 * Hold + Wipe + Drain + 8));
      if (run && !wipe_req) a_memory : assert (memory_run && memory_q && !unended);
      // How the ghosts follow the states.
      if (dut.state_q == HELD) inv_ended : assert (!unended);
      if (dut.state_q == DRAIN && memory_run) inv_drained : assert (!unended);
      if (dut.state_q == WIPE || dut.state_q == LOCK && memory_run) inv_unended : assert (!unended);
      if (dut.memory_up_q) inv_up : assert (memory_run && dut.state_q == HELD ||
          dut.state_q == RUN || dut.state_q == LOCK);
      if (dut.state_q == RUN) inv_memory : assert (memory_run && memory_q && !unended);
      inv_states : assert (dut.state_q <= RUN);
      inv_run : assert (run == (dut.state_q == WIPE || dut.state_q == DRAIN || dut.state_q == RUN));
      inv_wipe : assert (wipe_req == (dut.state_q != RUN &&
          !(dut.state_q == HELD && !dut.wipe_req_q)));
      if (dut.state_q == HELD) inv_held : assert (clean && dut.timer_q <= 32'hffff_ffff);
      if (dut.state_q == DRAIN) inv_drain : assert (dut.timer_q <= 32'(Drain) && clean);
      if (dut.state_q == WIPE) inv_wiping : assert (dut.timer_q <= 32'(Wipe) &&
          dut.timer_q == 32'(wiping_q));
      if (dut.state_q == RUN) inv_runs : assert (memory_run && !wipe_req);
      unique case (dut.state_q)
        LOCK: inv_flr_lock : assert (dut.flr_wait_q <= 32'(Flr) + 1 + held_for ||
            !dut.flr_pending_q);
        WIPE: inv_flr_wipe : assert (dut.flr_wait_q <= 32'(Flr + Hold) + dut.timer_q + 3);
        DRAIN: inv_flr_drain : assert (dut.flr_wait_q <= 32'(Flr + Hold + Wipe) + dut.timer_q + 5);
        HELD: inv_flr_held : assert (dut.flr_wait_q <= 32'(Flr + Hold + Wipe + Drain) + 7 +
            held_for + 32'(!dut.flr_pending_q));
        default: inv_flr_run : assert (dut.flr_wait_q <= 32'd1);
      endcase
      unique case (dut.state_q)
        LOCK: inv_wait_lock : assert (waits <= 6'(Hold + 2) && 32'(waits) <= dut.timer_q + 1);
        WIPE: inv_wait_wipe : assert (32'(waits) <= dut.timer_q + Hold + 4);
        DRAIN: inv_wait_drain : assert (32'(waits) <= dut.timer_q + Hold + Wipe + 5);
        HELD: begin
          inv_wait_held : assert (32'(waits) <= (dut.timer_q > Hold ? Hold + 1 : dut.timer_q) +
              Hold + Wipe + Drain + 6);
          if (dut.timer_q > Hold && dut.flr_pending_q) inv_wait_new : assert (waits <= 1);
        end
        default: inv_wait_run : assert (waits <= 1);
      endcase
      inv_pending : assert (pending_q == (dut.flr_pending_q || flr_done));
      inv_once : assert (!(dut.flr_pending_q && flr_done));
      if (dut.flr_pending_q) inv_pends : assert (pending_q);
    end
    if (past && rst_ni) begin
      c_run : cover (running);
      c_done : cover (flr_done && clean);
      c_late : cover (flr_done && !clean);
      c_open : cover (flr_done && !clean && locked_q && !quiet_q);
      c_memory : cover (!memory_run && locked_q && clean);
    end
  end
endmodule
`default_nettype wire
