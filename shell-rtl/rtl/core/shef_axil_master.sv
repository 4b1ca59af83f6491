// AXI4-Lite master for one 32-bit register access at a time, with a time-out.
//
// Command side: start_i is a pulse while busy_o is 0, with write_i, addr_i and wdata_i; done_o is a
// pulse of one cycle with err_o and, for a read, rdata_o (which stay until the next start). A slave
// that does not respond within TimeoutCycles causes err_o, and is not accessed again until clear_i:
// later accesses fail at once. valid never waits for ready; address and data are stable while valid
// and not ready.
`default_nettype none
module shef_axil_master
  import shef_pkg::*;
#(
    parameter int unsigned TimeoutCycles = 1024
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        clear_i,
    input  wire logic        start_i,
    input  wire logic        write_i,
    input  wire logic [AXIL_ADDR_W-1:0] addr_i,
    input  wire logic [31:0] wdata_i,
    output logic             busy_o,
    output logic             done_o,
    output logic             err_o,
    output logic [31:0]      rdata_o,
    output axil_req_t        req_o,
    input  wire axil_rsp_t   rsp_i
);
  localparam int unsigned TimerW = $clog2(TimeoutCycles + 1);

  logic busy_q, write_q, dead_q, done_q, err_q, aw_q, w_q, ar_q;
  logic [AXIL_ADDR_W-1:0] addr_q;
  logic [31:0] wdata_q, rdata_q;
  logic [TimerW-1:0] timer_q;

  assign busy_o = busy_q;
  assign done_o = done_q;
  assign err_o = err_q;
  assign rdata_o = rdata_q;
  assign req_o = '{
      aw_addr: addr_q,
      aw_valid: aw_q,
      w_data: wdata_q,
      w_strb: 4'hf,
      w_valid: w_q,
      b_ready: busy_q && write_q,
      ar_addr: addr_q,
      ar_valid: ar_q,
      r_ready: busy_q && !write_q
  };

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
      if (aw_q && rsp_i.aw_ready) aw_q <= 1'b0;
      if (w_q && rsp_i.w_ready) w_q <= 1'b0;
      if (ar_q && rsp_i.ar_ready) ar_q <= 1'b0;
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
        if (write_q && rsp_i.b_valid) begin
          busy_q <= 1'b0;
          done_q <= 1'b1;
          err_q <= rsp_i.b_resp != AXI_OKAY;
        end else if (!write_q && rsp_i.r_valid) begin
          busy_q <= 1'b0;
          done_q <= 1'b1;
          err_q <= rsp_i.r_resp != AXI_OKAY;
          rdata_q <= rsp_i.r_resp == AXI_OKAY ? rsp_i.r_data : 32'd0;
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
