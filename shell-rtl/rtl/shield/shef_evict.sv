// Eviction of one class of lines: chooses the dirty lines that are sealed to make room.
//
// Lines other than `output` go one by one while more than half of the class is dirty, or one at a
// time when a segment finds no line. An `output` line is closed early only for a write, when no
// other kind of line is left to evict, and either the dirty lines are at their limit or reads have
// not released a line for a while.
//
// All *_i of N bits are the state of the lines. needed_rd_i, needed_wr_i: a read, a write found no
// line of this class. room_i: one more line of the class may become dirty. waited_i: the write has
// waited long enough for reads to release a line. evict_o: the choice (one-hot or zero), for one
// cycle; the owner keeps it in evict_i until the line is sealed. One choice in seven cycles.
`default_nettype none
module shef_evict #(
    parameter int unsigned N = 40,
    parameter int unsigned Lines = 32,      // of the class
    parameter logic [N-1:0] Class = '1
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clr_i,
    input  wire  [N-1:0] dirty_i,
    input  wire  [N-1:0] evict_i,
    input  wire  [N-1:0] seal_i,
    input  wire  [N-1:0] full_i,
    input  wire  [N-1:0] out_i,             // `output`
    input  wire  [N-1:0] wheld_i,           // by writes
    input  wire          needed_rd_i,
    input  wire          needed_wr_i,
    input  wire          room_i,
    input  wire          waited_i,
    output logic [N-1:0] evict_o
);
  // look, choose, send away, and wait until it shows
  typedef enum logic [2:0] {E_LOOK, E_CHOOSE, E_SEND, E_SHOW1, E_SHOW2, E_SHOW3, E_SHOW4} step_e;
  step_e step_q;
  logic [N-1:0] mine, others, outs, pool_q, one, one_q;
  logic working_q, calm, others_q, outs_q, pool_outs_q, pressed;

  assign mine = Class & dirty_i & ~evict_i & ~wheld_i;
  assign others = mine & ~out_i;
  assign outs = mine & out_i;
  assign pressed = needed_wr_i && !working_q && (!room_i || waited_i);
  assign evict_o = (step_q == E_SEND && (!pool_outs_q || pressed)) ? one_q & mine : '0;

  shef_tally #(.N(N), .Limit(Lines / 2 + 1)) u_waiting (
      .clk_i, .rst_ni, .clr_i, .x_i(others & ~full_i), .up_i(1'b0), .room_o(calm)
  );
  shef_pick #(.N(N)) u_pick (.clk_i, .rst_ni, .clr_i, .x_i(pool_q), .next_i(step_q == E_CHOOSE),
      .one_o(one));

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      step_q <= E_LOOK;
      pool_q <= '0;
      pool_outs_q <= 1'b0;
      one_q <= '0;
      working_q <= 1'b0;
      others_q <= 1'b0;
      outs_q <= 1'b0;
    end else begin
      working_q <= (Class & (seal_i | (evict_i & dirty_i))) != '0;
      others_q <= others != '0;
      outs_q <= outs != '0;
      unique case (step_q)
        E_LOOK: begin
          pool_q <= others_q ? others : outs;
          pool_outs_q <= !others_q;
          if (others_q ? (!calm || ((needed_rd_i || needed_wr_i) && !working_q))
              : (outs_q && pressed)) step_q <= E_CHOOSE;
        end
        E_CHOOSE: begin
          one_q <= one;
          step_q <= E_SEND;
        end
        E_SEND: step_q <= E_SHOW1;
        E_SHOW1: step_q <= E_SHOW2;
        E_SHOW2: step_q <= E_SHOW3;
        E_SHOW3: step_q <= E_SHOW4;
        default: step_q <= E_LOOK;
      endcase
    end
  end
endmodule
`default_nettype wire
