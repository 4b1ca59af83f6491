// shef_system_life against any kernel, fabric and design: the design runs only when the fabric has
// taken a whole image since the last begin or clear and reports it active, and only after it was
// wiped, or its fabric cleared, and then held since it last ran. Only then are the gates open. It
// stops in the cycle after the kernel begins or clears, the fabric is not active, or a wipe is
// requested. The fabric sees each begin or clear (the later of two) once, and gets words only after
// it, and all that only while the design is held. While any of that is due, or a design is about to
// start, the kernel sees busy; it sees active only for a running design. A wipe is acknowledged
// only when the kernel is clear and the design is held and was wiped or cleared. A fabric that
// loses its design needs another image. A wipe without a response ends after its bound, with a
// clear.
`default_nettype none
module system_life (
    input wire clk_i,
    input wire rst_ni,
    input wire wipe_req_i,
    input wire kernel_wiped_i,
    input wire kernel_begin_i,
    input wire kernel_clear_i,
    input wire kernel_valid_i,
    input wire kernel_last_i,
    input wire cfg_ready_i,
    input wire cfg_busy_i,
    input wire cfg_active_i,
    input wire design_wiped_i
);
  logic wipe_ack, kernel_ready, kernel_busy, kernel_active, cfg_begin, cfg_clear, cfg_valid;
  logic design_wipe, held, open;
  localparam int unsigned Bound = 5;
  shef_system_life #(.WipeCycles(Bound)) dut (
      .clk_i, .rst_ni, .wipe_req_i, .kernel_wiped_i, .wipe_ack_o(wipe_ack), .kernel_begin_i,
      .kernel_clear_i, .kernel_valid_i, .kernel_ready_o(kernel_ready), .kernel_last_i,
      .kernel_busy_o(kernel_busy), .kernel_active_o(kernel_active), .cfg_begin_o(cfg_begin),
      .cfg_clear_o(cfg_clear), .cfg_valid_o(cfg_valid), .cfg_ready_i, .cfg_busy_i, .cfg_active_i,
      .design_wipe_o(design_wipe), .design_wiped_i, .held_o(held), .open_o(open)
  );

  logic init = 1'b0;
  logic wiped;             // the design was wiped, or cleared from the fabric, and not run since
  logic gone;              // the bound of a wipe passed, and the fabric was not cleared since
  logic [3:0] waited;
  logic late;
  assign late = design_wipe && waited == 4'(Bound) && !design_wiped_i;
  logic was_held;          // and was held since
  logic due, due_begin;    // a begin or clear that the fabric has not seen
  logic whole;             // it has taken a whole image since
  logic ends_q, open_q, lost_q, held_q, taken;
  assign taken = cfg_valid && cfg_ready_i;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    open_q <= rst_ni && open;
    held_q <= rst_ni && held;
    lost_q <= rst_ni && (kernel_begin_i || kernel_clear_i || wipe_req_i || !cfg_active_i);
    ends_q <= rst_ni && (kernel_begin_i || kernel_clear_i);
    if (!rst_ni) begin
      wiped <= 1'b0;
      gone <= 1'b0;
      waited <= '0;
      was_held <= 1'b0;
      due <= 1'b0;
      due_begin <= 1'b0;
      whole <= 1'b0;
    end else begin
      waited <= design_wipe ? waited + 1'b1 : '0;
      if (design_wipe && design_wiped_i || cfg_begin || cfg_clear) wiped <= 1'b1;
      else if (open) wiped <= 1'b0;
      if (late) gone <= 1'b1;
      else if (cfg_begin || cfg_clear) gone <= 1'b0;
      if (held) was_held <= 1'b1;
      else if (open) was_held <= 1'b0;
      if (kernel_begin_i || kernel_clear_i) begin
        due <= 1'b1;
        due_begin <= kernel_begin_i && !kernel_clear_i;
      end else if (late) begin
        due <= 1'b1;
        if (!due) due_begin <= 1'b0;
      end else if (cfg_begin || cfg_clear) due <= 1'b0;
      if (kernel_begin_i || kernel_clear_i || late) whole <= 1'b0;
      else if (taken && kernel_last_i) whole <= 1'b1;
      else if (open && !cfg_active_i) whole <= 1'b0;
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (!(held && open) && !(design_wipe && (held || open)) && (held || open || design_wipe));
      if (open && !(open_q && lost_q)) assert (whole);
      if (open && !open_q) assert (wiped && was_held);
      if (held) assert (wiped || gone);
      if (gone) assert (due && held);
      assert (waited <= 4'(Bound) + 4'(!design_wipe));
      if (open_q && lost_q) assert (design_wipe);
      if (open_q && !lost_q) assert (open);
      // the fabric
      // in reset for at least one cycle, which clears the remains of the wipe
      if (cfg_begin || cfg_clear || cfg_valid || wipe_ack) assert (held && held_q);
      assert (!(cfg_begin && cfg_clear));
      if (cfg_begin || cfg_clear) assert (due && cfg_begin == due_begin && !cfg_valid);
      if (cfg_valid) assert (!due && kernel_valid_i);
      assert ((cfg_valid && cfg_ready_i) == (kernel_valid_i && kernel_ready));
      if (held && held_q && due) assert (cfg_begin || cfg_clear);
      // the kernel
      if (due || design_wipe || cfg_busy_i) assert (kernel_busy);
      if (held && whole && cfg_active_i) assert (kernel_busy);
      if (kernel_active) assert (open && cfg_active_i);
      if (open && cfg_active_i) assert (kernel_active);
      if (wipe_ack) assert (kernel_wiped_i && held && wiped && !gone);
      if (wipe_req_i && kernel_wiped_i && held && held_q && !gone) assert (wipe_ack);
      // supporting invariants
      assert (dut.due_q == due && (!due || dut.begin_q == due_begin));
      assert (dut.whole_q == whole && dut.rests_q == held_q);
      assert (dut.unwiped_q == gone && 4'(dut.wait_q) == waited);
      if (open || held_q) assert (design_wipe || waited == '0);
      if (ends_q) assert (due);
      if (open) assert (!due || ends_q);
      assert (dut.design_q != 2'd3);
      if (due) assert (!whole);
    end
    cover (init && rst_ni && open && !open_q);
    cover (init && rst_ni && cfg_begin && wiped);
    cover (init && rst_ni && wipe_ack && due);
    cover (init && rst_ni && cfg_clear && gone);
    cover (init && rst_ni && taken && !kernel_last_i);
  end
endmodule
`default_nettype wire
