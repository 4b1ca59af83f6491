// Ports of a simulation shell for the protocol checker (shef_check), and their connections; and the
// handshakes of the accelerator's ports, for a bench to follow.
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

// The handshakes of an accelerator, and all of its inputs: of memory port p as seen_*[p], of its
// registers as seenr_*, with cleared_o and irq_o. flags, from bit 0: VALID and READY of AR, R, AW, W and B, then RLAST, and the
// accelerator's reset.
`define SHEF_SEEN_PORTS(dim) \
    output logic [11:0] seen_flags dim, \
    output logic [7:0]  seen_rid dim, \
    output logic [511:0] seen_rdata dim, \
    output logic [1:0]  seen_rresp dim, \
    output logic [7:0]  seen_bid dim, \
    output logic [1:0]  seen_bresp dim, \
    output shef_pkg::axi_ax_t seen_ar dim, \
    output shef_pkg::axi_ax_t seen_aw dim, \
    output logic [11:0] seenr_flags, \
    output logic [15:0] seenr_ar, \
    output logic [15:0] seenr_aw, \
    output logic [31:0] seenr_wdata, \
    output logic [3:0]  seenr_wstrb, \
    output logic        seenr_clear, \
    output logic        seenr_cleared, \
    output logic        seenr_irq
`define SHEF_SEEN_FLAGS(req, rsp, last, rst) \
    {rst, last, req.b_ready, rsp.b_valid, rsp.w_ready, req.w_valid, rsp.aw_ready, req.aw_valid, \
     req.r_ready, rsp.r_valid, rsp.ar_ready, req.ar_valid}
`define SHEF_SEEN(index, req, rsp, rst) \
    assign seen_flags index = `SHEF_SEEN_FLAGS(req, rsp, rsp.r.last, rst); \
    assign seen_rid index = rsp.r.id; \
    assign seen_rdata index = rsp.r.data; \
    assign seen_rresp index = rsp.r.resp; \
    assign seen_bid index = rsp.b.id; \
    assign seen_bresp index = rsp.b.resp; \
    assign seen_ar index = req.ar; \
    assign seen_aw index = req.aw
`define SHEF_SEEN_REG(req, rsp, rst, clear, cleared, irq) \
    assign seenr_flags = `SHEF_SEEN_FLAGS(req, rsp, 1'b1, rst); \
    assign seenr_ar = req.ar_addr; \
    assign seenr_aw = req.aw_addr; \
    assign seenr_wdata = req.w_data; \
    assign seenr_wstrb = req.w_strb; \
    assign seenr_clear = clear; \
    assign seenr_cleared = cleared; \
    assign seenr_irq = irq
