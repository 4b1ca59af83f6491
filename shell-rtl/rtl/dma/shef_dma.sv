// DMA engine: takes descriptors from rings in host memory, moves bytes between host and card
// memory, writes completions and raises interrupts (docs/reference/dma-rings.md).
//
// The engine sits below the Shield. It reaches host memory and the memory ports, which carry only
// ciphertext and tags, and neither keys nor plaintext. It is not trusted: results open only under a
// sealed statement.
//
// ctl is an AXI4-Lite slave (page 0xB0 of the control window), host an AXI4 master to host memory,
// mem one to card memory; addresses in card memory are below CardBytes. Both directions run at
// once, a beat a cycle each, for different queues; a queue with a lower number goes first, one page
// at a time. irq: a vector (valid/ready, stable).
// host follows the rules of AWS F2: whole beats of 64 bytes, INCR, at most 64 beats inside a page,
// contiguous strobes, AWADDR that of the first byte, one read for each of its 20 ids, R and B
// always accepted, W available before AW. mem: at most 8 beats inside 512 bytes, whole beats, R and
// B always accepted.
// A response of host with DECERR: not reached; a read with SLVERR: poisoned data. A port that owes
// a response or does not accept a request for TimeoutCycles, or breaks the protocol, is not used
// again until reset: all queues have failed, and no queue shows that it is off.
// wipe_i (level) turns all queues off and zeroes their registers; wiped_o rises when nothing is in
// flight, or nothing can be.
`default_nettype none
module shef_dma
  import shef_pkg::*;
  import shef_dma_pkg::*;
#(
    parameter logic [63:0] CardBytes = 64'h4_0000_0000,
    parameter int unsigned TimeoutCycles = 1 << 20
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          wipe_i,
    output logic         wiped_o,
    input  wire axil_req_t ctl_req_i,
    output axil_rsp_t      ctl_rsp_o,

    output axi_req_t     host_req_o,
    input  wire axi_rsp_t host_rsp_i,
    output axi_req_t     mem_req_o,
    input  wire axi_rsp_t mem_rsp_i,

    output logic         irq_valid_o,
    output logic [15:0]  irq_vector_o,
    input  wire          irq_ready_i
);
  // ---- registers ----
  logic write, dead_q;
  logic [QUEUE_W-1:0] write_queue, read_queue;
  logic [5:0] write_reg, read_reg;
  logic [31:0] write_data;
  logic [QUEUES-1:0][31:0] data;

  shef_dma_ctl u_ctl (
      .clk_i,
      .rst_ni,
      .req_i(ctl_req_i),
      .rsp_o(ctl_rsp_o),
      .write_o(write),
      .write_queue_o(write_queue),
      .write_reg_o(write_reg),
      .write_data_o(write_data),
      .read_queue_o(read_queue),
      .read_reg_o(read_reg),
      .read_data_i(data[read_queue])
  );

  // ---- queues ----
  logic [QUEUES-1:0] quiet, fetch_valid, fetch_ready, desc_valid, cpl_valid, cpl_ready, told,
      irq_valid, irq_ready;
  fetch_t [QUEUES-1:0] fetch;
  desc_t desc;
  logic desc_error, desc_last, told_ok;
  cpl_t [QUEUES-1:0] cpl;
  logic [QUEUES-1:0][15:0] irq_vector;
  logic [1:0][QUEUES-1:0] piece_valid, piece_ready;  // [0] to the card, [1] to the host
  piece_t [QUEUES-1:0] pieces;
  logic [1:0] move_valid, move_ready, done_valid;
  piece_t [1:0] move;
  done_t [1:0] done;

  for (genvar q = 0; q < int'(QUEUES); q++) begin : g_queue
    logic [1:0] offers, ends;
    assign {piece_valid[1][q], piece_valid[0][q]} = offers;
    assign ends[0] = done_valid[0] && done[0].q == QUEUE_W'(q);
    assign ends[1] = done_valid[1] && done[1].q == QUEUE_W'(q);
    shef_dma_queue #(
        .Queue(q),
        .CardBytes(CardBytes)
    ) u_queue (
        .clk_i,
        .rst_ni,
        .clear_i(wipe_i),
        .dead_i(dead_q),
        .quiet_o(quiet[q]),
        .write_i(write && write_queue == QUEUE_W'(q)),
        .write_reg_i(write_reg),
        .write_data_i(write_data),
        .read_i(read_reg),
        .data_o(data[q]),
        .fetch_valid_o(fetch_valid[q]),
        .fetch_ready_i(fetch_ready[q]),
        .fetch_o(fetch[q]),
        .beat_valid_i(desc_valid[q]),
        .beat_i(desc),
        .beat_error_i(desc_error),
        .beat_last_i(desc_last),
        .piece_valid_o(offers),
        .piece_ready_i({piece_ready[1][q], piece_ready[0][q]}),
        .piece_o(pieces[q]),
        // all the traffic of a queue goes one way
        .done_valid_i(ends != '0),
        .done_last_i(ends[1] ? done[1].last : done[0].last),
        .done_status_i(ends[1] ? done[1].status : done[0].status),
        .cpl_valid_o(cpl_valid[q]),
        .cpl_ready_i(cpl_ready[q]),
        .cpl_o(cpl[q]),
        .told_i(told[q]),
        .told_ok_i(told_ok),
        .irq_valid_o(irq_valid[q]),
        .irq_ready_i(irq_ready[q]),
        .irq_vector_o(irq_vector[q])
    );
  end
  assign wiped_o = wipe_i && ((&quiet) || dead_q);

  // The lowest queue first.
  always_comb begin
    for (int unsigned d = 0; d < 2; d++) begin
      move_valid[d] = piece_valid[d] != '0;
      move[d] = pieces[0];
      piece_ready[d] = '0;
      for (int unsigned q = QUEUES; q > 0; q--) begin
        if (piece_valid[d][q-1]) begin
          move[d] = pieces[q-1];
          piece_ready[d] = QUEUES'(move_ready[d]) << (q - 1);
        end
      end
    end
  end

  // ---- interrupts ----
  logic irq_q;
  logic [15:0] vector_q;
  assign irq_valid_o = irq_q;
  assign irq_vector_o = vector_q;
  always_comb begin
    irq_ready = '0;
    for (int unsigned q = QUEUES; q > 0; q--)
      if (irq_valid[q-1]) irq_ready = QUEUES'(!irq_q) << (q - 1);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      irq_q <= 1'b0;
      vector_q <= '0;
    end else begin
      if (irq_ready_i) irq_q <= 1'b0;
      for (int unsigned q = 0; q < QUEUES; q++) begin
        if (irq_ready[q]) begin
          irq_q <= 1'b1;
          vector_q <= irq_vector[q];
        end
      end
    end
  end

  // ---- host port: [0] movers, [1] descriptors and completions ----
  axi_req_t [1:0] req;
  axi_rsp_t [1:0] rsp;
  logic [1:0] bad_move, owed_r, owed_b;
  logic bad_fetch, bad_post, owed_fetch, owed_post;

  shef_port_mux #(
      .NSets(2),
      .SetNo({2'd1, 2'd0})
  ) u_host (
      .clk_i,
      .rst_ni,
      .set_req_i(req),
      .set_rsp_o(rsp),
      .mem_req_o(host_req_o),
      .mem_rsp_i(host_rsp_i)
  );
  for (genvar i = 0; i < 2; i++) begin : g_host
    assign {req[i].b_ready, req[i].r_ready} = '1;
  end
  assign {mem_req_o.b_ready, mem_req_o.r_ready} = '1;

  // ---- movers ----
  shef_dma_mover #(
      .ReadBeats(64),
      .ReadSlots(16),
      .WriteBeats(8),
      .WriteDepth(32),
      .WholeBeats(1'b1),
      .ReadSlaveError(ST_POISONED),
      .ReadOtherError(ST_HOST),
      .WriteError(ST_CARD)
  ) u_to_card (
      .clk_i,
      .rst_ni,
      .piece_valid_i(move_valid[0]),
      .piece_ready_o(move_ready[0]),
      .piece_i(move[0]),
      .done_valid_o(done_valid[0]),
      .done_o(done[0]),
      .ar_o(req[0].ar),
      .ar_valid_o(req[0].ar_valid),
      .ar_ready_i(rsp[0].ar_ready),
      .r_i(rsp[0].r),
      .r_valid_i(rsp[0].r_valid),
      .aw_o(mem_req_o.aw),
      .aw_valid_o(mem_req_o.aw_valid),
      .aw_ready_i(mem_rsp_i.aw_ready),
      .w_o(mem_req_o.w),
      .w_valid_o(mem_req_o.w_valid),
      .w_ready_i(mem_rsp_i.w_ready),
      .b_i(mem_rsp_i.b),
      .b_valid_i(mem_rsp_i.b_valid),
      .owed_r_o(owed_r[0]),
      .owed_b_o(owed_b[0]),
      .bad_o(bad_move[0])
  );
  shef_dma_mover #(
      .ReadBeats(8),
      .ReadSlots(32),
      .WriteBeats(64),
      .WriteDepth(128),
      .WholeBeats(1'b0),
      .ReadSlaveError(ST_CARD),
      .ReadOtherError(ST_CARD),
      .WriteError(ST_HOST)
  ) u_to_host (
      .clk_i,
      .rst_ni,
      .piece_valid_i(move_valid[1]),
      .piece_ready_o(move_ready[1]),
      .piece_i(move[1]),
      .done_valid_o(done_valid[1]),
      .done_o(done[1]),
      .ar_o(mem_req_o.ar),
      .ar_valid_o(mem_req_o.ar_valid),
      .ar_ready_i(mem_rsp_i.ar_ready),
      .r_i(mem_rsp_i.r),
      .r_valid_i(mem_rsp_i.r_valid),
      .aw_o(req[0].aw),
      .aw_valid_o(req[0].aw_valid),
      .aw_ready_i(rsp[0].aw_ready),
      .w_o(req[0].w),
      .w_valid_o(req[0].w_valid),
      .w_ready_i(rsp[0].w_ready),
      .b_i(rsp[0].b),
      .b_valid_i(rsp[0].b_valid),
      .owed_r_o(owed_r[1]),
      .owed_b_o(owed_b[1]),
      .bad_o(bad_move[1])
  );

  // ---- descriptors and completions ----
  shef_dma_fetch u_fetch (
      .clk_i,
      .rst_ni,
      .req_valid_i(fetch_valid),
      .req_ready_o(fetch_ready),
      .req_i(fetch),
      .ar_o(req[1].ar),
      .ar_valid_o(req[1].ar_valid),
      .ar_ready_i(rsp[1].ar_ready),
      .r_i(rsp[1].r),
      .r_valid_i(rsp[1].r_valid),
      .beat_valid_o(desc_valid),
      .desc_o(desc),
      .error_o(desc_error),
      .last_o(desc_last),
      .owed_o(owed_fetch),
      .bad_o(bad_fetch)
  );
  shef_dma_post u_post (
      .clk_i,
      .rst_ni,
      .cpl_valid_i(cpl_valid),
      .cpl_ready_o(cpl_ready),
      .cpl_i(cpl),
      .aw_o(req[1].aw),
      .aw_valid_o(req[1].aw_valid),
      .aw_ready_i(rsp[1].aw_ready),
      .w_o(req[1].w),
      .w_valid_o(req[1].w_valid),
      .w_ready_i(rsp[1].w_ready),
      .b_i(rsp[1].b),
      .b_valid_i(rsp[1].b_valid),
      .told_o(told),
      .ok_o(told_ok),
      .owed_o(owed_post),
      .bad_o(bad_post)
  );

  // ---- outstanding work of a port ----
  logic [9:0] waits, progress, late;
  assign waits = {
    host_req_o.ar_valid, owed_r[0] || owed_fetch,
    host_req_o.aw_valid, host_req_o.w_valid, owed_b[1] || owed_post,
    mem_req_o.ar_valid, owed_r[1], mem_req_o.aw_valid, mem_req_o.w_valid, owed_b[0]
  };
  assign progress = {
    host_rsp_i.ar_ready, host_rsp_i.r_valid,
    host_rsp_i.aw_ready, host_rsp_i.w_ready, host_rsp_i.b_valid,
    mem_rsp_i.ar_ready, mem_rsp_i.r_valid,
    mem_rsp_i.aw_ready, mem_rsp_i.w_ready, mem_rsp_i.b_valid
  };
  for (genvar i = 0; i < 10; i++) begin : g_watch
    shef_watch #(.Cycles(TimeoutCycles)) u_watch (
        .clk_i, .rst_ni, .wait_i(waits[i]), .progress_i(progress[i]), .late_o(late[i])
    );
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) dead_q <= 1'b0;
    else if (late != '0 || bad_move != '0 || bad_fetch || bad_post) dead_q <= 1'b1;
  end
endmodule
`default_nettype wire
