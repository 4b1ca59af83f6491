// Control processor: the byte sequencer with its three crypto units (HMAC-SHA-256, AES-GCM, P-256).
//
// ext bus, event_i and trap_o as in shef_seq. unit_wipe_i (level) clears only the units,
// unit_wiped_o is a level while it is held.
// wipe_i clears everything; wipe_done_o is a level while wipe_i is held.
`default_nettype none
module shef_ctrl (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        wipe_i,
    output logic             wipe_done_o,
    input  wire logic        unit_wipe_i,
    output logic             unit_wiped_o,
    output logic             trap_o,
    input  wire logic        event_i,
    output logic             ext_req_o,
    output logic             ext_we_o,
    output logic [11:0]      ext_addr_o,
    output logic [7:0]       ext_wdata_o,
    input  wire logic        ext_ack_i,
    input  wire logic [7:0]  ext_rdata_i
);

  logic [2:0] cmd_valid, cmd_ready, in_valid, in_ready, out_valid, out_ready, ok;
  logic [3:0] cmd;
  logic [15:0] len;
  logic [7:0] in_data;
  logic [2:0][7:0] out_data;
  // A unit under wipe reports with cmd_ready_o that it is clear, from the second cycle on.
  logic unit_wipe, unit_wipe_q, seq_wiped;
  assign unit_wipe = wipe_i || unit_wipe_i;
  always_ff @(posedge clk_i) unit_wipe_q <= rst_ni && unit_wipe;
  assign unit_wiped_o = unit_wipe && unit_wipe_q && (&cmd_ready);
  assign wipe_done_o = seq_wiped && unit_wiped_o;

  shef_seq u_seq (
      .clk_i,
      .rst_ni,
      .wipe_i,
      .wipe_done_o(seq_wiped),
      .trap_o,
      .event_i,
      .ext_req_o,
      .ext_we_o,
      .ext_addr_o,
      .ext_wdata_o,
      .ext_ack_i,
      .ext_rdata_i,
      .cmd_valid_o(cmd_valid),
      .cmd_ready_i(cmd_ready),
      .cmd_o(cmd),
      .len_o(len),
      .in_valid_o(in_valid),
      .in_ready_i(in_ready),
      .in_data_o(in_data),
      .out_valid_i(out_valid),
      .out_ready_o(out_ready),
      .out_data_i(out_data),
      .ok_i(ok)
  );

  shef_hmac u_hmac (
      .clk_i,
      .rst_ni,
      .wipe_i(unit_wipe),
      .cmd_valid_i(cmd_valid[0]),
      .cmd_ready_o(cmd_ready[0]),
      .cmd_i(cmd),
      .len_i(len),
      .in_valid_i(in_valid[0]),
      .in_ready_o(in_ready[0]),
      .in_data_i(in_data),
      .out_valid_o(out_valid[0]),
      .out_ready_i(out_ready[0]),
      .out_data_o(out_data[0]),
      .ok_o(ok[0])
  );

  shef_gcm_iter u_gcm (
      .clk_i,
      .rst_ni,
      .wipe_i(unit_wipe),
      .cmd_valid_i(cmd_valid[1]),
      .cmd_ready_o(cmd_ready[1]),
      .cmd_i(cmd),
      .len_i(len),
      .in_valid_i(in_valid[1]),
      .in_ready_o(in_ready[1]),
      .in_data_i(in_data),
      .out_valid_o(out_valid[1]),
      .out_ready_i(out_ready[1]),
      .out_data_o(out_data[1]),
      .ok_o(ok[1])
  );

  shef_p256 u_p256 (
      .clk_i,
      .rst_ni,
      .wipe_i(unit_wipe),
      .cmd_valid_i(cmd_valid[2]),
      .cmd_ready_o(cmd_ready[2]),
      .cmd_i(cmd),
      .len_i(len),
      .in_valid_i(in_valid[2]),
      .in_ready_o(in_ready[2]),
      .in_data_i(in_data),
      .out_valid_o(out_valid[2]),
      .out_ready_i(out_ready[2]),
      .out_data_o(out_data[2]),
      .ok_o(ok[2])
  );

endmodule
`default_nettype wire
