// Life of the Security Kernel's subsystem: controls its reset and the clearing of its memories.
//
// After rst_ni, after restart_i (pulse) and while wipe_req_i: the processor is in reset
// (core_rst_no, which clears its registers at once; core_on_o is the same for synchronous use),
// boot_o is high, and all memories and units are cleared; then the processor starts. wipe_ack_o
// rises when that is done and wipe_req_i still high; the processor starts after wipe_req_i. halt_i
// (pulse): the same, but the processor stays in reset until one of those.
// wipe_i (pulse): clears RAM, mailbox and units, but not kernel memory; the processor keeps
// running.
// clear_o is high for one cycle for each value of clear_addr_o; clear_memory_o includes kernel
// memory.
`default_nettype none
module shef_kernel_life #(
    parameter int unsigned AddrBits = 16
) (
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   wipe_req_i,
    output logic        wipe_ack_o,
    input  wire logic   restart_i,
    input  wire logic   halt_i,
    input  wire logic   wipe_i,
    output logic        core_rst_no,
    output logic        core_on_o,
    output logic        boot_o,
    output logic        clear_o,
    output logic        clear_memory_o,
    output logic [AddrBits-1:0] clear_addr_o
);

  typedef enum logic [1:0] {
    L_BOOT,  // the processor is in reset
    L_RUN,
    L_HALT   // in reset until a restart, wipe or reset
  } life_e;

  life_e life_q;
  logic clear_q;
  logic [AddrBits-1:0] addr_q;
  logic core_rst_nq, core_on_q;

  assign boot_o = life_q == L_BOOT;
  assign wipe_ack_o = wipe_req_i && life_q == L_BOOT && !clear_q;
  assign core_rst_no = core_rst_nq;
  assign core_on_o = core_on_q;
  assign clear_o = clear_q;
  assign clear_memory_o = clear_q && !core_on_q;
  assign clear_addr_o = addr_q;

  wire fresh = restart_i || (wipe_req_i && life_q != L_BOOT);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      life_q <= L_BOOT;
      clear_q <= 1'b1;
      addr_q <= '0;
      core_rst_nq <= 1'b0;
      core_on_q <= 1'b0;
    end else begin
      if (fresh || (halt_i && life_q == L_RUN)) begin
        life_q <= fresh ? L_BOOT : L_HALT;
        clear_q <= 1'b1;
        addr_q <= '0;
        core_rst_nq <= 1'b0;
        core_on_q <= 1'b0;
      end else if (clear_q) begin
        addr_q <= addr_q + 1'b1;
        if (&addr_q) clear_q <= 1'b0;
      end else if (life_q == L_BOOT && !wipe_req_i) begin
        life_q <= L_RUN;
        core_rst_nq <= 1'b1;
        core_on_q <= 1'b1;
      end else if (life_q == L_RUN && wipe_i) begin
        clear_q <= 1'b1;
        addr_q <= '0;
      end
    end
  end

endmodule
`default_nettype wire
