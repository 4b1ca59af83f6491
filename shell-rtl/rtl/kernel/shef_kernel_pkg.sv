// The devices on the Security Kernel's bus.
`default_nettype none
package shef_kernel_pkg;

  localparam int unsigned DEVICES = 10;
  localparam int unsigned DEV_MEDIUM = 0;
  localparam int unsigned DEV_SYS = 1;
  localparam int unsigned DEV_MAILBOX = 2;
  localparam int unsigned DEV_SHIELD = 3;
  localparam int unsigned DEV_NOISE = 4;
  localparam int unsigned DEV_P256 = 5;
  localparam int unsigned DEV_HASH = 6;
  localparam int unsigned DEV_AES = 7;
  localparam int unsigned DEV_CONFIG = 8;
  localparam int unsigned DEV_MEASURE = 9;
  typedef logic [DEVICES-1:0] dev_sel_t;

endpackage
`default_nettype wire
