// A memory port of the core on a port of the HBM: 512 bits to 256 bits, AXI4 to AXI3, ids of 8 bits
// to 6 bits.
//
// core_*: AXI4 slave for whole beats, at most 8 of them. hbm_*: AXI3 master: two beats for each, 5
// for AxSIZE and INCR for AxBURST; no WID. Read beats of different ids may alternate.
// hbm_w_parity_o is the parity of each byte (even with it). Addresses are those of the HBM: bits
// above 33 are not used. A request takes a cycle, and waits for an id (shef_f2_ids); data take
// none. 32 bytes a cycle each way. Everything is on the clock of the HBM port.
`default_nettype none
module shef_f2_hbm
  import shef_pkg::*;
#(
    parameter int unsigned NarrowBits = 6,
    parameter int unsigned CountBits = 8  // as in shef_f2_ids
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire axi_req_t     core_req_i,
    output axi_rsp_t          core_rsp_o,
    output logic [NarrowBits-1:0] hbm_aw_id_o,
    output logic [33:0]       hbm_aw_addr_o,
    output logic [3:0]        hbm_aw_len_o,
    output logic              hbm_aw_valid_o,
    input  wire logic         hbm_aw_ready_i,
    output logic [255:0]      hbm_w_data_o,
    output logic [31:0]       hbm_w_strb_o,
    output logic [31:0]       hbm_w_parity_o,
    output logic              hbm_w_last_o,
    output logic              hbm_w_valid_o,
    input  wire logic         hbm_w_ready_i,
    input  wire logic [NarrowBits-1:0] hbm_b_id_i,
    input  wire logic [1:0]   hbm_b_resp_i,
    input  wire logic         hbm_b_valid_i,
    output logic              hbm_b_ready_o,
    output logic [NarrowBits-1:0] hbm_ar_id_o,
    output logic [33:0]       hbm_ar_addr_o,
    output logic [3:0]        hbm_ar_len_o,
    output logic              hbm_ar_valid_o,
    input  wire logic         hbm_ar_ready_i,
    input  wire logic [NarrowBits-1:0] hbm_r_id_i,
    input  wire logic [255:0] hbm_r_data_i,
    input  wire logic [1:0]   hbm_r_resp_i,
    input  wire logic         hbm_r_last_i,
    input  wire logic         hbm_r_valid_i,
    output logic              hbm_r_ready_o
);
  localparam int unsigned N = 1 << NarrowBits;

  // ---- requests ----
  logic aw_known, ar_known, b_end, r_end;
  logic [7:0] b_id, r_id;
  logic [NarrowBits-1:0] aw_id, ar_id;
  wire aw_ready = (!hbm_aw_valid_o || hbm_aw_ready_i) && aw_known;
  wire ar_ready = (!hbm_ar_valid_o || hbm_ar_ready_i) && ar_known;
  wire aw_take = core_req_i.aw_valid && aw_ready;
  wire ar_take = core_req_i.ar_valid && ar_ready;
  shef_f2_ids #(
      .NarrowBits(NarrowBits),
      .CountBits(CountBits)
  ) u_writes (
      .clk_i,
      .rst_ni,
      .ask_i(core_req_i.aw.id),
      .ask_take_i(aw_take),
      .ask_ready_o(aw_known),
      .ask_o(aw_id),
      .done_i(hbm_b_id_i),
      .done_take_i(b_end),
      .done_o(b_id)
  );
  shef_f2_ids #(
      .NarrowBits(NarrowBits),
      .CountBits(CountBits)
  ) u_reads (
      .clk_i,
      .rst_ni,
      .ask_i(core_req_i.ar.id),
      .ask_take_i(ar_take),
      .ask_ready_o(ar_known),
      .ask_o(ar_id),
      .done_i(hbm_r_id_i),
      .done_take_i(r_end),
      .done_o(r_id)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      hbm_aw_valid_o <= 1'b0;
      hbm_ar_valid_o <= 1'b0;
    end else begin
      if (aw_take || hbm_aw_ready_i) hbm_aw_valid_o <= aw_take;
      if (ar_take || hbm_ar_ready_i) hbm_ar_valid_o <= ar_take;
    end
  end
  always_ff @(posedge clk_i) begin
    if (aw_take) begin
      hbm_aw_id_o <= aw_id;
      hbm_aw_addr_o <= core_req_i.aw.addr[33:0];
      hbm_aw_len_o <= {core_req_i.aw.len[2:0], 1'b1};
    end
    if (ar_take) begin
      hbm_ar_id_o <= ar_id;
      hbm_ar_addr_o <= core_req_i.ar.addr[33:0];
      hbm_ar_len_o <= {core_req_i.ar.len[2:0], 1'b1};
    end
  end

  // ---- write data: the lower half, then the upper one ----
  logic upper_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) upper_q <= 1'b0;
    else if (core_req_i.w_valid && hbm_w_ready_i) upper_q <= !upper_q;
  end
  assign hbm_w_data_o = upper_q ? core_req_i.w.data[511:256] : core_req_i.w.data[255:0];
  assign hbm_w_strb_o = upper_q ? core_req_i.w.strb[63:32] : core_req_i.w.strb[31:0];
  assign hbm_w_last_o = upper_q && core_req_i.w.last;
  assign hbm_w_valid_o = core_req_i.w_valid;
  for (genvar i = 0; i < 32; i++) begin : g_parity
    assign hbm_w_parity_o[i] = ^hbm_w_data_o[8*i+:8];
  end

  // ---- read data: the lower half waits, by id ----
  logic [257:0] low_q[N];
  logic [N-1:0] half_q;
  logic [1:0] low_resp;
  logic [255:0] low_data;
  assign {low_resp, low_data} = low_q[hbm_r_id_i];
  wire r_half = half_q[hbm_r_id_i];
  wire r_fire = hbm_r_valid_i && hbm_r_ready_o;
  assign hbm_r_ready_o = !r_half || core_req_i.r_ready;
  assign r_end = r_fire && r_half && hbm_r_last_i;
  assign hbm_b_ready_o = core_req_i.b_ready;
  assign b_end = hbm_b_valid_i && core_req_i.b_ready;
  always_ff @(posedge clk_i) begin
    if (r_fire && !r_half) low_q[hbm_r_id_i] <= {hbm_r_resp_i, hbm_r_data_i};
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) half_q <= '0;
    else if (r_fire) half_q[hbm_r_id_i] <= !r_half;
  end

  assign core_rsp_o = '{
      aw_ready: aw_ready,
      w_ready: hbm_w_ready_i && upper_q,
      b: '{id: b_id, resp: hbm_b_resp_i},
      b_valid: hbm_b_valid_i,
      ar_ready: ar_ready,
      r: '{
          id: r_id,
          data: {hbm_r_data_i, low_data},
          resp: low_resp != AXI_OKAY ? low_resp : hbm_r_resp_i,
          last: hbm_r_last_i
      },
      r_valid: hbm_r_valid_i && r_half
  };

  // The core's ports send whole beats, up to 8 of them, inside 512 bytes.
  logic unused;
  assign unused = ^{core_req_i.aw.addr[63:34], core_req_i.aw.len[7:3], core_req_i.aw.size,
      core_req_i.aw.burst, core_req_i.ar.addr[63:34], core_req_i.ar.len[7:3], core_req_i.ar.size,
      core_req_i.ar.burst};
endmodule
`default_nettype wire
