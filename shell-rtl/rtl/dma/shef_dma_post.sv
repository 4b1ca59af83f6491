// Writes completions of all queues into host memory: 16 bytes in one beat each.
//
// Handshake: a completion of a queue (valid/ready, the lowest queue first); AXI4 AW/W under id 0, B
// always accepted. told_o[q] is a pulse when a completion of q is acknowledged, ok_o its outcome.
// At most 16 are outstanding, and up to eight go out between two bursts of others. A completion a
// cycle. owed_o (level): a B is outstanding. bad_o (pulse): an unowed B.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_dma_post
  import shef_pkg::*;
  import shef_dma_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire  [QUEUES-1:0] cpl_valid_i,
    output logic [QUEUES-1:0] cpl_ready_o,
    input  wire  cpl_t [QUEUES-1:0] cpl_i,
    output axi_ax_t      aw_o,
    output logic         aw_valid_o,
    input  wire          aw_ready_i,
    output axi_w_t       w_o,
    output logic         w_valid_o,
    input  wire          w_ready_i,
    input  wire  axi_b_t b_i,
    input  wire          b_valid_i,
    output logic [QUEUES-1:0] told_o,
    output logic         ok_o,
    output logic         owed_o,
    output logic         bad_o
);
  axi_ax_t aw_q;
  logic aw_valid_q, room, data_room, owed, take;
  logic [QUEUE_W-1:0] sel, first;
  logic [1:0] place;
  logic [127:0] data;
  cpl_t cpl;

  always_comb begin
    sel = '0;
    for (int unsigned i = QUEUES; i > 0; i--) if (cpl_valid_i[i-1]) sel = QUEUE_W'(i - 1);
  end
  assign cpl = cpl_i[sel];
  assign take = cpl_valid_i != '0 && (!aw_valid_q || aw_ready_i) && data_room && room;
  assign cpl_ready_o = QUEUES'(take) << sel;
  assign aw_o = aw_q;
  assign aw_valid_o = aw_valid_q;
  assign w_o = '{data: {4{data}}, strb: 64'hffff << {place, 4'd0}, last: 1'b1};

  shef_fifo #(.W(130), .Depth(8)) u_data (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(take), .in_ready_o(data_room),
      .in_data_i({cpl.addr[5:4], cpl.seq, cpl.bytes, cpl.retired, 13'd0, cpl.status, cpl.tag}),
      .out_valid_o(w_valid_o), .out_ready_i(w_ready_i), .out_data_o({place, data}), .count_o()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_q <= '0;
      aw_valid_q <= 1'b0;
    end else begin
      if (aw_ready_i) aw_valid_q <= 1'b0;
      if (take) begin
        aw_valid_q <= 1'b1;
        aw_q <= '{id: '0, addr: cpl.addr, len: '0, size: AXI_SIZE_64, burst: AXI_BURST_INCR};
      end
    end
  end

  shef_fifo #(.W(QUEUE_W), .Depth(16)) u_order (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(take), .in_ready_o(room), .in_data_i(sel),
      .out_valid_o(owed), .out_ready_i(b_valid_i && b_i.id == '0), .out_data_o(first), .count_o()
  );
  assign owed_o = owed;
  assign told_o = QUEUES'(b_valid_i && owed && b_i.id == '0) << first;
  assign ok_o = b_i.resp == AXI_OKAY;
  assign bad_o = b_valid_i && !(owed && b_i.id == '0);
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
