// shef_acc_gate: no W beat passes unless a burst owes it. While the accelerator does not run, the
// gate issues no request, sends owed beats with zeros and no strobes, and accepts every response.
// It is idle if and only if nothing is owed. Assumed: the Shield responds only to requests it has
// accepted, to a write after its last beat, and has room for at most 1,000 bursts each way.
`default_nettype none
module acc_gate
  import shef_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire           run_i,
    input wire axi_req_t acc_req_i,
    input wire axi_rsp_t rsp_i
);
  axi_rsp_t acc_rsp;
  axi_req_t req;
  logic idle;
  shef_acc_gate dut (
      .clk_i, .rst_ni, .run_i, .acc_req_i, .acc_rsp_o(acc_rsp), .shield_req_o(req),
      .shield_rsp_i(rsp_i), .idle_o(idle)
  );

  logic init = 1'b0;
  logic [16:0] owed;              // wider than the counters of the block
  logic [10:0] writes, reads;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (!rsp_i.b_valid || writes != '0);
    assume (!rsp_i.r_valid || reads != '0);
    assume (writes <= 11'd1000 || !rsp_i.aw_ready);
    assume (reads <= 11'd1000 || !rsp_i.ar_ready);
    if (!rst_ni) begin
      owed <= '0;
      writes <= '0;
      reads <= '0;
    end else begin
      owed <= owed +
          ((req.aw_valid && rsp_i.aw_ready) ? {9'd0, acc_req_i.aw.len} + 17'd1 : 17'd0) -
          17'(req.w_valid && rsp_i.w_ready);
      writes <= writes + 11'(req.aw_valid && rsp_i.aw_ready) - 11'(rsp_i.b_valid && req.b_ready);
      reads <= reads + 11'(req.ar_valid && rsp_i.ar_ready) -
          11'(rsp_i.r_valid && req.r_ready && rsp_i.r.last);
    end
  end

  always_comb begin
    if (init && rst_ni) begin
      if (req.w_valid) assert (owed != '0);
      if (acc_rsp.w_ready && acc_req_i.w_valid)
        assert (req.w_valid && rsp_i.w_ready && req.w == acc_req_i.w);
      if (acc_rsp.aw_ready && acc_req_i.aw_valid) assert (req.aw_valid && rsp_i.aw_ready);
      if (acc_rsp.ar_ready && acc_req_i.ar_valid) assert (req.ar_valid && rsp_i.ar_ready);
      if (req.aw_valid && rsp_i.aw_ready) assert (acc_rsp.aw_ready);
      if (req.ar_valid && rsp_i.ar_ready) assert (acc_rsp.ar_ready);
      if (!run_i) begin
        assert (!req.aw_valid && !req.ar_valid && req.b_ready && req.r_ready && !acc_rsp.w_ready &&
            !acc_rsp.aw_ready && !acc_rsp.ar_ready);
        assert (req.w_valid == (owed != '0) && req.w.strb == '0 && req.w.data == '0);
      end
      if (run_i && acc_req_i.w_valid && owed != '0) assert (req.w_valid);
      assert (req.aw == acc_req_i.aw && req.ar == acc_req_i.ar && acc_rsp.b == rsp_i.b &&
          acc_rsp.r == rsp_i.r && acc_rsp.b_valid == rsp_i.b_valid &&
          acc_rsp.r_valid == rsp_i.r_valid);
      assert (idle == (owed == '0 && writes == '0 && reads == '0));
      // supporting invariants
      assert (owed <= 17'h8100 && dut.beats_q == owed[15:0] && dut.writes_q == {5'd0, writes} &&
          dut.reads_q == {5'd0, reads});
      assert (writes <= 11'd1001 && reads <= 11'd1001);
    end
    cover (init && rst_ni && !run_i && req.w_valid && owed == 17'd3 && acc_req_i.w_valid);
    cover (init && rst_ni && run_i && acc_req_i.w_valid && !req.w_valid && writes != '0);
    cover (init && rst_ni && !run_i && !idle && owed == '0);
  end
endmodule
`default_nettype wire
