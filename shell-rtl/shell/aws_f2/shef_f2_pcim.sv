// Host memory in the shell of AWS F2: the core's host port on PCIM, across clocks.
//
// core_*: AXI4 slave on core_clk_i, the port `host` of shef_system. pcim_*: AXI4 master on
// main_clk_i, with the rules of shef_dma. A write leaves at AW when all of its data are on the
// shell's side, so that W never waits; R and B are taken at once.
// run_i (main_clk_i, from a flip-flop): low resets the path to the core. What the shell was promised
// then still ends: bursts whose AW was offered are sent whole, other data are dropped, and late
// responses are accepted and dropped. idle_o: nothing is under way at the shell; run_i must not rise
// before.
`default_nettype none
module shef_f2_pcim
  import shef_pkg::*;
#(
    parameter int unsigned Beats = 128  // buffer for write data, at least two bursts
) (
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
  localparam int unsigned BW = $clog2(Beats);
  typedef logic [BW:0] place_t;  // one bit more than an index

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

  // ---- write data: filled to fill_q, promised to the shell up to promise_q, sent to sent_q ----
  axi_w_t beat_q[Beats];
  axi_w_t out_q;
  logic out_valid_q;
  place_t fill_q, promise_q, sent_q, open_q;  // open_q: data may go up to here, AW is accepted
  axi_ax_t aw_q, ar_q;
  logic aw_valid_q, ar_valid_q;

  wire place_t filled = fill_q - promise_q;
  wire whole = filled > place_t'(aw.len);
  assign aw_take = aw_valid && whole && up_q && !aw_valid_q;
  assign w_take = up_q && place_t'(fill_q - sent_q) != place_t'(Beats);
  wire w_push = w_valid && w_take;
  wire load = sent_q != open_q && (!out_valid_q || pcim_rsp_i.w_ready);
  wire aw_sent = aw_valid_q && pcim_rsp_i.aw_ready;
  wire ar_sent = ar_valid_q && pcim_rsp_i.ar_ready;
  assign ar_take = ar_valid && up_q && (!ar_valid_q || pcim_rsp_i.ar_ready);

  always_ff @(posedge main_clk_i) begin
    if (w_push) beat_q[fill_q[BW-1:0]] <= w;
  end

  always_ff @(posedge main_clk_i) begin
    if (load) out_q <= beat_q[sent_q[BW-1:0]];
    if (aw_take) aw_q <= aw;
    if (ar_take) ar_q <= ar;
  end

  always_ff @(posedge main_clk_i) begin
    if (!main_rst_ni) begin
      fill_q <= '0;
      promise_q <= '0;
      open_q <= '0;
      sent_q <= '0;
      out_valid_q <= 1'b0;
      aw_valid_q <= 1'b0;
      ar_valid_q <= 1'b0;
    end else begin
      // What has no promise is gone with the core.
      if (!up_q) fill_q <= promise_q;
      else if (w_push) fill_q <= fill_q + place_t'(1);
      if (aw_take) promise_q <= promise_q + place_t'(aw.len) + place_t'(1);
      if (aw_sent) open_q <= open_q + place_t'(aw_q.len) + place_t'(1);
      if (load) sent_q <= sent_q + place_t'(1);
      if (load || pcim_rsp_i.w_ready) out_valid_q <= load;
      if (aw_take || aw_sent) aw_valid_q <= aw_take;
      if (ar_take || ar_sent) ar_valid_q <= ar_take;
    end
  end

  // ---- what is under way ----
  logic [7:0] writes_q, reads_q;
  wire b_end = pcim_rsp_i.b_valid && pcim_req_o.b_ready;
  wire r_end = pcim_rsp_i.r_valid && pcim_req_o.r_ready && pcim_rsp_i.r.last;
  assign idle_o = !aw_valid_q && !ar_valid_q && !out_valid_q && sent_q == promise_q &&
      writes_q == '0 && reads_q == '0;

  always_ff @(posedge main_clk_i) begin
    if (!main_rst_ni) begin
      writes_q <= '0;
      reads_q <= '0;
    end else begin
      if (aw_sent != b_end) writes_q <= aw_sent ? writes_q + 8'd1 : writes_q - 8'(writes_q != '0);
      if (ar_sent != r_end) reads_q <= ar_sent ? reads_q + 8'd1 : reads_q - 8'(reads_q != '0);
    end
  end

  assign pcim_req_o = '{
      aw: aw_q,
      aw_valid: aw_valid_q,
      w: out_q,
      w_valid: out_valid_q,
      b_ready: b_ready || !up_q,
      ar: ar_q,
      ar_valid: ar_valid_q,
      r_ready: r_ready || !up_q
  };
endmodule
`default_nettype wire
