// AXI4-Lite master for one 32-bit register access at a time, with a time-out.
//
// Command side: start_i is a pulse while busy_o is 0, with write_i, addr_i and wdata_i; done_o is a
// pulse of one cycle with err_o and, for a read, rdata_o (which stay until the next start). A slave
// that does not answer within TimeoutCycles gives err_o, and is not asked again until clear_i:
// later accesses fail at once. valid never waits for ready; address and data are stable while valid
// and not ready.
`default_nettype none
module shef_axil_master #(
    parameter int unsigned AddrW = 16,
    parameter int unsigned TimeoutCycles = 1024
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             clear_i,
    input  wire logic             start_i,
    input  wire logic             write_i,
    input  wire logic [AddrW-1:0] addr_i,
    input  wire logic [31:0]      wdata_i,
    output logic                  busy_o,
    output logic                  done_o,
    output logic                  err_o,
    output logic [31:0]           rdata_o,
    output logic [AddrW-1:0]      awaddr_o,
    output logic                  awvalid_o,
    input  wire logic             awready_i,
    output logic [31:0]           wdata_o,
    output logic [3:0]            wstrb_o,
    output logic                  wvalid_o,
    input  wire logic             wready_i,
    input  wire logic [1:0]       bresp_i,
    input  wire logic             bvalid_i,
    output logic                  bready_o,
    output logic [AddrW-1:0]      araddr_o,
    output logic                  arvalid_o,
    input  wire logic             arready_i,
    input  wire logic [31:0]      rdata_i,
    input  wire logic [1:0]       rresp_i,
    input  wire logic             rvalid_i,
    output logic                  rready_o
);
  localparam int unsigned TimerW = $clog2(TimeoutCycles + 1);

  logic busy_q, write_q, dead_q, done_q, err_q, aw_q, w_q, ar_q;
  logic [AddrW-1:0] addr_q;
  logic [31:0] wdata_q, rdata_q;
  logic [TimerW-1:0] timer_q;

  assign busy_o = busy_q;
  assign done_o = done_q;
  assign err_o = err_q;
  assign rdata_o = rdata_q;
  assign awaddr_o = addr_q;
  assign awvalid_o = aw_q;
  assign wdata_o = wdata_q;
  assign wstrb_o = 4'hf;
  assign wvalid_o = w_q;
  assign bready_o = busy_q && write_q;
  assign araddr_o = addr_q;
  assign arvalid_o = ar_q;
  assign rready_o = busy_q && !write_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      busy_q <= 1'b0;
      write_q <= 1'b0;
      dead_q <= 1'b0;
      done_q <= 1'b0;
      err_q <= 1'b0;
      aw_q <= 1'b0;
      w_q <= 1'b0;
      ar_q <= 1'b0;
      addr_q <= '0;
      wdata_q <= '0;
      rdata_q <= '0;
      timer_q <= '0;
    end else begin
      done_q <= 1'b0;
      if (aw_q && awready_i) aw_q <= 1'b0;
      if (w_q && wready_i) w_q <= 1'b0;
      if (ar_q && arready_i) ar_q <= 1'b0;
      if (start_i && !busy_q) begin
        rdata_q <= '0;
        if (dead_q) begin
          done_q <= 1'b1;
          err_q <= 1'b1;
        end else begin
          busy_q <= 1'b1;
          write_q <= write_i;
          addr_q <= addr_i;
          wdata_q <= wdata_i;
          aw_q <= write_i;
          w_q <= write_i;
          ar_q <= !write_i;
          timer_q <= '0;
        end
      end else if (busy_q) begin
        timer_q <= timer_q + 1'b1;
        if (write_q && bvalid_i) begin
          busy_q <= 1'b0;
          done_q <= 1'b1;
          err_q <= bresp_i != shef_pkg::AXI_OKAY;
        end else if (!write_q && rvalid_i) begin
          busy_q <= 1'b0;
          done_q <= 1'b1;
          err_q <= rresp_i != shef_pkg::AXI_OKAY;
          rdata_q <= rresp_i == shef_pkg::AXI_OKAY ? rdata_i : 32'd0;
        end else if (timer_q == TimerW'(TimeoutCycles)) begin
          busy_q <= 1'b0;
          done_q <= 1'b1;
          err_q <= 1'b1;
          dead_q <= 1'b1;
        end
      end
    end
  end

endmodule
`default_nettype wire
