// Health tests of the noise source (SP 800-90B, 4.4), and tested raw bits as 32-bit words.
//
// noise_*: one raw bit in each cycle with noise_valid_i, without back-pressure.
// word port: valid/ready, first bit in word_o[31]; word_o is zero while there is no word. A word
// holds 32 consecutive bits; bits that arrive while a word waits are tested and dropped.
//
// The tests assume `H` bits of min-entropy per raw bit and fail a good source once in 2^30 tests.
// Repetition count: RepetitionCutoff equal bits in a row, 1 + ceil(30 / H). Adaptive proportion:
// ProportionCutoff bits of a window of 1,024 equal the window's first one. Lag: ProportionCutoff
// bits of such a window equal the bit d bits before, for some d from 1 to Lags. Such a prediction
// may be right as often as the most likely bit may occur, so the cut-off is the same. A source that
// repeats a pattern of up to Lags bits, or of half as many and their complement, fails.
// Silence: no bit for 2^SilenceBits cycles. For H = 0.5 the cut-offs are 61 and 810.
// The first StartUp bits are tested and discarded; tested_o is high from then on. The first failure
// sets its bit of alarm_o ({lag, silence, proportion, repetition}), drops the word and stops the
// block until wipe_i (level) or reset, which restart the start-up test. A failure and its alarm are
// one cycle apart.
`default_nettype none
module shef_noise #(
    parameter int unsigned RepetitionCutoff = 61,
    parameter int unsigned ProportionCutoff = 810,
    parameter int unsigned WindowBits = 10,
    parameter int unsigned Lags = 16,
    parameter int unsigned StartUp = 4096,
    parameter int unsigned SilenceBits = 20
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        wipe_i,
    input  wire logic        noise_valid_i,
    input  wire logic        noise_bit_i,
    output logic             word_valid_o,
    input  wire logic        word_ready_i,
    output logic [31:0]      word_o,
    output logic             tested_o,
    output logic [3:0]       alarm_o
);
  localparam int unsigned RUN_W = $clog2(RepetitionCutoff + 1);
  localparam int unsigned START_W = $clog2(StartUp + 1);

  logic                   last_q;      // the last bit, while run_q is not 0
  logic [RUN_W-1:0]       run_q;       // length of the run of bits equal to it
  logic                   first_q;     // first bit of the window, while place_q is not 0
  logic [WindowBits-1:0]  place_q;     // bits of the window so far
  logic [WindowBits:0]    equal_q;     // those of them equal to the first one
  logic [Lags-1:0]        past_q;      // the previous bits, the last one lowest
  logic [Lags-1:0]        known_q;     // which of them are valid
  logic [Lags-1:0][WindowBits:0] lag_q;  // bits of the window equal to the bit at each lag
  logic [SilenceBits-1:0] quiet_q;     // cycles since the last bit
  logic [START_W-1:0]     start_q;     // bits of the start-up test
  logic [30:0]            shift_q;
  logic [4:0]             held_q;      // bits in shift_q
  logic [31:0]            word_q;
  logic                   word_valid_q;
  logic [3:0]             alarm_q;

  wire same = run_q != '0 && noise_bit_i == last_q;
  wire begins = place_q == '0;
  wire [RUN_W-1:0] run = same ? run_q + 1'b1 : RUN_W'(1);
  wire [WindowBits:0] equal = begins ? (WindowBits + 1)'(1) : equal_q + (WindowBits + 1)'(noise_bit_i == first_q);
  wire repeats = noise_valid_i && run == RUN_W'(RepetitionCutoff);
  wire leans = noise_valid_i && equal == (WindowBits + 1)'(ProportionCutoff);
  logic [Lags-1:0][WindowBits:0] lag;
  logic lags;
  always_comb begin
    lags = 1'b0;
    for (int d = 0; d < int'(Lags); d++) begin
      lag[d] = (begins ? '0 : lag_q[d]) + (WindowBits + 1)'(known_q[d] && noise_bit_i == past_q[d]);
      if (lag[d] == (WindowBits + 1)'(ProportionCutoff)) lags = noise_valid_i;
    end
  end
  wire silent = !noise_valid_i && quiet_q == '1;
  wire failed = alarm_q != '0 || repeats || leans || lags || silent;
  wire whole = noise_valid_i && tested_o && held_q == 5'd31;

  assign tested_o = start_q == START_W'(StartUp) && alarm_q == '0;
  assign alarm_o = alarm_q;
  assign word_valid_o = word_valid_q;
  assign word_o = word_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || wipe_i) begin
      last_q <= 1'b0;
      run_q <= '0;
      first_q <= 1'b0;
      place_q <= '0;
      equal_q <= '0;
      past_q <= '0;
      known_q <= '0;
      lag_q <= '0;
      quiet_q <= '0;
      start_q <= '0;
      shift_q <= '0;
      held_q <= '0;
      word_q <= '0;
      word_valid_q <= 1'b0;
      alarm_q <= '0;
    end else if (failed) begin
      if (alarm_q == '0) alarm_q <= {lags, silent, leans, repeats};
      shift_q <= '0;
      held_q <= '0;
      word_q <= '0;
      word_valid_q <= 1'b0;
    end else begin
      quiet_q <= noise_valid_i ? '0 : quiet_q + 1'b1;
      if (word_valid_q && word_ready_i) begin
        word_q <= '0;
        word_valid_q <= 1'b0;
      end
      if (noise_valid_i) begin
        last_q <= noise_bit_i;
        run_q <= run;
        if (begins) first_q <= noise_bit_i;
        place_q <= place_q + 1'b1;
        equal_q <= equal;
        past_q <= {past_q[Lags-2:0], noise_bit_i};
        known_q <= {known_q[Lags-2:0], 1'b1};
        lag_q <= lag;
        if (!tested_o) start_q <= start_q + 1'b1;
        else if (!word_valid_q) begin
          shift_q <= {shift_q[29:0], noise_bit_i};
          held_q <= held_q + 1'b1;
          if (whole) begin
            word_q <= {shift_q, noise_bit_i};
            word_valid_q <= 1'b1;
            shift_q <= '0;
          end
        end
      end
    end
  end

endmodule
`default_nettype wire
