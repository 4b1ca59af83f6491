// shef_no_memory with flat ports, for tests.
`include "shef_ports.svh"
`default_nettype none
module shef_no_memory_tb
  import shef_pkg::*;
(
  input wire clk, input wire rst_n, input wire enable,
  `SHEF_AXI_S_PORTS(acc,),
  output wire [1:0] refusal_valid
);
  refusal_t [1:0] refusal;
  shef_no_memory u_no_memory (
    .clk_i(clk), .rst_ni(rst_n), .enable_i(enable), .stop_i(1'b0),
    .acc_req_i(`SHEF_AXI_REQ(acc,)), .acc_rsp_o(`SHEF_AXI_RSP(acc,)),
    .refusal_valid_o(refusal_valid), .refusal_o(refusal)
  );
  wire unused = ^refusal;
endmodule
`default_nettype wire
