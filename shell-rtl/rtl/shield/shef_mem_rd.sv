// Memory read responses: registers the R channel (always ready), checks every beat against
// outstanding reads, and routes data to the ring, tags to the tag lines and nodes to the tree.
//
// An unowed beat, an unknown id or a wrong RLAST is a protocol fault; any other error response is a
// bus fault. With KeepBad a data beat with an error is passed on along with its fault, so that the
// chunks behind it stay in step. Latency one cycle. chunk_*: the chunks in the order of their data
// reads. While stop_i is high beats are counted and dropped.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_mem_rd
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Depth = 64,
    parameter log2_tab_t ChunkLog2 = '0,
    parameter bit KeepBad = 1'b0
) (
    input  wire              clk_i,
    input  wire              rst_ni,
    input  wire              stop_i,
    input  wire              clr_i,
    input  wire [ZERO_W-1:0] zero_addr_i,
    input  wire              chunk_valid_i,
    input  wire  chunk_t     chunk_i,

    input  wire              ar_fire_i,
    input  wire  axi_ax_t    ar_i,
    input  wire  axi_r_t     r_i,
    input  wire              r_valid_i,

    output logic             data_valid_o,
    output logic             tag_valid_o,
    output logic             node_valid_o,
    output logic [511:0]     beat_o,
    // an owed beat arrived: of data, of a tag line, of a node
    output logic [2:0]       took_o,
    output logic             owed_data_o,     // levels
    output logic             owed_tag_o,
    output logic             owed_node_o,
    output logic             fault_valid_o,
    output fault_t           fault_o
);
  axi_r_t r_q;
  logic r_valid_q;
  chunk_t head;
  logic head_valid, head_pop;
  logic [15:0] owed_data_q;  // beats
  logic [7:0] owed_tag_q, owed_node_q;
  logic [5:0] beat_q, last_beat;
  logic is_data, is_tag, is_node, take_data, take_tag, take_node, want_last, good, kept;

  shef_fifo #(.W($bits(chunk_t)), .Depth(Depth)) u_order (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
      .in_valid_i(chunk_valid_i), .in_ready_o(), .in_data_i(chunk_i),
      .out_valid_o(head_valid), .out_ready_i(head_pop), .out_data_o(head), .count_o()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_valid_q <= 1'b0;
      r_q <= '0;
    end else begin
      r_valid_q <= r_valid_i;
      if (r_valid_i) r_q <= r_i;
    end
  end

  assign last_beat = 6'((7'd1 << (ChunkLog2[head.region] - 4'd6)) - 7'd1);
  assign is_data = r_valid_q && r_q.id == MEM_ID_DATA;
  assign is_tag = r_valid_q && r_q.id == MEM_ID_TAG;
  assign take_data = is_data && owed_data_q != '0;
  assign is_node = r_valid_q && r_q.id == MEM_ID_NODE;
  assign take_tag = is_tag && owed_tag_q != '0;
  assign take_node = is_node && owed_node_q != '0;
  assign want_last = is_tag || is_node || beat_q[2:0] == 3'd7 || beat_q == last_beat;
  assign good = r_q.resp == AXI_OKAY && r_q.last == want_last;
  assign kept = KeepBad && r_q.last == want_last;   // along with its fault
  assign data_valid_o = take_data && (good || kept) && head_valid && !stop_i;
  assign tag_valid_o = take_tag && good && !stop_i;
  assign node_valid_o = take_node && good && !stop_i;
  assign head_pop = data_valid_o && beat_q == last_beat;
  assign beat_o = r_q.data;
  assign took_o = {take_node, take_tag, take_data};
  assign owed_data_o = owed_data_q != '0;
  assign owed_tag_o = owed_tag_q != '0;
  assign owed_node_o = owed_node_q != '0;

  assign fault_valid_o = r_valid_q && !stop_i && !(data_valid_o && good) && !tag_valid_o &&
      !node_valid_o;
  always_comb begin
    fault_o = '{kind: FAULT_PROTOCOL, region: 8'hff, chunk: '0, version: '0};
    // A misplaced one leaves the beats behind it without an owner, whatever its response.
    if (took_o != '0 && r_q.resp != AXI_OKAY && r_q.last == want_last) fault_o.kind = FAULT_BUS;
    if (take_data && head_valid) begin
      // place in the set; the id is filled in where faults are merged
      fault_o.region = {4'd0, head.region};
      fault_o.chunk = head.chunk;
      fault_o.version = head.version;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      owed_data_q <= '0;
      owed_tag_q <= '0;
      owed_node_q <= '0;
    end else begin
      owed_data_q <= owed_data_q - 16'(take_data) +
          ((ar_fire_i && ar_i.id == MEM_ID_DATA) ? {8'd0, ar_i.len} + 16'd1 : '0);
      owed_tag_q <= owed_tag_q - 8'(take_tag) + 8'(ar_fire_i && ar_i.id == MEM_ID_TAG);
      owed_node_q <= owed_node_q - 8'(take_node) + 8'(ar_fire_i && ar_i.id == MEM_ID_NODE);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) beat_q <= '0;
    else if (data_valid_o) beat_q <= (beat_q == last_beat) ? '0 : beat_q + 1'b1;
  end
  logic unused;
  assign unused = ^{head.line, ar_i.addr, ar_i.size, ar_i.burst, zero_addr_i};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
