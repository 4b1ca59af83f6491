// shef_dma_post against a memory that responds with anything at any time: AW and W follow the
// handshake rules. Each accepted completion, the lowest queue first, goes out once, as one AW and
// one W, in order, its 16 bytes in place (checked by the ends of its fields), without other
// strobes. A response under the right id reports the oldest unreported completion, with its
// outcome, to its queue, and to one queue only. Any other response is bad. A response is owed while
// a completion is unreported. At most 16 are unreported, and 8 have waiting data. Tracked: a
// symbolic completion.
`default_nettype none
module dma_post
  import shef_pkg::*;
  import shef_dma_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire [3:0]     cpl_valid_i,
    input wire cpl_t     cpl0_i,
    input wire cpl_t     cpl1_i,
    input wire cpl_t     cpl2_i,
    input wire cpl_t     cpl3_i,
    input wire           mark_i,
    input wire           aw_ready_i,
    input wire           w_ready_i,
    input wire axi_b_t   b_i,
    input wire           b_valid_i
);
  cpl_t [3:0] cpl;
  logic [3:0] cpl_ready, told;
  axi_ax_t aw;
  axi_w_t w;
  logic aw_valid, w_valid, ok, owed, bad;
  assign cpl = {cpl3_i, cpl2_i, cpl1_i, cpl0_i};
  shef_dma_post dut (
      .clk_i, .rst_ni, .cpl_valid_i, .cpl_ready_o(cpl_ready), .cpl_i(cpl), .aw_o(aw),
      .aw_valid_o(aw_valid), .aw_ready_i,
      .w_o(w), .w_valid_o(w_valid), .w_ready_i, .b_i, .b_valid_i, .told_o(told), .ok_o(ok),
      .owed_o(owed), .bad_o(bad)
  );
  axi_address u_aw (.clk_i, .rst_ni, .valid_i(aw_valid), .ready_i(aw_ready_i), .ax_i(aw));
  // a few bits of the data: each bit passes the same queue
  axi_channel #(.W(69)) u_w (
      .clk_i, .rst_ni, .valid_i(w_valid), .ready_i(w_ready_i),
      .data_i({w.last, w.strb, w.data[0], w.data[127], w.data[384], w.data[511]}), .break_i(1'b0)
  );

  logic init = 1'b0;
  logic [3:0] fire;
  logic take, w_fire, answer;
  logic [1:0] q_in;
  cpl_t in;
  assign fire = cpl_valid_i & cpl_ready;
  assign take = fire != '0;
  assign w_fire = w_valid && w_ready_i;
  assign q_in = cpl_valid_i[0] ? 2'd0 : cpl_valid_i[1] ? 2'd1 : cpl_valid_i[2] ? 2'd2 : 2'd3;
  assign in = cpl[q_in];
  logic new_aw;                  // a completion was accepted in the last cycle
  logic [63:0] new_addr;
  logic [4:0] data_left, left;   // accepted: their W is not out, they are unreported
  // ---- the tracked completion ----
  logic mine, wrote, done;       // it is in the block, its W is out, it was reported
  cpl_t c;
  logic [1:0] q;
  logic [4:0] data_ahead, ahead; // those before it
  assign answer = b_valid_i && b_i.id == '0 && left != '0;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    new_aw <= rst_ni && take;
    new_addr <= in.addr;
    if (!rst_ni) begin
      data_left <= '0;
      left <= '0;
      mine <= 1'b0;
    end else begin
      data_left <= data_left + 5'(take) - 5'(w_fire);
      left <= left + 5'(take) - 5'(answer);
      if (!mine && take && mark_i) begin
        mine <= 1'b1;
        wrote <= 1'b0;
        done <= 1'b0;
        c <= in;
        q <= q_in;
        data_ahead <= data_left - 5'(w_fire);
        ahead <= left - 5'(answer);
      end else begin
        if (w_fire && !wrote) begin
          if (data_ahead == '0) wrote <= 1'b1;
          else data_ahead <= data_ahead - 5'd1;
        end
        if (answer && !done) begin
          if (ahead == '0) done <= 1'b1;
          else ahead <= ahead - 5'd1;
        end
        if (wrote && done) mine <= 1'b0;
      end
    end
  end

  logic [129:0] word;
  assign word = dut.u_data.mem_q[3'(dut.u_data.rp_q + data_ahead[2:0])];
  always_comb begin
    if (init && rst_ni) begin
      // input
      assert (cpl_ready == (take ? 4'd1 << q_in : 4'd0));
      if (cpl_valid_i != '0 && (!aw_valid || aw_ready_i) && data_left < 5'd8 && left < 5'd16)
        assert (take);
      // output
      assert (aw_valid || !new_aw);
      if (new_aw) assert (aw.addr == new_addr);
      if (aw_valid) assert (aw.id == '0 && aw.len == '0 && aw.size == AXI_SIZE_64);
      assert (w_valid == (data_left != '0) && data_left <= 5'd8);
      if (w_valid) assert (w.last);
      if (mine && !wrote && data_ahead == '0) begin
        assert (w_valid && w.strb == 64'hffff << {c.addr[5:4], 4'd0});
        for (int p = 0; p < 4; p++) if (c.addr[5:4] == 2'(p)) begin
          assert (w.data[128*p] == c.tag[0] && w.data[128*p+31] == c.tag[31] &&
              w.data[128*p+32+:16] == {13'd0, c.status});
          assert (w.data[128*p+48] == c.retired[0] && w.data[128*p+63] == c.retired[15]);
          assert (w.data[128*p+64] == c.bytes[0] && w.data[128*p+95] == c.bytes[31] &&
              w.data[128*p+96] == c.seq[0] && w.data[128*p+127] == c.seq[31]);
        end
      end
      // reports
      assert (owed == (left != '0) && left <= 5'd16);
      assert ((told != '0) == answer && (told & (told - 4'd1)) == '0);
      assert (bad == (b_valid_i && !answer));
      if (answer) assert (ok == (b_i.resp == AXI_OKAY));
      if (mine && !done && ahead == '0 && answer) assert (told == 4'd1 << q);
      // supporting invariants
      assert (5'(dut.u_data.count_q) == data_left &&
          3'(dut.u_data.wp_q - dut.u_data.rp_q) == dut.u_data.count_q[2:0]);
      assert (dut.u_order.count_q == left &&
          4'(dut.u_order.wp_q - dut.u_order.rp_q) == dut.u_order.count_q[3:0]);
      if (mine && !wrote) begin
        assert (data_ahead < data_left);
        assert ({word[129:127], word[96:95], word[64:63], word[48:31], word[0]} ==
            {c.addr[5:4], c.seq[31], c.seq[0], c.bytes[31], c.bytes[0], c.retired[15], c.retired[0],
            13'd0, c.status, c.tag[31], c.tag[0]});
      end
      if (mine && !done)
        assert (ahead < left && dut.u_order.mem_q[4'(dut.u_order.rp_q + ahead[3:0])] == q);
    end
    cover (init && rst_ni && mine && !wrote && data_ahead == '0 && w_fire && c.addr[5:4] == 2'd2 &&
        q == 2'd1 && data_left == 5'd3);
    cover (init && rst_ni && mine && !done && ahead == '0 && told == 4'd8 && !ok && left == 5'd3);
    cover (init && rst_ni && data_left == 5'd8 && !cpl_ready[0] && cpl_valid_i[0] &&
        (!aw_valid || aw_ready_i));
    cover (init && rst_ni && bad && left != '0);
    cover (init && rst_ni && bad && b_i.id == '0);
    cover (init && rst_ni && fire == 4'd4 && cpl_valid_i == 4'd12 && aw_valid);
  end
endmodule
`default_nettype wire
