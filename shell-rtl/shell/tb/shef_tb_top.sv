// Test bench shell: the core with flat ports, including those of the accelerator.
//
// ctl, krn, mem and irq as in shef_sim_top. acc_*[p] and reg_* are the ports of the accelerator
// (`shef_accel` of this folder): AXI4 masters and an AXI4-Lite slave that the bench drives, behind
// everything that shef_core puts between an accelerator and the Shield; acc_rst_n is the reset of
// the accelerator. acc_left: its memory still holds data of a session. seen_*, chk_*: as in
// shef_sim_top; the checker is off while the bench breaks rules.
`include "shef_ports.svh"
`include "shef_check_ports.svh"
`default_nettype none
module shef_tb_top
  import shef_pkg::*;
  import shef_cfg_pkg::*;
(
    input  wire logic         clk,
    input  wire logic         rst_n,
    input  wire logic         wipe_req,
    output logic              wipe_ack,
    output logic              irq_req,
    input  wire logic         irq_ack,
    `SHEF_AXIL_S_PORTS(ctl, 16),
    `SHEF_AXIL_S_PORTS(krn, 12),
    `SHEF_AXI_M_PORTS(mem, [N_PORTS]),
    `SHEF_AXI_S_PORTS(acc, [N_ACC]),
    output logic              acc_rst_n,
    output logic              acc_clear,
    output logic              acc_left,
    input  wire logic         acc_uncleared,  // the bench's accelerator keeps its memories
    `SHEF_AXIL_M_PORTS(reg, 16),
    input  wire logic         acc_irq,
    `SHEF_SEEN_PORTS([N_ACC]),
    `SHEF_CHECK_PORTS
);
  axi_req_t [N_PORTS-1:0] mem_req;
  axi_rsp_t [N_PORTS-1:0] mem_rsp;
  for (genvar p = 0; p < int'(N_PORTS); p++) begin : g_mem
    assign `SHEF_AXI_REQ(mem, [p]) = mem_req[p];
    assign mem_rsp[p] = `SHEF_AXI_RSP(mem, [p]);
  end
  // The ports of the accelerator, by name.
  assign acc_rst_n = u_core.u_accel.rst_ni;
  assign acc_clear = u_core.u_accel.clear_i;
  assign acc_left = u_core.u_accel.left_q;
  assign u_core.u_accel.uncleared = acc_uncleared;
  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_acc
    assign u_core.u_accel.req[p] = `SHEF_AXI_REQ(acc, [p]);
    assign `SHEF_AXI_RSP(acc, [p]) = u_core.u_accel.rsp[p];
  end
  assign {reg_awaddr, reg_awvalid, reg_wdata, reg_wstrb, reg_wvalid, reg_bready, reg_araddr,
      reg_arvalid, reg_rready} = u_core.u_accel.reg_req;
  assign u_core.u_accel.reg_rsp = `SHEF_AXIL_RSP(reg);
  assign u_core.u_accel.irq = acc_irq;

  shef_core #(
      .ShellId(1)
  ) u_core (
      .clk_i(clk),
      .rst_ni(rst_n),
      .wipe_req_i(wipe_req),
      .wipe_ack_o(wipe_ack),
      .ctl_req_i(`SHEF_AXIL_REQ(ctl)),
      .ctl_rsp_o(`SHEF_AXIL_RSP(ctl)),
      .krn_req_i(`SHEF_AXIL_REQ(krn)),
      .krn_rsp_o(`SHEF_AXIL_RSP(krn)),
      .mem_req_o(mem_req),
      .mem_rsp_i(mem_rsp),
      .irq_req_o(irq_req),
      .irq_ack_i(irq_ack)
  );

  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_seen
    `SHEF_SEEN([p], u_core.own_req[p], u_core.own_rsp[p], u_core.acc_rst_n);
  end
  `SHEF_SEEN_REG(u_core.reg_req, u_core.reg_rsp, u_core.acc_rst_n, u_core.acc_clear,
      u_core.acc_cleared, u_core.acc_irq);

  `SHEF_CHECK_CORE(u_core);
endmodule
`default_nettype wire
