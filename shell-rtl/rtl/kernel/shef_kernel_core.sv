// The processor of the Security Kernel: Ibex (RV32IMC, two stages) with PMP and its register file.
//
// instr_* and data_*: Ibex' memory protocol. req_o with its address stays until gnt_i; each grant
// is answered in order by one cycle of rvalid_i with rdata_i and err_i.
// rst_ni low also clears the register file, at once. fault_o is a pulse: a trap inside a trap
// handler, or a state that Ibex declares impossible. There are no interrupts, and no way into debug
// mode.
`default_nettype none
module shef_kernel_core
  import ibex_pkg::*;
(
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    output logic        instr_req_o,
    input  wire logic   instr_gnt_i,
    output logic [31:0] instr_addr_o,
    input  wire logic   instr_rvalid_i,
    input  wire logic [31:0] instr_rdata_i,
    input  wire logic   instr_err_i,
    output logic        data_req_o,
    input  wire logic   data_gnt_i,
    output logic        data_we_o,
    output logic [3:0]  data_be_o,
    output logic [31:0] data_addr_o,
    output logic [31:0] data_wdata_o,
    input  wire logic   data_rvalid_i,
    input  wire logic [31:0] data_rdata_i,
    input  wire logic   data_err_i,
    output logic        fault_o
);

  logic [4:0] raddr_a, raddr_b, waddr;
  logic [31:0] rdata_a, rdata_b, wdata;
  logic we, file_err, dummy_id, dummy_wb;
  logic double_fault, alert_internal, alert_bus;
  assign fault_o = double_fault || alert_internal || alert_bus || file_err;

  // There is no instruction cache, so it has no memories.
  logic [IC_TAG_SIZE-1:0] no_tag[IC_NUM_WAYS];
  logic [IC_LINE_SIZE-1:0] no_line[IC_NUM_WAYS];
  assign no_tag = '{default: '0};
  assign no_line = '{default: '0};

  // Outputs for an instruction cache, interrupts and lockstep are left open.
  /* verilator lint_off PINCONNECTEMPTY */
  ibex_core #(
      .PMPEnable(1'b1),
      .PMPNumRegions(4),
      .RV32M(RV32MFast),
      .ResetAll(1'b1)
  ) u_core (
      .clk_i,
      .rst_ni,
      .hart_id_i(32'd0),
      .boot_addr_i(32'd0),
      .instr_req_o,
      .instr_gnt_i,
      .instr_rvalid_i,
      .instr_addr_o,
      .instr_rdata_i,
      .instr_err_i,
      .data_req_o,
      .data_gnt_i,
      .data_rvalid_i,
      .data_we_o,
      .data_be_o,
      .data_addr_o,
      .data_wdata_o,
      .data_rdata_i,
      .data_err_i,
      .dummy_instr_id_o(dummy_id),
      .dummy_instr_wb_o(dummy_wb),
      .rf_raddr_a_o(raddr_a),
      .rf_raddr_b_o(raddr_b),
      .rf_waddr_wb_o(waddr),
      .rf_we_wb_o(we),
      .rf_wdata_wb_ecc_o(wdata),
      .rf_rdata_a_ecc_i(rdata_a),
      .rf_rdata_b_ecc_i(rdata_b),
      .ic_tag_req_o(),
      .ic_tag_write_o(),
      .ic_tag_addr_o(),
      .ic_tag_wdata_o(),
      .ic_tag_rdata_i(no_tag),
      .ic_data_req_o(),
      .ic_data_write_o(),
      .ic_data_addr_o(),
      .ic_data_wdata_o(),
      .ic_data_rdata_i(no_line),
      .ic_scr_key_valid_i(1'b0),
      .ic_scr_key_req_o(),
      .irq_software_i(1'b0),
      .irq_timer_i(1'b0),
      .irq_external_i(1'b0),
      .irq_fast_i('0),
      .irq_nm_i(1'b0),
      .irq_pending_o(),
      .debug_req_i(1'b0),
      .crash_dump_o(),
      .double_fault_seen_o(double_fault),
      .fetch_enable_i(IbexMuBiOn),
      .alert_minor_o(),
      .alert_major_internal_o(alert_internal),
      .alert_major_bus_o(alert_bus),
      .core_busy_o()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  ibex_register_file_ff u_file (
      .clk_i,
      .rst_ni,
      .test_en_i(1'b0),
      .dummy_instr_id_i(dummy_id),
      .dummy_instr_wb_i(dummy_wb),
      .raddr_a_i(raddr_a),
      .rdata_a_o(rdata_a),
      .raddr_b_i(raddr_b),
      .rdata_b_o(rdata_b),
      .waddr_a_i(waddr),
      .wdata_a_i(wdata),
      .we_a_i(we),
      .err_o(file_err)
  );

`ifndef SYNTHESIS
  // The core never enters debug mode.
  always_ff @(posedge clk_i) if (rst_ni) assert (!u_core.debug_mode);
`endif

endmodule
`default_nettype wire
