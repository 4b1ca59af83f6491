// Registers of the digits accelerator (README.md), AXI4-Lite slave.
//
// AW and W are accepted together, one write and one read at a time; B one cycle after both, R one
// cycle after AR. An address without a register, or a write to a read-only one, gets SLVERR. Writes
// while busy_i have no effect.
// start_o is a pulse; the values are stable while busy_i.
`default_nettype none
module shef_digits_regs
  import shef_pkg::*;
(
  input  wire        clk_i,
  input  wire        rst_ni,
  input  wire [15:0] reg_awaddr_i,
  input  wire        reg_awvalid_i,
  output wire        reg_awready_o,
  input  wire [31:0] reg_wdata_i,
  input  wire [ 3:0] reg_wstrb_i,
  input  wire        reg_wvalid_i,
  output wire        reg_wready_o,
  output wire [ 1:0] reg_bresp_o,
  output wire        reg_bvalid_o,
  input  wire        reg_bready_i,
  input  wire [15:0] reg_araddr_i,
  input  wire        reg_arvalid_i,
  output wire        reg_arready_o,
  output wire [31:0] reg_rdata_o,
  output wire [ 1:0] reg_rresp_o,
  output wire        reg_rvalid_o,
  input  wire        reg_rready_i,
  output wire        start_o,
  input  wire        busy_i,
  input  wire        done_i,
  input  wire        error_i,
  input  wire [63:0] cycles_i,
  output wire [63:0] train_addr_o,
  output wire [63:0] query_addr_o,
  output wire [63:0] result_addr_o,
  output wire [63:0] label_addr_o,
  output wire [31:0] train_rows_o,
  output wire [31:0] query_rows_o
);
  localparam logic [31:0] ID = 32'h4449_4731;  // "DIG1"
  localparam logic [31:0] BATCH = 32'd4;

  logic [63:0] train_addr_q, query_addr_q, result_addr_q, label_addr_q;
  logic [31:0] train_rows_q, query_rows_q;
  logic start_q;
  logic bvalid_q, rvalid_q;
  logic [1:0] bresp_q, rresp_q;
  logic [31:0] rdata_q;

  wire write = reg_awvalid_i && reg_wvalid_i && !bvalid_q;
  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_arready_o = !rvalid_q;
  wire change = write && !busy_i && !start_q;

  function automatic logic [31:0] merge(input logic [31:0] old, input logic [31:0] data,
      input logic [3:0] strb);
    logic [31:0] y;
    for (int i = 0; i < 4; i++) y[8*i+:8] = strb[i] ? data[8*i+:8] : old[8*i+:8];
    return y;
  endfunction

  function automatic logic writable(input logic [15:0] addr);
    return addr[1:0] == 2'd0 && addr <= 16'h2c && addr != 16'h04;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      train_addr_q <= '0;
      query_addr_q <= '0;
      result_addr_q <= '0;
      label_addr_q <= '0;
      train_rows_q <= '0;
      query_rows_q <= '0;
      start_q <= 1'b0;
      bvalid_q <= 1'b0;
      bresp_q <= AXI_OKAY;
    end else begin
      start_q <= change && reg_awaddr_i == 16'h00 && reg_wstrb_i[0] && reg_wdata_i[0];
      if (write) begin
        bvalid_q <= 1'b1;
        bresp_q <= writable(reg_awaddr_i) ? AXI_OKAY : AXI_SLVERR;
      end else if (reg_bready_i) bvalid_q <= 1'b0;
      if (change) begin
        unique case (reg_awaddr_i)
          16'h08: train_addr_q[31:0] <= merge(train_addr_q[31:0], reg_wdata_i, reg_wstrb_i);
          16'h0c: train_addr_q[63:32] <= merge(train_addr_q[63:32], reg_wdata_i, reg_wstrb_i);
          16'h10: train_rows_q <= merge(train_rows_q, reg_wdata_i, reg_wstrb_i);
          16'h14: query_addr_q[31:0] <= merge(query_addr_q[31:0], reg_wdata_i, reg_wstrb_i);
          16'h18: query_addr_q[63:32] <= merge(query_addr_q[63:32], reg_wdata_i, reg_wstrb_i);
          16'h1c: query_rows_q <= merge(query_rows_q, reg_wdata_i, reg_wstrb_i);
          16'h20: result_addr_q[31:0] <= merge(result_addr_q[31:0], reg_wdata_i, reg_wstrb_i);
          16'h24: result_addr_q[63:32] <= merge(result_addr_q[63:32], reg_wdata_i, reg_wstrb_i);
          16'h28: label_addr_q[31:0] <= merge(label_addr_q[31:0], reg_wdata_i, reg_wstrb_i);
          16'h2c: label_addr_q[63:32] <= merge(label_addr_q[63:32], reg_wdata_i, reg_wstrb_i);
          default: ;
        endcase
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rvalid_q <= 1'b0;
      rresp_q <= AXI_OKAY;
      rdata_q <= '0;
    end else if (reg_arvalid_i && !rvalid_q) begin
      rvalid_q <= 1'b1;
      rresp_q <= AXI_OKAY;
      unique case (reg_araddr_i)
        16'h00: rdata_q <= '0;
        16'h04: rdata_q <= {29'd0, error_i, done_i && !start_q, busy_i || start_q};
        16'h08: rdata_q <= train_addr_q[31:0];
        16'h0c: rdata_q <= train_addr_q[63:32];
        16'h10: rdata_q <= train_rows_q;
        16'h14: rdata_q <= query_addr_q[31:0];
        16'h18: rdata_q <= query_addr_q[63:32];
        16'h1c: rdata_q <= query_rows_q;
        16'h20: rdata_q <= result_addr_q[31:0];
        16'h24: rdata_q <= result_addr_q[63:32];
        16'h28: rdata_q <= label_addr_q[31:0];
        16'h2c: rdata_q <= label_addr_q[63:32];
        16'h30: rdata_q <= cycles_i[31:0];
        16'h34: rdata_q <= cycles_i[63:32];
        16'h38: rdata_q <= ID;
        16'h3c: rdata_q <= BATCH;
        default: begin
          rdata_q <= '0;
          rresp_q <= AXI_SLVERR;
        end
      endcase
    end else if (reg_rready_i) rvalid_q <= 1'b0;
  end

  assign reg_bvalid_o = bvalid_q;
  assign reg_bresp_o = bresp_q;
  assign reg_rvalid_o = rvalid_q;
  assign reg_rresp_o = rresp_q;
  assign reg_rdata_o = rdata_q;
  assign start_o = start_q;
  assign train_addr_o = train_addr_q;
  assign query_addr_o = query_addr_q;
  assign result_addr_o = result_addr_q;
  assign label_addr_o = label_addr_q;
  assign train_rows_o = train_rows_q;
  assign query_rows_o = query_rows_q;
endmodule
`default_nettype wire
