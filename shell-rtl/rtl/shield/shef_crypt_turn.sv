// Arbiter of GHASH and of the write port of the lines: grants each cycle to decryption, the write
// acceptor or the seal, and sends their beats and tree nodes to GHASH.
//
// dec_*, seal_*: a beat waits (req_i) and is used in this cycle (fire_o). Decryption writes a line
// and, unless plain, uses GHASH; the acceptor (put_wait_i) writes a line; the seal uses GHASH. So
// decryption and the two others take turns when both wait. node_*: a tree node (valid/ready), with
// priority. free_o: GHASH accepts a beat of a chunk. gh_*: to GHASH (valid/ready), in the same
// cycle.
`default_nettype none
module shef_crypt_turn
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter id_tab_t RegionId = '0
) (
    input  wire              clk_i,
    input  wire              rst_ni,
    input  wire              stop_i,

    input  wire              put_wait_i,
    input  wire              dec_req_i,
    input  wire              dec_plain_i,
    input  wire  gh_beat_t   dec_beat_i,
    output logic             dec_fire_o,
    input  wire              seal_req_i,     // whether or not GHASH is free
    input  wire              seal_plain_i,
    input  wire  gh_beat_t   seal_beat_i,
    output logic             seal_fire_o,
    input  wire  node_gh_t   node_i,
    output logic             node_ready_o,

    output logic             free_o,
    output logic             gh_valid_o,
    input  wire              gh_ready_i,
    output logic [1:0]       gh_slot_o,
    output gh_beat_t         gh_o
);
  logic seal_req, dec_wins, turn_q;

  assign node_ready_o = gh_ready_i && !stop_i;
  assign free_o = gh_ready_i && !node_i.valid;
  assign seal_req = seal_req_i && (free_o || seal_plain_i);
  assign dec_wins = turn_q || !(put_wait_i || seal_req);
  assign dec_fire_o = dec_req_i && dec_wins;
  assign seal_fire_o = seal_req && !dec_fire_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_q <= 1'b0;
    else if (dec_fire_o) turn_q <= 1'b0;
    else if (dec_req_i) turn_q <= 1'b1;
  end

  always_comb begin
    gh_valid_o = (dec_fire_o && !dec_plain_i) || (seal_fire_o && !seal_plain_i);
    gh_slot_o = seal_fire_o ? GH_SEAL : GH_READ;
    gh_o = '0;
    if (node_i.valid) begin
      gh_valid_o = !stop_i;
      gh_slot_o = GH_NODE;
      gh_o = '{key: {1'b1, RegionId[node_i.region][3:0]}, first: 1'b1, last: 1'b1, pow: '0,
          data: node_i.data};
    end else if (dec_fire_o) begin
      gh_o = dec_beat_i;
      gh_o.data = byte_reverse512(dec_beat_i.data);
    end else if (seal_fire_o) begin
      gh_o = seal_beat_i;
      gh_o.data = byte_reverse512(seal_beat_i.data);
    end
  end
endmodule
`default_nettype wire
