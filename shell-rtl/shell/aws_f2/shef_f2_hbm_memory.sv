// Memory ports of the core on the HBM of AWS F2, through the vendor's IP cl_hbm.
//
// mem_*: the ports, each through its own shef_f2_hbm, on clk_i; 32 bytes a cycle each way. Port p
// is AXI port p of the IP, whose switch gives every port the whole 16 GiB: h2c and the Shield
// address one memory, as with DDR, and all ports share the switch beside the lowest addresses.
// rst_ni (clk_i) and run_i (a flip-flop) are the reset of the memory. Both resets of the IP follow
// it: that of its AXI ports alone would leave the controllers out of step with them. ready_o: both
// stacks are initialised. A request passes only while ready_i is high. hbm_apb_*: the IP's monitor
// of each stack, for the shell, on ref_clk_i.
`default_nettype none
module shef_f2_hbm_memory
  import shef_pkg::*;
#(
    parameter int unsigned NPorts = 1
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic run_i,
    input  wire logic ref_clk_i,
    output logic      ready_o,
    input  wire logic ready_i,
    input  wire axi_req_t [NPorts-1:0] mem_req_i,
    output axi_rsp_t [NPorts-1:0] mem_rsp_o,
    input  wire logic [1:0] hbm_apb_preset_n_i,
    output logic [1:0][21:0] hbm_apb_paddr_o,
    output logic [1:0]       hbm_apb_psel_o,
    output logic [1:0]       hbm_apb_penable_o,
    output logic [1:0]       hbm_apb_pwrite_o,
    output logic [1:0][31:0] hbm_apb_pwdata_o,
    output logic [1:0]       hbm_apb_pready_o,
    output logic [1:0][31:0] hbm_apb_prdata_o,
    output logic [1:0]       hbm_apb_pslverr_o
);
  localparam int unsigned IP_PORTS = 32;

  // ---- initialisation: apb_complete is the reset of a flip-flop chain on clk_i ----
  logic apb_rst_n;
  logic [1:0] complete, up;
  shef_reset_sync u_apb_rst (
      .clk_i(ref_clk_i),
      .rst_ni(run_i),
      .rst_no(apb_rst_n)
  );
  for (genvar n = 0; n < 2; n++) begin : g_stack
    shef_reset_sync u_up_rst (
        .clk_i,
        .rst_ni(complete[n]),
        .rst_no(up[n])
    );
  end
  assign ready_o = up == '1;

  // ---- the AXI ports of the IP; those that the core does not have are idle ----
  logic [IP_PORTS-1:0][5:0] aw_id, ar_id, b_id, r_id;
  logic [IP_PORTS-1:0][33:0] aw_addr, ar_addr;
  logic [IP_PORTS-1:0][3:0] aw_len, ar_len;
  logic [IP_PORTS-1:0][255:0] w_data, r_data;
  logic [IP_PORTS-1:0][31:0] w_strb, w_parity;
  logic [IP_PORTS-1:0][1:0] b_resp, r_resp;
  logic [IP_PORTS-1:0] aw_valid, aw_ready, w_last, w_valid, w_ready, b_valid, b_ready, ar_valid,
      ar_ready, r_last, r_valid, r_ready;
  for (genvar p = 0; p < int'(IP_PORTS); p++) begin : g_port
    if (p < int'(NPorts)) begin : g_used
      axi_req_t req;
      axi_rsp_t rsp;
      always_comb begin
        req = mem_req_i[p];
        req.aw_valid = mem_req_i[p].aw_valid && ready_i;
        req.w_valid = mem_req_i[p].w_valid && ready_i;
        req.ar_valid = mem_req_i[p].ar_valid && ready_i;
        mem_rsp_o[p] = rsp;
        mem_rsp_o[p].aw_ready = rsp.aw_ready && ready_i;
        mem_rsp_o[p].w_ready = rsp.w_ready && ready_i;
        mem_rsp_o[p].ar_ready = rsp.ar_ready && ready_i;
      end
      shef_f2_hbm u_bridge (
          .clk_i,
          .rst_ni,
          .core_req_i(req),
          .core_rsp_o(rsp),
          .hbm_aw_id_o(aw_id[p]),
          .hbm_aw_addr_o(aw_addr[p]),
          .hbm_aw_len_o(aw_len[p]),
          .hbm_aw_valid_o(aw_valid[p]),
          .hbm_aw_ready_i(aw_ready[p]),
          .hbm_w_data_o(w_data[p]),
          .hbm_w_strb_o(w_strb[p]),
          .hbm_w_parity_o(w_parity[p]),
          .hbm_w_last_o(w_last[p]),
          .hbm_w_valid_o(w_valid[p]),
          .hbm_w_ready_i(w_ready[p]),
          .hbm_b_id_i(b_id[p]),
          .hbm_b_resp_i(b_resp[p]),
          .hbm_b_valid_i(b_valid[p]),
          .hbm_b_ready_o(b_ready[p]),
          .hbm_ar_id_o(ar_id[p]),
          .hbm_ar_addr_o(ar_addr[p]),
          .hbm_ar_len_o(ar_len[p]),
          .hbm_ar_valid_o(ar_valid[p]),
          .hbm_ar_ready_i(ar_ready[p]),
          .hbm_r_id_i(r_id[p]),
          .hbm_r_data_i(r_data[p]),
          .hbm_r_resp_i(r_resp[p]),
          .hbm_r_last_i(r_last[p]),
          .hbm_r_valid_i(r_valid[p]),
          .hbm_r_ready_o(r_ready[p])
      );
    end else begin : g_idle
      assign {aw_id[p], aw_addr[p], aw_len[p], aw_valid[p]} = '0;
      assign {w_data[p], w_strb[p], w_parity[p], w_last[p], w_valid[p]} = '0;
      assign {ar_id[p], ar_addr[p], ar_len[p], ar_valid[p]} = '0;
      assign {b_ready[p], r_ready[p]} = '0;
      logic unused;
      assign unused = ^{aw_ready[p], w_ready[p], b_id[p], b_resp[p], b_valid[p], ar_ready[p],
          r_id[p], r_data[p], r_resp[p], r_last[p], r_valid[p]};
    end
  end

  // The host has no access to the APB ports; heat is for the monitor.
  // verilator lint_off PINCONNECTEMPTY
`define SHEF_HBM_STACK(n) \
      .HBM_REF_CLK_``n(ref_clk_i), \
      .APB_``n``_PCLK(ref_clk_i), \
      .APB_``n``_PRESET_N(apb_rst_n), \
      .APB_``n``_PADDR('0), \
      .APB_``n``_PSEL(1'b0), \
      .APB_``n``_PENABLE(1'b0), \
      .APB_``n``_PWRITE(1'b0), \
      .APB_``n``_PWDATA('0), \
      .APB_``n``_PRDATA(), \
      .APB_``n``_PREADY(), \
      .APB_``n``_PSLVERR(), \
      .MON_APB_``n``_PRESET_N(hbm_apb_preset_n_i[n]), \
      .APB_``n``_PADDR_MON(hbm_apb_paddr_o[n]), \
      .APB_``n``_PSEL_MON(hbm_apb_psel_o[n]), \
      .APB_``n``_PENABLE_MON(hbm_apb_penable_o[n]), \
      .APB_``n``_PWRITE_MON(hbm_apb_pwrite_o[n]), \
      .APB_``n``_PWDATA_MON(hbm_apb_pwdata_o[n]), \
      .APB_``n``_PRDATA_MON(hbm_apb_prdata_o[n]), \
      .APB_``n``_PREADY_MON(hbm_apb_pready_o[n]), \
      .APB_``n``_PSLVERR_MON(hbm_apb_pslverr_o[n]), \
      .apb_complete_``n(complete[n]), \
      .DRAM_``n``_STAT_CATTRIP(), \
      .DRAM_``n``_STAT_TEMP()
`define SHEF_HBM_PORT(nn, p) \
      .AXI_``nn``_ACLK(clk_i), \
      .AXI_``nn``_ARESET_N(rst_ni), \
      .AXI_``nn``_ARADDR(ar_addr[p]), \
      .AXI_``nn``_ARBURST(AXI_BURST_INCR), \
      .AXI_``nn``_ARID(ar_id[p]), \
      .AXI_``nn``_ARLEN(ar_len[p]), \
      .AXI_``nn``_ARSIZE(3'd5), \
      .AXI_``nn``_ARVALID(ar_valid[p]), \
      .AXI_``nn``_ARREADY(ar_ready[p]), \
      .AXI_``nn``_RID(r_id[p]), \
      .AXI_``nn``_RDATA(r_data[p]), \
      .AXI_``nn``_RDATA_PARITY(), \
      .AXI_``nn``_RRESP(r_resp[p]), \
      .AXI_``nn``_RLAST(r_last[p]), \
      .AXI_``nn``_RVALID(r_valid[p]), \
      .AXI_``nn``_RREADY(r_ready[p]), \
      .AXI_``nn``_AWADDR(aw_addr[p]), \
      .AXI_``nn``_AWBURST(AXI_BURST_INCR), \
      .AXI_``nn``_AWID(aw_id[p]), \
      .AXI_``nn``_AWLEN(aw_len[p]), \
      .AXI_``nn``_AWSIZE(3'd5), \
      .AXI_``nn``_AWVALID(aw_valid[p]), \
      .AXI_``nn``_AWREADY(aw_ready[p]), \
      .AXI_``nn``_WDATA(w_data[p]), \
      .AXI_``nn``_WDATA_PARITY(w_parity[p]), \
      .AXI_``nn``_WSTRB(w_strb[p]), \
      .AXI_``nn``_WLAST(w_last[p]), \
      .AXI_``nn``_WVALID(w_valid[p]), \
      .AXI_``nn``_WREADY(w_ready[p]), \
      .AXI_``nn``_BID(b_id[p]), \
      .AXI_``nn``_BRESP(b_resp[p]), \
      .AXI_``nn``_BVALID(b_valid[p]), \
      .AXI_``nn``_BREADY(b_ready[p])
  cl_hbm u_hbm (
      `SHEF_HBM_STACK(0),
      `SHEF_HBM_STACK(1),
      `SHEF_HBM_PORT(00, 0),
      `SHEF_HBM_PORT(01, 1),
      `SHEF_HBM_PORT(02, 2),
      `SHEF_HBM_PORT(03, 3),
      `SHEF_HBM_PORT(04, 4),
      `SHEF_HBM_PORT(05, 5),
      `SHEF_HBM_PORT(06, 6),
      `SHEF_HBM_PORT(07, 7),
      `SHEF_HBM_PORT(08, 8),
      `SHEF_HBM_PORT(09, 9),
      `SHEF_HBM_PORT(10, 10),
      `SHEF_HBM_PORT(11, 11),
      `SHEF_HBM_PORT(12, 12),
      `SHEF_HBM_PORT(13, 13),
      `SHEF_HBM_PORT(14, 14),
      `SHEF_HBM_PORT(15, 15),
      `SHEF_HBM_PORT(16, 16),
      `SHEF_HBM_PORT(17, 17),
      `SHEF_HBM_PORT(18, 18),
      `SHEF_HBM_PORT(19, 19),
      `SHEF_HBM_PORT(20, 20),
      `SHEF_HBM_PORT(21, 21),
      `SHEF_HBM_PORT(22, 22),
      `SHEF_HBM_PORT(23, 23),
      `SHEF_HBM_PORT(24, 24),
      `SHEF_HBM_PORT(25, 25),
      `SHEF_HBM_PORT(26, 26),
      `SHEF_HBM_PORT(27, 27),
      `SHEF_HBM_PORT(28, 28),
      `SHEF_HBM_PORT(29, 29),
      `SHEF_HBM_PORT(30, 30),
      `SHEF_HBM_PORT(31, 31)
  );
`undef SHEF_HBM_STACK
`undef SHEF_HBM_PORT
  // verilator lint_on PINCONNECTEMPTY
endmodule
`default_nettype wire
