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
    input  wire  axi_ax_t   acc_aw_i,
    input  wire             acc_aw_valid_i,
    output logic            acc_aw_ready_o,
    input  wire             acc_w_valid_i,
    output logic            acc_w_ready_o,
    output axi_b_t          acc_b_o,
    output logic            acc_b_valid_o,
    input  wire             acc_b_ready_i,
    input  wire  axi_ax_t   acc_ar_i,
    input  wire             acc_ar_valid_i,
    output logic            acc_ar_ready_o,
    output axi_r_t          acc_r_o,
    output logic            acc_r_valid_o,
    input  wire             acc_r_ready_i,
    output logic [1:0]      refusal_valid_o,
    output refusal_t [1:0]  refusal_o
);
  // ---- reason of the refusal: outside every region, unless another applies ----
  seg_t [1:0] seg;
  logic [1:0] seg_valid, seg_ready, ax_ready;
  for (genvar d = 0; d < 2; d++) begin : g_split
    shef_split #(.IsWrite(d == 1)) i_split (
        .clk_i, .rst_ni, .enable_i, .epoch_zero_i('0), .exhausted_i('0),
        .ax_i(d == 1 ? acc_aw_i : acc_ar_i), .ax_valid_i(d == 1 ? acc_aw_valid_i : acc_ar_valid_i),
        .ax_ready_o(ax_ready[d]),
        .seg_o(seg[d]), .seg_valid_o(seg_valid[d]), .seg_ready_i(seg_ready[d])
    );
    assign refusal_valid_o[d] = seg_valid[d] && seg_ready[d] && !stop_i;
    assign refusal_o[d] = '{kind: seg[d].refuse, region: 8'hff, addr: seg[d].addr};
  end
  assign {acc_aw_ready_o, acc_ar_ready_o} = ax_ready;

  // ---- reads ----
  logic [8:0] r_left_q;  // beats
  logic [AXI_ID_W-1:0] r_id_q;
  assign seg_ready[0] = r_left_q == '0;
  assign acc_r_valid_o = r_left_q != '0;
  assign acc_r_o = '{id: r_id_q, data: '0, resp: AXI_SLVERR, last: r_left_q == 9'd1};

  // ---- writes ----
  logic [8:0] w_left_q;
  logic [AXI_ID_W-1:0] w_id_q;
  logic b_q;  // the response is owed
  assign seg_ready[1] = w_left_q == '0 && !b_q;
  assign acc_w_ready_o = w_left_q != '0;
  assign acc_b_valid_o = b_q;
  assign acc_b_o = '{id: w_id_q, resp: AXI_SLVERR};

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
      end else if (acc_r_valid_o && acc_r_ready_i) r_left_q <= r_left_q - 1'b1;

      if (seg_valid[1] && seg_ready[1]) begin
        w_left_q <= seg[1].beats;
        w_id_q <= seg[1].id;
      end else if (acc_w_ready_o && acc_w_valid_i) begin
        w_left_q <= w_left_q - 1'b1;
        b_q <= w_left_q == 9'd1;
      end else if (acc_b_ready_i) b_q <= 1'b0;
    end
  end

  logic unused;
  assign unused = ^seg;
endmodule
`default_nettype wire
