// Noise in the shell of AWS F2: jitter between two MMCM outputs, by coherent sampling.
//
// 250 MHz * 63.875 / 10 / 6 = 266.15 MHz samples a square wave of 125 MHz. 511 samples fall on 511
// phases of it, 15.7 ps apart, and then the phases repeat. The number of ones among 511 samples
// varies with the jitter of both clocks; a raw bit is its lowest bit: 521 kbit/s. Nothing of this was
// measured on silicon (docs/reference/noise.md): unmeasured_o is 1, and seeded_o 0, whatever happens.
// valid_o, bit_o: one raw bit on kernel_clk_i; bits that are not taken in time are dropped.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs of cells that are not needed are named and left open)
module shef_f2_noise (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic kernel_clk_i,
    output logic      valid_o,
    output logic      bit_o,
    output logic      seeded_o,
    output logic      unmeasured_o
);
  assign seeded_o = 1'b0;
  assign unmeasured_o = 1'b1;

  logic feedback, sample_clk_raw, sample_clk, locked, run_q;
  MMCME4_BASE #(
      .CLKIN1_PERIOD(4.0),
      .DIVCLK_DIVIDE(10),
      .CLKFBOUT_MULT_F(63.875),
      .CLKOUT0_DIVIDE_F(6.0)
  ) u_mmcm (
      .CLKIN1(clk_i),
      .CLKFBIN(feedback),
      .CLKFBOUT(feedback),
      .CLKOUT0(sample_clk_raw),
      .LOCKED(locked),
      .PWRDWN(1'b0),
      .RST(!rst_ni),
      .CLKFBOUTB(), .CLKOUT0B(), .CLKOUT1(), .CLKOUT1B(), .CLKOUT2(), .CLKOUT2B(), .CLKOUT3(),
      .CLKOUT3B(), .CLKOUT4(), .CLKOUT5(), .CLKOUT6()
  );
  BUFGCE u_sample (
      .I(sample_clk_raw),
      .CE(1'b1),
      .O(sample_clk)
  );

  // ---- the sampled wave ----
  logic wave_q, wave, locked_main;
  always_ff @(posedge clk_i) wave_q <= !wave_q;
  shef_sync u_wave (
      .clk_i(sample_clk),
      .d_i(wave_q),
      .q_o(wave)
  );

  // ---- one bit in 511 samples ----
  shef_sync u_locked (
      .clk_i,
      .d_i(locked),
      .q_o(locked_main)
  );
  always_ff @(posedge clk_i) run_q <= rst_ni && locked_main;
  logic sample_rst_n, kernel_rst_n;
  shef_reset_sync u_sample_rst (
      .clk_i(sample_clk),
      .rst_ni(run_q),
      .rst_no(sample_rst_n)
  );
  shef_reset_sync u_kernel_rst (
      .clk_i(kernel_clk_i),
      .rst_ni(run_q),
      .rst_no(kernel_rst_n)
  );

  logic [8:0] samples_q;
  logic odd_q, unused_ready;
  wire last = samples_q == 9'd510;
  always_ff @(posedge sample_clk or negedge sample_rst_n) begin
    if (!sample_rst_n) begin
      samples_q <= '0;
      odd_q <= 1'b0;
    end else begin
      samples_q <= last ? '0 : samples_q + 9'd1;
      odd_q <= last ? 1'b0 : odd_q ^ wave;
    end
  end

  shef_async_fifo #(.W(1), .Depth(4)) u_bits (
      .wr_clk_i(sample_clk), .wr_rst_ni(sample_rst_n),
      .wr_valid_i(last), .wr_ready_o(unused_ready), .wr_data_i(odd_q ^ wave),
      .rd_clk_i(kernel_clk_i), .rd_rst_ni(kernel_rst_n),
      .rd_valid_o(valid_o), .rd_ready_i(1'b1), .rd_data_o(bit_o)
  );
endmodule
`default_nettype wire
