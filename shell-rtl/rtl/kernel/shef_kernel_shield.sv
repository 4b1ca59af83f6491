// The Security Kernel's access to the Shield: a device of its bus that is the AXI4-Lite master of the
// Shield's kernel port.
//
// sel_i waits for ready_o, at most 1,024 cycles and a few. An access that the Shield refuses or does
// not answer reads zero, and no_shield_o is high until the next one; after one without an answer
// nothing is asked again until renew_i (pulse: another design stands in the fabric) or clear_i.
`default_nettype none
module shef_kernel_shield (
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   clear_i,
    input  wire logic   renew_i,
    input  wire logic   sel_i,
    input  wire logic   we_i,
    input  wire logic [11:2] addr_i,
    input  wire logic [31:0] wdata_i,
    output logic        ready_o,
    output logic [31:0] rdata_o,
    output logic        no_shield_o,
    output logic [11:0] krn_awaddr_o,
    output logic        krn_awvalid_o,
    input  wire logic   krn_awready_i,
    output logic [31:0] krn_wdata_o,
    output logic [3:0]  krn_wstrb_o,
    output logic        krn_wvalid_o,
    input  wire logic   krn_wready_i,
    input  wire logic [1:0]  krn_bresp_i,
    input  wire logic   krn_bvalid_i,
    output logic        krn_bready_o,
    output logic [11:0] krn_araddr_o,
    output logic        krn_arvalid_o,
    input  wire logic   krn_arready_i,
    input  wire logic [31:0] krn_rdata_i,
    input  wire logic [1:0]  krn_rresp_i,
    input  wire logic   krn_rvalid_i,
    output logic        krn_rready_o
);

  logic busy, done, err, no_shield_q;
  assign ready_o = done;
  assign no_shield_o = no_shield_q;

  shef_axil_master #(
      .AddrW(12)
  ) u_master (
      .clk_i,
      .rst_ni,
      .clear_i(clear_i || renew_i),
      .start_i(sel_i && !busy && !done),
      .write_i(we_i),
      .addr_i({addr_i, 2'd0}),
      .wdata_i,
      .busy_o(busy),
      .done_o(done),
      .err_o(err),
      .rdata_o,
      .awaddr_o(krn_awaddr_o),
      .awvalid_o(krn_awvalid_o),
      .awready_i(krn_awready_i),
      .wdata_o(krn_wdata_o),
      .wstrb_o(krn_wstrb_o),
      .wvalid_o(krn_wvalid_o),
      .wready_i(krn_wready_i),
      .bresp_i(krn_bresp_i),
      .bvalid_i(krn_bvalid_i),
      .bready_o(krn_bready_o),
      .araddr_o(krn_araddr_o),
      .arvalid_o(krn_arvalid_o),
      .arready_i(krn_arready_i),
      .rdata_i(krn_rdata_i),
      .rresp_i(krn_rresp_i),
      .rvalid_i(krn_rvalid_i),
      .rready_o(krn_rready_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) no_shield_q <= 1'b0;
    else if (done) no_shield_q <= err;
  end

endmodule
`default_nettype wire
