// shef_kernel_config against any bus and any fabric: the words of an image leave once, in the order
// of their writes (one place of the stream is tracked); the last one, and no other, is marked.
// Valid and data are stable until ready, unless the image is withdrawn. No word is accepted outside
// an image. A clear leaves nothing of an image.
`default_nettype none
module kernel_config (
    input wire clk_i,
    input wire rst_ni,
    input wire clear_i,
    input wire sel_i,
    input wire we_i,
    input wire [11:0] addr_i,
    input wire [31:0] wdata_i,
    input wire cfg_ready_i,
    input wire cfg_busy_i,
    input wire cfg_active_i,
    input wire cfg_error_i
);
  logic ready, err, renew, cfg_begin, cfg_clear, valid, last;
  logic [31:0] rdata, data;
  shef_kernel_config dut (
      .clk_i, .rst_ni, .clear_i, .sel_i, .we_i, .addr_i, .wdata_i, .ready_o(ready), .err_o(err), .rdata_o(rdata), .renew_o(renew),
      .cfg_begin_o(cfg_begin), .cfg_clear_o(cfg_clear), .cfg_valid_o(valid), .cfg_ready_i, .cfg_data_o(data), .cfg_last_o(last),
      .cfg_busy_i, .cfg_active_i, .cfg_error_i, .design_i(256'd1)
  );

  logic init = 1'b0;
  logic [2:0] at;           // symbolic constant
  logic [2:0] written, left;
  logic [31:0] word;
  logic opened;             // an image has begun and not ended
  logic write, data_write, finish;
  assign write = sel_i && we_i && ready && !err;
  assign data_write = write && addr_i[11:2] == 10'h2;
  assign finish = write && addr_i[11:2] == 10'h0 && wdata_i[1];
  always_ff @(posedge clk_i) at <= at;
  axi_channel #(.W(33)) u_cfg (.clk_i, .rst_ni(rst_ni && !renew), .valid_i(valid), .ready_i(cfg_ready_i), .data_i({last, data}), .break_i(1'b0));

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni || renew) begin
      opened <= rst_ni && cfg_begin && !cfg_clear;
      written <= '0;
      left <= '0;
    end else begin
      if (data_write) begin
        written <= written + 1'b1;
        if (written == at) word <= wdata_i;
      end
      if (valid && cfg_ready_i) left <= left + 1'b1;
      if (finish) opened <= 1'b0;
    end
  end
  logic [2:0] held;         // written, and not yet out
  assign held = written - left;
  logic [2:0] ahead;
  assign ahead = at - left;
  always_comb begin
    if (init && rst_ni) begin
      assert (dut.open_q == opened);
      if (data_write) assert (opened);
      if (!opened) assert (!dut.held_q && dut.word_q == '0);
      assert (held == 3'(valid) + 3'(dut.held_q));
      if (held != 3'd0 && ahead < held) assert ((valid && ahead == 3'd0 ? data : dut.word_q) == word);
      if (!valid) assert (data == '0 && !last);
      if (valid && last) assert (!opened && held == 3'd1);
      if (valid && !last) assert (dut.held_q);
      if (!we_i) assert (!renew || clear_i);
    end
    cover (init && rst_ni && valid && last && left == 3'd3);
    cover (init && rst_ni && renew && valid);
  end
endmodule
`default_nettype wire
