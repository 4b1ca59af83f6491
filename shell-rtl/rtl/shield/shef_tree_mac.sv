// Tags of tree nodes: checks them on reads, computes them on writes.
//
// in_*: valid/ready, one node: its 48 counter bytes, its tag (CHECK) and its version; NONE only
// keeps its place in the order. For each CHECK and SEAL one job (E(J0)) and one GHASH beat go out;
// their results return in order and are always accepted.
// done_*: one pulse per CHECK and NONE, in order, done_bad_o when the tag was wrong. wb_*:
// valid/ready, the finished node of a SEAL, in order. CHECK to done: 5 cycles and the longer of the
// two crypto latencies; one node a cycle.
// stop_i: no write leaves any more (a valid one stays valid), nothing starts. clr_i drops
// everything.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_tree_mac
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
#(
    parameter int unsigned Depth = 8
) (
    input  wire                clk_i,
    input  wire                rst_ni,
    input  wire                clr_i,
    input  wire [ZERO_W-1:0]   zero_addr_i,
    input  wire                stop_i,

    input  wire                in_valid_i,
    output logic               in_ready_o,
    input  wire  tree_mac_t    in_i,
    input  wire [511:0]        in_data_i,      // byte 0 in the top bits

    output logic               job_valid_o,
    input  wire                job_ready_i,
    output reg_idx_t           job_region_o,
    output chunk_idx_t         job_index_o,
    output version_t           job_version_o,
    input  wire                ks_valid_i,
    input  wire [127:0]        ks_i,
    output logic               gh_valid_o,
    input  wire                gh_ready_i,
    output reg_idx_t           gh_region_o,
    output logic [511:0]       gh_data_o,
    input  wire                s_valid_i,
    input  wire [127:0]        s_i,

    output logic               done_valid_o,
    output logic               done_bad_o,
    output tree_mac_t          done_o,
    output logic               wb_valid_o,
    input  wire                wb_ready_i,
    output tree_mac_t          wb_o,
    output logic [511:0]       wb_data_o,
    output logic               idle_o
);
  localparam int unsigned PW = $clog2(Depth);
  tree_mac_t head, job_q, out_q, wb_q;
  logic [511:0] head_data, wb_data_q;
  logic [383:0] gh_q;
  logic [127:0] ks, s, tag, diff_q;
  logic room, accept, crypt, head_valid, ks_valid, s_valid, take, job_valid_q, gh_valid_q,
      out_valid_q, wb_valid_q;
  reg_idx_t gh_region_q;

  assign crypt = in_i.kind != MAC_NONE;
  assign in_ready_o = room && !stop_i &&
      (!crypt || ((!job_valid_q || job_ready_i) && (!gh_valid_q || gh_ready_i)));
  assign accept = in_valid_i && in_ready_o;

  shef_fifo #(.W($bits(tree_mac_t) + 512), .Depth(Depth)) u_nodes (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[PW-1:0]),
      .in_valid_i(accept), .in_ready_o(room), .in_data_i({in_i, in_data_i}),
      .out_valid_o(head_valid), .out_ready_i(take), .out_data_o({head, head_data}), .count_o()
  );
  shef_fifo #(.W(128), .Depth(Depth)) u_ks (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[PW-1:0]),
      .in_valid_i(ks_valid_i), .in_ready_o(), .in_data_i(ks_i),
      .out_valid_o(ks_valid), .out_ready_i(take && head.kind != MAC_NONE), .out_data_o(ks),
      .count_o()
  );
  shef_fifo #(.W(128), .Depth(Depth)) u_s (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[PW-1:0]),
      .in_valid_i(s_valid_i), .in_ready_o(), .in_data_i(s_i),
      .out_valid_o(s_valid), .out_ready_i(take && head.kind != MAC_NONE), .out_data_o(s), .count_o()
  );

  assign job_valid_o = job_valid_q;
  assign job_region_o = job_q.region;
  assign job_index_o = {1'b0, job_q.level, job_q.node};
  assign job_version_o = job_q.version;
  assign gh_valid_o = gh_valid_q;
  assign gh_region_o = gh_region_q;
  assign gh_data_o = {128'd0, gh_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      job_valid_q <= 1'b0;
      gh_valid_q <= 1'b0;
      job_q <= '0;
      gh_q <= '0;
      gh_region_q <= '0;
    end else begin
      if (job_ready_i) job_valid_q <= 1'b0;
      if (gh_ready_i) gh_valid_q <= 1'b0;
      if (accept && crypt) begin
        job_valid_q <= 1'b1;
        gh_valid_q <= 1'b1;
        job_q <= in_i;
        gh_q <= in_data_i[511:128];
        gh_region_q <= in_i.region;
      end
    end
  end

  // ---- results ----
  assign tag = s ^ ks;
  assign take = head_valid && ((head.kind == MAC_NONE) ||
      (ks_valid && s_valid && (head.kind == MAC_CHECK ||
      (!stop_i && (!wb_valid_q || wb_ready_i)))));

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      out_valid_q <= 1'b0;
      out_q <= '0;
      diff_q <= '0;
      wb_valid_q <= 1'b0;
      wb_q <= '0;
      wb_data_q <= '0;
    end else begin
      out_valid_q <= take && head.kind != MAC_SEAL;
      if (take && head.kind != MAC_SEAL) begin
        out_q <= head;
        diff_q <= (head.kind == MAC_NONE) ? '0 : tag ^ head_data[127:0];
      end
      if (wb_ready_i) wb_valid_q <= 1'b0;
      if (take && head.kind == MAC_SEAL) begin
        wb_valid_q <= 1'b1;
        wb_q <= head;
        wb_data_q <= {head_data[511:128], tag};
      end
    end
  end
  assign done_valid_o = out_valid_q;
  assign done_bad_o = diff_q != '0;
  assign done_o = out_q;
  assign wb_valid_o = wb_valid_q;
  assign wb_o = wb_q;
  assign wb_data_o = wb_data_q;
  assign idle_o = !head_valid && !out_valid_q && !wb_valid_q;
  logic unused;
  assign unused = ^{zero_addr_i, job_q.kind, job_q.slot};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
