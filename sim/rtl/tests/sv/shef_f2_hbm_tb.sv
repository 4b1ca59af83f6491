// shef_f2_hbm in front of a port of the HBM's model, with flat ports, for tests.
`include "shef_ports.svh"
`default_nettype none
module shef_f2_hbm_tb
  import shef_pkg::*;
(
    input  wire  clk,
    input  wire  rst_n,
    output logic error,
    `SHEF_AXI_S_PORTS(core,),
    `SHEF_AXI_M_PORTS(mem,)
);
  logic [5:0] aw_id, b_id, ar_id, r_id;
  logic [33:0] aw_addr, ar_addr;
  logic [3:0] aw_len, ar_len;
  logic [255:0] w_data, r_data;
  logic [31:0] w_strb, w_parity;
  logic [1:0] b_resp, r_resp;
  logic aw_valid, aw_ready, w_last, w_valid, w_ready, b_valid, b_ready, ar_valid, ar_ready, r_last,
      r_valid, r_ready;

  shef_f2_hbm u_bridge (
      .clk_i(clk), .rst_ni(rst_n),
      .core_req_i(`SHEF_AXI_REQ(core,)), .core_rsp_o(`SHEF_AXI_RSP(core,)),
      .hbm_aw_id_o(aw_id), .hbm_aw_addr_o(aw_addr), .hbm_aw_len_o(aw_len),
      .hbm_aw_valid_o(aw_valid), .hbm_aw_ready_i(aw_ready),
      .hbm_w_data_o(w_data), .hbm_w_strb_o(w_strb), .hbm_w_parity_o(w_parity),
      .hbm_w_last_o(w_last), .hbm_w_valid_o(w_valid), .hbm_w_ready_i(w_ready),
      .hbm_b_id_i(b_id), .hbm_b_resp_i(b_resp), .hbm_b_valid_i(b_valid), .hbm_b_ready_o(b_ready),
      .hbm_ar_id_o(ar_id), .hbm_ar_addr_o(ar_addr), .hbm_ar_len_o(ar_len),
      .hbm_ar_valid_o(ar_valid), .hbm_ar_ready_i(ar_ready),
      .hbm_r_id_i(r_id), .hbm_r_data_i(r_data), .hbm_r_resp_i(r_resp), .hbm_r_last_i(r_last),
      .hbm_r_valid_i(r_valid), .hbm_r_ready_o(r_ready)
  );
  shef_hbm_axi3 u_port (
      .clk_i(clk), .rst_ni(rst_n), .up_i(1'b1), .early_i(1'b0),
      .aw_id_i(aw_id), .aw_addr_i(aw_addr), .aw_len_i(aw_len), .aw_size_i(3'd5),
      .aw_burst_i(AXI_BURST_INCR), .aw_valid_i(aw_valid), .aw_ready_o(aw_ready),
      .w_data_i(w_data), .w_strb_i(w_strb), .w_parity_i(w_parity), .w_last_i(w_last),
      .w_valid_i(w_valid), .w_ready_o(w_ready),
      .b_id_o(b_id), .b_resp_o(b_resp), .b_valid_o(b_valid), .b_ready_i(b_ready),
      .ar_id_i(ar_id), .ar_addr_i(ar_addr), .ar_len_i(ar_len), .ar_size_i(3'd5),
      .ar_burst_i(AXI_BURST_INCR), .ar_valid_i(ar_valid), .ar_ready_o(ar_ready),
      .r_id_o(r_id), .r_data_o(r_data), .r_resp_o(r_resp), .r_last_o(r_last),
      .r_valid_o(r_valid), .r_ready_i(r_ready),
      .error_o(error), .req_o(`SHEF_AXI_REQ(mem,)), .rsp_i(`SHEF_AXI_RSP(mem,))
  );
endmodule
`default_nettype wire
