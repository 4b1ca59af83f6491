// PCIS of f2_small_cl: a RAM of 16 KiB. Up to 32 reads and 32 writes wait in it; a beat passes in
// each cycle.
`default_nettype none
module f2_small_pcis
  import f2_fault_pkg::*;
(
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire fault_e       fault_i,
    input  wire logic [63:0]  awaddr_i,
    input  wire logic [7:0]   awlen_i,
    input  wire logic         awvalid_i,
    output logic              awready_o,
    input  wire logic [511:0] wdata_i,
    input  wire logic [63:0]  wstrb_i,
    input  wire logic         wlast_i,
    input  wire logic         wvalid_i,
    output logic              wready_o,
    output logic      [15:0]  bid_o,
    output logic              bvalid_o,
    input  wire logic         bready_i,
    input  wire logic [63:0]  araddr_i,
    input  wire logic [7:0]   arlen_i,
    input  wire logic         arvalid_i,
    output logic              arready_o,
    output logic      [15:0]  rid_o,
    output logic      [511:0] rdata_o,
    output logic              rlast_o,
    output logic              rvalid_o,
    input  wire logic         rready_i
);
  localparam logic [15:0] ID = 16'h20;
  logic [511:0] ram_q [256];
  logic [15:0] ar_q [32];
  logic [7:0] aw_q [32];
  logic [5:0] ar_in_q, ar_out_q, aw_in_q, aw_out_q, b_owed_q;
  logic [7:0] line_q, left_q, write_line_q;
  logic busy_q, writing_q, extra_q, odd_q;
  logic [9:0] wait_q;

  wire reads = ar_in_q != ar_out_q;
  wire writes = aw_in_q != aw_out_q;
  wire serial = fault_i == PCIS_SERIAL;
  assign arready_o = ar_in_q - ar_out_q != 6'd32 && fault_i != PCIS_READ_NEVER
      && !(serial && (reads || busy_q || rvalid_o));
  assign awready_o = aw_in_q - aw_out_q != 6'd32;
  assign wready_o = writes && b_owed_q != 6'd32;
  wire [7:0] write_line = writing_q ? write_line_q : aw_q[aw_out_q[4:0]];

  // One more answer than there are accesses, or one before the data, once.
  wire extra_r = fault_i == PCIS_R_UNASKED && !extra_q && !reads && !busy_q && !rvalid_o
      && !arvalid_i;
  wire extra_b = fault_i == PCIS_B_UNASKED && !extra_q && awvalid_i && awready_o && b_owed_q == '0
      && !bvalid_o && !writes;
  wire wrong_r = fault_i == PCIS_R_ID && !extra_q;
  wire wrong_b = fault_i == PCIS_B_ID && !extra_q;
  wire take_b = bvalid_o && bready_i;
  wire offer_b = b_owed_q != '0 && (!bvalid_o || take_b) && fault_i != PCIS_WRITE_NEVER;

  always_ff @(posedge clk_i) begin
    if (arvalid_i && arready_o) begin
      ar_q[ar_in_q[4:0]] <= {arlen_i, araddr_i[13:6]};
      ar_in_q <= ar_in_q + 1'b1;
    end
    if (awvalid_i && awready_o) begin
      aw_q[aw_in_q[4:0]] <= awaddr_i[13:6];
      aw_in_q <= aw_in_q + 1'b1;
    end

    // R
    wait_q <= wait_q + 1'b1;
    if (rvalid_o && !rready_i && fault_i == PCIS_R_CHANGES) rdata_o[7:0] <= ~rdata_o[7:0];
    if (rvalid_o && rready_i) rvalid_o <= 1'b0;
    if (!busy_q && reads) begin
      {left_q, line_q} <= ar_q[ar_out_q[4:0]];
      ar_out_q <= ar_out_q + 1'b1;
      busy_q <= 1'b1;
      wait_q <= '0;
    end else if (busy_q && (!rvalid_o || rready_i) && (!serial || wait_q > 10'd300)) begin
      rvalid_o <= 1'b1;
      rdata_o <= ram_q[line_q];
      rlast_o <= left_q == '0 && fault_i != PCIS_RLAST;
      rid_o <= wrong_r ? ID + 16'd1 : ID;
      if (wrong_r) extra_q <= 1'b1;
      else begin
        line_q <= line_q + 1'b1;
        left_q <= left_q - 1'b1;
        busy_q <= left_q != '0;
      end
    end
    if (extra_r) begin
      rvalid_o <= 1'b1;
      extra_q <= 1'b1;
    end

    // W and B
    if (wvalid_i && wready_o) begin
      for (int k = 0; k < 64; k++) begin
        if (wstrb_i[k]) ram_q[write_line][8*k+:8] <= wdata_i[8*k+:8];
      end
      write_line_q <= write_line + 1'b1;
      writing_q <= !wlast_i;
      if (wlast_i) aw_out_q <= aw_out_q + 1'b1;
    end
    odd_q <= bvalid_o && !bready_i && fault_i == PCIS_B_FALLS && !odd_q;
    if (take_b) bvalid_o <= 1'b0;
    if (bvalid_o && !bready_i && fault_i == PCIS_B_FALLS && !odd_q) bvalid_o <= 1'b0;
    if (odd_q) bvalid_o <= 1'b1;
    if (offer_b && !odd_q) begin
      bvalid_o <= 1'b1;
      bid_o <= wrong_b ? ID + 16'd1 : ID;
      if (wrong_b) extra_q <= 1'b1;
    end
    b_owed_q <= b_owed_q + 6'(wvalid_i && wready_o && wlast_i)
        - 6'(offer_b && !odd_q && !wrong_b);
    if (extra_b) begin
      bvalid_o <= 1'b1;
      bid_o <= ID;
      extra_q <= 1'b1;
    end
    if (!rst_ni) begin
      {ar_in_q, ar_out_q, aw_in_q, aw_out_q, b_owed_q} <= '0;
      {rvalid_o, bvalid_o, busy_q, writing_q, extra_q, odd_q} <= '0;
    end
  end
endmodule
`default_nettype wire
