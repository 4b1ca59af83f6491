// Handshake rules of AXI4 as modules, one for each kind of channel, each with two uses: with Assume
// = 0 the block under proof must follow them, with Assume = 1 its environment does.

// A channel with valid and ready: valid stays until ready, and the payload is stable while it
// waits. break_i: the payload may change.
`default_nettype none
module axi_channel #(
    parameter int unsigned W = 8,
    parameter bit Assume = 1'b0
) (
    input wire         clk_i,
    input wire         rst_ni,
    input wire         valid_i,
    input wire         ready_i,
    input wire [W-1:0] data_i,
    input wire         break_i
);
  logic waited_q = 1'b0;
  logic [W-1:0] last_q;
  logic ok;
  always_ff @(posedge clk_i) begin
    waited_q <= rst_ni && valid_i && !ready_i;
    last_q <= data_i;
  end
  assign ok = !waited_q || !rst_ni || (valid_i && (break_i || data_i == last_q));
  if (Assume) begin : g_assume
    always_comb assume (ok);
  end else begin : g_assert
    always_comb assert (ok);
  end
endmodule

// An address channel of a 512-bit port of the Shield. In addition to the above: INCR only, at most
// 64 bytes a beat, and no burst crosses a 4 KiB page.
module axi_address
  import shef_pkg::*;
#(
    parameter bit Assume = 1'b0
) (
    input wire           clk_i,
    input wire           rst_ni,
    input wire           valid_i,
    input wire           ready_i,
    input wire  axi_ax_t ax_i
);
  axi_channel #(.W($bits(axi_ax_t)), .Assume(Assume)) u_channel (
      .clk_i, .rst_ni, .valid_i, .ready_i, .data_i(ax_i), .break_i(1'b0)
  );
  logic [15:0] first, bytes;
  logic ok;
  assign first = {4'd0, ax_i.addr[11:0]} & ~((16'd1 << ax_i.size) - 16'd1);
  assign bytes = ({8'd0, ax_i.len} + 16'd1) << ax_i.size;
  assign ok = !valid_i || !rst_ni ||
      (ax_i.burst == AXI_BURST_INCR && ax_i.size <= AXI_SIZE_64 && first + bytes <= 16'd4096);
  if (Assume) begin : g_assume
    always_comb assume (ok);
  end else begin : g_assert
    always_comb assert (ok);
  end
endmodule
`default_nettype wire
