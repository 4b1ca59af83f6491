// shef_resp, the response gate. The line memory may return anything, but while the requested line
// is not readable (not verified, or nothing was requested) its data carry a taint: no tainted bit
// ever reaches R, whatever the segments, the stops and the wipes. A response other than OKAY is all
// zeros. R follows the handshake rules; only a wipe may change a waiting response. The beats that
// leave never outnumber those of the segments, and without a segment no beat leaves. Two lines, two
// segments.
`default_nettype none
module resp
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire              clk_i,
    input wire              rst_ni,
    input wire              stop_i,
    input wire              clr_i,
    input wire [ZERO_W-1:0] zero_addr_i,
    input wire              seg_valid_i,
    input wire lseg_t       seg_i,
    input wire [1:0]        readable_i,
    input wire              get_ready_i,
    input wire              get_all_i,
    input wire              get_none_i,
    input wire [511:0]      get_data_i,
    input wire [63:0]       get_mark_i,
    input wire              r_ready_i
);
  logic room, get_valid, done, waits, idle, r_valid;
  line_t get_line, done_line;
  logic [5:0] get_beat;
  axi_r_t r;
  logic clr_q, good_q;          // the last request was for a readable line
  shef_resp #(.NLines(2), .Depth(2)) dut (
      .clk_i, .rst_ni, .stop_i, .clr_i, .zero_addr_i, .seg_valid_i(seg_valid_i && room),
      .room_o(room), .seg_i, .readable_i,
      .get_valid_o(get_valid), .get_ready_i, .get_line_o(get_line), .get_beat_o(get_beat),
      .get_all_i, .get_none_i, .get_data_i, .get_mark_i,
      .done_o(done), .done_line_o(done_line), .waits_o(waits), .idle_o(idle), .r_o(r),
      .r_valid_o(r_valid), .r_ready_i
  );
  // two bits of the data: each bit passes the same gate and the same memory
  axi_channel #(.W(13)) u_r (
      .clk_i, .rst_ni, .valid_i(r_valid), .ready_i(r_ready_i),
      .data_i({r.id, r.resp, r.last, r.data[0], r.data[504]}), .break_i(clr_q)
  );

  logic init = 1'b0;
  logic [10:0] owed;            // beats of segments that have not left
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (seg_i.line < 6'd2 && seg_i.beats != '0 && seg_i.beats <= 9'd256);
    clr_q <= clr_i;
    good_q <= rst_ni && get_valid && get_ready_i && readable_i[get_line[0]];
    if (!rst_ni) owed <= '0;
    else owed <= owed + ((seg_valid_i && room) ? 11'(seg_i.beats) : '0) - 11'(r_valid && r_ready_i);
  end
  // the taint: bit 0 of each unreadable byte
  always_comb if (!good_q) assume (get_data_i[0] && get_data_i[504]);
  always_comb if (good_q) assume (!get_data_i[0] && !get_data_i[504]);

  // beats of the waiting segments
  logic [10:0] waiting;
  lseg_t s0, s1;
  assign s0 = dut.u_queue.mem_q[dut.u_queue.rp_q];
  assign s1 = dut.u_queue.mem_q[!dut.u_queue.rp_q];
  assign waiting = ((dut.count != '0) ? 11'(s0.beats) : '0) +
      ((dut.count == 2'd2) ? 11'(s1.beats) : '0) - 11'(dut.beat_q);
  always_comb begin
    if (init && rst_ni) begin
      // the gate
      if (r_valid) assert (!r.data[0] && !r.data[504]);
      if (r_valid && r.resp != AXI_OKAY) assert (r.data == '0 && r.resp == AXI_SLVERR);
      if (get_valid) assert (readable_i[get_line[0]] && !stop_i);
      // a wipe drops what waits
      if (r_valid && clr_q) assert (r.data == '0 && r.resp == AXI_SLVERR);
      // no response without a request
      if (r_valid) assert (owed != '0);
      if (owed == '0) assert (idle);
      // supporting invariants
      assert (dut.count <= 2'd2 && 1'(dut.u_queue.wp_q - dut.u_queue.rp_q) == dut.count[0]);
      if (dut.count != '0) assert (s0.line < 6'd2 && s0.beats != '0 && s0.beats <= 9'd256);
      if (dut.count == 2'd2) assert (s1.line < 6'd2 && s1.beats != '0 && s1.beats <= 9'd256);
      if (dut.count == '0) assert (dut.beat_q == '0);
      else assert (dut.beat_q < s0.beats);
      assert (4'(dut.out_count) + 4'(dut.stage_q) <= 4'd4);
      assert (2'(dut.u_out_ctl.wp_q - dut.u_out_ctl.rp_q) == dut.out_count[1:0] &&
          dut.u_out_ctl.wp_q == dut.wp_q && dut.u_out_ctl.rp_q == dut.rp_q);
      assert (owed == waiting + 11'(dut.stage_q) + 11'(dut.out_count));
      assert (dut.poison_q <= dut.count);
      if (dut.stage_q && !dut.stage_err_q) assert (good_q);
      assert (dut.wiped_count_q <= dut.out_count);
      for (int i = 0; i < 4; i++)
        if (3'(i) < dut.out_count && 3'(i) >= dut.wiped_count_q)
          assert (!dut.out_mem_q[2'(dut.rp_q + 2'(i))][0] &&
              !dut.out_mem_q[2'(dut.rp_q + 2'(i))][504]);
    end
    cover (init && rst_ni && r_valid && r.resp == AXI_OKAY && r.data != '0 && r.last && r_ready_i);
    cover (init && rst_ni && r_valid && r.resp == AXI_SLVERR && dut.wiped_count_q != '0);
    cover (init && rst_ni && done && dut.count == 2'd2);
  end
endmodule
`default_nettype wire
