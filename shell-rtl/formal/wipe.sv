// The memories of an engine set during a wipe: while clr_i is held and the address counts up from
// 0, as shef_set_ctl drives it, every word that the sweep has passed is zero, whatever else comes
// in, and so are the read registers. One symbolic word of each memory.
`default_nettype none
module wipe
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
(
    input wire         clk_i,
    input wire         rst_ni,
    input wire         clr_i,
    input wire         en_i,
    input wire         take_i,
    input wire [1:0]   way_i,
    input wire [31:0]  a_i,
    input wire [511:0] data_i,
    input wire [63:0]  mark_i,
    input wire [15:0]  event_i
);
  logic init = 1'b0;
  logic [ZERO_W-1:0] zero, at;   // at: symbolic, constant
  always_ff @(posedge clk_i) at <= at;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    // the memories get the wipe after reset, too
    zero <= (rst_ni && clr_i) ? ((zero == 16'd200) ? zero : zero + 1'b1) : '0;
  end

  shef_fifo #(.W(8), .Depth(4)) u_fifo (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero[1:0]), .in_valid_i(en_i), .in_ready_o(),
      .in_data_i(data_i[7:0]),
      .out_valid_o(), .out_ready_i(take_i), .out_data_o(), .count_o()
  );
  shef_bram_fifo #(.W(8), .Depth(4)) u_bram (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero[1:0]), .in_valid_i(en_i), .in_ready_o(),
      .in_data_i(data_i[7:0]),
      .out_valid_o(), .out_ready_i(take_i), .out_data_o(), .count_o()
  );
  shef_line_ram #(.BigLines(0), .SmallLines(1)) u_lines (
      .clk_i, .clr_i, .zero_addr_i(zero), .wr_en_i(en_i), .wr_line_i('0), .wr_beat_i(a_i[5:0]),
      .wr_be_i(mark_i), .wr_data_i(data_i),
      .wr_mark_i(mark_i), .mark_o(), .rd_en_i(take_i), .rd_line_i('0), .rd_beat_i(a_i[11:6]),
      .rd_data_o(), .rd_mark_o()
  );
  shef_tree_level #(.Sets(2)) u_level (
      .clk_i, .clr_i, .zero_addr_i(zero), .look_en_i(take_i), .look_region_i(a_i[3:0]),
      .look_node_i(node_t'(a_i)), .busy_i('0),
      .hit_o(), .hit_way_o(), .room_o(), .victim_way_o(), .victim_dirty_o(), .victim_region_o(),
      .victim_node_o(),
      .touch_en_i(en_i), .touch_take_i(take_i), .touch_mark_i(mark_i[0]), .touch_region_i(a_i[7:4]),
      .touch_node_i(node_t'(a_i)), .touch_way_i(way_i),
      .rd_en_i(take_i), .rd_set_i(a_i[0]), .rd_way_i(way_i), .rd_data_o(), .wr_lanes_i(mark_i[7:0]),
      .wr_set_i(a_i[1]), .wr_way_i(way_i),
      .wr_data_i(data_i[383:0])
  );
  shef_tree_root #(.Words(4)) u_root (
      .clk_i, .clr_i, .zero_addr_i(zero), .rd_en_i(take_i), .rd_addr_i(a_i[16:0]), .rd_data_o(),
      .wr_en_i(en_i), .wr_addr_i(a_i[16:0]),
      .wr_data_i(data_i[47:0])
  );
  shef_tags #(.Entries(2)) u_tags (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero), .flush_i(1'b0), .drop_i(1'b0),
      .req_valid_i(1'b0), .req_read_i(1'b0), .req_region_i('0),
      .req_chunk_i('0), .req_gnt_o(), .req_entry_o(), .req_fetch_o(), .req_addr_o(),
      .fill_valid_i(en_i), .fill_data_i(data_i),
      .get_entry_i('0), .get_quarter_i('0), .get_valid_o(), .get_tag_o(), .rel_valid_i(1'b0),
      .rel_entry_i('0),
      .put_valid_i(take_i), .put_ready_o(), .put_entry_i({4'd0, way_i[0]}),
      .put_quarter_i(a_i[1:0]), .put_tag_i(data_i[127:0]),
      .wb_valid_o(), .wb_ready_i(1'b1), .wb_addr_o(), .wb_data_o(), .wb_strb_o(), .ack_i(1'b0),
      .dirty_o()
  );
  shef_mask u_mask (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero), .idle_i(1'b0), .push_valid_i(1'b0),
      .push_ready_o(), .push_region_i('0), .push_chunk_i('0),
      .push_version_i('0), .push_slot_o(), .push_lane_o(), .job_valid_o(), .job_ready_i(1'b0),
      .job_region_o(), .job_chunk_o(),
      .job_version_o(), .job_slot_o(), .ks_valid_i(en_i), .ks_slot_i(a_i[4:0]), .ks_i(data_i),
      .get_slot_i('0), .get_lane_i('0),
      .get_valid_o(), .get_mask_o(), .rel_valid_i(1'b0), .rel_slot_i('0)
  );
  shef_beats #(.NLines(4)) u_beats (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero), .new_valid_i(1'b0), .new_line_i('0),
      .put_valid_i(en_i), .put_line_i(line_t'(a_i[1:0])),
      .put_beat_i(a_i[7:2]), .put_whole_i(mark_i[0]), .put_last_i('1), .put_touched_o(),
      .put_full_o(), .ask_line_i('0), .ask_beat_i('0),
      .ask_touched_o()
  );
  shef_counters #(.Words(4)) u_counters (
      .clk_i, .rst_ni, .clr_i, .busy_o(), .ask_valid_i(take_i), .ask_ready_o(), .ask_region_i('0),
      .ask_chunk_i({37'd0, a_i[2:0]}),
      .ans_valid_o(), .ans_version_o(), .ans_last_o(), .set_valid_i(en_i), .set_ready_o(),
      .set_region_i('0), .set_chunk_i({37'd0, a_i[2:0]}),
      .set_done_o(), .set_version_o(), .set_refused_o(), .set_last_o()
  );
  shef_stats u_stats (.clk_i, .rst_ni, .clr_i, .event_i, .sel_i(a_i[3:0]), .cnt_o());

  logic wiped;                 // the sweep has passed the symbolic word
  logic [4:0] held;            // cycles that clr_i has been held: statistics have their own sweep
  assign wiped = zero > at;
  always_ff @(posedge clk_i) held <= (rst_ni && clr_i) ? ((held == 5'd16) ? held : held + 1'b1)
      : '0;
  logic counted;               // the sweep of the counters has passed the word
  assign counted = u_counters.clr_q &&
      (!u_counters.sweep_q || {14'd0, u_counters.sweep_addr_q} > at);
  logic stated;
  assign stated = held != '0 && 5'(4'(u_stats.turn_q - 4'd1 - at[3:0])) < held;

  always_comb begin
    if (init) begin
      if (wiped && at < 16'd4) assert (u_fifo.mem_q[at[1:0]] == '0);
      if (wiped && at < 16'd4) assert (u_bram.mem_q[at[1:0]] == '0 && u_bram.out_q == '0);
      if (wiped && at < 16'd8)
        assert (u_lines.mem_q[at[2:0]] == '0 && u_lines.mark_q[at[2:0]] == '0 &&
            u_lines.rd_data_q == '0 && u_lines.rd_mark_q == '0);
      if (wiped && at < 16'd8) assert (u_level.mem_q[at[2:0]] == '0 && u_level.rd_data_q == '0);
      if (wiped && at < 16'd2) begin
        assert (u_level.g_way[0].mem_q[at[0]] == '0 && u_level.g_way[1].mem_q[at[0]] == '0 &&
            u_level.g_way[2].mem_q[at[0]] == '0 &&
                u_level.g_way[3].mem_q[at[0]] == '0 && u_level.age_mem_q[at[0]] == '0);
      end
      if (wiped && at < 16'd4)
        assert (u_root.g_bank[0].mem_q[at[1:0]] == '0 && u_root.g_bank[0].data_q == '0);
      if (wiped && at < 16'd2) begin
        assert (u_tags.g_quarter[0].mem_q[at[0]] == '0 && u_tags.g_quarter[1].mem_q[at[0]] == '0 &&
            u_tags.g_quarter[2].mem_q[at[0]] == '0 &&
                u_tags.g_quarter[3].mem_q[at[0]] == '0);
      end
      if (wiped && at < 16'd32) begin
        assert (u_mask.g_lane[0].mem_q[at[4:0]] == '0 && u_mask.g_lane[1].mem_q[at[4:0]] == '0 &&
            u_mask.g_lane[2].mem_q[at[4:0]] == '0 &&
                u_mask.g_lane[3].mem_q[at[4:0]] == '0);
      end
      if (wiped && at < 16'd4)
        assert (u_beats.touched_q[at[1:0]] == '0 && u_beats.whole_q[at[1:0]] == '0 &&
            u_beats.fresh_q == '1);
      if (counted && at < 16'd4) assert (u_counters.g_bank[0].mem_q[at[1:0]] == '0);
      if (stated && at < 16'd16) assert (u_stats.mem_q[at[3:0]] == '0);
    end
    cover (init && wiped && at == 16'd7);
    cover (init && rst_ni && !clr_i && at == 16'd3 && u_lines.mem_q[3] != '0 &&
        u_level.mem_q[3] != '0 && u_mask.g_lane[3].mem_q[3] != '0 && u_beats.whole_q[3] != '0);
    cover (init && rst_ni && !clr_i && u_tags.g_quarter[3].mem_q[1] != '0);
    cover (init && counted && !u_counters.sweep_q && at == 16'd2);
    cover (init && stated && at == 16'd9);
  end
endmodule
`default_nettype wire
