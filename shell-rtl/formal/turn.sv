// shef_turn, three requesters: the choice is a requester, stays until it is done, and no requester
// waits for more than one turn of each of the others. Also with a requester that goes first: it
// waits for no more than the turn in progress, and of the turns of the others each waits for at
// most one.
`default_nettype none
module turn (
    input wire       clk_i,
    input wire       rst_ni,
    input wire [2:0] req_i,
    input wire       done_i
);
  logic valid;
  logic [1:0] sel;
  shef_turn #(.N(3)) dut (.clk_i, .rst_ni, .req_i, .done_i, .valid_o(valid), .sel_o(sel));

  logic init = 1'b0;
  logic [1:0] me;              // symbolic requester
  logic [2:0] passed;          // turns of others that ended during its request
  logic held;
  logic [1:0] last;
  always_ff @(posedge clk_i) me <= me;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    assume (me < 2'd3);
    held <= rst_ni && valid && !done_i;
    last <= sel;
    if (!rst_ni || !req_i[me] || (valid && sel == me)) passed <= '0;
    else if (valid && done_i) passed <= passed + 1'b1;
  end
  logic [1:0] after;           // the requester after the last turn
  assign after = (dut.sel_q == 2'd2) ? 2'd0 : dut.sel_q + 1'b1;
  logic first_valid, first_held;
  logic [1:0] first_sel, first_last;
  logic first_passed;          // a turn of another one, but for the first, ended during its request
  shef_turn #(.N(3), .First(2)) first (.clk_i, .rst_ni, .req_i, .done_i, .valid_o(first_valid),
      .sel_o(first_sel));
  always_ff @(posedge clk_i) begin
    first_held <= rst_ni && first_valid && !done_i;
    first_last <= first_sel;
    if (!rst_ni || !req_i[me] || (first_valid && first_sel == me)) first_passed <= 1'b0;
    else if (first_valid && done_i && first_sel != 2'd2) first_passed <= 1'b1;
  end
  always_comb begin
    if (init && rst_ni) begin
      assert (first.sel_q < 2'd2 && first_sel < 2'd3);
      if (first_valid) assert (req_i[first_sel]);
      if (first_held) assert (first_sel == first_last && first.held_q && req_i[first_sel] ==
          first_valid && first_sel == (first.first_q ? 2'd2 : first.sel_q));
      if (!first.held_q) assert (first_valid == (req_i != '0));
      if (!first.held_q && req_i[2]) assert (first_sel == 2'd2);
      // the other one is not chosen twice
      if (first_passed && me < 2'd2 && first_valid && req_i[me])
        assert (first_sel == 2'd2 || first_sel == me);
      if (first_passed && me < 2'd2 && req_i[me])
        assert (first.sel_q != me && !(first.held_q && !first.first_q));
    end
    cover (init && rst_ni && first_passed && me == 2'd0 && first_sel == 2'd2 && req_i == '1);
  end

  always_comb begin
    if (init && rst_ni) begin
      assert (dut.sel_q < 2'd3 && sel < 2'd3);
      if (valid) assert (req_i[sel]);
      if (held) assert (sel == last && dut.held_q && dut.sel_q == sel);
      if (!dut.held_q) assert (valid == (req_i != '0));
      assert (passed <= 3'd2);
      if (req_i[me] && passed == 3'd1)
        assert (!(dut.held_q && dut.sel_q == me) && (dut.sel_q != me));
      if (req_i[me] && passed == 3'd2) assert (!dut.held_q && after == me);
      if (req_i[me] && passed == 3'd1 && dut.held_q) assert (after == me);
    end
    cover (init && rst_ni && req_i[me] && passed == 3'd2 && sel == me);
  end
endmodule
`default_nettype wire
