// shef_async_fifo, 4 words, between two clocks that rise and fall at any time: no word is lost,
// duplicated or reordered, the output is stable while it waits, a pointer that crosses changes one
// bit at a time, and a word that was written comes out. So too after a reset, which is asserted on
// both sides at once, at any time, and released on each side after three of its edges.
`default_nettype none
module async_fifo (
    input wire       wr_clk,
    input wire       rd_clk,
    input wire       run_i,      // changes with wr_clk
    input wire       wr_valid_i,
    input wire [3:0] wr_data_i,
    input wire       rd_ready_i
);
  // ---- the caller's resets ----
  logic run_q = 1'b0;
  logic wr_rst_n, rd_rst_n;
  always_ff @(posedge wr_clk) run_q <= run_i;
  shef_reset_sync u_wr (.clk_i(wr_clk), .rst_ni(run_q), .rst_no(wr_rst_n));
  shef_reset_sync u_rd (.clk_i(rd_clk), .rst_ni(run_q), .rst_no(rd_rst_n));

  logic wr_ready, rd_valid;
  logic [3:0] rd_data;
  shef_async_fifo #(.W(4), .Depth(4)) dut (
      .wr_clk_i(wr_clk), .wr_rst_ni(wr_rst_n), .wr_valid_i, .wr_ready_o(wr_ready), .wr_data_i,
      .rd_clk_i(rd_clk), .rd_rst_ni(rd_rst_n), .rd_valid_o(rd_valid), .rd_ready_i,
      .rd_data_o(rd_data)
  );

  function automatic logic [2:0] binary(input logic [2:0] gray);
    binary = {gray[2], gray[2] ^ gray[1], ^gray};
  endfunction

  wire [2:0] words = dut.wbin_q - dut.rbin_q;

  // ---- a symbolic word by its number, modulo 8: no more than five are inside ----
  logic [2:0] at, rd_no;
  logic [3:0] word;
  wire push = wr_valid_i && wr_ready;
  wire pop = rd_valid && rd_ready_i;
  always_ff @(posedge wr_clk) begin
    at <= at;
    if (push && dut.wbin_q == at) word <= wr_data_i;
  end
  always_ff @(posedge rd_clk or negedge rd_rst_n) begin
    if (!rd_rst_n) rd_no <= '0;
    else if (pop) rd_no <= rd_no + 3'd1;
  end

  // ---- what was a cycle before: pointers, the waiting output; how long each side has waited ----
  logic [2:0] wptr_was, rptr_was, rd_late, wr_late;
  logic rd_waited;
  logic [3:0] rd_was;
  always_ff @(posedge wr_clk or negedge wr_rst_n) begin
    if (!wr_rst_n) begin
      wptr_was <= '0;
      wr_late <= '0;
    end else begin
      wptr_was <= dut.wptr_q;
      wr_late <= wr_ready || words[2] || !rd_rst_n ? '0 : wr_late + 3'd1;
    end
  end
  always_ff @(posedge rd_clk or negedge rd_rst_n) begin
    if (!rd_rst_n) begin
      rptr_was <= '0;
      rd_late <= '0;
      rd_waited <= 1'b0;
      rd_was <= '0;
    end else begin
      rptr_was <= dut.rptr_q;
      rd_late <= rd_valid || words == '0 || !wr_rst_n ? '0 : rd_late + 3'd1;
      rd_waited <= rd_valid && !rd_ready_i;
      rd_was <= rd_data;
    end
  end

  // of each side: the other's pointer in the second and in the first flip-flop, if reset has passed
  wire [2:0] w_seen = binary(dut.wptr_seen);
  wire [2:0] r_seen = binary(dut.rptr_seen);
  logic [2:0] w_meta, r_meta, w_gray, r_gray;
  for (genvar i = 0; i < 3; i++) begin : g_meta
    assign w_gray[i] = dut.g_ptr[i].u_wptr.meta_q;
    assign r_gray[i] = dut.g_ptr[i].u_rptr.meta_q;
  end
  assign w_meta = binary(w_gray);
  assign r_meta = binary(r_gray);
  wire [1:0] rd_stage = u_rd.stage_q;
  wire [1:0] wr_stage = u_wr.stage_q;
  wire [2:0] w_seen_at = w_seen - dut.rbin_q;
  wire [2:0] w_meta_at = w_meta - dut.rbin_q;
  wire [2:0] r_seen_at = dut.wbin_q - r_seen;
  wire [2:0] r_meta_at = dut.wbin_q - r_meta;

  always_comb begin
    // in order, whole, unchanged
    if (rd_valid && rd_no == at) assert (rd_data == word);
    if (rd_valid) assert (rd_rst_n);
    if (rd_waited && rd_rst_n) assert (rd_valid && rd_data == rd_was);
    assert (words <= 3'd4);
    assert (rd_no == dut.rbin_q - 3'(rd_valid));
    // crossing pointers change one bit at a time
    assert ($countones(dut.wptr_q ^ wptr_was) <= 1);
    assert ($countones(dut.rptr_q ^ rptr_was) <= 1);
    // neither side waits for more than the crossing
    assert (rd_late <= 3'd3 && wr_late <= 3'd2);

    // supporting invariants
    assert (dut.wptr_q == (dut.wbin_q ^ (dut.wbin_q >> 1)));
    assert (dut.rptr_q == (dut.rbin_q ^ (dut.rbin_q >> 1)));
    if (!run_q) assert (wr_stage == '0 && rd_stage == '0 && !wr_rst_n && !rd_rst_n);
    if (wr_rst_n) assert (wr_stage == '1);
    if (rd_rst_n) assert (rd_stage == '1);
    if (wr_stage[1]) assert (wr_stage[0]);
    if (rd_stage[1]) assert (rd_stage[0]);
    if (!wr_rst_n) assert (dut.wbin_q == '0 && dut.rbin_q == '0);
    if (!rd_rst_n) assert (dut.rbin_q == '0 && !rd_valid);
    if (rd_stage[0]) assert (w_meta_at <= words);
    if (rd_stage[1]) assert (w_seen_at <= w_meta_at);
    if (wr_stage[0]) assert (r_meta_at >= words && r_meta_at <= 3'd4);
    if (wr_stage[1]) assert (r_seen_at >= r_meta_at && r_seen_at <= 3'd4);
    if (3'(at - dut.rbin_q) < words) assert (dut.mem_q[at[1:0]] == word);

    if (rd_rst_n && !rd_valid) begin
      if (rd_late >= 3'd1) assert (w_meta_at != '0);
      if (rd_late >= 3'd2) assert (w_seen_at != '0 && rd_late == 3'd2);
    end
    if (wr_rst_n && wr_late >= 3'd1) assert (r_meta_at != 3'd4);
    if (wr_rst_n && wr_late >= 3'd2) assert (r_seen_at != 3'd4);

    cover (rd_valid && rd_no == at && at == 3'd6 && word == 4'd9);
    cover (words == 3'd4 && rd_waited && !wr_ready);
    cover (rd_late == 3'd3);
    cover (rd_rst_n && !wr_rst_n);
    cover (wr_rst_n && !rd_rst_n && words == 3'd3);
  end
endmodule
`default_nettype wire
