// The core: Shield and accelerator, with the same boundary for every shell.
//
// clk_i/rst_ni; wipe_req_i/wipe_ack_o; ctl and krn AXI4-Lite slaves; mem AXI4 512 masters, one per
// memory port; irq_req_o stays high from an interrupt of the accelerator until irq_ack_i.
// All ports except ctl and krn carry ciphertext and tags. The accelerator is the module
// `shef_accel`, its memory ports are arrays [N_ACC-1:0]; it is held in reset unless a session is
// keyed. While it is in reset its memory ports issue no requests, accept every response and send
// the W beats that are still owed (shef_acc_gate), so that no burst of one session reaches into the
// next. No session begins before that is over and before the accelerator has cleared its memories
// (clear_i, cleared_o). Its interrupt is a hint.
`default_nettype none
module shef_core
  import shef_pkg::*;
#(
    parameter int unsigned ShellId = 1,
    parameter int unsigned ClockKhz = 250_000
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic wipe_req_i,
    output logic wipe_ack_o,
    input  wire axil_req_t ctl_req_i,
    output axil_rsp_t      ctl_rsp_o,
    input  wire axil_req_t krn_req_i,
    output axil_rsp_t      krn_rsp_o,
    output axi_req_t [shef_cfg_pkg::N_PORTS-1:0] mem_req_o,
    input  wire axi_rsp_t [shef_cfg_pkg::N_PORTS-1:0] mem_rsp_i,
    output logic irq_req_o,
    input  wire logic irq_ack_i
);

  logic acc_rst_n, acc_irq;
  axil_req_t reg_req;
  axil_rsp_t reg_rsp;
  logic acc_clear, acc_cleared;

  // ---- memory ports of the accelerator, and outstanding transfers at each ----
  // own_*: at the accelerator, acc_*: at the Shield
  localparam int unsigned NAcc = shef_cfg_pkg::N_ACC;
  axi_ax_t [NAcc-1:0] own_aw, own_ar;
  axi_w_t [NAcc-1:0] own_w;
  axi_b_t [NAcc-1:0] own_b;
  axi_r_t [NAcc-1:0] own_r;
  logic [NAcc-1:0] own_aw_valid, own_aw_ready, own_w_valid, own_w_ready, own_b_valid, own_b_ready,
      own_ar_valid, own_ar_ready, own_r_valid, own_r_ready, acc_idle;
  axi_req_t [NAcc-1:0] own_req, acc_req;
  axi_rsp_t [NAcc-1:0] own_rsp, acc_rsp;
  for (genvar p = 0; p < int'(NAcc); p++) begin : g_gate
    assign own_req[p] = '{own_aw[p], own_aw_valid[p], own_w[p], own_w_valid[p], own_b_ready[p],
        own_ar[p], own_ar_valid[p], own_r_ready[p]};
    assign {own_aw_ready[p], own_w_ready[p], own_b[p], own_b_valid[p], own_ar_ready[p], own_r[p],
        own_r_valid[p]} = own_rsp[p];
    shef_acc_gate u_gate (
        .clk_i,
        .rst_ni,
        .run_i(acc_rst_n),
        .acc_req_i(own_req[p]),
        .acc_rsp_o(own_rsp[p]),
        .shield_req_o(acc_req[p]),
        .shield_rsp_i(acc_rsp[p]),
        .idle_o(acc_idle[p])
    );
  end

  shef_shield #(
      .ShellId(ShellId),
      .ClockKhz(ClockKhz)
  ) u_shield (
      .clk_i,
      .rst_ni,
      .wipe_req_i,
      .wipe_ack_o,
      .ctl_req_i,
      .ctl_rsp_o,
      .krn_req_i,
      .krn_rsp_o,
      .acc_rst_no(acc_rst_n),
      .acc_clear_o(acc_clear),
      .acc_cleared_i(acc_cleared),
      .acc_quiet_i(&acc_idle),
      .reg_req_o(reg_req),
      .reg_rsp_i(reg_rsp),
      .acc_req_i(acc_req),
      .acc_rsp_o(acc_rsp),
      .mem_req_o,
      .mem_rsp_i
  );

  shef_accel u_accel (
      .clk_i,
      .rst_ni(acc_rst_n),
      .clear_i(acc_clear),
      .cleared_o(acc_cleared),
      .reg_awaddr_i(reg_req.aw_addr),
      .reg_awvalid_i(reg_req.aw_valid),
      .reg_awready_o(reg_rsp.aw_ready),
      .reg_wdata_i(reg_req.w_data),
      .reg_wstrb_i(reg_req.w_strb),
      .reg_wvalid_i(reg_req.w_valid),
      .reg_wready_o(reg_rsp.w_ready),
      .reg_bresp_o(reg_rsp.b_resp),
      .reg_bvalid_o(reg_rsp.b_valid),
      .reg_bready_i(reg_req.b_ready),
      .reg_araddr_i(reg_req.ar_addr),
      .reg_arvalid_i(reg_req.ar_valid),
      .reg_arready_o(reg_rsp.ar_ready),
      .reg_rdata_o(reg_rsp.r_data),
      .reg_rresp_o(reg_rsp.r_resp),
      .reg_rvalid_o(reg_rsp.r_valid),
      .reg_rready_i(reg_req.r_ready),
      .acc_aw_o(own_aw),
      .acc_aw_valid_o(own_aw_valid),
      .acc_aw_ready_i(own_aw_ready),
      .acc_w_o(own_w),
      .acc_w_valid_o(own_w_valid),
      .acc_w_ready_i(own_w_ready),
      .acc_b_i(own_b),
      .acc_b_valid_i(own_b_valid),
      .acc_b_ready_o(own_b_ready),
      .acc_ar_o(own_ar),
      .acc_ar_valid_o(own_ar_valid),
      .acc_ar_ready_i(own_ar_ready),
      .acc_r_i(own_r),
      .acc_r_valid_i(own_r_valid),
      .acc_r_ready_o(own_r_ready),
      .irq_o(acc_irq)
  );

  logic irq_prev_q, irq_q;
  assign irq_req_o = irq_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !acc_rst_n) begin
      irq_prev_q <= 1'b0;
      irq_q <= 1'b0;
    end else begin
      irq_prev_q <= acc_irq;
      if (acc_irq && !irq_prev_q) irq_q <= 1'b1;
      else if (irq_ack_i) irq_q <= 1'b0;
    end
  end

endmodule
`default_nettype wire
