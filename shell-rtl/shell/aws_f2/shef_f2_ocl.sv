// BAR0 in the shell of AWS F2: decodes it, and answers each access within Patience cycles.
//
// ocl_*: AXI4-Lite slave with one access at a time. The control window and the boot medium belong
// to the core's clock: such an access leaves at access_o, and its answer comes at answer_i. It is
// answered with SLVERR and ones at once if the core is not there (running_i, held_i), and after
// Patience cycles from its VALID if the answer is late; the late answer is dropped, and until it
// arrives, or linked_i falls, further such accesses are answered at once. All other addresses are
// answered here, unused ones with zero.
// linked_i: the path to the core's clock is up. start_o and reset_o: commands, high for a cycle.
`default_nettype none
module shef_f2_ocl
  import shef_f2_pkg::*;
  import shef_f2_regs_pkg::*;
#(
    parameter int unsigned Patience = 1500,
    parameter int unsigned CoreKhz = 100_000
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    // shell
    input  wire logic [31:0] ocl_awaddr,
    input  wire logic        ocl_awvalid,
    output logic             ocl_awready,
    input  wire logic [31:0] ocl_wdata,
    input  wire logic [3:0]  ocl_wstrb,
    input  wire logic        ocl_wvalid,
    output logic             ocl_wready,
    output logic [1:0]       ocl_bresp,
    output logic             ocl_bvalid,
    input  wire logic        ocl_bready,
    input  wire logic [31:0] ocl_araddr,
    input  wire logic        ocl_arvalid,
    output logic             ocl_arready,
    output logic [31:0]      ocl_rdata,
    output logic [1:0]       ocl_rresp,
    output logic             ocl_rvalid,
    input  wire logic        ocl_rready,
    // core
    input  wire logic linked_i,
    output logic      access_valid_o,
    input  wire logic access_ready_i,
    output access_t   access_o,
    input  wire logic answer_valid_i,
    output logic      answer_ready_o,
    input  wire answer_t answer_i,
    // life and page
    input  wire logic running_i,
    input  wire logic held_i,
    output logic      start_o,
    output logic      reset_o,
    input  wire status_t status_i,
    input  wire logic [1:0]  max_payload_i,
    input  wire logic [2:0]  max_read_i,
    input  wire logic        pcis_read_late_i,
    input  wire logic        pcis_write_late_i,
    input  wire logic        irq_dropped_i,
    input  wire logic        unlocked_i,
    input  wire logic [31:0] wipe_cycles_i
);
  localparam int unsigned AgeW = $clog2(Patience + 1);
  typedef logic [AgeW-1:0] age_t;

  typedef enum logic [1:0] {
    IDLE = 2'd0,
    ASK = 2'd1,    // at access_o
    WAIT = 2'd2,   // for answer_i
    ANSWER = 2'd3  // at B or R
  } state_e;

  state_e state_q;
  logic write_q, late_q, error_q, start_q, reset_q;
  logic owed_q;  // the core owes an answer that will be dropped
  logic [31:0] data_q;
  access_t access_q;
  age_t write_age_q, read_age_q;
  logic [31:0] ocl_late_q, reads_late_q, writes_late_q, dropped_q, unlocks_q, medium_writes_q;

  wire write_valid = ocl_awvalid && ocl_wvalid;
  // The older access is first; the shell has at most one of each kind.
  // In reset, nothing is accepted: it would be lost.
  wire idle = rst_ni && state_q == IDLE;
  wire take_write = idle && write_valid &&
      (!ocl_arvalid || write_age_q >= read_age_q);
  wire take_read = idle && ocl_arvalid && !take_write;
  wire [31:0] addr = take_write ? ocl_awaddr : ocl_araddr;

  wire in_ctl = addr[31:16] == 16'h0;
  wire in_page = addr[31:12] == F2_BASE[31:12];
  wire [31:0] medium_offset = addr - MEDIUM_BASE;
  wire in_medium = addr >= MEDIUM_BASE && medium_offset < 32'(4 * MEDIUM_WORDS);
  wire reachable = linked_i && !owed_q && (in_ctl && running_i || in_medium && held_i);
  // A frozen medium takes nothing and shows nothing.
  wire frozen = in_medium && !held_i;
  wire f2_sel_e sel = f2_decode(addr[11:0]);
  wire command = take_write && in_page && sel == F2_SEL_CONTROL && ocl_wstrb == '1;

  logic [31:0] page;
  always_comb begin
    page = '0;
    unique case (sel)
      F2_SEL_ID: page = F2_ID_RESET;
      F2_SEL_VERSION: page = F2_VERSION_RESET;
      F2_SEL_STATUS: begin
        page[F2_STATUS_LOCKED_LSB] = status_i.locked;
        page[F2_STATUS_RUNNING_LSB] = status_i.running;
        page[F2_STATUS_READY_LSB] = status_i.ready;
        page[F2_STATUS_MEMORY_READY_LSB] = status_i.memory_ready;
        page[F2_STATUS_FROZEN_LSB] = status_i.frozen;
        page[F2_STATUS_WIPING_LSB] = status_i.wiping;
        page[F2_STATUS_ALERT_LSB+:4] = status_i.alert;
      end
      F2_SEL_CORE_KHZ: page = 32'(CoreKhz);
      F2_SEL_KERNEL_KHZ: page = 32'(CoreKhz / 2);
      F2_SEL_PCIE: begin
        page[F2_PCIE_MAX_PAYLOAD_LSB+:2] = max_payload_i;
        page[F2_PCIE_MAX_READ_REQUEST_LSB+:3] = max_read_i;
      end
      F2_SEL_MEDIUM_WORDS: page = 32'(MEDIUM_WORDS);
      F2_SEL_OCL_LATE: page = ocl_late_q;
      F2_SEL_PCIS_READS_LATE: page = reads_late_q;
      F2_SEL_PCIS_WRITES_LATE: page = writes_late_q;
      F2_SEL_IRQ_DROPPED: page = dropped_q;
      F2_SEL_WIPE_CYCLES: page = wipe_cycles_i;
      F2_SEL_UNLOCKS: page = unlocks_q;
      F2_SEL_MEDIUM_WRITES: page = medium_writes_q;
      default: page = '0;
    endcase
  end

  wire age_t age = write_q ? write_age_q : read_age_q;
  wire too_old = age >= age_t'(Patience);
  wire answered = state_q == WAIT && answer_valid_i;
  wire give_up = (state_q == ASK || state_q == WAIT) && !answered && (too_old || !linked_i);

  assign ocl_awready = take_write;
  assign ocl_wready = take_write;
  assign ocl_arready = take_read;
  assign ocl_bvalid = state_q == ANSWER && write_q;
  assign ocl_bresp = {error_q, 1'b0};
  assign ocl_rvalid = state_q == ANSWER && !write_q;
  assign ocl_rresp = {error_q, 1'b0};
  assign ocl_rdata = data_q;
  assign access_valid_o = state_q == ASK;
  assign access_o = access_q;
  assign answer_ready_o = 1'b1;
  assign start_o = start_q;
  assign reset_o = reset_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      write_q <= 1'b0;
      late_q <= 1'b0;
      error_q <= 1'b0;
      start_q <= 1'b0;
      reset_q <= 1'b0;
      owed_q <= 1'b0;
      data_q <= '0;
      access_q <= '0;
      write_age_q <= '0;
      read_age_q <= '0;
      ocl_late_q <= '0;
      reads_late_q <= '0;
      writes_late_q <= '0;
      dropped_q <= '0;
      unlocks_q <= '0;
      medium_writes_q <= '0;
    end else begin
      // Ages of the accesses that wait, and of the one under way.
      if (ocl_bvalid && ocl_bready) write_age_q <= '0;
      else if ((ocl_awvalid || ocl_wvalid || state_q != IDLE && write_q) &&
          write_age_q != age_t'(Patience))
        write_age_q <= write_age_q + age_t'(1);
      if (ocl_rvalid && ocl_rready) read_age_q <= '0;
      else if ((ocl_arvalid || state_q != IDLE && !write_q) && read_age_q != age_t'(Patience))
        read_age_q <= read_age_q + age_t'(1);

      start_q <= command && ocl_wdata == F2_CONTROL_COMMAND_START;
      reset_q <= command && ocl_wdata == F2_CONTROL_COMMAND_RESET;
      late_q <= give_up;
      if (!linked_i || owed_q && answer_valid_i) owed_q <= 1'b0;

      unique case (state_q)
        IDLE: begin
          if (take_write || take_read) begin
            write_q <= take_write;
            access_q <= '{
                boot: in_medium,
                write: take_write,
                addr: in_medium ? medium_offset[18:2] : addr[16:0],
                data: ocl_wdata,
                strb: ocl_wstrb
            };
            state_q <= reachable ? ASK : ANSWER;
            error_q <= in_ctl && !reachable || in_medium && !reachable && !frozen;
            if (in_page) data_q <= page;
            else data_q <= in_ctl || in_medium && !frozen ? '1 : '0;
          end
        end
        ASK: begin
          if (access_ready_i) state_q <= WAIT;
          if (give_up) begin
            state_q <= ANSWER;
            error_q <= 1'b1;
            data_q <= '1;
            owed_q <= linked_i && access_ready_i;
          end
        end
        WAIT: begin
          if (answered) begin
            state_q <= ANSWER;
            error_q <= answer_i.error;
            data_q <= answer_i.data;
            if (access_q.boot && access_q.write)
              medium_writes_q <= count(medium_writes_q, !answer_i.error);
          end else if (give_up) begin
            state_q <= ANSWER;
            error_q <= 1'b1;
            data_q <= '1;
            owed_q <= linked_i;
          end
        end
        default: begin
          if (write_q ? ocl_bready : ocl_rready) state_q <= IDLE;
        end
      endcase

      ocl_late_q <= count(ocl_late_q, late_q);
      reads_late_q <= count(reads_late_q, pcis_read_late_i);
      writes_late_q <= count(writes_late_q, pcis_write_late_i);
      dropped_q <= count(dropped_q, irq_dropped_i);
      unlocks_q <= count(unlocks_q, unlocked_i);
      if (status_i.frozen || reset_q) medium_writes_q <= '0;
    end
  end
endmodule
`default_nettype wire
