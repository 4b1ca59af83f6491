// Generated from shell-rtl/regs/f2.toml by `cargo xtask generate`; do not edit.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_f2_regs_pkg;

  // Adapter page of a card in the shell of AWS F2: answered by the shell's clock, whatever the core does
  localparam logic [31:0] F2_BASE = 32'h10000;
  localparam int unsigned F2_COUNT = 1;
  localparam int unsigned F2_STRIDE = 0;
  localparam logic [11:0] F2_ID_OFFSET = 12'h0;
  localparam logic [11:0] F2_VERSION_OFFSET = 12'h4;
  localparam logic [11:0] F2_STATUS_OFFSET = 12'h8;
  localparam logic [11:0] F2_CORE_KHZ_OFFSET = 12'hc;
  localparam logic [11:0] F2_KERNEL_KHZ_OFFSET = 12'h10;
  localparam logic [11:0] F2_PCIE_OFFSET = 12'h14;
  localparam logic [11:0] F2_MEDIUM_WORDS_OFFSET = 12'h18;
  localparam logic [11:0] F2_CONTROL_OFFSET = 12'h1c;
  localparam logic [11:0] F2_OCL_LATE_OFFSET = 12'h20;
  localparam logic [11:0] F2_PCIS_READS_LATE_OFFSET = 12'h24;
  localparam logic [11:0] F2_PCIS_WRITES_LATE_OFFSET = 12'h28;
  localparam logic [11:0] F2_IRQ_DROPPED_OFFSET = 12'h2c;
  localparam logic [11:0] F2_WIPE_CYCLES_OFFSET = 12'h30;
  localparam logic [11:0] F2_UNLOCKS_OFFSET = 12'h34;
  localparam logic [11:0] F2_MEDIUM_WRITES_OFFSET = 12'h38;
  localparam logic [31:0] F2_ID_RESET = 32'h32465348;
  localparam logic [31:0] F2_VERSION_RESET = 32'h00000001;
  localparam logic [31:0] F2_STATUS_RESET = 32'h00000000;
  localparam int unsigned F2_STATUS_LOCKED_LSB = 0;
  localparam int unsigned F2_STATUS_RUNNING_LSB = 1;
  localparam int unsigned F2_STATUS_READY_LSB = 2;
  localparam int unsigned F2_STATUS_MEMORY_READY_LSB = 3;
  localparam int unsigned F2_STATUS_FROZEN_LSB = 4;
  localparam int unsigned F2_STATUS_WIPING_LSB = 5;
  localparam int unsigned F2_STATUS_ALERT_LSB = 8;
  localparam int unsigned F2_PCIE_MAX_PAYLOAD_LSB = 0;
  localparam int unsigned F2_PCIE_MAX_READ_REQUEST_LSB = 4;
  localparam int unsigned F2_CONTROL_COMMAND_LSB = 0;
  localparam logic [31:0] F2_CONTROL_COMMAND_RESET = 32'd2;
  localparam logic [31:0] F2_CONTROL_COMMAND_START = 32'd1;

  typedef enum logic [3:0] {
    F2_SEL_NONE = 4'd0,
    F2_SEL_ID = 4'd1,
    F2_SEL_VERSION = 4'd2,
    F2_SEL_STATUS = 4'd3,
    F2_SEL_CORE_KHZ = 4'd4,
    F2_SEL_KERNEL_KHZ = 4'd5,
    F2_SEL_PCIE = 4'd6,
    F2_SEL_MEDIUM_WORDS = 4'd7,
    F2_SEL_CONTROL = 4'd8,
    F2_SEL_OCL_LATE = 4'd9,
    F2_SEL_PCIS_READS_LATE = 4'd10,
    F2_SEL_PCIS_WRITES_LATE = 4'd11,
    F2_SEL_IRQ_DROPPED = 4'd12,
    F2_SEL_WIPE_CYCLES = 4'd13,
    F2_SEL_UNLOCKS = 4'd14,
    F2_SEL_MEDIUM_WRITES = 4'd15
  } f2_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic f2_sel_e f2_decode(input logic [11:0] addr);
    f2_decode = F2_SEL_NONE;
    if (addr <= 12'h3) f2_decode = F2_SEL_ID;
    if (addr >= 12'h4 && addr <= 12'h7) f2_decode = F2_SEL_VERSION;
    if (addr >= 12'h8 && addr <= 12'hb) f2_decode = F2_SEL_STATUS;
    if (addr >= 12'hc && addr <= 12'hf) f2_decode = F2_SEL_CORE_KHZ;
    if (addr >= 12'h10 && addr <= 12'h13) f2_decode = F2_SEL_KERNEL_KHZ;
    if (addr >= 12'h14 && addr <= 12'h17) f2_decode = F2_SEL_PCIE;
    if (addr >= 12'h18 && addr <= 12'h1b) f2_decode = F2_SEL_MEDIUM_WORDS;
    if (addr >= 12'h1c && addr <= 12'h1f) f2_decode = F2_SEL_CONTROL;
    if (addr >= 12'h20 && addr <= 12'h23) f2_decode = F2_SEL_OCL_LATE;
    if (addr >= 12'h24 && addr <= 12'h27) f2_decode = F2_SEL_PCIS_READS_LATE;
    if (addr >= 12'h28 && addr <= 12'h2b) f2_decode = F2_SEL_PCIS_WRITES_LATE;
    if (addr >= 12'h2c && addr <= 12'h2f) f2_decode = F2_SEL_IRQ_DROPPED;
    if (addr >= 12'h30 && addr <= 12'h33) f2_decode = F2_SEL_WIPE_CYCLES;
    if (addr >= 12'h34 && addr <= 12'h37) f2_decode = F2_SEL_UNLOCKS;
    if (addr >= 12'h38 && addr <= 12'h3b) f2_decode = F2_SEL_MEDIUM_WRITES;
  endfunction

  function automatic logic f2_readable(input f2_sel_e sel);
    unique case (sel)
      F2_SEL_ID,
      F2_SEL_VERSION,
      F2_SEL_STATUS,
      F2_SEL_CORE_KHZ,
      F2_SEL_KERNEL_KHZ,
      F2_SEL_PCIE,
      F2_SEL_MEDIUM_WORDS,
      F2_SEL_OCL_LATE,
      F2_SEL_PCIS_READS_LATE,
      F2_SEL_PCIS_WRITES_LATE,
      F2_SEL_IRQ_DROPPED,
      F2_SEL_WIPE_CYCLES,
      F2_SEL_UNLOCKS,
      F2_SEL_MEDIUM_WRITES: f2_readable = 1'b1;
      default: f2_readable = 1'b0;
    endcase
  endfunction

  function automatic logic f2_writable(input f2_sel_e sel);
    unique case (sel)
      F2_SEL_CONTROL: f2_writable = 1'b1;
      default: f2_writable = 1'b0;
    endcase
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
