// Life of the design in the fabric: the design is held in reset, and unreachable, unless the
// configuration port reports it active. It is wiped before it is held.
//
// kernel_*: the Security Kernel's configuration port; cfg_*: the fabric's (both as in
// shef_kernel_config). When the kernel begins or clears, the design is wiped, then held (held_o,
// its reset), and only then does the fabric see the begin or clear and get words; until then the
// kernel sees busy. The fabric is inactive from the cycle after cfg_begin_o or cfg_clear_o, and
// from the cycle after the last word it is busy, active or in error. The design starts when the
// fabric is active and has taken a whole image since the last begin or clear, and runs (open_o)
// until the kernel begins or clears, the fabric is no longer active, or wipe_req_i. To start again
// it needs another image.
// design_wipe_o is a level, design_wiped_i its acknowledgement. A design that does not acknowledge
// within WipeCycles is held nevertheless, and the fabric is cleared: a hostile design cannot stay.
// wipe_ack_o: the kernel is clear (kernel_wiped_i), and the design is held, and was wiped or is
// gone from the fabric. After rst_ni the design is wiped, and then held.
`default_nettype none
module shef_system_life #(
    parameter int unsigned WipeCycles = 1 << 22
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic wipe_req_i,
    input  wire logic kernel_wiped_i,
    output logic      wipe_ack_o,
    // the kernel's configuration port
    input  wire logic kernel_begin_i,
    input  wire logic kernel_clear_i,
    input  wire logic kernel_valid_i,
    output logic      kernel_ready_o,
    input  wire logic kernel_last_i,
    output logic      kernel_busy_o,
    output logic      kernel_active_o,
    // the fabric's
    output logic      cfg_begin_o,
    output logic      cfg_clear_o,
    output logic      cfg_valid_o,
    input  wire logic cfg_ready_i,
    input  wire logic cfg_busy_i,
    input  wire logic cfg_active_i,
    // the design
    output logic      design_wipe_o,
    input  wire logic design_wiped_i,
    output logic      held_o,
    output logic      open_o
);

  typedef enum logic [1:0] {
    D_WIPE,
    D_HELD,
    D_RUN
  } design_e;

  design_e design_q;
  logic due_q, begin_q;  // the fabric must see a begin, or a clear
  logic whole_q;         // it has taken a whole image since
  logic rests_q;         // the reset has lasted for a cycle
  logic unwiped_q;       // the design did not acknowledge, and the fabric still holds it
  localparam int unsigned WaitBits = $clog2(WipeCycles + 1);
  logic [WaitBits-1:0] wait_q;

  wire ends = kernel_begin_i || kernel_clear_i;
  wire held = design_q == D_HELD;
  wire rests = held && rests_q;
  wire pass = rests && !due_q;
  wire late = design_q == D_WIPE && wait_q == WaitBits'(WipeCycles) && !design_wiped_i;

  assign held_o = held;
  assign open_o = design_q == D_RUN;
  assign design_wipe_o = design_q == D_WIPE;
  assign wipe_ack_o = wipe_req_i && kernel_wiped_i && rests && !unwiped_q;
  assign cfg_begin_o = rests && due_q && begin_q;
  assign cfg_clear_o = rests && due_q && !begin_q;
  assign cfg_valid_o = kernel_valid_i && pass;
  assign kernel_ready_o = cfg_ready_i && pass;
  assign kernel_busy_o = cfg_busy_i || due_q || design_q == D_WIPE ||
      (held && whole_q && cfg_active_i);
  assign kernel_active_o = open_o && cfg_active_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      design_q <= D_WIPE;
      due_q <= 1'b0;
      begin_q <= 1'b0;
      whole_q <= 1'b0;
      rests_q <= 1'b0;
      unwiped_q <= 1'b0;
      wait_q <= '0;
    end else begin
      wait_q <= design_q == D_WIPE ? wait_q + 1'b1 : '0;
      if (late) unwiped_q <= 1'b1;
      else if (rests && due_q) unwiped_q <= 1'b0;
      rests_q <= held;
      if (ends) begin
        due_q <= 1'b1;
        begin_q <= !kernel_clear_i;
      end else if (late) begin
        due_q <= 1'b1;
        if (!due_q) begin_q <= 1'b0;
      end else if (rests) due_q <= 1'b0;

      if (ends || late) whole_q <= 1'b0;
      else if (cfg_valid_o && cfg_ready_i && kernel_last_i) whole_q <= 1'b1;
      else if (open_o && !cfg_active_i) whole_q <= 1'b0;

      unique case (design_q)
        D_WIPE: if (design_wiped_i || late) design_q <= D_HELD;
        D_HELD: if (whole_q && cfg_active_i && !ends && !wipe_req_i) design_q <= D_RUN;
        default: if (ends || !cfg_active_i || wipe_req_i) design_q <= D_WIPE;
      endcase
    end
  end

endmodule
`default_nettype wire
