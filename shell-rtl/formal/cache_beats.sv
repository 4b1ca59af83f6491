// shef_cache_beats, the accelerator's side of shef_cache: it accepts no W beat that no accepted
// burst owes. The counts of present, unreserved and partial-strobe beats are correct, through
// wipes. Once every burst has received its beats and every beat is gone, all counters are zero.
// Beats leave in order. After a sweep every waiting word is zero. Assumed, as in the cache: it
// reserves no more than is free, removes only what it reserved, removes nothing during a wipe, and
// sweeps every word. Four beats, one of them symbolic.
`default_nettype none
module cache_beats
  import shef_pkg::*;
(
    input wire        clk_i,
    input wire        rst_ni,
    input wire        hold_i,
    input wire        clr_i,
    input wire        aw_fire_i,
    input wire [7:0]  aw_len_i,
    input wire        w_valid_i,
    input wire        w_bit_i,
    input wire        w_part_i,
    input wire        promise_i,
    input wire [2:0]  promise_n_i,
    input wire        pop_i,
    input wire [1:0]  place_i
);
  logic w_ready, valid, whole;
  logic [2:0] free;
  logic [511:0] data;
  logic [63:0] strb;
  logic [1:0] zero;
  shef_cache_beats #(.Depth(4)) dut (
      .clk_i, .rst_ni, .hold_i(hold_i || clr_i), .clr_i, .zero_addr_i(zero), .aw_fire_i, .aw_len_i,
      .w_data_i({511'd0, w_bit_i}), .w_strb_i({64{!w_part_i}}), .w_valid_i, .w_ready_o(w_ready),
      .free_o(free), .promise_i, .promise_n_i, .pop_i, .valid_o(valid), .data_o(data),
      .strb_o(strb), .whole_o(whole)
  );

  logic init = 1'b0;
  logic [15:0] owed;              // beats of accepted bursts that have not arrived
  // beats that are present, and how many of them are reserved
  logic [2:0] here, promised;
  logic [1:0] place, at;          // a place of the memory, constant
  logic kept, kept_bit, kept_part, swept, was_clr;
  logic [2:0] parts;
  logic took;
  assign took = w_valid_i && w_ready;

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) begin
      assume (!rst_ni);
      place <= place_i;
    end
    // as in the cache
    assume (!promise_i || promise_n_i <= free);
    assume (!pop_i || (promised != '0 && !clr_i));
    assume (owed < 16'h8000);
    assume (!was_clr || clr_i || swept);
    was_clr <= rst_ni && clr_i;
    if (!rst_ni || !clr_i) begin
      zero <= '0;
      swept <= 1'b0;
    end else begin
      zero <= zero + 1'b1;
      if (zero == '1) swept <= 1'b1;
    end

    if (!rst_ni) begin
      owed <= '0;
      here <= '0;
      promised <= '0;
      at <= '0;
      kept <= 1'b0;
    end else begin
      owed <= owed + (aw_fire_i ? {8'd0, aw_len_i} + 16'd1 : 16'd0) - 16'(took);
      here <= here + 3'(took) - 3'(pop_i);
      promised <= promised + (promise_i ? promise_n_i : 3'd0) - 3'(pop_i);
      if (took) at <= at + 1'b1;
      // the beat at the symbolic place
      if (took && at == place) begin
        kept <= 1'b1;
        kept_bit <= w_bit_i;
        kept_part <= w_part_i;
      end else if (clr_i || (pop_i && dut.rp_q == place)) kept <= 1'b0;
    end
  end

  always_comb begin
    parts = '0;
    for (int i = 0; i < 4; i++)
      if (3'(i) < here && dut.part_q[dut.rp_q+2'(i)]) parts = parts + 1'b1;
    if (init && rst_ni) begin
      // no beat that is not owed, none without a place
      if (took) assert (owed != '0 && here != 3'd4 && !hold_i && !clr_i);
      assert (here <= 3'd4 && promised <= here);
      // the counts are correct
      assert (free == here - promised);
      assert (valid == (here != '0));
      assert (dut.owed_q == owed && dut.count_q == here);
      assert (dut.parts_q == parts && whole == (parts == '0));
      assert (dut.wp_q == at && 2'(dut.rp_q + here[1:0]) == dut.wp_q);
      // nothing owed and nothing present: every counter is zero
      if (owed == '0 && here == '0)
        assert (dut.owed_q == '0 && dut.count_q == '0 && dut.free_q == '0 && dut.parts_q == '0);
      // in order and unchanged
      if (kept && dut.rp_q == place && valid) assert (data[0] == kept_bit && strb[0] == !kept_part);
      if (kept) assert (dut.data_mem_q[place][0] == kept_bit &&
          dut.strb_mem_q[place][0] == !kept_part && dut.part_q[place] == kept_part);
      // a sweep leaves zeros
      if (clr_i && swept) assert (dut.data_mem_q[place] == '0 && dut.strb_mem_q[place] == '0);
      if (clr_i && zero > place)
        assert (dut.data_mem_q[place] == '0 && dut.strb_mem_q[place] == '0);
    end
    cover (init && rst_ni && here == 3'd4 && w_valid_i && owed != '0);
    cover (init && rst_ni && w_valid_i && owed == '0 && here != '0);
    cover (init && rst_ni && clr_i && swept && here == 3'd2 && parts == 3'd1 && owed != '0);
    cover (init && rst_ni && promised == 3'd3 && pop_i && took);
  end
endmodule
`default_nettype wire
