// Start and end of a session: one event that clears all state of the previous session.
//
// begin_i (pulse: a seed was accepted) waits until the accelerator's ports owe nothing (quiet_i),
// then wipes; end_i (pulse: CLOSE, ABORT or halt has shown its last message) wipes at once. wipe_o
// (level) zeroes control processor, engine sets, caches and all registers of the session, until
// each has reported that it is clear, the accelerator has cleared its memories and its ports owe
// nothing: no segment of a burst is left to run when the wipe is over. done_o (pulse) ends it;
// failed_o with it: the accelerator did not become idle or did not clear within LimitCycles each.
// fault_clear_o (level): erases earlier faults, only while the blocks that they stopped are being
// wiped.
// full_i (level): reset or a full wipe is in progress; the accelerator is cleared then too.
// clear_done_o reports that it is clear and its ports owe nothing, or that its time is over.
// acc_clear_o is high only while the accelerator is held in reset, and stays until cleared_i or
// that time.
`default_nettype none
module shef_renew #(
    parameter int unsigned LimitCycles = 65536
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic full_i,
    input  wire logic begin_i,
    input  wire logic end_i,
    output logic      wipe_o,
    output logic      fault_clear_o,
    output logic      done_o,
    output logic      failed_o,
    output logic      clear_done_o,
    input  wire logic ctrl_wiped_i,
    input  wire logic set_wiped_i,
    input  wire logic quiet_i,
    output logic      acc_clear_o,
    input  wire logic cleared_i
);
  localparam int unsigned TimerW = $clog2(LimitCycles + 1);

  typedef enum logic [1:0] {R_IDLE, R_QUIET, R_WIPE} state_e;
  state_e state_q;
  logic begins_q, failed_q, acc_clear_q, cleared, late;
  logic [TimerW-1:0] timer_q;

  assign late = timer_q == TimerW'(LimitCycles);
  assign cleared = acc_clear_q && cleared_i && quiet_i;
  assign clear_done_o = cleared || (acc_clear_q && late);
  assign wipe_o = state_q == R_WIPE;
  assign done_o = state_q == R_WIPE && ctrl_wiped_i && set_wiped_i && clear_done_o;
  assign failed_o = failed_q || !cleared;
  assign fault_clear_o = state_q == R_WIPE && begins_q;
  assign acc_clear_o = acc_clear_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= R_IDLE;
      begins_q <= 1'b0;
      failed_q <= 1'b0;
      acc_clear_q <= 1'b0;
      timer_q <= '0;
    end else begin
      acc_clear_q <= full_i || (state_q == R_WIPE && !done_o);
      if ((state_q == R_QUIET && !quiet_i && !full_i) || (acc_clear_q && !cleared)) begin
        if (!late) timer_q <= timer_q + 1'b1;
      end else timer_q <= '0;

      unique case (state_q)
        R_IDLE: begin
          failed_q <= 1'b0;
          begins_q <= begin_i;
          if (begin_i) state_q <= R_QUIET;
          else if (end_i) state_q <= R_WIPE;
        end
        R_QUIET:
        if (quiet_i || late) begin
          state_q <= R_WIPE;
          failed_q <= !quiet_i;
          timer_q <= '0;
        end
        default: if (done_o) state_q <= R_IDLE;
      endcase
      if (full_i) state_q <= R_IDLE;
    end
  end
endmodule
`default_nettype wire
