// shef_tags: a new tag reads back as it was stored, whatever memory returns, until it is handed to
// the write-back, which has it under its own address and marked. The place of a tag that is in use,
// new or on its way to memory is not reallocated. No tag line has two places. Tracked: one symbolic
// tag; two places; tags by two of their bits.
`default_nettype none
module tags
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire             clk_i,
    input wire             rst_ni,
    input wire             flush_i,
    input wire             req_valid_i,
    input wire             req_read_i,
    input wire             req_region_i,
    input wire [3:0]       req_chunk_i,
    input wire             fill_valid_i,
    input wire [511:0]     fill_data_i,
    input wire             rel_valid_i,
    input wire             rel_entry_i,
    input wire             rel_mine_i,
    input wire             put_valid_i,
    input wire             put_entry_i,
    input wire [1:0]       put_quarter_i,
    input wire             put_mine_i,
    input wire [127:0]     put_tag_i,
    input wire             wb_ready_i,
    input wire             ack_i
);
  localparam addr_tab_t BASE = {{14{64'h0}}, 64'h2000, 64'h1000};
  logic gnt, fetch, get_valid, put_ready, wb_valid, dirty;
  logic [TAG_ENTRY_W-1:0] entry;
  logic [63:0] req_addr, wb_addr, wb_strb;
  logic [511:0] wb_data;
  logic [127:0] get_tag;
  logic e;                       // place of the tracked tag, while it has one
  logic r;                       // the tracked tag; constant
  logic [3:0] c;
  logic fill, rel, put, ack;
  shef_tags #(.Entries(2), .TagBase(BASE)) dut (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0), .flush_i, .drop_i(1'b0),
      .req_valid_i, .req_read_i, .req_region_i({3'd0, req_region_i}),
      .req_chunk_i({36'd0, req_chunk_i}), .req_gnt_o(gnt), .req_entry_o(entry),
      .req_fetch_o(fetch), .req_addr_o(req_addr), .fill_valid_i(fill), .fill_data_i,
      .get_entry_i({4'd0, e}), .get_quarter_i(c[1:0]), .get_valid_o(get_valid), .get_tag_o(get_tag),
      .rel_valid_i(rel), .rel_entry_i({4'd0, rel_entry_i}), .put_valid_i(put),
      .put_ready_o(put_ready), .put_entry_i({4'd0, put_entry_i}),
      .put_quarter_i, .put_tag_i, .wb_valid_o(wb_valid), .wb_ready_i, .wb_addr_o(wb_addr),
      .wb_data_o(wb_data), .wb_strb_o(wb_strb),
      .ack_i(ack), .dirty_o(dirty)
  );
  // memory responds only if it owes a response
  assign fill = fill_valid_i && dut.fill_known;
  assign ack = ack_i && dut.acks_valid;
  // only a holder releases a place or stores a tag, and only the tracked chunk does so for the
  // tracked tag's place
  logic held;                    // the tracked chunk's line has the place e
  assign held = dut.valid_q[e] && dut.line_q[e] == {36'd0, c[3:2]} && dut.region_q[e] == {3'd0, r};
  logic my_rel, my_put;
  logic [6:0] mine;              // times that the tracked chunk holds its place
  logic [6:0] theirs[2];         // holds of all other chunks
  assign my_rel = rel_mine_i && mine != '0 && rel_entry_i == e;
  assign my_put = put_mine_i && mine != '0 && put_entry_i == e && put_quarter_i == c[1:0] &&
      !(rel_valid_i && my_rel);
  assign rel = rel_valid_i && (my_rel || theirs[rel_entry_i] != '0);
  assign put = put_valid_i &&
      (my_put || (theirs[put_entry_i] > 7'(rel && !my_rel && rel_entry_i == put_entry_i) &&
      !(held && put_entry_i == e && put_quarter_i == c[1:0])));

  logic init = 1'b0;
  logic up, my_up, fresh;        // fresh: stored, and not yet handed on
  logic [1:0] newest;
  assign up = req_valid_i && gnt;
  assign my_up = up && req_region_i == r && req_chunk_i == c;
  logic start, mine_start;       // a write-back begins, of the tracked tag
  assign start = dut.wb_start;
  assign mine_start = start && dut.wb_entry == {4'd0, e} && fresh;
  logic sent;                    // the current write-back carries it
  logic [1:0] sent_tag;
  always_ff @(posedge clk_i) begin
    r <= r;
    c <= c;
  end
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (mine < 7'd8 && theirs[0] < 7'd8 && theirs[1] < 7'd8);
    if (!rst_ni) begin
      mine <= '0;
      theirs[0] <= '0;
      theirs[1] <= '0;
      fresh <= 1'b0;
      sent <= 1'b0;
      e <= 1'b0;
    end else begin
      mine <= mine + 7'(my_up) - 7'(rel && my_rel) - 7'(put && put_ready && my_put);
      for (int i = 0; i < 2; i++)
        theirs[i] <= theirs[i] + 7'(up && !my_up && entry == 5'(i)) -
            7'(rel && !my_rel && 32'(rel_entry_i) == i) -
            7'(put && put_ready && !my_put && 32'(put_entry_i) == i);
      if (my_up) e <= entry[0];
      else if (up && req_region_i == r && req_chunk_i[3:2] == c[3:2]) e <= entry[0];
      if (put && put_ready && my_put) begin
        fresh <= 1'b1;
        newest <= {put_tag_i[127], put_tag_i[0]};
      end else if (mine_start) fresh <= 1'b0;
      if (start) begin
        sent <= mine_start;
        sent_tag <= newest;
      end else if (wb_ready_i) sent <= 1'b0;
    end
  end

  logic [127:0] out;
  logic [15:0] marks;
  assign out = byte_reverse128(wb_data[{c[1:0], 7'd0}+:128]);
  assign marks = wb_strb[{c[1:0], 4'd0}+:16];
  always_comb begin
    if (init && rst_ni) begin
      if (fresh) assert (held && get_valid && {get_tag[127], get_tag[0]} == newest && dirty);
      if (mine != '0) assert (held);
      if (sent) begin
        assert (wb_valid && marks == '1 && {out[127], out[0]} == sent_tag);
        assert (wb_addr == (r ? 64'h2000 : 64'h1000) + {56'd0, c[3:2], 6'd0});
      end
      // a place in use is not reallocated
      if (up && !dut.is_hit)
        assert (theirs[entry[0]] + ((entry[0] == e) ? mine : 7'd0) == '0 &&
            dut.dirty_q[entry[0]] == '0 && !dut.wb_q[entry[0]]);
      if (up) assert (entry <= 5'd1);
      // supporting invariants
      assert (dut.victim_one == '0 || dut.victim_one == 2'd1 << dut.victim);
      assert (dut.wb_one == '0 || dut.wb_one == 2'd1 << dut.wb_entry);
      if (dut.wb_sure_q)
        assert (dut.wb_one != '0 && (dut.wb_one & dut.dirty_any_q & ~dut.wb_q) != '0);
      assert (dut.u_victim.next_q != 2'b11 && dut.u_wb.next_q != 2'b11);
      for (int i = 0; i < 2; i++) begin
        assert (dut.refs_q[i] == theirs[i] + ((32'(e) == i) ? mine : 7'd0) &&
            dut.held_q[i] == (dut.refs_q[i] != '0));
        assert (dut.dirty_any_q[i] == (dut.dirty_q[i] != '0));
        if (dut.refs_q[i] != '0 || dut.dirty_q[i] != '0 || dut.wb_q[i] || dut.pending_q[i])
          assert (dut.valid_q[i]);
        assert ((dut.dirty_q[i] & ~dut.known_q[i]) == '0);
      end
      if (dut.valid_q == 2'b11)
        assert (dut.line_q[0] != dut.line_q[1] || dut.region_q[0] != dut.region_q[1]);
      if (dut.valid_q[!e])
        assert (dut.line_q[!e] != {36'd0, c[3:2]} || dut.region_q[!e] != {3'd0, r});
      if (fresh) assert (dut.dirty_q[e][c[1:0]]);
      if (sent) assert (dut.wb_valid_q);
      assert (dut.u_fills.count_q <= 2'd2 &&
          1'(dut.u_fills.wp_q - dut.u_fills.rp_q) == dut.u_fills.count_q[0]);
      assert (dut.u_acks.count_q <= 2'd2 &&
          1'(dut.u_acks.wp_q - dut.u_acks.rp_q) == dut.u_acks.count_q[0]);
      // the queues hold each waiting place once, and no other
      assert (dut.u_fills.count_q == 2'(dut.pending_q[0]) + 2'(dut.pending_q[1]) &&
          dut.u_acks.count_q == 2'(dut.wb_q[0]) + 2'(dut.wb_q[1]));
      if (dut.u_fills.count_q != '0)
        assert (dut.pending_q[dut.u_fills.mem_q[dut.u_fills.rp_q][0]] &&
            dut.u_fills.mem_q[dut.u_fills.rp_q] <= 5'd1);
      if (dut.u_fills.count_q == 2'd2)
        assert (dut.u_fills.mem_q[0] != dut.u_fills.mem_q[1] && dut.u_fills.mem_q[0] <= 5'd1 &&
            dut.u_fills.mem_q[1] <= 5'd1);
      if (dut.u_acks.count_q != '0)
        assert (dut.wb_q[dut.u_acks.mem_q[dut.u_acks.rp_q][0]] &&
            dut.u_acks.mem_q[dut.u_acks.rp_q] <= 5'd1);
      if (dut.u_acks.count_q == 2'd2)
        assert (dut.u_acks.mem_q[0] != dut.u_acks.mem_q[1] && dut.u_acks.mem_q[0] <= 5'd1 &&
            dut.u_acks.mem_q[1] <= 5'd1);
    end
    cover (init && rst_ni && fresh && fill && dut.fill_entry == {4'd0, e});
    cover (init && rst_ni && sent && wb_ready_i && marks == '1 && c == 4'd6);
    cover (init && rst_ni && up && !dut.is_hit && dut.valid_q == 2'b11);
  end
  logic unused;
  assign unused = ^{fetch, req_addr};
endmodule
`default_nettype wire
