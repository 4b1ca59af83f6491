// Memory writes: collects sealed beats into whole bursts, and sends tag lines and tree nodes
// between them.
//
// Handshake: beats in (valid/ready), burst descriptions in (valid/ready) after the burst's last
// beat was pushed, tag lines and nodes in (valid/ready), memory AW/W/B. AW and W are offered
// independently of each other; W never waits for data inside a burst. One beat a cycle.
// chunk_acked_o: the last burst of a chunk was acknowledged; tag_acked_o: a tag line was,
// node_acked_o: a node was.
// stop_i: no new burst; a burst in progress is finished. clr_i (wipe): beats are zero and all
// strobes are low from then on.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_mem_wr
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Depth = 64
) (
    input  wire              clk_i,
    input  wire              rst_ni,
    input  wire              stop_i,
    input  wire              clr_i,
    input  wire [ZERO_W-1:0] zero_addr_i,

    input  wire              beat_valid_i,
    output logic             beat_ready_o,
    input  wire [511:0]      beat_i,
    input  wire [63:0]       beat_strb_i,
    input  wire              burst_valid_i,
    output logic             burst_ready_o,
    input  wire [63:0]       burst_addr_i,
    input  wire [2:0]        burst_len_i,
    input  wire              burst_last_i,     // last of its chunk

    input  wire              tag_valid_i,
    output logic             tag_ready_o,
    input  wire [63:0]       tag_addr_i,
    input  wire [511:0]      tag_data_i,
    input  wire [63:0]       tag_strb_i,
    input  wire              node_valid_i,
    output logic             node_ready_o,
    input  wire [63:0]       node_addr_i,
    input  wire [511:0]      node_data_i,

    output axi_ax_t          aw_o,
    output logic             aw_valid_o,
    input  wire              aw_ready_i,
    output axi_w_t           w_o,
    output logic             w_valid_o,
    input  wire              w_ready_i,
    input  wire  axi_b_t     b_i,
    input  wire              b_valid_i,

    output logic             chunk_acked_o,
    output logic             tag_acked_o,
    output logic             node_acked_o,
    output logic [2:0]       took_o,           // an owed B arrived: data, tag line, node
    output logic             owed_data_o,      // levels
    output logic             owed_tag_o,
    output logic             owed_node_o,
    output logic             busy_o,           // AW or W still has something to send
    output logic             w_wait_o,         // an AW or W waits for the memory
    output logic             empty_o,
    output logic             fault_valid_o,
    output fault_t           fault_o
);
  // ---- waiting beats and bursts ----
  logic fifo_valid, fifo_pop, burst_valid, burst_pop, burst_last, order_room, order_last,
      order_valid;
  logic [511:0] fifo_data;
  logic [63:0] fifo_strb;
  logic [63:0] burst_addr;
  logic [2:0] burst_len;

  shef_bram_fifo #(.W(576), .Depth(Depth)) u_beats (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
      .in_valid_i(beat_valid_i), .in_ready_o(beat_ready_o), .in_data_i({beat_strb_i, beat_i}),
      .out_valid_o(fifo_valid), .out_ready_i(fifo_pop), .out_data_o({fifo_strb, fifo_data}),
      .count_o()
  );
  shef_fifo #(.W(68), .Depth(Depth)) u_bursts (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
      .in_valid_i(burst_valid_i), .in_ready_o(burst_ready_o),
      .in_data_i({burst_addr_i, burst_len_i, burst_last_i}),
      .out_valid_o(burst_valid), .out_ready_i(burst_pop),
      .out_data_o({burst_addr, burst_len, burst_last}), .count_o()
  );
  // Bursts that wait for B: whether each is the last of its chunk; the kind of the response, and
  // the number still owed.
  logic b_data, b_tag, b_node, w_data_end, w_tag_end, w_node_end;
  logic [7:0] owed_data_q, owed_tag_q, owed_node_q;

  shef_fifo #(.W(1), .Depth(64)) u_order (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[5:0]),
      .in_valid_i(burst_pop), .in_ready_o(order_room), .in_data_i(burst_last),
      .out_valid_o(order_valid), .out_ready_i(b_data), .out_data_o(order_last), .count_o()
  );

  // ---- AW and W ----
  axi_ax_t aw_q;
  axi_w_t w_q;
  logic aw_valid_q, w_valid_q, active_q;
  logic [2:0] left_q;
  logic aw_free, w_free, load_beat, load_last, start_data, start_one, tag_turn_q, one_valid,
      one_node;

  assign aw_free = !aw_valid_q || aw_ready_i;
  assign w_free = !w_valid_q || w_ready_i;
  assign load_beat = active_q && w_free && (fifo_valid || clr_i);
  assign load_last = load_beat && left_q == '0;
  // a tag line or a node: one beat
  assign one_node = node_valid_i && owed_node_q != 8'hff;
  assign one_valid = one_node || (tag_valid_i && owed_tag_q != 8'hff);
  assign start_one = one_valid && aw_free && w_free && !active_q && !stop_i &&
      (tag_turn_q || !burst_valid);
  assign start_data = burst_valid && order_room && aw_free && (!active_q || load_last) && !stop_i &&
      !(one_valid && tag_turn_q);
  assign tag_ready_o = start_one && !one_node;
  assign node_ready_o = start_one && one_node;
  assign burst_pop = start_data;
  assign fifo_pop = load_beat;
  assign aw_o = aw_q;
  assign aw_valid_o = aw_valid_q;
  assign w_o = w_q;
  assign w_valid_o = w_valid_q;
  assign busy_o = aw_valid_q || w_valid_q || active_q;
  assign w_wait_o = (aw_valid_q && !aw_ready_i) || (w_valid_q && !w_ready_i);
  assign empty_o = !busy_o && !fifo_valid && !burst_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      active_q <= 1'b0;
      left_q <= '0;
      aw_q <= '0;
      w_q <= '0;
      tag_turn_q <= 1'b0;
    end else begin
      // a tag line or a node waits for one data burst at most
      if (start_one) tag_turn_q <= 1'b0;
      else if (start_data && one_valid) tag_turn_q <= 1'b1;
      if (aw_free) aw_valid_q <= start_data || start_one;
      if (start_data || start_one) begin
        aw_q.id <= !start_one ? MEM_ID_DATA : one_node ? MEM_ID_NODE : MEM_ID_TAG;
        aw_q.addr <= !start_one ? burst_addr : one_node ? node_addr_i : tag_addr_i;
        aw_q.len <= start_one ? '0 : {5'd0, burst_len};
        aw_q.size <= AXI_SIZE_64;
        aw_q.burst <= AXI_BURST_INCR;
      end
      if (start_data) begin
        active_q <= 1'b1;
        left_q <= burst_len;
      end else if (load_last) active_q <= 1'b0;
      else if (load_beat) left_q <= left_q - 1'b1;
      if (w_free) w_valid_q <= load_beat || start_one;
      if (load_beat) begin
        w_q.data <= clr_i ? '0 : fifo_data;
        w_q.strb <= clr_i ? '0 : fifo_strb;
        w_q.last <= left_q == '0;
      end else if (start_one) begin
        w_q.data <= one_node ? node_data_i : tag_data_i;
        w_q.strb <= one_node ? '1 : tag_strb_i;
        w_q.last <= 1'b1;
      end
    end
  end

  // ---- B ----
  axi_b_t b_q;
  logic b_valid_q;

  assign b_data = b_valid_q && b_q.id == MEM_ID_DATA && owed_data_q != '0;
  assign b_tag = b_valid_q && b_q.id == MEM_ID_TAG && owed_tag_q != '0;
  assign b_node = b_valid_q && b_q.id == MEM_ID_NODE && owed_node_q != '0;
  assign chunk_acked_o = b_data && order_valid && order_last && b_q.resp == AXI_OKAY && !stop_i;
  assign tag_acked_o = b_tag && b_q.resp == AXI_OKAY && !stop_i;
  assign node_acked_o = b_node && b_q.resp == AXI_OKAY && !stop_i;
  assign took_o = {b_node, b_tag, b_data};
  assign owed_data_o = owed_data_q != '0;
  assign owed_tag_o = owed_tag_q != '0;
  assign owed_node_o = owed_node_q != '0;
  assign fault_valid_o = b_valid_q && !stop_i && (took_o == '0 || b_q.resp != AXI_OKAY);
  assign fault_o = '{kind: (took_o != '0) ? FAULT_BUS
      : FAULT_PROTOCOL, region: 8'hff, chunk: '0, version: '0};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
      b_q <= '0;
      owed_data_q <= '0;
      owed_tag_q <= '0;
      owed_node_q <= '0;
    end else begin
      b_valid_q <= b_valid_i;
      if (b_valid_i) b_q <= b_i;
      // a B can be owed from the last W beat on; an earlier response breaks the protocol
      owed_data_q <= owed_data_q - 8'(b_data) + 8'(w_data_end);
      owed_tag_q <= owed_tag_q - 8'(b_tag) + 8'(w_tag_end);
      owed_node_q <= owed_node_q - 8'(b_node) + 8'(w_node_end);
    end
  end
  // kind of the burst in the W register
  logic w_one_q, w_node_q;
  assign w_data_end = w_valid_q && w_ready_i && w_q.last && !w_one_q;
  assign w_tag_end = w_valid_q && w_ready_i && w_q.last && w_one_q && !w_node_q;
  assign w_node_end = w_valid_q && w_ready_i && w_q.last && w_one_q && w_node_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_one_q <= 1'b0;
      w_node_q <= 1'b0;
    end else if (load_beat) w_one_q <= 1'b0;
    else if (start_one) begin
      w_one_q <= 1'b1;
      w_node_q <= one_node;
    end
  end
  logic unused;
  assign unused = ^zero_addr_i;
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
