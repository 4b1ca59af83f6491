// shef_kernel_sys against any accesses, twice with two device secrets: after UDS_LOCK nothing
// distinguishes them until boot begins anew, and before it only a read of UDS does. The first alert
// stays until a reset or a wipe by the host. After boot a running watchdog counts down to a restart
// unless the program sets it again or the processor halts, which stops it. STATUS shows debug that
// was on in any cycle since boot began, and debug that differs from the value STATUS showed at the
// end of boot halts with an alert.
`default_nettype none
module kernel_sys (
    input wire clk_i,
    input wire rst_ni,
    input wire wipe_req_i,
    input wire boot_i,
    input wire clearing_i,
    input wire sel_i,
    input wire we_i,
    input wire [11:0] addr_i,
    input wire [31:0] wdata_i,
    input wire [255:0] uds_i,
    input wire [255:0] other_i,
    input wire [255:0] target_i,
    input wire [255:0] shell_i,
    input wire debug_i,
    input wire no_shield_i,
    input wire fault_i
);
  logic err, wipe, halt, restart, ready, err2, wipe2, halt2, restart2, ready2;
  logic [31:0] rdata, rdata2;
  logic [3:0] alert, alert2;
  shef_kernel_sys dut (
      .clk_i, .rst_ni, .wipe_req_i, .boot_i, .clearing_i, .sel_i, .we_i, .addr_i, .wdata_i, .err_o(err), .rdata_o(rdata), .uds_i,
      .root_i(2'd1), .target_i, .shell_i, .shell_flags_i(3'd5), .debug_i, .no_shield_i, .fault_i,
      .wipe_o(wipe), .halt_o(halt), .restart_o(restart), .ready_o(ready), .alert_o(alert)
  );
  shef_kernel_sys twin (
      .clk_i, .rst_ni, .wipe_req_i, .boot_i, .clearing_i, .sel_i, .we_i, .addr_i, .wdata_i, .err_o(err2), .rdata_o(rdata2), .uds_i(other_i),
      .root_i(2'd1), .target_i, .shell_i, .shell_flags_i(3'd5), .debug_i, .no_shield_i, .fault_i,
      .wipe_o(wipe2), .halt_o(halt2), .restart_o(restart2), .ready_o(ready2), .alert_o(alert2)
  );

  logic init = 1'b0;
  logic locked;             // UDS_LOCK was written since boot began
  logic [3:0] first;        // the expected alert
  logic runs;               // the watchdog was running, and was not stopped
  logic readied;            // READY was written since boot began
  logic stopped, counts;    // the processor halted; the watchdog ran, and no access set it
  logic [31:0] left_before; // the watchdog in the cycle before
  logic booted;             // boot_i was high in the cycle before, and no reset
  logic was, seen;          // debug in any cycle of the boot, and since boot began
  logic changed;
  assign changed = !boot_i && debug_i != was;
  logic control, alarm;
  assign control = sel_i && we_i && addr_i[11:2] == 10'd1;
  assign alarm = sel_i && we_i && addr_i[11:2] == 10'd3;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni || boot_i) locked <= 1'b0;
    else if (control && wdata_i[0]) locked <= 1'b1;
    if (!rst_ni || boot_i) readied <= 1'b0;
    else if (control && wdata_i[3]) readied <= 1'b1;
    if (!rst_ni || wipe_req_i) first <= 4'd0;
    else if (first == 4'd0) first <= changed ? 4'd7 : fault_i ? 4'd1 : alarm ? wdata_i[3:0] : restart ? 4'd6 : 4'd0;
    booted <= rst_ni && boot_i;
    // A boot begins with a reset, or with the first cycle of boot_i.
    if (!rst_ni || (boot_i && !booted)) {was, seen} <= {debug_i, debug_i};
    else if (debug_i) begin
      seen <= 1'b1;
      if (boot_i) was <= 1'b1;
    end
    stopped <= rst_ni && !boot_i && halt;
    counts <= rst_ni && !boot_i && dut.left_q != 32'd0 && !halt && !(sel_i && we_i && addr_i[11:2] == 10'd6);
    left_before <= dut.left_q;
    runs <= rst_ni && !boot_i && ready && dut.left_q != 32'd0 && !halt && !restart;
  end
  always_comb begin
    if (init && rst_ni) begin
      // Register pairs that induction needs to know equal.
      assert (dut.locked_q == twin.locked_q && dut.timer_q == twin.timer_q && dut.high_q == twin.high_q && dut.left_q == twin.left_q);
      assert ({err, wipe, halt, restart, ready, alert} == {err2, wipe2, halt2, restart2, ready2, alert2});
      if (locked || addr_i[11:5] != 7'd1) assert (rdata == rdata2);
      if (locked && addr_i[11:5] == 7'd1) assert (rdata == 32'd0);
      assert (dut.locked_q == locked && ready == readied && alert == first);
      if (fault_i || changed) assert (halt);
      assert (dut.boot_q == booted && twin.boot_q == booted);
      if (booted) assert (was == seen);
      assert (dut.debug_boot_q == was && dut.debug_seen_q == seen);
      assert (twin.debug_boot_q == was && twin.debug_seen_q == seen);
      if (addr_i[11:2] == 10'd2) assert (rdata[1] == seen);
      if (runs) assert (dut.left_q != 32'd0);
      if (stopped) assert (dut.left_q == 32'd0);
      if (counts) assert (dut.left_q == left_before - 32'd1);
      assert (restart == (dut.left_q == 32'd1));
    end
    cover (init && rst_ni && locked && rdata == 32'hcafe_f00d);
    cover (init && rst_ni && !locked && rdata != rdata2);
    cover (init && rst_ni && alert == 4'd6 && ready);
    cover (init && rst_ni && alert == 4'd7 && !debug_i && seen);
    cover (init && rst_ni && !boot_i && !debug_i && was && halt);
  end
endmodule
`default_nettype wire
