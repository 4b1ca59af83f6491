// Replaces the engine sets in a Shield without card memory: refuses every burst of the accelerator.
//
// acc: AXI4 slave. A burst is accepted, its data is consumed or returned as zeros, and the response
// is SLVERR; reads and writes do not wait for each other, one burst each way at a time. refusal_*:
// one pulse per refused burst, [0] reads, [1] writes; there is no pulse once stop_i is high.
// enable_i low: the burst is refused because no session is keyed. The block stores no data, so
// there is nothing to wipe.
`default_nettype none
module shef_no_memory
  import shef_pkg::*;
  import shef_set_pkg::*;
(
    input  wire             clk_i,
    input  wire             rst_ni,
    input  wire             enable_i,
    input  wire             stop_i,
    input  wire axi_req_t  acc_req_i,
    output axi_rsp_t        acc_rsp_o,
    output logic [1:0]      refusal_valid_o,
    output refusal_t [1:0]  refusal_o
);
  // ---- reason of the refusal: outside every region, unless another applies ----
  seg_t [1:0] seg;
  logic [1:0] seg_valid, seg_ready, ax_ready;
  for (genvar d = 0; d < 2; d++) begin : g_split
    shef_split #(.IsWrite(d == 1)) u_split (
        .clk_i, .rst_ni, .enable_i, .epoch_zero_i('0), .exhausted_i('0),
        .ax_i(d == 1 ? acc_req_i.aw : acc_req_i.ar),
        .ax_valid_i(d == 1 ? acc_req_i.aw_valid : acc_req_i.ar_valid),
        .ax_ready_o(ax_ready[d]),
        .seg_o(seg[d]), .seg_valid_o(seg_valid[d]), .seg_ready_i(seg_ready[d])
    );
    assign refusal_valid_o[d] = seg_valid[d] && seg_ready[d] && !stop_i;
    assign refusal_o[d] = '{kind: seg[d].refuse, region: 8'hff, addr: seg[d].addr};
  end

  // ---- reads ----
  logic [8:0] r_left_q;  // beats
  logic [AXI_ID_W-1:0] r_id_q;
  assign seg_ready[0] = r_left_q == '0;

  // ---- writes ----
  logic [8:0] w_left_q;
  logic [AXI_ID_W-1:0] w_id_q;
  logic b_q;  // the response is owed
  assign seg_ready[1] = w_left_q == '0 && !b_q;

  assign acc_rsp_o = '{
      aw_ready: ax_ready[1],
      w_ready: w_left_q != '0,
      b: '{id: w_id_q, resp: AXI_SLVERR},
      b_valid: b_q,
      ar_ready: ax_ready[0],
      r: '{id: r_id_q, data: '0, resp: AXI_SLVERR, last: r_left_q == 9'd1},
      r_valid: r_left_q != '0
  };

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_left_q <= '0;
      r_id_q <= '0;
      w_left_q <= '0;
      w_id_q <= '0;
      b_q <= 1'b0;
    end else begin
      if (seg_valid[0] && seg_ready[0]) begin
        r_left_q <= seg[0].beats;
        r_id_q <= seg[0].id;
      end else if (acc_rsp_o.r_valid && acc_req_i.r_ready) r_left_q <= r_left_q - 1'b1;

      if (seg_valid[1] && seg_ready[1]) begin
        w_left_q <= seg[1].beats;
        w_id_q <= seg[1].id;
      end else if (acc_rsp_o.w_ready && acc_req_i.w_valid) begin
        w_left_q <= w_left_q - 1'b1;
        b_q <= w_left_q == 9'd1;
      end else if (acc_req_i.b_ready) b_q <= 1'b0;
    end
  end

  logic unused;
  assign unused = ^{acc_req_i.w, seg};
endmodule
`default_nettype wire
