// PCIS in the shell of AWS F2: the window of the host to card memory, across clocks.
//
// aw_*, w_*, b_*, ar_*, r_*: AXI4 slave on main_clk_i; bursts are INCR of whole beats, at most 64.
// core_*: AXI4 master on core_clk_i, the port `h2c` of shef_system. Each access is answered within
// `Cycles` of main_clk_i, with SLVERR and all ones if the core does not answer; late data of the core
// are dropped. Cycles in which the shell takes no beat or response, or sends no data, do not count
// (shef_f2_pcis_reads, shef_f2_pcis_writes).
// link_i (main_clk_i): the core runs and answers. While it is low, accesses are answered at once,
// open ones too; when it rises, the path opens as soon as the core owes nothing.
// run_i (main_clk_i, from a flip-flop, the reset of the core): low resets the path to the core;
// link_i is low then, and until the core is out of reset. idle_o: the core owes nothing.
// read_late_o, write_late_o (pulse): an access was answered without the core although link_i was
// high.
`default_nettype none
module shef_f2_pcis
  import shef_pkg::*;
#(
    parameter int unsigned Cycles = 1250
) (
    input  wire logic         main_clk_i,
    input  wire logic         main_rst_ni,
    input  wire logic         link_i,
    input  wire logic         run_i,
    output logic              idle_o,
    input  wire logic [15:0]  awid_i,
    input  wire logic [63:0]  awaddr_i,
    input  wire logic [7:0]   awlen_i,
    input  wire logic         awvalid_i,
    output logic              awready_o,
    input  wire logic [511:0] wdata_i,
    input  wire logic [63:0]  wstrb_i,
    input  wire logic         wlast_i,
    input  wire logic         wvalid_i,
    output logic              wready_o,
    output logic [15:0]       bid_o,
    output logic [1:0]        bresp_o,
    output logic              bvalid_o,
    input  wire logic         bready_i,
    input  wire logic [15:0]  arid_i,
    input  wire logic [63:0]  araddr_i,
    input  wire logic [7:0]   arlen_i,
    input  wire logic         arvalid_i,
    output logic              arready_o,
    output logic [15:0]       rid_o,
    output logic [511:0]      rdata_o,
    output logic [1:0]        rresp_o,
    output logic              rlast_o,
    output logic              rvalid_o,
    input  wire logic         rready_i,
    output logic              read_late_o,
    output logic              write_late_o,
    input  wire logic         core_clk_i,
    output axi_req_t          core_req_o,
    input  wire axi_rsp_t     core_rsp_i
);
  localparam int unsigned Beats = 512;  // of each direction, in block RAM

  // An access for the core: its line, and its beats less one.
  typedef struct packed {
    logic [57:0] line;
    logic [5:0] len;
  } ask_t;

  // ---- resets of the path ----
  logic main_path_rst_n, core_path_rst_n;
  shef_reset_sync u_main_rst (
      .clk_i(main_clk_i),
      .rst_ni(run_i),
      .rst_no(main_path_rst_n)
  );
  shef_reset_sync u_core_rst (
      .clk_i(core_clk_i),
      .rst_ni(run_i),
      .rst_no(core_path_rst_n)
  );

  // The path is up; and in use.
  logic up_q, link_q, reads_owed, writes_owed;
  wire link = link_q && link_i;
  assign idle_o = !reads_owed && !writes_owed;
  always_ff @(posedge main_clk_i or negedge main_path_rst_n) begin
    if (!main_path_rst_n) up_q <= 1'b0;
    else up_q <= 1'b1;
  end
  always_ff @(posedge main_clk_i or negedge main_path_rst_n) begin
    if (!main_path_rst_n) link_q <= 1'b0;
    else link_q <= link_i && up_q && (link_q || idle_o);
  end

  // ---- the shell's side ----
  ask_t ar, aw;
  logic ar_valid, ar_ready, r_valid, r_ready, aw_valid, aw_ready, w_valid, w_last, b_valid, b_ready;
  logic [513:0] r;
  logic [1:0] b;

  shef_f2_pcis_reads #(
      .Cycles(Cycles)
  ) u_reads (
      .clk_i(main_clk_i),
      .rst_ni(main_rst_ni),
      .up_i(up_q),
      .link_i(link),
      .owed_o(reads_owed),
      .ar_id_i(arid_i),
      .ar_addr_i(araddr_i),
      .ar_len_i(arlen_i),
      .ar_valid_i(arvalid_i),
      .ar_ready_o(arready_o),
      .r_id_o(rid_o),
      .r_data_o(rdata_o),
      .r_resp_o(rresp_o),
      .r_last_o(rlast_o),
      .r_valid_o(rvalid_o),
      .r_ready_i(rready_i),
      .ask_line_o(ar.line),
      .ask_len_o(ar.len),
      .ask_valid_o(ar_valid),
      .ask_ready_i(ar_ready),
      .beat_i(r[511:0]),
      .resp_i(r[513:512]),
      .beat_valid_i(r_valid),
      .beat_ready_o(r_ready),
      .late_o(read_late_o)
  );

  shef_f2_pcis_writes #(
      .Cycles(Cycles),
      .Beats(Beats)
  ) u_writes (
      .clk_i(main_clk_i),
      .rst_ni(main_rst_ni),
      .up_i(up_q),
      .link_i(link),
      .owed_o(writes_owed),
      .aw_id_i(awid_i),
      .aw_addr_i(awaddr_i),
      .aw_len_i(awlen_i),
      .aw_valid_i(awvalid_i),
      .aw_ready_o(awready_o),
      .w_valid_i(wvalid_i),
      .w_ready_o(wready_o),
      .b_id_o(bid_o),
      .b_resp_o(bresp_o),
      .b_valid_o(bvalid_o),
      .b_ready_i(bready_i),
      .data_valid_o(w_valid),
      .data_last_o(w_last),
      .ask_line_o(aw.line),
      .ask_len_o(aw.len),
      .ask_valid_o(aw_valid),
      .ask_ready_i(aw_ready),
      .done_resp_i(b),
      .done_valid_i(b_valid),
      .done_ready_o(b_ready),
      .late_o(write_late_o)
  );

  // ---- crossings ----
  ask_t core_ar, core_aw;
  logic core_ar_valid, core_aw_valid, core_w_valid, core_r_ready, core_b_ready, w_ready;
  axi_w_t core_w;

  shef_async_fifo #(.W($bits(ask_t)), .Depth(32)) u_ar (
      .wr_clk_i(main_clk_i), .wr_rst_ni(main_path_rst_n),
      .wr_valid_i(ar_valid), .wr_ready_o(ar_ready), .wr_data_i(ar),
      .rd_clk_i(core_clk_i), .rd_rst_ni(core_path_rst_n),
      .rd_valid_o(core_ar_valid), .rd_ready_i(core_rsp_i.ar_ready), .rd_data_o(core_ar)
  );
  shef_async_fifo #(.W($bits(ask_t)), .Depth(64)) u_aw (
      .wr_clk_i(main_clk_i), .wr_rst_ni(main_path_rst_n),
      .wr_valid_i(aw_valid), .wr_ready_o(aw_ready), .wr_data_i(aw),
      .rd_clk_i(core_clk_i), .rd_rst_ni(core_path_rst_n),
      .rd_valid_o(core_aw_valid), .rd_ready_i(core_rsp_i.aw_ready), .rd_data_o(core_aw)
  );
  shef_async_fifo #(.W($bits(axi_w_t)), .Depth(Beats)) u_w (
      .wr_clk_i(main_clk_i), .wr_rst_ni(main_path_rst_n),
      .wr_valid_i(w_valid), .wr_ready_o(w_ready), .wr_data_i({wdata_i, wstrb_i, w_last}),
      .rd_clk_i(core_clk_i), .rd_rst_ni(core_path_rst_n),
      .rd_valid_o(core_w_valid), .rd_ready_i(core_rsp_i.w_ready), .rd_data_o(core_w)
  );
  shef_async_fifo #(.W(514), .Depth(Beats)) u_r (
      .wr_clk_i(core_clk_i), .wr_rst_ni(core_path_rst_n),
      .wr_valid_i(core_rsp_i.r_valid), .wr_ready_o(core_r_ready),
      .wr_data_i({core_rsp_i.r.resp, core_rsp_i.r.data}),
      .rd_clk_i(main_clk_i), .rd_rst_ni(main_path_rst_n),
      .rd_valid_o(r_valid), .rd_ready_i(r_ready), .rd_data_o(r)
  );
  shef_async_fifo #(.W(2), .Depth(64)) u_b (
      .wr_clk_i(core_clk_i), .wr_rst_ni(core_path_rst_n),
      .wr_valid_i(core_rsp_i.b_valid), .wr_ready_o(core_b_ready), .wr_data_i(core_rsp_i.b.resp),
      .rd_clk_i(main_clk_i), .rd_rst_ni(main_path_rst_n),
      .rd_valid_o(b_valid), .rd_ready_i(b_ready), .rd_data_o(b)
  );

  // The length says which beat is the last, the place of a response which access it belongs to; and
  // there is room for each beat that is forwarded.
  logic unused;
  assign unused = ^{wlast_i, w_ready, core_rsp_i.b.id, core_rsp_i.r.id, core_rsp_i.r.last};

  assign core_req_o = '{
      aw: '{id: '0, addr: {core_aw.line, 6'd0}, len: 8'(core_aw.len), size: AXI_SIZE_64,
          burst: AXI_BURST_INCR},
      aw_valid: core_aw_valid,
      w: core_w,
      w_valid: core_w_valid,
      b_ready: core_b_ready,
      ar: '{id: '0, addr: {core_ar.line, 6'd0}, len: 8'(core_ar.len), size: AXI_SIZE_64,
          burst: AXI_BURST_INCR},
      ar_valid: core_ar_valid,
      r_ready: core_r_ready
  };
endmodule
`default_nettype wire
