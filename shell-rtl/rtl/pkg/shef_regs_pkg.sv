// Generated from shell-rtl/regs/ctl.toml by `cargo xtask generate`; do not edit.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_regs_pkg;

  // Control window of the Shield (BAR0, AXI4-Lite, 64 KiB), reached by the untrusted host
  localparam logic [15:0] CTL_MAGIC_OFFSET = 16'h0;
  localparam logic [15:0] CTL_VERSION_OFFSET = 16'h4;
  localparam logic [15:0] CTL_SHELL_OFFSET = 16'h8;
  localparam logic [15:0] CTL_CLOCK_KHZ_OFFSET = 16'hc;
  localparam logic [15:0] CTL_SHAPE_OFFSET = 16'h10;
  localparam logic [15:0] CTL_CONFIG_DIGEST_OFFSET = 16'h20;
  localparam logic [15:0] CTL_STATUS_OFFSET = 16'h100;
  localparam logic [15:0] CTL_CONFIRM_OFFSET = 16'h120;
  localparam logic [15:0] CTL_LOAD_DOORBELL_OFFSET = 16'h200;
  localparam logic [15:0] CTL_CHAN_DOORBELL_OFFSET = 16'h204;
  localparam logic [15:0] CTL_LOAD_MSG_OFFSET = 16'h1000;
  localparam logic [15:0] CTL_CHAN_REQ_OFFSET = 16'h2000;
  localparam logic [15:0] CTL_CHAN_RSP_OFFSET = 16'h2100;
  localparam logic [31:0] CTL_MAGIC_RESET = 32'h46454853;
  localparam logic [31:0] CTL_VERSION_RESET = 32'h00010000;
  localparam logic [31:0] CTL_CLOCK_KHZ_RESET = 32'h0003d090;
  localparam int unsigned CTL_SHAPE_PORTS_LSB = 0;
  localparam int unsigned CTL_SHAPE_SETS_LSB = 4;
  localparam int unsigned CTL_SHAPE_REGIONS_LSB = 8;
  localparam int unsigned CTL_STATUS_STATE_LSB = 0;
  localparam logic [2:0] CTL_STATUS_STATE_CLOSED = 3'd5;
  localparam logic [2:0] CTL_STATUS_STATE_DERIVE = 3'd2;
  localparam logic [2:0] CTL_STATUS_STATE_EMPTY = 3'd1;
  localparam logic [2:0] CTL_STATUS_STATE_FRESH = 3'd3;
  localparam logic [2:0] CTL_STATUS_STATE_KEYED = 3'd4;
  localparam logic [2:0] CTL_STATUS_STATE_SCRUB = 3'd0;
  localparam int unsigned CTL_STATUS_STOPPED_LSB = 3;
  localparam int unsigned CTL_STATUS_LOAD_BUSY_LSB = 4;
  localparam int unsigned CTL_STATUS_LOAD_REFUSED_LSB = 5;
  localparam int unsigned CTL_STATUS_CHAN_BUSY_LSB = 6;
  localparam int unsigned CTL_STATUS_CHAN_REFUSED_LSB = 7;
  localparam int unsigned CTL_STATUS_CHAN_ANSWER_LSB = 8;
  localparam int unsigned CTL_STATUS_UNCLEARED_LSB = 9;
  localparam int unsigned CTL_STATUS_FAULT_KIND_LSB = 12;
  localparam logic [3:0] CTL_STATUS_FAULT_KIND_BUS = 4'd2;
  localparam logic [3:0] CTL_STATUS_FAULT_KIND_INTERNAL = 4'd6;
  localparam logic [3:0] CTL_STATUS_FAULT_KIND_NODE = 4'd5;
  localparam logic [3:0] CTL_STATUS_FAULT_KIND_NONE = 4'd0;
  localparam logic [3:0] CTL_STATUS_FAULT_KIND_PROTOCOL = 4'd4;
  localparam logic [3:0] CTL_STATUS_FAULT_KIND_TAG = 4'd1;
  localparam logic [3:0] CTL_STATUS_FAULT_KIND_TIMEOUT = 4'd3;
  localparam int unsigned CTL_LOAD_DOORBELL_LEN_LSB = 0;

  typedef enum logic [3:0] {
    CTL_SEL_NONE = 4'd0,
    CTL_SEL_MAGIC = 4'd1,
    CTL_SEL_VERSION = 4'd2,
    CTL_SEL_SHELL = 4'd3,
    CTL_SEL_CLOCK_KHZ = 4'd4,
    CTL_SEL_SHAPE = 4'd5,
    CTL_SEL_CONFIG_DIGEST = 4'd6,
    CTL_SEL_STATUS = 4'd7,
    CTL_SEL_CONFIRM = 4'd8,
    CTL_SEL_LOAD_DOORBELL = 4'd9,
    CTL_SEL_CHAN_DOORBELL = 4'd10,
    CTL_SEL_LOAD_MSG = 4'd11,
    CTL_SEL_CHAN_REQ = 4'd12,
    CTL_SEL_CHAN_RSP = 4'd13
  } ctl_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic ctl_sel_e ctl_decode(input logic [15:0] addr);
    ctl_decode = CTL_SEL_NONE;
    if (addr <= 16'h3) ctl_decode = CTL_SEL_MAGIC;
    if (addr >= 16'h4 && addr <= 16'h7) ctl_decode = CTL_SEL_VERSION;
    if (addr >= 16'h8 && addr <= 16'hb) ctl_decode = CTL_SEL_SHELL;
    if (addr >= 16'hc && addr <= 16'hf) ctl_decode = CTL_SEL_CLOCK_KHZ;
    if (addr >= 16'h10 && addr <= 16'h13) ctl_decode = CTL_SEL_SHAPE;
    if (addr >= 16'h20 && addr <= 16'h3f) ctl_decode = CTL_SEL_CONFIG_DIGEST;
    if (addr >= 16'h100 && addr <= 16'h103) ctl_decode = CTL_SEL_STATUS;
    if (addr >= 16'h120 && addr <= 16'h13f) ctl_decode = CTL_SEL_CONFIRM;
    if (addr >= 16'h200 && addr <= 16'h203) ctl_decode = CTL_SEL_LOAD_DOORBELL;
    if (addr >= 16'h204 && addr <= 16'h207) ctl_decode = CTL_SEL_CHAN_DOORBELL;
    if (addr >= 16'h1000 && addr <= 16'h13ff) ctl_decode = CTL_SEL_LOAD_MSG;
    if (addr >= 16'h2000 && addr <= 16'h2057) ctl_decode = CTL_SEL_CHAN_REQ;
    if (addr >= 16'h2100 && addr <= 16'h2157) ctl_decode = CTL_SEL_CHAN_RSP;
  endfunction

  function automatic logic ctl_readable(input ctl_sel_e sel);
    unique case (sel)
      CTL_SEL_MAGIC,
      CTL_SEL_VERSION,
      CTL_SEL_SHELL,
      CTL_SEL_CLOCK_KHZ,
      CTL_SEL_SHAPE,
      CTL_SEL_CONFIG_DIGEST,
      CTL_SEL_STATUS,
      CTL_SEL_CONFIRM,
      CTL_SEL_CHAN_RSP: ctl_readable = 1'b1;
      default: ctl_readable = 1'b0;
    endcase
  endfunction

  function automatic logic ctl_writable(input ctl_sel_e sel);
    unique case (sel)
      CTL_SEL_LOAD_DOORBELL,
      CTL_SEL_CHAN_DOORBELL,
      CTL_SEL_LOAD_MSG,
      CTL_SEL_CHAN_REQ: ctl_writable = 1'b1;
      default: ctl_writable = 1'b0;
    endcase
  endfunction

  // Kernel port (AXI4-Lite, 4 KiB), reached by the Security Kernel only
  localparam logic [11:0] KRN_CTRL_OFFSET = 12'h0;
  localparam logic [11:0] KRN_STATUS_OFFSET = 12'h4;
  localparam logic [11:0] KRN_SEED_OFFSET = 12'h20;
  localparam logic [11:0] KRN_PUBKEY_OFFSET = 12'h40;
  localparam logic [11:0] KRN_T_OFFSET = 12'h80;
  localparam logic [11:0] KRN_CONFIG_DIGEST_OFFSET = 12'ha0;
  localparam logic [11:0] KRN_LAST_OFFSET = 12'h100;
  localparam int unsigned KRN_CTRL_SEED_LSB = 0;
  localparam int unsigned KRN_CTRL_WIPE_LSB = 1;

  typedef enum logic [2:0] {
    KRN_SEL_NONE = 3'd0,
    KRN_SEL_CTRL = 3'd1,
    KRN_SEL_STATUS = 3'd2,
    KRN_SEL_SEED = 3'd3,
    KRN_SEL_PUBKEY = 3'd4,
    KRN_SEL_T = 3'd5,
    KRN_SEL_CONFIG_DIGEST = 3'd6,
    KRN_SEL_LAST = 3'd7
  } krn_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic krn_sel_e krn_decode(input logic [11:0] addr);
    krn_decode = KRN_SEL_NONE;
    if (addr <= 12'h3) krn_decode = KRN_SEL_CTRL;
    if (addr >= 12'h4 && addr <= 12'h7) krn_decode = KRN_SEL_STATUS;
    if (addr >= 12'h20 && addr <= 12'h3f) krn_decode = KRN_SEL_SEED;
    if (addr >= 12'h40 && addr <= 12'h7f) krn_decode = KRN_SEL_PUBKEY;
    if (addr >= 12'h80 && addr <= 12'h9f) krn_decode = KRN_SEL_T;
    if (addr >= 12'ha0 && addr <= 12'hbf) krn_decode = KRN_SEL_CONFIG_DIGEST;
    if (addr >= 12'h100 && addr <= 12'h157) krn_decode = KRN_SEL_LAST;
  endfunction

  function automatic logic krn_readable(input krn_sel_e sel);
    unique case (sel)
      KRN_SEL_STATUS,
      KRN_SEL_PUBKEY,
      KRN_SEL_T,
      KRN_SEL_CONFIG_DIGEST,
      KRN_SEL_LAST: krn_readable = 1'b1;
      default: krn_readable = 1'b0;
    endcase
  endfunction

  function automatic logic krn_writable(input krn_sel_e sel);
    unique case (sel)
      KRN_SEL_CTRL,
      KRN_SEL_SEED: krn_writable = 1'b1;
      default: krn_writable = 1'b0;
    endcase
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
