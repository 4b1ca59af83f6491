// Fills and write-backs of the cache, towards the engine set: whole lines, in the order of the
// directory's requests.
//
// Handshake: jobs in (new_*, valid/ready; the slot is given in the same cycle); busy_o[slot] is
// high until the line's new contents are present. A job first writes the line's old chunk back
// (new_evict_i), then fills it (new_fill_i). Reads are requested as soon as a job arrives, so that
// many are in flight; a read of a chunk with an unacknowledged write-back waits for the
// acknowledgement.
// rd_*, wr_*: requests to the line memory, valid/ready, data one cycle after a granted read. A line
// whose fill failed is marked (bad_*), and never written back; the mark stays until the next fill
// of the line. lost_* reports a failed write-back. Throughput one beat a cycle. bad_we_o comes once
// for every job. idle_o: nothing is in flight or unacknowledged.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_cache_jobs
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned LW = 12,       // bits of a line's number
    parameter int unsigned Beats = 1,     // of a line
    parameter int unsigned LineLog2 = 6,
    parameter addr_tab_t Base = '0,
    localparam int unsigned SW = 4,
    localparam int unsigned Slots = 1 << SW
) (
    input  wire              clk_i,
    input  wire              rst_ni,
    // zero the last data here too; nothing is in flight
    input  wire              clr_i,
    output logic             idle_o,

    input  wire              new_valid_i,
    output logic             new_ready_o,
    output logic [SW-1:0]    new_slot_o,
    input  wire  [LW-1:0]    new_line_i,
    input  wire              new_walk_i,    // written back and kept
    input  wire              new_fill_i,
    input  wire  reg_idx_t   new_region_i,
    input  wire  chunk_idx_t new_chunk_i,
    input  wire              new_evict_i,
    input  wire  reg_idx_t   old_region_i,
    input  wire  chunk_idx_t old_chunk_i,
    output logic [Slots-1:0] busy_o,

    output logic             rd_valid_o,
    input  wire              rd_ready_i,
    output logic [5:0]       rd_beat_o,
    input  wire  [511:0]     rd_data_i,
    output logic             wr_valid_o,
    input  wire              wr_ready_i,
    output logic [5:0]       wr_beat_o,
    output logic [511:0]     wr_data_o,
    output logic [LW-1:0]    line_o,        // of the current job: for rd, wr, bad
    input  wire              bad_i,         // its mark
    output logic             bad_we_o,
    output logic             bad_o,

    output logic             ar_valid_o,
    input  wire              ar_ready_i,
    output logic [63:0]      ar_addr_o,
    input  wire              r_valid_i,
    output logic             r_ready_o,
    input  wire  [511:0]     r_data_i,
    input  wire              r_error_i,
    output logic             aw_valid_o,
    input  wire              aw_ready_i,
    output logic [63:0]      aw_addr_o,
    output logic             w_valid_o,
    input  wire              w_ready_i,
    output logic [511:0]     w_data_o,
    output logic             w_last_o,
    output logic             writing_o,     // AW or W are in use
    input  wire              write_go_i,    // they may be
    input  wire              b_valid_i,
    input  wire              b_error_i,
    // pulse: this chunk's write-back failed
    output logic             lost_o,
    output reg_idx_t         lost_region_o,
    output chunk_idx_t       lost_chunk_o
);
  localparam logic [5:0] LAST = 6'(Beats - 1);

  typedef struct packed {
    logic [LW-1:0] line;
    logic walk;
    logic fill;
    logic evict;
    reg_idx_t region;
    chunk_idx_t chunk;
    reg_idx_t old_region;
    chunk_idx_t old_chunk;
  } job_t;
  job_t job_q[Slots];
  logic [Slots-1:0] busy_q;    // in progress or waiting
  logic [Slots-1:0] owed_q;    // its write-back is not acknowledged
  logic [Slots-1:0] ask_q;     // its read was not requested yet
  logic [SW-1:0] wp_q, ap_q, xp_q;
  job_t head;

  assign busy_o = busy_q;
  assign idle_o = busy_q == '0 && owed_q == '0;
  assign new_ready_o = !busy_q[wp_q] && !owed_q[wp_q] && !clr_i;
  assign new_slot_o = wp_q;
  assign head = job_q[xp_q];
  assign line_o = head.line;

  function automatic logic [63:0] addr_of(input reg_idx_t region, input chunk_idx_t chunk);
    return Base[region] + (64'(chunk) << LineLog2);
  endfunction

  // ---- reads ----
  logic hazard, ar_valid_q;
  logic [63:0] ar_addr_q;
  always_comb begin
    hazard = 1'b0;
    for (int s = 0; s < int'(Slots); s++) begin
      if (owed_q[s] && job_q[s].old_region == job_q[ap_q].region &&
          job_q[s].old_chunk == job_q[ap_q].chunk) hazard = 1'b1;
    end
  end
  logic skip, ask;
  logic [SW:0] left_q;  // jobs not yet looked at here
  assign skip = left_q != '0 && !ask_q[ap_q];
  assign ask = left_q != '0 && ask_q[ap_q] && !hazard && (!ar_valid_q || ar_ready_i);
  assign ar_valid_o = ar_valid_q;
  assign ar_addr_o = ar_addr_q;

  // ---- the current job ----
  typedef enum logic [1:0] {X_IDLE, X_EVICT, X_FILL} state_e;
  state_e state_q;
  logic [5:0] rd_beat_q, beat_q;
  logic rd_all_q, stage_q, aw_valid_q, error_q, finish, start, evict_end, word_valid, acks_room;
  logic [2:0] words;
  logic [63:0] aw_addr_q;

  assign start = state_q == X_IDLE && busy_q[xp_q];
  assign finish = (start && !(head.evict && !bad_i) && !head.fill) || (evict_end && !head.fill) ||
      (state_q == X_FILL && wr_valid_o && wr_ready_i && beat_q == LAST);
  assign evict_end = state_q == X_EVICT && w_valid_o && w_ready_i && w_last_o &&
      !(aw_valid_q && !aw_ready_i);
  assign rd_valid_o = state_q == X_EVICT && !rd_all_q && words + 3'(stage_q) < 3'd4;
  assign rd_beat_o = rd_beat_q;
  assign wr_valid_o = state_q == X_FILL && r_valid_i;
  assign r_ready_o = state_q == X_FILL && wr_ready_i;
  assign wr_beat_o = beat_q;
  assign wr_data_o = r_error_i ? '0 : r_data_i;
  assign bad_we_o = finish;
  assign bad_o = (state_q == X_FILL) ? (error_q || r_error_i) : (head.walk && bad_i);
  assign aw_valid_o = aw_valid_q;
  assign aw_addr_o = aw_addr_q;
  // the last word waits for its address, so that a job ends with both
  assign w_valid_o = word_valid && !(w_last_o && aw_valid_q);
  assign w_last_o = beat_q == LAST;
  assign writing_o = state_q == X_EVICT;

  shef_fifo #(.W(512), .Depth(4)) u_words (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(rd_beat_q[1:0]),
      .in_valid_i(stage_q), .in_ready_o(), .in_data_i(rd_data_i),
      .out_valid_o(word_valid), .out_ready_i(w_valid_o && w_ready_i), .out_data_o(w_data_o),
      .count_o(words)
  );

  // write-backs are acknowledged in order
  logic [SW-1:0] ack_slot;
  logic ack_valid;
  shef_fifo #(.W(SW), .Depth(Slots)) u_acks (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(evict_end), .in_ready_o(acks_room), .in_data_i(xp_q),
      .out_valid_o(ack_valid), .out_ready_i(b_valid_i), .out_data_o(ack_slot), .count_o()
  );

  assign lost_o = ack_valid && b_valid_i && b_error_i;
  assign lost_region_o = job_q[ack_slot].old_region;
  assign lost_chunk_o = job_q[ack_slot].old_chunk;

  always_ff @(posedge clk_i) begin
    if (new_valid_i && new_ready_o)
      job_q[wp_q] <= '{line: new_line_i, walk: new_walk_i, fill: new_fill_i, evict: new_evict_i,
          region: new_region_i,
          chunk: new_chunk_i, old_region: old_region_i, old_chunk: old_chunk_i};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= '0;
      owed_q <= '0;
      ask_q <= '0;
      wp_q <= '0;
      ap_q <= '0;
      left_q <= '0;
      xp_q <= '0;
      ar_valid_q <= 1'b0;
      ar_addr_q <= '0;
      state_q <= X_IDLE;
      rd_beat_q <= '0;
      beat_q <= '0;
      rd_all_q <= 1'b0;
      stage_q <= 1'b0;
      aw_valid_q <= 1'b0;
      aw_addr_q <= '0;
      error_q <= 1'b0;
    end else begin
      if (ack_valid && b_valid_i) owed_q[ack_slot] <= 1'b0;
      if (new_valid_i && new_ready_o) begin
        busy_q[wp_q] <= 1'b1;
        owed_q[wp_q] <= new_evict_i;
        ask_q[wp_q] <= new_fill_i;
        wp_q <= wp_q + 1'b1;
      end
      // reads
      if (!ar_valid_q || ar_ready_i) begin
        ar_valid_q <= ask;
        if (ask) ar_addr_q <= addr_of(job_q[ap_q].region, job_q[ap_q].chunk);
      end
      if (ask) ask_q[ap_q] <= 1'b0;
      if (ask || skip) ap_q <= ap_q + 1'b1;
      left_q <= left_q + (SW + 1)'(new_valid_i && new_ready_o) - (SW + 1)'(ask || skip);
      // the current job
      stage_q <= rd_valid_o && rd_ready_i;
      if (aw_ready_i) aw_valid_q <= 1'b0;
      if (clr_i) rd_beat_q <= rd_beat_q + 1'b1;
      unique case (state_q)
        X_IDLE:
        if (start) begin
          beat_q <= '0;
          error_q <= 1'b0;
          if (head.evict && !bad_i) begin
            if (write_go_i && acks_room) begin
              state_q <= X_EVICT;
              aw_valid_q <= 1'b1;
              aw_addr_q <= addr_of(head.old_region, head.old_chunk);
              rd_beat_q <= '0;
              rd_all_q <= 1'b0;
            end
          end else begin
            owed_q[xp_q] <= 1'b0;
            if (head.fill) state_q <= X_FILL;
          end
        end
        X_EVICT: begin
          if (rd_valid_o && rd_ready_i) begin
            rd_beat_q <= rd_beat_q + 1'b1;
            rd_all_q <= rd_beat_q == LAST;
          end
          if (w_valid_o && w_ready_i) beat_q <= beat_q + 1'b1;
          if (evict_end) begin
            beat_q <= '0;
            state_q <= head.fill ? X_FILL : X_IDLE;
          end
        end
        X_FILL:
        if (wr_valid_o && wr_ready_i) begin
          beat_q <= beat_q + 1'b1;
          error_q <= error_q || r_error_i;
          if (beat_q == LAST) state_q <= X_IDLE;
        end
        default: state_q <= X_IDLE;
      endcase
      if (finish) begin
        busy_q[xp_q] <= 1'b0;
        xp_q <= xp_q + 1'b1;
      end
    end
  end
  logic unused;
  assign unused = ^head;
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
