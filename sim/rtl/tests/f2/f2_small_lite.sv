// AXI4-Lite slave of f2_small_cl. A write is performed in the cycle of write_o; read_data_i belongs
// to read_addr_o. It answers one read and one write at a time, in two cycles.
`default_nettype none
module f2_small_lite (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    // faults: no answer, an answer that nobody asked for, an answer that does not stay
    input  wire logic        no_read_i,
    input  wire logic        no_write_i,
    input  wire logic        extra_r_i,
    input  wire logic        extra_b_i,
    input  wire logic        r_changes_i,
    input  wire logic        b_falls_i,
    input  wire logic [31:0] awaddr_i,
    input  wire logic        awvalid_i,
    output logic             awready_o,
    input  wire logic [31:0] wdata_i,
    input  wire logic [3:0]  wstrb_i,
    input  wire logic        wvalid_i,
    output logic             wready_o,
    output logic             bvalid_o,
    input  wire logic        bready_i,
    input  wire logic [31:0] araddr_i,
    input  wire logic        arvalid_i,
    output logic             arready_o,
    output logic      [31:0] rdata_o,
    output logic             rvalid_o,
    input  wire logic        rready_i,
    output logic             write_o,
    output logic      [31:0] write_addr_o,
    output logic      [31:0] write_data_o,
    output logic      [3:0]  write_strb_o,
    output logic      [31:0] read_addr_o,
    input  wire logic [31:0] read_data_i
);
  logic aw_q, w_q, ar_q, extra_r_q, extra_b_q;
  assign awready_o = !aw_q;
  assign wready_o = !w_q;
  assign arready_o = !ar_q;
  assign write_o = aw_q && w_q && !bvalid_o && !no_write_i;

  always_ff @(posedge clk_i) begin
    if (awvalid_i && awready_o) begin
      aw_q <= 1'b1;
      write_addr_o <= awaddr_i;
    end
    if (wvalid_i && wready_o) begin
      w_q <= 1'b1;
      {write_data_o, write_strb_o} <= {wdata_i, wstrb_i};
    end
    if (arvalid_i && arready_o) begin
      ar_q <= 1'b1;
      read_addr_o <= araddr_i;
    end
    if (bvalid_o && (bready_i || b_falls_i)) bvalid_o <= 1'b0;
    if (write_o) {aw_q, w_q, bvalid_o} <= 3'b001;
    // A falling BVALID comes again.
    if (bvalid_o && !bready_i && b_falls_i) {aw_q, w_q} <= 2'b11;
    if (rvalid_o && r_changes_i && !rready_i) rdata_o <= ~rdata_o;
    if (rvalid_o && rready_i) rvalid_o <= 1'b0;
    if (ar_q && !rvalid_o && !no_read_i) begin
      {ar_q, rvalid_o} <= 2'b01;
      rdata_o <= read_data_i;
    end
    extra_r_q <= extra_r_i;
    extra_b_q <= extra_b_i;
    if (extra_r_i && !extra_r_q) rvalid_o <= 1'b1;
    if (extra_b_i && !extra_b_q) bvalid_o <= 1'b1;
    if (!rst_ni) {aw_q, w_q, ar_q, bvalid_o, rvalid_o, extra_r_q, extra_b_q} <= '0;
  end
endmodule
`default_nettype wire
