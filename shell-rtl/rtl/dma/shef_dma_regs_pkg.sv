// Generated from shell-rtl/regs/dma.toml by `cargo xtask generate`; do not edit.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_dma_regs_pkg;

  // A queue of the DMA engine, in the control window of a card that has one
  localparam logic [31:0] DMA_BASE = 32'hb000;
  localparam int unsigned DMA_COUNT = 4;
  localparam int unsigned DMA_STRIDE = 64;
  localparam logic [5:0] DMA_RING_LO_OFFSET = 6'h0;
  localparam logic [5:0] DMA_RING_HI_OFFSET = 6'h4;
  localparam logic [5:0] DMA_ENTRIES_OFFSET = 6'h8;
  localparam logic [5:0] DMA_CONTROL_OFFSET = 6'hc;
  localparam logic [5:0] DMA_TAIL_OFFSET = 6'h10;
  localparam logic [5:0] DMA_STATUS_OFFSET = 6'h14;
  localparam logic [5:0] DMA_INTERRUPT_OFFSET = 6'h18;
  localparam logic [31:0] DMA_RING_LO_RESET = 32'h00000000;
  localparam logic [31:0] DMA_RING_HI_RESET = 32'h00000000;
  localparam logic [31:0] DMA_ENTRIES_RESET = 32'h00000000;
  localparam int unsigned DMA_CONTROL_COMMAND_LSB = 0;
  localparam logic [31:0] DMA_CONTROL_COMMAND_CANCEL = 32'd2;
  localparam logic [31:0] DMA_CONTROL_COMMAND_ENABLE = 32'd1;
  localparam logic [31:0] DMA_CONTROL_COMMAND_OFF = 32'd0;
  localparam logic [31:0] DMA_TAIL_RESET = 32'h00000000;
  localparam logic [31:0] DMA_STATUS_RESET = 32'h00000000;
  localparam int unsigned DMA_STATUS_LIFE_LSB = 0;
  localparam logic [1:0] DMA_STATUS_LIFE_FAILED = 2'd2;
  localparam logic [1:0] DMA_STATUS_LIFE_OFF = 2'd0;
  localparam logic [1:0] DMA_STATUS_LIFE_ON = 2'd1;
  localparam logic [31:0] DMA_INTERRUPT_RESET = 32'h00000000;
  localparam int unsigned DMA_INTERRUPT_VECTOR_LSB = 0;
  localparam int unsigned DMA_INTERRUPT_BATCH_LSB = 16;

  typedef enum logic [2:0] {
    DMA_SEL_NONE = 3'd0,
    DMA_SEL_RING_LO = 3'd1,
    DMA_SEL_RING_HI = 3'd2,
    DMA_SEL_ENTRIES = 3'd3,
    DMA_SEL_CONTROL = 3'd4,
    DMA_SEL_TAIL = 3'd5,
    DMA_SEL_STATUS = 3'd6,
    DMA_SEL_INTERRUPT = 3'd7
  } dma_sel_e;

  // What a byte address selects; NONE is answered with an error.
  function automatic dma_sel_e dma_decode(input logic [5:0] addr);
    dma_decode = DMA_SEL_NONE;
    if (addr <= 6'h3) dma_decode = DMA_SEL_RING_LO;
    if (addr >= 6'h4 && addr <= 6'h7) dma_decode = DMA_SEL_RING_HI;
    if (addr >= 6'h8 && addr <= 6'hb) dma_decode = DMA_SEL_ENTRIES;
    if (addr >= 6'hc && addr <= 6'hf) dma_decode = DMA_SEL_CONTROL;
    if (addr >= 6'h10 && addr <= 6'h13) dma_decode = DMA_SEL_TAIL;
    if (addr >= 6'h14 && addr <= 6'h17) dma_decode = DMA_SEL_STATUS;
    if (addr >= 6'h18 && addr <= 6'h1b) dma_decode = DMA_SEL_INTERRUPT;
  endfunction

  function automatic logic dma_readable(input dma_sel_e sel);
    unique case (sel)
      DMA_SEL_RING_LO,
      DMA_SEL_RING_HI,
      DMA_SEL_ENTRIES,
      DMA_SEL_TAIL,
      DMA_SEL_STATUS,
      DMA_SEL_INTERRUPT: dma_readable = 1'b1;
      default: dma_readable = 1'b0;
    endcase
  endfunction

  function automatic logic dma_writable(input dma_sel_e sel);
    unique case (sel)
      DMA_SEL_RING_LO,
      DMA_SEL_RING_HI,
      DMA_SEL_ENTRIES,
      DMA_SEL_CONTROL,
      DMA_SEL_TAIL,
      DMA_SEL_INTERRUPT: dma_writable = 1'b1;
      default: dma_writable = 1'b0;
    endcase
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
