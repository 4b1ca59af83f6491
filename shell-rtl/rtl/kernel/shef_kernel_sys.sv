// Identity, timer, watchdog and alerts of the Security Kernel, as registers.
//
// Device of shef_kernel_bus: sel_i with its response in the same cycle. Identity (uds_i, root_i,
// target_i, shell_i, shell_flags_i: byte 0 lowest) comes from the shell and does not change.
// debug_i is the shell's debug state. STATUS shows debug if it was on in any cycle since boot_i
// rose. While boot_i is low, a debug_i that differs from STATUS at the end of the boot halts with
// an alert, whatever the program does. So a boot during which debug went off halts at its end.
// boot_i high resets everything except alert_o, which rst_ni and wipe_req_i clear. UDS is readable
// once per reset until UDS_LOCK is written. alert_o keeps the first alert; fault_i (pulse) also
// raises one. wipe_o, halt_o, restart_o are pulses: a fault of the processor halts, the watchdog
// restarts; a halt stops the watchdog.
`default_nettype none
module shef_kernel_sys
  import shef_kernel_regs_pkg::*;
(
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   wipe_req_i,
    input  wire logic   boot_i,
    input  wire logic   clearing_i,
    input  wire logic   sel_i,
    input  wire logic   we_i,
    input  wire logic [11:0] addr_i,
    input  wire logic [31:0] wdata_i,
    output logic        err_o,
    output logic [31:0] rdata_o,
    input  wire logic [255:0] uds_i,
    input  wire logic [1:0]   root_i,
    input  wire logic [255:0] target_i,
    input  wire logic [255:0] shell_i,
    input  wire logic [2:0]   shell_flags_i,
    input  wire logic   debug_i,
    input  wire logic   no_shield_i,
    input  wire logic   fault_i,
    output logic        wipe_o,
    output logic        halt_o,
    output logic        restart_o,
    output logic        ready_o,
    output logic [3:0]  alert_o
);

  logic locked_q, ready_q, boot_q, debug_boot_q, debug_seen_q;
  logic [3:0] alert_q;
  logic [63:0] timer_q;
  logic [31:0] high_q, left_q;

  sys_sel_e item;
  assign item = sys_decode(addr_i);
  wire write = sel_i && we_i && sys_writable(item);
  wire control = write && item == SYS_SEL_CONTROL;
  wire late = left_q == 32'd1;
  wire kept = rst_ni && boot_q && debug_seen_q;
  wire debugged = !boot_i && debug_i != debug_boot_q;
  assign err_o = we_i ? !sys_writable(item) : !sys_readable(item);
  assign wipe_o = control && wdata_i[SYS_CONTROL_WIPE_LSB];
  assign halt_o = (control && wdata_i[SYS_CONTROL_HALT_LSB]) || fault_i || debugged;
  assign restart_o = late;
  assign ready_o = ready_q;
  assign alert_o = alert_q;

  function automatic logic [31:0] word(input logic [255:0] bytes);
    return bytes[{addr_i[4:2], 5'd0}+:32];
  endfunction

  always_comb begin
    rdata_o = '0;
    unique case (item)
      SYS_SEL_ID: rdata_o = SYS_ID_RESET;
      SYS_SEL_STATUS: begin
        rdata_o[SYS_STATUS_UDS_LOCKED_LSB] = locked_q;
        rdata_o[SYS_STATUS_DEBUG_LSB] = debug_seen_q;
        rdata_o[SYS_STATUS_CLEARING_LSB] = clearing_i;
        rdata_o[SYS_STATUS_CLEARED_LSB] = !clearing_i;
        rdata_o[SYS_STATUS_NO_SHIELD_LSB] = no_shield_i;
        rdata_o[SYS_STATUS_READY_LSB] = ready_q;
      end
      SYS_SEL_ALERT: rdata_o[3:0] = alert_q;
      SYS_SEL_TIMER_LO: rdata_o = timer_q[31:0];
      SYS_SEL_TIMER_HI: rdata_o = high_q;
      SYS_SEL_WATCHDOG: rdata_o = left_q;
      SYS_SEL_ROOT: rdata_o[1:0] = root_i;
      SYS_SEL_UDS: rdata_o = locked_q ? 32'd0 : word(uds_i);
      SYS_SEL_TARGET: rdata_o = word(target_i);
      SYS_SEL_SHELL: rdata_o = word(shell_i);
      SYS_SEL_SHELL_FLAGS: rdata_o[2:0] = shell_flags_i;
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || wipe_req_i) alert_q <= SYS_ALERT_CODE_NONE;
    else if (alert_q == SYS_ALERT_CODE_NONE) begin
      if (debugged) alert_q <= SYS_ALERT_CODE_DEBUG;
      else if (fault_i) alert_q <= SYS_ALERT_CODE_TRAP;
      else if (write && item == SYS_SEL_ALERT) alert_q <= wdata_i[3:0];
      else if (late) alert_q <= SYS_ALERT_CODE_WATCHDOG;
    end

    boot_q <= rst_ni && boot_i;
    if (!rst_ni || boot_i) begin
      locked_q <= 1'b0;
      ready_q <= 1'b0;
      timer_q <= '0;
      high_q <= '0;
      left_q <= '0;
      debug_boot_q <= debug_i || kept;
      debug_seen_q <= debug_i || kept;
    end else begin
      if (debug_i) debug_seen_q <= 1'b1;
      if (control && wdata_i[SYS_CONTROL_UDS_LOCK_LSB]) locked_q <= 1'b1;
      if (control && wdata_i[SYS_CONTROL_READY_LSB]) ready_q <= 1'b1;
      timer_q <= timer_q + 1'b1;
      if (sel_i && !we_i && item == SYS_SEL_TIMER_LO) high_q <= timer_q[63:32];
      if (halt_o) left_q <= '0;
      else if (write && item == SYS_SEL_WATCHDOG && !(ready_q && wdata_i == 32'd0)) left_q <= wdata_i;
      else if (left_q != 32'd0) left_q <= left_q - 1'b1;
    end
  end

endmodule
`default_nettype wire
