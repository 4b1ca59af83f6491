// The Security Kernel's access to the Shield: a device of its bus that is the AXI4-Lite master of
// the Shield's kernel port.
//
// sel_i waits for ready_o, at most 1,024 cycles and a few. An access that the Shield refuses or
// does not answer reads zero, and no_shield_o is high until the next one. After an unanswered
// access the device makes no more until renew_i (pulse: the fabric holds another design) or
// clear_i.
`default_nettype none
module shef_kernel_shield
  import shef_pkg::*;
(
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
    output axil_req_t   krn_req_o,
    input  wire axil_rsp_t krn_rsp_i
);

  logic busy, done, err, no_shield_q;
  assign ready_o = done;
  assign no_shield_o = no_shield_q;

  shef_axil_master u_master (
      .clk_i,
      .rst_ni,
      .clear_i(clear_i || renew_i),
      .start_i(sel_i && !busy && !done),
      .write_i(we_i),
      .addr_i({4'd0, addr_i, 2'd0}),
      .wdata_i,
      .busy_o(busy),
      .done_o(done),
      .err_o(err),
      .rdata_o,
      .req_o(krn_req_o),
      .rsp_i(krn_rsp_i)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) no_shield_q <= 1'b0;
    else if (done) no_shield_q <= err;
  end

endmodule
`default_nettype wire
