// Reads descriptors for all queues, with one outstanding burst per queue, under the queue's number
// as its id.
//
// Handshake: a request of a queue (valid/ready, the lowest queue first) is a burst inside one page;
// AR as in AXI4; R is always accepted. beat_valid_o[q] is a pulse with the decoded descriptor,
// error_o a response other than OKAY, last_o the last beat. Latency two cycles from R. owed_o
// (level): a response is outstanding. bad_o (pulse): an unowed beat.
`default_nettype none
module shef_dma_fetch
  import shef_pkg::*;
  import shef_dma_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire  [QUEUES-1:0] req_valid_i,
    output logic [QUEUES-1:0] req_ready_o,
    input  wire  fetch_t [QUEUES-1:0] req_i,
    output axi_ax_t      ar_o,
    output logic         ar_valid_o,
    input  wire          ar_ready_i,
    input  wire  axi_r_t r_i,
    input  wire          r_valid_i,
    output logic [QUEUES-1:0] beat_valid_o,
    output desc_t        desc_o,
    output logic         error_o,
    output logic         last_o,
    output logic         owed_o,
    output logic         bad_o
);
  axi_ax_t ar_q;
  axi_r_t r_q;
  logic ar_valid_q, ar_free, r_valid_q, good;
  logic [QUEUES-1:0][4:0] owed_q;
  logic [QUEUE_W-1:0] q;

  assign ar_o = ar_q;
  assign ar_valid_o = ar_valid_q;
  assign ar_free = !ar_valid_q || ar_ready_i;
  assign owed_o = owed_q != '0;
  always_comb begin
    req_ready_o = '0;
    for (int unsigned i = QUEUES; i > 0; i--)
      if (req_valid_i[i-1]) req_ready_o = QUEUES'(ar_free) << (i - 1);
  end

  assign q = r_q.id[QUEUE_W-1:0];
  assign good = r_valid_q && r_q.id[AXI_ID_W-1:QUEUE_W] == '0 && owed_q[q] != '0 &&
      r_q.last == (owed_q[q] == 5'd1);
  assign bad_o = r_valid_q && !good;
  assign beat_valid_o = QUEUES'(good) << q;
  assign desc_o = decode(r_q.data);
  assign error_o = r_q.resp != AXI_OKAY;
  assign last_o = r_q.last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_q <= '0;
      ar_valid_q <= 1'b0;
      r_q <= '0;
      r_valid_q <= 1'b0;
      owed_q <= '0;
    end else begin
      r_valid_q <= r_valid_i;
      if (r_valid_i) r_q <= r_i;
      if (good) owed_q[q] <= owed_q[q] - 5'd1;
      if (ar_ready_i) ar_valid_q <= 1'b0;
      for (int unsigned i = 0; i < QUEUES; i++) begin
        if (req_ready_o[i]) begin
          ar_valid_q <= 1'b1;
          ar_q <= '{id: AXI_ID_W'(i), addr: {req_i[i].line, 6'd0},
              len: {3'd0, req_i[i].count} - 8'd1, size: AXI_SIZE_64, burst: AXI_BURST_INCR};
          owed_q[i] <= req_i[i].count;
        end
      end
    end
  end
endmodule
`default_nettype wire
