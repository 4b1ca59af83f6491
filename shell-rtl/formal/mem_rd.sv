// shef_mem_rd against a memory that responds with anything at any time: it passes on no beat that
// is unowed, has an error, another id or a misplaced RLAST. It never passes on more beats than were
// requested. Each beat is passed on or reported as a fault, unless stopped. The count of owed beats
// does not fall below zero. If only the region stops (KeepBad), an error in a region's data is
// passed on, so that no later beat is taken for another. Chunks of 64 B and of 1 KiB (two bursts).
`default_nettype none
module mem_rd
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire           stop_i,
    input wire           chunk_valid_i,
    input wire  chunk_t  chunk_i,
    input wire           ar_fire_i,
    input wire  axi_ax_t ar_i,
    input wire  axi_r_t  r_i,
    input wire           r_valid_i
);
  localparam log2_tab_t LOG2 = {{14{4'd6}}, 4'd10, 4'd6};
  logic [2:0] took_kind;
  logic data_valid, tag_valid, node_valid, took, owed_data, owed_tag, owed_node, fault_valid;
  logic [511:0] beat;
  fault_t fault;
  shef_mem_rd #(.Depth(4), .ChunkLog2(LOG2)) dut (
      .clk_i, .rst_ni, .stop_i, .clr_i(1'b0), .zero_addr_i('0), .chunk_valid_i, .chunk_i,
      .ar_fire_i, .ar_i, .r_i, .r_valid_i,
      .data_valid_o(data_valid), .tag_valid_o(tag_valid), .node_valid_o(node_valid), .beat_o(beat),
      .took_o(took_kind),
      .owed_data_o(owed_data), .owed_tag_o(owed_tag), .owed_node_o(owed_node),
      .fault_valid_o(fault_valid), .fault_o(fault)
  );

  // the same, with faults that stop only their region
  logic keep_data_valid, keep_fault_valid;
  fault_t keep_fault;
  shef_mem_rd #(.Depth(4), .ChunkLog2(LOG2), .KeepBad(1'b1)) keeps (
      .clk_i, .rst_ni, .stop_i, .clr_i(1'b0), .zero_addr_i('0), .chunk_valid_i, .chunk_i,
      .ar_fire_i, .ar_i, .r_i, .r_valid_i,
      .data_valid_o(keep_data_valid), .fault_valid_o(keep_fault_valid), .fault_o(keep_fault)
  );

  logic init = 1'b0;
  logic in_place;                // its RLAST is in place
  logic came;                    // a beat arrived in the last cycle
  axi_r_t r;
  logic [15:0] asked_data, asked_tag, asked_node, got_data, got_tag, got_node;   // beats
  logic [4:0] beat_no;           // of the current chunk
  logic [4:0] last_no;
  assign last_no = (dut.head.region == 4'd1) ? 5'd15 : 5'd0;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (ar_i.len <= 8'd7);
    assume (chunk_i.region <= 4'd1);
    // the fetch unit requests no more than the ring holds; a tag line for each entry at most
    if (16'(asked_data - got_data) > 16'd500) assume (!ar_fire_i);
    if (16'(asked_tag - got_tag) > 16'd30) assume (!ar_fire_i);
    if (16'(asked_node - got_node) > 16'd30) assume (!ar_fire_i);
    came <= rst_ni && r_valid_i;
    if (r_valid_i) r <= r_i;
    if (!rst_ni) begin
      asked_data <= '0;
      asked_tag <= '0;
      asked_node <= '0;
      got_node <= '0;
      got_data <= '0;
      got_tag <= '0;
      beat_no <= '0;
    end else begin
      if (ar_fire_i && ar_i.id == MEM_ID_DATA) asked_data <= asked_data + {8'd0, ar_i.len} + 16'd1;
      if (ar_fire_i && ar_i.id == MEM_ID_TAG) asked_tag <= asked_tag + 16'd1;
      if (ar_fire_i && ar_i.id == MEM_ID_NODE) asked_node <= asked_node + 16'd1;
      if (took && r.id == MEM_ID_NODE) got_node <= got_node + 16'd1;
      if (took && r.id == MEM_ID_DATA) got_data <= got_data + 16'd1;
      if (took && r.id == MEM_ID_TAG) got_tag <= got_tag + 16'd1;
      if (data_valid) beat_no <= (beat_no == last_no) ? '0 : beat_no + 1'b1;
    end
  end
  assign took = took_kind != '0;
  assign in_place = r.last == (r.id != MEM_ID_DATA || beat_no[2:0] == 3'd7 || beat_no == last_no);
  logic [15:0] left_data, left_tag, left_node;
  assign left_node = asked_node - got_node;
  assign left_data = asked_data - got_data;
  assign left_tag = asked_tag - got_tag;
  always_comb begin
    if (init && rst_ni) begin
      assert (left_data <= 16'd508 && left_tag <= 16'd31 && left_node <= 16'd31);
      assert (dut.owed_data_q == left_data && {8'd0, dut.owed_tag_q} == left_tag &&
          {8'd0, dut.owed_node_q} == left_node);
      assert (dut.r_valid_q == came && (!came || dut.r_q == r));
      assert (dut.beat_q == {1'b0, beat_no} && beat_no <= 5'd15);
      assert (dut.u_order.count_q <= 3'd4 &&
          2'(dut.u_order.wp_q - dut.u_order.rp_q) == dut.u_order.count_q[1:0]);
      if (beat_no != '0) assert (dut.head_valid && dut.head.region == 4'd1);
      assert (owed_data == (left_data != '0) && owed_tag == (left_tag != '0) &&
          owed_node == (left_node != '0));
      // a passed beat was owed, is whole, and arrived now
      if (data_valid)
        assert (came && left_data != '0 && r.id == MEM_ID_DATA && r.resp == AXI_OKAY &&
            beat == r.data && dut.head_valid);
      if (data_valid) assert (r.last == (beat_no[2:0] == 3'd7 || beat_no == last_no));
      if (tag_valid)
        assert (came && left_tag != '0 && r.id == MEM_ID_TAG && r.resp == AXI_OKAY &&
            beat == r.data && r.last);
      if (node_valid)
        assert (came && left_node != '0 && r.id == MEM_ID_NODE && r.resp == AXI_OKAY &&
            beat == r.data && r.last);
      if (took) assert (took_kind == ((r.id == MEM_ID_DATA) ? 3'b001 : (r.id == MEM_ID_TAG) ? 3'b010
          : 3'b100));
      assert (!(data_valid && tag_valid) && !(node_valid && (data_valid || tag_valid)) &&
          !(took && !came));
      // nothing is lost silently
      if (came && !stop_i) assert (fault_valid != (data_valid || tag_valid || node_valid));
      if (stop_i) assert (!data_valid && !tag_valid && !node_valid && !fault_valid);
      if (fault_valid)
        assert (fault.kind == ((took && in_place && r.resp != AXI_OKAY) ? FAULT_BUS
            : FAULT_PROTOCOL));
      if (keep_fault_valid && keep_fault.kind == FAULT_BUS && keep_fault.region != 8'hff)
        assert (keep_data_valid);
    end
    cover (init && rst_ni && data_valid && beat_no == 5'd9);
    cover (init && rst_ni && tag_valid);
    cover (init && rst_ni && node_valid);
    cover (init && rst_ni && fault_valid && fault.kind == FAULT_BUS);
    cover (init && rst_ni && fault_valid && !took);
  end
endmodule
`default_nettype wire
