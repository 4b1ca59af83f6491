// Named cover points of the Shield, bound into its blocks in builds that count coverage (`cargo
// xtask coverage`). No design that is used contains any of this.
//
// A point's name consists of its instance, cover__MODULE__WHAT, and the blocks around it: g_NAME[i]
// are indices of an enumeration of the RTL, which `cargo xtask coverage` replaces by names.
`default_nettype none

// Each state of a state machine. WHAT is the type of its states.
module shef_cover_states #(
    parameter int unsigned N = 2
) (
    input wire       clk_i,
    input wire       rst_ni,
    input wire [7:0] state_i
);
  for (genvar i = 0; i < int'(N); i++) begin : g_state
    seen: cover property (@(posedge clk_i) rst_ni && state_i == 8'(i));
  end
endmodule

// Actions of an engine set, by mode and chunk size of the region; faults by policy and kind;
// refusals by kind; prefetched chunks.
module shef_cover_set
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [NRegions-1:0] Regions = '0,
    parameter on_fault_e OnFault = ON_FAULT_SHIELD
) (
    input wire           clk_i,
    input wire           rst_ni,
    input wire reg_idx_t looked_i,    // region of the lookup
    input wire           read_i,      // a line will answer a read
    input wire           write_i,     // a line will take a write
    input wire reg_idx_t fetched_i,
    input wire           fetch_i,     // a chunk is requested
    input wire reg_idx_t sealed_i,
    input wire           seal_i,      // a chunk leaves
    input wire           fault_valid_i,
    input wire fault_t   fault_i,
    input wire           refusal_valid_i,
    input wire refusal_t refusal_i,
    input wire [2:0]     ahead_i      // prefetched: taken, used, failed
);
  function automatic logic is(input reg_idx_t region, input int mode, input int log2);
    logic x;
    x = 1'b0;
    for (int unsigned r = 0; r < NRegions; r++)
      if (region == reg_idx_t'(r))
        x = 32'(Regions[r].mode) == mode && 32'(Regions[r].chunk_log2) == log2;
    return x;
  endfunction

  for (genvar m = 1; m < 6; m++) begin : g_mode
    for (genvar c = 6; c < 13; c++) begin : g_chunk
      read: cover property (@(posedge clk_i) rst_ni && read_i && is(looked_i, m, c));
      fetched: cover property (@(posedge clk_i) rst_ni && fetch_i && is(fetched_i, m, c));
      if (m != int'(MODE_INPUT)) begin : g_w
        written: cover property (@(posedge clk_i) rst_ni && write_i && is(looked_i, m, c));
        sealed: cover property (@(posedge clk_i) rst_ni && seal_i && is(sealed_i, m, c));
      end
    end
  end
  for (genvar p = 0; p < 3; p++) begin : g_policy
    for (genvar k = 1; k < 7; k++) begin : g_fault
      seen: cover property (@(posedge clk_i) rst_ni && int'(OnFault) == p && fault_valid_i &&
          32'(fault_i.kind) == k);
    end
  end
  for (genvar k = 1; k < 9; k++) begin : g_refusal
    seen: cover property (@(posedge clk_i) rst_ni && refusal_valid_i && 32'(refusal_i.kind) == k);
  end
  for (genvar k = 0; k < 3; k++) begin : g_ahead
    seen: cover property (@(posedge clk_i) rst_ni && ahead_i[k]);
  end
endmodule

// Ends of a set's commands, by kind.
module shef_cover_commands (
    input wire       clk_i,
    input wire       rst_ni,
    input wire       done_i,
    input wire       err_i,
    input wire [1:0] what_i
);
  for (genvar k = 0; k < 3; k++) begin : g_command
    done: cover property (@(posedge clk_i) rst_ni && done_i && !err_i && 32'(what_i) == k);
    ended: cover property (@(posedge clk_i) rst_ni && done_i && err_i && 32'(what_i) == k);
  end
endmodule

bind shef_set shef_cover_set #(.NRegions(NRegions), .Regions(Regions),
    .OnFault(OnFault)) cover__shef_set__set (
    .clk_i(clk_i), .rst_ni(rst_ni), .looked_i(looked.region), .read_i(rsp_valid && !lseg.err),
    .write_i(wsg_valid && !lseg.err),
    .fetched_i(go_chunk[0].region), .fetch_i(chunk_go), .sealed_i(seal_region), .seal_i(seal_go),
    .fault_valid_i(fault_valid_o), .fault_i(fault_o), .refusal_valid_i(refusal_valid_o),
    .refusal_i(refusal_o),
    .ahead_i({spec_failed, spec_used, spec_taken})
);
bind shef_set_ctl shef_cover_commands cover__shef_set_ctl__set (
    .clk_i(clk_i), .rst_ni(rst_ni), .done_i(cmd_done_o), .err_i(cmd_err_o), .what_i(what_q)
);

`define SHEF_STATES(MODULE, TYPE, COUNT, STATE) \
  bind MODULE shef_cover_states #(.N(COUNT)) cover__``MODULE``__``TYPE ( \
      .clk_i(clk_i), .rst_ni(rst_ni), .state_i(8'(STATE)) \
  );
`SHEF_STATES(shef_shield, wipe_state_e, 3, wipe_q)
`SHEF_STATES(shef_seq, state_e, 13, state_q)
`SHEF_STATES(shef_io, io_state_e, 10, io_q)
`SHEF_STATES(shef_renew, state_e, 3, state_q)
`SHEF_STATES(shef_sets, cmd_state_e, 4, cmd_q)
`SHEF_STATES(shef_p256, state_e, 5, state_q)
`SHEF_STATES(shef_hmac, state_e, 13, state_q)
`SHEF_STATES(shef_gcm_iter, state_e, 13, state_q)
`SHEF_STATES(shef_aes_iter, state_e, 5, state_q)
`SHEF_STATES(shef_gcm, state_e, 10, state_q)
`SHEF_STATES(shef_set_ctl, wipe_e, 3, wipe_q)
`SHEF_STATES(shef_set_ctl, cmd_state_e, 6, cmd_q)
`SHEF_STATES(shef_seal, state_e, 4, state_q)
`SHEF_STATES(shef_evict, step_e, 7, step_q)
`SHEF_STATES(shef_tree_walk, state_e, 7, state_q)
`SHEF_STATES(shef_tree_exec, state_e, 4, state_q)
`SHEF_STATES(shef_cache, wipe_e, 4, wipe_q)
`SHEF_STATES(shef_cache, tell_e, 4, tell_q)
`SHEF_STATES(shef_cache, cmd_state_e, 6, cmd_q)
`SHEF_STATES(shef_cache_jobs, state_e, 3, state_q)
`SHEF_STATES(shef_cache_dir, walk_e, 4, walk_q)
`undef SHEF_STATES
`default_nettype wire
