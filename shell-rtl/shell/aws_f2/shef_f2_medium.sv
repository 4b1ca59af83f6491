// Boot medium in block RAM: the host writes it while the core is in reset, the Security Kernel
// reads it.
//
// en_i, we_i, ...: the host's port, on clk_i (shef_f2_ctl); data in the next cycle.
// medium_*: as in shef_system, on kernel_clk_i, whose edges are edges of clk_i. A word takes two of
// its cycles; a word beyond the end is an error. Contents survive a reset: nothing on a boot medium
// is trusted or secret.
`default_nettype none
module shef_f2_medium
  import shef_f2_pkg::*;
(
    input  wire logic clk_i,
    input  wire logic en_i,
    input  wire logic we_i,
    input  wire logic [MEDIUM_AW-1:0] addr_i,
    input  wire logic [31:0] data_i,
    output logic [31:0] data_o,
    input  wire logic kernel_clk_i,
    input  wire logic kernel_rst_ni,
    input  wire logic medium_valid_i,
    input  wire logic [17:0] medium_addr_i,
    output logic        medium_ready_o,
    output logic [31:0] medium_data_o,
    output logic        medium_err_o
);
  (* ram_style = "block" *) logic [31:0] word_q[MEDIUM_WORDS];
  logic ready_q, err_q;
  logic [31:0] kernel_data_q;

  assign medium_ready_o = ready_q;
  assign medium_err_o = err_q;
  assign medium_data_o = err_q ? '0 : kernel_data_q;

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      if (we_i) word_q[addr_i] <= data_i;
      data_o <= word_q[addr_i];
    end
  end

  always_ff @(posedge kernel_clk_i) begin
    if (medium_valid_i) kernel_data_q <= word_q[medium_addr_i[MEDIUM_AW-1:0]];
  end

  always_ff @(posedge kernel_clk_i) begin
    ready_q <= kernel_rst_ni && medium_valid_i && !ready_q;
    err_q <= medium_addr_i >= 18'(MEDIUM_WORDS);
  end
endmodule
`default_nettype wire
