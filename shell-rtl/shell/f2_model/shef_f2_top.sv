// Simulation of cl_shef: the custom logic as its shell sees it, with the ports of AWS F2, and what
// lies behind its cells.
//
// core_clk, core_locked: output of the MMCM. ddr_ready, mem0_*: the memory controller, on core_clk;
// with Hbm, the HBM behind its AXI3 ports, and hbm_ref is 1: clk_hbm_ref runs. hbm_error: an AXI3
// port was used against its rules.
// noise_*: raw bits, on the kernel's clock, whose edges are edges of core_clk (kernel_tick).
// uds_i and so on: the identity of the image. obs_*, seen_*, chk_*: as in shef_system_top.
// obs_memory_rst_n: reset of the memory controller. obs_wiped: the core acknowledges a wipe.
// mbox_*, krn_*, cfg_*, native_*: in the build with the native kernel (f2_native), the mailbox, the
// Shield's kernel port and the configuration port; otherwise unused.
`include "shef_ports.svh"
`include "shef_check_ports.svh"
module shef_f2_top
  import shef_pkg::*;
  import shef_cfg_pkg::*;
#(
    parameter int unsigned CoreDiv8 = 120,
    parameter bit Hbm = 1'b0
) (
    `include "cl_ports.vh"
    ,
    input  wire logic core_clk,
    input  wire logic core_locked,
    input  wire logic ddr_ready,
    `SHEF_AXI_M_PORTS(mem, [N_PORTS]),
    output logic        hbm_ref,
    output logic        hbm_error,
    output logic        kernel_tick,
    input  wire logic   noise_valid_i,
    input  wire logic   noise_bit_i,
    input  wire logic   noise_seeded_i,
    input  wire logic [255:0] design_i,
    input  wire logic [255:0] uds_i,
    input  wire logic [1:0]   root_i,
    input  wire logic [255:0] target_i,
    input  wire logic [255:0] shell_i,
    input  wire logic [2:0]   shell_flags_i,
    input  wire logic         debug_i,
    // native kernel
    input  wire logic   native_ready,
    input  wire logic [3:0] native_alert,
    output logic        native_wiped,
    `SHEF_AXIL_M_PORTS(mbox, 16),
    `SHEF_AXIL_S_PORTS(krn, 16),
    input  wire logic   cfg_begin,
    input  wire logic   cfg_clear,
    input  wire logic   cfg_valid,
    output logic        cfg_ready,
    input  wire logic [31:0] cfg_data,
    input  wire logic   cfg_last,
    output logic        cfg_busy,
    output logic        cfg_active,
    output logic        cfg_error,
    // observed
    output logic        obs_rst_n,
    output logic        obs_memory_rst_n,
    output logic        obs_wiped,
    output logic        obs_held,
    `SHEF_OBS_PORTS([N_ACC]),
    `SHEF_SEEN_PORTS([N_ACC]),
    `SHEF_CHECK_PORTS
);
  wire clk = core_clk;

  cl_shef #(
      .CoreDiv8(CoreDiv8),
      .Hbm(Hbm)
  ) u_cl (
      .*
  );

  // ---- memory controller: port p has the bursts of the core's memory port p ----
  logic ddr_awready, ddr_wready, ddr_bvalid, ddr_arready, ddr_rvalid, ddr_rlast;
  logic [1:0] ddr_bresp, ddr_rresp;
  logic [9:0] ddr_bid, ddr_rid;
  logic [511:0] ddr_rdata;
  axi_req_t ddr_req;
  assign ddr_req = '{
      aw: '{
          id: u_cl.u_sh_ddr.cl_sh_ddr_axi_awid[7:0],
          addr: u_cl.u_sh_ddr.cl_sh_ddr_axi_awaddr,
          len: u_cl.u_sh_ddr.cl_sh_ddr_axi_awlen,
          size: u_cl.u_sh_ddr.cl_sh_ddr_axi_awsize,
          burst: u_cl.u_sh_ddr.cl_sh_ddr_axi_awburst
      },
      aw_valid: u_cl.u_sh_ddr.cl_sh_ddr_axi_awvalid,
      w: '{
          data: u_cl.u_sh_ddr.cl_sh_ddr_axi_wdata,
          strb: u_cl.u_sh_ddr.cl_sh_ddr_axi_wstrb,
          last: u_cl.u_sh_ddr.cl_sh_ddr_axi_wlast
      },
      w_valid: u_cl.u_sh_ddr.cl_sh_ddr_axi_wvalid,
      b_ready: u_cl.u_sh_ddr.cl_sh_ddr_axi_bready,
      ar: '{
          id: u_cl.u_sh_ddr.cl_sh_ddr_axi_arid[7:0],
          addr: u_cl.u_sh_ddr.cl_sh_ddr_axi_araddr,
          len: u_cl.u_sh_ddr.cl_sh_ddr_axi_arlen,
          size: u_cl.u_sh_ddr.cl_sh_ddr_axi_arsize,
          burst: u_cl.u_sh_ddr.cl_sh_ddr_axi_arburst
      },
      ar_valid: u_cl.u_sh_ddr.cl_sh_ddr_axi_arvalid,
      r_ready: u_cl.u_sh_ddr.cl_sh_ddr_axi_rready
  };
  axi_rsp_t ddr_rsp;
  assign {ddr_awready, ddr_wready, ddr_bvalid, ddr_arready, ddr_rvalid} =
      {ddr_rsp.aw_ready, ddr_rsp.w_ready, ddr_rsp.b_valid, ddr_rsp.ar_ready, ddr_rsp.r_valid};
  assign {ddr_bresp, ddr_rresp, ddr_rlast, ddr_rdata} =
      {ddr_rsp.b.resp, ddr_rsp.r.resp, ddr_rsp.r.last, ddr_rsp.r.data};

  axi_rsp_t [3:0] hbm_rsp;
  assign hbm_ref = Hbm;
  if (Hbm) begin : g_hbm
    for (genvar p = 0; p < 4; p++) begin : g_port
      if (p < int'(N_PORTS)) begin : g_used
        assign `SHEF_AXI_REQ(mem, [p]) = u_cl.g_hbm.u_memory.u_hbm.req[p];
        assign hbm_rsp[p] = `SHEF_AXI_RSP(mem, [p]);
      end else begin : g_idle
        assign hbm_rsp[p] = '0;
      end
    end
    assign hbm_error = u_cl.g_hbm.u_memory.u_hbm.error != '0;
    assign ddr_rsp = '0;
    assign {ddr_bid, ddr_rid} = '0;
    logic unused_ddr;
    assign unused_ddr = ^ddr_req;
  end else if (N_PORTS == 1) begin : g_one
    assign `SHEF_AXI_REQ(mem, [0]) = ddr_req;
    assign ddr_rsp = `SHEF_AXI_RSP(mem, [0]);
    assign ddr_bid = 10'(ddr_rsp.b.id);
    assign ddr_rid = 10'(ddr_rsp.r.id);
  end else begin : g_many
    typedef logic [$clog2(N_PORTS)-1:0] place_t;
    axi_rsp_t [N_PORTS-1:0] mem_rsp;
    place_t aw_port, ar_port, w_port, b_port, r_port;
    logic w_known, w_room;
    logic [4:0] unused_count;
    assign aw_port = place_t'(u_cl.u_sh_ddr.cl_sh_ddr_axi_awid[9:8]);
    assign ar_port = place_t'(u_cl.u_sh_ddr.cl_sh_ddr_axi_arid[9:8]);
    shef_fifo #(.W($bits(place_t)), .Depth(16)) u_order (
        .clk_i(core_clk), .rst_ni(u_cl.memory_rst_q), .clr_i(1'b0), .zero_addr_i('0),
        .in_valid_i(ddr_req.aw_valid && ddr_rsp.aw_ready), .in_ready_o(w_room),
        .in_data_i(aw_port), .out_valid_o(w_known),
        .out_ready_i(ddr_req.w_valid && ddr_rsp.w_ready && ddr_req.w.last),
        .out_data_o(w_port), .count_o(unused_count)
    );
    // The lowest port with a response is first; all of them keep theirs.
    always_comb begin
      b_port = '0;
      r_port = '0;
      for (int p = int'(N_PORTS) - 1; p >= 0; p--) begin
        if (mem_rsp[p].b_valid) b_port = place_t'(p);
        if (mem_rsp[p].r_valid && !r_held_q) r_port = place_t'(p);
      end
      if (r_held_q) r_port = r_port_q;
      ddr_rsp = mem_rsp[r_port];
      ddr_rsp.aw_ready = mem_rsp[aw_port].aw_ready && w_room;
      ddr_rsp.w_ready = w_known && mem_rsp[w_port].w_ready;
      ddr_rsp.b = mem_rsp[b_port].b;
      ddr_rsp.b_valid = mem_rsp[b_port].b_valid;
      ddr_rsp.ar_ready = mem_rsp[ar_port].ar_ready;
      ddr_bid = {2'(b_port), ddr_rsp.b.id};
      ddr_rid = {2'(r_port), ddr_rsp.r.id};
    end
    // A response that waits is not replaced.
    logic r_held_q;
    place_t r_port_q;
    always_ff @(posedge core_clk) begin
      r_held_q <= ddr_rsp.r_valid && !(ddr_req.r_ready && ddr_rsp.r.last);
      r_port_q <= r_port;
    end
    for (genvar p = 0; p < int'(N_PORTS); p++) begin : g_port
      assign mem_rsp[p] = `SHEF_AXI_RSP(mem, [p]);
      axi_req_t req;
      always_comb begin
        req = ddr_req;
        req.aw_valid = ddr_req.aw_valid && w_room && aw_port == place_t'(p);
        req.w_valid = ddr_req.w_valid && w_known && w_port == place_t'(p);
        req.ar_valid = ddr_req.ar_valid && ar_port == place_t'(p);
        req.b_ready = ddr_req.b_ready && b_port == place_t'(p);
        req.r_ready = ddr_req.r_ready && r_port == place_t'(p);
      end
      assign `SHEF_AXI_REQ(mem, [p]) = req;
    end
  end

  if (!Hbm) begin : g_no_hbm
    assign hbm_error = 1'b0;
    assign hbm_rsp = '0;
    logic unused_hbm;
    assign unused_hbm = ^hbm_rsp;
  end

  // ---- native kernel: as seen by the module that replaces the Security Kernel ----
  axil_req_t native_mbox_req, native_krn_req;
  axil_rsp_t native_mbox_rsp, native_krn_rsp;
  assign native_mbox_req = u_cl.u_system.u_kernel.host_req_i;
  assign native_krn_rsp = u_cl.u_system.u_kernel.krn_rsp_i;
  assign native_krn_req = `SHEF_AXIL_REQ(krn);
  assign `SHEF_AXIL_RSP(krn) = native_krn_rsp;
  assign {mbox_awaddr, mbox_awvalid, mbox_wdata, mbox_wstrb, mbox_wvalid, mbox_bready, mbox_araddr,
      mbox_arvalid, mbox_rready} = native_mbox_req;
  assign native_mbox_rsp = {mbox_awready, mbox_wready, mbox_bresp, mbox_bvalid, mbox_arready,
      mbox_rdata, mbox_rresp, mbox_rvalid};
  assign native_wiped = u_cl.u_system.u_kernel.wipe_req_i;
  assign {cfg_ready, cfg_busy, cfg_active, cfg_error} =
      {u_cl.cfg_ready, u_cl.cfg_busy, u_cl.cfg_active, u_cl.cfg_error};

  // Only the native kernel uses these.
  logic unused_native;
  assign unused_native = ^{native_ready, native_alert, native_krn_req, native_mbox_rsp, cfg_begin,
      cfg_clear, cfg_valid, cfg_data, cfg_last};

  // ---- observed ----
  assign kernel_tick = u_cl.kernel_tick;
  assign obs_rst_n = u_cl.core_rst_q;
  assign obs_memory_rst_n = u_cl.memory_rst_q;
  assign obs_wiped = u_cl.core_wipe_ack && u_cl.core_rst_q;
  assign obs_held = !u_cl.u_system.design_rst_n;
  for (genvar p = 0; p < int'(N_ACC); p++) begin : g_obs
    `SHEF_OBS([p], u_cl.u_system.u_design.u_core.acc_req[p],
        u_cl.u_system.u_design.u_core.acc_rsp[p]);
    `SHEF_SEEN([p], u_cl.u_system.u_design.u_core.own_req[p],
        u_cl.u_system.u_design.u_core.own_rsp[p], u_cl.u_system.u_design.u_core.acc_rst_n);
  end
  `SHEF_SEEN_REG(u_cl.u_system.u_design.u_core.reg_req, u_cl.u_system.u_design.u_core.reg_rsp,
      u_cl.u_system.u_design.u_core.acc_rst_n, u_cl.u_system.u_design.u_core.acc_clear,
      u_cl.u_system.u_design.u_core.acc_cleared, u_cl.u_system.u_design.u_core.acc_irq);

  `SHEF_CHECK_CORE(u_cl.u_system.u_design.u_core);
endmodule
