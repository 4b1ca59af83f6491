// Mover of the storage node: checks each record, moves it or zeros in its place, and answers each
// command with a line of results.
//
// Records come from the client (`put`) or the store, in the order of the commands. Those of a PUT
// go to the store, those of a GET to the client; the result of each command follows them in the
// stream to the client. The header line decides on all of its record; bytes behind the length in
// the header become zero. One beat a cycle, and two cycles for each command; the outputs are one
// cycle behind the inputs.
`default_nettype none
module shef_storage_move
  import shef_storage_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          start_i,
    input  wire          stop_i,

    input  wire   [57:0] store_line_i,
    input  wire   [57:0] get_line_i,
    input  wire   [57:0] results_line_i,

    input  wire          command_valid_i,
    output wire          command_ready_o,
    input  wire command_t command_i,

    input  wire          put_valid_i,
    output wire          put_ready_o,
    input  wire  [511:0] put_i,
    input  wire          store_valid_i,
    output wire          store_ready_o,
    input  wire  [511:0] store_i,

    output wire          to_store_cmd_valid_o,  // lines to write, then the beats
    input  wire          to_store_cmd_ready_i,
    output wire          to_get_cmd_valid_o,
    input  wire          to_get_cmd_ready_i,
    output wire   [57:0] cmd_line_o,
    output wire   [31:0] cmd_beats_o,
    output wire          to_store_valid_o,
    input  wire          to_store_ready_i,
    output wire          to_get_valid_o,
    input  wire          to_get_ready_i,
    output wire  [511:0] data_o,

    output wire   [31:0] answered_o,            // commands with a result
    output wire   [31:0] stored_o,              // records of PUT that were granted
    output wire   [31:0] released_o,            // records of GET that were granted
    output wire   [31:0] refused_o,             // records
    output wire   [31:0] bad_o,                 // commands that were refused
    output wire          idle_o                 // no beat inside
);
  // ---- results of the command ----
  localparam int unsigned REASONS = 6;
  logic [REASONS-1:0][8:0] tally_q;  // records by verdict
  logic [255:0] refused_bits_q;
  wire [8:0] refused = tally_q[V_BROKEN] + tally_q[V_EXPIRED] + tally_q[V_OWNER] +
      tally_q[V_OBJECTION] + tally_q[V_PURPOSE];
  wire [31:0] status = !command_i.good ? 32'd2 : 32'(refused != '0);
  wire [511:0] result = {
    refused_bits_q, 32'(tally_q[V_PURPOSE]), 32'(tally_q[V_OBJECTION]), 32'(tally_q[V_OWNER]),
    32'(tally_q[V_EXPIRED]), 32'(tally_q[V_BROKEN]), 32'(refused), 32'(tally_q[V_GRANTED]), status
  };

  // ---- phases of a command ----
  typedef enum logic [1:0] {
    S_BEGIN,
    S_MOVE,
    S_RESULT
  } state_e;
  state_e state_q;
  logic [7:0] record_q;
  logic [5:0] beat_q;
  logic [31:0] answered_q, stored_q, released_q, refused_q, bad_q;

  wire begins = state_q == S_BEGIN && command_valid_i && !stop_i;
  wire results = state_q == S_RESULT && !stop_i;
  wire stage_ready;
  wire result_in = results && to_get_cmd_ready_i && stage_ready;
  assign to_store_cmd_valid_o = begins && command_i.good && command_i.put;
  assign to_get_cmd_valid_o = begins && command_i.good && !command_i.put || result_in;
  assign cmd_line_o = state_q == S_RESULT ? results_line_i + 58'(answered_q) :
      command_i.put ? store_line_i + 58'({command_i.store, 6'd0}) :
      get_line_i + 58'({command_i.block, 6'd0});
  assign cmd_beats_o = state_q == S_RESULT ? 32'd1 : 32'({command_i.records, 6'd0});
  wire begun = begins && (!command_i.good || (command_i.put ? to_store_cmd_ready_i :
      to_get_cmd_ready_i));
  assign command_ready_o = result_in;

  // ---- beats in ----
  wire moves = state_q == S_MOVE && !stop_i;
  wire [511:0] beat = command_i.put ? put_i : store_i;
  assign put_ready_o = moves && command_i.put && stage_ready;
  assign store_ready_o = moves && !command_i.put && stage_ready;
  wire take = put_ready_o && put_valid_i || store_ready_o && store_valid_i;
  wire head = beat_q == '0;
  verdict_e says;
  always_comb says = verdict(beat, command_i.put, command_i.requester, command_i.purpose,
      command_i.now);
  wire last_record = 9'(record_q) + 9'd1 == command_i.records;

  // ---- stage: a beat, and what of it leaves ----
  logic valid_q, to_get_q;
  logic [511:0] data_q;
  logic [6:0] keep_q;       // bytes that leave
  logic [12:0] left_q;      // bytes of data of the record, behind this beat
  assign stage_ready = !valid_q || (to_get_q ? to_get_ready_i : to_store_ready_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      state_q <= S_BEGIN;
      {record_q, beat_q} <= '0;
      {answered_q, stored_q, released_q, refused_q, bad_q} <= '0;
      {tally_q, refused_bits_q} <= '0;
      {valid_q, to_get_q, data_q, keep_q, left_q} <= '0;
    end else begin
      unique case (state_q)
        S_BEGIN:
        if (begun) begin
          state_q <= command_i.good ? S_MOVE : S_RESULT;
          if (!command_i.good) bad_q <= bad_q + 32'd1;
        end
        S_MOVE:
        if (take) begin
          beat_q <= beat_q + 6'd1;
          if (head) begin
            tally_q[says] <= tally_q[says] + 9'd1;
            refused_bits_q[record_q] <= says != V_GRANTED;
            if (says != V_GRANTED) refused_q <= refused_q + 32'd1;
            else if (command_i.put) stored_q <= stored_q + 32'd1;
            else released_q <= released_q + 32'd1;
          end
          if (beat_q == '1) begin
            record_q <= last_record ? '0 : record_q + 8'd1;
            if (last_record) state_q <= S_RESULT;
          end
        end
        default:
        if (result_in) begin
          state_q <= S_BEGIN;
          answered_q <= answered_q + 32'd1;
          {tally_q, refused_bits_q} <= '0;
        end
      endcase
      if (stage_ready) valid_q <= take || result_in;
      if (take || result_in) begin
        data_q <= result_in ? result : beat;
        to_get_q <= result_in || !command_i.put;
        if (result_in) keep_q <= 7'd64;
        else if (head) begin
          keep_q <= says == V_GRANTED ? 7'd64 : 7'd0;
          left_q <= says == V_GRANTED ? beat[268:256] : 13'd0;
        end else begin
          keep_q <= left_q > 13'd64 ? 7'd64 : 7'(left_q);
          left_q <= left_q > 13'd64 ? left_q - 13'd64 : 13'd0;
        end
      end
    end
  end
  for (genvar i = 0; i < 64; i++) begin : g_byte
    assign data_o[8*i+:8] = 7'(i) < keep_q ? data_q[8*i+:8] : 8'd0;
  end
  assign to_get_valid_o = valid_q && to_get_q;
  assign to_store_valid_o = valid_q && !to_get_q;
  assign idle_o = !valid_q;
  assign answered_o = answered_q;
  assign stored_o = stored_q;
  assign released_o = released_q;
  assign refused_o = refused_q;
  assign bad_o = bad_q;
endmodule
`default_nettype wire
