// shef_f2_pcim_main against any core and any shell, with a path to the core that goes and comes:
// offers stay until they are taken. Data leave only after the AW of their burst was taken, and then
// in every cycle: W never waits for the core. An AW is offered only when the data of its burst are
// all there, also if the core is gone a cycle later. Promised beats are sent, each once and in order (one
// symbolic beat, by its data's lowest bits), and nothing else; a beat without a promise is dropped
// with the path. Without the path responses are taken at once. Idle means that the shell owes
// nothing and is owed nothing, and stays while there is no path.
`default_nettype none
module f2_pcim
  import shef_pkg::*;
(
    input wire clk_i,
    input wire rst_ni,
    input wire up_i,
    input wire axi_ax_t aw_i,
    input wire aw_valid_i,
    input wire axi_w_t w_i,
    input wire w_valid_i,
    input wire axi_ax_t ar_i,
    input wire ar_valid_i,
    input wire b_ready_i,
    input wire r_ready_i,
    input wire axi_rsp_t rsp
);
  logic idle, aw_ready, w_ready, ar_ready;
  axi_req_t req;
  shef_f2_pcim_main #(.Beats(4)) dut (
      .clk_i, .rst_ni, .up_i, .idle_o(idle), .aw_i, .aw_valid_i, .aw_ready_o(aw_ready), .w_i,
      .w_valid_i, .w_ready_o(w_ready), .ar_i, .ar_valid_i, .ar_ready_o(ar_ready), .b_ready_i,
      .r_ready_i, .pcim_req_o(req), .pcim_rsp_i(rsp)
  );

  logic init = 1'b0, past = 1'b0;
  logic aw_q, w_q, ar_q, rest_q;
  axi_req_t req_q;
  logic [3:0] owed;         // beats of bursts whose AW was taken
  logic [3:0] promised;     // and of the one that is offered
  logic [3:0] stored;       // beats taken and not sent
  logic [2:0] writes, reads;
  logic [1:0] gap;          // cycles in which W was owed and not offered
  // One beat: its place in the stream of the beats that are inside.
  logic marked;
  logic [3:0] ahead;
  logic mark_bit;
  (* anyseq *) logic pick;
  wire take = w_valid_i && w_ready;
  wire aw_sent = req.aw_valid && rsp.aw_ready;
  wire ar_sent = req.ar_valid && rsp.ar_ready;
  wire w_sent = req.w_valid && rsp.w_ready;
  wire b_end = rsp.b_valid && req.b_ready;
  wire r_end = rsp.r_valid && req.r_ready && rsp.r.last;
  wire aw_new = aw_valid_i && aw_ready;

  always_comb begin
    assume (aw_i.len <= 8'd1);
    // The shell responds to bursts; the core has a few of them open.
    if (init && rst_ni) begin
      if (rsp.b_valid) assume (writes != '0);
      if (rsp.r_valid) assume (reads != '0);
      if (writes >= 3'd5) assume (!rsp.aw_ready);
      if (reads >= 3'd5) assume (!rsp.ar_ready);
    end
  end

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    past <= init && rst_ni;
    if (!init) assume (!rst_ni);
    aw_q <= rst_ni && req.aw_valid && !rsp.aw_ready;
    w_q <= rst_ni && req.w_valid && !rsp.w_ready;
    ar_q <= rst_ni && req.ar_valid && !rsp.ar_ready;
    req_q <= req;
    rest_q <= rst_ni && idle && !up_i;
    if (!rst_ni) begin
      owed <= '0;
      promised <= '0;
      stored <= '0;
      writes <= '0;
      reads <= '0;
      gap <= '0;
      marked <= 1'b0;
      ahead <= '0;
      mark_bit <= 1'b0;
    end else begin
      owed <= owed + (aw_sent ? 4'(req.aw.len) + 4'd1 : '0) - 4'(w_sent);
      promised <= promised + (aw_new ? 4'(aw_i.len) + 4'd1 : '0) - 4'(w_sent);
      if (!up_i) stored <= promised - 4'(w_sent);
      else stored <= stored + 4'(take) - 4'(w_sent);
      writes <= writes + 3'(aw_sent) - 3'(b_end);
      reads <= reads + 3'(ar_sent) - 3'(r_end);
      gap <= owed != '0 && !req.w_valid ? gap + 2'(gap != '1) : '0;
      if (!marked && take && pick) begin
        marked <= 1'b1;
        mark_bit <= w_i.data[0];
        ahead <= stored - 4'(w_sent);
      end else if (marked) begin
        if (!up_i && ahead >= promised) marked <= 1'b0;
        else if (w_sent && ahead == '0) marked <= 1'b0;
        else ahead <= ahead - 4'(w_sent);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (past && rst_ni) begin
      if (aw_q) a_aw_stays : assert (req.aw_valid && req.aw == req_q.aw);
      if (w_q) a_w_stays : assert (req.w_valid && req.w == req_q.w);
      if (ar_q) a_ar_stays : assert (req.ar_valid && req.ar == req_q.ar);
      if (req.w_valid) a_after_aw : assert (owed != '0);
      a_no_gap : assert (gap <= 2'd1);
      if (gap != '0) inv_gap : assert (req.w_valid);
      a_whole : assert (stored >= promised);
      if (w_sent && marked && ahead == '0) a_data : assert (req.w.data[0] == mark_bit);
      if (!up_i) a_taken : assert (req.b_ready && req.r_ready);
      if (idle) a_idle : assert (owed == '0 && promised == '0 && writes == '0 && reads == '0 &&
          !req.aw_valid && !req.ar_valid && !req.w_valid);
      if (rest_q) a_stays_idle : assert (idle);
      // How the ghosts follow the pointers.
      inv_owed : assert (owed == 4'(3'(dut.open_q - dut.sent_q)) + 4'(dut.out_valid_q));
      inv_promised : assert (promised == 4'(3'(dut.promise_q - dut.sent_q)) + 4'(dut.out_valid_q));
      inv_inside : assert (stored == 4'(3'(dut.fill_q - dut.sent_q)) + 4'(dut.out_valid_q));
      inv_room : assert (3'(dut.fill_q - dut.sent_q) <= 3'd4);
      inv_order : assert (3'(dut.open_q - dut.sent_q) <= 3'(dut.promise_q - dut.sent_q) &&
          3'(dut.promise_q - dut.sent_q) <= 3'(dut.fill_q - dut.sent_q));
      inv_offer : assert (3'(dut.promise_q - dut.open_q) ==
          (dut.aw_valid_q ? 3'(dut.aw_q.len) + 3'd1 : 3'd0));
      if (dut.aw_valid_q) inv_len : assert (dut.aw_q.len <= 8'd1);
      inv_counts : assert (8'(writes) == dut.writes_q && 8'(reads) == dut.reads_q);
      inv_few : assert (writes <= 3'd5 && reads <= 3'd5);
      if (marked) begin
        inv_before : assert (ahead < stored);
        if (ahead == '0 && dut.out_valid_q) inv_out : assert (dut.out_q.data[0] == mark_bit);
        else inv_mem : assert (dut.beat_q[2'(dut.sent_q[1:0] + 2'(ahead) - 2'(dut.out_valid_q))].data[0]
            == mark_bit);
      end
    end
    if (past && rst_ni) begin
      c_burst : cover (w_sent && req.w.last && marked);
      c_dropped : cover (!up_i && stored > promised);
      c_after : cover (!up_i && w_sent);
    end
  end
endmodule
`default_nettype wire
