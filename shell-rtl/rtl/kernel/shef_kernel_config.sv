// Configuration port of the Security Kernel: sends an image, in order, once, to the fabric's
// programmer.
//
// Device of shef_kernel_bus: sel_i waits for ready_o. cfg_begin_o and cfg_clear_o are pulses that
// remove the design from the fabric. After begin the words follow on cfg_valid_o/cfg_ready_i with
// cfg_last_o at the last one (valid never waits for ready, data is stable while valid and not
// ready). A word leaves when the next one is written or FINISH marks it as the last: DATA waits for
// that. cfg_active_i, cfg_busy_i, cfg_error_i are the fabric's state, design_i (byte 0 lowest) the
// digest of the active design. clear_i (level) withdraws an open image and clears the fabric.
`default_nettype none
module shef_kernel_config
  import shef_kernel_regs_pkg::*;
(
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   clear_i,
    input  wire logic   sel_i,
    input  wire logic   we_i,
    input  wire logic [11:0] addr_i,
    input  wire logic [31:0] wdata_i,
    output logic        ready_o,
    output logic        err_o,
    output logic [31:0] rdata_o,
    output logic        renew_o,
    output logic        cfg_begin_o,
    output logic        cfg_clear_o,
    output logic        cfg_valid_o,
    input  wire logic   cfg_ready_i,
    output logic [31:0] cfg_data_o,
    output logic        cfg_last_o,
    input  wire logic   cfg_busy_i,
    input  wire logic   cfg_active_i,
    input  wire logic   cfg_error_i,
    input  wire logic [255:0] design_i
);

  logic open_q;       // between BEGIN and FINISH
  logic held_q;       // a word waits: it may be the last of the image
  logic valid_q, last_q;
  logic [31:0] word_q, data_q;

  config_sel_e item;
  assign item = config_decode(addr_i);
  wire free = !valid_q || cfg_ready_i;
  wire write = sel_i && we_i && ready_o && !err_o;
  wire control = write && item == CONFIG_SEL_CONTROL;
  wire begins = control && wdata_i[CONFIG_CONTROL_BEGIN_LSB];
  wire clears = control && wdata_i[CONFIG_CONTROL_CLEAR_LSB];
  wire finishes = control && wdata_i[CONFIG_CONTROL_FINISH_LSB];
  wire data = write && item == CONFIG_SEL_DATA;

  assign ready_o = !we_i || item != CONFIG_SEL_DATA && !wdata_i[CONFIG_CONTROL_FINISH_LSB] || free;
  assign err_o = we_i ? !config_writable(item) || (item == CONFIG_SEL_DATA && !open_q) : !config_readable(item);
  assign renew_o = cfg_begin_o || cfg_clear_o;
  assign cfg_begin_o = begins && !clears;
  assign cfg_clear_o = clears || clear_i;
  assign cfg_valid_o = valid_q;
  assign cfg_data_o = data_q;
  assign cfg_last_o = last_q;

  always_comb begin
    rdata_o = '0;
    unique case (item)
      CONFIG_SEL_STATUS: begin
        rdata_o[CONFIG_STATUS_BUSY_LSB] = open_q || valid_q || cfg_busy_i;
        rdata_o[CONFIG_STATUS_ACTIVE_LSB] = cfg_active_i;
        rdata_o[CONFIG_STATUS_ERROR_LSB] = cfg_error_i;
      end
      CONFIG_SEL_DESIGN: if (cfg_active_i) rdata_o = design_i[{addr_i[4:2], 5'd0}+:32];
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i || clears || begins) begin
      open_q <= rst_ni && !clear_i && !clears;
      held_q <= 1'b0;
      valid_q <= 1'b0;
      last_q <= 1'b0;
      word_q <= '0;
      data_q <= '0;
    end else begin
      if (cfg_ready_i) begin
        valid_q <= 1'b0;
        last_q <= 1'b0;
        data_q <= '0;
      end
      if (data) begin
        word_q <= wdata_i;
        held_q <= 1'b1;
      end
      if (held_q && (data || finishes)) begin
        data_q <= word_q;
        valid_q <= 1'b1;
        last_q <= finishes;
      end
      if (finishes) begin
        open_q <= 1'b0;
        held_q <= 1'b0;
        word_q <= '0;
      end
    end
  end

endmodule
`default_nettype wire
