// shef_jobs: at most one of the five sources is granted, and only when AES accepts the job; there
// is no job while stopped. The job's blocks are those of the granted source, with the id of its
// region. Of two sources of a kind, neither waits for more than one grant of the other.
`default_nettype none
module jobs
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input wire                         clk_i,
    input wire                         rst_ni,
    input wire                         stop_i,
    input wire [1:0]                   ctr_valid_i,
    input wire ctr_job_t [1:0]         ctr_job_i,
    input wire [1:0]                   mask_valid_i,
    input wire reg_idx_t [1:0]         mask_region_i,
    input wire chunk_idx_t [1:0][3:0]  mask_chunk_i,
    input wire version_t [1:0][3:0]    mask_version_i,
    input wire [1:0][MASK_SLOT_W-1:0]  mask_slot_i,
    input wire                         node_valid_i,
    input wire reg_idx_t               node_region_i,
    input wire chunk_idx_t             node_index_i,
    input wire version_t               node_version_i,
    input wire                         job_ready_i
);
  localparam id_tab_t ID = {8'd0, 8'd14, 8'd13, 8'd12, 8'd11, 8'd10, 8'd9, 8'd8, 8'd7, 8'd6, 8'd5,
      8'd4, 8'd3, 8'd2, 8'd1, 8'd15};
  logic [1:0] ctr_ready, mask_ready;
  logic job_valid, node_ready, node_grant;
  logic [4:0] job_key;
  logic [511:0] job_block;
  logic [MASK_SLOT_W+2:0] job_user;
  shef_jobs #(.RegionId(ID)) dut (
      .clk_i, .rst_ni, .stop_i, .ctr_valid_i, .ctr_ready_o(ctr_ready), .ctr_job_i, .mask_valid_i,
      .mask_ready_o(mask_ready),
      .mask_region_i, .mask_chunk_i, .mask_version_i, .mask_slot_i,
      .node_valid_i, .node_ready_o(node_ready), .node_region_i, .node_index_i, .node_version_i,
      .job_valid_o(job_valid), .job_ready_i,
      .job_key_o(job_key), .job_block_o(job_block), .job_user_o(job_user)
  );

  logic init = 1'b0;
  logic [1:0] lane;     // symbolic block of the job
  logic [127:0] block;
  logic [3:0] grant;
  logic d;
  logic [1:0] passed_mask, passed_ctr;   // the other side had a grant while this one waited
  assign grant = {mask_ready & mask_valid_i, ctr_ready & ctr_valid_i};
  assign node_grant = node_ready && node_valid_i;
  assign block = job_block[128*(3-lane)+:128];
  assign d = grant[1] || grant[3];
  always_ff @(posedge clk_i) lane <= lane;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
  end
  for (genvar s = 0; s < 2; s++) begin : g_wait
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !mask_valid_i[s] || grant[2+s]) passed_mask[s] <= 1'b0;
      else if (grant[3-s]) passed_mask[s] <= 1'b1;
      // a mask job restarts the count: masks go first and use the same turn
      if (!rst_ni || !ctr_valid_i[s] || grant[s] || grant[3:2] != '0) passed_ctr[s] <= 1'b0;
      else if (grant[1-s]) passed_ctr[s] <= 1'b1;
    end
    always_comb begin
      if (init && rst_ni && passed_mask[s]) assert (dut.turn_q == (s == 1) || !mask_valid_i[s]);
      if (init && rst_ni && passed_ctr[s]) assert (dut.turn_q == (s == 1) || !ctr_valid_i[s]);
      if (init && rst_ni && passed_mask[s] && mask_valid_i[s]) assert (!grant[3-s]);
      if (init && rst_ni && passed_ctr[s] && ctr_valid_i[s]) assert (!grant[1-s]);
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      assert ((grant & (grant - 4'd1)) == '0 && (!node_grant || grant == '0));
      assert ((node_grant || grant != '0) == (job_valid && job_ready_i));
      if (node_grant) begin
        assert (block == {ID[node_region_i], node_version_i, node_index_i, 32'd1});
        assert (job_user == {KS_NODE, {MASK_SLOT_W{1'b0}}});
        assert (job_key == {1'b1, ID[node_region_i][3:0]});
      end
      if (stop_i) assert (!job_valid && job_block == '0);
      if (grant[3:2] != '0) begin
        assert (block == {ID[mask_region_i[d]], mask_version_i[d][lane], mask_chunk_i[d][lane],
            32'd1});
        assert (job_user == {d ? KS_SEAL_MASK : KS_READ_MASK, mask_slot_i[d]});
        assert (job_key == {1'b0, ID[mask_region_i[d]][3:0]});
      end
      if (grant[1:0] != '0) begin
        assert (block == {ID[ctr_job_i[d].region], ctr_job_i[d].version, ctr_job_i[d].chunk,
            ctr_job_i[d].ctr + 32'(lane)});
        assert (job_user == {d ? KS_SEAL : KS_READ, {MASK_SLOT_W{1'b0}}});
        assert (job_key == {1'b0, ID[ctr_job_i[d].region][3:0]});
      end
    end
    cover (init && rst_ni && node_grant && mask_valid_i != '0);
    cover (init && rst_ni && passed_mask == 2'b10 && grant[3]);
    cover (init && rst_ni && passed_ctr == 2'b01 && grant[0]);
  end
endmodule
`default_nettype wire
