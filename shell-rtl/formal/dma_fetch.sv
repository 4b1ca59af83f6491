// shef_dma_fetch against a memory that responds with anything at any time: AR follows the handshake
// rules and carries the accepted request, under its queue's number, the lowest queue first. A beat
// is delivered to the queue that requested it, never more than requested, with its error and the
// last one marked, or is reported as bad. A descriptor is well-formed as the table of dma-rings.md
// defines. A response is owed while one is awaited. Assumed: a queue requests within one page, 1 ..
// 16 beats, and not while its last burst is outstanding (shef_dma_work waits).
`default_nettype none
module dma_fetch
  import shef_pkg::*;
  import shef_dma_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire [3:0]     req_valid_i,
    input wire fetch_t   req0_i,
    input wire fetch_t   req1_i,
    input wire fetch_t   req2_i,
    input wire fetch_t   req3_i,
    input wire           ar_ready_i,
    input wire axi_r_t   r_i,
    input wire           r_valid_i
);
  fetch_t [3:0] req;
  logic [3:0] req_ready, beat_valid;
  axi_ax_t ar;
  desc_t desc;
  logic ar_valid, error, last, owed, bad;
  assign req = {req3_i, req2_i, req1_i, req0_i};
  shef_dma_fetch dut (
      .clk_i, .rst_ni, .req_valid_i, .req_ready_o(req_ready), .req_i(req), .ar_o(ar),
      .ar_valid_o(ar_valid), .ar_ready_i, .r_i, .r_valid_i,
      .beat_valid_o(beat_valid), .desc_o(desc), .error_o(error), .last_o(last), .owed_o(owed),
      .bad_o(bad)
  );
  axi_address u_ar (.clk_i, .rst_ni, .valid_i(ar_valid), .ready_i(ar_ready_i), .ax_i(ar));

  logic init = 1'b0;
  logic [3:0] fire;
  logic [4:0] left[4];           // beats that the queue awaits
  logic came, new_ar;            // in the last cycle: a beat, a request
  axi_r_t r;
  logic [1:0] asks;              // which queue requests
  fetch_t asked;
  assign fire = req_valid_i & req_ready;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    came <= rst_ni && r_valid_i;
    if (r_valid_i) r <= r_i;
    new_ar <= rst_ni && fire != '0;
    for (int q = 0; q < 4; q++) begin
      if (fire[q]) begin
        asks <= 2'(q);
        asked <= req[q];
      end
      if (!rst_ni) left[q] <= '0;
      else if (fire[q]) left[q] <= req[q].count;
      else left[q] <= left[q] - 5'(beat_valid[q]);
    end
  end
  for (genvar q = 0; q < 4; q++) begin : g_env
    always_comb begin
      if (req_valid_i[q]) assume (left[q] == '0);
      assume (req[q].count != '0 && req[q].count <= 5'd16 &&
          {1'b0, req[q].line[5:0]} + {2'd0, req[q].count} <= 7'd64);
    end
  end

  // a descriptor as in the table
  logic formed, good;
  assign formed = (r.data[7:0] == 8'd1 || r.data[7:0] == 8'd2 || r.data[7:0] == 8'd3) &&
      (r.data[15:8] == 8'd0 || r.data[15:8] == 8'd1) &&
      r.data[31:16] == '0 && (r.data[223:222] == '0 || r.data[223:192] == 32'h4000_0000) &&
      r.data[511:224] == '0;
  assign good = came && r.id < 8'd4 && left[r.id[1:0]] != '0 && r.last == (left[r.id[1:0]] == 5'd1);
  always_comb begin
    if (init && rst_ni) begin
      // requests
      for (int q = 0; q < 4; q++)
        if (req_ready[q]) assert (req_valid_i[q] && (req_valid_i & ((4'd1 << q) - 4'd1)) == '0);
      if (req_valid_i != '0 && (!ar_valid || ar_ready_i)) assert (fire != '0);
      if (ar_valid) assert (ar.size == AXI_SIZE_64 && ar.addr[5:0] == '0 && ar.id < 8'd4);
      if (new_ar) assert (ar_valid && ar.id == {6'd0, asks} && ar.addr == {asked.line, 6'd0} &&
          ar.len == {3'd0, asked.count} - 8'd1);
      // beats
      assert (bad == (came && !good));
      assert (beat_valid == (good ? 4'd1 << r.id[1:0] : 4'd0));
      if (good) begin
        assert (error == (r.resp != AXI_OKAY) && last == (left[r.id[1:0]] == 5'd1));
        assert (desc.ok == formed && desc.chain == r.data[8] && desc.tag == r.data[63:32] &&
            desc.host == r.data[127:64] && desc.card == r.data[191:128]);
        if (formed) assert (desc.op == r.data[1:0] && {1'b0, desc.bytes} == r.data[223:192]);
      end
      assert (owed == (left[0] != '0 || left[1] != '0 || left[2] != '0 || left[3] != '0));
      // supporting invariants
      assert (dut.r_valid_q == came && (!came || dut.r_q == r));
      for (int q = 0; q < 4; q++) assert (dut.owed_q[q] == left[q] && left[q] <= 5'd16);
    end
    cover (init && rst_ni && left[0] == 5'd2 && left[3] == 5'd1 && good && r.id == 8'd3 && last);
    cover (init && rst_ni && good && error && !last && fire[1]);
    // RLAST in the wrong place
    cover (init && rst_ni && bad && r.id < 8'd4 && left[r.id[1:0]] != '0);
    cover (init && rst_ni && bad && r.id == 8'd6 && left[2] != '0);
    cover (init && rst_ni && good && desc.ok && desc.bytes == 31'h4000_0000 && left[2] == 5'd16);
    cover (init && rst_ni && req_valid_i == 4'b1100 && fire == 4'b0100 && ar_valid);
  end
endmodule
`default_nettype wire
