// shef_f2_hbm with 2 ids of the HBM and up to 3 bursts for each, for an HBM that keeps the order
// within an id and answers what it was asked: no beat is lost, duplicated or reordered, strobes
// and parity are exact, and requests are unchanged but for their id. Bursts of one id of the core
// have one id of the HBM while they are in flight, those of different ids have different ones, and
// each answer has its id back.
`default_nettype none
module f2_hbm
  import shef_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire axi_req_t core_req_i,
    input wire           aw_ready_i,
    input wire           w_ready_i,
    input wire           b_id_i,
    input wire [1:0]     b_resp_i,
    input wire           b_valid_i,
    input wire           ar_ready_i,
    input wire           r_id_i,
    input wire [255:0]   r_data_i,
    input wire [1:0]     r_resp_i,
    input wire           r_last_i,
    input wire           r_valid_i
);
  axi_rsp_t core;
  logic aw_id, ar_id;
  logic [33:0] aw_addr, ar_addr;
  logic [3:0] aw_len, ar_len;
  logic aw_valid, ar_valid, w_last, w_valid, b_ready, r_ready;
  logic [255:0] w_data;
  logic [31:0] w_strb, w_parity;
  shef_f2_hbm #(.NarrowBits(1), .CountBits(2)) dut (
      .clk_i, .rst_ni, .core_req_i, .core_rsp_o(core),
      .hbm_aw_id_o(aw_id), .hbm_aw_addr_o(aw_addr), .hbm_aw_len_o(aw_len),
      .hbm_aw_valid_o(aw_valid), .hbm_aw_ready_i(aw_ready_i),
      .hbm_w_data_o(w_data), .hbm_w_strb_o(w_strb), .hbm_w_parity_o(w_parity),
      .hbm_w_last_o(w_last), .hbm_w_valid_o(w_valid), .hbm_w_ready_i(w_ready_i),
      .hbm_b_id_i(b_id_i), .hbm_b_resp_i(b_resp_i), .hbm_b_valid_i(b_valid_i),
      .hbm_b_ready_o(b_ready),
      .hbm_ar_id_o(ar_id), .hbm_ar_addr_o(ar_addr), .hbm_ar_len_o(ar_len),
      .hbm_ar_valid_o(ar_valid), .hbm_ar_ready_i(ar_ready_i),
      .hbm_r_id_i(r_id_i), .hbm_r_data_i(r_data_i), .hbm_r_resp_i(r_resp_i),
      .hbm_r_last_i(r_last_i), .hbm_r_valid_i(r_valid_i), .hbm_r_ready_o(r_ready)
  );
  // the core, and the HBM's answers, keep the handshake rules
  axi_channel #(.W(24), .Assume(1'b1)) u_caw (.clk_i, .rst_ni, .valid_i(core_req_i.aw_valid),
      .ready_i(core.aw_ready), .data_i({core_req_i.aw.id, core_req_i.aw.len,
      core_req_i.aw.addr[33:30], core_req_i.aw.addr[9:6]}), .break_i(1'b0));
  axi_channel #(.W(24), .Assume(1'b1)) u_car (.clk_i, .rst_ni, .valid_i(core_req_i.ar_valid),
      .ready_i(core.ar_ready), .data_i({core_req_i.ar.id, core_req_i.ar.len,
      core_req_i.ar.addr[33:30], core_req_i.ar.addr[9:6]}), .break_i(1'b0));
  // of the data, some bits: one byte with its strobe, and the ends
  function automatic logic [9:0] half_of(input logic [255:0] data);
    half_of = {data[255], data[0], data[47:40]};
  endfunction
  axi_channel #(.W(23), .Assume(1'b1)) u_cw (.clk_i, .rst_ni,
      .valid_i(core_req_i.w_valid), .ready_i(core.w_ready),
      .data_i({core_req_i.w.last, core_req_i.w.strb[37], core_req_i.w.strb[5],
      half_of(core_req_i.w.data[511:256]), half_of(core_req_i.w.data[255:0])}), .break_i(1'b0));
  axi_channel #(.W(3), .Assume(1'b1)) u_hb (.clk_i, .rst_ni, .valid_i(b_valid_i),
      .ready_i(b_ready), .data_i({b_id_i, b_resp_i}), .break_i(1'b0));
  axi_channel #(.W(14), .Assume(1'b1)) u_hr (.clk_i, .rst_ni, .valid_i(r_valid_i),
      .ready_i(r_ready), .data_i({r_id_i, r_resp_i, r_last_i, half_of(r_data_i)}), .break_i(1'b0));
  // so do the block's requests and answers
  axi_channel #(.W(39)) u_aw (.clk_i, .rst_ni, .valid_i(aw_valid), .ready_i(aw_ready_i),
      .data_i({aw_id, aw_addr, aw_len}), .break_i(1'b0));
  axi_channel #(.W(39)) u_ar (.clk_i, .rst_ni, .valid_i(ar_valid), .ready_i(ar_ready_i),
      .data_i({ar_id, ar_addr, ar_len}), .break_i(1'b0));
  axi_channel #(.W(13)) u_w (.clk_i, .rst_ni, .valid_i(w_valid), .ready_i(w_ready_i),
      .data_i({half_of(w_data), w_strb[5], w_parity[5], w_last}), .break_i(1'b0));
  axi_channel #(.W(10)) u_b (.clk_i, .rst_ni, .valid_i(core.b_valid),
      .ready_i(core_req_i.b_ready), .data_i(core.b), .break_i(1'b0));
  axi_channel #(.W(31)) u_r (.clk_i, .rst_ni, .valid_i(core.r_valid),
      .ready_i(core_req_i.r_ready), .data_i({core.r.id, core.r.resp, core.r.last,
      half_of(core.r.data[511:256]), half_of(core.r.data[255:0])}), .break_i(1'b0));

  // ---- a symbolic id of the core, and one of the HBM ----
  logic init = 1'b0;
  logic [7:0] wide;
  logic narrow;
  logic [1:0] reads, writes;          // bursts in flight of the core's id
  logic [1:0][1:0] asked_r, asked_w;  // bursts at the HBM, by its id
  logic [1:0] half;                   // an odd number of read beats has come
  logic [11:0] low;                   // the last lower half of the HBM's id
  logic odd_w, aw_took, ar_took;
  logic [15:0] aw_was, ar_was;
  wire ar_fire = core_req_i.ar_valid && core.ar_ready;
  wire aw_fire = core_req_i.aw_valid && core.aw_ready;
  wire r_fire = r_valid_i && r_ready;
  wire r_end = core.r_valid && core_req_i.r_ready && core.r.last;
  wire b_end = core.b_valid && core_req_i.b_ready;
  always_ff @(posedge clk_i) begin
    wide <= wide;
    narrow <= narrow;
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    // the HBM answers bursts that it has, and a burst has an even number of beats
    if (r_valid_i) assume (asked_r[r_id_i] != '0);
    if (r_valid_i && r_last_i) assume (half[r_id_i]);
    if (b_valid_i) assume (asked_w[b_id_i] != '0);
    aw_took <= rst_ni && aw_fire;
    ar_took <= rst_ni && ar_fire;
    aw_was <= {core_req_i.aw.len[2:0], core_req_i.aw.addr[33:24], core_req_i.aw.addr[8:6]};
    ar_was <= {core_req_i.ar.len[2:0], core_req_i.ar.addr[33:24], core_req_i.ar.addr[8:6]};
    if (r_fire && r_id_i == narrow && !half[narrow]) low <= {r_resp_i, half_of(r_data_i)};
    if (!rst_ni) begin
      reads <= '0;
      writes <= '0;
      asked_r <= '0;
      asked_w <= '0;
      half <= '0;
      odd_w <= 1'b0;
    end else begin
      reads <= reads + 2'(ar_fire && core_req_i.ar.id == wide) - 2'(r_end && core.r.id == wide);
      writes <= writes + 2'(aw_fire && core_req_i.aw.id == wide) - 2'(b_end && core.b.id == wide);
      for (int n = 0; n < 2; n++) begin
        asked_r[n] <= asked_r[n] + 2'(ar_valid && ar_ready_i && ar_id == 1'(n)) -
            2'(r_fire && r_last_i && r_id_i == 1'(n));
        asked_w[n] <= asked_w[n] + 2'(aw_valid && aw_ready_i && aw_id == 1'(n)) -
            2'(b_valid_i && b_ready && b_id_i == 1'(n));
        if (r_fire && r_id_i == 1'(n)) half[n] <= !half[n];
      end
      if (w_valid && w_ready_i) odd_w <= !odd_w;
    end
  end

  logic [1:0] wide_r, wide_w;  // ids of the HBM that are the core's id
  always_comb begin
    for (int n = 0; n < 2; n++) begin
      wide_r[n] = dut.u_reads.count_q[n] != '0 && dut.u_reads.wide_q[n] == wide;
      wide_w[n] = dut.u_writes.count_q[n] != '0 && dut.u_writes.wide_q[n] == wide;
    end
  end

  always_comb begin
    if (init && rst_ni) begin
      // requests
      if (aw_took) assert (aw_valid && {aw_len, aw_addr[33:24], aw_addr[8:6]} ==
          {aw_was[15:13], 1'b1, aw_was[12:0]});
      if (ar_took) assert (ar_valid && {ar_len, ar_addr[33:24], ar_addr[8:6]} ==
          {ar_was[15:13], 1'b1, ar_was[12:0]});
      // one waits only for the register, or for an id
      if (!ar_valid && core_req_i.ar_valid && dut.u_reads.count_q[1] == '0 &&
          !(core_req_i.ar.id == wide && reads == '1) && (core_req_i.ar.id == wide))
        assert (core.ar_ready);
      if (!aw_valid && core_req_i.aw_valid && dut.u_writes.count_q[1] == '0 &&
          !(core_req_i.aw.id == wide && writes == '1) && (core_req_i.aw.id == wide))
        assert (core.aw_ready);
      // one id of the HBM for one of the core in flight
      for (int n = 0; n < 2; n++)
        for (int m = 0; m < n; m++) begin
          if (dut.u_reads.count_q[n] != '0 && dut.u_reads.count_q[m] != '0)
            assert (dut.u_reads.wide_q[n] != dut.u_reads.wide_q[m]);
          if (dut.u_writes.count_q[n] != '0 && dut.u_writes.count_q[m] != '0)
            assert (dut.u_writes.wide_q[n] != dut.u_writes.wide_q[m]);
        end
      // answers belong to bursts in flight
      if (core.r_valid && core.r.id == wide) assert (reads != '0);
      if (core.b_valid && core.b.id == wide) assert (writes != '0 && core.b.resp == b_resp_i);
      // write data: both halves, once
      assert (w_valid == core_req_i.w_valid);
      assert (half_of(w_data) == half_of(odd_w ? core_req_i.w.data[511:256]
          : core_req_i.w.data[255:0]) && w_last == (odd_w && core_req_i.w.last) &&
          w_strb[5] == (odd_w ? core_req_i.w.strb[37] : core_req_i.w.strb[5]));
      assert (core.w_ready == (odd_w && w_ready_i));
      assert (^{w_parity[5], w_data[47:40]} == 1'b0);
      // read data: both halves of the HBM's id, once
      if (r_valid_i && half[r_id_i]) assert (core.r_valid && core.r.last == r_last_i);
      if (core.r_valid) assert (r_valid_i && half[r_id_i]);
      if (r_valid_i && !half[r_id_i]) assert (r_ready);
      if (core.r_valid) assert (r_ready == core_req_i.r_ready);
      if (core.r_valid && r_id_i == narrow)
        assert (half_of(core.r.data[511:256]) == half_of(r_data_i) &&
            half_of(core.r.data[255:0]) == low[9:0] &&
            core.r.resp == (low[11:10] != AXI_OKAY ? low[11:10] : r_resp_i));

      // supporting invariants
      assert (dut.upper_q == odd_w && dut.half_q == half);
      if (half[narrow])
        assert ({dut.low_q[narrow][257:256], half_of(dut.low_q[narrow][255:0])} == low);
      for (int n = 0; n < 2; n++) begin
        assert (dut.u_reads.count_q[n] == asked_r[n] + 2'(ar_valid && ar_id == 1'(n)) &&
            (asked_r[n] != '1 || !(ar_valid && ar_id == 1'(n))));
        assert (dut.u_writes.count_q[n] == asked_w[n] + 2'(aw_valid && aw_id == 1'(n)) &&
            (asked_w[n] != '1 || !(aw_valid && aw_id == 1'(n))));
        if (wide_r[n]) assert (reads == dut.u_reads.count_q[n]);
        if (wide_w[n]) assert (writes == dut.u_writes.count_q[n]);
      end
      if (wide_r == '0) assert (reads == '0);
      if (wide_w == '0) assert (writes == '0);
    end
    cover (init && rst_ni && reads == 2'd2 && asked_r[1] == 2'd2 && wide_r[1] && asked_r[0] != '0);
    cover (init && rst_ni && core.r_valid && core.r.id == wide && wide == 8'd77 &&
        r_id_i == narrow && core.r.resp == AXI_SLVERR);
    cover (init && rst_ni && core_req_i.aw_valid && !core.aw_ready && !aw_valid);
    cover (init && rst_ni && half == 2'b11);
  end
endmodule
`default_nettype wire
