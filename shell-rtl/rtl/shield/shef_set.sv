// Engine set: everything between one accelerator port and one memory port for the regions that
// belong to it.
//
// Reads: split -> lookup -> fetch -> ring -> XOR and GHASH -> line -> tag check -> response.
// Writes: split -> lookup -> line -> seal (XOR and GHASH) -> memory, tag. The accelerator may send
// INCR bursts of any legal shape and gets responses in the order of the requests; the memory sees
// aligned INCR bursts of 64-byte beats, at most 512 bytes each, with read and write ids 0 for data,
// 1 for tags and 2 for tree nodes. R and B of the memory are always accepted.
//
// key_*: a region's key, before enable_i. epoch_*: a region's first epoch, before enable_i. cmd_*:
// flush, invalidate, epoch.
// enable_i low: every request is refused. stop_i high: every request gets SLVERR and zeros and
// nothing is sealed. On its first fault the set stops automatically, and reports it once on
// fault_*. wipe_i: everything is zeroed; wipe_done_o while it is held. Throughput one beat a cycle
// for one direction, shared if both are active.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_set
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
  import shef_tables_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [NRegions-1:0] Regions = '0,
    parameter int unsigned Lanes = 4,
    parameter int unsigned BigLines = 8,        // lines of 4 KiB, for chunks above 512 B
    parameter int unsigned SmallLines = 32,     // lines of 512 B
    parameter int unsigned RingBeats = 512,
    parameter int unsigned TimeoutCycles = 4096,
    // REGION: a fault of a region freezes that region only; else it stops the set
    parameter on_fault_e   OnFault = ON_FAULT_SHIELD,
    parameter int unsigned KeyLimitLog2 = 48,   // blocks a region key may seal; may only be lowered
    // bits of a counter that is not wide; may only be lowered
    parameter int unsigned CountW = 36,
    // sets of each node cache of the tree, four nodes each
    parameter int unsigned NodeSets = 128,
    parameter bit          SboxRam = 1'b0,      // S-boxes of the AES in block RAM
    // a cache precedes the set: it counts statistics 0 to 5 (front_i)
    parameter bit          HasFront = 1'b0
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,

    // accelerator
    input  wire axi_req_t        acc_req_i,
    // a beat for another set of the port is first, and is not accepted
    input  wire                  acc_w_waits_i,
    output axi_rsp_t             acc_rsp_o,

    // memory
    output axi_req_t             mem_req_o,
    input  wire axi_rsp_t        mem_rsp_i,

    // control
    input  wire                  key_valid_i,
    output logic                 key_ready_o,
    input  wire [3:0]            key_region_i,
    input  wire                  key_node_i,       // the key is for the region's tree nodes
    input  wire [255:0]          key_i,
    input  wire                  enable_i,
    input  wire                  stop_i,
    input  wire                  cmd_valid_i,
    output logic                 cmd_ready_o,
    input  wire set_cmd_e        cmd_i,
    input  wire [3:0]            cmd_region_i,
    input  wire [VERSION_W-1:0]  cmd_epoch_i,
    output logic                 cmd_done_o,
    output logic                 cmd_err_o,
    input  wire                  epoch_we_i,
    input  wire [3:0]            epoch_region_i,
    input  wire [VERSION_W-1:0]  epoch_i,
    output logic                 fault_valid_o,
    output fault_t               fault_o,
    output logic                 refusal_valid_o,
    output refusal_t             refusal_o,
    input  wire [3:0]            stat_region_i,
    output logic [VERSION_W-1:0] epoch_o,
    output logic [31:0]          written_o,
    input  wire [3:0]            map_region_i,
    input  wire [25:0]           map_word_i,
    output logic [31:0]          map_o,
    // by region number: frozen after a fault in the region
    output logic [15:0]          region_fault_o,
    input  wire [5:0]            front_i,
    input  wire [3:0]            cnt_sel_i,
    output logic [47:0]          cnt_o,            // that statistic, one cycle later
    output logic                 idle_o,
    output logic                 halted_o,         // stopped by a fault in the set, until a wipe
    input  wire                  wipe_i,
    output logic                 wipe_done_o
);
  localparam int unsigned NLines = BigLines + SmallLines;
  localparam int unsigned Depth = 1 << LINE_W;   // of all queues of chunks
  localparam int unsigned KsDepth = 32;

  if (NRegions < 1 || NRegions > MAX_REGIONS) begin : g_bad_regions
    $error("shef_set: 1 to 16 regions");
  end
  if (NLines > (1 << LINE_W) || BigLines < 3 || SmallLines < 3) begin : g_bad_lines
    $error("shef_set: at least 3 lines of each kind, at most 64 in all");
  end
  if (RingBeats < 64 || (RingBeats & (RingBeats - 1)) != 0) begin : g_bad_ring
    $error("shef_set: RingBeats is a power of two, at least 64");
  end

  // ---- tables from the configuration, by a region's place in the set ----
  localparam regions_t REGIONS = regions_t'(Regions);
  localparam log2_tab_t CHUNK_LOG2 = tab_log2(NRegions, REGIONS);
  localparam id_tab_t REGION_ID = tab_id(NRegions, REGIONS);
  localparam addr_tab_t BASE = tab_base(NRegions, REGIONS, 1'b0);
  localparam addr_tab_t TAG_BASE = tab_base(NRegions, REGIONS, 1'b1);
  localparam logic [MAX_REGIONS-1:0] IS_OUTPUT = tab_mode(NRegions, REGIONS, MODE_OUTPUT);
  localparam logic [MAX_REGIONS-1:0] IS_INPUT = tab_mode(NRegions, REGIONS, MODE_INPUT);
  localparam logic [MAX_REGIONS-1:0] IS_BIG = tab_big(NRegions, REGIONS);
  localparam logic [MAX_REGIONS-1:0] HAS_VERSIONS = tab_mode(NRegions, REGIONS, MODE_COUNTED) |
      tab_mode(NRegions, REGIONS, MODE_TREE);
  localparam logic [MAX_REGIONS-1:0] IS_TREE = tab_mode(NRegions, REGIONS, MODE_TREE);
  localparam logic [MAX_REGIONS-1:0] IS_PLAIN = tab_mode(NRegions, REGIONS, MODE_BYPASS);
  localparam words_t MAP_WORDS = tab_words(NRegions, REGIONS, MODE_OUTPUT);
  localparam words_t COUNT_WORDS = tab_words(NRegions, REGIONS, MODE_COUNTED);

  // addresses of the wipe's sweep
  localparam int unsigned LineWords = BigLines * 64 + SmallLines * 8;
  localparam int unsigned LineSweep = (LineWords > RingBeats) ? LineWords : RingBeats;
  localparam int unsigned TreeSweep = (num_roots(NRegions, REGIONS) == 0) ? 0
      : tree_sweep_words(NodeSets, num_roots(NRegions, REGIONS));
  localparam int unsigned SweepWords = (LineSweep > TreeSweep) ? LineSweep : TreeSweep;

  // ---- signals used before the block that drives them ----
  logic [MAX_REGIONS-1:0] frozen;   // by place
  seg_t looked;   // the segment being decided
  logic spec_taken, spec_used, spec_failed;
  node_ar_t node_ar;
  node_wb_t node_wb;
  node_job_t node_job;
  node_gh_t node_gh;
  node_fault_t node_fault;
  tree_rsp_t tree_rsp;
  logic node_ar_ready, node_r_valid, node_wb_ready, node_acked;
  logic rsp_get_valid, rsp_get_ready, line_touched, line_all;

  logic unused;
  assign unused = ^looked;
  always_comb begin
    region_fault_o = '0;
    for (int unsigned r = 0; r < NRegions; r++) region_fault_o[REGION_ID[r][3:0]] = frozen[r];
  end

  // ---- control ----
  logic stop, clr, halt_lookup;
  logic [ZERO_W-1:0] zero_addr;
  version_t [NRegions-1:0] epochs;
  logic [NRegions-1:0] epoch_zero, exhausted, clear_mask, drop_mask;
  logic clear_map, map_busy, hold_rd, hold_wr, flush_lines, flush_tags, kill_writes, drop,
      drop_tags, cmd_idle;
  logic write_held, write_owed, lines_dirty, lines_fetching, tags_dirty, gcm_wiped, port_idle, late,
      twice;
  logic rd_fault_valid, wr_fault_valid, verify_ok, verify_fail;
  fault_t rd_fault, wr_fault;
  chunk_t verify_chunk;
  reg_idx_t seal_region;
  chunk_idx_t seal_chunk;
  line_t seal_line;
  logic [2:0] took_r, took_b;   // data, tags, nodes
  logic wr_busy, owed_data, owed_tag, owed_node, owed_b_data, owed_b_tag, owed_b_node;

  shef_set_ctl #(
      .NRegions(NRegions), .SweepWords(SweepWords), .FreezeRegion(OnFault == ON_FAULT_REGION),
      .RegionId(REGION_ID), .HasEpoch(IS_OUTPUT | IS_INPUT)
  ) u_ctl (
      .clk_i, .rst_ni, .enable_i, .stop_i, .stop_o(stop), .frozen_o(frozen),
      .epoch_we_i, .epoch_region_i, .epoch_i, .epoch_o(epochs), .epoch_zero_o(epoch_zero),
      .clear_map_o(clear_map), .clear_mask_o(clear_mask), .map_busy_i(map_busy),
      .cmd_valid_i, .cmd_ready_o, .cmd_i, .cmd_region_i, .cmd_epoch_i, .cmd_done_o, .cmd_err_o,
      .hold_rd_o(hold_rd), .hold_wr_o(hold_wr), .flush_lines_o(flush_lines),
      .flush_tags_o(flush_tags),
      .kill_writes_o(kill_writes), .drop_o(drop), .drop_mask_o(drop_mask), .drop_tags_o(drop_tags),
      .write_held_i(write_held), .write_owed_i(write_owed), .lines_dirty_i(lines_dirty),
      .lines_fetching_i(lines_fetching), .tags_dirty_i(tags_dirty),
      .cmd_idle_o(cmd_idle),
      .tag_fail_i(verify_fail && !spec_failed), .tag_fail_chunk_i(verify_chunk),
      .twice_i(twice), .twice_region_i(seal_region), .twice_chunk_i(seal_chunk),
      .node_fail_i(node_fault.valid), .node_internal_i(node_fault.internal),
      .node_region_i(node_fault.region),
      .node_index_i(node_fault.index), .node_version_i(node_fault.version),
      .rd_fault_valid_i(rd_fault_valid), .rd_fault_i(rd_fault), .wr_fault_valid_i(wr_fault_valid),
      .wr_fault_i(wr_fault),
      .late_i(late), .fault_valid_o, .fault_o, .halted_o,
      .wipe_i, .wipe_done_o, .clr_o(clr), .zero_addr_o(zero_addr), .gcm_wiped_i(gcm_wiped),
      .port_idle_i(port_idle)
  );
  assign halt_lookup = stop;

  // ---- front end ----
  seg_t rd_seg, wr_seg;
  logic rd_seg_valid, rd_seg_ready, wr_seg_valid, wr_seg_ready;

  shef_split #(.NRegions(NRegions), .Regions(Regions), .IsWrite(1'b0)) u_split_rd (
      .clk_i, .rst_ni, .enable_i, .epoch_zero_i(epoch_zero), .exhausted_i(exhausted),
      .ax_i(acc_req_i.ar), .ax_valid_i(acc_req_i.ar_valid), .ax_ready_o(acc_rsp_o.ar_ready),
      .seg_o(rd_seg), .seg_valid_o(rd_seg_valid), .seg_ready_i(rd_seg_ready)
  );
  shef_split #(.NRegions(NRegions), .Regions(Regions), .IsWrite(1'b1)) u_split_wr (
      .clk_i, .rst_ni, .enable_i, .epoch_zero_i(epoch_zero), .exhausted_i(exhausted),
      .ax_i(acc_req_i.aw), .ax_valid_i(acc_req_i.aw_valid), .ax_ready_o(acc_rsp_o.aw_ready),
      .seg_o(wr_seg), .seg_valid_o(wr_seg_valid), .seg_ready_i(wr_seg_ready)
  );

  // ---- directory ----
  lseg_t lseg;
  logic rsp_valid, rsp_room, wsg_valid, wsg_room, fetch_valid, fetch_write, new_valid, ask_valid,
      ask_ready, ask_bit, looking;
  logic ver_valid, ver_ready, merge_valid, merge_ready, known, known_zero, known_last, filled;
  logic taken, short_of_lines, rsp_waits, seal_waits;
  logic rsp_done, wsg_done, wsg_full, sealed, sealed_last, seal_valid;
  line_t fetch_line, new_line, rsp_done_line, wsg_done_line, sealed_line, seal_in_line, merge_line;
  reg_idx_t seal_in_region, merge_region;
  chunk_idx_t seal_in_chunk, merge_index;
  logic [NLines-1:0] readable, fetched, lines_closed, lines_asked, lines_last, lines_dead;
  logic fq_dead, unsealed;
  logic [1:0] refuse_valid, refuse_ready;
  refusal_t lookup_refusal, write_refusal;

  // the head of the fetch queue, and the line that is decrypted
  line_t fq_line, dec_line;

  shef_lookup #(
      .NRegions(NRegions), .BigLines(BigLines), .SmallLines(SmallLines),
      .ChunkW(chunk_bits(NRegions, REGIONS)), .IsOutput(IS_OUTPUT),
      .HasVersions(HAS_VERSIONS), .IsTree(IS_TREE), .IsPlain(IS_PLAIN), .IsBig(IS_BIG),
      .RegionId(REGION_ID),
      .Prefetch(tab_prefetch(NRegions, REGIONS)), .NumChunks(tab_chunks(NRegions, REGIONS))
  ) u_lookup (
      .clk_i, .rst_ni, .clr_i(clr), .stop_i(halt_lookup), .hold_rd_i(hold_rd), .hold_wr_i(hold_wr),
      .frozen_i(frozen),
      .rd_seg_i(rd_seg), .rd_valid_i(rd_seg_valid), .rd_ready_o(rd_seg_ready),
      .wr_seg_i(wr_seg), .wr_valid_i(wr_seg_valid), .wr_ready_o(wr_seg_ready), .held_o(looking),
      .rsp_valid_o(rsp_valid), .rsp_room_i(rsp_room), .lseg_o(lseg), .seg_o(looked),
      .wsg_valid_o(wsg_valid), .wsg_room_i(wsg_room),
      .fetch_valid_o(fetch_valid), .fetch_line_o(fetch_line), .fetch_write_o(fetch_write),
      .ver_valid_o(ver_valid),
      .ver_ready_i(ver_ready), .new_valid_o(new_valid), .new_line_o(new_line), .taken_o(taken),
      .short_o(short_of_lines),
      .spec_taken_o(spec_taken), .spec_used_o(spec_used), .spec_failed_o(spec_failed),
      .merge_valid_o(merge_valid), .merge_ready_i(merge_ready), .merge_line_o(merge_line),
      .merge_region_o(merge_region),
      .merge_chunk_o(merge_index),
      .ask_valid_o(ask_valid), .ask_ready_i(ask_ready), .ask_bit_i(ask_bit),
      .rsp_done_i(rsp_done), .rsp_line_i(rsp_done_line),
      .wsg_done_i(wsg_done), .wsg_line_i(wsg_done_line), .wsg_full_i(wsg_full),
      .known_i(known), .known_line_i(fq_line), .known_zero_i(known_zero), .known_last_i(known_last),
      .known_dead_i(fq_dead),
      .verified_i(verify_ok), .verified_line_i(verify_chunk.line), .failed_i(verify_fail),
      .filled_i(filled), .filled_line_i(dec_line),
      .sealed_i(sealed), .sealed_line_i(sealed_line), .sealed_last_i(sealed_last),
      .unsealed_i(unsealed),
      .unsealed_line_i(seal_line),
      .flush_i(flush_lines), .drop_i(drop), .drop_mask_i(drop_mask),
      .seal_valid_o(seal_valid), .seal_line_o(seal_in_line), .seal_region_o(seal_in_region),
      .seal_chunk_o(seal_in_chunk),
      .readable_o(readable), .fetched_o(fetched), .closed_o(lines_closed), .asked_o(lines_asked),
      .last_o(lines_last), .dead_o(lines_dead),
      .fetching_o(lines_fetching), .dirty_o(lines_dirty), .write_held_o(write_held),
      .rd_refusal_valid_o(refuse_valid[0]), .rd_refusal_room_i(refuse_ready[0]),
      .refusal_o(lookup_refusal)
  );

  shef_refusals u_refusals (
      .clk_i, .rst_ni, .valid_i(refuse_valid), .ready_o(refuse_ready),
      .refusal_i({write_refusal, lookup_refusal}),
      .valid_o(refusal_valid_o), .refusal_o
  );

  // ---- versions, key use, read-out ----
  logic set_valid, set_ready, set_done, set_refused, set_last, seal_go, ans_valid, ans_ready,
      ans_last, ans_zero, ans_none;
  version_t set_version, ans_version;
  reg_idx_t fq_region;
  reg_idx_t stat_idx, map_idx;
  logic map_known;

  function automatic reg_idx_t place_of(input logic [3:0] id);
    reg_idx_t n;
    n = '0;
    for (int unsigned r = 0; r < NRegions; r++) if (REGION_ID[r] == {4'd0, id}) n = reg_idx_t'(r);
    return n;
  endfunction
  function automatic logic has_id(input logic [3:0] id);
    logic n;
    n = 1'b0;
    for (int unsigned r = 0; r < NRegions; r++) if (REGION_ID[r] == {4'd0, id}) n = 1'b1;
    return n;
  endfunction

  assign stat_idx = place_of(stat_region_i);
  assign map_idx = place_of(map_region_i);
  assign map_known = has_id(map_region_i);
  logic [31:0] written;
  assign written_o = has_id(stat_region_i) ? written : '0;
  assign epoch_o = has_id(stat_region_i) ? version_of(stat_idx) : '0;

  function automatic version_t version_of(input reg_idx_t region);
    version_t v;
    v = '0;
    for (int unsigned r = 0; r < NRegions; r++) if (region == reg_idx_t'(r)) v = epochs[r];
    return v;
  endfunction

  logic tree_valid, tree_ready, tree_idle, touch_valid;
  tree_req_e tree_kind;
  reg_idx_t tree_region, touch_region;
  chunk_idx_t tree_chunk, touch_chunk;

  shef_versions #(
      .NRegions(NRegions), .Depth(Depth),
      .MapWords((total(NRegions, MAP_WORDS) == 0) ? 1 : total(NRegions, MAP_WORDS)),
      .MapFirst(tab_first(NRegions, MAP_WORDS)),
      .MapNum(MAP_WORDS), .CountWords(total(NRegions, COUNT_WORDS)),
      .CountFirst(tab_first(NRegions, COUNT_WORDS)), .CountWide(tab_wide(NRegions, REGIONS)),
      .CountW(CountW), .IsOutput(IS_OUTPUT), .IsTree(IS_TREE)
  ) u_versions (
      .clk_i, .rst_ni, .clr_i(clr), .zero_addr_i(zero_addr), .busy_o(map_busy), .epoch_i(epochs),
      .clear_i(clear_map), .clear_mask_i(clear_mask),
      .ask_valid_i(ask_valid), .ask_ready_o(ask_ready), .ver_valid_i(ver_valid),
      .ver_ready_o(ver_ready),
      .ask_region_i(looked.region), .ask_chunk_i(looked.chunk), .ask_bit_o(ask_bit),
      .ans_region_i(fq_region), .ans_valid_o(ans_valid), .ans_ready_i(ans_ready),
      .ans_version_o(ans_version),
      .ans_zero_o(ans_zero), .ans_last_o(ans_last), .ans_none_o(ans_none),
      .set_valid_i(set_valid), .set_ready_o(set_ready), .set_region_i(seal_region),
      .set_chunk_i(seal_chunk),
      .set_done_o(set_done), .set_version_o(set_version), .set_refused_o(set_refused),
      .set_last_o(set_last),
      .touch_valid_i(touch_valid), .touch_region_i(touch_region), .touch_chunk_i(touch_chunk),
      .tree_valid_o(tree_valid), .tree_ready_i(tree_ready), .tree_kind_o(tree_kind),
      .tree_region_o(tree_region),
      .tree_chunk_o(tree_chunk), .tree_rsp_i(tree_rsp.valid), .tree_rsp_bump_i(tree_rsp.bump),
      .tree_rsp_version_i(tree_rsp.version),
      .tree_rsp_last_i(tree_rsp.last),
      .count_region_i(stat_idx), .count_o(written),
      .map_region_i(map_idx), .map_valid_i(map_known), .map_word_i, .map_o
  );

  shef_key_use #(.NRegions(NRegions), .NLines(NLines), .LimitLog2(KeyLimitLog2),
      .ChunkLog2(CHUNK_LOG2)) u_key_use (
      .clk_i, .rst_ni, .clr_i(clr), .use_i(seal_go), .use_region_i(seal_region),
      .exhausted_o(exhausted)
  );

  // ---- GCM ----
  logic job_valid, job_ready, ks_valid, gh_valid, gh_ready, s_valid;
  logic [1:0] s_slot, gh_slot;
  logic [4:0] job_key;
  logic [511:0] job_block, ks;
  logic [MASK_SLOT_W+2:0] job_user, ks_user;
  gh_beat_t gh;
  logic [127:0] s;
  logic key_known, gcm_key_ready;
  logic [3:0] key_log2;
  logic key_256;

  always_comb begin
    key_log2 = 4'd6;
    key_256 = 1'b0;
    for (int unsigned r = 0; r < NRegions; r++) begin
      if (REGION_ID[r] == {4'd0, key_region_i}) begin
        key_log2 = Regions[r].chunk_log2;
        key_256 = Regions[r].key256;
      end
    end
  end
  assign key_known = has_id(key_region_i);
  assign key_ready_o = gcm_key_ready || !key_known;   // another set's region: nothing to do

  shef_gcm #(.NRegions(num_slots(NRegions, REGIONS)), .NNodes(num_nodes(NRegions, REGIONS)),
      .Lanes(Lanes), .UserW(MASK_SLOT_W + 3), .SboxRam(SboxRam)) u_gcm (
      .clk_i, .rst_ni, .wipe_i(clr), .wipe_done_o(gcm_wiped),
      .key_valid_i(key_valid_i && key_known), .key_ready_o(gcm_key_ready), .key_region_i,
      .key_node_i(key_node_i),
      .key256_i(key_256),
      .chunk_log2_i(key_log2), .key_i,
      .job_valid_i(job_valid), .job_ready_o(job_ready), .job_key_i(job_key),
      .job_block_i(job_block), .job_user_i(job_user),
      .ks_valid_o(ks_valid), .ks_o(ks), .ks_user_o(ks_user),
      .gh_valid_i(gh_valid), .gh_ready_o(gh_ready), .gh_key_i(gh.key), .gh_slot_i(gh_slot),
      .gh_first_i(gh.first),
      .gh_last_i(gh.last), .gh_pow_i(gh.pow), .gh_data_i(gh.data), .gh_user_i('0),
      .s_valid_o(s_valid), .s_slot_o(s_slot), .s_o(s), .s_user_o()
  );

  // ---- AES jobs, keystream, masks: [0] read, [1] seal ----
  logic [TAG_ENTRY_W-1:0] tag_entry;
  logic [1:0] ctr_busy, ctr_valid, ctr_ready, mask_job_valid, mask_job_ready, mask_ready, mask_push,
      mask_rel, mask_get_valid;
  ctr_job_t [1:0] ctr_job;
  reg_idx_t [1:0] mask_region;
  chunk_idx_t [1:0][3:0] mask_chunk;
  version_t [1:0][3:0] mask_version;
  logic [1:0][MASK_SLOT_W-1:0] mask_job_slot, mask_push_slot, mask_get_slot;
  logic [1:0][1:0] mask_push_lane, mask_get_lane;
  logic [1:0][127:0] mask_get;
  chunk_t [1:0] go_chunk;
  tagref_t [1:0] go_tagref, get_tagref;
  logic [1:0] go, ks_head_valid;
  logic dec_fire, dec_plain, seal_fire, seal_plain;
  logic [1:0][511:0] ks_head;
  logic [511:0] ks_beat;

  logic node_job_ready, node_ks_valid, node_gh_ready, node_s_valid;
  assign node_ks_valid = ks_valid && ks_user[MASK_SLOT_W+:3] == KS_NODE;
  assign node_s_valid = s_valid && s_slot == GH_NODE;

  shef_jobs #(.RegionId(REGION_ID)) u_jobs (
      .clk_i, .rst_ni, .stop_i(stop),
      .ctr_valid_i(ctr_valid), .ctr_ready_o(ctr_ready), .ctr_job_i(ctr_job),
      .mask_valid_i(mask_job_valid), .mask_ready_o(mask_job_ready), .mask_region_i(mask_region),
      .mask_chunk_i(mask_chunk),
      .mask_version_i(mask_version), .mask_slot_i(mask_job_slot),
      .node_valid_i(node_job.valid), .node_ready_o(node_job_ready), .node_region_i(node_job.region),
      .node_index_i(node_job.index),
      .node_version_i(node_job.version),
      .job_valid_o(job_valid), .job_ready_i(job_ready), .job_key_o(job_key),
      .job_block_o(job_block),
      .job_user_o(job_user)
  );
  assign ks_beat = ks_valid ? byte_reverse512(ks) : '0;

  for (genvar d = 0; d < 2; d++) begin : g_dir
    localparam logic [2:0] KS = 3'(d);
    localparam logic [2:0] KS_MASK = 3'(d) + KS_READ_MASK;
    logic fire;
    assign fire = (d == 0) ? (dec_fire && !dec_plain) : (seal_fire && !seal_plain);

    shef_ctr_jobs #(.Depth(Depth), .Credits(KsDepth), .ChunkLog2(CHUNK_LOG2)) u_ctr (
        .clk_i, .rst_ni, .clr_i(clr), .zero_addr_i(zero_addr),
        .chunk_valid_i(go[d]), .chunk_i(go_chunk[d]), .take_i(fire),
        .job_valid_o(ctr_valid[d]), .job_ready_i(ctr_ready[d]), .job_o(ctr_job[d]),
        .busy_o(ctr_busy[d])
    );
    shef_fifo #(.W(512), .Depth(KsDepth)) u_ks (
        .clk_i, .rst_ni, .clr_i(clr), .zero_addr_i(zero_addr[$clog2(KsDepth)-1:0]),
        .in_valid_i(ks_valid && ks_user[MASK_SLOT_W+:3] == KS), .in_ready_o(), .in_data_i(ks_beat),
        .out_valid_o(ks_head_valid[d]), .out_ready_i(fire), .out_data_o(ks_head[d]), .count_o()
    );
    shef_mask u_mask (
        .clk_i, .rst_ni, .clr_i(clr), .zero_addr_i(zero_addr), .idle_i(ctr_busy == '0),
        .push_valid_i(mask_push[d]), .push_ready_o(mask_ready[d]),
        .push_region_i(go_chunk[d].region),
        .push_chunk_i(go_chunk[d].chunk), .push_version_i(go_chunk[d].version),
        .push_slot_o(mask_push_slot[d]), .push_lane_o(mask_push_lane[d]),
        .job_valid_o(mask_job_valid[d]), .job_ready_i(mask_job_ready[d]),
        .job_region_o(mask_region[d]),
        .job_chunk_o(mask_chunk[d]), .job_version_o(mask_version[d]), .job_slot_o(mask_job_slot[d]),
        .ks_valid_i(ks_valid && ks_user[MASK_SLOT_W+:3] == KS_MASK),
        .ks_slot_i(ks_user[MASK_SLOT_W-1:0]), .ks_i(ks),
        .get_slot_i(mask_get_slot[d]), .get_lane_i(mask_get_lane[d]),
        .get_valid_o(mask_get_valid[d]), .get_mask_o(mask_get[d]),
        .rel_valid_i(mask_rel[d]), .rel_slot_i(mask_get_slot[d])
    );
    assign mask_push[d] = go[d];
    assign mask_get_slot[d] = get_tagref[d].slot;
    assign mask_get_lane[d] = get_tagref[d].lane;
    assign go_tagref[d] = '{entry: tag_entry, quarter: go_chunk[d].chunk[1:0],
        slot: mask_push_slot[d], lane: mask_push_lane[d]};
  end

  // ---- tag lines ----
  logic [1:0] tag_req;
  logic tag_side, tag_gnt, tag_fetch, fill_valid, tag_get_valid, verify_used, put_valid, put_ready;
  logic wb_valid, wb_ready, tag_acked, tag_turn_q;
  logic [63:0] tag_addr, wb_addr, wb_strb;
  logic [511:0] wb_data, mem_beat;
  logic [127:0] tag_get, put_tag;

  assign tag_side = tag_req[1] && (!tag_req[0] || tag_turn_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) tag_turn_q <= 1'b0;
    else if (tag_req != '0) tag_turn_q <= !tag_side;
  end

  shef_tags #(.Entries(1 << TAG_ENTRY_W), .ChunkW(chunk_bits(NRegions, REGIONS)),
      .TagBase(TAG_BASE)) u_tags (
      .clk_i, .rst_ni, .clr_i(clr), .zero_addr_i(zero_addr), .flush_i(flush_tags),
      .drop_i(drop_tags),
      .req_valid_i(tag_req != '0), .req_read_i(!tag_side), .req_region_i(go_chunk[tag_side].region),
      .req_chunk_i(go_chunk[tag_side].chunk), .req_gnt_o(tag_gnt), .req_entry_o(tag_entry),
      .req_fetch_o(tag_fetch),
      .req_addr_o(tag_addr),
      .fill_valid_i(fill_valid), .fill_data_i(mem_beat),
      .get_entry_i(get_tagref[0].entry), .get_quarter_i(get_tagref[0].quarter),
      .get_valid_o(tag_get_valid),
      .get_tag_o(tag_get), .rel_valid_i(verify_used), .rel_entry_i(get_tagref[0].entry),
      .put_valid_i(put_valid), .put_ready_o(put_ready), .put_entry_i(get_tagref[1].entry),
      .put_quarter_i(get_tagref[1].quarter), .put_tag_i(put_tag),
      .wb_valid_o(wb_valid), .wb_ready_i(wb_ready), .wb_addr_o(wb_addr), .wb_data_o(wb_data),
      .wb_strb_o(wb_strb),
      .ack_i(tag_acked), .dirty_o(tags_dirty)
  );

  // ---- fetch ----
  logic chunk_go, chunk_valid, chunk_plain, ar_fire, data_valid;

  shef_fetch_queue #(.NLines(NLines), .Depth(Depth), .HasVersions(HAS_VERSIONS)) u_fetch_queue (
      .clk_i, .rst_ni, .clr_i(clr), .stop_i(stop), .zero_addr_i(zero_addr), .frozen_i(frozen),
      .take_valid_i(fetch_valid), .take_line_i(fetch_line), .take_region_i(looked.region),
      .take_chunk_i(looked.chunk),
      .take_write_i(fetch_write), .merge_valid_i(merge_valid), .merge_ready_o(merge_ready),
      .merge_line_i(merge_line),
      .merge_region_i(merge_region), .merge_chunk_i(merge_index),
      .line_o(fq_line), .region_o(fq_region), .epoch_i(version_of(fq_region)),
      .ans_valid_i(ans_valid), .ans_ready_o(ans_ready), .ans_version_i(ans_version),
      .ans_zero_i(ans_zero),
      .ans_last_i(ans_last), .ans_none_i(ans_none),
      .sealed_valid_i(set_done), .sealed_line_i(seal_line), .sealed_version_i(set_version),
      .known_o(known), .known_zero_o(known_zero), .known_last_o(known_last), .dead_o(fq_dead),
      .chunk_valid_o(chunk_valid), .chunk_o(go_chunk[0]), .chunk_go_i(chunk_go)
  );
  assign chunk_plain = IS_PLAIN[go_chunk[0].region];
  assign go[0] = chunk_go && !chunk_plain;

  shef_fetch #(.RingBeats(RingBeats), .ChunkLog2(CHUNK_LOG2), .Base(BASE)) u_fetch (
      .clk_i, .rst_ni, .clr_i(clr), .stop_i(stop),
      .chunk_valid_i(chunk_valid), .chunk_ready_o(), .chunk_region_i(go_chunk[0].region),
      .chunk_index_i(go_chunk[0].chunk),
      .chunk_plain_i(chunk_plain),
      .tag_req_o(tag_req[0]), .tag_gnt_i(tag_gnt && !tag_side), .tag_fetch_i(tag_fetch),
      .tag_addr_i(tag_addr),
      .mask_ready_i(mask_ready[0]), .go_o(chunk_go), .beat_done_i(dec_fire),
      .node_valid_i(node_ar.valid), .node_ready_o(node_ar_ready), .node_addr_i(node_ar.addr),
      .ar_o(mem_req_o.ar), .ar_valid_o(mem_req_o.ar_valid), .ar_ready_i(mem_rsp_i.ar_ready)
  );
  assign ar_fire = mem_req_o.ar_valid && mem_rsp_i.ar_ready;
  assign mem_req_o.r_ready = 1'b1;

  shef_mem_rd #(.Depth(Depth), .ChunkLog2(CHUNK_LOG2),
      .KeepBad(OnFault == ON_FAULT_REGION)) u_mem_rd (
      .clk_i, .rst_ni, .stop_i(stop), .clr_i(clr), .zero_addr_i(zero_addr),
      .chunk_valid_i(chunk_go), .chunk_i(go_chunk[0]),
      .ar_fire_i(ar_fire), .ar_i(mem_req_o.ar), .r_i(mem_rsp_i.r), .r_valid_i(mem_rsp_i.r_valid),
      .data_valid_o(data_valid), .tag_valid_o(fill_valid), .node_valid_o(node_r_valid),
      .beat_o(mem_beat),
      .took_o(took_r), .owed_data_o(owed_data), .owed_tag_o(owed_tag),
      .owed_node_o(owed_node), .fault_valid_o(rd_fault_valid), .fault_o(rd_fault)
  );

  // ---- decryption ----
  reg_idx_t dec_region;
  logic dec_first, dec_last, dec_req, dec_waits, gh_free;
  logic [5:0] dec_beat, dec_pow;
  logic [511:0] dec_data, dec_cipher;

  shef_decrypt #(.Depth(Depth), .RingBeats(RingBeats), .ChunkLog2(CHUNK_LOG2),
      .IsPlain(IS_PLAIN)) u_decrypt (
      .clk_i, .rst_ni, .clr_i(clr), .stop_i(stop), .zero_addr_i(zero_addr),
      .chunk_valid_i(chunk_go), .chunk_line_i(go_chunk[0].line),
      .chunk_region_i(go_chunk[0].region),
      .ring_valid_i(data_valid), .ring_data_i(mem_beat), .ks_valid_i(ks_head_valid[0]),
      .ks_i(ks_head[0]), .gh_free_i(gh_free),
      .req_o(dec_req), .fire_i(dec_fire), .line_o(dec_line), .region_o(dec_region),
      .beat_o(dec_beat), .plain_o(dec_plain),
      .data_o(dec_data), .cipher_o(dec_cipher), .first_o(dec_first), .last_o(dec_last),
      .pow_o(dec_pow),
      .filled_o(filled), .waits_o(dec_waits)
  );

  // ---- write acceptor ----
  logic put_line_valid, put_line_ready, put_full, wacc_idle;
  line_t put_line;
  logic [5:0] put_beat, put_last;

  shef_wacc #(.NLines(NLines), .ChunkLog2(CHUNK_LOG2)) u_wacc (
      .clk_i, .rst_ni, .stop_i(stop), .kill_i(kill_writes), .clr_i(clr),
      .seg_valid_i(wsg_valid), .seg_room_o(wsg_room), .seg_i(lseg), .seg_region_i(looked.region),
      .seg_refusal_i(lookup_refusal), .seg_region_id_i(REGION_ID[looked.region]),
      .seg_addr_i(looked.addr),
      .closed_i(lines_closed), .asked_i(lines_asked), .dead_i(lines_dead), .last_i(lines_last),
      .w_valid_i(acc_req_i.w_valid), .w_waits_i(acc_w_waits_i), .w_ready_o(acc_rsp_o.w_ready),
      .b_o(acc_rsp_o.b), .b_valid_o(acc_rsp_o.b_valid), .b_ready_i(acc_req_i.b_ready),
      .put_valid_o(put_line_valid), .put_ready_i(put_line_ready), .put_line_o(put_line),
      .put_beat_o(put_beat),
      .put_last_o(put_last), .put_full_i(put_full),
      .done_o(wsg_done), .done_line_o(wsg_done_line), .done_full_o(wsg_full),
      .refusal_valid_o(refuse_valid[1]), .refusal_ready_i(refuse_ready[1]),
      .refusal_o(write_refusal),
      .owed_o(write_owed), .idle_o(wacc_idle)
  );

  // ---- seal ----
  logic [511:0] line_data;  // read from a line, one cycle after the request
  logic [63:0] line_mark;
  logic seal_beat_valid, seal_first, seal_last, burst_end, burst_room, beat_room, seal_get_valid,
      seal_get_ready;
  logic seal_idle, chunk_acked;
  logic [511:0] seal_beat;
  logic [63:0] seal_strb;
  version_t seal_version;
  logic [63:0] burst_addr;
  logic [2:0] burst_len;
  logic [5:0] seal_pow, seal_get_beat;
  reg_idx_t seal_beat_region;
  line_t seal_get_line;

  assign go[1] = seal_go;
  assign go_chunk[1] = '{line: seal_line, region: seal_region, chunk: seal_chunk,
      version: seal_version};

  shef_seal #(.Depth(Depth), .ChunkLog2(CHUNK_LOG2), .Base(BASE), .IsPlain(IS_PLAIN)) u_seal (
      .clk_i, .rst_ni, .clr_i(clr), .stop_i(stop), .zero_addr_i(zero_addr), .frozen_i(frozen),
      .chunk_valid_i(seal_valid), .chunk_line_i(seal_in_line), .chunk_region_i(seal_in_region),
      .chunk_index_i(seal_in_chunk),
      .head_region_o(seal_region), .head_chunk_o(seal_chunk), .head_line_o(seal_line),
      .set_valid_o(set_valid), .set_ready_i(set_ready), .set_done_i(set_done),
      .set_version_i(set_version),
      .set_refused_i(set_refused), .set_last_i(set_last), .head_version_o(seal_version),
      .tag_req_o(tag_req[1]), .tag_gnt_i(tag_gnt && tag_side), .mask_ready_i(mask_ready[1]),
      .tagref_i(go_tagref[1]),
      .go_o(seal_go), .twice_o(twice), .dropped_o(unsealed),
      .get_valid_o(seal_get_valid), .get_ready_i(seal_get_ready), .get_line_o(seal_get_line),
      .get_beat_o(seal_get_beat),
      .get_all_i(line_all), .get_touched_i(line_touched), .get_data_i(line_data),
      .get_mark_i(line_mark),
      .ks_valid_i(ks_head_valid[1]), .ks_i(ks_head[1]),
      .beat_valid_o(seal_beat_valid), .beat_fire_i(seal_fire), .beat_o(seal_beat),
      .beat_strb_o(seal_strb),
      .beat_plain_o(seal_plain), .beat_region_o(seal_beat_region),
      .beat_first_o(seal_first), .beat_last_o(seal_last), .beat_pow_o(seal_pow),
      .burst_end_o(burst_end), .burst_addr_o(burst_addr), .burst_len_o(burst_len),
      .s_valid_i(s_valid && s_slot == GH_SEAL), .s_i(s), .tag_get_o(get_tagref[1]),
      .mask_valid_i(mask_get_valid[1]), .mask_i(mask_get[1]),
      .put_valid_o(put_valid), .put_ready_i(put_ready), .put_tag_o(put_tag),
      .acked_i(chunk_acked), .done_o(sealed), .done_line_o(sealed_line), .done_last_o(sealed_last),
      .waits_o(seal_waits), .idle_o(seal_idle)
  );
  assign mask_rel[1] = put_valid && put_ready;

  // ---- arbitration of each cycle ----
  shef_crypt_turn #(.RegionId(REGION_ID)) u_turn (
      .clk_i, .rst_ni, .stop_i(stop), .put_wait_i(put_line_valid),
      .dec_req_i(dec_req), .dec_plain_i(dec_plain), .dec_fire_o(dec_fire),
      .dec_beat_i('{key: {1'b0, REGION_ID[dec_region][3:0]}, first: dec_first, last: dec_last,
      pow: dec_pow, data: dec_cipher}),
      .seal_req_i(seal_beat_valid && beat_room && burst_room), .seal_plain_i(seal_plain),
      .seal_fire_o(seal_fire),
      .seal_beat_i('{key: {1'b0, REGION_ID[seal_beat_region][3:0]}, first: seal_first,
      last: seal_last, pow: seal_pow, data: seal_beat}),
      .node_i(node_gh), .node_ready_o(node_gh_ready), .free_o(gh_free),
      .gh_valid_o(gh_valid), .gh_ready_i(gh_ready), .gh_slot_o(gh_slot), .gh_o(gh)
  );

  // ---- lines ----
  line_t rsp_get_line;
  logic [5:0] rsp_get_beat;

  shef_lines #(.BigLines(BigLines), .SmallLines(SmallLines)) u_lines (
      .clk_i, .rst_ni, .clr_i(clr), .zero_addr_i(zero_addr), .new_valid_i(new_valid),
      .new_line_i(new_line),
      .fill_valid_i(dec_fire), .fill_line_i(dec_line), .fill_beat_i(dec_beat),
      .fill_data_i(dec_data),
      .put_valid_i(put_line_valid), .put_ready_o(put_line_ready), .put_line_i(put_line),
      .put_beat_i(put_beat), .put_w_i(acc_req_i.w),
      .put_last_i(put_last), .put_full_o(put_full), .fetched_i(fetched),
      .rsp_get_valid_i(rsp_get_valid), .rsp_get_ready_o(rsp_get_ready),
      .rsp_get_line_i(rsp_get_line), .rsp_get_beat_i(rsp_get_beat),
      .seal_get_valid_i(seal_get_valid), .seal_get_ready_o(seal_get_ready),
      .seal_get_line_i(seal_get_line),
      .seal_get_beat_i(seal_get_beat), .data_o(line_data), .mark_o(line_mark), .all_o(line_all),
      .touched_o(line_touched)
  );

  // ---- tag check and responses ----
  logic rsp_idle;

  shef_verify #(.Depth(Depth)) u_verify (
      .clk_i, .rst_ni, .clr_i(clr), .stop_i(stop), .zero_addr_i(zero_addr),
      .chunk_valid_i(go[0]), .chunk_i(go_chunk[0]), .tagref_i(go_tagref[0]),
      .s_valid_i(s_valid && s_slot == GH_READ), .s_i(s),
      .get_o(get_tagref[0]), .mask_valid_i(mask_get_valid[0]), .mask_i(mask_get[0]),
      .tag_valid_i(tag_get_valid),
      .tag_i(tag_get), .used_o(verify_used), .ok_o(verify_ok), .fail_o(verify_fail),
      .chunk_o(verify_chunk)
  );
  assign mask_rel[0] = verify_used;

  shef_resp #(.NLines(NLines), .Depth(64)) u_resp (
      .clk_i, .rst_ni, .stop_i(stop), .clr_i(clr), .zero_addr_i(zero_addr),
      .seg_valid_i(rsp_valid), .room_o(rsp_room), .seg_i(lseg), .readable_i(readable),
      .dead_i(lines_dead),
      .get_valid_o(rsp_get_valid), .get_ready_i(rsp_get_ready), .get_line_o(rsp_get_line),
      .get_beat_o(rsp_get_beat),
      .get_all_i(line_all), .get_none_i(!line_all && !line_touched), .get_data_i(line_data),
      .get_mark_i(line_mark),
      .done_o(rsp_done), .done_line_o(rsp_done_line), .waits_o(rsp_waits), .idle_o(rsp_idle),
      .r_o(acc_rsp_o.r), .r_valid_o(acc_rsp_o.r_valid), .r_ready_i(acc_req_i.r_ready)
  );

  // ---- tree ----
  if (IS_TREE != '0) begin : g_tree
    shef_tree #(.NRegions(NRegions), .Regions(Regions), .Sets(NodeSets)) u_tree (
        .clk_i, .rst_ni, .clr_i(clr), .zero_addr_i(zero_addr), .stop_i(stop),
        .req_valid_i(tree_valid), .req_ready_o(tree_ready), .req_kind_i(tree_kind),
        .req_region_i(tree_region), .req_chunk_i(tree_chunk),
        .rsp_valid_o(tree_rsp.valid), .rsp_bump_o(tree_rsp.bump), .rsp_version_o(tree_rsp.version),
        .rsp_exhausted_o(tree_rsp.last),
        .ar_valid_o(node_ar.valid), .ar_ready_i(node_ar_ready), .ar_addr_o(node_ar.addr),
        .r_valid_i(node_r_valid), .r_data_i(mem_beat),
        .wb_valid_o(node_wb.valid), .wb_ready_i(node_wb_ready), .wb_addr_o(node_wb.addr),
        .wb_data_o(node_wb.data), .ack_i(node_acked),
        .job_valid_o(node_job.valid), .job_ready_i(node_job_ready), .job_region_o(node_job.region),
        .job_index_o(node_job.index),
        .job_version_o(node_job.version), .ks_valid_i(node_ks_valid), .ks_i(ks[511:384]),
        .gh_valid_o(node_gh.valid), .gh_ready_i(node_gh_ready), .gh_region_o(node_gh.region),
        .gh_data_o(node_gh.data),
        .s_valid_i(node_s_valid), .s_i(s),
        .fault_valid_o(node_fault.valid), .fault_region_o(node_fault.region),
        .fault_index_o(node_fault.index),
        .fault_version_o(node_fault.version), .fault_internal_o(node_fault.internal),
        .idle_o(tree_idle)
    );
    shef_tree_ahead #(.IsTree(IS_TREE), .NumChunks(tab_chunks(NRegions, REGIONS))) u_ahead (
        .clk_i, .rst_ni, .clr_i(clr), .look_i(ver_valid), .look_region_i(looked.region),
        .look_chunk_i(looked.chunk),
        .touch_o(touch_valid), .region_o(touch_region), .chunk_o(touch_chunk)
    );
  end else begin : g_no_tree
    assign {tree_rsp, node_ar, node_wb, node_job, node_gh, node_fault} = '0;
    assign {tree_ready, touch_valid, touch_region, touch_chunk} = '0;
    assign tree_idle = 1'b1;
    logic unused_tree;
    assign unused_tree = ^{tree_valid, tree_kind, tree_region, tree_chunk, node_ar_ready,
        node_r_valid, node_wb_ready, node_acked,
                           node_job_ready, node_ks_valid, node_gh_ready, node_s_valid};
  end

  // ---- memory writes ----
  logic wr_wait, wr_empty;
  shef_mem_wr #(.Depth(64)) u_mem_wr (
      .clk_i, .rst_ni, .stop_i(stop), .clr_i(clr), .zero_addr_i(zero_addr),
      .beat_valid_i(seal_fire), .beat_ready_o(beat_room), .beat_i(seal_beat),
      .beat_strb_i(seal_strb),
      .burst_valid_i(seal_fire && burst_end), .burst_ready_o(burst_room), .burst_addr_i(burst_addr),
      .burst_len_i(burst_len),
      .burst_last_i(seal_last),
      .tag_valid_i(wb_valid), .tag_ready_o(wb_ready), .tag_addr_i(wb_addr), .tag_data_i(wb_data),
      .tag_strb_i(wb_strb),
      .node_valid_i(node_wb.valid), .node_ready_o(node_wb_ready), .node_addr_i(node_wb.addr),
      .node_data_i(node_wb.data),
      .aw_o(mem_req_o.aw), .aw_valid_o(mem_req_o.aw_valid), .aw_ready_i(mem_rsp_i.aw_ready),
      .w_o(mem_req_o.w), .w_valid_o(mem_req_o.w_valid), .w_ready_i(mem_rsp_i.w_ready),
      .b_i(mem_rsp_i.b), .b_valid_i(mem_rsp_i.b_valid),
      .chunk_acked_o(chunk_acked), .tag_acked_o(tag_acked), .node_acked_o(node_acked),
      .took_o(took_b), .owed_data_o(owed_b_data), .owed_tag_o(owed_b_tag),
      .owed_node_o(owed_b_node),
      .busy_o(wr_busy), .w_wait_o(wr_wait), .empty_o(wr_empty), .fault_valid_o(wr_fault_valid),
      .fault_o(wr_fault)
  );
  assign mem_req_o.b_ready = 1'b1;

  // ---- time-outs ----
  logic [2:0] owed_r, owed_b;
  assign owed_r = {owed_node, owed_tag, owed_data};
  assign owed_b = {owed_b_node, owed_b_tag, owed_b_data};

  shef_watches #(.Cycles(TimeoutCycles), .HasTree(IS_TREE != '0)) u_watches (
      .clk_i, .rst_ni, .ar_wait_i(mem_req_o.ar_valid), .ar_taken_i(mem_rsp_i.ar_ready),
      .w_wait_i(wr_wait),
      .w_taken_i((mem_req_o.aw_valid && mem_rsp_i.aw_ready) ||
          (mem_req_o.w_valid && mem_rsp_i.w_ready)),
      .owed_r_i(owed_r), .took_r_i(took_r), .owed_b_i(owed_b), .took_b_i(took_b), .late_o(late)
  );

  // ---- statistics ----
  set_events_t events;
  assign events = '{
      r_hit: rsp_valid && !lseg.err && !taken,
      r_miss: rsp_valid && !lseg.err && taken,
      w_hit: wsg_valid && !lseg.err && !taken,
      w_miss: wsg_valid && !lseg.err && taken,
      r_beat: acc_rsp_o.r_valid && acc_req_i.r_ready,
      w_beat: put_line_valid && put_line_ready,
      fetched: chunk_go,
      sealed: sealed,
      rsp_wait: rsp_waits,
      line_wait: short_of_lines,
      crypt_wait: dec_waits || seal_waits || (seal_beat_valid && !seal_plain && !gh_free),
      ar_wait: mem_req_o.ar_valid && !mem_rsp_i.ar_ready,
      w_wait: wr_wait,
      ahead_taken: spec_taken,
      ahead_used: spec_used,
      ahead_failed: spec_failed
  };

  shef_set_stats #(.HasFront(HasFront)) u_stats (
      .clk_i, .rst_ni, .clr_i(clr), .event_i(events), .front_i, .sel_i(cnt_sel_i), .cnt_o
  );

  assign port_idle = !wr_busy && !mem_req_o.ar_valid && owed_r == '0 && owed_b == '0;
  assign idle_o = cmd_idle && rsp_idle && wacc_idle && seal_idle &&
      ((wr_empty && port_idle) || late) && !lines_dirty && !lines_fetching &&
      !tags_dirty && tree_idle && !rd_seg_valid && !wr_seg_valid && !looking && !map_busy && !clr;
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
