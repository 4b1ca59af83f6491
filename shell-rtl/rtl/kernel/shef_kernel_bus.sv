// Bus of the Security Kernel: the processor's two ports to ROM, kernel memory, RAM and devices.
//
// instr and data ports: Ibex' protocol (shef_kernel_core). Instructions come from ROM and kernel
// memory only, in one cycle. Data of the three memories also takes one cycle; RAM waits while
// ram_busy_i. Bus errors: an unmapped address, a write to ROM, an instruction from elsewhere.
// Devices: dev_sel_o is one-hot and selects the device, with dev_we_o, dev_be_o, dev_addr_o and
// dev_wdata_o, from the cycle after the grant until its dev_ready_i, when dev_rdata_i and dev_err_i
// are its response and the access takes effect. A response takes at least two cycles. A device that
// is not ready after 2^TimeoutBits cycles is abandoned, with a bus error. A write of less than a
// word is a bus error too, except to the mailbox.
`default_nettype none
module shef_kernel_bus
  import shef_kernel_regs_pkg::*;
#(
    parameter int unsigned TimeoutBits = 18
) (
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   instr_req_i,
    output logic        instr_gnt_o,
    input  wire logic [31:0] instr_addr_i,
    output logic        instr_rvalid_o,
    output logic [31:0] instr_rdata_o,
    output logic        instr_err_o,
    input  wire logic   data_req_i,
    output logic        data_gnt_o,
    input  wire logic   data_we_i,
    input  wire logic [3:0] data_be_i,
    input  wire logic [31:0] data_addr_i,
    input  wire logic [31:0] data_wdata_i,
    output logic        data_rvalid_o,
    output logic [31:0] data_rdata_o,
    output logic        data_err_o,
    // memories; the addresses are those of the ports
    input  wire logic [31:0] rom_instr_i,
    input  wire logic [31:0] rom_data_i,
    input  wire logic [31:0] memory_instr_i,
    output logic [3:0]  memory_we_o,
    input  wire logic [31:0] memory_data_i,
    input  wire logic   ram_busy_i,
    output logic [3:0]  ram_we_o,
    input  wire logic [31:0] ram_data_i,
    // devices
    output shef_kernel_pkg::dev_sel_t dev_sel_o,
    output logic        dev_we_o,
    output logic [3:0]  dev_be_o,
    output logic [19:0] dev_addr_o,
    output logic [31:0] dev_wdata_o,
    input  wire shef_kernel_pkg::dev_sel_t dev_ready_i,
    input  wire shef_kernel_pkg::dev_sel_t dev_err_i,
    input  wire logic [shef_kernel_pkg::DEVICES-1:0][31:0] dev_rdata_i
);
  import shef_kernel_pkg::*;

  function automatic kernel_sel_e place(input logic [31:0] addr);
    return addr[31] ? KERNEL_SEL_NONE : kernel_decode(addr[30:0]);
  endfunction

  // ---- instructions ----
  logic instr_valid_q, instr_rom_q, instr_memory_q;
  kernel_sel_e instr_place;
  assign instr_place = place(instr_addr_i);
  assign instr_gnt_o = instr_req_i;
  assign instr_rvalid_o = instr_valid_q;
  assign instr_rdata_o = instr_rom_q ? rom_instr_i : instr_memory_q ? memory_instr_i : 32'd0;
  assign instr_err_o = !instr_rom_q && !instr_memory_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      instr_valid_q <= 1'b0;
      instr_rom_q <= 1'b0;
      instr_memory_q <= 1'b0;
    end else begin
      instr_valid_q <= instr_req_i;
      instr_rom_q <= instr_place == KERNEL_SEL_ROM;
      instr_memory_q <= instr_place == KERNEL_SEL_MEMORY;
    end
  end

  // ---- data ----
  typedef enum logic [1:0] {
    D_IDLE,
    D_MEMORY,  // a memory's word is present
    D_DEVICE,  // a device access is in progress
    D_ANSWER   // its response, or an error
  } data_e;

  data_e data_q;
  kernel_sel_e place_q;
  logic we_q, err_q;
  logic [3:0] be_q;
  logic [19:0] addr_q;
  logic [31:0] wdata_q, rdata_q;
  dev_sel_t sel_q;
  logic [TimeoutBits-1:0] waited_q;

  kernel_sel_e data_place;
  dev_sel_t device;
  assign data_place = place(data_addr_i);
  always_comb begin
    device = '0;
    unique case (data_place)
      KERNEL_SEL_MEDIUM: device[DEV_MEDIUM] = 1'b1;
      KERNEL_SEL_SYS: device[DEV_SYS] = 1'b1;
      KERNEL_SEL_MAILBOX, KERNEL_SEL_REQUEST, KERNEL_SEL_ANSWER: device[DEV_MAILBOX] = 1'b1;
      KERNEL_SEL_SHIELD: device[DEV_SHIELD] = 1'b1;
      KERNEL_SEL_NOISE: device[DEV_NOISE] = 1'b1;
      KERNEL_SEL_P256: device[DEV_P256] = 1'b1;
      KERNEL_SEL_HASH: device[DEV_HASH] = 1'b1;
      KERNEL_SEL_AES: device[DEV_AES] = 1'b1;
      KERNEL_SEL_CONFIG: device[DEV_CONFIG] = 1'b1;
      KERNEL_SEL_MEASURE: device[DEV_MEASURE] = 1'b1;
      default: ;
    endcase
  end

  wire in_memory = data_place == KERNEL_SEL_MEMORY || data_place == KERNEL_SEL_RAM || (data_place == KERNEL_SEL_ROM && !data_we_i);
  wire allowed = data_we_i ? kernel_writable(data_place) : kernel_readable(data_place);
  wire whole = !data_we_i || &data_be_i || device[DEV_MAILBOX];
  wire taken = data_req_i && data_gnt_o;
  assign data_gnt_o = data_req_i && data_q != D_DEVICE && !(data_place == KERNEL_SEL_RAM && ram_busy_i);
  assign memory_we_o = taken && data_we_i && data_place == KERNEL_SEL_MEMORY ? data_be_i : 4'd0;
  assign ram_we_o = taken && data_we_i && data_place == KERNEL_SEL_RAM ? data_be_i : 4'd0;

  assign dev_sel_o = data_q == D_DEVICE ? sel_q : '0;
  assign dev_we_o = we_q;
  assign dev_be_o = be_q;
  assign dev_addr_o = addr_q;
  assign dev_wdata_o = wdata_q;

  logic [31:0] answer;
  always_comb begin
    answer = '0;
    for (int d = 0; d < DEVICES; d++) if (sel_q[d]) answer |= dev_rdata_i[d];
  end
  wire ready = |(sel_q & dev_ready_i);
  wire refused = |(sel_q & dev_err_i);

  assign data_rvalid_o = data_q == D_MEMORY || data_q == D_ANSWER;
  assign data_err_o = data_q == D_ANSWER && err_q;
  always_comb begin
    data_rdata_o = rdata_q;
    if (data_q == D_MEMORY) begin
      unique case (place_q)
        KERNEL_SEL_ROM: data_rdata_o = rom_data_i;
        KERNEL_SEL_MEMORY: data_rdata_o = memory_data_i;
        default: data_rdata_o = ram_data_i;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      data_q <= D_IDLE;
      place_q <= KERNEL_SEL_NONE;
      we_q <= 1'b0;
      err_q <= 1'b0;
      be_q <= '0;
      addr_q <= '0;
      wdata_q <= '0;
      rdata_q <= '0;
      sel_q <= '0;
      waited_q <= '0;
    end else if (data_q == D_DEVICE) begin
      waited_q <= waited_q + 1'b1;
      if (ready || &waited_q) begin
        data_q <= D_ANSWER;
        err_q <= !ready || refused;
        rdata_q <= ready && !refused && !we_q ? answer : 32'd0;
        wdata_q <= '0;
      end
    end else begin
      data_q <= D_IDLE;
      rdata_q <= '0;
      if (taken) begin
        place_q <= data_place;
        we_q <= data_we_i;
        be_q <= data_be_i;
        addr_q <= data_addr_i[19:0];
        wdata_q <= data_wdata_i;
        sel_q <= device;
        waited_q <= '0;
        err_q <= 1'b1;
        data_q <= in_memory ? D_MEMORY : (|device && allowed && whole) ? D_DEVICE : D_ANSWER;
      end
    end
  end

endmodule
`default_nettype wire
