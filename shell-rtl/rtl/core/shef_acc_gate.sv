// Gate at a memory port of the accelerator: counts outstanding transfers, and completes them while
// the accelerator is held in reset.
//
// A W beat passes only when an accepted burst owes it (one cycle after its AW at the earliest).
// While run_i is low the accelerator issues no requests, owed beats are sent with zeros and no
// strobes, and every response is accepted. idle_o: no beat and no response is owed. Payloads of AW,
// AR, B and R do not pass through this block. At most 2^15 + 256 beats are owed.
`default_nettype none
module shef_acc_gate
  import shef_pkg::*;
(
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       run_i,
    // accelerator
    input  wire logic [7:0] aw_len_i,
    input  wire logic       aw_valid_i,
    output logic            aw_ready_o,
    input  wire axi_w_t     w_i,
    input  wire logic       w_valid_i,
    output logic            w_ready_o,
    input  wire logic       b_ready_i,
    input  wire logic       ar_valid_i,
    output logic            ar_ready_o,
    input  wire logic       r_ready_i,
    // Shield
    output logic            aw_valid_o,
    input  wire logic       aw_ready_i,
    output axi_w_t          w_o,
    output logic            w_valid_o,
    input  wire logic       w_ready_i,
    input  wire logic       b_valid_i,
    output logic            b_ready_o,
    output logic            ar_valid_o,
    input  wire logic       ar_ready_i,
    input  wire logic       r_valid_i,
    input  wire logic       r_last_i,
    output logic            r_ready_o,
    output logic            idle_o
);
  logic [15:0] beats_q, writes_q, reads_q;  // owed W beats, B and R bursts
  logic aw_fire, w_fire, b_fire, ar_fire, r_fire, aw_room;

  assign aw_room = !beats_q[15];
  assign aw_valid_o = aw_valid_i && run_i && aw_room;
  assign aw_ready_o = aw_ready_i && run_i && aw_room;
  assign ar_valid_o = ar_valid_i && run_i;
  assign ar_ready_o = ar_ready_i && run_i;
  assign w_valid_o = beats_q != '0 && (w_valid_i || !run_i);
  assign w_ready_o = beats_q != '0 && w_ready_i && run_i;
  assign w_o.data = run_i ? w_i.data : '0;
  assign w_o.strb = run_i ? w_i.strb : '0;
  assign w_o.last = w_i.last;  // unused: beats are counted by AWLEN
  assign b_ready_o = b_ready_i || !run_i;
  assign r_ready_o = r_ready_i || !run_i;
  assign idle_o = beats_q == '0 && writes_q == '0 && reads_q == '0;

  assign aw_fire = aw_valid_o && aw_ready_i;
  assign w_fire = w_valid_o && w_ready_i;
  assign b_fire = b_valid_i && b_ready_o;
  assign ar_fire = ar_valid_o && ar_ready_i;
  assign r_fire = r_valid_i && r_ready_o && r_last_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beats_q <= '0;
      writes_q <= '0;
      reads_q <= '0;
    end else begin
      beats_q <= beats_q + (aw_fire ? {8'd0, aw_len_i} + 16'd1 : 16'd0) - 16'(w_fire);
      writes_q <= writes_q + 16'(aw_fire) - 16'(b_fire);
      reads_q <= reads_q + 16'(ar_fire) - 16'(r_fire);
    end
  end
endmodule
`default_nettype wire
