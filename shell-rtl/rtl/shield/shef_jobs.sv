// Merges the AES jobs of both directions and of the tree into one stream of four-block jobs.
//
// Handshake: valid/ready everywhere, combinational. Tag masks go first (they are rare and urgent),
// those of nodes before all, then keystream; reads and writes take turns. A node's mask takes a
// separate job, four times the same block. A block is region id (8) | version (48) | chunk (40) |
// counter (32).
`default_nettype none
module shef_jobs
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter id_tab_t RegionId = '0
) (
    input  wire                          clk_i,
    input  wire                          rst_ni,
    input  wire                          stop_i,
    input  wire  [1:0]                   ctr_valid_i,   // 0 read, 1 seal
    output logic [1:0]                   ctr_ready_o,
    input  wire  ctr_job_t [1:0]         ctr_job_i,
    input  wire  [1:0]                   mask_valid_i,
    output logic [1:0]                   mask_ready_o,
    input  wire  reg_idx_t [1:0]         mask_region_i,
    input  wire  chunk_idx_t [1:0][3:0]  mask_chunk_i,
    input  wire  version_t [1:0][3:0]    mask_version_i,
    input  wire  [1:0][MASK_SLOT_W-1:0]  mask_slot_i,
    input  wire                          node_valid_i,
    output logic                         node_ready_o,
    input  wire  reg_idx_t               node_region_i,
    input  wire  chunk_idx_t             node_index_i,
    input  wire  version_t               node_version_i,
    output logic                         job_valid_o,
    input  wire                          job_ready_i,
    output logic [4:0]                   job_key_o,      // node key, place of the key
    output logic [511:0]                 job_block_o,
    output logic [MASK_SLOT_W+2:0]       job_user_o     // destination, slot
);
  logic turn_q;
  logic side, is_mask;
  logic [7:0] id;

  assign is_mask = mask_valid_i != '0;
  always_comb begin
    if (is_mask) side = (mask_valid_i == 2'b11) ? turn_q : mask_valid_i[1];
    else side = (ctr_valid_i == 2'b11) ? turn_q : ctr_valid_i[1];
  end
  assign job_valid_o = !stop_i && (node_valid_i || is_mask || ctr_valid_i != '0);
  assign node_ready_o = job_ready_i && !stop_i;
  assign mask_ready_o = (is_mask && !node_valid_i && job_ready_i && !stop_i) ? (2'b01 << side)
      : 2'b00;
  assign ctr_ready_o = (!is_mask && !node_valid_i && job_ready_i && !stop_i) ? (2'b01 << side)
      : 2'b00;

  always_comb begin
    id = '0;
    job_block_o = '0;
    job_user_o = '0;
    if (job_valid_o) begin
      if (node_valid_i) begin
        id = RegionId[node_region_i];
        job_block_o = {4{id, node_version_i, node_index_i, 32'd1}};
        job_user_o = {KS_NODE, {MASK_SLOT_W{1'b0}}};
      end else if (is_mask) begin
        id = RegionId[mask_region_i[side]];
        for (int l = 0; l < 4; l++)
          job_block_o[128*(3-l)+:128] = {id, mask_version_i[side][l], mask_chunk_i[side][l], 32'd1};
        job_user_o = {side ? KS_SEAL_MASK : KS_READ_MASK, mask_slot_i[side]};
      end else begin
        id = RegionId[ctr_job_i[side].region];
        for (int l = 0; l < 4; l++)
          job_block_o[128*(3-l)+:128] = {id, ctr_job_i[side].version, ctr_job_i[side].chunk,
              ctr_job_i[side].ctr + 32'(l)};
        job_user_o = {side ? KS_SEAL : KS_READ, {MASK_SLOT_W{1'b0}}};
      end
    end
  end
  assign job_key_o = {node_valid_i, id[3:0]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_q <= 1'b0;
    else if (job_valid_o && job_ready_i && !node_valid_i) turn_q <= !side;
  end
endmodule
`default_nettype wire
