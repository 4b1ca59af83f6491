// shef_port_mux as in proof port_mux, with a set that goes before the others: it waits for no more
// than the request that is being offered, and the other one has a bounded number of beats in
// flight.
`default_nettype none
module port_first
  import shef_pkg::*;
(
    input wire                 clk_i,
    input wire                 rst_ni,
    input wire axi_req_t [1:0] set_req_i,
    input wire axi_rsp_t       mem_rsp_i
);
  port_mux #(.First(1)) u_bench (.clk_i, .rst_ni, .set_req_i, .mem_rsp_i);
  always_comb
    cover (rst_ni && u_bench.mem_req.ar_valid && u_bench.mem_req.ar.id[7:6] == 2'd2 &&
        set_req_i[0].ar_valid);
endmodule
`default_nettype wire
