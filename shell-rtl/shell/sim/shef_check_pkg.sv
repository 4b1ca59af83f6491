// Rules and reports of the protocol checker (shef_check).
//
// This file is the only table of the rules: sim/rtl/src/check.rs reads names, numbers and texts
// from the lines of rule_e and signal_e. Names with AXI_ and AXI4LITE_ are those of Arm's protocol
// assertions: ERRM is an error of the master, ERRS of the slave, RECS a recommendation to the
// slave. The accelerator is the master of its memory ports and the slave of its registers.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_check_pkg;
  import shef_pkg::*;

  typedef enum logic [7:0] {
    RULE_NONE = 8'd0,
    // ---- write requests; those of reads have the same order, READ_RULES later ----
    AXI_ERRM_AWVALID_RESET = 8'd1,  // AWVALID is low in reset
    AXI_ERRM_AWVALID_STABLE = 8'd2,  // AWVALID stays high until AWREADY
    AXI_ERRM_AWID_STABLE = 8'd3,  // AWID does not change while it waits for AWREADY
    AXI_ERRM_AWADDR_STABLE = 8'd4,  // AWADDR does not change while it waits for AWREADY
    AXI_ERRM_AWLEN_STABLE = 8'd5,  // AWLEN does not change while it waits for AWREADY
    AXI_ERRM_AWSIZE_STABLE = 8'd6,  // AWSIZE does not change while it waits for AWREADY
    AXI_ERRM_AWBURST_STABLE = 8'd7,  // AWBURST does not change while it waits for AWREADY
    AXI_ERRM_AWBURST = 8'd8,  // AWBURST is not the reserved value 3
    AXI_ERRM_AWSIZE = 8'd9,  // AWSIZE is at most the width of the bus, 6
    AXI_ERRM_AWLEN_FIXED = 8'd10,  // a FIXED burst has at most 16 beats
    AXI_ERRM_AWLEN_WRAP = 8'd11,  // a WRAP burst has 2, 4, 8 or 16 beats
    AXI_ERRM_AWADDR_WRAP_ALIGN = 8'd12,  // a WRAP burst starts at a multiple of its beat size
    AXI_ERRM_AWADDR_BOUNDARY = 8'd13,  // a write burst stays in its page of 4 KiB
    // ---- read requests ----
    AXI_ERRM_ARVALID_RESET = 8'd14,  // ARVALID is low in reset
    AXI_ERRM_ARVALID_STABLE = 8'd15,  // ARVALID stays high until ARREADY
    AXI_ERRM_ARID_STABLE = 8'd16,  // ARID does not change while it waits for ARREADY
    AXI_ERRM_ARADDR_STABLE = 8'd17,  // ARADDR does not change while it waits for ARREADY
    AXI_ERRM_ARLEN_STABLE = 8'd18,  // ARLEN does not change while it waits for ARREADY
    AXI_ERRM_ARSIZE_STABLE = 8'd19,  // ARSIZE does not change while it waits for ARREADY
    AXI_ERRM_ARBURST_STABLE = 8'd20,  // ARBURST does not change while it waits for ARREADY
    AXI_ERRM_ARBURST = 8'd21,  // ARBURST is not the reserved value 3
    AXI_ERRM_ARSIZE = 8'd22,  // ARSIZE is at most the width of the bus, 6
    AXI_ERRM_ARLEN_FIXED = 8'd23,  // a FIXED burst has at most 16 beats
    AXI_ERRM_ARLEN_WRAP = 8'd24,  // a WRAP burst has 2, 4, 8 or 16 beats
    AXI_ERRM_ARADDR_WRAP_ALIGN = 8'd25,  // a WRAP burst starts at a multiple of its beat size
    AXI_ERRM_ARADDR_BOUNDARY = 8'd26,  // a read burst stays in its page of 4 KiB
    // ---- write data ----
    AXI_ERRM_WVALID_RESET = 8'd27,  // WVALID is low in reset
    AXI_ERRM_WVALID_STABLE = 8'd28,  // WVALID stays high until WREADY
    AXI_ERRM_WDATA_STABLE = 8'd29,  // WDATA under its strobes does not change while it waits
    AXI_ERRM_WSTRB_STABLE = 8'd30,  // WSTRB does not change while it waits for WREADY
    AXI_ERRM_WLAST_STABLE = 8'd31,  // WLAST does not change while it waits for WREADY
    AXI_ERRM_WDATA_NUM = 8'd32,  // WLAST comes with the last of AWLEN + 1 beats, and no other
    AXI_ERRM_WSTRB = 8'd33,  // WSTRB is high only in the byte lanes of the beat
    // ---- write responses ----
    AXI_ERRS_BVALID_STABLE = 8'd34,  // BVALID stays high until BREADY
    AXI_ERRS_BID_STABLE = 8'd35,  // BID does not change while it waits for BREADY
    AXI_ERRS_BRESP_STABLE = 8'd36,  // BRESP does not change while it waits for BREADY
    AXI_ERRS_BRESP_AW = 8'd37,  // BID is the id of an open write burst
    AXI_ERRS_BRESP_WLAST = 8'd38,  // BVALID comes after the last beat of the burst
    AXI_ERRS_BRESP_EXOKAY = 8'd39,  // BRESP is not EXOKAY: no access is exclusive
    // ---- read data ----
    AXI_ERRS_RVALID_STABLE = 8'd40,  // RVALID stays high until RREADY
    AXI_ERRS_RID_STABLE = 8'd41,  // RID does not change while it waits for RREADY
    AXI_ERRS_RDATA_STABLE = 8'd42,  // RDATA in its byte lanes does not change while it waits
    AXI_ERRS_RRESP_STABLE = 8'd43,  // RRESP does not change while it waits for RREADY
    AXI_ERRS_RLAST_STABLE = 8'd44,  // RLAST does not change while it waits for RREADY
    AXI_ERRS_RID = 8'd45,  // RID is the id of an open read burst
    AXI_ERRS_RDATA_NUM = 8'd46,  // RLAST comes with the last of ARLEN + 1 beats, and no other
    AXI_ERRS_RRESP_EXOKAY = 8'd47,  // RRESP is not EXOKAY: no access is exclusive
    // ---- registers ----
    AXI4LITE_ERRS_BVALID_RESET = 8'd48,  // BVALID is low in reset
    AXI4LITE_ERRS_BVALID_STABLE = 8'd49,  // BVALID stays high until BREADY
    AXI4LITE_ERRS_BRESP_STABLE = 8'd50,  // BRESP does not change while it waits for BREADY
    AXI4LITE_ERRS_BRESP_AW = 8'd51,  // BVALID follows an accepted AW and an accepted W
    AXI4LITE_ERRS_BRESP_EXOKAY = 8'd52,  // BRESP is not EXOKAY
    AXI4LITE_ERRS_RVALID_RESET = 8'd53,  // RVALID is low in reset
    AXI4LITE_ERRS_RVALID_STABLE = 8'd54,  // RVALID stays high until RREADY
    AXI4LITE_ERRS_RDATA_STABLE = 8'd55,  // RDATA does not change while it waits for RREADY
    AXI4LITE_ERRS_RRESP_STABLE = 8'd56,  // RRESP does not change while it waits for RREADY
    AXI4LITE_ERRS_RDATA_NUM = 8'd57,  // RVALID follows an accepted AR
    AXI4LITE_ERRS_RRESP_EXOKAY = 8'd58,  // RRESP is not EXOKAY
    AXI4LITE_RECS_AWREADY_MAX_WAIT = 8'd59,  // AWREADY comes within 1,000 cycles
    AXI4LITE_RECS_WREADY_MAX_WAIT = 8'd60,  // WREADY comes within 1,000 cycles
    AXI4LITE_RECS_ARREADY_MAX_WAIT = 8'd61,  // ARREADY comes within 1,000 cycles
    AXI4LITE_RECS_BVALID_MAX_WAIT = 8'd62,  // BVALID comes within 1,000 cycles of AW and W
    AXI4LITE_RECS_RVALID_MAX_WAIT = 8'd63,  // RVALID comes within 1,000 cycles of AR
    // ---- the contract of an accelerator ----
    SHEF_ERRM_W_ALONE = 8'd64,  // write data have their AW within 1,000 cycles
    SHEF_ERRM_OPEN_AT_DONE = 8'd65,  // no burst is open when the status register says done
    SHEF_ERRM_OPEN_AT_IRQ = 8'd66,  // no burst is open at an interrupt
    SHEF_ERRM_OUTSTANDING = 8'd67,  // at most 1,022 bursts begin while one is open
    SHEF_ERRM_BURST = 8'd68,  // bursts are INCR: the Shield refuses FIXED and WRAP
    SHEF_ERRM_REGION_CROSSED = 8'd69,  // a burst stays in its region
    SHEF_ERRM_RANGE = 8'd70,  // a burst is in a region of its port
    SHEF_ERRM_READ_ONLY = 8'd71,  // an input region is not written
    SHEF_ERRM_OUTPUT_TWICE = 8'd72,  // a closed chunk of an output region is not written again
    SHEF_ERRM_OUTPUT_GAP = 8'd73,  // a chunk of an output region has no gap when it is closed
    SHEF_ERRS_REFUSED = 8'd74,  // the answer is OKAY, unless another rule names the reason
    SHEF_ERRM_CLEARED_EARLY = 8'd75,  // cleared_o is low while clear_i is low
    SHEF_ERRM_CLEARED_DROPPED = 8'd76,  // cleared_o stays high until clear_i falls
    SHEF_ERRM_CLEARED_LATE = 8'd77  // cleared_o comes within 65,536 cycles of clear_i
  } rule_e;

  localparam logic [7:0] READ_RULES = 8'd13;

  typedef enum logic [5:0] {
    SIG_NONE = 6'd0,
    SIG_AWVALID = 6'd1,
    SIG_AWID = 6'd2,
    SIG_AWADDR = 6'd3,
    SIG_AWLEN = 6'd4,
    SIG_AWSIZE = 6'd5,
    SIG_AWBURST = 6'd6,
    SIG_ARVALID = 6'd7,
    SIG_ARID = 6'd8,
    SIG_ARADDR = 6'd9,
    SIG_ARLEN = 6'd10,
    SIG_ARSIZE = 6'd11,
    SIG_ARBURST = 6'd12,
    SIG_WVALID = 6'd13,
    SIG_WDATA = 6'd14,
    SIG_WSTRB = 6'd15,
    SIG_WLAST = 6'd16,
    SIG_BVALID = 6'd17,
    SIG_BID = 6'd18,
    SIG_BRESP = 6'd19,
    SIG_RVALID = 6'd20,
    SIG_RID = 6'd21,
    SIG_RDATA = 6'd22,
    SIG_RRESP = 6'd23,
    SIG_RLAST = 6'd24,
    SIG_AWREADY = 6'd25,
    SIG_WREADY = 6'd26,
    SIG_ARREADY = 6'd27,
    SIG_IRQ = 6'd28,
    SIG_DONE = 6'd29,
    SIG_CLEARED = 6'd30,
    SIG_CHUNK = 6'd31
  } signal_e;

  localparam logic [5:0] READ_SIGNALS = 6'd6;

  // Sources of reports: the accelerator's memory ports are 0 to 3.
  localparam int unsigned PORT_REG = 4;
  localparam int unsigned PORT_CLEAR = 5;

  typedef struct packed {
    logic        write;
    logic [31:0] number;  // of the bursts of this port and direction, from 0
    axi_ax_t     ax;
  } burst_t;

  // Of data, was and now hold the first different word of 64 bits, and word its number.
  typedef struct packed {
    rule_e       rule;
    logic [2:0]  port;
    logic [63:0] cycle;
    signal_e     signal;
    logic [2:0]  word;
    logic [63:0] was;
    logic [63:0] now;
    logic        has_burst;
    burst_t      burst;
  } report_t;

  // verilator lint_off UNUSEDSIGNAL
  // (functions that look at some bits)

  // Byte address of beat n of a burst.
  function automatic logic [63:0] beat_addr(input axi_ax_t ax, input logic [7:0] n);
    logic [63:0] step, bytes, next;
    step = 64'd1 << ax.size;
    next = (ax.addr & ~(step - 64'd1)) + ({56'd0, n} << ax.size);
    bytes = ({56'd0, ax.len} + 64'd1) << ax.size;
    if (n == 8'd0 || ax.burst == 2'b00) return ax.addr;
    if (ax.burst == 2'b10) return (ax.addr & ~(bytes - 64'd1)) | (next & (bytes - 64'd1));
    return next;
  endfunction

  // Byte lanes of beat n of a burst.
  function automatic logic [63:0] beat_lanes(input axi_ax_t ax, input logic [7:0] n);
    logic [63:0] at;
    logic [6:0] low, high;
    at = beat_addr(ax, n);
    low = {1'b0, at[5:0]};
    high = {1'b0, at[5:0] | 6'((7'd1 << ax.size) - 7'd1)};
    return (64'hffff_ffff_ffff_ffff << low) & (64'hffff_ffff_ffff_ffff >> (7'd63 - high));
  endfunction

  // The first word in which two values differ.
  function automatic logic [2:0] word_of(input logic [511:0] differ);
    for (int w = 0; w < 8; w++) if (differ[64*w+:64] != '0) return 3'(w);
    return '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
