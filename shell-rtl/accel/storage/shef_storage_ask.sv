// Requests of the storage node: takes commands, passes them on, and requests their records.
//
// Records are requested one by one, in the order of the commands, before shef_storage_move needs
// them. A read must not overtake a write of the same record: a record of a GET waits while it is
// among those, at most 16, whose PUT is requested and whose write is not answered (write_done_i, in
// order).
`default_nettype none
module shef_storage_ask
  import shef_storage_pkg::*;
(
    input  wire           clk_i,
    input  wire           rst_ni,
    input  wire           start_i,
    input  wire           stop_i,

    input  wire    [31:0] slots_i,
    input  wire    [31:0] put_blocks_i,
    input  wire    [31:0] get_blocks_i,
    input  wire    [57:0] put_line_i,
    input  wire    [57:0] store_line_i,

    input  wire           line_valid_i,   // commands
    output wire           line_ready_o,
    input  wire   [511:0] line_i,
    output wire           command_valid_o,
    input  wire           command_ready_i,
    output command_t      command_o,

    output wire           put_valid_o,    // a record: RECORD lines
    input  wire           put_ready_i,
    output wire    [57:0] put_at_o,
    output wire           store_valid_o,
    input  wire           store_ready_i,
    output wire    [57:0] store_at_o,

    input  wire           write_done_i    // a record is in the store
);
  localparam int unsigned OPEN = 16;

  typedef enum logic [1:0] {
    S_TAKE,
    S_GIVE,
    S_ASK
  } state_e;
  state_e state_q;
  command_t command_q;
  logic [8:0] asked_q;
  wire [23:0] record = command_q.store + 24'(asked_q);

  // ---- records on their way to the store ----
  logic [OPEN-1:0][23:0] open_q;
  logic [$clog2(OPEN):0] count_q;  // in use: the entries below
  logic hazard;
  always_comb begin
    hazard = 1'b0;
    for (int unsigned i = 0; i < OPEN; i++)
      if (($clog2(OPEN) + 1)'(i) < count_q && open_q[i] == record) hazard = 1'b1;
  end

  wire room = count_q != ($clog2(OPEN) + 1)'(OPEN);
  assign put_valid_o = state_q == S_ASK && command_q.put && room && !stop_i;
  assign store_valid_o = state_q == S_ASK && !command_q.put && !hazard && !stop_i;
  assign put_at_o = put_line_i + 58'({command_q.block + 21'(asked_q), 6'd0});
  assign store_at_o = store_line_i + 58'({record, 6'd0});
  assign line_ready_o = state_q == S_TAKE && !stop_i;
  assign command_valid_o = state_q == S_GIVE && !stop_i;
  assign command_o = command_q;

  wire put_asked = put_valid_o && put_ready_i;
  wire asked = put_asked || store_valid_o && store_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      state_q <= S_TAKE;
      command_q <= '0;
      asked_q <= '0;
      open_q <= '0;
      count_q <= '0;
    end else begin
      unique case (state_q)
        S_TAKE:
        if (line_valid_i && line_ready_o) begin
          state_q <= S_GIVE;
          command_q <= decode(line_i, slots_i, put_blocks_i, get_blocks_i);
          asked_q <= '0;
        end
        S_GIVE: if (command_valid_o && command_ready_i) state_q <= command_q.good ? S_ASK : S_TAKE;
        default:
        if (asked) begin
          asked_q <= asked_q + 9'd1;
          if (asked_q + 9'd1 == command_q.records) state_q <= S_TAKE;
        end
      endcase
      // New ones from the left, the oldest is the last of those in use.
      if (put_asked) open_q <= {open_q[OPEN-2:0], record};
      count_q <= count_q + ($clog2(OPEN) + 1)'(put_asked) - ($clog2(OPEN) + 1)'(write_done_i);
    end
  end
endmodule
`default_nettype wire
