// shef_kernel_unit against any accesses and any unit: bytes go to the unit in the order of their
// writes, once (one place of the stream is tracked), and come from it in the same way. A command
// reaches the unit only after the bytes before it. A unit under wipe has no byte before or behind
// it.
`default_nettype none
module kernel_unit (
    input wire clk_i,
    input wire rst_ni,
    input wire wipe_i,
    input wire sel_i,
    input wire we_i,
    input wire [11:0] addr_i,
    input wire [31:0] wdata_i,
    input wire unit_cmd_ready_i,
    input wire unit_in_ready_i,
    input wire unit_out_valid_i,
    input wire [7:0] unit_out_data_i,
    input wire unit_ok_i
);
  logic ready, err, wipe, cmd_valid, in_valid, out_ready;
  logic [31:0] rdata;
  logic [3:0] cmd;
  logic [15:0] len;
  logic [7:0] in_data;
  shef_kernel_unit dut (
      .clk_i, .rst_ni, .wipe_i, .sel_i, .we_i, .addr_i, .wdata_i, .ready_o(ready), .err_o(err), .rdata_o(rdata),
      .unit_wipe_o(wipe), .unit_cmd_valid_o(cmd_valid), .unit_cmd_ready_i, .unit_cmd_o(cmd), .unit_len_o(len),
      .unit_in_valid_o(in_valid), .unit_in_ready_i, .unit_in_data_o(in_data),
      .unit_out_valid_i, .unit_out_ready_o(out_ready), .unit_out_data_i, .unit_ok_i
  );

  logic init = 1'b0;
  logic [2:0] at;                       // symbolic constant
  logic [2:0] written, given;           // to the unit
  logic [2:0] taken, read;              // from it
  logic [7:0] byte_in, byte_out;
  logic word, one, access;
  assign access = sel_i && ready && !err && !wipe;
  assign word = access && addr_i[11:2] == 10'd2;
  assign one = access && addr_i[11:2] == 10'd3;
  always_ff @(posedge clk_i) at <= at;

  logic [2:0] from_written, from_read;
  assign from_written = at - written;
  assign from_read = at - read;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni || wipe) begin
      written <= '0;
      given <= '0;
      taken <= '0;
      read <= '0;
    end else begin
      if (we_i && word) begin
        written <= written + 3'd4;
        if (from_written < 3'd4) byte_in <= wdata_i[8*from_written[1:0]+:8];
      end else if (we_i && one) begin
        written <= written + 3'd1;
        if (from_written == 3'd0) byte_in <= wdata_i[7:0];
      end
      if (in_valid && unit_in_ready_i) given <= given + 1'b1;
      if (!we_i && word) read <= read + 3'd4;
      else if (!we_i && one) read <= read + 3'd1;
      if (unit_out_valid_i && out_ready) begin
        taken <= taken + 1'b1;
        if (taken == at) byte_out <= unit_out_data_i;
      end
    end
  end

  logic [2:0] waits_in, waits_out, ahead_in;
  assign waits_in = written - given;
  assign waits_out = taken - read;
  assign ahead_in = at - given;
  logic wiped, wipes, to_wipe;
  always_ff @(posedge clk_i) begin
    wiped <= rst_ni && wipe;
    wipes <= rst_ni && wipe && !wipe_i && !unit_cmd_ready_i;
    to_wipe <= rst_ni && sel_i && we_i && addr_i[11:2] == 10'd4 && !wipe;
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (dut.in_n_q <= 3'd4 && dut.out_n_q <= 3'd4);
      assert (dut.in_n_q == waits_in && dut.out_n_q == waits_out);
      if (ahead_in < waits_in) assert (dut.in_q[8*ahead_in[1:0]+:8] == byte_in);
      if (from_read < waits_out) assert (dut.out_q[8*from_read[1:0]+:8] == byte_out);
      if (in_valid && given == at) assert (in_data == byte_in);
      if (!we_i && word && from_read < 3'd4) assert (waits_out == 3'd4 && rdata[8*from_read[1:0]+:8] == byte_out);
      if (!we_i && one) assert (waits_out != 3'd0);
      if (!we_i && one && from_read == 3'd0) assert (rdata[7:0] == byte_out);
      if (cmd_valid) assert (unit_cmd_ready_i && !in_valid && !wipe && cmd == wdata_i[3:0] && len == wdata_i[31:16]);
      if (wiped) assert (dut.in_q == '0 && dut.out_q == '0 && !in_valid && waits_out == 3'd0);
      if (wipe_i) assert (wipe && !cmd_valid);
      // a wipe begins, and lasts until the unit is clear; a byte that was read is gone
      if (wipes || to_wipe) assert (wipe);
      assert ((dut.out_q >> {dut.out_n_q, 3'd0}) == '0);
    end
    cover (init && rst_ni && in_valid && given == at && byte_in == 8'h5a && at == 3'd6);
    cover (init && rst_ni && !we_i && word && from_read == 3'd3 && byte_out == 8'ha5);
    cover (init && rst_ni && cmd_valid && wiped);
  end
endmodule
`default_nettype wire
