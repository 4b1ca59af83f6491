// A stream unit of the Security Kernel behind registers.
//
// Device of shef_kernel_bus: sel_i waits for ready_o. unit_*: the ports of shef_p256, shef_hmac or
// shef_gcm_iter. Four bytes are buffered on the way in and four on the way out, so that a program
// can write a word and then read one from a unit that outputs a byte per input byte. CMD waits
// until the previous command is over; its bytes follow on DATA4 and DATA1.
// wipe_i (level) and a write of WIPE clear the unit and the buffered bytes.
`default_nettype none
module shef_kernel_unit
  import shef_kernel_regs_pkg::*;
(
    input  wire logic   clk_i,
    input  wire logic   rst_ni,
    input  wire logic   wipe_i,
    input  wire logic   sel_i,
    input  wire logic   we_i,
    input  wire logic [11:0] addr_i,
    input  wire logic [31:0] wdata_i,
    output logic        ready_o,
    output logic        err_o,
    output logic [31:0] rdata_o,
    output logic        unit_wipe_o,
    output logic        unit_cmd_valid_o,
    input  wire logic   unit_cmd_ready_i,
    output logic [3:0]  unit_cmd_o,
    output logic [15:0] unit_len_o,
    output logic        unit_in_valid_o,
    input  wire logic   unit_in_ready_i,
    output logic [7:0]  unit_in_data_o,
    input  wire logic   unit_out_valid_i,
    output logic        unit_out_ready_o,
    input  wire logic [7:0] unit_out_data_i,
    input  wire logic   unit_ok_i
);

  logic [31:0] in_q, out_q;
  logic [2:0] in_n_q, out_n_q;
  logic wipe_q;  // until the unit reports that it is clear

  unit_sel_e item;
  assign item = unit_decode(addr_i);
  wire idle = unit_cmd_ready_i && in_n_q == 3'd0 && !wipe_i && !wipe_q;
  wire ask = sel_i && !wipe_i;
  wire write4 = ask && we_i && item == UNIT_SEL_DATA4 && in_n_q == 3'd0;
  wire write1 = ask && we_i && item == UNIT_SEL_DATA1 && in_n_q < 3'd4;
  wire read4 = ask && !we_i && item == UNIT_SEL_DATA4 && out_n_q == 3'd4;
  wire read1 = ask && !we_i && item == UNIT_SEL_DATA1 && out_n_q != 3'd0;
  wire wiped = wipe_q && unit_cmd_ready_i;
  wire give = unit_in_valid_o && unit_in_ready_i;
  wire take = unit_out_valid_i && unit_out_ready_o;

  assign unit_wipe_o = wipe_i || wipe_q;
  assign unit_cmd_valid_o = ask && we_i && item == UNIT_SEL_CMD && idle;
  assign unit_cmd_o = wdata_i[3:0];
  assign unit_len_o = wdata_i[31:16];
  assign unit_in_valid_o = in_n_q != 3'd0;
  assign unit_in_data_o = in_q[7:0];
  assign unit_out_ready_o = out_n_q != 3'd4;

  always_comb begin
    rdata_o = '0;
    err_o = 1'b0;
    unique case (item)
      UNIT_SEL_CMD: begin
        ready_o = idle || !we_i;
        err_o = !we_i;
      end
      UNIT_SEL_STATUS: begin
        ready_o = 1'b1;
        err_o = we_i;
        rdata_o[UNIT_STATUS_READY_LSB] = idle;
        rdata_o[UNIT_STATUS_OK_LSB] = unit_ok_i && idle;
        rdata_o[UNIT_STATUS_READABLE_LSB+:3] = out_n_q;
        rdata_o[UNIT_STATUS_WRITABLE_LSB+:3] = 3'd4 - in_n_q;
      end
      UNIT_SEL_DATA4: begin
        ready_o = we_i ? write4 : read4;
        rdata_o = out_q;
      end
      UNIT_SEL_DATA1: begin
        ready_o = we_i ? write1 : read1;
        rdata_o[7:0] = out_q[7:0];
      end
      UNIT_SEL_WIPE: begin
        ready_o = wiped || !we_i;
        err_o = !we_i;
      end
      default: begin
        ready_o = 1'b1;
        err_o = 1'b1;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || wipe_i) begin
      in_q <= '0;
      out_q <= '0;
      in_n_q <= '0;
      out_n_q <= '0;
      wipe_q <= 1'b0;
    end else begin
      if (wiped) wipe_q <= 1'b0;
      else if (ask && we_i && item == UNIT_SEL_WIPE) wipe_q <= 1'b1;
      if (wipe_q) begin
        in_q <= '0;
        out_q <= '0;
        in_n_q <= '0;
        out_n_q <= '0;
      end else begin
        if (write4) begin
          in_q <= wdata_i;
          in_n_q <= 3'd4;
        end else begin
          if (give) in_q <= in_q >> 8;
          if (write1) in_q[8*2'(in_n_q-3'(give))+:8] <= wdata_i[7:0];
          in_n_q <= in_n_q + 3'(write1) - 3'(give);
        end
        if (read4) begin
          out_q <= '0;
          out_n_q <= '0;
        end else begin
          if (read1) out_q <= out_q >> 8;
          if (take) out_q[8*2'(out_n_q-3'(read1))+:8] <= unit_out_data_i;
          out_n_q <= out_n_q + 3'(take) - 3'(read1);
        end
      end
    end
  end

endmodule
`default_nettype wire
