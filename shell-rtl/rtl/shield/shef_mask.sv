// Tag masks E(J0) of one direction. Up to four chunks of one region share an AES job ("quad"), so
// that masks cost a quarter of a beat's keystream time and not a whole one.
//
// push_*: valid/ready, one chunk; its place (slot, lane) is given in the same cycle. The job leaves
// when four chunks wait, when the oldest has waited 24 cycles, or when idle_i reports that AES is
// otherwise idle. ks_*: the result. get_*: combinational read of a mask. rel_*: a chunk's mask was
// used; masks are used in the order of the pushes.
`default_nettype none
module shef_mask
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input  wire                    clk_i,
    input  wire                    rst_ni,
    input  wire                    clr_i,
    input  wire [ZERO_W-1:0]       zero_addr_i,
    input  wire                    idle_i,

    input  wire                    push_valid_i,
    output logic                   push_ready_o,
    input  wire  reg_idx_t         push_region_i,
    input  wire  chunk_idx_t       push_chunk_i,
    input  wire  version_t         push_version_i,
    output logic [MASK_SLOT_W-1:0] push_slot_o,
    output logic [1:0]             push_lane_o,

    output logic                   job_valid_o,
    input  wire                    job_ready_i,
    output reg_idx_t               job_region_o,
    output chunk_idx_t [3:0]       job_chunk_o,    // lane 0 is block 0
    output version_t [3:0]         job_version_o,
    output logic [MASK_SLOT_W-1:0] job_slot_o,

    input  wire                    ks_valid_i,
    input  wire [MASK_SLOT_W-1:0]  ks_slot_i,
    input  wire [511:0]            ks_i,

    input  wire [MASK_SLOT_W-1:0]  get_slot_i,
    input  wire [1:0]              get_lane_i,
    output logic                   get_valid_o,
    output logic [127:0]           get_mask_o,
    input  wire                    rel_valid_i,
    input  wire [MASK_SLOT_W-1:0]  rel_slot_i
);
  localparam int unsigned Slots = 1 << MASK_SLOT_W;

  logic [Slots-1:0] valid_q;
  logic [MASK_SLOT_W-1:0] slot_q;     // the quad being filled, or the next one
  logic [MASK_SLOT_W-1:0] oldest_q;   // slot of the mask used last
  reg_idx_t region_q;
  chunk_idx_t [3:0] chunk_q;
  version_t [3:0] version_q;
  logic [2:0] lanes_q;                // chunks in the quad
  logic [4:0] age_q;
  logic room, push, issue, begins;
  logic [MASK_SLOT_W-1:0] next_slot;

  // the slot after the current one must not be still in use
  assign job_valid_o = lanes_q != '0 && (lanes_q == 3'd4 || age_q == 5'd24 || idle_i);
  assign issue = job_valid_o && job_ready_i;
  assign begins = lanes_q == '0 || issue;
  assign next_slot = slot_q + MASK_SLOT_W'(issue);
  assign room = (next_slot + 1'b1) != oldest_q;
  assign push_ready_o = begins ? room : (lanes_q != 3'd4 && region_q == push_region_i);
  assign push = push_valid_i && push_ready_o;
  assign push_slot_o = next_slot;
  assign push_lane_o = begins ? 2'd0 : lanes_q[1:0];
  assign job_region_o = region_q;
  assign job_chunk_o = chunk_q;
  assign job_version_o = version_q;
  assign job_slot_o = slot_q;
  assign get_valid_o = valid_q[get_slot_i];

  // A memory for each lane, with one write port and one read port: distributed RAM.
  logic [127:0] of_lane[4];
  for (genvar l = 0; l < 4; l++) begin : g_lane
    logic [127:0] mem_q[Slots];
    always_ff @(posedge clk_i) begin
      if (clr_i) mem_q[zero_addr_i[MASK_SLOT_W-1:0]] <= '0;
      else if (ks_valid_i) mem_q[ks_slot_i] <= ks_i[128*(3-l)+:128];
    end
    assign of_lane[l] = mem_q[get_slot_i];
  end
  assign get_mask_o = of_lane[get_lane_i];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      valid_q <= '0;
      slot_q <= '0;
      oldest_q <= '1;
      region_q <= '0;
      chunk_q <= '0;
      version_q <= '0;
      lanes_q <= '0;
      age_q <= '0;
    end else begin
      if (push && begins) begin
        // unused lanes repeat the first chunk: every block that AES sees is a J0 of the format
        region_q <= push_region_i;
        chunk_q <= {4{push_chunk_i}};
        version_q <= {4{push_version_i}};
        valid_q[next_slot] <= 1'b0;
      end else if (push) begin
        chunk_q[lanes_q[1:0]] <= push_chunk_i;
        version_q[lanes_q[1:0]] <= push_version_i;
      end
      if (issue) begin
        lanes_q <= 3'(push);
        slot_q <= slot_q + 1'b1;
        age_q <= '0;
      end else begin
        if (push) lanes_q <= lanes_q + 1'b1;
        if (lanes_q != '0 && age_q != 5'd24) age_q <= age_q + 1'b1;
      end
      if (ks_valid_i) valid_q[ks_slot_i] <= 1'b1;
      if (rel_valid_i) oldest_q <= rel_slot_i;
    end
  end
  logic unused;
  assign unused = ^zero_addr_i;
endmodule
`default_nettype wire
