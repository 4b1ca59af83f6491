// Registers of an accelerator: start, status, arguments and results, AXI4-Lite.
//
// Offsets: 0x00 CTRL, write 1: start; 0x04 STATUS, read-only: bit 0 busy, bit 1 done, bit 2 error;
// from 0x08 on NArgs arguments, read and write; behind them NResults results, read-only. Any other
// address, and a write to a read-only register, gets SLVERR. A write while busy, or without all four
// strobes, changes nothing. AW and W are taken together, one write and one read at a time.
//
// A start clears done and error, raises busy and start_o for one cycle. If refuse_i is high (the
// arguments are out of range), the run is over at once, with error, and start_o stays low. end_i is
// the last cycle of a run, fail_i in any cycle of the run makes it end with error. irq_o is done.
`default_nettype none
module shef_kit_regs
  import shef_pkg::*;
#(
    parameter int unsigned NArgs = 1,
    parameter int unsigned NResults = 1
) (
    input  wire                       clk_i,
    input  wire                       rst_ni,

    input  wire                [15:0] reg_awaddr_i,
    input  wire                       reg_awvalid_i,
    output wire                       reg_awready_o,
    input  wire                [31:0] reg_wdata_i,
    input  wire                [ 3:0] reg_wstrb_i,
    input  wire                       reg_wvalid_i,
    output wire                       reg_wready_o,
    output wire                [ 1:0] reg_bresp_o,
    output wire                       reg_bvalid_o,
    input  wire                       reg_bready_i,
    input  wire                [15:0] reg_araddr_i,
    input  wire                       reg_arvalid_i,
    output wire                       reg_arready_o,
    output wire                [31:0] reg_rdata_o,
    output wire                [ 1:0] reg_rresp_o,
    output wire                       reg_rvalid_o,
    input  wire                       reg_rready_i,

    output wire [NArgs-1:0]    [31:0] args_o,
    input  wire [NResults-1:0] [31:0] results_i,
    input  wire                       refuse_i,
    output wire                       start_o,
    output wire                       busy_o,
    output wire                       error_o,  // so far
    input  wire                       end_i,
    input  wire                       fail_i,
    output wire                       irq_o
);
  localparam int unsigned ARGS = 2;                // word of the first argument
  localparam int unsigned RESULTS = ARGS + NArgs;  // of the first result
  localparam int unsigned WORDS = RESULTS + NResults;

  logic [NArgs-1:0][31:0] args_q;
  logic start_q, busy_q, done_q, error_q;
  logic bvalid_q, rvalid_q;
  logic [1:0] bresp_q, rresp_q;
  logic [31:0] rdata_q;

  wire write = reg_awvalid_i && reg_wvalid_i && !bvalid_q;
  wire read = reg_arvalid_i && !rvalid_q;
  wire [13:0] to = reg_awaddr_i[15:2];
  wire [13:0] from = reg_araddr_i[15:2];
  wire writable = reg_awaddr_i[1:0] == 2'b00 && (to == '0 || to >= 14'(ARGS) && to < 14'(RESULTS));
  wire readable = reg_araddr_i[1:0] == 2'b00 && from < 14'(WORDS);
  wire change = write && writable && !busy_q && reg_wstrb_i == 4'hf;
  wire start = change && to == '0 && reg_wdata_i[0];

  wire [WORDS-1:0][31:0] words = {results_i, args_q, {29'd0, error_q, done_q, busy_q}, 32'd0};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      args_q <= '0;
      {start_q, busy_q, done_q, error_q} <= '0;
      {bvalid_q, rvalid_q} <= '0;
      {bresp_q, rresp_q} <= {AXI_OKAY, AXI_OKAY};
      rdata_q <= '0;
    end else begin
      if (write) begin
        bvalid_q <= 1'b1;
        bresp_q <= writable ? AXI_OKAY : AXI_SLVERR;
      end else if (reg_bready_i) bvalid_q <= 1'b0;
      for (int unsigned i = 0; i < NArgs; i++) begin
        if (change && to == 14'(ARGS + i)) args_q[i] <= reg_wdata_i;
      end
      if (read) begin
        rvalid_q <= 1'b1;
        rresp_q <= readable ? AXI_OKAY : AXI_SLVERR;
        rdata_q <= '0;
        for (int unsigned i = 0; i < WORDS; i++) begin
          if (readable && from == 14'(i)) rdata_q <= words[i];
        end
      end else if (reg_rready_i) begin
        rvalid_q <= 1'b0;
        rdata_q <= '0;
      end
      start_q <= start && !refuse_i;
      if (start) begin
        busy_q <= !refuse_i;
        {done_q, error_q} <= {2{refuse_i}};
      end else if (busy_q) begin
        if (fail_i) error_q <= 1'b1;
        if (end_i) {busy_q, done_q} <= 2'b01;
      end
    end
  end

  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_bvalid_o = bvalid_q;
  assign reg_bresp_o = bresp_q;
  assign reg_arready_o = !rvalid_q;
  assign reg_rvalid_o = rvalid_q;
  assign reg_rresp_o = rresp_q;
  assign reg_rdata_o = rdata_q;
  assign args_o = args_q;
  assign start_o = start_q;
  assign busy_o = busy_q;
  assign error_o = error_q;
  assign irq_o = done_q;
endmodule
`default_nettype wire
