// shef_kernel_life against any requests: the processor runs only when every address of memory (one
// is tracked) was cleared since it last stopped, and the same holds before a wipe is acknowledged.
// A halted processor starts only after a restart or a wipe. Kernel memory is cleared only while the
// processor is in reset. Addresses of 4 bits.
`default_nettype none
module kernel_life (
    input wire clk_i,
    input wire rst_ni,
    input wire wipe_req_i,
    input wire restart_i,
    input wire halt_i,
    input wire wipe_i
);
  logic ack, core_rst_n, core_on, boot, clear, clear_memory;
  logic [3:0] addr;
  shef_kernel_life #(.AddrBits(4)) dut (
      .clk_i, .rst_ni, .wipe_req_i, .wipe_ack_o(ack), .restart_i, .halt_i, .wipe_i, .core_rst_no(core_rst_n), .core_on_o(core_on),
      .boot_o(boot), .clear_o(clear), .clear_memory_o(clear_memory), .clear_addr_o(addr)
  );

  logic [3:0] at;           // symbolic constant
  logic init = 1'b0;
  logic clean;              // the tracked address was cleared, and nothing has run since
  logic halted;
  always_ff @(posedge clk_i) at <= at;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    if (!rst_ni) clean <= 1'b0;
    else if (core_on) clean <= 1'b0;
    else if (clear_memory && addr == at) clean <= 1'b1;
    if (!rst_ni || restart_i || wipe_req_i) halted <= 1'b0;
    else if (halt_i && core_on) halted <= 1'b1;
  end
  logic on_q;
  always_ff @(posedge clk_i) on_q <= rst_ni && core_on;
  logic asked, wipes;       // restart or wipe requested; the program's own wipe
  always_ff @(posedge clk_i) begin
    asked <= rst_ni && (restart_i || wipe_req_i);
    wipes <= rst_ni && core_on && wipe_i && !clear;
  end
  logic clean_q;
  always_ff @(posedge clk_i) clean_q <= clean || (clear_memory && addr == at);
  always_comb begin
    if (init && rst_ni) begin
      assert (core_rst_n == core_on);
      assert (core_on == (dut.life_q == 2'd1));
      assert (boot == (dut.life_q == 2'd0));
      if (core_on && !on_q) assert (clean_q);
      if (ack) assert (clean && !core_on);
      if (asked) assert (!core_on);
      if (wipes) assert (clear && addr == '0);
      assert (clear_memory == (clear && !core_on));
      if (halted) assert (!core_on);
      if (halted) assert (dut.life_q == 2'd2);
      if (!core_on && (!clear || addr > at)) assert (clean);
      if (core_on && !on_q) assert (!clear);
    end
    cover (init && rst_ni && ack);
    cover (init && rst_ni && core_on && !clear);
    cover (init && rst_ni && halted && !clear);
    cover (init && rst_ni && core_on && clear);
  end
endmodule
`default_nettype wire
