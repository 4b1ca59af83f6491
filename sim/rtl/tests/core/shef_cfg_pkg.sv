// Configuration of the Shield, generated from shield.toml by `shef shield generate`; do not edit.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_cfg_pkg;

  localparam int unsigned N_PORTS = 1;
  localparam int unsigned N_SETS = 1;
  localparam int unsigned N_ACC = 1;
  localparam shef_pkg::on_fault_e ON_FAULT = shef_pkg::ON_FAULT_SHIELD;

  // SHA-256 of the configuration's deterministic CBOR; byte 0 in [255:248]
  localparam logic [255:0] CONFIG_DIGEST = 256'hcfb2552b501af3e1fabdcd1a6be991c4acb9c68e6d72a52bc5af141443dbbdf4;

  // S-boxes of the engine sets in block RAM; no part of the configuration
  localparam bit SBOX_RAM = 1'b0;

  localparam int unsigned N_REGIONS = 3;

  // SETS[i] is engine set i
  localparam shef_pkg::set_cfg_t [N_SETS-1:0] SETS = {
    shef_pkg::set_cfg_t'{
      lanes: 8'd1,
      big_lines: 16'd3,
      small_lines: 16'd4,
      ring_beats: 16'd128,
      acc: 2'd0,
      port: 2'd0,
      cache_bytes: 32'd0,
      cache_line: 13'd0
    }
  };

  // in128: 64 KiB in chunks of 512 B
  localparam shef_pkg::region_cfg_t REGION_0 = '{
    id: 8'd0,
    mode: shef_pkg::MODE_INPUT,
    base: 64'h0000_0000_0000_0000,
    size: 64'h0000_0000_0001_0000,
    tag_base: 64'h0000_0000_0030_0000,
    chunk_log2: 4'd9,
    key256: 1'b0,
    set: 2'd0,
    node_base: 64'h0000_0000_0000_0000,
    prefetch: 4'd0,
    wide_counter: 1'b0
  };

  // out: 512 KiB in chunks of 512 B
  localparam shef_pkg::region_cfg_t REGION_1 = '{
    id: 8'd1,
    mode: shef_pkg::MODE_OUTPUT,
    base: 64'h0000_0000_0010_0000,
    size: 64'h0000_0000_0008_0000,
    tag_base: 64'h0000_0000_0031_0000,
    chunk_log2: 4'd9,
    key256: 1'b1,
    set: 2'd0,
    node_base: 64'h0000_0000_0000_0000,
    prefetch: 4'd0,
    wide_counter: 1'b0
  };

  // in256: 64 KiB in chunks of 4096 B
  localparam shef_pkg::region_cfg_t REGION_2 = '{
    id: 8'd2,
    mode: shef_pkg::MODE_INPUT,
    base: 64'h0000_0000_0020_0000,
    size: 64'h0000_0000_0001_0000,
    tag_base: 64'h0000_0000_0032_0000,
    chunk_log2: 4'd12,
    key256: 1'b1,
    set: 2'd0,
    node_base: 64'h0000_0000_0000_0000,
    prefetch: 4'd0,
    wide_counter: 1'b0
  };

  // REGIONS[i] is region i
  localparam shef_pkg::region_cfg_t [N_REGIONS-1:0] REGIONS = {REGION_2, REGION_1, REGION_0};

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
