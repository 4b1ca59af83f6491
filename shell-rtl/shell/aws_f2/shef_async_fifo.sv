// FIFO between two unrelated clocks, with Gray pointers.
//
// Handshake: valid/ready on both sides; a word appears at the output four to five edges of rd_clk_i
// after its write. Throughput one word for each edge of the slower clock. Depth is a power of two,
// at least 4; the FIFO holds Depth words in addition to the output register.
// Both resets are asynchronous and are asserted together: the caller derives them from one signal.
// They may be released in any order, because a pointer in reset is zero on both sides.
`default_nettype none
(* shef_cdc = "gray" *)
module shef_async_fifo #(
    parameter int unsigned W = 8,
    parameter int unsigned Depth = 16
) (
    input  wire logic         wr_clk_i,
    input  wire logic         wr_rst_ni,
    input  wire logic         wr_valid_i,
    output logic              wr_ready_o,
    input  wire logic [W-1:0] wr_data_i,
    input  wire logic         rd_clk_i,
    input  wire logic         rd_rst_ni,
    output logic              rd_valid_o,
    input  wire logic         rd_ready_i,
    output logic [W-1:0]      rd_data_o
);
  localparam int unsigned AW = $clog2(Depth);
  typedef logic [AW:0] ptr_t;

  function automatic ptr_t gray(input ptr_t binary);
    gray = binary ^ (binary >> 1);
  endfunction

  logic [W-1:0] mem_q[Depth];
  ptr_t wbin_q, wptr_q, rbin_q, rptr_q;  // binary, and Gray for the other side
  ptr_t wptr_seen, rptr_seen;            // the other side's

  // ---- write ----
  wire push = wr_valid_i && wr_ready_o;
  wire ptr_t wbin_next = wbin_q + ptr_t'(1);
  assign wr_ready_o = wptr_q != {~rptr_seen[AW:AW-1], rptr_seen[AW-2:0]};

  always_ff @(posedge wr_clk_i) begin
    if (push) mem_q[wbin_q[AW-1:0]] <= wr_data_i;
  end

  always_ff @(posedge wr_clk_i or negedge wr_rst_ni) begin
    if (!wr_rst_ni) begin
      wbin_q <= '0;
      wptr_q <= '0;
    end else if (push) begin
      wbin_q <= wbin_next;
      wptr_q <= gray(wbin_next);
    end
  end

  // ---- read ----
  logic rd_valid_q;
  logic [W-1:0] rd_data_q;
  wire pop = rptr_q != wptr_seen && (!rd_valid_q || rd_ready_i);
  wire ptr_t rbin_next = rbin_q + ptr_t'(1);
  assign rd_valid_o = rd_valid_q;
  assign rd_data_o = rd_data_q;

  always_ff @(posedge rd_clk_i) begin
    if (pop) rd_data_q <= mem_q[rbin_q[AW-1:0]];
  end

  always_ff @(posedge rd_clk_i or negedge rd_rst_ni) begin
    if (!rd_rst_ni) begin
      rbin_q <= '0;
      rptr_q <= '0;
      rd_valid_q <= 1'b0;
    end else begin
      if (pop) begin
        rbin_q <= rbin_next;
        rptr_q <= gray(rbin_next);
      end
      if (pop || rd_ready_i) rd_valid_q <= pop;
    end
  end

  // ---- pointers ----
  for (genvar i = 0; i <= int'(AW); i++) begin : g_ptr
    shef_sync u_wptr (
        .clk_i(rd_clk_i),
        .d_i(wptr_q[i]),
        .q_o(wptr_seen[i])
    );
    shef_sync u_rptr (
        .clk_i(wr_clk_i),
        .d_i(rptr_q[i]),
        .q_o(rptr_seen[i])
    );
  end
endmodule
`default_nettype wire
