// Oblivious memory: Path ORAM (Stefanov et al., CCS 2013) of 4,096 blocks.
//
// Registers: README.md. Memory: AXI4 master acc_*, all ids 0. Commands are read and results written
// in blocks of 64 lines. Each command is one access, in order: all buckets from the root to a
// random leaf are read, 12 bursts of 4 beats, and written again from the leaf to the root. Which
// leaf this is, and how many cycles the accelerator takes between the beats, depends on no command.
// The next path is read after the last one has been written. A response other than OKAY, and a
// stash with more than LIMIT blocks after an access, ends the run with STATUS.error: no further
// request is made, and outstanding responses are awaited.
`default_nettype none
module shef_accel
  import shef_pkg::*;
  import shef_oram_pkg::*;
(
  input  wire          clk_i,
  input  wire          rst_ni,
  input  wire          clear_i,     // zero all memories, in reset
  output wire          cleared_o,   // done, until clear_i falls

  input  wire   [15:0] reg_awaddr_i,
  input  wire          reg_awvalid_i,
  output wire          reg_awready_o,
  input  wire   [31:0] reg_wdata_i,
  input  wire   [ 3:0] reg_wstrb_i,
  input  wire          reg_wvalid_i,
  output wire          reg_wready_o,
  output wire   [ 1:0] reg_bresp_o,
  output wire          reg_bvalid_o,
  input  wire          reg_bready_i,
  input  wire   [15:0] reg_araddr_i,
  input  wire          reg_arvalid_i,
  output wire          reg_arready_o,
  output wire   [31:0] reg_rdata_o,
  output wire   [ 1:0] reg_rresp_o,
  output wire          reg_rvalid_o,
  input  wire          reg_rready_i,

  output axi_ax_t      acc_aw_o,
  output wire          acc_aw_valid_o,
  input  wire          acc_aw_ready_i,
  output axi_w_t       acc_w_o,
  output wire          acc_w_valid_o,
  input  wire          acc_w_ready_i,
  input  wire axi_b_t  acc_b_i,
  input  wire          acc_b_valid_i,
  output wire          acc_b_ready_o,
  output axi_ax_t      acc_ar_o,
  output wire          acc_ar_valid_o,
  input  wire          acc_ar_ready_i,
  input  wire axi_r_t  acc_r_i,
  input  wire          acc_r_valid_i,
  output wire          acc_r_ready_o,

  output wire          irq_o
);
  localparam logic [31:0] MAX_COUNT = 32'h0010_0000;
  localparam int unsigned TREE_LINES = BUCKET << LEVELS;  // with a bucket 0 that is not used
  localparam int unsigned IDS = 1 << ID_W;

  // ---- registers ----
  wire [16:0][31:0] args;
  wire [31:0] count = args[0];
  wire fresh = args[1][0];
  wire [SLOT_W:0] limit = args[2][SLOT_W:0];
  wire [57:0] commands_line = 58'({args[4], args[3]} >> 6);
  wire [57:0] results_line = 58'({args[6], args[5]} >> 6);
  wire [7:0][31:0] seed = args[16:9];
  logic ready_q;             // there is a tree
  wire refuse = count == '0 || count > MAX_COUNT || args[1] > 32'd1 || !fresh && !ready_q ||
      args[2] > 32'(MAX_LIMIT) || args[3][5:0] != '0 || args[5][5:0] != '0 ||
      args[7][7:0] != '0 || fresh && seed == '0;
  wire start, busy, error, over;
  wire read_idle, read_fail, write_idle, write_fail;
  logic [31:0] cycles_q, trace_q;
  logic [SLOT_W:0] peak_q;
  wire [SLOT_W:0] held;
  wire overflow;

  shef_kit_regs #(.NArgs(17), .NResults(4)) u_regs (
    .clk_i,
    .rst_ni,
    .reg_awaddr_i,
    .reg_awvalid_i,
    .reg_awready_o,
    .reg_wdata_i,
    .reg_wstrb_i,
    .reg_wvalid_i,
    .reg_wready_o,
    .reg_bresp_o,
    .reg_bvalid_o,
    .reg_bready_i,
    .reg_araddr_i,
    .reg_arvalid_i,
    .reg_arready_o,
    .reg_rdata_o,
    .reg_rresp_o,
    .reg_rvalid_o,
    .reg_rready_i,
    .args_o(args),
    .results_i({cycles_q, trace_q, 32'(held), 32'(peak_q)}),
    .refuse_i(refuse),
    .start_o(start),
    .busy_o(busy),
    .error_o(error),
    .end_i(over),
    .fail_i(read_fail || write_fail || overflow),
    .irq_o
  );

  // ---- state ----
  typedef enum logic [3:0] {
    INIT,    // zeros to the tree, random leaves to the position map
    LOAD,    // up to 64 commands
    FETCH,   // a command of them
    MAP,     // its leaf, and a random word
    SWAP,    // the random leaf replaces it
    PATH,    // the path to the stash
    FIND,
    HOLD,
    SERVE,   // the block's data to the result, the command's to the block
    EVICT,   // from the stash to the path
    SETTLE,  // until all is written
    STORE,   // up to 64 results
    ENDED
  } state_e;
  state_e state_q;
  logic [57:0] tree_line_q;
  logic [31:0] done_q;          // commands whose results are stored
  logic [6:0] at_q;             // command on chip
  logic ask_q;                  // a request of this state is to be made
  logic [3:0] level_q;          // of that request
  logic [14:0] beat_q;          // beats of this state
  logic [ID_W:0] filled_q;      // entries of the position map
  logic storing_q;              // a result is at memory's output
  wire [31:0] left = count - done_q;
  wire [6:0] batch = left < 32'(BATCH) ? 7'(left) : 7'(BATCH);

  wire read_ready, write_ready, beat_valid, room;
  wire [511:0] beat;

  // ---- command in hand ----
  message_t command_q;
  logic [LEAF_W-1:0] mapped_q, path_q, new_q;
  logic [LEAF_W-1:0] map_mem[IDS];
  wire bad_op = command_q.code[1];
  wire bad_id = command_q.id[13:12] != '0;
  wire bad = bad_op || bad_id;
  wire [ID_W-1:0] id = command_q.id[ID_W-1:0];

  // ---- random words: a new leaf, and one for commands that are refused ----
  wire word_valid;
  wire [31:0] word;
  wire fill = state_q == INIT && word_valid && filled_q != (ID_W + 1)'(IDS);
  wire word_ready = fill || state_q == SWAP;
  shef_oram_random u_random (
    .clk_i,
    .rst_ni,
    .start_i(start && fresh),
    .key_i(seed),
    .word_valid_o(word_valid),
    .word_ready_i(word_ready),
    .word_o(word)
  );

  // ---- sequence ----
  wire given = !ask_q;
  wire asked = ask_q && (state_q == LOAD || state_q == PATH ? read_ready : write_ready);
  wire last_level = level_q == (state_q == PATH ? 4'(LEVELS - 1) : '0);
  wire initialised = given && write_idle && beat_q == 15'(TREE_LINES) &&
      filled_q == (ID_W + 1)'(IDS);
  wire settled = state_q == SETTLE && given && write_idle;
  wire last_command = at_q + 7'd1 == batch;
  wire stored = given && write_idle && beat_q == 15'(batch);
  assign overflow = settled && held > limit;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= ENDED;
      {tree_line_q, done_q, at_q, ask_q, level_q, beat_q, filled_q, storing_q} <= '0;
      {mapped_q, path_q, new_q} <= '0;
      {ready_q, cycles_q, trace_q, peak_q} <= '0;
    end else if (start) begin
      state_q <= fresh ? INIT : LOAD;
      if (fresh) begin
        tree_line_q <= 58'({args[8], args[7]} >> 6);
        ready_q <= 1'b0;
        {trace_q, peak_q} <= '0;
      end
      {done_q, at_q, beat_q, filled_q, cycles_q, storing_q} <= '0;
      ask_q <= 1'b1;
    end else begin
      if (busy) cycles_q <= cycles_q + 32'd1;
      storing_q <= 1'b0;
      if (asked) begin
        level_q <= state_q == PATH ? level_q + 4'd1 : level_q - 4'd1;
        ask_q <= (state_q == PATH || state_q == EVICT || state_q == SETTLE) && !last_level;
      end
      unique case (state_q)
        INIT: begin
          if (room && beat_q != 15'(TREE_LINES)) beat_q <= beat_q + 15'd1;
          if (fill) filled_q <= filled_q + 1'b1;
          if (initialised) begin
            state_q <= LOAD;
            ready_q <= 1'b1;
            ask_q <= 1'b1;
            beat_q <= '0;
          end
        end
        LOAD: if (beat_valid) begin
          beat_q <= beat_q + 15'd1;
          if (beat_q + 15'd1 == 15'(batch)) state_q <= FETCH;
        end
        FETCH: state_q <= MAP;
        MAP: begin
          mapped_q <= map_mem[id];
          if (word_valid) state_q <= SWAP;
        end
        SWAP: begin
          path_q <= bad ? word[16+:LEAF_W] : mapped_q;
          new_q <= word[0+:LEAF_W];
          state_q <= PATH;
          ask_q <= 1'b1;
          level_q <= '0;
          beat_q <= '0;
        end
        PATH: if (beat_valid) begin
          beat_q <= beat_q + 15'd1;
          if (beat_q == 15'(PATH_LINES - 1)) state_q <= FIND;
        end
        FIND: begin
          trace_q <= (trace_q ^ 32'(path_q)) * 32'h0100_0193;
          state_q <= HOLD;
        end
        HOLD: state_q <= SERVE;
        SERVE: begin
          state_q <= EVICT;
          ask_q <= 1'b1;
          level_q <= 4'(LEVELS - 1);
          beat_q <= '0;
        end
        EVICT: begin
          beat_q <= beat_q + 15'd1;
          if (beat_q == 15'(PATH_LINES - 1)) state_q <= SETTLE;
        end
        SETTLE: if (settled) begin
          if (held > peak_q) peak_q <= held;
          at_q <= last_command ? '0 : at_q + 7'd1;
          state_q <= last_command ? STORE : FETCH;
          ask_q <= last_command;
          beat_q <= '0;
        end
        STORE: begin
          if (beat_q != 15'(batch)) begin
            storing_q <= 1'b1;
            beat_q <= beat_q + 15'd1;
          end
          if (stored) begin
            done_q <= done_q + 32'(batch);
            state_q <= left == 32'(batch) ? ENDED : LOAD;
            ask_q <= left != 32'(batch);
            beat_q <= '0;
          end
        end
        default: ask_q <= 1'b0;
      endcase
      if (error) begin
        state_q <= ENDED;
        ask_q <= 1'b0;
        ready_q <= 1'b0;
      end
    end
  end

  // ---- memories: the position map; commands, which their results replace ----
  logic [ID_W-1:0] sweep;
  wire map_cleared, stash_cleared, read_cleared, write_cleared;
  shef_sweep #(.Words(IDS)) u_sweep (.clk_i, .clear_i, .addr_o(sweep), .cleared_o(map_cleared));
  logic [511:0] batch_mem[BATCH];
  wire message_t result;
  always_ff @(posedge clk_i) begin
    if (clear_i) map_mem[sweep] <= '0;
    else if (fill) map_mem[filled_q[ID_W-1:0]] <= word[0+:LEAF_W];
    else if (state_q == SWAP && !bad) map_mem[id] <= word[0+:LEAF_W];
    if (clear_i) batch_mem[sweep[5:0]] <= '0;
    else if (state_q == LOAD && beat_valid) batch_mem[beat_q[5:0]] <= beat;
    else if (state_q == SERVE) batch_mem[at_q[5:0]] <= result;
    if (!rst_ni) command_q <= '0;
    else if (state_q == FETCH || state_q == STORE) begin
      command_q <= batch_mem[state_q == STORE ? beat_q[5:0] : at_q[5:0]];
    end
  end

  // ---- stash ----
  wire [479:0] found;
  wire block_valid;
  wire block_t block;
  shef_oram_stash u_stash (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(stash_cleared),
    .start_i(start && fresh),
    .insert_i(state_q == PATH && beat_valid),
    .block_i(beat),
    .find_i(state_q == FIND),
    .serve_i(state_q == SERVE && !bad),
    .write_i(command_q.code == OP_WRITE),
    .id_i(id),
    .leaf_i(state_q == SERVE ? new_q : path_q),
    .mask_i(LEAF_W'('1) << (beat_q[5:2])),
    .data_i(command_q.data),
    .data_o(found),
    .pick_i(state_q == EVICT),
    .block_valid_o(block_valid),
    .block_o(block),
    .held_o(held)
  );
  assign result = '{
    data: bad ? '0 : found,
    code: bad_op ? STATUS_OP : bad_id ? STATUS_RANGE : STATUS_OK,
    tag: command_q.tag,
    id: command_q.id
  };

  // ---- memory: the bucket of a level is the node of this number in a heap ----
  wire [LEVELS-1:0] node = (LEVELS'(1) << level_q) | LEVELS'(path_q >> (4'(LEVELS - 1) - level_q));
  wire [57:0] node_line = tree_line_q + 58'({node, 2'd0});
  logic [57:0] write_line;
  logic [31:0] write_beats;
  always_comb begin
    unique case (state_q)
      INIT: {write_line, write_beats} = {tree_line_q, 32'(TREE_LINES)};
      STORE: {write_line, write_beats} = {results_line + 58'(done_q), 32'(batch)};
      default: {write_line, write_beats} = {node_line, 32'(BUCKET)};
    endcase
  end
  wire reading = state_q == LOAD || state_q == PATH;
  shef_kit_read u_read (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(read_cleared),
    .start_i(start),
    .stop_i(error),
    .idle_o(read_idle),
    .fail_o(read_fail),
    .cmd_valid_i(ask_q && reading),
    .cmd_ready_o(read_ready),
    .cmd_line_i(state_q == LOAD ? commands_line + 58'(done_q) : node_line),
    .cmd_beats_i(state_q == LOAD ? 32'(batch) : 32'(BUCKET)),
    .data_valid_o(beat_valid),
    .data_ready_i(1'b1),
    .data_o(beat),
    .acc_ar_o,
    .acc_ar_valid_o,
    .acc_ar_ready_i,
    .acc_r_i,
    .acc_r_valid_i,
    .acc_r_ready_o
  );
  // Paths and results find the buffer of the writes empty, and fit into it.
  wire zeros = state_q == INIT && beat_q != 15'(TREE_LINES);
  wire out_valid = zeros || block_valid || storing_q;
  wire [511:0] out_line = storing_q ? command_q : block_valid ? block : '0;
  shef_kit_write u_write (
    .clk_i,
    .rst_ni,
    .clear_i,
    .cleared_o(write_cleared),
    .start_i(start),
    .stop_i(error),
    .idle_o(write_idle),
    .fail_o(write_fail),
    .cmd_valid_i(ask_q && !reading),
    .cmd_ready_o(write_ready),
    .cmd_line_i(write_line),
    .cmd_beats_i(write_beats),
    .data_valid_i(out_valid),
    .data_ready_o(room),
    .data_i(out_line),
    .acc_aw_o,
    .acc_aw_valid_o,
    .acc_aw_ready_i,
    .acc_w_o,
    .acc_w_valid_o,
    .acc_w_ready_i,
    .acc_b_i,
    .acc_b_valid_i,
    .acc_b_ready_o
  );
  wire unused = &{1'b0, word[31:27], word[15:11]};
  assign cleared_o = map_cleared && stash_cleared && read_cleared && write_cleared;
  assign over = busy && !start && write_idle && (error ? read_idle : state_q == ENDED);
endmodule
`default_nettype wire
