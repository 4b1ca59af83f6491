// shef_kernel_bus against any processor, memories and devices: each access gets one response, in
// order and in bounded time. Memory and RAM change only by a write to them. One device is accessed
// at a time, only for an access to its addresses with the required rights, with that access's
// address and data. A refused or unanswered access fails and reads zero. Instructions come from ROM
// and kernel memory. The bench repeats the map. Devices have 8 cycles.
`default_nettype none
module kernel_bus
  import shef_kernel_pkg::*;
(
    input wire clk_i,
    input wire rst_ni,
    input wire instr_req_i,
    input wire [31:0] instr_addr_i,
    input wire data_req_i,
    input wire data_we_i,
    input wire [3:0] data_be_i,
    input wire [31:0] data_addr_i,
    input wire [31:0] data_wdata_i,
    input wire [31:0] rom_instr_i,
    input wire [31:0] rom_data_i,
    input wire [31:0] memory_instr_i,
    input wire [31:0] memory_data_i,
    input wire ram_busy_i,
    input wire [31:0] ram_data_i,
    input wire dev_sel_t dev_ready_i,
    input wire dev_sel_t dev_err_i,
    input wire [DEVICES-1:0][31:0] dev_rdata_i
);
  logic instr_gnt, instr_rvalid, instr_err, data_gnt, data_rvalid, data_err, dev_we;
  logic [31:0] instr_rdata, data_rdata, dev_wdata;
  logic [3:0] memory_we, ram_we, dev_be;
  logic [19:0] dev_addr;
  dev_sel_t sel;
  shef_kernel_bus #(.TimeoutBits(3)) dut (
      .clk_i, .rst_ni, .instr_req_i, .instr_gnt_o(instr_gnt), .instr_addr_i, .instr_rvalid_o(instr_rvalid),
      .instr_rdata_o(instr_rdata), .instr_err_o(instr_err), .data_req_i, .data_gnt_o(data_gnt), .data_we_i, .data_be_i,
      .data_addr_i, .data_wdata_i, .data_rvalid_o(data_rvalid), .data_rdata_o(data_rdata), .data_err_o(data_err),
      .rom_instr_i, .rom_data_i, .memory_instr_i, .memory_we_o(memory_we), .memory_data_i, .ram_busy_i, .ram_we_o(ram_we),
      .ram_data_i, .dev_sel_o(sel), .dev_we_o(dev_we), .dev_be_o(dev_be), .dev_addr_o(dev_addr), .dev_wdata_o(dev_wdata),
      .dev_ready_i, .dev_err_i, .dev_rdata_i
  );

  typedef enum logic [1:0] {P_NONE, P_ROM, P_MEMORY, P_RAM} place_e;
  function automatic place_e place(input logic [31:0] addr);
    if (addr[31:16] == 16'h0000) return P_ROM;
    if (addr[31:18] == 14'h0400) return P_MEMORY;
    if (addr[31:18] == 14'h0800) return P_RAM;
    return P_NONE;
  endfunction
  // The device of an address, one-hot.
  function automatic dev_sel_t device(input logic [31:0] addr);
    device = '0;
    if (addr[31:20] == 12'h300) device[0] = 1'b1;
    unique case (addr[31:12])
      20'h40000: device[1] = 1'b1;
      20'h40001, 20'h40004, 20'h40005, 20'h40006, 20'h40007: device[2] = 1'b1;
      20'h40002: device[3] = 1'b1;
      20'h40003: device[4] = 1'b1;
      20'h40008: device[5] = 1'b1;
      20'h40009: device[6] = 1'b1;
      20'h4000a: device[7] = 1'b1;
      20'h4000b: device[8] = 1'b1;
      20'h4000c: device[9] = 1'b1;
      default: ;
    endcase
  endfunction
  // Medium, noise and request are read-only, the response is write-only; only the mailbox accepts
  // writes of less than a word.
  function automatic logic may(input logic [31:0] addr, input logic we, input logic [3:0] be);
    if (!we) return addr[31:13] != 19'h20003;
    return addr[31:28] == 4'h4 && addr[31:12] != 20'h40003 && addr[31:13] != 19'h20002 && (be == 4'hf || device(addr) == dev_sel_t'(4));
  endfunction

  logic init = 1'b0;
  logic was_reset, served;  // the processor was in reset; a device was accessed
  logic owed;                   // an access was granted and not answered
  logic [31:0] addr, wdata;     // that access
  logic we, bad, asked;         // it is not allowed; a device was accessed for it
  logic [3:0] be;
  logic [3:0] since;            // cycles of waiting
  logic was_answer, was_good;   // the device's response in the cycle before
  logic [31:0] answer;
  dev_sel_t own;
  assign own = device(addr);
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    was_reset <= !rst_ni;
    served <= rst_ni && dut.data_q == 2'd2;
    if (!init) assume (!rst_ni);
    was_answer <= 1'b0;
    if (!rst_ni) begin
      owed <= 1'b0;
      asked <= 1'b0;
    end else begin
      if (data_gnt) begin
        owed <= 1'b1;
        asked <= 1'b0;
        addr <= data_addr_i;
        wdata <= data_wdata_i;
        we <= data_we_i;
        be <= data_be_i;
        since <= '0;
      end else begin
        if (data_rvalid) owed <= 1'b0;
        if (owed) since <= since + 1'b1;
      end
      if (sel != '0) asked <= 1'b1;
      was_answer <= sel != '0 && (sel & dev_ready_i) != '0;
      was_good <= (sel & dev_err_i) == '0;
      answer <= '0;
      for (int d = 0; d < DEVICES; d++) if (sel[d]) answer <= dev_rdata_i[d];
    end
  end

  logic fetched, fetched_rom, fetched_memory;
  always_ff @(posedge clk_i) begin
    fetched <= rst_ni && instr_gnt;
    fetched_rom <= place(instr_addr_i) == P_ROM;
    fetched_memory <= place(instr_addr_i) == P_MEMORY;
  end
  logic good;                   // the place accepts it
  assign good = own != '0 && may(addr, we, be);
  logic memory;
  assign memory = place(addr) == P_MEMORY || place(addr) == P_RAM || (place(addr) == P_ROM && !we);
  always_comb begin
    if (init && rst_ni) begin
      // Instructions.
      assert (instr_gnt == instr_req_i && instr_rvalid == fetched);
      if (instr_rvalid) begin
        assert (instr_err == !(fetched_rom || fetched_memory));
        assert (instr_rdata == (fetched_rom ? rom_instr_i : fetched_memory ? memory_instr_i : 32'd0));
      end
      // Data: one access at a time.
      // no word remains of an access to a device, or across a reset
      if (served && dut.data_q != 2'd2) assert (dut.wdata_q == '0);
      if (was_reset) assert (dut.addr_q == '0 && dut.wdata_q == '0 && dut.rdata_q == '0);
      if (data_gnt) assert (data_req_i && (!owed || data_rvalid));
      if (data_rvalid) assert (owed);
      if (owed) assert (since <= 4'd9);
      assert (owed == (dut.data_q != 2'd0));
      if (dut.data_q == 2'd2) assert (good && dut.sel_q == own && since == 4'(dut.waited_q));
      if (dut.data_q == 2'd1) assert (memory && since == '0);
      if (dut.data_q == 2'd3) assert (!memory);
      if (owed) assert (dut.we_q == we && dut.be_q == be && dut.addr_q == addr[19:0]);
      if (dut.data_q == 2'd2) assert (dut.wdata_q == wdata);
      if (dut.data_q == 2'd1) assert ((dut.place_q == 4'd1) == (place(addr) == P_ROM) && (dut.place_q == 4'd2) == (place(addr) == P_MEMORY));
      if (dut.data_q == 2'd3) assert (asked == good && (asked || dut.err_q));
      if (dut.data_q == 2'd3 && asked) assert (dut.err_q == !(was_answer && was_good));
      if (dut.data_q == 2'd3) assert (dut.rdata_q == (asked && was_answer && was_good && !we ? answer : 32'd0));
      // Memories.
      if (memory_we != '0) assert (data_gnt && data_we_i && place(data_addr_i) == P_MEMORY && memory_we == data_be_i);
      if (ram_we != '0) assert (data_gnt && data_we_i && place(data_addr_i) == P_RAM && ram_we == data_be_i && !ram_busy_i);
      if (data_gnt && place(data_addr_i) == P_RAM) assert (!ram_busy_i);
      // Devices.
      if (sel != '0) assert (owed && good && sel == own && dev_we == we && dev_be == be && dev_addr == addr[19:0] && dev_wdata == wdata);
      if (data_rvalid && !memory) assert (data_err == !(good && was_answer && was_good));
      if (data_rvalid && !memory) assert (data_rdata == (good && was_answer && was_good && !we ? answer : 32'd0));
      if (data_rvalid && memory) assert (!data_err);
      if (data_rvalid && memory)
        assert (data_rdata == (place(addr) == P_ROM ? rom_data_i : place(addr) == P_MEMORY ? memory_data_i : ram_data_i));
    end
    cover (init && rst_ni && data_rvalid && !data_err && !we && own[9] && data_rdata == 32'h0bad_cafe);
    cover (init && rst_ni && data_rvalid && data_err && good && !was_answer);
    cover (init && rst_ni && instr_rvalid && instr_err);
    cover (init && rst_ni && ram_we == 4'd2);
  end
endmodule
`default_nettype wire
