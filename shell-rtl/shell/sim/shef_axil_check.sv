// Checks the registers of an accelerator, an AXI4-Lite slave, against the rules of shef_check_pkg.
//
// As shef_axi_check. done_o (combinational pulse): the answer of a read says that the job is done:
// done_on_i, and the word at done_addr_i under done_mask_i is done_value_i, for the first time
// since it was not.
//
// Simulation only, and not in waves: all state belongs to one process, which assigns it as a program
// does.
// verilator tracing_off
// verilator lint_off BLKSEQ
// verilator lint_off UNUSEDSIGNAL
// (addresses and write data that no rule concerns)
`default_nettype none
module shef_axil_check
  import shef_pkg::*;
  import shef_check_pkg::*;
(
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        on_i,
    input  wire logic [63:0] now_i,
    input  wire axil_req_t   req_i,
    input  wire axil_rsp_t   rsp_i,
    input  wire logic        done_on_i,
    input  wire logic [15:0] done_addr_i,
    input  wire logic [31:0] done_mask_i,
    input  wire logic [31:0] done_value_i,
    output logic             done_o,
    output logic             out_valid_o,
    output report_t          out_o,
    input  wire logic        out_take_i,
    output logic [31:0]      lost_o
);
  localparam int unsigned Queue = 16;
  localparam int unsigned QueueW = $clog2(Queue);
  localparam logic [9:0] Patience = 10'd1000;

  report_t queue[Queue];
  logic [QueueW-1:0] queue_at;
  logic [QueueW:0] queued;
  logic [31:0] lost;

  // Registers have no bursts: a report has one beat at the access's address instead.
  function automatic void raise(input rule_e rule, input signal_e signal, input logic [63:0] was,
                                input logic [63:0] now, input logic write,
                                input logic [AXIL_ADDR_W-1:0] at);
    burst_t b;
    b = '{write: write, number: write ? writes : reads, ax: '{id: '0, addr: {48'd0, at}, len: '0,
        size: 3'd2, burst: AXI_BURST_INCR}};
    if (queued < (QueueW + 1)'(Queue)) begin
      queue[queue_at + queued[QueueW-1:0]] = '{rule: rule, port: 3'(PORT_REG), cycle: now_i,
          signal: signal, word: '0, was: was, now: now, has_burst: 1'b1, burst: b};
      queued = queued + 1'b1;
    end else lost = lost + 1;
  endfunction

  logic live, held;
  logic [1:0] reset_told;
  logic [31:0] writes, reads;
  logic [4:0] aws, ws, ars;  // accepted, and not answered
  logic b_offered, r_offered;
  logic [1:0] b_was;
  logic [33:0] r_was;  // data, resp
  logic [AXIL_ADDR_W-1:0] w_addr;
  logic [9:0] aw_wait, w_wait, ar_wait, b_wait, r_wait;

  function automatic void forget();
    reset_told = '0;
    {aws, ws, ars} = '0;
    {b_offered, r_offered} = '0;
    {aw_wait, w_wait, ar_wait, b_wait, r_wait} = '0;
  endfunction

  // Cycles of a wait, at most Patience + 1: it is Patience in one cycle only.
  function automatic logic [9:0] waited(input logic [9:0] cycles, input logic waits);
    if (!waits) return '0;
    return cycles > Patience ? cycles : cycles + 1'b1;
  endfunction

  // ---- done ----
  logic [AXIL_ADDR_W-1:0] ar_addr_q;
  logic done, was_done_q;
  assign done = (rsp_i.r_data & done_mask_i) == done_value_i;
  assign done_o = on_i && rst_ni && done_on_i && rsp_i.r_valid && req_i.r_ready &&
      ar_addr_q == done_addr_i && done && !was_done_q;
  always_ff @(posedge clk_i) begin
    if (!on_i || !rst_ni) was_done_q <= 1'b0;
    else begin
      if (req_i.ar_valid && rsp_i.ar_ready) ar_addr_q <= req_i.ar_addr;
      if (rsp_i.r_valid && req_i.r_ready && ar_addr_q == done_addr_i) was_done_q <= done;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!on_i) begin
      live = 1'b0;
      out_valid_o <= 1'b0;
    end else begin
      if (!live) begin
        live = 1'b1;
        held = 1'b0;
        queue_at = '0;
        queued = '0;
        lost = '0;
        writes = '0;
        reads = '0;
        forget();
      end
      if (!rst_ni) begin
        if (!held) forget();
        else begin
          if (rsp_i.b_valid && !reset_told[0])
            raise(AXI4LITE_ERRS_BVALID_RESET, SIG_BVALID, '0, 64'd1, 1'b1, '0);
          if (rsp_i.r_valid && !reset_told[1])
            raise(AXI4LITE_ERRS_RVALID_RESET, SIG_RVALID, '0, 64'd1, 1'b0, '0);
          reset_told |= {rsp_i.r_valid, rsp_i.b_valid};
        end
      end else begin
        if (b_offered && !rsp_i.b_valid)
          raise(AXI4LITE_ERRS_BVALID_STABLE, SIG_BVALID, 64'd1, '0, 1'b1, w_addr);
        if (rsp_i.b_valid) begin
          if (b_offered && rsp_i.b_resp != b_was)
            raise(AXI4LITE_ERRS_BRESP_STABLE, SIG_BRESP, {62'd0, b_was}, {62'd0, rsp_i.b_resp},
                  1'b1, w_addr);
          if (!b_offered) begin
            if (aws == '0 || ws == '0)
              raise(AXI4LITE_ERRS_BRESP_AW, SIG_BVALID, '0, 64'd1, 1'b1, w_addr);
            if (rsp_i.b_resp == 2'b01)
              raise(AXI4LITE_ERRS_BRESP_EXOKAY, SIG_BRESP, '0, 64'd1, 1'b1, w_addr);
          end
          if (req_i.b_ready && aws != '0 && ws != '0) begin
            aws = aws - 1'b1;
            ws = ws - 1'b1;
            writes = writes + 1;
          end
        end
        b_offered = rsp_i.b_valid && !req_i.b_ready;
        b_was = rsp_i.b_resp;

        if (r_offered && !rsp_i.r_valid)
          raise(AXI4LITE_ERRS_RVALID_STABLE, SIG_RVALID, 64'd1, '0, 1'b0, ar_addr_q);
        if (rsp_i.r_valid) begin
          if (r_offered && rsp_i.r_data != r_was[33:2])
            raise(AXI4LITE_ERRS_RDATA_STABLE, SIG_RDATA, {32'd0, r_was[33:2]},
                  {32'd0, rsp_i.r_data}, 1'b0, ar_addr_q);
          if (r_offered && rsp_i.r_resp != r_was[1:0])
            raise(AXI4LITE_ERRS_RRESP_STABLE, SIG_RRESP, {62'd0, r_was[1:0]},
                  {62'd0, rsp_i.r_resp}, 1'b0, ar_addr_q);
          if (!r_offered) begin
            if (ars == '0)
              raise(AXI4LITE_ERRS_RDATA_NUM, SIG_RVALID, '0, 64'd1, 1'b0, ar_addr_q);
            if (rsp_i.r_resp == 2'b01)
              raise(AXI4LITE_ERRS_RRESP_EXOKAY, SIG_RRESP, '0, 64'd1, 1'b0, ar_addr_q);
          end
          if (req_i.r_ready && ars != '0) begin
            ars = ars - 1'b1;
            reads = reads + 1;
          end
        end
        r_offered = rsp_i.r_valid && !req_i.r_ready;
        r_was = {rsp_i.r_data, rsp_i.r_resp};

        aw_wait = waited(aw_wait, req_i.aw_valid && !rsp_i.aw_ready);
        if (aw_wait == Patience)
          raise(AXI4LITE_RECS_AWREADY_MAX_WAIT, SIG_AWREADY, '0, '0, 1'b1, req_i.aw_addr);
        w_wait = waited(w_wait, req_i.w_valid && !rsp_i.w_ready);
        if (w_wait == Patience)
          raise(AXI4LITE_RECS_WREADY_MAX_WAIT, SIG_WREADY, '0, '0, 1'b1, w_addr);
        ar_wait = waited(ar_wait, req_i.ar_valid && !rsp_i.ar_ready);
        if (ar_wait == Patience)
          raise(AXI4LITE_RECS_ARREADY_MAX_WAIT, SIG_ARREADY, '0, '0, 1'b0, req_i.ar_addr);
        b_wait = waited(b_wait, aws != '0 && ws != '0 && !rsp_i.b_valid);
        if (b_wait == Patience)
          raise(AXI4LITE_RECS_BVALID_MAX_WAIT, SIG_BVALID, '0, '0, 1'b1, w_addr);
        r_wait = waited(r_wait, ars != '0 && !rsp_i.r_valid);
        if (r_wait == Patience)
          raise(AXI4LITE_RECS_RVALID_MAX_WAIT, SIG_RVALID, '0, '0, 1'b0, ar_addr_q);

        if (req_i.aw_valid && rsp_i.aw_ready) begin
          if (aws != '1) aws = aws + 1'b1;
          w_addr = req_i.aw_addr;
        end
        if (req_i.w_valid && rsp_i.w_ready && ws != '1) ws = ws + 1'b1;
        if (req_i.ar_valid && rsp_i.ar_ready && ars != '1) ars = ars + 1'b1;
      end
      held = !rst_ni;
      if (!out_valid_o || out_take_i) begin
        out_valid_o <= queued != '0;
        if (queued != '0) begin
          out_o <= queue[queue_at];
          queue_at = queue_at + 1'b1;
          queued = queued - 1'b1;
        end
      end
      lost_o <= lost;
    end
  end
endmodule
// verilator lint_on UNUSEDSIGNAL
// verilator lint_on BLKSEQ
// verilator tracing_on
`default_nettype wire
