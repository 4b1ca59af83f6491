// Life of the core in the shell of AWS F2: clock lost, wipe, reset, run.
//
// LOCK: the core has no clock, and is in reset. WIPE: it runs with wipe_req_o until it acknowledges.
// DRAIN: its accesses outside end. HELD: it is wiped and in reset; with quiet_i the boot medium is
// open. RUN. From power-on, rst_ni or a lost clock the way to HELD is by a wipe; from RUN, a
// function-level reset, power state 3 and reset_i lead there. start_i leaves HELD.
// run_o rises only with quiet_i: a burst that an earlier core left open outside keeps the core in
// reset until it ends. While the core is in reset, it begins no burst, so quiet_i stays.
// flr_done_o is high for one cycle after each rise of flr_i: in HELD, thus after the wipe. Without a
// clock, or with a burst that never ends, no wipe is possible: after FlrCycles the reset is
// acknowledged all the same, so that the card does not hang, and the core stays in reset.
// run_o is the core's reset, low-active, for reset synchronisers; memory_run_o that of the memory
// controller, which is reset too when the core did not end its bursts. Both come from flip-flops.
// wiped_i, quiet_i, locked_i are synchronous to clk_i. cycles_o: duration of the last wipe.
`default_nettype none
module shef_f2_life #(
    parameter int unsigned WipeCycles = 11_000_000,
    parameter int unsigned FlrCycles = 11_000_000,
    parameter int unsigned DrainCycles = 25_000,
    parameter int unsigned HoldCycles = 64
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic locked_i,
    input  wire logic start_i,
    input  wire logic reset_i,
    input  wire logic flr_i,
    output logic      flr_done_o,
    input  wire logic power_off_i,
    input  wire logic wiped_i,
    input  wire logic quiet_i,
    output logic      run_o,
    output logic      memory_run_o,
    output logic      wipe_req_o,
    output logic      running_o,
    output logic      held_o,
    output logic      wiping_o,
    output logic      unlocked_o,
    output logic [31:0] cycles_o
);
  typedef enum logic [2:0] {
    LOCK = 3'd0,
    WIPE = 3'd1,
    DRAIN = 3'd2,
    HELD = 3'd3,
    RUN = 3'd4
  } state_e;

  state_e state_q;
  logic [31:0] timer_q;  // cycles in this state
  logic [31:0] wipe_q;   // cycles since the cause of the wipe
  logic [31:0] flr_wait_q;  // cycles of the reset that waits
  logic flr_q, flr_pending_q, flr_done_q, run_q, memory_run_q, memory_up_q, wipe_req_q;

  // The acknowledgement of an earlier wipe is gone by then.
  wire settled = timer_q >= 32'(HoldCycles);
  wire wipe_late = timer_q >= 32'(WipeCycles);
  wire leave = flr_pending_q || power_off_i || reset_i;
  wire flr_late = flr_wait_q >= 32'(FlrCycles);
  wire done = flr_pending_q && (state_q == HELD && settled || flr_late && (!locked_i ||
      state_q == LOCK && !quiet_i));

  assign flr_done_o = flr_done_q;
  assign run_o = run_q;
  assign memory_run_o = memory_run_q;
  assign wipe_req_o = wipe_req_q;
  assign running_o = state_q == RUN;
  assign held_o = state_q == HELD && settled && quiet_i;
  assign wiping_o = state_q == WIPE || state_q == DRAIN;
  assign unlocked_o = !locked_i && state_q != LOCK;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= LOCK;
      timer_q <= '0;
      wipe_q <= '0;
      flr_wait_q <= '0;
      cycles_o <= '0;
      flr_q <= 1'b0;
      flr_pending_q <= 1'b0;
      flr_done_q <= 1'b0;
      run_q <= 1'b0;
      memory_run_q <= 1'b0;
      memory_up_q <= 1'b0;
      wipe_req_q <= 1'b1;
    end else begin
      flr_q <= flr_i;
      flr_done_q <= done;
      if (flr_i && !flr_q) flr_pending_q <= 1'b1;
      else if (done) flr_pending_q <= 1'b0;

      memory_up_q <= state_q == HELD && settled;
      if (!flr_pending_q) flr_wait_q <= '0;
      else if (flr_wait_q != '1) flr_wait_q <= flr_wait_q + 32'd1;
      if (timer_q != '1) timer_q <= timer_q + 32'd1;
      if (wipe_q != '1) wipe_q <= wipe_q + 32'd1;

      if (!locked_i) begin
        if (state_q != LOCK) begin
          state_q <= LOCK;
          timer_q <= '0;
        end
        run_q <= 1'b0;
        memory_run_q <= 1'b0;
        wipe_req_q <= 1'b1;
      end else begin
        unique case (state_q)
          LOCK: begin
            memory_run_q <= 1'b1;
            if (settled && quiet_i) begin
              state_q <= WIPE;
              timer_q <= '0;
              wipe_q <= '0;
              run_q <= 1'b1;
            end
          end
          WIPE: begin
            if (settled && wiped_i || wipe_late) begin
              state_q <= DRAIN;
              timer_q <= '0;
              memory_run_q <= wiped_i;
            end
          end
          DRAIN: begin
            if (quiet_i || timer_q >= 32'(DrainCycles)) begin
              state_q <= HELD;
              timer_q <= '0;
              run_q <= 1'b0;
              cycles_o <= wipe_q;
            end
          end
          HELD: begin
            if (settled) begin
              memory_run_q <= 1'b1;
              wipe_req_q <= 1'b0;
              if (start_i && !leave && memory_up_q && !wipe_req_q && quiet_i) begin
                state_q <= RUN;
                timer_q <= '0;
                run_q <= 1'b1;
              end
            end
          end
          RUN: begin
            if (leave) begin
              state_q <= WIPE;
              timer_q <= '0;
              wipe_q <= '0;
              wipe_req_q <= 1'b1;
            end
          end
          default: state_q <= LOCK;
        endcase
      end
    end
  end
endmodule
`default_nettype wire
