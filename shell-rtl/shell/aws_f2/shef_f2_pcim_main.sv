// The shell's side of shef_f2_pcim, on clk_i: write data are collected, bursts that are whole leave,
// and the shell gets what it was promised also when the core is gone.
//
// aw_*, w_*, ar_*: from the core; b_ready_i, r_ready_i: the core takes a response. up_i low: the path
// to the core is reset. Data without a promise are dropped then, and responses are accepted.
// idle_o: nothing is under way at the shell.
`default_nettype none
module shef_f2_pcim_main
  import shef_pkg::*;
#(
    parameter int unsigned Beats = 128  // buffer for write data, at least two bursts
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic up_i,
    output logic      idle_o,
    input  wire axi_ax_t aw_i,
    input  wire logic aw_valid_i,
    output logic      aw_ready_o,
    input  wire axi_w_t w_i,
    input  wire logic w_valid_i,
    output logic      w_ready_o,
    input  wire axi_ax_t ar_i,
    input  wire logic ar_valid_i,
    output logic      ar_ready_o,
    input  wire logic b_ready_i,
    input  wire logic r_ready_i,
    output axi_req_t  pcim_req_o,
    input  wire axi_rsp_t pcim_rsp_i
);
  localparam int unsigned BW = $clog2(Beats);
  typedef logic [BW:0] place_t;  // one bit more than an index

  // ---- write data: filled to fill_q, promised to the shell up to promise_q, sent to sent_q ----
  axi_w_t beat_q[Beats];
  axi_w_t out_q;
  logic out_valid_q;
  place_t fill_q, promise_q, sent_q, open_q;  // open_q: data may go up to here, AW is accepted
  axi_ax_t aw_q, ar_q;
  logic aw_valid_q, ar_valid_q;

  wire place_t filled = fill_q - promise_q;
  wire whole = filled > place_t'(aw_i.len);
  wire aw_take = aw_valid_i && whole && up_i && !aw_valid_q;
  wire w_take = up_i && place_t'(fill_q - sent_q) != place_t'(Beats);
  wire ar_take = ar_valid_i && up_i && (!ar_valid_q || pcim_rsp_i.ar_ready);
  assign aw_ready_o = aw_take;
  assign w_ready_o = w_take;
  assign ar_ready_o = ar_take;
  wire w_push = w_valid_i && w_take;
  wire load = sent_q != open_q && (!out_valid_q || pcim_rsp_i.w_ready);
  wire aw_sent = aw_valid_q && pcim_rsp_i.aw_ready;
  wire ar_sent = ar_valid_q && pcim_rsp_i.ar_ready;

  always_ff @(posedge clk_i) begin
    if (w_push) beat_q[fill_q[BW-1:0]] <= w_i;
  end

  always_ff @(posedge clk_i) begin
    if (load) out_q <= beat_q[sent_q[BW-1:0]];
    if (aw_take) aw_q <= aw_i;
    if (ar_take) ar_q <= ar_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fill_q <= '0;
      promise_q <= '0;
      open_q <= '0;
      sent_q <= '0;
      out_valid_q <= 1'b0;
      aw_valid_q <= 1'b0;
      ar_valid_q <= 1'b0;
    end else begin
      // What has no promise is gone with the core.
      if (!up_i) fill_q <= promise_q;
      else if (w_push) fill_q <= fill_q + place_t'(1);
      if (aw_take) promise_q <= promise_q + place_t'(aw_i.len) + place_t'(1);
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

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writes_q <= '0;
      reads_q <= '0;
    end else begin
      if (aw_sent != b_end) writes_q <= aw_sent ? writes_q + 8'd1 : writes_q - 8'(writes_q != '0);
      if (ar_sent != r_end) reads_q <= ar_sent ? reads_q + 8'd1 : reads_q - 8'(reads_q != '0);
    end
  end

  // Responses pass beside this module.
  logic unused;
  assign unused = ^{pcim_rsp_i.b, pcim_rsp_i.r.id, pcim_rsp_i.r.data, pcim_rsp_i.r.resp};

  assign pcim_req_o = '{
      aw: aw_q,
      aw_valid: aw_valid_q,
      w: out_q,
      w_valid: out_valid_q,
      b_ready: b_ready_i || !up_i,
      ar: ar_q,
      ar_valid: ar_valid_q,
      r_ready: r_ready_i || !up_i
  };
endmodule
`default_nettype wire
