// Protocol checker of an accelerator: its memory ports, its registers and its clear, in every
// simulation shell, beside the measured design, which it only observes.
//
// on_i: it watches; low, as in the first cycle of all: it keeps no state and costs nothing. rst_ni,
// clear_i, cleared_o (named cleared_i here), irq_i: those of the accelerator. close_i (pulse): the
// Shield, or the bench in its place, closes all chunks of `output` regions. epoch_i: a region
// begins an epoch. done_*: the status register and its value when a job is done (shef_axil_check).
// out_valid_o: out_o is a report, for this cycle only; lost_o: reports that found a queue full.
// now_o: cycles since on_i, the unit of a report's cycle; bursts_o: bursts watched.
`default_nettype none
module shef_check
  import shef_pkg::*;
  import shef_check_pkg::*;
#(
    parameter int unsigned NAcc = 1,
    parameter int unsigned NRegions = 0,
    parameter region_cfg_t [(NRegions == 0 ? 1 : NRegions)-1:0] Regions = '0,
    parameter int unsigned NSets = 0,
    parameter set_cfg_t [(NSets == 0 ? 1 : NSets)-1:0] Sets = '0,
    parameter int unsigned ClearCycles = 65536
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        on_i,
    input  wire axi_req_t [NAcc-1:0] acc_req_i,
    input  wire axi_rsp_t [NAcc-1:0] acc_rsp_i,
    input  wire axil_req_t   reg_req_i,
    input  wire axil_rsp_t   reg_rsp_i,
    input  wire logic        irq_i,
    input  wire logic        clear_i,
    input  wire logic        cleared_i,
    input  wire logic        close_i,
    input  wire logic        epoch_i,
    input  wire logic [REGION_W-1:0] epoch_region_i,
    input  wire logic        done_on_i,
    input  wire logic [15:0] done_addr_i,
    input  wire logic [31:0] done_mask_i,
    input  wire logic [31:0] done_value_i,
    output logic             out_valid_o,
    output report_t          out_o,
    output logic [31:0]      lost_o,
    output logic [63:0]      now_o,
    output logic [63:0]      bursts_o
);
  localparam int unsigned Sources = NAcc + 2;
  logic [Sources-1:0] valid, take;
  report_t [Sources-1:0] report;
  logic [Sources-1:0][31:0] lost;
  logic [NAcc-1:0][63:0] bursts;
  logic done;

  // The regions that an accelerator port reaches.
  // verilator lint_off UNSIGNED
  function automatic logic [MAX_REGIONS-1:0] own(input int unsigned p);
    logic [MAX_REGIONS-1:0] o;
    o = '0;
    for (int unsigned r = 0; r < NRegions; r++)
      o[r] = {30'd0, Sets[Regions[r].set].acc} == p;
    return o;
  endfunction
  // verilator lint_on UNSIGNED

  for (genvar p = 0; p < int'(NAcc); p++) begin : g_port
    shef_axi_check #(
        .Port(p), .NRegions(NRegions), .Regions(Regions), .Own(own(p))
    ) u_axi (
        .clk_i, .rst_ni, .on_i, .now_i(now_o),
        .req_i(acc_req_i[p]), .rsp_i(acc_rsp_i[p]),
        .irq_i, .done_i(done), .close_i, .epoch_i, .epoch_region_i,
        .out_valid_o(valid[p]), .out_o(report[p]), .out_take_i(take[p]), .lost_o(lost[p]),
        .bursts_o(bursts[p])
    );
  end

  shef_axil_check u_axil (
      .clk_i, .rst_ni, .on_i, .now_i(now_o), .req_i(reg_req_i), .rsp_i(reg_rsp_i),
      .done_on_i, .done_addr_i, .done_mask_i, .done_value_i, .done_o(done),
      .out_valid_o(valid[NAcc]), .out_o(report[NAcc]), .out_take_i(take[NAcc]),
      .lost_o(lost[NAcc])
  );

  // ---- clear_i and cleared_o ----
  localparam int unsigned WaitW = $clog2(ClearCycles + 1);
  localparam logic [4:0] Settle = 5'd16;  // cycles for cleared_o to fall
  logic clear_q, cleared_q, early_told_q;
  logic [4:0] low_q;
  logic [WaitW-1:0] wait_q;
  rule_e clear_rule;
  logic clear_now;
  always_comb begin
    clear_rule = RULE_NONE;
    clear_now = 1'b0;
    if (clear_i && clear_q && cleared_q && !cleared_i) clear_rule = SHEF_ERRM_CLEARED_DROPPED;
    else if (clear_i && !cleared_i && wait_q == WaitW'(ClearCycles - 1))
      clear_rule = SHEF_ERRM_CLEARED_LATE;
    else if (!clear_i && cleared_i && low_q == Settle && !early_told_q) begin
      clear_rule = SHEF_ERRM_CLEARED_EARLY;
      clear_now = 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!on_i) begin
      clear_q <= 1'b0;
      cleared_q <= 1'b0;
      early_told_q <= 1'b0;
      low_q <= '0;
      wait_q <= '0;
      now_o <= '0;
      valid[NAcc+1] <= 1'b0;
      lost[NAcc+1] <= '0;
    end else begin
      now_o <= now_o + 1'b1;
      clear_q <= clear_i;
      cleared_q <= cleared_i;
      low_q <= clear_i ? '0 : low_q == Settle ? Settle : low_q + 1'b1;
      wait_q <= !clear_i || cleared_i ? '0 : wait_q == WaitW'(ClearCycles) ? wait_q
          : wait_q + 1'b1;
      early_told_q <= cleared_i && (early_told_q || clear_rule == SHEF_ERRM_CLEARED_EARLY);
      if (clear_rule != RULE_NONE) begin
        valid[NAcc+1] <= 1'b1;
        report[NAcc+1] <= '{rule: clear_rule, port: 3'(PORT_CLEAR), cycle: now_o,
            signal: SIG_CLEARED, word: '0, was: {63'd0, cleared_q}, now: {63'd0, clear_now},
            has_burst: 1'b0, burst: '0};
        if (valid[NAcc+1] && !take[NAcc+1]) lost[NAcc+1] <= lost[NAcc+1] + 1'b1;
      end else if (take[NAcc+1]) valid[NAcc+1] <= 1'b0;
    end
  end

  // ---- one report a cycle ----
  always_comb begin
    out_valid_o = 1'b0;
    out_o = report[0];
    take = '0;
    lost_o = '0;
    bursts_o = '0;
    for (int s = 0; s < int'(Sources); s++) begin
      if (valid[s] && !out_valid_o) begin
        out_valid_o = 1'b1;
        out_o = report[s];
        take[s] = 1'b1;
      end
      lost_o += lost[s];
    end
    for (int p = 0; p < int'(NAcc); p++) bursts_o += bursts[p];
  end
endmodule
`default_nettype wire
