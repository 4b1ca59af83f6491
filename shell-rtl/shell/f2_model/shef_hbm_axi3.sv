// A port of the HBM in simulation: AXI3 of 256 bits on one side, a memory port of 512 bits on the
// other.
//
// A burst is whole pairs of beats, from an address that is a multiple of 64. The halves of beats
// with different ids alternate on R as far as the memory offers them. A write byte whose parity is
// wrong is stored inverted. up_i low: no request is taken, and with early_i there must be none.
// error_o: a request or its data have broken the rules of the port.
`default_nettype none
module shef_hbm_axi3
  import shef_pkg::*;
(
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic         up_i,
    input  wire logic         early_i,
    input  wire logic [5:0]   aw_id_i,
    input  wire logic [33:0]  aw_addr_i,
    input  wire logic [3:0]   aw_len_i,
    input  wire logic [2:0]   aw_size_i,
    input  wire logic [1:0]   aw_burst_i,
    input  wire logic         aw_valid_i,
    output logic              aw_ready_o,
    input  wire logic [255:0] w_data_i,
    input  wire logic [31:0]  w_strb_i,
    input  wire logic [31:0]  w_parity_i,
    input  wire logic         w_last_i,
    input  wire logic         w_valid_i,
    output logic              w_ready_o,
    output logic [5:0]        b_id_o,
    output logic [1:0]        b_resp_o,
    output logic              b_valid_o,
    input  wire logic         b_ready_i,
    input  wire logic [5:0]   ar_id_i,
    input  wire logic [33:0]  ar_addr_i,
    input  wire logic [3:0]   ar_len_i,
    input  wire logic [2:0]   ar_size_i,
    input  wire logic [1:0]   ar_burst_i,
    input  wire logic         ar_valid_i,
    output logic              ar_ready_o,
    output logic [5:0]        r_id_o,
    output logic [255:0]      r_data_o,
    output logic [1:0]        r_resp_o,
    output logic              r_last_o,
    output logic              r_valid_o,
    input  wire logic         r_ready_i,
    output logic              error_o,
    output axi_req_t          req_o,
    input  wire axi_rsp_t     rsp_i
);
  wire on = rst_ni && up_i;

  // ---- write data: a lower half waits for its upper one ----
  logic half_q;
  logic [255:0] low_q, stored;
  logic [31:0] low_strb_q;
  wire w_fire = w_valid_i && w_ready_o;
  for (genvar i = 0; i < 32; i++) begin : g_parity
    assign stored[8*i+:8] = w_data_i[8*i+:8] ^ {8{w_parity_i[i] != ^w_data_i[8*i+:8]}};
  end
  assign w_ready_o = on && (!half_q || rsp_i.w_ready);
  always_ff @(posedge clk_i) begin
    if (!on) half_q <= 1'b0;
    else if (w_fire) half_q <= !half_q;
    if (w_fire && !half_q) {low_q, low_strb_q} <= {stored, w_strb_i};
  end

  // ---- read data: up to two upper halves wait, the oldest first ----
  typedef struct packed {
    logic [5:0] id;
    logic [255:0] data;
    logic [1:0] resp;
    logic last;
  } half_t;
  half_t old_q, new_q;
  logic [1:0] held_q;
  wire half_t upper = '{id: rsp_i.r.id[5:0], data: rsp_i.r.data[511:256], resp: rsp_i.r.resp,
      last: rsp_i.r.last};
  wire same = held_q != 2'd0 && old_q.id == upper.id || held_q == 2'd2 && new_q.id == upper.id;
  wire lower = on && rsp_i.r_valid && held_q != 2'd2 && !same;
  wire push = lower && r_ready_i;
  wire pop = !lower && held_q != 2'd0 && r_ready_i;
  assign r_valid_o = on && (lower || held_q != 2'd0);
  assign {r_id_o, r_data_o, r_resp_o, r_last_o} =
      lower ? {upper.id, rsp_i.r.data[255:0], upper.resp, 1'b0} : old_q;
  always_ff @(posedge clk_i) begin
    if (!on) held_q <= 2'd0;
    else held_q <= held_q + 2'(push) - 2'(pop);
    if (push && held_q == 2'd0) old_q <= upper;
    if (push && held_q == 2'd1) new_q <= upper;
    if (pop) old_q <= new_q;
  end

  // ---- the rest passes ----
  assign aw_ready_o = on && rsp_i.aw_ready;
  assign ar_ready_o = on && rsp_i.ar_ready;
  assign b_id_o = rsp_i.b.id[5:0];
  assign b_resp_o = rsp_i.b.resp;
  assign b_valid_o = on && rsp_i.b_valid;
  assign req_o = '{
      aw: '{id: 8'(aw_id_i), addr: 64'(aw_addr_i), len: 8'(aw_len_i[3:1]), size: AXI_SIZE_64,
          burst: AXI_BURST_INCR},
      aw_valid: on && aw_valid_i,
      w: '{data: {stored, low_q}, strb: {w_strb_i, low_strb_q}, last: w_last_i},
      w_valid: on && w_valid_i && half_q,
      b_ready: on && b_ready_i,
      ar: '{id: 8'(ar_id_i), addr: 64'(ar_addr_i), len: 8'(ar_len_i[3:1]), size: AXI_SIZE_64,
          burst: AXI_BURST_INCR},
      ar_valid: on && ar_valid_i,
      r_ready: push
  };
  wire bad_aw = !aw_len_i[0] || aw_addr_i[5:0] != '0 || aw_size_i != 3'd5 || aw_burst_i != 2'd1;
  wire bad_ar = !ar_len_i[0] || ar_addr_i[5:0] != '0 || ar_size_i != 3'd5 || ar_burst_i != 2'd1;
  wire asks = aw_valid_i || ar_valid_i || w_valid_i;
  initial error_o = 1'b0;
  always_ff @(posedge clk_i) begin
    if (rst_ni && (asks && early_i || aw_valid_i && bad_aw || ar_valid_i && bad_ar ||
        w_valid_i && !half_q && w_last_i || rsp_i.b_valid && rsp_i.b.id[7:6] != '0 ||
        rsp_i.r_valid && rsp_i.r.id[7:6] != '0))
      error_o <= 1'b1;
  end
endmodule
`default_nettype wire
