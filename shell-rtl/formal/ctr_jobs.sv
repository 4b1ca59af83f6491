// shef_ctr_jobs: each chunk gets its counters 2, 6, .. 4N-2 once and in order (N beats), with its
// own region, index and version. There are never more jobs than the consumer has room for. One
// region of two beats, one of one beat.
`default_nettype none
module ctr_jobs
  import shef_set_pkg::*;
(
    input wire clk_i,
    input wire rst_ni,
    input wire chunk_valid_i,
    input wire chunk_t chunk_i,
    input wire take_i,
    input wire job_ready_i
);
  localparam log2_tab_t LOG2 = {{14{4'd6}}, 4'd7, 4'd6};
  logic job_valid, busy;
  ctr_job_t job;
  shef_ctr_jobs #(.Depth(4), .Credits(4), .ChunkLog2(LOG2)) dut (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0), .chunk_valid_i, .chunk_i, .take_i,
      .job_valid_o(job_valid), .job_ready_i, .job_o(job), .busy_o(busy)
  );

  logic init = 1'b0;
  // symbolic place of a chunk, chunks in, chunks whose last job has left
  logic [3:0] at, pushed, done;
  logic beat;                       // of the tracked chunk: its first job has left
  logic [2:0] out;                  // jobs issued and not consumed
  chunk_t chunk;
  logic issue, last, seen, mine;
  assign issue = job_valid && job_ready_i;
  assign seen = 4'(at - done) < 4'(pushed - done);
  assign mine = seen && at == done;
  assign last = job.region != 4'd1 || job.ctr != 32'd2;
  always_ff @(posedge clk_i) at <= at;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    // the directory has as many lines as this queue has places; the consumer takes only issued jobs
    if (4'(pushed - done) == 4'd4) assume (!chunk_valid_i);
    if (out == '0) assume (!take_i);
    assume (chunk_i.region <= 4'd1);
    if (!rst_ni) begin
      pushed <= '0;
      done <= '0;
      beat <= 1'b0;
      out <= '0;
    end else begin
      pushed <= pushed + 4'(chunk_valid_i);
      done <= done + 4'(issue && last);
      if (issue) beat <= !last;
      out <= out + 3'(issue) - 3'(take_i);
      if (chunk_valid_i && pushed == at) chunk <= chunk_i;
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (4'(pushed - done) <= 4'd4 && out <= 3'd4 && dut.used_q == out);
      assert (dut.u_fifo.count_q == 3'(pushed - done) && dut.u_fifo.wp_q == pushed[1:0] &&
          dut.u_fifo.rp_q == done[1:0]);
      if (seen) assert (chunk.region <= 4'd1 && dut.u_fifo.mem_q[at[1:0]] == chunk);
      assert (dut.beat_q == {5'd0, beat});
      if (beat) assert (busy && dut.head.region == 4'd1);
      for (int i = 0; i < 4; i++)
        if (4'(done + 4'(i)) != pushed && 3'(i) < dut.u_fifo.count_q)
          assert (dut.u_fifo.mem_q[2'(done + 4'(i))][91:88] <= 4'd1);
      if (job_valid && mine) begin
        assert (job.region == chunk.region && job.chunk == chunk.chunk &&
            job.version == chunk.version);
        assert (job.ctr == (beat ? 32'd6 : 32'd2));
      end
      if (job_valid) assert (out < 3'd4);
    end
    cover (init && rst_ni && mine && issue && beat && pushed == 4'd6 && at == 4'd3);
    cover (init && rst_ni && out == 3'd4);
  end
endmodule
`default_nettype wire
