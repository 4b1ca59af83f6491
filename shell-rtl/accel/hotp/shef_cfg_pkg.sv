// Configuration of the Shield, generated from shield.toml by `shef shield generate`; do not edit.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_cfg_pkg;

  localparam int unsigned N_PORTS = 1;
  localparam int unsigned N_SETS = 0;
  localparam int unsigned N_ACC = 1;
  localparam shef_pkg::on_fault_e ON_FAULT = shef_pkg::ON_FAULT_SHIELD;

  // SHA-256 of the configuration's deterministic CBOR; byte 0 in [255:248]
  localparam logic [255:0] CONFIG_DIGEST = 256'hbc756feff19efa7d00a7bec6acc9c18b4e3ed3e22b2bd3a82145ac2237baf1ea;

  // S-boxes of the engine sets in block RAM; no part of the configuration
  localparam bit SBOX_RAM = 1'b0;

  localparam int unsigned N_REGIONS = 0;

  // SETS[i] is engine set i
  localparam shef_pkg::set_cfg_t [0:0] SETS = '0;

  // REGIONS[i] is region i
  localparam shef_pkg::region_cfg_t [0:0] REGIONS = '0;

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
