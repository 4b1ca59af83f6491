// All engine sets: one set to the control plane, with separate ports towards accelerator and
// memory.
//
// acc: AXI4 slaves, one per accelerator port; mem: AXI4 masters, one per memory port; rules in
// shef_demux, shef_port_mux, shef_set. A region's key, epoch, statement values and written map
// belong to its set: key_region_i, epoch_region_i, stat_region_i, map_region_i select.
// Commands: cmd_valid_i/cmd_ready_o, operands stay until cmd_done_o; SET_EPOCH goes to the region's
// set, the others to one set after the other, so that a write on its way to one set never waits for
// a command of another (two cycles more a set). cmd_err_o with cmd_done_o: a set reported an error.
// cnt_o: statistic cnt_sel_i of set cnt_set_i, one cycle later; 0 for a nonexistent set.
// region_fault_o: by region number.
// fault_*, refusal_*: one pulse per set. halted_o: levels, a fault in the set stopped it. wipe_i:
// all sets at once; wipe_done_o: all are done.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_sets
  import shef_pkg::*;
#(
    parameter int unsigned NSets = 1,
    parameter int unsigned NPorts = 1,
    parameter int unsigned NAcc = 1,
    parameter set_cfg_t [NSets-1:0] Sets = {NSets{set_cfg_t'{
        lanes: 8'd4, big_lines: 16'd8, small_lines: 16'd32, ring_beats: 16'd512, acc: '0, port: '0,
        cache_bytes: '0, cache_line: '0
    }}},
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [NRegions-1:0] Regions = '0,
    parameter on_fault_e OnFault = ON_FAULT_SHIELD,
    parameter bit SboxRam = 1'b0,
    parameter int unsigned TimeoutCycles = 4096
) (
    input  wire                    clk_i,
    input  wire                    rst_ni,

    input  wire axi_req_t [NAcc-1:0] acc_req_i,
    output axi_rsp_t [NAcc-1:0]    acc_rsp_o,

    output axi_req_t [NPorts-1:0]  mem_req_o,
    input  wire axi_rsp_t [NPorts-1:0] mem_rsp_i,

    input  wire                    key_valid_i,
    output logic                   key_ready_o,
    input  wire  [REGION_W-1:0]    key_region_i,
    input  wire                    key_node_i,
    input  wire  [255:0]           key_i,
    input  wire                    enable_i,
    input  wire                    stop_i,
    input  wire                    cmd_valid_i,
    output logic                   cmd_ready_o,
    input  wire  set_cmd_e         cmd_i,
    input  wire  [REGION_W-1:0]    cmd_region_i,
    input  wire  [VERSION_W-1:0]   cmd_epoch_i,
    output logic                   cmd_done_o,
    output logic                   cmd_err_o,
    input  wire                    epoch_we_i,
    input  wire  [REGION_W-1:0]    epoch_region_i,
    input  wire  [VERSION_W-1:0]   epoch_i,
    output logic [NSets-1:0]       fault_valid_o,
    output fault_t [NSets-1:0]     fault_o,
    output logic [NSets-1:0]       refusal_valid_o,
    output refusal_t [NSets-1:0]   refusal_o,
    input  wire  [REGION_W-1:0]    stat_region_i,
    output logic [VERSION_W-1:0]   epoch_o,
    output logic [31:0]            written_o,
    input  wire  [REGION_W-1:0]    map_region_i,
    input  wire  [25:0]            map_word_i,
    output logic [31:0]            map_o,
    output logic [MAX_REGIONS-1:0] region_fault_o,
    input  wire  [1:0]             cnt_set_i,
    input  wire  [3:0]             cnt_sel_i,
    output logic [47:0]            cnt_o,
    output logic                   idle_o,
    output logic [NSets-1:0]       halted_o,
    input  wire                    wipe_i,
    output logic                   wipe_done_o
);
  localparam int unsigned SW = (NSets > 1) ? $clog2(NSets) : 1;
  typedef logic [SW-1:0] set_no_t;
  typedef region_cfg_t [NRegions-1:0] regions_t;

  if (NSets < 1 || NSets > 4 || NPorts < 1 || NPorts > 4 || NAcc < 1 ||
      NAcc > 4) begin : g_bad_numbers
    $error("shef_sets: 1 to 4 engine sets, memory ports and accelerator ports");
  end

  // ---- regions and ports of the sets ----
  // regions of a set, from place 0 on
  function automatic int unsigned count_of(input int unsigned s);
    int unsigned n;
    n = 0;
    for (int unsigned r = 0; r < NRegions; r++) if (32'(Regions[r].set) == s) n++;
    return n;
  endfunction
  function automatic regions_t regions_of(input int unsigned s);
    regions_t t;
    int unsigned n;
    t = '0;
    n = 0;
    for (int unsigned r = 0; r < NRegions; r++)
      if (32'(Regions[r].set) == s) begin
        t[n] = Regions[r];
        n++;
      end
    return t;
  endfunction
  // sets of an accelerator port (acc) or a memory port: their number, and the number of the n-th
  function automatic int unsigned sets_at(input bit acc, input int unsigned p);
    int unsigned n;
    n = 0;
    for (int unsigned s = 0; s < NSets; s++) if (32'(acc ? Sets[s].acc : Sets[s].port) == p) n++;
    return n;
  endfunction
  function automatic logic [3:0][1:0] numbers_at(input bit acc, input int unsigned p);
    logic [3:0][1:0] t;
    int unsigned n;
    t = '0;
    n = 0;
    for (int unsigned s = 0; s < NSets; s++)
      if (32'(acc ? Sets[s].acc : Sets[s].port) == p) begin
        t[n[1:0]] = 2'(s);
        n++;
      end
    return t;
  endfunction
  // place of each region's set among those of its accelerator port
  function automatic logic [NRegions-1:0][1:0] places(input int unsigned p);
    logic [NRegions-1:0][1:0] t;
    logic [3:0][1:0] of;
    of = numbers_at(1'b1, p);
    t = '0;
    for (int unsigned r = 0; r < NRegions; r++)
      for (int unsigned n = 0; n < sets_at(1'b1, p); n++)
        if (of[n[1:0]] == Regions[r].set) t[r] = 2'(n);
    return t;
  endfunction
  function automatic set_no_t set_of(input logic [REGION_W-1:0] region);
    set_no_t s;
    s = '0;
    for (int unsigned r = 0; r < NRegions; r++)
      if (Regions[r].id == {4'd0, region}) s = Regions[r].set[SW-1:0];
    return s;
  endfunction

  // ---- buses of each set ----
  axi_req_t [NSets-1:0] s_req, m_req;
  axi_rsp_t [NSets-1:0] s_rsp, m_rsp;
  logic [NSets-1:0] s_w_waits;

  for (genvar p = 0; p < int'(NAcc); p++) begin : g_acc
    localparam int unsigned N = sets_at(1'b1, p);
    localparam logic [3:0][1:0] NO = numbers_at(1'b1, p);
    if (N == 0) begin : g_none
      $error("shef_sets: an accelerator port without a set");
    end
    axi_req_t [N-1:0] req;
    axi_rsp_t [N-1:0] rsp;
    logic [N-1:0] w_waits;
    shef_demux #(.NSets(N), .NRegions(NRegions), .Regions(Regions), .RegionSet(places(p))) u_demux (
        .clk_i, .rst_ni,
        .acc_req_i(acc_req_i[p]), .acc_rsp_o(acc_rsp_o[p]),
        .set_req_o(req), .set_w_waits_o(w_waits), .set_rsp_i(rsp)
    );
    for (genvar n = 0; n < int'(N); n++) begin : g_set
      localparam int unsigned S = 32'(NO[n]);
      assign s_req[S] = req[n];
      assign s_w_waits[S] = w_waits[n];
      assign rsp[n] = s_rsp[S];
    end
  end

  for (genvar p = 0; p < int'(NPorts); p++) begin : g_mem
    localparam int unsigned N = sets_at(1'b0, p);
    localparam logic [3:0][1:0] NO = numbers_at(1'b0, p);
    if (N == 0) begin : g_none
      $error("shef_sets: a memory port without a set");
    end
    axi_req_t [N-1:0] req;
    axi_rsp_t [N-1:0] rsp;
    shef_port_mux #(.NSets(N), .SetNo(NO[N-1:0])) u_mux (
        .clk_i, .rst_ni, .set_req_i(req), .set_rsp_o(rsp),
        .mem_req_o(mem_req_o[p]), .mem_rsp_i(mem_rsp_i[p])
    );
    for (genvar n = 0; n < int'(N); n++) begin : g_set
      localparam int unsigned S = 32'(NO[n]);
      assign req[n] = m_req[S];
      assign m_rsp[S] = rsp[n];
    end
  end

  // ---- commands: one set after the other ----
  typedef enum logic [1:0] {C_IDLE, C_OFFER, C_WAIT, C_DONE} cmd_state_e;
  cmd_state_e cmd_q;
  set_no_t at_q;
  logic err_q, one;
  logic [NSets-1:0] cmd_valid, cmd_ready, cmd_done, cmd_err;

  assign one = cmd_i == SET_EPOCH;
  assign cmd_ready_o = cmd_q == C_IDLE && !wipe_i;
  assign cmd_valid = NSets'(cmd_q == C_OFFER) << at_q;
  assign cmd_done_o = cmd_q == C_DONE;
  assign cmd_err_o = cmd_done_o && err_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || wipe_i) begin
      cmd_q <= C_IDLE;
      at_q <= '0;
      err_q <= 1'b0;
    end else begin
      unique case (cmd_q)
        C_IDLE: begin
          err_q <= 1'b0;
          at_q <= one ? set_of(cmd_region_i) : '0;
          if (cmd_valid_i) cmd_q <= C_OFFER;
        end
        C_OFFER: if (cmd_ready[at_q]) cmd_q <= C_WAIT;
        C_WAIT:
        if (cmd_done[at_q]) begin
          if (cmd_err[at_q]) err_q <= 1'b1;
          cmd_q <= (one || at_q == set_no_t'(NSets - 1)) ? C_DONE : C_OFFER;
          at_q <= at_q + 1'b1;
        end
        default: cmd_q <= C_IDLE;
      endcase
    end
  end

  // ---- the sets ----
  set_no_t key_set, epoch_set, stat_set, map_set;
  logic [NSets-1:0] key_ready, idle, wiped;
  logic [NSets-1:0][VERSION_W-1:0] epoch;
  logic [NSets-1:0][31:0] written, map;
  logic [NSets-1:0][MAX_REGIONS-1:0] region_fault;
  logic [NSets-1:0][47:0] cnt;

  assign key_set = set_of(key_region_i);
  assign epoch_set = set_of(epoch_region_i);
  assign stat_set = set_of(stat_region_i);
  assign map_set = set_of(map_region_i);
  assign key_ready_o = key_ready[key_set];
  assign epoch_o = epoch[stat_set];
  assign written_o = written[stat_set];
  assign map_o = map[map_set];
  assign idle_o = &idle && cmd_q == C_IDLE;
  assign wipe_done_o = &wiped;
  always_comb begin
    region_fault_o = '0;
    cnt_o = '0;
    for (int unsigned s = 0; s < NSets; s++) begin
      region_fault_o |= region_fault[s];
      if (cnt_set_i == 2'(s)) cnt_o = cnt[s];
    end
  end

  for (genvar s = 0; s < int'(NSets); s++) begin : g_set
    localparam int unsigned N = count_of(s);
    localparam regions_t MINE = regions_of(s);
    if (N == 0) begin : g_none
      $error("shef_sets: a set without a region");
    end
    // the bus of the set, after its cache, if it has one
    axi_req_t req;
    axi_rsp_t rsp;
    logic w_waits;
    logic set_cmd_valid, set_cmd_ready, set_cmd_done, set_cmd_err, set_idle, set_wiped,
        set_fault_valid, set_halted;
    fault_t set_fault;
    logic [5:0] front;   // the cache's responses to the accelerator

    if (Sets[s].cache_bytes != '0) begin : g_cache
      logic [MAX_REGIONS-1:0] frozen;  // by place
      logic cache_idle, cache_wiped, cache_fault_valid, cache_halted;
      fault_t cache_fault;
      always_comb begin
        frozen = '0;
        for (int unsigned n = 0; n < N; n++) frozen[n] = region_fault[s][MINE[n].id[REGION_W-1:0]];
      end
      shef_cache #(
          .NRegions(N), .Regions(MINE[N-1:0]), .Bytes(32'(Sets[s].cache_bytes)),
          .LineBytes(32'(Sets[s].cache_line))
      ) u_cache (
          .clk_i, .rst_ni,
          .acc_req_i(s_req[s]), .acc_rsp_o(s_rsp[s]), .set_req_o(req), .set_rsp_i(rsp),
          .enable_i, .stop_i, .region_fault_i(frozen),
          .cmd_valid_i(cmd_valid[s]), .cmd_ready_o(cmd_ready[s]), .cmd_i, .cmd_done_o(cmd_done[s]),
          .cmd_err_o(cmd_err[s]),
          .set_cmd_valid_o(set_cmd_valid), .set_cmd_ready_i(set_cmd_ready),
          .set_cmd_done_i(set_cmd_done), .set_cmd_err_i(set_cmd_err),
          .fault_valid_o(cache_fault_valid), .fault_ready_i(!set_fault_valid),
          .fault_o(cache_fault), .halted_o(cache_halted),
          .event_o(front), .idle_o(cache_idle), .wipe_i, .wipe_done_o(cache_wiped)
      );
      assign fault_valid_o[s] = set_fault_valid || cache_fault_valid;
      assign fault_o[s] = set_fault_valid ? set_fault : cache_fault;
      assign halted_o[s] = set_halted || cache_halted;
      assign idle[s] = cache_idle && set_idle;
      assign wiped[s] = cache_wiped && set_wiped;
      // the cache sends whole lines and cuts nothing off
      assign w_waits = 1'b0;
      logic unused_waits;
      assign unused_waits = s_w_waits[s];
    end else begin : g_direct
      assign req = s_req[s];
      assign w_waits = s_w_waits[s];
      assign s_rsp[s] = rsp;
      assign set_cmd_valid = cmd_valid[s];
      assign cmd_ready[s] = set_cmd_ready;
      assign cmd_done[s] = set_cmd_done;
      assign cmd_err[s] = set_cmd_err;
      assign idle[s] = set_idle;
      assign wiped[s] = set_wiped;
      assign front = '0;
      assign fault_valid_o[s] = set_fault_valid;
      assign fault_o[s] = set_fault;
      assign halted_o[s] = set_halted;
    end

    shef_set #(
        .NRegions(N), .Regions(MINE[N-1:0]), .Lanes(32'(Sets[s].lanes)),
        .BigLines(32'(Sets[s].big_lines)),
        .SmallLines(32'(Sets[s].small_lines)), .RingBeats(32'(Sets[s].ring_beats)),
        .OnFault(OnFault),
        .TimeoutCycles(TimeoutCycles), .SboxRam(SboxRam), .HasFront(Sets[s].cache_bytes != '0)
    ) u_set (
        .clk_i, .rst_ni,
        .acc_req_i(req), .acc_w_waits_i(w_waits), .acc_rsp_o(rsp),
        .mem_req_o(m_req[s]), .mem_rsp_i(m_rsp[s]),
        .key_valid_i(key_valid_i && key_set == set_no_t'(s)), .key_ready_o(key_ready[s]),
        .key_region_i, .key_node_i, .key_i,
        .enable_i, .stop_i,
        .cmd_valid_i(set_cmd_valid), .cmd_ready_o(set_cmd_ready), .cmd_i, .cmd_region_i,
        .cmd_epoch_i,
        .cmd_done_o(set_cmd_done), .cmd_err_o(set_cmd_err),
        .epoch_we_i(epoch_we_i && epoch_set == set_no_t'(s)), .epoch_region_i, .epoch_i,
        .fault_valid_o(set_fault_valid), .fault_o(set_fault),
        .refusal_valid_o(refusal_valid_o[s]), .refusal_o(refusal_o[s]),
        .stat_region_i, .epoch_o(epoch[s]), .written_o(written[s]),
        .map_region_i, .map_word_i, .map_o(map[s]),
        .region_fault_o(region_fault[s]), .front_i(front), .cnt_sel_i, .cnt_o(cnt[s]),
        .idle_o(set_idle), .halted_o(set_halted), .wipe_i, .wipe_done_o(set_wiped)
    );
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
