// Types and constants of the adapter to the shell of AWS F2.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_f2_pkg;
  // clk_main_a0.
  localparam int unsigned MAIN_KHZ = 250_000;
  // Oscillator of the MMCM of the core's clock: 4 times clk_main_a0.
  localparam int unsigned VCO_KHZ = 1_000_000;

  // Boot medium: 32-bit words, and where it begins in BAR0.
  localparam int unsigned MEDIUM_WORDS = 17 * 4096;
  localparam int unsigned MEDIUM_AW = $clog2(MEDIUM_WORDS);
  localparam logic [31:0] MEDIUM_BASE = 32'h0100_0000;

  // The accelerator's interrupt; the others are those of the DMA engine.
  localparam logic [15:0] ACCELERATOR_VECTOR = 16'd15;

  // An access of BAR0 that the core's clock answers: to the control window, or with boot to a word of
  // the medium.
  typedef struct packed {
    logic boot;
    logic write;
    logic [16:0] addr;  // bit 16 for boot only
    logic [31:0] data;
    logic [3:0] strb;
  } access_t;

  typedef struct packed {
    logic error;
    logic [31:0] data;
  } answer_t;

  // What the adapter page shows.
  typedef struct packed {
    logic [3:0] alert;
    logic wiping;
    logic frozen;
    logic memory_ready;
    logic ready;
    logic running;
    logic locked;
  } status_t;

  // Counter that stops at its highest value.
  function automatic logic [31:0] count(input logic [31:0] value, input logic event_i);
    count = value + 32'(event_i && value != '1);
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
