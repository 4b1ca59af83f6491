// Control of an engine set: epochs, commands, the first fault, and the wipe.
//
// Commands: cmd_valid_i/cmd_ready_o, then one cmd_done_o with cmd_err_o. Faults come as pulses; the
// first one stops the set in the next cycle and is reported once (fault_valid_o). With FreezeRegion
// a fault of a region's data or tree (its tag, a node, a bus error of its data) freezes that region
// until the wipe (frozen_o) and is reported once for the region; all others stop the set. Wipe:
// while wipe_i is high everything is cleared, a sweep of SweepWords addresses zeroes the memories,
// and wipe_done_o rises when that is done and the memory port owes nothing in either direction (or
// is dead). A port that timed out stays dead until reset: the set stops again as soon as the wipe
// is over, before a session.
`default_nettype none
module shef_set_ctl
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter int unsigned SweepWords = 1024,
    parameter bit FreezeRegion = 1'b0,
    parameter id_tab_t RegionId = '0,
    parameter logic [MAX_REGIONS-1:0] HasEpoch = '0
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     enable_i,
    input  wire                     stop_i,
    output logic                    stop_o,        // the set must stop
    output logic [MAX_REGIONS-1:0]  frozen_o,      // these regions must stop, by place

    // epochs
    input  wire                     epoch_we_i,
    input  wire [3:0]               epoch_region_i,
    input  wire version_t           epoch_i,
    output version_t [NRegions-1:0] epoch_o,
    output logic [NRegions-1:0]     epoch_zero_o,
    output logic                    clear_map_o,   // pulse
    output logic [NRegions-1:0]     clear_mask_o,
    input  wire                     map_busy_i,

    // commands
    input  wire                     cmd_valid_i,
    output logic                    cmd_ready_o,
    input  wire set_cmd_e           cmd_i,
    input  wire [3:0]               cmd_region_i,
    input  wire version_t           cmd_epoch_i,
    output logic                    cmd_done_o,
    output logic                    cmd_err_o,
    output logic                    hold_rd_o,
    output logic                    hold_wr_o,
    output logic                    flush_lines_o,
    output logic                    flush_tags_o,
    output logic                    kill_writes_o,
    output logic                    drop_o,
    output logic [NRegions-1:0]     drop_mask_o,
    output logic                    drop_tags_o,
    input  wire                     write_held_i,
    input  wire                     write_owed_i,  // by the accelerator
    input  wire                     lines_dirty_i,
    input  wire                     lines_fetching_i,
    input  wire                     tags_dirty_i,
    output logic                    cmd_idle_o,

    // faults
    input  wire                     tag_fail_i,
    input  wire chunk_t             tag_fail_chunk_i,
    input  wire                     twice_i,
    input  wire reg_idx_t           twice_region_i,
    input  wire chunk_idx_t         twice_chunk_i,
    input  wire                     node_fail_i,
    input  wire                     node_internal_i,
    input  wire reg_idx_t           node_region_i,
    input  wire chunk_idx_t         node_index_i,
    input  wire version_t           node_version_i,
    input  wire                     rd_fault_valid_i,
    input  wire fault_t             rd_fault_i,
    input  wire                     wr_fault_valid_i,
    input  wire fault_t             wr_fault_i,
    input  wire                     late_i,
    output logic                    fault_valid_o,
    output fault_t                  fault_o,
    output logic                    halted_o,

    // wipe
    input  wire                     wipe_i,
    output logic                    wipe_done_o,
    output logic                    clr_o,
    output logic [ZERO_W-1:0]       zero_addr_o,
    input  wire                     gcm_wiped_i,
    input  wire                     port_idle_i
);
  localparam int unsigned KILL_WAIT = 1024;

  // ---- wipe ----
  typedef enum logic [1:0] {W_RUN, W_CLEAR, W_DONE} wipe_e;
  wipe_e wipe_q;
  logic [ZERO_W-1:0] zero_addr_q;
  logic swept_q, wipe_start;

  assign wipe_start = wipe_q == W_RUN && wipe_i;
  assign clr_o = wipe_q != W_RUN;
  assign zero_addr_o = zero_addr_q;
  assign wipe_done_o = wipe_q == W_DONE && wipe_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wipe_q <= W_RUN;
      zero_addr_q <= '0;
      swept_q <= 1'b0;
    end else begin
      unique case (wipe_q)
        W_RUN: begin
          zero_addr_q <= '0;
          swept_q <= 1'b0;
          if (wipe_i) wipe_q <= W_CLEAR;
        end
        W_CLEAR: begin
          if (zero_addr_q == ZERO_W'(SweepWords - 1)) swept_q <= 1'b1;
          else zero_addr_q <= zero_addr_q + 1'b1;
          if (swept_q && gcm_wiped_i && !map_busy_i && (port_idle_i || late_i)) wipe_q <= W_DONE;
        end
        default: if (!wipe_i) wipe_q <= W_RUN;
      endcase
    end
  end

  // ---- first fault ----
  logic halt_q, fault, stops;
  fault_t what;
  logic [7:0] rd_region;
  logic [MAX_REGIONS-1:0] frozen_q, freeze;
  logic tag_new, node_new, rd_own, rd_new;   // not of a region that is frozen already
  logic hard;                                // another fault that stops the set has priority

  assign stop_o = halt_q || stop_i || clr_o;
  assign frozen_o = frozen_q;
  assign halted_o = halt_q;
  assign rd_region = (rd_fault_i.region == 8'hff) ? 8'hff : RegionId[rd_fault_i.region[3:0]];
  assign rd_own = rd_fault_i.kind == FAULT_BUS && rd_fault_i.region != 8'hff;
  assign hard = FreezeRegion && ((rd_fault_valid_i && !rd_own) || wr_fault_valid_i ||
      (node_fail_i && node_internal_i));
  assign tag_new = tag_fail_i && !hard && !frozen_q[tag_fail_chunk_i.region];
  assign node_new = node_fail_i && (node_internal_i || (!hard && !frozen_q[node_region_i]));
  assign rd_new = rd_fault_valid_i && !(rd_own && (hard || frozen_q[rd_fault_i.region[3:0]]));
  always_comb begin
    fault = 1'b0;
    stops = 1'b1;
    what = '{kind: FAULT_NONE, region: 8'hff, chunk: '0, version: '0};
    freeze = '0;
    if (!halt_q && !clr_o) begin
      if (twice_i) begin
        fault = 1'b1;
        what = '{kind: FAULT_INTERNAL, region: RegionId[twice_region_i], chunk: twice_chunk_i,
            version: '0};
      end else if (tag_new) begin
        fault = 1'b1;
        stops = !FreezeRegion;
        what = '{kind: FAULT_TAG, region: RegionId[tag_fail_chunk_i.region],
            chunk: tag_fail_chunk_i.chunk, version: tag_fail_chunk_i.version};
      end else if (node_new) begin
        fault = 1'b1;
        stops = !FreezeRegion || node_internal_i;
        what = '{kind: node_internal_i ? FAULT_INTERNAL
            : FAULT_NODE, region: RegionId[node_region_i], chunk: node_index_i,
            version: node_version_i};
      end else if (rd_new) begin
        fault = 1'b1;
        stops = !(FreezeRegion && rd_own);
        what = rd_fault_i;
        what.region = rd_region;
      end else if (wr_fault_valid_i) begin
        fault = 1'b1;
        what = wr_fault_i;
      end else if (late_i) begin
        fault = 1'b1;
        what.kind = FAULT_TIMEOUT;
      end
      // faults that cannot wait for their turn, because they are not repeated
      if (FreezeRegion) begin
        if (tag_fail_i) freeze[tag_fail_chunk_i.region] = 1'b1;
        if (node_fail_i) freeze[node_region_i] = 1'b1;
        if (rd_fault_valid_i && rd_own) freeze[rd_fault_i.region[3:0]] = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      halt_q <= 1'b0;
      frozen_q <= '0;
      fault_valid_o <= 1'b0;
      fault_o <= '0;
    end else begin
      fault_valid_o <= fault;
      if (fault) fault_o <= what;
      if (clr_o) begin
        halt_q <= 1'b0;
        frozen_q <= '0;
      end else begin
        if (fault && stops) halt_q <= 1'b1;
        frozen_q <= frozen_q | freeze;
      end
    end
  end

  // ---- commands ----
  typedef enum logic [2:0] {C_IDLE, C_LINES, C_TAGS, C_DROP, C_MAP, C_DONE} cmd_state_e;
  cmd_state_e cmd_q;
  set_cmd_e what_q;
  version_t new_epoch_q;
  logic [NRegions-1:0] cmd_mask_q, cmd_mask;
  logic [10:0] kill_q;
  logic err_q, not_up;

  always_comb begin
    cmd_mask = '0;
    not_up = 1'b0;
    for (int unsigned r = 0; r < NRegions; r++) begin
      if (RegionId[r] == {4'd0, cmd_region_i}) cmd_mask[r] = HasEpoch[r];
      // the other commands ignore the epoch
      if (what_q == SET_EPOCH && cmd_mask_q[r] && new_epoch_q <= epoch_o[r]) not_up = 1'b1;
    end
  end

  assign cmd_ready_o = cmd_q == C_IDLE && !clr_o && !map_busy_i;
  assign cmd_idle_o = cmd_q == C_IDLE;
  assign hold_wr_o = cmd_q != C_IDLE || map_busy_i;
  assign hold_rd_o = (cmd_q != C_IDLE && what_q != SET_FLUSH) || map_busy_i;
  assign flush_lines_o = cmd_q == C_LINES;
  assign flush_tags_o = cmd_q == C_TAGS;
  assign kill_writes_o = cmd_q == C_LINES && kill_q == 11'(KILL_WAIT);
  assign drop_o = cmd_q == C_DROP && !not_up && !err_q;
  assign drop_mask_o = (what_q == SET_EPOCH) ? cmd_mask_q : '1;
  assign drop_tags_o = drop_o;
  assign cmd_done_o = cmd_q == C_DONE;
  assign cmd_err_o = cmd_q == C_DONE && err_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cmd_q <= C_IDLE;
      what_q <= SET_FLUSH;
      new_epoch_q <= '0;
      cmd_mask_q <= '0;
      kill_q <= '0;
      err_q <= 1'b0;
    end else begin
      unique case (cmd_q)
        C_IDLE: begin
          kill_q <= '0;
          err_q <= 1'b0;
          if (cmd_valid_i && cmd_ready_o) begin
            cmd_q <= C_LINES;
            what_q <= cmd_i;
            new_epoch_q <= cmd_epoch_i;
            cmd_mask_q <= cmd_mask;
          end
        end
        // Seal gathered data. A write whose data the accelerator withholds for this long is cut
        // off, and no other.
        C_LINES: begin
          if (!write_owed_i) kill_q <= 11'd1;
          else if (kill_q != 11'(KILL_WAIT)) kill_q <= kill_q + 1'b1;
          // in the first cycle a write may still get its line
          if (kill_q != '0 && !write_held_i && !lines_dirty_i) cmd_q <= C_TAGS;
        end
        C_TAGS: if (!tags_dirty_i && (what_q == SET_FLUSH || !lines_fetching_i)) cmd_q <=
            (what_q == SET_FLUSH) ? C_DONE : C_DROP;
        C_DROP: begin
          if (what_q == SET_EPOCH && (not_up || cmd_mask_q == '0)) err_q <= 1'b1;
          cmd_q <= (what_q == SET_EPOCH) ? C_MAP : C_DONE;
        end
        C_MAP: if (!map_busy_i && !clear_map_o) cmd_q <= C_DONE;
        default: cmd_q <= C_IDLE;
      endcase
      if (stop_o && cmd_q != C_IDLE && cmd_q != C_DONE) begin
        cmd_q <= C_DONE;
        err_q <= 1'b1;
      end
    end
  end

  // ---- epochs ----
  logic raise;
  assign raise = drop_o && what_q == SET_EPOCH && !stop_o;
  for (genvar r = 0; r < int'(NRegions); r++) begin : g_epoch
    version_t epoch_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_o) epoch_q <= '0;
      else if (raise && cmd_mask_q[r]) epoch_q <= new_epoch_q;
      else if (epoch_we_i && !enable_i && RegionId[r] == {4'd0, epoch_region_i}) epoch_q <= epoch_i;
    end
    assign epoch_o[r] = epoch_q;
    assign epoch_zero_o[r] = epoch_q == '0;
  end

  logic clear_q;
  logic [NRegions-1:0] clear_mask_q;
  assign clear_map_o = clear_q;
  assign clear_mask_o = clear_mask_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clear_q <= 1'b0;
      clear_mask_q <= '0;
    end else begin
      clear_q <= wipe_start || raise || (epoch_we_i && !enable_i);
      clear_mask_q <= '0;
      for (int unsigned r = 0; r < NRegions; r++) begin
        if (wipe_start || (raise && cmd_mask_q[r]) ||
            (!raise && RegionId[r] == {4'd0, epoch_region_i})) clear_mask_q[r] <= 1'b1;
      end
    end
  end
  logic unused;
  assign unused = ^tag_fail_chunk_i.line;
endmodule
`default_nettype wire
