// shef_noise with a cut-off of 4 equal bits, 6 of a window of 8, two lags, a start-up test of 5
// bits and 7 cycles of silence, against any source: an alarm comes with the bit, or the cycle, that
// makes its test fail, no sooner, and stays. A word is the last 32 bits at the time it becomes
// valid, without bits of the start-up test. After an alarm there is no word.
`default_nettype none
module noise (
    input wire clk_i,
    input wire rst_ni,
    input wire wipe_i,
    input wire noise_valid_i,
    input wire noise_bit_i,
    input wire word_ready_i
);
  logic word_valid, tested;
  logic [31:0] word;
  logic [3:0] alarm;
  shef_noise #(.RepetitionCutoff(4), .ProportionCutoff(6), .WindowBits(3), .Lags(2), .StartUp(5), .SilenceBits(3)) dut (
      .clk_i, .rst_ni, .wipe_i, .noise_valid_i, .noise_bit_i,
      .word_valid_o(word_valid), .word_ready_i, .word_o(word), .tested_o(tested), .alarm_o(alarm)
  );

  logic init = 1'b0;
  logic [31:0] past;        // bits since reset, the last one lowest
  logic [5:0] seen;         // number of them, at most 37
  logic [2:0] place;        // in the window
  logic [3:0] quiet;        // cycles since the last bit, at most 8
  logic [3:0] failed;
  logic rose;               // the word became valid in this cycle

  // With the incoming bit.
  logic [31:0] now;
  logic repeats, leans, lags;
  logic [3:0] equal;
  logic [1:0][3:0] like;    // bits of the window equal to the bit 1, 2 before
  assign now = {past[30:0], noise_bit_i};
  assign repeats = noise_valid_i && seen >= 6'd3 && (now[3:0] == 4'h0 || now[3:0] == 4'hf);
  always_comb begin
    equal = 4'd0;
    for (int i = 0; i < 8; i++) if (i <= int'(place)) equal += 4'(now[i] == now[place]);
  end
  assign leans = noise_valid_i && equal == 4'd6;
  always_comb begin
    like = '0;
    for (int d = 1; d <= 2; d++)
      for (int i = 0; i < 8; i++)
        if (i <= int'(place) && i + d <= int'(seen)) like[d-1] += 4'(now[i] == now[i+d]);
  end
  assign lags = noise_valid_i && (like[0] == 4'd6 || like[1] == 4'd6);

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    rose <= 1'b0;
    if (!rst_ni || wipe_i) begin
      past <= '0;
      seen <= '0;
      place <= '0;
      quiet <= '0;
      failed <= '0;
    end else if (failed == '0) begin
      failed <= {lags, !noise_valid_i && quiet == 4'd7, leans, repeats};
      if (noise_valid_i) begin
        past <= now;
        if (seen != 6'd37) seen <= seen + 1'b1;
        place <= place + 1'b1;
      end
      quiet <= noise_valid_i ? '0 : quiet + 1'b1;
      rose <= noise_valid_i && dut.whole && !word_valid && !repeats && !leans && !lags;
    end
  end

  logic [2:0] trail;        // equal bits at the end, at most 4
  always_comb begin
    trail = 3'd0;
    if (seen != 6'd0) begin
      trail = 3'd1;
      if (seen >= 6'd2 && past[1] == past[0]) begin
        trail = 3'd2;
        if (seen >= 6'd3 && past[2] == past[0]) trail = 3'd3;
      end
    end
  end
  logic [3:0] held_equal;
  always_comb begin
    held_equal = 4'd0;
    for (int i = 0; i < 8; i++) if (i < int'(place)) held_equal += 4'(past[i] == past[place-3'd1]);
  end
  logic [1:0][3:0] held_like;
  always_comb begin
    held_like = '0;
    for (int d = 1; d <= 2; d++)
      for (int i = 0; i < 8; i++)
        if (i < int'(place) && i + d < int'(seen)) held_like[d-1] += 4'(past[i] == past[i+d]);
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (alarm == failed && seen <= 6'd37);
      if (alarm == '0) begin
        assert (dut.run_q == trail);
        if (seen != 6'd0) assert (dut.last_q == past[0]);
        assert (dut.place_q == place && dut.quiet_q == quiet[2:0] && quiet <= 4'd7);
        if (place != 3'd0) assert (dut.equal_q == held_equal && dut.first_q == past[place-3'd1] && held_equal <= 4'd5);
        if (place != 3'd0) assert (dut.lag_q == held_like && held_like[0] <= 4'd5 && held_like[1] <= 4'd5);
        if (seen < 6'd8) assert (place == seen[2:0]);
        assert (dut.past_q[0] == past[0] || seen == '0);
        assert (dut.past_q[1] == past[1] || seen < 6'd2);
        assert (dut.known_q == {seen > 6'd1, seen != '0});
        assert (dut.start_q == (seen >= 6'd5 ? 3'd5 : seen[2:0]));
        assert (seen < 6'd37 ? seen >= 6'd5 || dut.held_q == '0 : 1'b1);
        if (seen < 6'd37 && seen >= 6'd5) assert (6'(dut.held_q) <= seen - 6'd5);
        for (int i = 0; i < 31; i++) if (i < int'(dut.held_q)) assert (dut.shift_q[i] == past[i]);
      end
      assert (tested == (seen >= 6'd5 && alarm == '0));
      if (!word_valid) assert (word == '0);
      if (dut.held_q == '0) assert (dut.shift_q == '0);
      if (alarm != '0) assert (!word_valid && dut.shift_q == '0 && dut.held_q == '0);
      if (word_valid) assert (seen == 6'd37 && dut.held_q == '0);
      if (rose) assert (word_valid && word == past);
    end
    cover (init && rst_ni && rose && word != '0);
    cover (init && rst_ni && alarm == 4'b0011);
    cover (init && rst_ni && alarm == 4'b0100);
    cover (init && rst_ni && alarm == 4'b1000);
  end
endmodule
`default_nettype wire
