// shef_acc_gate: no W beat passes unless a burst owes it. While the accelerator does not run, the
// gate issues no request, sends owed beats with zeros and no strobes, and accepts every response.
// It is idle if and only if nothing is owed. Assumed: the Shield responds only to requests it has
// accepted, to a write after its last beat, and has room for at most 1,000 bursts each way.
`default_nettype none
module acc_gate
  import shef_pkg::*;
(
    input wire         clk_i,
    input wire         rst_ni,
    input wire         run_i,
    input wire [7:0]   aw_len_i,
    input wire         aw_valid_i,
    input wire axi_w_t w_i,
    input wire         w_valid_i,
    input wire         b_ready_i,
    input wire         ar_valid_i,
    input wire         r_ready_i,
    input wire         aw_ready_i,
    input wire         w_ready_i,
    input wire         b_valid_i,
    input wire         ar_ready_i,
    input wire         r_valid_i,
    input wire         r_last_i
);
  logic own_aw_ready, own_w_ready, own_ar_ready, aw_valid, w_valid, ar_valid, b_ready, r_ready,
      idle;
  axi_w_t w;
  shef_acc_gate dut (
      .clk_i, .rst_ni, .run_i, .aw_len_i, .aw_valid_i, .aw_ready_o(own_aw_ready), .w_i, .w_valid_i,
      .w_ready_o(own_w_ready), .b_ready_i,
      .ar_valid_i, .ar_ready_o(own_ar_ready), .r_ready_i, .aw_valid_o(aw_valid), .aw_ready_i,
      .w_o(w), .w_valid_o(w_valid), .w_ready_i,
      .b_valid_i, .b_ready_o(b_ready), .ar_valid_o(ar_valid), .ar_ready_i, .r_valid_i, .r_last_i,
      .r_ready_o(r_ready), .idle_o(idle)
  );

  logic init = 1'b0;
  logic [16:0] owed;              // wider than the counters of the block
  logic [10:0] writes, reads;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (!b_valid_i || writes != '0);
    assume (!r_valid_i || reads != '0);
    assume (writes <= 11'd1000 || !aw_ready_i);
    assume (reads <= 11'd1000 || !ar_ready_i);
    if (!rst_ni) begin
      owed <= '0;
      writes <= '0;
      reads <= '0;
    end else begin
      owed <= owed + ((aw_valid && aw_ready_i) ? {9'd0, aw_len_i} + 17'd1 : 17'd0) -
          17'(w_valid && w_ready_i);
      writes <= writes + 11'(aw_valid && aw_ready_i) - 11'(b_valid_i && b_ready);
      reads <= reads + 11'(ar_valid && ar_ready_i) - 11'(r_valid_i && r_ready && r_last_i);
    end
  end

  always_comb begin
    if (init && rst_ni) begin
      if (w_valid) assert (owed != '0);
      if (own_w_ready && w_valid_i) assert (w_valid && w_ready_i && w == w_i);
      if (own_aw_ready && aw_valid_i) assert (aw_valid && aw_ready_i);
      if (own_ar_ready && ar_valid_i) assert (ar_valid && ar_ready_i);
      if (aw_valid && aw_ready_i) assert (own_aw_ready);
      if (ar_valid && ar_ready_i) assert (own_ar_ready);
      if (!run_i) begin
        assert (!aw_valid && !ar_valid && b_ready && r_ready && !own_w_ready && !own_aw_ready &&
            !own_ar_ready);
        assert (w_valid == (owed != '0) && w.strb == '0 && w.data == '0);
      end
      if (run_i && w_valid_i && owed != '0) assert (w_valid);
      assert (idle == (owed == '0 && writes == '0 && reads == '0));
      // supporting invariants
      assert (owed <= 17'h8100 && dut.beats_q == owed[15:0] && dut.writes_q == {5'd0, writes} &&
          dut.reads_q == {5'd0, reads});
      assert (writes <= 11'd1001 && reads <= 11'd1001);
    end
    cover (init && rst_ni && !run_i && w_valid && owed == 17'd3 && w_valid_i);
    cover (init && rst_ni && run_i && w_valid_i && !w_valid && writes != '0);
    cover (init && rst_ni && !run_i && !idle && owed == '0);
  end
endmodule
`default_nettype wire
