// The fabric behind the configuration port of shef_system if the shell loads images itself (AWS F2,
// root of trust `provider`): the design is already present.
//
// cfg_*: as in shef_system. Words are taken, one a cycle, and dropped; the design is active after
// the last one until the next begin or clear, and inactive after reset.
`default_nettype none
module shef_cfg_fixed (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic cfg_begin_i,
    input  wire logic cfg_clear_i,
    input  wire logic cfg_valid_i,
    output logic      cfg_ready_o,
    input  wire logic [31:0] cfg_data_i,
    input  wire logic cfg_last_i,
    output logic      cfg_busy_o,
    output logic      cfg_active_o,
    output logic      cfg_error_o
);

  logic open_q, active_q;
  logic unused_data;
  assign unused_data = ^cfg_data_i;
  assign cfg_ready_o = 1'b1;
  assign cfg_busy_o = open_q;
  assign cfg_active_o = active_q;
  assign cfg_error_o = 1'b0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || cfg_begin_i || cfg_clear_i) begin
      open_q <= rst_ni && cfg_begin_i && !cfg_clear_i;
      active_q <= 1'b0;
    end else if (open_q && cfg_valid_i && cfg_last_i) begin
      open_q <= 1'b0;
      active_q <= 1'b1;
    end
  end

endmodule
`default_nettype wire
