// shef_fetch: AR follows the handshake rules, also through a stop and a wipe, and never leaves its
// page. Every burst is aligned, has at most 512 bytes and the id of its kind. A started chunk is
// requested to its last beat, once, unless a stop drops it. The ring never gets more than it has
// room for. Chunks of one, four and 16 beats, a ring of 32.
`default_nettype none
module fetch
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire             clk_i,
    input wire             rst_ni,
    input wire             clr_i,
    input wire             stop_i,
    input wire             chunk_valid_i,
    input wire reg_idx_t   region_i,
    input wire chunk_idx_t index_i,
    input wire             plain_i,
    input wire             tag_gnt_i,
    input wire             tag_fetch_i,
    input wire [63:0]      tag_addr_i,
    input wire             mask_ready_i,
    input wire             beat_done_i,
    input wire             node_valid_i,
    input wire [63:0]      node_addr_i,
    input wire             ar_ready_i
);
  localparam log2_tab_t LOG2 = {{13{4'd6}}, 4'd10, 4'd8, 4'd6};
  localparam addr_tab_t BASE = {{13{64'h0}}, 64'h9000, 64'h5000, 64'h1000};
  logic chunk_ready, tag_req, go, node_ready, ar_valid;
  axi_ax_t ar;
  shef_fetch #(.RingBeats(32), .ChunkLog2(LOG2), .Base(BASE)) dut (
      .clk_i, .rst_ni, .clr_i, .stop_i, .chunk_valid_i, .chunk_ready_o(chunk_ready),
      .chunk_region_i(region_i), .chunk_index_i(index_i),
      .chunk_plain_i(plain_i), .tag_req_o(tag_req), .tag_gnt_i(tag_gnt_i && tag_req), .tag_fetch_i,
      .tag_addr_i, .mask_ready_i, .go_o(go),
      .beat_done_i, .node_valid_i, .node_ready_o(node_ready), .node_addr_i, .ar_o(ar),
      .ar_valid_o(ar_valid), .ar_ready_i
  );
  axi_address u_ar (.clk_i, .rst_ni, .valid_i(ar_valid), .ready_i(ar_ready_i), .ax_i(ar));

  logic init = 1'b0;
  logic waited;
  logic [7:0] owed;            // beats of the ring that are promised
  logic [7:0] left_q, left;    // beats of started chunks that no AR has requested
  logic [7:0] beats, size;
  logic fresh;                 // a new AR
  assign beats = (region_i == 4'd0) ? 8'd1 : (region_i == 4'd1) ? 8'd4 : 8'd16;
  assign fresh = ar_valid && !waited;
  assign size = ar.len + 8'd1;
  assign left = left_q - ((fresh && ar.id == MEM_ID_DATA) ? size : 8'd0);
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (region_i <= 4'd2 && tag_addr_i[5:0] == '0 && node_addr_i[5:0] == '0);
    assume (!beat_done_i || owed != '0);
    waited <= rst_ni && ar_valid && !ar_ready_i;
    if (!rst_ni || clr_i) owed <= '0;
    else owed <= owed + (go ? beats : 8'd0) - 8'(beat_done_i);
    if (!rst_ni || clr_i || stop_i) left_q <= '0;
    else left_q <= left + (go ? beats : 8'd0);
  end
  // whole bursts, aligned to their size
  function automatic logic aligned(input logic [63:0] addr, input logic [7:0] len);
    return (len == 8'd0 && addr[5:0] == '0) || (len == 8'd3 && addr[7:0] == '0) ||
        (len == 8'd7 && addr[8:0] == '0);
  endfunction
  always_comb begin
    if (init && rst_ni) begin
      if (ar_valid) begin
        assert (aligned(ar.addr, ar.len) && ar.size == AXI_SIZE_64);
        assert (ar.id == MEM_ID_DATA || ((ar.id == MEM_ID_TAG || ar.id == MEM_ID_NODE) &&
            ar.len == '0));
      end
      assert (owed <= 8'd32 && 8'(dut.free_q) + owed == 8'd32);
      if (go) assert (!stop_i && owed + beats <= 8'd32);
      // supporting invariants
      if (dut.busy_q) begin
        assert (dut.work_q.bursts <= 4'd2 && (dut.work_q.bursts != '0 || dut.work_q.tag));
        assert (aligned(dut.work_q.addr, {5'd0, dut.work_q.len}) &&
            (!dut.work_q.tag || dut.work_q.tag_addr[5:0] == '0));
      end
      assert (left == (dut.busy_q ? 8'(dut.work_q.bursts) * ({5'd0, dut.work_q.len} + 8'd1)
          : 8'd0));
    end
    cover (init && rst_ni && fresh && ar.id == MEM_ID_TAG && left == '0 && owed == 8'd32);
    cover (init && rst_ni && ar_valid && ar.id == MEM_ID_NODE && dut.busy_q);
    cover (init && rst_ni && waited && clr_i);
  end
endmodule
`default_nettype wire
