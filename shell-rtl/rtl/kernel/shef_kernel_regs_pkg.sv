// Generated from shell-rtl/regs/kernel.toml by `cargo xtask generate`; do not edit.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_kernel_regs_pkg;

  // Address space of the Security Kernel's processor; the host reaches nothing of it but its side of the mailbox
  localparam logic [30:0] KERNEL_ROM_OFFSET = 31'h0;
  localparam logic [30:0] KERNEL_MEMORY_OFFSET = 31'h10000000;
  localparam logic [30:0] KERNEL_RAM_OFFSET = 31'h20000000;
  localparam logic [30:0] KERNEL_MEDIUM_OFFSET = 31'h30000000;
  localparam logic [30:0] KERNEL_SYS_OFFSET = 31'h40000000;
  localparam logic [30:0] KERNEL_MAILBOX_OFFSET = 31'h40001000;
  localparam logic [30:0] KERNEL_SHIELD_OFFSET = 31'h40002000;
  localparam logic [30:0] KERNEL_NOISE_OFFSET = 31'h40003000;
  localparam logic [30:0] KERNEL_REQUEST_OFFSET = 31'h40004000;
  localparam logic [30:0] KERNEL_ANSWER_OFFSET = 31'h40006000;
  localparam logic [30:0] KERNEL_P256_OFFSET = 31'h40008000;
  localparam logic [30:0] KERNEL_HASH_OFFSET = 31'h40009000;
  localparam logic [30:0] KERNEL_AES_OFFSET = 31'h4000a000;
  localparam logic [30:0] KERNEL_CONFIG_OFFSET = 31'h4000b000;
  localparam logic [30:0] KERNEL_MEASURE_OFFSET = 31'h4000c000;

  typedef enum logic [3:0] {
    KERNEL_SEL_NONE = 4'd0,
    KERNEL_SEL_ROM = 4'd1,
    KERNEL_SEL_MEMORY = 4'd2,
    KERNEL_SEL_RAM = 4'd3,
    KERNEL_SEL_MEDIUM = 4'd4,
    KERNEL_SEL_SYS = 4'd5,
    KERNEL_SEL_MAILBOX = 4'd6,
    KERNEL_SEL_SHIELD = 4'd7,
    KERNEL_SEL_NOISE = 4'd8,
    KERNEL_SEL_REQUEST = 4'd9,
    KERNEL_SEL_ANSWER = 4'd10,
    KERNEL_SEL_P256 = 4'd11,
    KERNEL_SEL_HASH = 4'd12,
    KERNEL_SEL_AES = 4'd13,
    KERNEL_SEL_CONFIG = 4'd14,
    KERNEL_SEL_MEASURE = 4'd15
  } kernel_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic kernel_sel_e kernel_decode(input logic [30:0] addr);
    kernel_decode = KERNEL_SEL_NONE;
    if (addr <= 31'hffff) kernel_decode = KERNEL_SEL_ROM;
    if (addr >= 31'h10000000 && addr <= 31'h1003ffff) kernel_decode = KERNEL_SEL_MEMORY;
    if (addr >= 31'h20000000 && addr <= 31'h2003ffff) kernel_decode = KERNEL_SEL_RAM;
    if (addr >= 31'h30000000 && addr <= 31'h300fffff) kernel_decode = KERNEL_SEL_MEDIUM;
    if (addr >= 31'h40000000 && addr <= 31'h40000fff) kernel_decode = KERNEL_SEL_SYS;
    if (addr >= 31'h40001000 && addr <= 31'h40001fff) kernel_decode = KERNEL_SEL_MAILBOX;
    if (addr >= 31'h40002000 && addr <= 31'h40002fff) kernel_decode = KERNEL_SEL_SHIELD;
    if (addr >= 31'h40003000 && addr <= 31'h40003fff) kernel_decode = KERNEL_SEL_NOISE;
    if (addr >= 31'h40004000 && addr <= 31'h40005fff) kernel_decode = KERNEL_SEL_REQUEST;
    if (addr >= 31'h40006000 && addr <= 31'h40007fff) kernel_decode = KERNEL_SEL_ANSWER;
    if (addr >= 31'h40008000 && addr <= 31'h40008fff) kernel_decode = KERNEL_SEL_P256;
    if (addr >= 31'h40009000 && addr <= 31'h40009fff) kernel_decode = KERNEL_SEL_HASH;
    if (addr >= 31'h4000a000 && addr <= 31'h4000afff) kernel_decode = KERNEL_SEL_AES;
    if (addr >= 31'h4000b000 && addr <= 31'h4000bfff) kernel_decode = KERNEL_SEL_CONFIG;
    if (addr >= 31'h4000c000 && addr <= 31'h4000cfff) kernel_decode = KERNEL_SEL_MEASURE;
  endfunction

  function automatic logic kernel_readable(input kernel_sel_e sel);
    unique case (sel)
      KERNEL_SEL_ROM,
      KERNEL_SEL_MEMORY,
      KERNEL_SEL_RAM,
      KERNEL_SEL_MEDIUM,
      KERNEL_SEL_SYS,
      KERNEL_SEL_MAILBOX,
      KERNEL_SEL_SHIELD,
      KERNEL_SEL_NOISE,
      KERNEL_SEL_REQUEST,
      KERNEL_SEL_P256,
      KERNEL_SEL_HASH,
      KERNEL_SEL_AES,
      KERNEL_SEL_CONFIG,
      KERNEL_SEL_MEASURE: kernel_readable = 1'b1;
      default: kernel_readable = 1'b0;
    endcase
  endfunction

  function automatic logic kernel_writable(input kernel_sel_e sel);
    unique case (sel)
      KERNEL_SEL_MEMORY,
      KERNEL_SEL_RAM,
      KERNEL_SEL_SYS,
      KERNEL_SEL_MAILBOX,
      KERNEL_SEL_SHIELD,
      KERNEL_SEL_ANSWER,
      KERNEL_SEL_P256,
      KERNEL_SEL_HASH,
      KERNEL_SEL_AES,
      KERNEL_SEL_CONFIG,
      KERNEL_SEL_MEASURE: kernel_writable = 1'b1;
      default: kernel_writable = 1'b0;
    endcase
  endfunction

  // Identity, life and alarms of the Security Kernel; registers are written in whole words
  localparam logic [11:0] SYS_ID_OFFSET = 12'h0;
  localparam logic [11:0] SYS_CONTROL_OFFSET = 12'h4;
  localparam logic [11:0] SYS_STATUS_OFFSET = 12'h8;
  localparam logic [11:0] SYS_ALERT_OFFSET = 12'hc;
  localparam logic [11:0] SYS_TIMER_LO_OFFSET = 12'h10;
  localparam logic [11:0] SYS_TIMER_HI_OFFSET = 12'h14;
  localparam logic [11:0] SYS_WATCHDOG_OFFSET = 12'h18;
  localparam logic [11:0] SYS_ROOT_OFFSET = 12'h1c;
  localparam logic [11:0] SYS_UDS_OFFSET = 12'h20;
  localparam logic [11:0] SYS_TARGET_OFFSET = 12'h40;
  localparam logic [11:0] SYS_SHELL_OFFSET = 12'h60;
  localparam logic [11:0] SYS_SHELL_FLAGS_OFFSET = 12'h80;
  localparam logic [31:0] SYS_ID_RESET = 32'h4b454853;
  localparam int unsigned SYS_CONTROL_UDS_LOCK_LSB = 0;
  localparam int unsigned SYS_CONTROL_WIPE_LSB = 1;
  localparam int unsigned SYS_CONTROL_HALT_LSB = 2;
  localparam int unsigned SYS_CONTROL_READY_LSB = 3;
  localparam int unsigned SYS_STATUS_UDS_LOCKED_LSB = 0;
  localparam int unsigned SYS_STATUS_DEBUG_LSB = 1;
  localparam int unsigned SYS_STATUS_CLEARING_LSB = 2;
  localparam int unsigned SYS_STATUS_CLEARED_LSB = 3;
  localparam int unsigned SYS_STATUS_NO_SHIELD_LSB = 4;
  localparam int unsigned SYS_STATUS_READY_LSB = 5;
  localparam logic [31:0] SYS_ALERT_RESET = 32'h00000000;
  localparam int unsigned SYS_ALERT_CODE_LSB = 0;
  localparam logic [3:0] SYS_ALERT_CODE_DEBUG = 4'd7;
  localparam logic [3:0] SYS_ALERT_CODE_IMAGE = 4'd4;
  localparam logic [3:0] SYS_ALERT_CODE_MEMORY = 4'd3;
  localparam logic [3:0] SYS_ALERT_CODE_NOISE = 4'd5;
  localparam logic [3:0] SYS_ALERT_CODE_NONE = 4'd0;
  localparam logic [3:0] SYS_ALERT_CODE_PANIC = 4'd2;
  localparam logic [3:0] SYS_ALERT_CODE_TRAP = 4'd1;
  localparam logic [3:0] SYS_ALERT_CODE_WATCHDOG = 4'd6;
  localparam logic [31:0] SYS_WATCHDOG_RESET = 32'h00000000;
  localparam int unsigned SYS_ROOT_KIND_LSB = 0;
  localparam logic [1:0] SYS_ROOT_KIND_BOARD = 2'd2;
  localparam logic [1:0] SYS_ROOT_KIND_PROVIDER = 2'd3;
  localparam logic [1:0] SYS_ROOT_KIND_SHEF_BOOT = 2'd1;
  localparam logic [1:0] SYS_ROOT_KIND_SIMULATED = 2'd0;
  localparam int unsigned SYS_SHELL_FLAGS_CONFIGURATION_LSB = 0;
  localparam int unsigned SYS_SHELL_FLAGS_READBACK_LSB = 1;
  localparam int unsigned SYS_SHELL_FLAGS_DEBUG_BRIDGE_LSB = 2;

  typedef enum logic [3:0] {
    SYS_SEL_NONE = 4'd0,
    SYS_SEL_ID = 4'd1,
    SYS_SEL_CONTROL = 4'd2,
    SYS_SEL_STATUS = 4'd3,
    SYS_SEL_ALERT = 4'd4,
    SYS_SEL_TIMER_LO = 4'd5,
    SYS_SEL_TIMER_HI = 4'd6,
    SYS_SEL_WATCHDOG = 4'd7,
    SYS_SEL_ROOT = 4'd8,
    SYS_SEL_UDS = 4'd9,
    SYS_SEL_TARGET = 4'd10,
    SYS_SEL_SHELL = 4'd11,
    SYS_SEL_SHELL_FLAGS = 4'd12
  } sys_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic sys_sel_e sys_decode(input logic [11:0] addr);
    sys_decode = SYS_SEL_NONE;
    if (addr <= 12'h3) sys_decode = SYS_SEL_ID;
    if (addr >= 12'h4 && addr <= 12'h7) sys_decode = SYS_SEL_CONTROL;
    if (addr >= 12'h8 && addr <= 12'hb) sys_decode = SYS_SEL_STATUS;
    if (addr >= 12'hc && addr <= 12'hf) sys_decode = SYS_SEL_ALERT;
    if (addr >= 12'h10 && addr <= 12'h13) sys_decode = SYS_SEL_TIMER_LO;
    if (addr >= 12'h14 && addr <= 12'h17) sys_decode = SYS_SEL_TIMER_HI;
    if (addr >= 12'h18 && addr <= 12'h1b) sys_decode = SYS_SEL_WATCHDOG;
    if (addr >= 12'h1c && addr <= 12'h1f) sys_decode = SYS_SEL_ROOT;
    if (addr >= 12'h20 && addr <= 12'h3f) sys_decode = SYS_SEL_UDS;
    if (addr >= 12'h40 && addr <= 12'h5f) sys_decode = SYS_SEL_TARGET;
    if (addr >= 12'h60 && addr <= 12'h7f) sys_decode = SYS_SEL_SHELL;
    if (addr >= 12'h80 && addr <= 12'h83) sys_decode = SYS_SEL_SHELL_FLAGS;
  endfunction

  function automatic logic sys_readable(input sys_sel_e sel);
    unique case (sel)
      SYS_SEL_ID,
      SYS_SEL_STATUS,
      SYS_SEL_ALERT,
      SYS_SEL_TIMER_LO,
      SYS_SEL_TIMER_HI,
      SYS_SEL_WATCHDOG,
      SYS_SEL_ROOT,
      SYS_SEL_UDS,
      SYS_SEL_TARGET,
      SYS_SEL_SHELL,
      SYS_SEL_SHELL_FLAGS: sys_readable = 1'b1;
      default: sys_readable = 1'b0;
    endcase
  endfunction

  function automatic logic sys_writable(input sys_sel_e sel);
    unique case (sel)
      SYS_SEL_CONTROL,
      SYS_SEL_ALERT,
      SYS_SEL_WATCHDOG: sys_writable = 1'b1;
      default: sys_writable = 1'b0;
    endcase
  endfunction

  // The Security Kernel's side of the mailbox; the host's side is in kernel-mailbox.md
  localparam logic [11:0] MAILBOX_REQ_LEN_OFFSET = 12'h0;
  localparam logic [11:0] MAILBOX_STATUS_OFFSET = 12'h4;
  localparam logic [11:0] MAILBOX_RSP_LEN_OFFSET = 12'h8;
  localparam logic [31:0] MAILBOX_REQ_LEN_RESET = 32'h00000000;
  localparam logic [31:0] MAILBOX_STATUS_RESET = 32'h00000000;
  localparam int unsigned MAILBOX_STATUS_WAITING_LSB = 0;

  typedef enum logic [1:0] {
    MAILBOX_SEL_NONE = 2'd0,
    MAILBOX_SEL_REQ_LEN = 2'd1,
    MAILBOX_SEL_STATUS = 2'd2,
    MAILBOX_SEL_RSP_LEN = 2'd3
  } mailbox_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic mailbox_sel_e mailbox_decode(input logic [11:0] addr);
    mailbox_decode = MAILBOX_SEL_NONE;
    if (addr <= 12'h3) mailbox_decode = MAILBOX_SEL_REQ_LEN;
    if (addr >= 12'h4 && addr <= 12'h7) mailbox_decode = MAILBOX_SEL_STATUS;
    if (addr >= 12'h8 && addr <= 12'hb) mailbox_decode = MAILBOX_SEL_RSP_LEN;
  endfunction

  function automatic logic mailbox_readable(input mailbox_sel_e sel);
    unique case (sel)
      MAILBOX_SEL_REQ_LEN,
      MAILBOX_SEL_STATUS: mailbox_readable = 1'b1;
      default: mailbox_readable = 1'b0;
    endcase
  endfunction

  function automatic logic mailbox_writable(input mailbox_sel_e sel);
    unique case (sel)
      MAILBOX_SEL_RSP_LEN: mailbox_writable = 1'b1;
      default: mailbox_writable = 1'b0;
    endcase
  endfunction

  // Raw bits of the noise source, tested
  localparam logic [11:0] NOISE_STATUS_OFFSET = 12'h0;
  localparam logic [11:0] NOISE_WORD_OFFSET = 12'h4;
  localparam int unsigned NOISE_STATUS_TESTED_LSB = 0;
  localparam int unsigned NOISE_STATUS_WORD_LSB = 1;
  localparam int unsigned NOISE_STATUS_REPETITION_LSB = 8;
  localparam int unsigned NOISE_STATUS_PROPORTION_LSB = 9;
  localparam int unsigned NOISE_STATUS_SILENCE_LSB = 10;
  localparam int unsigned NOISE_STATUS_LAG_LSB = 11;
  localparam int unsigned NOISE_STATUS_SOURCE_LSB = 12;
  localparam logic [1:0] NOISE_STATUS_SOURCE_MEASURED = 2'd0;
  localparam logic [1:0] NOISE_STATUS_SOURCE_SEEDED = 2'd1;
  localparam logic [1:0] NOISE_STATUS_SOURCE_UNMEASURED = 2'd3;

  typedef enum logic [1:0] {
    NOISE_SEL_NONE = 2'd0,
    NOISE_SEL_STATUS = 2'd1,
    NOISE_SEL_WORD = 2'd2
  } noise_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic noise_sel_e noise_decode(input logic [11:0] addr);
    noise_decode = NOISE_SEL_NONE;
    if (addr <= 12'h3) noise_decode = NOISE_SEL_STATUS;
    if (addr >= 12'h4 && addr <= 12'h7) noise_decode = NOISE_SEL_WORD;
  endfunction

  function automatic logic noise_readable(input noise_sel_e sel);
    unique case (sel)
      NOISE_SEL_STATUS,
      NOISE_SEL_WORD: noise_readable = 1'b1;
      default: noise_readable = 1'b0;
    endcase
  endfunction

  function automatic logic noise_writable(input noise_sel_e sel);
    unique case (sel)
      default: noise_writable = 1'b0;
    endcase
  endfunction

  // A unit of cryptography on a stream of bytes: an access waits until the unit takes or has what it needs, and is a bus error after 262,144 cycles
  localparam logic [11:0] UNIT_CMD_OFFSET = 12'h0;
  localparam logic [11:0] UNIT_STATUS_OFFSET = 12'h4;
  localparam logic [11:0] UNIT_DATA4_OFFSET = 12'h8;
  localparam logic [11:0] UNIT_DATA1_OFFSET = 12'hc;
  localparam logic [11:0] UNIT_WIPE_OFFSET = 12'h10;
  localparam int unsigned UNIT_CMD_COMMAND_LSB = 0;
  localparam int unsigned UNIT_CMD_LEN_LSB = 16;
  localparam int unsigned UNIT_STATUS_READY_LSB = 0;
  localparam int unsigned UNIT_STATUS_OK_LSB = 1;
  localparam int unsigned UNIT_STATUS_READABLE_LSB = 8;
  localparam int unsigned UNIT_STATUS_WRITABLE_LSB = 12;

  typedef enum logic [2:0] {
    UNIT_SEL_NONE = 3'd0,
    UNIT_SEL_CMD = 3'd1,
    UNIT_SEL_STATUS = 3'd2,
    UNIT_SEL_DATA4 = 3'd3,
    UNIT_SEL_DATA1 = 3'd4,
    UNIT_SEL_WIPE = 3'd5
  } unit_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic unit_sel_e unit_decode(input logic [11:0] addr);
    unit_decode = UNIT_SEL_NONE;
    if (addr <= 12'h3) unit_decode = UNIT_SEL_CMD;
    if (addr >= 12'h4 && addr <= 12'h7) unit_decode = UNIT_SEL_STATUS;
    if (addr >= 12'h8 && addr <= 12'hb) unit_decode = UNIT_SEL_DATA4;
    if (addr >= 12'hc && addr <= 12'hf) unit_decode = UNIT_SEL_DATA1;
    if (addr >= 12'h10 && addr <= 12'h13) unit_decode = UNIT_SEL_WIPE;
  endfunction

  function automatic logic unit_readable(input unit_sel_e sel);
    unique case (sel)
      UNIT_SEL_STATUS,
      UNIT_SEL_DATA4,
      UNIT_SEL_DATA1: unit_readable = 1'b1;
      default: unit_readable = 1'b0;
    endcase
  endfunction

  function automatic logic unit_writable(input unit_sel_e sel);
    unique case (sel)
      UNIT_SEL_CMD,
      UNIT_SEL_DATA4,
      UNIT_SEL_DATA1,
      UNIT_SEL_WIPE: unit_writable = 1'b1;
      default: unit_writable = 1'b0;
    endcase
  endfunction

  // Configuration port of the fabric
  localparam logic [11:0] CONFIG_CONTROL_OFFSET = 12'h0;
  localparam logic [11:0] CONFIG_STATUS_OFFSET = 12'h4;
  localparam logic [11:0] CONFIG_DATA_OFFSET = 12'h8;
  localparam logic [11:0] CONFIG_DESIGN_OFFSET = 12'h20;
  localparam int unsigned CONFIG_CONTROL_BEGIN_LSB = 0;
  localparam int unsigned CONFIG_CONTROL_FINISH_LSB = 1;
  localparam int unsigned CONFIG_CONTROL_CLEAR_LSB = 2;
  localparam int unsigned CONFIG_STATUS_BUSY_LSB = 0;
  localparam int unsigned CONFIG_STATUS_ACTIVE_LSB = 1;
  localparam int unsigned CONFIG_STATUS_ERROR_LSB = 2;

  typedef enum logic [2:0] {
    CONFIG_SEL_NONE = 3'd0,
    CONFIG_SEL_CONTROL = 3'd1,
    CONFIG_SEL_STATUS = 3'd2,
    CONFIG_SEL_DATA = 3'd3,
    CONFIG_SEL_DESIGN = 3'd4
  } config_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic config_sel_e config_decode(input logic [11:0] addr);
    config_decode = CONFIG_SEL_NONE;
    if (addr <= 12'h3) config_decode = CONFIG_SEL_CONTROL;
    if (addr >= 12'h4 && addr <= 12'h7) config_decode = CONFIG_SEL_STATUS;
    if (addr >= 12'h8 && addr <= 12'hb) config_decode = CONFIG_SEL_DATA;
    if (addr >= 12'h20 && addr <= 12'h3f) config_decode = CONFIG_SEL_DESIGN;
  endfunction

  function automatic logic config_readable(input config_sel_e sel);
    unique case (sel)
      CONFIG_SEL_STATUS,
      CONFIG_SEL_DESIGN: config_readable = 1'b1;
      default: config_readable = 1'b0;
    endcase
  endfunction

  function automatic logic config_writable(input config_sel_e sel);
    unique case (sel)
      CONFIG_SEL_CONTROL,
      CONFIG_SEL_DATA: config_writable = 1'b1;
      default: config_writable = 1'b0;
    endcase
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
