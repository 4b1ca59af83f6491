// Host memory in the shell of AWS F2: the core's host port on PCIM, across clocks.
//
// core_*: AXI4 slave on core_clk_i, the port `host` of shef_system. pcim_*: AXI4 master on
// main_clk_i, with the rules of shef_dma. A write leaves at AW when all of its data are on the
// shell's side, so that W never waits; R and B are taken at once.
// run_i (main_clk_i, from a flip-flop): low resets the path to the core. Promises to the shell
// are kept: bursts whose AW was offered are sent whole, other data are dropped, and late
// responses are accepted and dropped. idle_o: nothing is under way at the shell; run_i must not rise
// before.
`default_nettype none
module shef_f2_pcim
  import shef_pkg::*;
(
    input  wire logic main_clk_i,
    input  wire logic main_rst_ni,
    input  wire logic run_i,
    output logic      idle_o,
    output axi_req_t  pcim_req_o,
    input  wire axi_rsp_t pcim_rsp_i,
    input  wire logic core_clk_i,
    input  wire axi_req_t core_req_i,
    output axi_rsp_t  core_rsp_o
);
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

  // The path is up.
  logic up_q;
  always_ff @(posedge main_clk_i or negedge main_path_rst_n) begin
    if (!main_path_rst_n) up_q <= 1'b0;
    else up_q <= 1'b1;
  end

  // ---- crossings ----
  axi_ax_t aw, ar;
  axi_w_t w;
  logic aw_valid, aw_take, w_valid, w_take, ar_valid, ar_take, b_ready, r_ready;

  shef_async_fifo #(.W($bits(axi_ax_t)), .Depth(16)) u_aw (
      .wr_clk_i(core_clk_i), .wr_rst_ni(core_path_rst_n),
      .wr_valid_i(core_req_i.aw_valid), .wr_ready_o(core_rsp_o.aw_ready), .wr_data_i(core_req_i.aw),
      .rd_clk_i(main_clk_i), .rd_rst_ni(main_path_rst_n),
      .rd_valid_o(aw_valid), .rd_ready_i(aw_take), .rd_data_o(aw)
  );
  shef_async_fifo #(.W($bits(axi_w_t)), .Depth(32)) u_w (
      .wr_clk_i(core_clk_i), .wr_rst_ni(core_path_rst_n),
      .wr_valid_i(core_req_i.w_valid), .wr_ready_o(core_rsp_o.w_ready), .wr_data_i(core_req_i.w),
      .rd_clk_i(main_clk_i), .rd_rst_ni(main_path_rst_n),
      .rd_valid_o(w_valid), .rd_ready_i(w_take), .rd_data_o(w)
  );
  shef_async_fifo #(.W($bits(axi_ax_t)), .Depth(16)) u_ar (
      .wr_clk_i(core_clk_i), .wr_rst_ni(core_path_rst_n),
      .wr_valid_i(core_req_i.ar_valid), .wr_ready_o(core_rsp_o.ar_ready), .wr_data_i(core_req_i.ar),
      .rd_clk_i(main_clk_i), .rd_rst_ni(main_path_rst_n),
      .rd_valid_o(ar_valid), .rd_ready_i(ar_take), .rd_data_o(ar)
  );
  shef_async_fifo #(.W($bits(axi_b_t)), .Depth(16)) u_b (
      .wr_clk_i(main_clk_i), .wr_rst_ni(main_path_rst_n),
      .wr_valid_i(pcim_rsp_i.b_valid), .wr_ready_o(b_ready), .wr_data_i(pcim_rsp_i.b),
      .rd_clk_i(core_clk_i), .rd_rst_ni(core_path_rst_n),
      .rd_valid_o(core_rsp_o.b_valid), .rd_ready_i(core_req_i.b_ready), .rd_data_o(core_rsp_o.b)
  );
  shef_async_fifo #(.W($bits(axi_r_t)), .Depth(64)) u_r (
      .wr_clk_i(main_clk_i), .wr_rst_ni(main_path_rst_n),
      .wr_valid_i(pcim_rsp_i.r_valid), .wr_ready_o(r_ready), .wr_data_i(pcim_rsp_i.r),
      .rd_clk_i(core_clk_i), .rd_rst_ni(core_path_rst_n),
      .rd_valid_o(core_rsp_o.r_valid), .rd_ready_i(core_req_i.r_ready), .rd_data_o(core_rsp_o.r)
  );

  shef_f2_pcim_main u_main (
      .clk_i(main_clk_i),
      .rst_ni(main_rst_ni),
      .up_i(up_q),
      .idle_o,
      .aw_i(aw),
      .aw_valid_i(aw_valid),
      .aw_ready_o(aw_take),
      .w_i(w),
      .w_valid_i(w_valid),
      .w_ready_o(w_take),
      .ar_i(ar),
      .ar_valid_i(ar_valid),
      .ar_ready_o(ar_take),
      .b_ready_i(b_ready),
      .r_ready_i(r_ready),
      .pcim_req_o,
      .pcim_rsp_i
  );
endmodule
`default_nettype wire
