// Fetch: issues the memory reads for the chunk of an allocated line, for its tag line if not on
// chip, and for tree nodes.
//
// Handshake: chunks in (valid/ready), memory AR valid/ready (registered). A chunk starts (go_o, one
// pulse) only when the ring has room for all its beats, its tag has a place and its mask a slot
// (`bypass`: room only); after that it can no longer stall the memory. Data is requested in bursts
// of at most 512 bytes, and the tag line directly after them. One AR a cycle, the first in the
// cycle after the start. Node reads (valid/ready) go first, but not twice in a row while another
// waits.
`default_nettype none
module shef_fetch
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned RingBeats = 512,
    parameter log2_tab_t ChunkLog2 = '0,
    parameter addr_tab_t Base = '0
) (
    input  wire              clk_i,
    input  wire              rst_ni,
    input  wire              clr_i,        // drop chunks; a valid AR stays valid
    input  wire              stop_i,       // start nothing, no new AR

    input  wire              chunk_valid_i,
    output logic             chunk_ready_o,
    input  wire  reg_idx_t   chunk_region_i,
    input  wire  chunk_idx_t chunk_index_i,
    input  wire              chunk_plain_i,  // no tag, no mask

    output logic             tag_req_o,
    input  wire              tag_gnt_i,
    input  wire              tag_fetch_i,
    input  wire [63:0]       tag_addr_i,
    input  wire              mask_ready_i,
    output logic             go_o,
    input  wire              beat_done_i,   // one ring place became free

    input  wire              node_valid_i,
    output logic             node_ready_o,
    input  wire [63:0]       node_addr_i,

    output axi_ax_t          ar_o,
    output logic             ar_valid_o,
    input  wire              ar_ready_i
);
  localparam int unsigned CW = $clog2(RingBeats) + 1;

  typedef struct packed {
    logic [3:0] bursts;   // remaining bursts of data
    logic tag;            // and the tag line
    logic [2:0] len;
    logic [63:0] addr;
    logic [63:0] tag_addr;
  } work_t;

  logic [CW-1:0] free_q;
  logic [6:0] beats;
  logic room, can_load, busy_q, ends, ready, node_last_q;
  work_t work_q, work, fresh;
  axi_ax_t ar_q;
  logic ar_valid_q;

  assign beats = 7'd1 << (ChunkLog2[chunk_region_i] - 4'd6);
  assign node_ready_o = (!ar_valid_q || ar_ready_i) && !stop_i && !clr_i &&
      !(node_last_q && busy_q);
  assign can_load = (!ar_valid_q || ar_ready_i) && !(node_valid_i && node_ready_o);
  assign ends = (work_q.bursts == 4'd1 && !work_q.tag) || work_q.bursts == 4'd0;
  assign ready = !busy_q || (can_load && ends);
  assign room = chunk_valid_i && ready && !stop_i && free_q >= CW'(beats);
  assign tag_req_o = room && mask_ready_i && !chunk_plain_i;
  assign go_o = chunk_plain_i ? room : (tag_req_o && tag_gnt_i);
  assign chunk_ready_o = go_o;
  assign ar_o = ar_q;
  assign ar_valid_o = ar_valid_q;

  assign fresh = '{
      bursts: (beats > 7'd8) ? beats[6:3] : 4'd1,
      tag: tag_fetch_i && !chunk_plain_i,
      len: (beats > 7'd8) ? 3'd7 : 3'(beats - 7'd1),
      addr: Base[chunk_region_i] + (64'(chunk_index_i) << ChunkLog2[chunk_region_i]),
      tag_addr: tag_addr_i
  };
  assign work = busy_q ? work_q : fresh;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) free_q <= CW'(RingBeats);
    else free_q <= free_q - (go_o ? CW'(beats) : '0) + CW'(beat_done_i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i || stop_i) begin
      busy_q <= 1'b0;
      work_q <= '0;
    end else begin
      if (can_load && (busy_q || go_o)) begin
        work_q <= work;
        if (work.bursts != '0) begin
          work_q.bursts <= work.bursts - 1'b1;
          work_q.addr <= work.addr + 64'd512;
        end
        busy_q <= work.bursts > 4'd1 || (work.bursts == 4'd1 && work.tag);
      end
      // accepted, but nothing of it could be sent yet
      if (go_o && (busy_q || !can_load)) begin
        work_q <= fresh;
        busy_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
      ar_q <= '0;
      node_last_q <= 1'b0;
    end else if (node_valid_i && node_ready_o) begin
      ar_valid_q <= 1'b1;
      ar_q <= '{id: MEM_ID_NODE, addr: node_addr_i, len: '0, size: AXI_SIZE_64,
          burst: AXI_BURST_INCR};
      node_last_q <= 1'b1;
    end else if (can_load) begin
      node_last_q <= 1'b0;
      ar_valid_q <= (busy_q || go_o) && !stop_i && !clr_i;
      if (busy_q || go_o) begin
        ar_q.burst <= AXI_BURST_INCR;
        ar_q.size <= AXI_SIZE_64;
        ar_q.id <= (work.bursts != '0) ? MEM_ID_DATA : MEM_ID_TAG;
        ar_q.addr <= (work.bursts != '0) ? work.addr : work.tag_addr;
        ar_q.len <= (work.bursts != '0) ? {5'd0, work.len} : '0;
      end
    end
  end
endmodule
`default_nettype wire
