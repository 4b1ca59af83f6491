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
  localparam logic [255:0] CONFIG_DIGEST = 256'h318d33ca7ea329b7c95550a7d3b462fc9a5ccf21e42783972c0f091493043625;

  // S-boxes of the engine sets in block RAM; no part of the configuration
  localparam bit SBOX_RAM = 1'b0;

  localparam int unsigned N_REGIONS = 3;

  // SETS[i] is engine set i
  localparam shef_pkg::set_cfg_t [N_SETS-1:0] SETS = {
    shef_pkg::set_cfg_t'{
      lanes: 8'd4,
      big_lines: 16'd8,
      small_lines: 16'd32,
      ring_beats: 16'd512,
      acc: 2'd0,
      port: 2'd0,
      cache_bytes: 32'd0,
      cache_line: 13'd0
    }
  };

  // train: 1024 KiB in chunks of 4096 B
  localparam shef_pkg::region_cfg_t REGION_0 = '{
    id: 8'd0,
    mode: shef_pkg::MODE_INPUT,
    base: 64'h0000_0000_0000_0000,
    size: 64'h0000_0000_0010_0000,
    tag_base: 64'h0000_0000_0030_0000,
    chunk_log2: 4'd12,
    key256: 1'b1,
    set: 2'd0,
    node_base: 64'h0000_0000_0000_0000,
    prefetch: 4'd0,
    wide_counter: 1'b0
  };

  // query: 1024 KiB in chunks of 512 B
  localparam shef_pkg::region_cfg_t REGION_1 = '{
    id: 8'd1,
    mode: shef_pkg::MODE_INPUT,
    base: 64'h0000_0000_0010_0000,
    size: 64'h0000_0000_0010_0000,
    tag_base: 64'h0000_0000_0030_1000,
    chunk_log2: 4'd9,
    key256: 1'b1,
    set: 2'd0,
    node_base: 64'h0000_0000_0000_0000,
    prefetch: 4'd0,
    wide_counter: 1'b0
  };

  // result: 256 KiB in chunks of 512 B
  localparam shef_pkg::region_cfg_t REGION_2 = '{
    id: 8'd2,
    mode: shef_pkg::MODE_OUTPUT,
    base: 64'h0000_0000_0020_0000,
    size: 64'h0000_0000_0004_0000,
    tag_base: 64'h0000_0000_0030_9000,
    chunk_log2: 4'd9,
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
