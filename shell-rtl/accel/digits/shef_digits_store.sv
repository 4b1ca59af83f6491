// Write side of the digits accelerator: writes result beats in order, in bursts of eight that end
// on a 512-byte boundary (the first and the last may be shorter).
//
// reserve port: valid/ready, one place per future result beat; push_i needs a place and is never
// refused.
// AW, W: valid/ready; a burst starts only when all its beats are present, so W does not pause
// inside a burst. All ids 0.
// start_i (pulse, while idle_o) takes line_i and beats_i (result beats in all). stop_i (level): no
// further burst starts.
// idle_o: no burst in progress and no response owed; all_o: every result beat was written and
// acknowledged.
`default_nettype none
module shef_digits_store
  import shef_pkg::*;
#(
  parameter int unsigned Places = 32
) (
  input  wire          clk_i,
  input  wire          rst_ni,
  input  wire          clear_i,    // zero the memory at sweep_i
  input  wire    [5:0] sweep_i,
  input  wire          start_i,
  input  wire          stop_i,
  input  wire   [57:0] line_i,
  input  wire   [14:0] beats_i,
  output wire          idle_o,
  output wire          all_o,
  input  wire          reserve_valid_i,
  output wire          reserve_ready_o,
  input  wire          push_i,
  input  wire  [511:0] push_data_i,
  output axi_ax_t      acc_aw_o,
  output wire          acc_aw_valid_o,
  input  wire          acc_aw_ready_i,
  output axi_w_t       acc_w_o,
  output wire          acc_w_valid_o,
  input  wire          acc_w_ready_i,
  input  wire axi_b_t  acc_b_i,
  input  wire          acc_b_valid_i,
  output wire          acc_b_ready_o,
  output wire          b_error_o
);
  localparam int unsigned PtrW = $clog2(Places);
  localparam int unsigned OwedW = 5;

  logic [511:0] fifo_mem[Places];
  logic [PtrW-1:0] wr_q, rd_q;
  logic [PtrW:0] reserved_q;  // reserved places
  logic [PtrW:0] count_q;     // beats present
  logic [57:0] line_q;
  logic [14:0] left_q;        // beats not yet in a burst
  logic aw_valid_q;
  logic [57:0] aw_line_q;
  logic [2:0] aw_len_q;
  logic [3:0] w_left_q;       // beats of the burst still to send
  logic w_valid_q;
  logic w_last_q;
  logic [511:0] w_data_q;
  logic [OwedW-1:0] owed_q;

  assign reserve_ready_o = reserved_q != (PtrW + 1)'(Places);
  wire reserve = reserve_valid_i && reserve_ready_o;
  wire w_take = w_left_q != '0 && (!w_valid_q || acc_w_ready_i);

  wire [3:0] to_line = 4'd8 - {1'b0, line_q[2:0]};
  wire [3:0] burst = (left_q < {11'd0, to_line}) ? left_q[3:0] : to_line;
  wire begin_burst = left_q != '0 && w_left_q == '0 && !aw_valid_q && owed_q != '1 && !stop_i
      && count_q >= (PtrW + 1)'(burst);
  wire b_fire = acc_b_valid_i && acc_b_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      wr_q <= '0;
      rd_q <= '0;
      reserved_q <= '0;
      count_q <= '0;
      line_q <= line_i;
      left_q <= rst_ni ? beats_i : '0;
      aw_valid_q <= 1'b0;
      aw_line_q <= '0;
      aw_len_q <= '0;
      w_left_q <= '0;
      w_valid_q <= 1'b0;
      w_last_q <= 1'b0;
      w_data_q <= '0;
      owed_q <= '0;
    end else begin
      reserved_q <= reserved_q + {{PtrW{1'b0}}, reserve} - {{PtrW{1'b0}}, w_take};
      count_q <= count_q + {{PtrW{1'b0}}, push_i} - {{PtrW{1'b0}}, w_take};
      if (push_i) wr_q <= wr_q + PtrW'(1);

      if (begin_burst) begin
        aw_valid_q <= 1'b1;
        aw_line_q <= line_q;
        aw_len_q <= 3'(burst - 4'd1);
        w_left_q <= burst;
        line_q <= line_q + 58'(burst);
        left_q <= left_q - 15'(burst);
      end else begin
        if (acc_aw_ready_i) aw_valid_q <= 1'b0;
        if (w_take) w_left_q <= w_left_q - 4'd1;
      end

      if (w_take) begin
        w_valid_q <= 1'b1;
        w_last_q <= w_left_q == 4'd1;
        w_data_q <= fifo_mem[rd_q];
        rd_q <= rd_q + PtrW'(1);
      end else if (acc_w_ready_i) w_valid_q <= 1'b0;

      owed_q <= owed_q + OwedW'(begin_burst) - OwedW'(b_fire && owed_q != '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) fifo_mem[sweep_i[PtrW-1:0]] <= '0;
    else if (push_i) fifo_mem[wr_q] <= push_data_i;
  end

  assign acc_aw_valid_o = aw_valid_q;
  assign acc_aw_o = '{
    id: '0,
    addr: {aw_line_q, 6'd0},
    len: {5'd0, aw_len_q},
    size: AXI_SIZE_64,
    burst: AXI_BURST_INCR
  };
  assign acc_w_valid_o = w_valid_q;
  assign acc_w_o = '{data: w_data_q, strb: '1, last: w_last_q};
  assign acc_b_ready_o = 1'b1;
  assign b_error_o = b_fire && acc_b_i.resp != AXI_OKAY;
  assign idle_o = owed_q == '0 && !aw_valid_q && !w_valid_q && w_left_q == '0;
  assign all_o = idle_o && left_q == '0;

  wire unused = &{1'b0, acc_b_i.id, sweep_i};
endmodule
`default_nettype wire
