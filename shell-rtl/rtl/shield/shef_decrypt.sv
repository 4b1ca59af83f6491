// Decryption: combines a beat from the ring with its key stream, and writes it to its line and to
// GHASH, in fetch order.
//
// chunk_*: a chunk was requested from memory (pulse; never more than Depth). ring_*: its beats, in
// arrival order (never more than RingBeats). req_o: a beat and its keystream are present, and GHASH
// is free (gh_free_i) if it is needed; fire_i: the beat was used, in the same cycle. plain_o: the
// region is not encrypted. data_o is the plaintext for the line, cipher_o the input of GHASH.
// filled_o: the last beat of a chunk without a tag was used. waits_o: a beat waits for its
// keystream or GHASH.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are left open by name)
module shef_decrypt
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Depth = 64,
    parameter int unsigned RingBeats = 512,
    parameter log2_tab_t ChunkLog2 = '0,
    parameter logic [MAX_REGIONS-1:0] IsPlain = '0
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    input  wire               stop_i,
    input  wire  [ZERO_W-1:0] zero_addr_i,

    input  wire               chunk_valid_i,
    input  wire  line_t       chunk_line_i,
    input  wire  reg_idx_t    chunk_region_i,
    input  wire               ring_valid_i,
    input  wire  [511:0]      ring_data_i,
    input  wire               ks_valid_i,
    input  wire  [511:0]      ks_i,
    input  wire               gh_free_i,

    output logic              req_o,
    input  wire               fire_i,
    output line_t             line_o,
    output reg_idx_t          region_o,
    output logic [5:0]        beat_o,
    output logic              plain_o,
    output logic [511:0]      data_o,
    output logic [511:0]      cipher_o,
    output logic              first_o,
    output logic              last_o,
    output logic [5:0]        pow_o,       // later beats of the chunk
    output logic              filled_o,
    output logic              waits_o
);
  logic valid, here, ready;
  logic [5:0] beat_q, last_beat;
  logic unused;
  assign unused = ^zero_addr_i;

  shef_bram_fifo #(.W(512), .Depth(RingBeats)) u_ring (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(RingBeats)-1:0]),
      .in_valid_i(ring_valid_i), .in_ready_o(), .in_data_i(ring_data_i),
      .out_valid_o(here), .out_ready_i(fire_i), .out_data_o(cipher_o), .count_o()
  );
  shef_fifo #(.W(LINE_W + REGION_W), .Depth(Depth)) u_order (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Depth)-1:0]),
      .in_valid_i(chunk_valid_i), .in_ready_o(), .in_data_i({chunk_line_i, chunk_region_i}),
      .out_valid_o(valid), .out_ready_i(fire_i && last_o), .out_data_o({line_o, region_o}),
      .count_o()
  );
  assign last_beat = 6'((7'd1 << (ChunkLog2[region_o] - 4'd6)) - 7'd1);
  assign beat_o = beat_q;
  assign first_o = beat_q == '0;
  assign last_o = beat_q == last_beat;
  assign pow_o = last_beat - beat_q;
  assign plain_o = IsPlain[region_o];
  assign data_o = plain_o ? cipher_o : cipher_o ^ ks_i;
  assign ready = plain_o || (ks_valid_i && gh_free_i);
  assign req_o = valid && here && ready && !stop_i;
  assign waits_o = valid && here && !ready && !stop_i;
  assign filled_o = fire_i && last_o && plain_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) beat_q <= '0;
    else if (fire_i) beat_q <= last_o ? '0 : beat_q + 1'b1;
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
