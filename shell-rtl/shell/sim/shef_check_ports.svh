// Ports of a simulation shell for the protocol checker (shef_check), and their connections.
//
// chk_on: it watches. chk_close: it takes this cycle as the end of a job, at which `output` chunks
// are closed. chk_done_*: the status register of a job. chk_report is a report_t of shef_check_pkg.

`define SHEF_CHECK_PORTS \
    input  wire logic        chk_on, \
    input  wire logic        chk_close, \
    input  wire logic        chk_done_on, \
    input  wire logic [15:0] chk_done_addr, \
    input  wire logic [31:0] chk_done_mask, \
    input  wire logic [31:0] chk_done_value, \
    output logic             chk_valid, \
    output shef_check_pkg::report_t chk_report, \
    output logic [31:0]      chk_lost, \
    output logic [63:0]      chk_now, \
    output logic [63:0]      chk_bursts
`define SHEF_CHECK_CONNECT \
    .on_i(chk_on), \
    .done_on_i(chk_done_on), \
    .done_addr_i(chk_done_addr), \
    .done_mask_i(chk_done_mask), \
    .done_value_i(chk_done_value), \
    .out_valid_o(chk_valid), \
    .out_o(chk_report), \
    .lost_o(chk_lost), \
    .now_o(chk_now), \
    .bursts_o(chk_bursts)

// The same of a shell with the accelerator's configuration, and the connections that differ.
`define SHEF_CHECK(req, rsp, reg_req, reg_rsp, rst, irq, clear, cleared, close, epoch, region) \
  shef_check #( \
      .NAcc(N_ACC), .NRegions(N_REGIONS), .Regions(REGIONS), .NSets(N_SETS), .Sets(SETS) \
  ) u_check ( \
      .clk_i(clk), .rst_ni(rst), .acc_req_i(req), .acc_rsp_i(rsp), .reg_req_i(reg_req), \
      .reg_rsp_i(reg_rsp), .irq_i(irq), .clear_i(clear), .cleared_i(cleared), .close_i(close), \
      .epoch_i(epoch), .epoch_region_i(region), `SHEF_CHECK_CONNECT \
  )
// The accelerator of shef_core, and the commands of its Shield.
`define SHEF_CHECK_CORE(core) \
  `SHEF_CHECK(core.own_req, core.own_rsp, core.reg_req, core.reg_rsp, core.acc_rst_n, \
      core.acc_irq, core.acc_clear, core.acc_cleared, \
      chk_close || (core.u_shield.cmd_done && core.u_shield.set_cmd != SET_EPOCH), \
      core.u_shield.cmd_done && core.u_shield.set_cmd == SET_EPOCH, core.u_shield.region)
