// Fetch: turns a taken line into the memory reads of its chunk and, if its tag line is not on chip, of that tag line.
//
// Handshake: chunks in (valid/ready), memory AR valid/ready (registered). A chunk starts (go_o, one pulse) only when the ring
// has room for all its beats, its tag has a place and its mask a slot; everything after that can no longer stall the memory.
// Data is asked for in bursts of at most 512 bytes, then at once the tag line. One AR a cycle.
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
    input  wire              clr_i,        // forget chunks; an AR that is up stays up
    input  wire              stop_i,       // start nothing, no new AR

    input  wire              chunk_valid_i,
    output logic             chunk_ready_o,
    input  wire  reg_idx_t   chunk_region_i,
    input  wire  chunk_idx_t chunk_index_i,

    output logic             tag_req_o,
    input  wire              tag_gnt_i,
    input  wire              tag_fetch_i,
    input  wire [63:0]       tag_addr_i,
    input  wire              mask_ready_i,
    output logic             go_o,
    input  wire              beat_done_i,   // one ring place became free

    output axi_ax_t          ar_o,
    output logic             ar_valid_o,
    input  wire              ar_ready_i
);
  localparam int unsigned CW = $clog2(RingBeats) + 1;

  logic [CW-1:0] free_q;
  logic [6:0] beats;
  logic ready, can_load, last_item, busy_q, tag_q;
  logic [3:0] bursts_q;   // data bursts left
  logic [2:0] len_q;
  logic [63:0] addr_q, tag_addr_q;
  axi_ax_t ar_q;
  logic ar_valid_q;

  assign beats = 7'd1 << (ChunkLog2[chunk_region_i] - 4'd6);
  assign can_load = !ar_valid_q || ar_ready_i;
  assign last_item = (bursts_q == 4'd1 && !tag_q) || bursts_q == 4'd0;
  assign ready = !busy_q || (can_load && last_item);
  assign tag_req_o = chunk_valid_i && ready && !stop_i && mask_ready_i && free_q >= CW'(beats);
  assign go_o = tag_req_o && tag_gnt_i;
  assign chunk_ready_o = go_o;
  assign ar_o = ar_q;
  assign ar_valid_o = ar_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) free_q <= CW'(RingBeats);
    else free_q <= free_q - (go_o ? CW'(beats) : '0) + CW'(beat_done_i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i || stop_i) begin
      busy_q <= 1'b0;
      bursts_q <= '0;
      tag_q <= 1'b0;
      len_q <= '0;
      addr_q <= '0;
      tag_addr_q <= '0;
    end else begin
      if (busy_q && can_load) begin
        if (bursts_q != '0) begin
          bursts_q <= bursts_q - 1'b1;
          addr_q <= addr_q + 64'd512;
        end else tag_q <= 1'b0;
        if (last_item) busy_q <= 1'b0;
      end
      if (go_o) begin
        busy_q <= 1'b1;
        bursts_q <= (beats > 7'd8) ? beats[6:3] : 4'd1;
        len_q <= (beats > 7'd8) ? 3'd7 : 3'(beats - 7'd1);
        addr_q <= Base[chunk_region_i] + (64'(chunk_index_i) << ChunkLog2[chunk_region_i]);
        tag_q <= tag_fetch_i;
        tag_addr_q <= tag_addr_i;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
      ar_q <= '0;
    end else if (can_load) begin
      ar_valid_q <= busy_q && !stop_i && !clr_i;
      if (busy_q) begin
        ar_q.burst <= AXI_BURST_INCR;
        ar_q.size <= AXI_SIZE_64;
        if (bursts_q != '0) begin
          ar_q.id <= MEM_ID_DATA;
          ar_q.addr <= addr_q;
          ar_q.len <= {5'd0, len_q};
        end else begin
          ar_q.id <= MEM_ID_TAG;
          ar_q.addr <= tag_addr_q;
          ar_q.len <= '0;
        end
      end
    end
  end
endmodule
`default_nettype wire
