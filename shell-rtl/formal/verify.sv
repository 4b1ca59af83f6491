// shef_verify: a chunk is accepted only if GHASH ^ mask equals its tag in all 128 bits, where the
// three belong to the same place in the order of the chunks. Every chunk whose three values have
// arrived is accepted or fails, once and in order, unless stopped or wiped.
`default_nettype none
module verify
  import shef_set_pkg::*;
(
    input wire          clk_i,
    input wire          rst_ni,
    input wire          clr_i,
    input wire          stop_i,
    input wire          chunk_valid_i,
    input wire chunk_t  chunk_i,
    input wire tagref_t tagref_i,
    input wire          s_valid_i,
    input wire [127:0]  s_i,
    input wire          mask_valid_i,
    input wire [127:0]  mask_i,
    input wire          tag_valid_i,
    input wire [127:0]  tag_i
);
  tagref_t get;
  logic used, ok, fail;
  chunk_t out;
  shef_verify #(.Depth(4)) dut (
      .clk_i, .rst_ni, .clr_i, .stop_i, .zero_addr_i('0), .chunk_valid_i, .chunk_i, .tagref_i,
      .s_valid_i, .s_i,
      .get_o(get), .mask_valid_i, .mask_i, .tag_valid_i, .tag_i, .used_o(used), .ok_o(ok),
      .fail_o(fail), .chunk_o(out)
  );

  logic init = 1'b0;
  logic [3:0] at, chunks, results, taken;   // symbolic place
  chunk_t chunk;
  tagref_t tagref;
  logic [127:0] s;
  logic match1, match2, stop2, mine1, mine2, use1, use2;
  logic seen_chunk, seen_s;
  assign seen_chunk = 4'(at - taken) < 4'(chunks - taken);
  assign seen_s = 4'(at - taken) < 4'(results - taken);
  always_ff @(posedge clk_i) at <= at;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (4'(chunks - taken) == 4'd4) assume (!chunk_valid_i);
    if (results == chunks) assume (!s_valid_i);
    if (!rst_ni || clr_i) begin
      chunks <= '0;
      results <= '0;
      taken <= '0;
      mine1 <= 1'b0;
      mine2 <= 1'b0;
      use1 <= 1'b0;
      use2 <= 1'b0;
      stop2 <= 1'b0;
    end else begin
      chunks <= chunks + 4'(chunk_valid_i);
      results <= results + 4'(s_valid_i);
      taken <= taken + 4'(used);
      if (chunk_valid_i && chunks == at) begin
        chunk <= chunk_i;
        tagref <= tagref_i;
      end
      if (s_valid_i && results == at) s <= s_i;
      use1 <= used;
      use2 <= use1;
      mine1 <= used && taken == at;
      mine2 <= mine1;
      match1 <= s == (mask_i ^ tag_i) && mask_valid_i && tag_valid_i;
      match2 <= match1;
      stop2 <= stop_i;
    end
  end
  always_comb begin
    if (init && rst_ni && !clr_i) begin
      assert (4'(chunks - taken) <= 4'd4 && 4'(results - taken) <= 4'(chunks - taken));
      assert (dut.u_chunks.count_q == 3'(chunks - taken) && dut.u_chunks.wp_q == chunks[1:0] &&
          dut.u_chunks.rp_q == taken[1:0]);
      assert (dut.u_s.count_q == 3'(results - taken) && dut.u_s.wp_q == results[1:0] &&
          dut.u_s.rp_q == taken[1:0]);
      if (seen_chunk) assert (dut.u_chunks.mem_q[at[1:0]] == {chunk, tagref});
      if (seen_s) assert (dut.u_s.mem_q[at[1:0]] == s);
      if (used && taken == at) assert (seen_chunk && seen_s && get == tagref);
      assert (dut.diff_valid_q == use1 && (!mine1 || use1) && (!mine2 || use2));
      if (mine1) assert (dut.chunk_q == chunk && (dut.diff_q == '0) == match1);
      assert ((ok || fail) == (use2 && !stop2) && !(ok && fail));
      if (mine2 && (ok || fail)) assert (out == chunk && ok == match2);
      if (stop_i) assert (!used);
    end
    cover (init && rst_ni && !clr_i && ok && mine2 && at == 4'd5);
    cover (init && rst_ni && !clr_i && fail && mine2);
  end
endmodule
`default_nettype wire
