// shef_mem_wr: AW and W follow the handshake rules, also through a stop and a wipe. Bursts stay
// within their page. W beats follow AW one burst after the other, with WLAST where AWLEN says.
// Nothing new begins after a stop. During a wipe no waiting byte leaves. An acknowledgement is
// reported only if one was owed, with OKAY, and never after a stop. Bursts of one, two and four
// beats, room for four; W by a few of its bits: each bit passes the same registers.
`default_nettype none
module mem_wr
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire           stop_i,
    input wire           clr_i,
    input wire           beat_valid_i,
    input wire [511:0]   beat_i,
    input wire [63:0]    strb_i,
    input wire [63:0]    addr_i,
    input wire [2:0]     len_i,
    input wire           last_i,
    input wire           tag_valid_i,
    input wire [63:0]    tag_addr_i,
    input wire           node_valid_i,
    input wire [63:0]    node_addr_i,
    input wire [511:0]   one_data_i,
    input wire           aw_ready_i,
    input wire           w_ready_i,
    input wire axi_b_t   b_i,
    input wire           b_valid_i
);
  logic beat_ready, burst_ready, tag_ready, node_ready, aw_valid, w_valid, chunk_acked, tag_acked,
      node_acked, took;
  logic [2:0] took_kind;
  logic owed_data, owed_tag, owed_node, busy, w_wait, empty, fault_valid, ends;
  logic [2:0] at, len_q, len;     // of the incoming burst
  axi_ax_t aw;
  axi_w_t w;
  fault_t fault;
  logic push;
  assign took = took_kind != '0;
  assign len = (at == '0) ? len_i : len_q;
  assign ends = at == len;
  assign push = beat_valid_i && beat_ready && (!ends || burst_ready);
  shef_mem_wr #(.Depth(4)) dut (
      .clk_i, .rst_ni, .stop_i, .clr_i, .zero_addr_i('0),
      .beat_valid_i(push), .beat_ready_o(beat_ready), .beat_i, .beat_strb_i(strb_i),
      .burst_valid_i(push && ends), .burst_ready_o(burst_ready), .burst_addr_i(addr_i),
      .burst_len_i(len), .burst_last_i(last_i),
      .tag_valid_i, .tag_ready_o(tag_ready), .tag_addr_i, .tag_data_i(one_data_i),
      .tag_strb_i(strb_i),
      .node_valid_i, .node_ready_o(node_ready), .node_addr_i, .node_data_i(one_data_i),
      .aw_o(aw), .aw_valid_o(aw_valid), .aw_ready_i, .w_o(w), .w_valid_o(w_valid), .w_ready_i, .b_i,
      .b_valid_i,
      .chunk_acked_o(chunk_acked), .tag_acked_o(tag_acked), .node_acked_o(node_acked),
      .took_o(took_kind), .owed_data_o(owed_data),
      .owed_tag_o(owed_tag), .owed_node_o(owed_node), .busy_o(busy), .w_wait_o(w_wait),
      .empty_o(empty),
      .fault_valid_o(fault_valid), .fault_o(fault)
  );
  axi_address u_aw (.clk_i, .rst_ni, .valid_i(aw_valid), .ready_i(aw_ready_i), .ax_i(aw));
  axi_channel #(.W(5)) u_w (
      .clk_i, .rst_ni, .valid_i(w_valid), .ready_i(w_ready_i),
      .data_i({w.last, w.strb[0], w.strb[63], w.data[0], w.data[511]}), .break_i(1'b0)
  );

  logic init = 1'b0;
  logic aw_waited, w_waited, stop_q, clr_q;
  logic aw_new, w_new;
  logic [3:0] todo_q, todo;       // beats that W owes to the AWs so far
  logic b_q;
  axi_b_t b_last;
  assign aw_new = aw_valid && !aw_waited;
  assign w_new = w_valid && !w_waited;
  assign todo = todo_q + (aw_new ? {1'b0, aw.len[2:0]} + 4'd1 : 4'd0) - 4'(w_new);
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (len_i == 3'd0 || len_i == 3'd1 || len_i == 3'd3);
    assume (addr_i[5:0] == '0 && tag_addr_i[5:0] == '0 && node_addr_i[5:0] == '0);
    if (len == 3'd1) assume (!addr_i[6]);
    if (len == 3'd3) assume (addr_i[7:6] == '0);
    // a wipe begins with a stop
    if (clr_i) assume (stop_i);
    aw_waited <= rst_ni && aw_valid && !aw_ready_i;
    w_waited <= rst_ni && w_valid && !w_ready_i;
    stop_q <= stop_i;
    clr_q <= clr_i;
    b_q <= rst_ni && b_valid_i;
    if (b_valid_i) b_last <= b_i;
    if (!rst_ni || clr_i) at <= '0;
    else if (push) at <= ends ? '0 : at + 1'b1;
    if (push && at == '0) len_q <= len_i;
    todo_q <= rst_ni ? todo : '0;
  end

  // a waiting burst: aligned to its size
  function automatic logic whole(input logic [67:0] x);
    logic [63:0] addr;
    addr = x[67:4];
    return addr[5:0] == '0 && (x[3:1] == 3'd0 || (x[3:1] == 3'd1 && !addr[6]) ||
        (x[3:1] == 3'd3 && addr[7:6] == '0));
  endfunction
  always_comb begin
    if (init && rst_ni) begin
      if (aw_valid) assert (aw.len == '0 || aw.len == 8'd1 || aw.len == 8'd3);
      if (aw_valid)
        assert (aw.size == AXI_SIZE_64 &&
            (aw.id == MEM_ID_DATA ||
            (aw.len == '0 && (aw.id == MEM_ID_TAG || aw.id == MEM_ID_NODE))));
      // W follows AW, and ends in the right place
      if (w_new) assert (w.last == (todo == '0 || (aw_new && todo == {1'b0, aw.len[2:0]} + 4'd1)));
      // nothing after a stop
      if (stop_q) assert (!aw_new);
      if (clr_q && w_new) assert (!w.data[0] && !w.data[511] && !w.strb[0] && !w.strb[63]);
      if (chunk_acked || tag_acked || node_acked)
        assert (!stop_i && b_q && b_last.resp == AXI_OKAY);
      if (chunk_acked) assert (owed_data && b_last.id == MEM_ID_DATA);
      if (tag_acked) assert (owed_tag && b_last.id == MEM_ID_TAG);
      if (node_acked) assert (owed_node && b_last.id == MEM_ID_NODE);
      if (b_q && !stop_i) assert (fault_valid == (!took || b_last.resp != AXI_OKAY));
      // supporting invariants
      assert (todo == (dut.active_q ? {1'b0, dut.left_q} + 4'd1 : 4'd0));
      if (dut.w_one_q && w_valid) assert (w.last);
      assert (dut.b_valid_q == b_q && (!b_q || dut.b_q == b_last));
      assert (dut.u_bursts.count_q <= 3'd4 &&
          2'(dut.u_bursts.wp_q - dut.u_bursts.rp_q) == dut.u_bursts.count_q[1:0]);
      for (int i = 0; i < 4; i++)
        if (3'(i) < dut.u_bursts.count_q)
          assert (whole(dut.u_bursts.mem_q[2'(dut.u_bursts.rp_q + 2'(i))]));
      assert (at <= len && (at == '0 || len_q == 3'd1 || len_q == 3'd3));
    end
    cover (init && rst_ni && chunk_acked);
    cover (init && rst_ni && w_new && w.last && aw_new && aw.id == MEM_ID_TAG);
    cover (init && rst_ni && clr_q && w_new && w.last);
    cover (init && rst_ni && node_acked && owed_data);
  end
  logic unused;
  assign unused = ^{busy, w_wait, empty, fault, tag_ready, node_ready};
endmodule
`default_nettype wire
