// Configuration of the Shield, generated from shield.toml by `shef-gen shield generate`; do not edit.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_cfg_pkg;

  localparam int unsigned N_PORTS = 1;
  localparam int unsigned N_SETS = 1;
  localparam int unsigned LANES = 1;
  localparam int unsigned BIG_LINES = 3;
  localparam int unsigned SMALL_LINES = 4;
  localparam int unsigned RING_BEATS = 128;

  // SHA-256 of the configuration's deterministic CBOR; byte 0 in [255:248]
  localparam logic [255:0] CONFIG_DIGEST = 256'h9bdea40eb730eb18f1e6801660b7979831c9b20e2a449396c8be0c63653b8cac;

  localparam int unsigned N_REGIONS = 3;

  // in128: 64 KiB in chunks of 512 B
  localparam shef_pkg::region_cfg_t REGION_0 = '{
    id: 8'd0,
    mode: shef_pkg::MODE_INPUT,
    base: 64'h0000_0000_0000_0000,
    size: 64'h0000_0000_0001_0000,
    tag_base: 64'h0000_0000_0030_0000,
    chunk_log2: 4'd9,
    key256: 1'b0
  };

  // out: 512 KiB in chunks of 512 B
  localparam shef_pkg::region_cfg_t REGION_1 = '{
    id: 8'd1,
    mode: shef_pkg::MODE_OUTPUT,
    base: 64'h0000_0000_0010_0000,
    size: 64'h0000_0000_0008_0000,
    tag_base: 64'h0000_0000_0031_0000,
    chunk_log2: 4'd9,
    key256: 1'b1
  };

  // in256: 64 KiB in chunks of 4096 B
  localparam shef_pkg::region_cfg_t REGION_2 = '{
    id: 8'd2,
    mode: shef_pkg::MODE_INPUT,
    base: 64'h0000_0000_0020_0000,
    size: 64'h0000_0000_0001_0000,
    tag_base: 64'h0000_0000_0032_0000,
    chunk_log2: 4'd12,
    key256: 1'b1
  };

  // REGIONS[i] is region i
  localparam shef_pkg::region_cfg_t [N_REGIONS-1:0] REGIONS = {REGION_2, REGION_1, REGION_0};

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
