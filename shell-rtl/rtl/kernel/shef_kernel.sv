// The Security Kernel's subsystem: processor, boot ROM, memories, crypto units and ports.
//
// host_*: AXI4-Lite slave of 16 KiB, the host's side of the mailbox (shef_kernel_mailbox). The host
// reaches nothing else. krn_*: AXI4-Lite master to the Shield's kernel port. medium_*: words of the
// boot medium, which is not trusted: medium_valid_o with a word address stays until medium_ready_i,
// which comes with data or an error. noise_*: one raw bit in each cycle with noise_valid_i
// (shef_noise). cfg_*: the image for the fabric, and the fabric's state (shef_kernel_config).
// uds_i is the device secret; root_i, target_i, shell_i, shell_flags_i, debug_i, noise_seeded_i (a
// simulation's noise) and noise_unmeasured_i (min-entropy never measured) are the shell's statements
// about itself. Only debug_i may change; byte 0 is lowest.
// wipe_req_i/wipe_ack_o and rst_ni clear every memory, register and unit before the processor
// starts again. ready_o: boot is over. alert_o: the first alert since rst_ni or wipe_req_i, else 0.
// Boot begins 65,537 cycles after rst_ni, when everything is cleared.
`default_nettype none
module shef_kernel
  import shef_pkg::*;
  import shef_kernel_pkg::*;
  import shef_kernel_regs_pkg::*;
(
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   wipe_req_i,
    output logic        wipe_ack_o,
    output logic        ready_o,
    output logic [3:0]  alert_o,
    // the host's side of the mailbox
    input  wire axil_req_t host_req_i,
    output axil_rsp_t   host_rsp_o,
    // the Shield's kernel port
    output axil_req_t   krn_req_o,
    input  wire axil_rsp_t krn_rsp_i,
    // boot medium
    output logic        medium_valid_o,
    output logic [17:0] medium_addr_o,
    input  wire logic   medium_ready_i,
    input  wire logic [31:0] medium_data_i,
    input  wire logic   medium_err_i,
    // noise
    input  wire logic   noise_valid_i,
    input  wire logic   noise_bit_i,
    input  wire logic   noise_seeded_i,
    input  wire logic   noise_unmeasured_i,
    // configuration of the fabric
    output logic        cfg_begin_o,
    output logic        cfg_clear_o,
    output logic        cfg_valid_o,
    input  wire logic   cfg_ready_i,
    output logic [31:0] cfg_data_o,
    output logic        cfg_last_o,
    input  wire logic   cfg_busy_i,
    input  wire logic   cfg_active_i,
    input  wire logic   cfg_error_i,
    input  wire logic [255:0] design_i,
    // identity
    input  wire logic [255:0] uds_i,
    input  wire logic [1:0]   root_i,
    input  wire logic [255:0] target_i,
    input  wire logic [255:0] shell_i,
    input  wire logic [2:0]   shell_flags_i,
    input  wire logic   debug_i
);

  // ---- life ----
  logic core_rst_n, core_on, boot, clear, clear_memory, restart, halt, wipe, fault;
  logic [15:0] clear_addr;
  shef_kernel_life u_life (
      .clk_i,
      .rst_ni,
      .wipe_req_i,
      .wipe_ack_o,
      .restart_i(restart),
      .halt_i(halt),
      .wipe_i(wipe),
      .core_rst_no(core_rst_n),
      .core_on_o(core_on),
      .boot_o(boot),
      .clear_o(clear),
      .clear_memory_o(clear_memory),
      .clear_addr_o(clear_addr)
  );

  // ---- processor and bus ----
  logic instr_req, instr_gnt, instr_rvalid, instr_err;
  logic data_req, data_gnt, data_we, data_rvalid, data_err;
  logic [31:0] instr_addr, instr_rdata, data_addr, data_wdata, data_rdata;
  logic [31:0] rom_instr, rom_data, memory_instr, memory_data, ram_data;
  logic [3:0] data_be, memory_we, ram_we;
  dev_sel_t sel, dev_ready, dev_err;
  logic [DEVICES-1:0][31:0] dev_rdata;
  logic dev_we;
  logic [3:0] dev_be;
  logic [19:0] dev_addr;
  logic [31:0] dev_wdata;

  shef_kernel_core u_core (
      .clk_i,
      .rst_ni(core_rst_n),
      .instr_req_o(instr_req),
      .instr_gnt_i(instr_gnt),
      .instr_addr_o(instr_addr),
      .instr_rvalid_i(instr_rvalid),
      .instr_rdata_i(instr_rdata),
      .instr_err_i(instr_err),
      .data_req_o(data_req),
      .data_gnt_i(data_gnt),
      .data_we_o(data_we),
      .data_be_o(data_be),
      .data_addr_o(data_addr),
      .data_wdata_o(data_wdata),
      .data_rvalid_i(data_rvalid),
      .data_rdata_i(data_rdata),
      .data_err_i(data_err),
      .fault_o(fault)
  );

  shef_kernel_bus u_bus (
      .clk_i,
      .rst_ni(core_on),
      .instr_req_i(instr_req),
      .instr_gnt_o(instr_gnt),
      .instr_addr_i(instr_addr),
      .instr_rvalid_o(instr_rvalid),
      .instr_rdata_o(instr_rdata),
      .instr_err_o(instr_err),
      .data_req_i(data_req),
      .data_gnt_o(data_gnt),
      .data_we_i(data_we),
      .data_be_i(data_be),
      .data_addr_i(data_addr),
      .data_wdata_i(data_wdata),
      .data_rvalid_o(data_rvalid),
      .data_rdata_o(data_rdata),
      .data_err_o(data_err),
      .rom_instr_i(rom_instr),
      .rom_data_i(rom_data),
      .memory_instr_i(memory_instr),
      .memory_we_o(memory_we),
      .memory_data_i(memory_data),
      .ram_busy_i(clear),
      .ram_we_o(ram_we),
      .ram_data_i(ram_data),
      .dev_sel_o(sel),
      .dev_we_o(dev_we),
      .dev_be_o(dev_be),
      .dev_addr_o(dev_addr),
      .dev_wdata_o(dev_wdata),
      .dev_ready_i(dev_ready),
      .dev_err_i(dev_err),
      .dev_rdata_i(dev_rdata)
  );

  // ---- memories ----
  shef_kernel_rom u_rom (
      .clk_i,
      .a_addr_i(instr_addr[15:2]),
      .a_rdata_o(rom_instr),
      .b_addr_i(data_addr[15:2]),
      .b_rdata_o(rom_data)
  );
  shef_kernel_ram u_memory (
      .clk_i,
      .clear_i(clear_memory),
      .a_addr_i(instr_addr[17:2]),
      .a_rdata_o(memory_instr),
      .b_addr_i(clear_memory ? clear_addr : data_addr[17:2]),
      .b_we_i(memory_we),
      .b_wdata_i(data_wdata),
      .b_rdata_o(memory_data)
  );
  logic [31:0] unused_ram;
  shef_kernel_ram u_ram (
      .clk_i,
      .clear_i(clear),
      .a_addr_i('0),
      .a_rdata_o(unused_ram),
      .b_addr_i(clear ? clear_addr : data_addr[17:2]),
      .b_we_i(ram_we),
      .b_wdata_i(data_wdata),
      .b_rdata_o(ram_data)
  );

  // ---- boot medium ----
  assign medium_valid_o = sel[DEV_MEDIUM];
  assign medium_addr_o = dev_addr[19:2];
  assign dev_ready[DEV_MEDIUM] = medium_ready_i;
  assign dev_err[DEV_MEDIUM] = medium_err_i;
  assign dev_rdata[DEV_MEDIUM] = medium_data_i;

  // ---- identity, timer, watchdog, alerts ----
  logic no_shield;
  assign dev_ready[DEV_SYS] = 1'b1;
  shef_kernel_sys u_sys (
      .clk_i,
      .rst_ni,
      .wipe_req_i,
      .boot_i(boot),
      .clearing_i(clear),
      .sel_i(sel[DEV_SYS]),
      .we_i(dev_we),
      .addr_i(dev_addr[11:0]),
      .wdata_i(dev_wdata),
      .err_o(dev_err[DEV_SYS]),
      .rdata_o(dev_rdata[DEV_SYS]),
      .uds_i,
      .root_i,
      .target_i,
      .shell_i,
      .shell_flags_i,
      .debug_i,
      .no_shield_i(no_shield),
      .fault_i(fault),
      .wipe_o(wipe),
      .halt_o(halt),
      .restart_o(restart),
      .ready_o,
      .alert_o
  );

  // ---- mailbox ----
  shef_kernel_mailbox u_mailbox (
      .clk_i,
      .rst_ni,
      .clear_i(clear),
      .clear_addr_i(clear_addr[10:0]),
      .host_req_i,
      .host_rsp_o,
      .sel_i(sel[DEV_MAILBOX]),
      .we_i(dev_we),
      .be_i(dev_be),
      .addr_i(dev_addr[14:0]),
      .wdata_i(dev_wdata),
      .ready_o(dev_ready[DEV_MAILBOX]),
      .err_o(dev_err[DEV_MAILBOX]),
      .rdata_o(dev_rdata[DEV_MAILBOX])
  );

  // ---- the Shield ----
  logic renew;
  assign dev_err[DEV_SHIELD] = 1'b0;
  shef_kernel_shield u_shield (
      .clk_i,
      .rst_ni,
      .clear_i(!core_on),
      .renew_i(renew),
      .sel_i(sel[DEV_SHIELD]),
      .we_i(dev_we),
      .addr_i(dev_addr[11:2]),
      .wdata_i(dev_wdata),
      .ready_o(dev_ready[DEV_SHIELD]),
      .rdata_o(dev_rdata[DEV_SHIELD]),
      .no_shield_o(no_shield),
      .krn_req_o,
      .krn_rsp_i
  );

  // ---- noise ----
  logic noise_word_valid, noise_tested;
  logic [31:0] noise_word, noise_status;
  logic [3:0] noise_alarm;
  noise_sel_e noise_item;
  assign noise_item = noise_decode(dev_addr[11:0]);
  assign dev_ready[DEV_NOISE] = 1'b1;
  assign dev_err[DEV_NOISE] = !noise_readable(noise_item);
  always_comb begin
    noise_status = '0;
    noise_status[NOISE_STATUS_TESTED_LSB] = noise_tested;
    noise_status[NOISE_STATUS_WORD_LSB] = noise_word_valid;
    noise_status[NOISE_STATUS_REPETITION_LSB+:4] = noise_alarm;
    noise_status[NOISE_STATUS_SOURCE_LSB+:2] =
        noise_seeded_i ? NOISE_STATUS_SOURCE_SEEDED :
        noise_unmeasured_i ? NOISE_STATUS_SOURCE_UNMEASURED : NOISE_STATUS_SOURCE_MEASURED;
  end
  assign dev_rdata[DEV_NOISE] = noise_item == NOISE_SEL_WORD ? noise_word : noise_status;
  shef_noise u_noise (
      .clk_i,
      .rst_ni,
      .wipe_i(!core_on),
      .noise_valid_i,
      .noise_bit_i,
      .word_valid_o(noise_word_valid),
      .word_ready_i(sel[DEV_NOISE] && noise_item == NOISE_SEL_WORD),
      .word_o(noise_word),
      .tested_o(noise_tested),
      .alarm_o(noise_alarm)
  );

  // ---- configuration port ----
  shef_kernel_config u_config (
      .clk_i,
      .rst_ni,
      .clear_i(!core_on),
      .sel_i(sel[DEV_CONFIG]),
      .we_i(dev_we),
      .addr_i(dev_addr[11:0]),
      .wdata_i(dev_wdata),
      .ready_o(dev_ready[DEV_CONFIG]),
      .err_o(dev_err[DEV_CONFIG]),
      .rdata_o(dev_rdata[DEV_CONFIG]),
      .renew_o(renew),
      .cfg_begin_o,
      .cfg_clear_o,
      .cfg_valid_o,
      .cfg_ready_i,
      .cfg_data_o,
      .cfg_last_o,
      .cfg_busy_i,
      .cfg_active_i,
      .cfg_error_i,
      .design_i
  );

  // ---- units ----
  logic p256_wipe, p256_cmd_valid, p256_cmd_ready, p256_in_valid, p256_in_ready, p256_out_valid, p256_out_ready, p256_ok;
  logic [3:0] p256_cmd;
  logic [15:0] p256_len;
  logic [7:0] p256_in, p256_out;
  shef_kernel_unit u_p256_port (
      .clk_i,
      .rst_ni,
      .wipe_i(clear),
      .sel_i(sel[DEV_P256]),
      .we_i(dev_we),
      .addr_i(dev_addr[11:0]),
      .wdata_i(dev_wdata),
      .ready_o(dev_ready[DEV_P256]),
      .err_o(dev_err[DEV_P256]),
      .rdata_o(dev_rdata[DEV_P256]),
      .unit_wipe_o(p256_wipe),
      .unit_cmd_valid_o(p256_cmd_valid),
      .unit_cmd_ready_i(p256_cmd_ready),
      .unit_cmd_o(p256_cmd),
      .unit_len_o(p256_len),
      .unit_in_valid_o(p256_in_valid),
      .unit_in_ready_i(p256_in_ready),
      .unit_in_data_o(p256_in),
      .unit_out_valid_i(p256_out_valid),
      .unit_out_ready_o(p256_out_ready),
      .unit_out_data_i(p256_out),
      .unit_ok_i(p256_ok)
  );
  shef_p256 u_p256 (
      .clk_i,
      .rst_ni,
      .wipe_i(p256_wipe),
      .cmd_valid_i(p256_cmd_valid),
      .cmd_ready_o(p256_cmd_ready),
      .cmd_i(p256_cmd),
      .len_i(p256_len),
      .in_valid_i(p256_in_valid),
      .in_ready_o(p256_in_ready),
      .in_data_i(p256_in),
      .out_valid_o(p256_out_valid),
      .out_ready_i(p256_out_ready),
      .out_data_o(p256_out),
      .ok_o(p256_ok)
  );

  logic hash_wipe, hash_cmd_valid, hash_cmd_ready, hash_in_valid, hash_in_ready, hash_out_valid, hash_out_ready, hash_ok;
  logic [3:0] hash_cmd;
  logic [15:0] hash_len;
  logic [7:0] hash_in, hash_out;
  shef_kernel_unit u_hash_port (
      .clk_i,
      .rst_ni,
      .wipe_i(clear),
      .sel_i(sel[DEV_HASH]),
      .we_i(dev_we),
      .addr_i(dev_addr[11:0]),
      .wdata_i(dev_wdata),
      .ready_o(dev_ready[DEV_HASH]),
      .err_o(dev_err[DEV_HASH]),
      .rdata_o(dev_rdata[DEV_HASH]),
      .unit_wipe_o(hash_wipe),
      .unit_cmd_valid_o(hash_cmd_valid),
      .unit_cmd_ready_i(hash_cmd_ready),
      .unit_cmd_o(hash_cmd),
      .unit_len_o(hash_len),
      .unit_in_valid_o(hash_in_valid),
      .unit_in_ready_i(hash_in_ready),
      .unit_in_data_o(hash_in),
      .unit_out_valid_i(hash_out_valid),
      .unit_out_ready_o(hash_out_ready),
      .unit_out_data_i(hash_out),
      .unit_ok_i(hash_ok)
  );
  shef_hmac u_hash (
      .clk_i,
      .rst_ni,
      .wipe_i(hash_wipe),
      .cmd_valid_i(hash_cmd_valid),
      .cmd_ready_o(hash_cmd_ready),
      .cmd_i(hash_cmd),
      .len_i(hash_len),
      .in_valid_i(hash_in_valid),
      .in_ready_o(hash_in_ready),
      .in_data_i(hash_in),
      .out_valid_o(hash_out_valid),
      .out_ready_i(hash_out_ready),
      .out_data_o(hash_out),
      .ok_o(hash_ok)
  );

  logic measure_wipe, measure_cmd_valid, measure_cmd_ready, measure_in_valid, measure_in_ready, measure_out_valid, measure_out_ready, measure_ok;
  logic [3:0] measure_cmd;
  logic [15:0] measure_len;
  logic [7:0] measure_in, measure_out;
  shef_kernel_unit u_measure_port (
      .clk_i,
      .rst_ni,
      .wipe_i(clear),
      .sel_i(sel[DEV_MEASURE]),
      .we_i(dev_we),
      .addr_i(dev_addr[11:0]),
      .wdata_i(dev_wdata),
      .ready_o(dev_ready[DEV_MEASURE]),
      .err_o(dev_err[DEV_MEASURE]),
      .rdata_o(dev_rdata[DEV_MEASURE]),
      .unit_wipe_o(measure_wipe),
      .unit_cmd_valid_o(measure_cmd_valid),
      .unit_cmd_ready_i(measure_cmd_ready),
      .unit_cmd_o(measure_cmd),
      .unit_len_o(measure_len),
      .unit_in_valid_o(measure_in_valid),
      .unit_in_ready_i(measure_in_ready),
      .unit_in_data_o(measure_in),
      .unit_out_valid_i(measure_out_valid),
      .unit_out_ready_o(measure_out_ready),
      .unit_out_data_i(measure_out),
      .unit_ok_i(measure_ok)
  );
  shef_hmac u_measure (
      .clk_i,
      .rst_ni,
      .wipe_i(measure_wipe),
      .cmd_valid_i(measure_cmd_valid),
      .cmd_ready_o(measure_cmd_ready),
      .cmd_i(measure_cmd),
      .len_i(measure_len),
      .in_valid_i(measure_in_valid),
      .in_ready_o(measure_in_ready),
      .in_data_i(measure_in),
      .out_valid_o(measure_out_valid),
      .out_ready_i(measure_out_ready),
      .out_data_o(measure_out),
      .ok_o(measure_ok)
  );

  logic aes_wipe, aes_cmd_valid, aes_cmd_ready, aes_in_valid, aes_in_ready, aes_out_valid, aes_out_ready, aes_ok;
  logic [3:0] aes_cmd;
  logic [15:0] aes_len;
  logic [7:0] aes_in, aes_out;
  shef_kernel_unit u_aes_port (
      .clk_i,
      .rst_ni,
      .wipe_i(clear),
      .sel_i(sel[DEV_AES]),
      .we_i(dev_we),
      .addr_i(dev_addr[11:0]),
      .wdata_i(dev_wdata),
      .ready_o(dev_ready[DEV_AES]),
      .err_o(dev_err[DEV_AES]),
      .rdata_o(dev_rdata[DEV_AES]),
      .unit_wipe_o(aes_wipe),
      .unit_cmd_valid_o(aes_cmd_valid),
      .unit_cmd_ready_i(aes_cmd_ready),
      .unit_cmd_o(aes_cmd),
      .unit_len_o(aes_len),
      .unit_in_valid_o(aes_in_valid),
      .unit_in_ready_i(aes_in_ready),
      .unit_in_data_o(aes_in),
      .unit_out_valid_i(aes_out_valid),
      .unit_out_ready_o(aes_out_ready),
      .unit_out_data_i(aes_out),
      .unit_ok_i(aes_ok)
  );
  shef_gcm_iter u_aes (
      .clk_i,
      .rst_ni,
      .wipe_i(aes_wipe),
      .cmd_valid_i(aes_cmd_valid),
      .cmd_ready_o(aes_cmd_ready),
      .cmd_i(aes_cmd),
      .len_i(aes_len),
      .in_valid_i(aes_in_valid),
      .in_ready_o(aes_in_ready),
      .in_data_i(aes_in),
      .out_valid_o(aes_out_valid),
      .out_ready_i(aes_out_ready),
      .out_data_o(aes_out),
      .ok_o(aes_ok)
  );

endmodule
`default_nettype wire
