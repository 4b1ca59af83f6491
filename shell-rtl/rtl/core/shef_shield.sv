// The Shield: everything between the accelerator and the outside.
//
// Clock and reset: one clock, rst_ni low for at least one cycle. wipe_req_i (level) zeroises keys,
// memories, caches and counters; wipe_ack_o rises when that is done and falls after wipe_req_i.
// Reset does the same before a seed is accepted. ctl (untrusted host) and krn (Security Kernel) are
// AXI4-Lite slaves, registers in docs/reference/registers.md; every access gets a response. reg is
// an AXI4-Lite master to the accelerator's registers, acc the AXI4 slaves for its memory accesses
// and acc_rst_no its reset: the accelerator runs only while a session is keyed. acc_clear_o (level,
// in its reset only): the accelerator zeroes its memories and holds acc_cleared_i until acc_clear_o
// falls. acc_quiet_i: nothing is owed at its memory ports. A session waits for both, within a bound
// each (shef_renew). mem are AXI4 masters and carry ciphertext and tags. valid never waits for
// ready; payloads are stable while valid and not ready.
`default_nettype none
module shef_shield
  import shef_pkg::*;
#(
    parameter int unsigned ShellId = 1,
    parameter int unsigned ClockKhz = 250_000
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        wipe_req_i,
    output logic             wipe_ack_o,
    input  wire axil_req_t   ctl_req_i,
    output axil_rsp_t        ctl_rsp_o,
    input  wire axil_req_t   krn_req_i,
    output axil_rsp_t        krn_rsp_o,
    output logic             acc_rst_no,
    output logic             acc_clear_o,
    input  wire logic        acc_cleared_i,
    input  wire logic        acc_quiet_i,
    output axil_req_t        reg_req_o,
    input  wire axil_rsp_t   reg_rsp_i,
    input  wire axi_req_t [shef_cfg_pkg::N_ACC-1:0] acc_req_i,
    output axi_rsp_t [shef_cfg_pkg::N_ACC-1:0] acc_rsp_o,
    output axi_req_t [shef_cfg_pkg::N_PORTS-1:0] mem_req_o,
    input  wire axi_rsp_t [shef_cfg_pkg::N_PORTS-1:0] mem_rsp_i
);
  import shef_cfg_pkg::*;
  import shef_regs_pkg::*;

  // ---- wipe: after reset, on request of shell or kernel ----
  typedef enum logic [1:0] {
    W_WIPE,
    W_HOLD,
    W_RUN
  } wipe_state_e;
  wipe_state_e wipe_q;
  logic wipe, krn_wipe, ctrl_wiped, regs_wiped, set_wiped, acc_wiped;
  assign wipe = wipe_q != W_RUN;
  assign wipe_ack_o = wipe_req_i && wipe_q == W_HOLD;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wipe_q <= W_WIPE;
    end else begin
      unique case (wipe_q)
        W_WIPE: if (ctrl_wiped && regs_wiped && set_wiped && acc_wiped) wipe_q <= W_HOLD;
        W_HOLD: if (!wipe_req_i) wipe_q <= W_RUN;
        default: if (wipe_req_i || krn_wipe) wipe_q <= W_WIPE;
      endcase
    end
  end

  // ---- beginning and end of a session ----
  logic begins, ends, renew, renewed, renew_failed, fault_clear;
  shef_renew u_renew (
      .clk_i,
      .rst_ni,
      .full_i(wipe),
      .begin_i(begins),
      .end_i(ends),
      .wipe_o(renew),
      .fault_clear_o(fault_clear),
      .done_o(renewed),
      .failed_o(renew_failed),
      .clear_done_o(acc_wiped),
      .ctrl_wiped_i(ctrl_wiped),
      .set_wiped_i(set_wiped),
      .quiet_i(acc_quiet_i),
      .acc_clear_o,
      .cleared_i(acc_cleared_i)
  );

  // ---- control processor ----
  logic trap, event_any, unit_wipe, unit_wiped;
  logic ext_req, ext_we, ext_ack;
  logic [11:0] ext_addr;
  logic [7:0] ext_wdata, ext_rdata;

  shef_ctrl u_ctrl (
      .clk_i,
      .rst_ni,
      .wipe_i(wipe || renew),
      .wipe_done_o(ctrl_wiped),
      .unit_wipe_i(unit_wipe),
      .unit_wiped_o(unit_wiped),
      .trap_o(trap),
      .event_i(event_any),
      .ext_req_o(ext_req),
      .ext_we_o(ext_we),
      .ext_addr_o(ext_addr),
      .ext_wdata_o(ext_wdata),
      .ext_ack_i(ext_ack),
      .ext_rdata_i(ext_rdata)
  );

  // ---- registers and mailboxes ----
  logic [31:0] status, load_len;
  logic [2:0] state;
  logic answer, seed_open, seed_erase, load_bell, chan_bell, seed_bell, box_we;
  logic [7:0] box_rdata;
  logic keyed;
  assign keyed = state == CTL_STATUS_STATE_KEYED && !wipe;

  shef_regs #(
      .ShellId(ShellId),
      .ClockKhz(ClockKhz),
      .NPorts(N_SETS == 0 ? 0 : N_PORTS),
      .NSets(N_SETS),
      .NRegions(N_REGIONS),
      .ConfigDigest(CONFIG_DIGEST)
  ) u_regs (
      .clk_i,
      .rst_ni,
      .scrub_i(wipe),
      .scrub_done_o(regs_wiped),
      .ctl_req_i,
      .ctl_rsp_o,
      .krn_req_i,
      .krn_rsp_o,
      .status_i(status),
      .show_confirm_i(keyed),
      .show_answer_i(answer),
      .show_pubkey_i(state == CTL_STATUS_STATE_FRESH || state == CTL_STATUS_STATE_KEYED),
      .show_t_i(state == CTL_STATUS_STATE_KEYED || state == CTL_STATUS_STATE_CLOSED),
      .show_last_i(state == CTL_STATUS_STATE_CLOSED),
      .seed_open_i(seed_open),
      .seed_erase_i(seed_erase),
      .load_bell_o(load_bell),
      .load_len_o(load_len),
      .chan_bell_o(chan_bell),
      .seed_bell_o(seed_bell),
      .krn_wipe_o(krn_wipe),
      .seq_addr_i(ext_addr[10:0]),
      .seq_rdata_o(box_rdata),
      .seq_we_i(box_we),
      .seq_wdata_i(ext_wdata)
  );

  // ---- faults ----
  // sources of reports: every set, or without memory the refusal of reads and that of writes
  localparam int unsigned SOURCES = N_SETS == 0 ? 2 : N_SETS;
  logic stopped;
  logic [SOURCES-1:0] fault_valid, refusal_valid;
  fault_t [SOURCES-1:0] set_fault;
  refusal_t [SOURCES-1:0] set_refusal;
  fault_t first_fault;
  refusal_t first_refusal;
  logic [31:0] fault_count, refusal_count;

  shef_fault #(
      .NSets(SOURCES),
      .OnFault(ON_FAULT)
  ) u_fault (
      .clk_i,
      .rst_ni,
      .clear_i(fault_clear || wipe),
      .fault_valid_i(fault_valid),
      .fault_i(set_fault),
      .refusal_valid_i(refusal_valid),
      .refusal_i(set_refusal),
      .internal_i(trap),
      .stopped_o(stopped),
      .fault_o(first_fault),
      .fault_count_o(fault_count),
      .refusal_o(first_refusal),
      .refusal_count_o(refusal_count)
  );

  // ---- hardware under the sequencer ----
  logic key_valid, key_ready, key_node, cmd_valid, cmd_ready, cmd_done, cmd_err, epoch_we;
  logic [REGION_W-1:0] region;
  logic [255:0] key;
  set_cmd_e set_cmd;
  logic [VERSION_W-1:0] epoch, stat_epoch;
  logic [31:0] stat_written, map_bits;
  logic [25:0] map_word;
  logic [MAX_REGIONS-1:0] region_fault;
  logic [1:0] cnt_set;
  logic [3:0] cnt_sel;
  logic [47:0] cnt;
  logic reg_start, reg_write, reg_done, reg_err;
  logic [15:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;

  shef_io #(
      .NRegions(N_REGIONS),
      .Regions(REGIONS),
      .NSets(N_SETS),
      .Halt(ON_FAULT == ON_FAULT_HALT),
      .AeadId(8'd2)
  ) u_io (
      .clk_i,
      .rst_ni,
      .wipe_i(wipe),
      .begin_o(begins),
      .end_o(ends),
      .renew_i(renew),
      .renewed_i(renewed),
      .renew_failed_i(renew_failed),
      .ext_req_i(ext_req),
      .ext_we_i(ext_we),
      .ext_addr_i(ext_addr),
      .ext_wdata_i(ext_wdata),
      .ext_ack_o(ext_ack),
      .ext_rdata_o(ext_rdata),
      .event_o(event_any),
      .unit_wipe_o(unit_wipe),
      .unit_wiped_i(unit_wiped),
      .box_we_o(box_we),
      .box_rdata_i(box_rdata),
      .load_bell_i(load_bell),
      .load_len_i(load_len),
      .chan_bell_i(chan_bell),
      .seed_bell_i(seed_bell),
      .seed_erase_o(seed_erase),
      .seed_open_o(seed_open),
      .status_o(status),
      .state_o(state),
      .answer_o(answer),
      .stopped_i(stopped),
      .fault_i(first_fault),
      .fault_count_i(fault_count),
      .refusal_i(first_refusal),
      .refusal_count_i(refusal_count),
      .region_fault_i(region_fault),
      .key_valid_o(key_valid),
      .key_ready_i(key_ready),
      .key_node_o(key_node),
      .region_o(region),
      .key_o(key),
      .cmd_valid_o(cmd_valid),
      .cmd_ready_i(cmd_ready),
      .cmd_o(set_cmd),
      .cmd_done_i(cmd_done),
      .cmd_err_i(cmd_err),
      .epoch_we_o(epoch_we),
      .epoch_o(epoch),
      .stat_epoch_i(stat_epoch),
      .stat_written_i(stat_written),
      .map_word_o(map_word),
      .map_i(map_bits),
      .cnt_set_o(cnt_set),
      .cnt_sel_o(cnt_sel),
      .cnt_i(cnt),
      .reg_start_o(reg_start),
      .reg_write_o(reg_write),
      .reg_addr_o(reg_addr),
      .reg_wdata_o(reg_wdata),
      .reg_done_i(reg_done),
      .reg_err_i(reg_err),
      .reg_rdata_i(reg_rdata)
  );

  // ---- accelerator ----
  // It runs only while a session is keyed: no session sees its state of another.
  logic acc_rst_nq;
  always_ff @(posedge clk_i) acc_rst_nq <= rst_ni && keyed;
  assign acc_rst_no = acc_rst_nq;

  logic reg_busy;
  shef_axil_master #(
      .TimeoutCycles(1024)
  ) u_reg (
      .clk_i,
      .rst_ni,
      .clear_i(!keyed),
      .start_i(reg_start),
      .write_i(reg_write),
      .addr_i(reg_addr),
      .wdata_i(reg_wdata),
      .busy_o(reg_busy),
      .done_o(reg_done),
      .err_o(reg_err),
      .rdata_o(reg_rdata),
      .req_o(reg_req_o),
      .rsp_i(reg_rsp_i)
  );

  // ---- engine sets ----
  logic sets_idle;
  logic [SOURCES-1:0] set_halted;
  if (N_SETS == 0) begin : g_no_memory
    shef_no_memory u_no_memory (
        .clk_i,
        .rst_ni,
        .enable_i(keyed),
        .stop_i(stopped),
        .acc_req_i,
        .acc_rsp_o,
        .refusal_valid_o(refusal_valid),
        .refusal_o(set_refusal)
    );
    localparam axi_req_t QUIET = '{b_ready: 1'b1, r_ready: 1'b1, default: '0};
    assign mem_req_o = {N_PORTS{QUIET}};
    // There is nothing to flush, and no region has a key or an epoch.
    assign key_ready = 1'b1;
    assign cmd_ready = 1'b1;
    assign cmd_done = cmd_valid;
    assign cmd_err = 1'b0;
    assign set_wiped = 1'b1;
    assign fault_valid = '0;
    assign set_fault = '0;
    assign stat_epoch = '0;
    assign stat_written = '0;
    assign map_bits = '0;
    assign region_fault = '0;
    assign cnt = '0;
    assign sets_idle = 1'b1;
    assign set_halted = '0;
    logic unused_sets;
    assign unused_sets = ^{mem_rsp_i, key_valid, key_node, region, key, set_cmd, epoch_we, epoch,
        map_word, cnt_set, cnt_sel};
  end else begin : g_sets
    shef_sets #(
        .NSets(N_SETS),
        .NPorts(N_PORTS),
        .NAcc(N_ACC),
        .Sets(SETS),
        .NRegions(N_REGIONS),
        .Regions(REGIONS),
        .OnFault(ON_FAULT),
        .SboxRam(SBOX_RAM)
    ) u_sets (
        .clk_i,
        .rst_ni,
        .acc_req_i,
        .acc_rsp_o,
        .mem_req_o,
        .mem_rsp_i,
        .key_valid_i(key_valid),
        .key_ready_o(key_ready),
        .key_region_i(region),
        .key_node_i(key_node),
        .key_i(key),
        .enable_i(keyed),
        .stop_i(stopped),
        .cmd_valid_i(cmd_valid),
        .cmd_ready_o(cmd_ready),
        .cmd_i(set_cmd),
        .cmd_region_i(region),
        .cmd_epoch_i(epoch),
        .cmd_done_o(cmd_done),
        .cmd_err_o(cmd_err),
        .epoch_we_i(epoch_we),
        .epoch_region_i(region),
        .epoch_i(epoch),
        .fault_valid_o(fault_valid),
        .fault_o(set_fault),
        .refusal_valid_o(refusal_valid),
        .refusal_o(set_refusal),
        .stat_region_i(region),
        .epoch_o(stat_epoch),
        .written_o(stat_written),
        .map_region_i(region),
        .map_word_i(map_word),
        .map_o(map_bits),
        .region_fault_o(region_fault),
        .cnt_set_i(cnt_set),
        .cnt_sel_i(cnt_sel),
        .cnt_o(cnt),
        .idle_o(sets_idle),
        .halted_o(set_halted),
        .wipe_i(wipe || renew),
        .wipe_done_o(set_wiped)
    );
  end

`ifndef SYNTHESIS
  // No statement looks better than the hardware: a set that has halted in a keyed session means a
  // stopped Shield, 16 cycles later at the latest.
  localparam logic [4:0] TELL_CYCLES = 5'd16;
  logic [4:0] untold_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !keyed || stopped || set_halted == '0) untold_q <= '0;
    else if (untold_q != TELL_CYCLES) untold_q <= untold_q + 1'b1;
    assert (!rst_ni || untold_q != TELL_CYCLES)
        else $error("a set has halted in a keyed session, and the Shield is not stopped");
  end
`endif

  logic unused;
  assign unused = ^{sets_idle, reg_busy, set_halted};

endmodule
`default_nettype wire
