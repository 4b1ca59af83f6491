// Gate at a memory port of the accelerator: counts outstanding transfers, and completes them while
// the accelerator is held in reset.
//
// A W beat passes only when an accepted burst owes it (one cycle after its AW at the earliest).
// While run_i is low the accelerator issues no requests, owed beats are sent with zeros and no
// strobes, and every response is accepted. idle_o: no beat and no response is owed. Payloads of AW,
// AR, B and R pass unchanged. At most 2^15 + 256 beats are owed.
`default_nettype none
module shef_acc_gate
  import shef_pkg::*;
(
    input  wire logic     clk_i,
    input  wire logic     rst_ni,
    input  wire logic     run_i,
    // accelerator
    input  wire axi_req_t acc_req_i,
    output axi_rsp_t      acc_rsp_o,
    // Shield
    output axi_req_t      shield_req_o,
    input  wire axi_rsp_t shield_rsp_i,
    output logic          idle_o
);
  logic [15:0] beats_q, writes_q, reads_q;  // owed W beats, B and R bursts
  logic aw_fire, w_fire, b_fire, ar_fire, r_fire, aw_room;

  assign aw_room = !beats_q[15];
  assign idle_o = beats_q == '0 && writes_q == '0 && reads_q == '0;
  always_comb begin
    shield_req_o = acc_req_i;
    shield_req_o.aw_valid = acc_req_i.aw_valid && run_i && aw_room;
    shield_req_o.w_valid = beats_q != '0 && (acc_req_i.w_valid || !run_i);
    // W's last is unused: beats are counted by AWLEN.
    if (!run_i) begin
      shield_req_o.w.data = '0;
      shield_req_o.w.strb = '0;
    end
    shield_req_o.b_ready = acc_req_i.b_ready || !run_i;
    shield_req_o.ar_valid = acc_req_i.ar_valid && run_i;
    shield_req_o.r_ready = acc_req_i.r_ready || !run_i;
  end
  always_comb begin
    acc_rsp_o = shield_rsp_i;
    acc_rsp_o.aw_ready = shield_rsp_i.aw_ready && run_i && aw_room;
    acc_rsp_o.w_ready = beats_q != '0 && shield_rsp_i.w_ready && run_i;
    acc_rsp_o.ar_ready = shield_rsp_i.ar_ready && run_i;
  end

  assign aw_fire = shield_req_o.aw_valid && shield_rsp_i.aw_ready;
  assign w_fire = shield_req_o.w_valid && shield_rsp_i.w_ready;
  assign b_fire = shield_rsp_i.b_valid && shield_req_o.b_ready;
  assign ar_fire = shield_req_o.ar_valid && shield_rsp_i.ar_ready;
  assign r_fire = shield_rsp_i.r_valid && shield_req_o.r_ready && shield_rsp_i.r.last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beats_q <= '0;
      writes_q <= '0;
      reads_q <= '0;
    end else begin
      beats_q <= beats_q + (aw_fire ? {8'd0, acc_req_i.aw.len} + 16'd1 : 16'd0) - 16'(w_fire);
      writes_q <= writes_q + 16'(aw_fire) - 16'(b_fire);
      reads_q <= reads_q + 16'(ar_fire) - 16'(r_fire);
    end
  end
endmodule
`default_nettype wire
