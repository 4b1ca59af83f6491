// Work of one queue: fetches its descriptors, splits them into pieces for the movers, and generates
// completions from the ends of the pieces.
//
// Descriptors complete in order. Those of one direction follow one another without a pause; on a
// change of direction, the next waits until the last is acknowledged. After the first failure of a
// chain nothing more of it begins.
//
// on_i (level): the queue works; start_i is a pulse before it, with nothing in flight. When on_i
// falls the block drops all waiting work, and busy_o (level) falls when the traffic on the buses
// has ended. cancel_i (pulse) ends everything before tail_i. Requests are valid/ready inside the
// engine: an offer may change until it is accepted. piece_valid_o[0] is to the card, [1] to the
// host. done_valid_i, beat_valid_i and told_i are pulses. failed_o (level): the ring cannot be
// reached.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_dma_work
  import shef_pkg::*;
  import shef_dma_pkg::*;
#(
    parameter int unsigned Queue = 0,
    parameter logic [63:0] CardBytes = 64'h4_0000_0000
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          on_i,
    input  wire          start_i,
    input  wire          cancel_i,
    input  wire  [63:0]  ring_i,
    input  wire  [12:0]  entries_i,
    input  wire  [31:0]  tail_i,
    output logic [31:0]  head_o,
    output logic         idle_o,   // nothing is left to do or to report
    output logic         busy_o,
    output logic         failed_o,

    output logic         fetch_valid_o,
    input  wire          fetch_ready_i,
    output fetch_t       fetch_o,
    input  wire          beat_valid_i,
    input  wire  desc_t  beat_i,
    input  wire          beat_error_i,
    input  wire          beat_last_i,

    output logic [1:0]   piece_valid_o,
    input  wire  [1:0]   piece_ready_i,
    output piece_t       piece_o,
    input  wire          done_valid_i,
    input  wire          done_last_i,
    input  wire status_e done_status_i,

    output logic         cpl_valid_o,
    input  wire          cpl_ready_i,
    output cpl_t         cpl_o,
    input  wire          told_i,
    input  wire          told_ok_i
);
  localparam int unsigned Descs = 32;   // descriptors on chip that have not begun
  localparam int unsigned Begun = 32;   // descriptors in progress
  localparam logic [4:0] Batch = 5'd16;

  // a descriptor in progress
  typedef struct packed {
    logic [31:0] tag;
    logic [30:0] bytes;
    logic more;        // the chain goes on
    logic local_end;   // it moves nothing: its status is known
    status_e status;
  } begun_t;

  logic [11:0] mask;
  assign mask = entries_i[11:0] - 12'd1;

  // ---- fetch ----
  typedef enum logic [1:0] {
    F_IDLE,
    F_ASK,
    F_WAIT
  } fetch_e;
  fetch_e fetch_q;
  fetch_t fetch_req_q;
  logic [31:0] fetched_q, pending;
  logic [11:0] at;
  logic [12:0] to_wrap;
  logic [6:0] to_page;
  logic [4:0] count;
  logic fetch_failed_q, desc_valid, desc_pop;
  logic [$clog2(Descs):0] descs;
  desc_t desc;

  assign pending = tail_i - fetched_q;
  assign at = fetched_q[11:0] & mask;
  assign to_wrap = entries_i - {1'b0, at};
  assign to_page = 7'd64 - {1'b0, at[5:0]};
  always_comb begin
    count = Batch;
    if (pending < 32'(count)) count = pending[4:0];
    if (to_wrap < 13'(count)) count = to_wrap[4:0];
    if (to_page < 7'(count)) count = to_page[4:0];
  end
  assign fetch_valid_o = fetch_q == F_ASK && on_i;
  assign fetch_o = fetch_req_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fetch_q <= F_IDLE;
      fetch_req_q <= '0;
      fetched_q <= '0;
      fetch_failed_q <= 1'b0;
    end else if (start_i) begin
      fetched_q <= '0;
      fetch_failed_q <= 1'b0;
    end else begin
      unique case (fetch_q)
        F_IDLE:
        if (on_i && pending != '0 && !fetch_failed_q &&
            descs <= ($clog2(Descs) + 1)'(Descs - 16)) begin
          fetch_q <= F_ASK;
          fetch_req_q <= '{line: ring_i[63:6] + 58'(at), count: count};
        end
        F_ASK:
        if (!on_i) fetch_q <= F_IDLE;
        else if (fetch_ready_i) begin
          fetch_q <= F_WAIT;
          fetched_q <= fetched_q + 32'(fetch_req_q.count);
        end
        default: if (beat_valid_i && beat_last_i) fetch_q <= F_IDLE;
      endcase
      if (beat_valid_i && beat_error_i) fetch_failed_q <= 1'b1;
    end
  end

  shef_fifo #(.W($bits(desc_t)), .Depth(Descs)) u_descs (
      .clk_i, .rst_ni, .clr_i(!on_i), .zero_addr_i('0),
      .in_valid_i(beat_valid_i && !beat_error_i && !fetch_failed_q), .in_ready_o(),
      .in_data_i(beat_i),
      .out_valid_o(desc_valid), .out_ready_i(desc_pop), .out_data_o(desc), .count_o(descs)
  );

  // ---- begin: descriptors to pieces ----
  typedef enum logic [1:0] {
    B_LOAD,
    B_JUDGE,
    B_MOVE
  } begin_e;
  begin_e begin_q;
  desc_t desc_q;
  logic range_q, dir_q, dir, iss_failed_q, cancel_q, cancelled, skip, local_end, more, over;
  logic begun_room, begun_push, begun_valid, begun_pop, move_ready;
  logic [$clog2(Begun):0] begun_count;
  logic [1:0] fresh_q;
  logic [12:0] iss_length_q;
  logic [31:0] issued_q, cancel_to_q, to_cancel;
  logic [63:0] host_q, card_q;
  logic [30:0] left_q;
  logic [12:0] in_page, bytes;
  logic [7:0] pieces_q;
  begun_t begun_in, begun;
  status_e local_status, piece_status_q;
  logic known_failed, stops, taken, piece_end;
  logic [64:0] card_end;

  assign card_end = {1'b0, desc.card} + 65'(desc.bytes);
  assign desc_pop = begin_q == B_LOAD && desc_valid;
  assign to_cancel = cancel_to_q - issued_q;
  assign cancelled = cancel_q && !to_cancel[31] && to_cancel != '0;
  assign dir = desc_q.op == OP_TO_HOST;
  assign skip = iss_failed_q || known_failed;
  assign more = desc_q.ok && desc_q.chain && iss_length_q + 13'd1 < entries_i;
  always_comb begin
    local_end = 1'b1;
    local_status = ST_DONE;
    if (skip) local_status = ST_DONE;
    else if (cancelled) local_status = ST_CANCELLED;
    else if (!desc_q.ok) local_status = ST_MALFORMED;
    else if (desc_q.op != OP_NOTHING && range_q) local_status = ST_CARD;
    else local_end = desc_q.op == OP_NOTHING || desc_q.bytes == '0;
  end
  // A change of direction waits until all earlier work is over, with a known outcome.
  assign move_ready = begun_count == '0 || dir_q == dir;
  assign begun_push = begin_q == B_JUDGE && on_i && begun_room && (local_end || move_ready);
  assign begun_in = '{tag: desc_q.tag, bytes: local_end ? 31'd0
      : desc_q.bytes, more: more, local_end: local_end, status: local_status};

  // a piece: up to the end of the page in host memory
  assign in_page = 13'd4096 - {1'b0, host_q[11:0]};
  assign bytes = left_q < 31'(in_page) ? left_q[12:0] : in_page;
  assign stops = cancelled || known_failed || (piece_status_q != ST_DONE && begun_count == 1);
  assign piece_end = stops || left_q == 31'(bytes);
  always_comb begin
    piece_o.q = QUEUE_W'(Queue);
    piece_o.src = dir_q ? card_q : host_q;
    piece_o.dst = dir_q ? host_q : card_q;
    piece_o.bytes = stops ? '0 : bytes;
    piece_o.fresh = fresh_q[dir_q];
    piece_o.last = piece_end;
    piece_o.status = stops && cancelled ? ST_CANCELLED : ST_DONE;
    piece_valid_o = '0;
    piece_valid_o[dir_q] = begin_q == B_MOVE && on_i && pieces_q != '1;
  end
  assign taken = (piece_valid_o & piece_ready_i) != '0;
  // the current descriptor has completely begun
  assign over = (begun_push && local_end) || (taken && piece_end);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begin_q <= B_LOAD;
      desc_q <= '0;
      range_q <= 1'b0;
      dir_q <= 1'b0;
      iss_failed_q <= 1'b0;
      cancel_q <= 1'b0;
      cancel_to_q <= '0;
      fresh_q <= '1;
      iss_length_q <= '0;
      issued_q <= '0;
      host_q <= '0;
      card_q <= '0;
      left_q <= '0;
      pieces_q <= '0;
    end else begin
      if (taken != done_valid_i) pieces_q <= taken ? pieces_q + 1'b1 : pieces_q - 1'b1;
      if (!on_i) begin
        begin_q <= B_LOAD;
        iss_failed_q <= 1'b0;
        cancel_q <= 1'b0;
        fresh_q <= '1;
        iss_length_q <= '0;
        issued_q <= '0;
      end else begin
        unique case (begin_q)
          B_LOAD:
          if (desc_valid) begin
            begin_q <= B_JUDGE;
            desc_q <= desc;
            range_q <= card_end > {1'b0, CardBytes};
          end
          B_JUDGE:
          if (begun_push) begin
            begin_q <= local_end ? B_LOAD : B_MOVE;
            dir_q <= local_end ? dir_q : dir;
            host_q <= desc_q.host;
            card_q <= desc_q.card;
            left_q <= desc_q.bytes;
          end
          default:
          if (taken) begin
            if (piece_end) begin_q <= B_LOAD;
            fresh_q[dir_q] <= 1'b0;
            host_q <= host_q + 64'(bytes);
            card_q <= card_q + 64'(bytes);
            left_q <= left_q - 31'(bytes);
          end
        endcase
        if (over) begin
          issued_q <= issued_q + 32'd1;
          iss_length_q <= more ? iss_length_q + 13'd1 : '0;
          // Failures on the buses become known later.
          iss_failed_q <= more && (iss_failed_q || (local_end && local_status != ST_DONE) ||
              (begin_q == B_MOVE && stops));
          if (!more) fresh_q <= '1;
        end
        if (cancel_i) begin
          cancel_q <= 1'b1;
          cancel_to_q <= tail_i;
        end else if (cancel_q && !cancelled) cancel_q <= 1'b0;
      end
    end
  end

  shef_fifo #(.W($bits(begun_t)), .Depth(Begun)) u_begun (
      .clk_i, .rst_ni, .clr_i(!on_i), .zero_addr_i('0),
      .in_valid_i(begun_push), .in_ready_o(begun_room), .in_data_i(begun_in),
      .out_valid_o(begun_valid), .out_ready_i(begun_pop), .out_data_o(begun), .count_o(begun_count)
  );

  // ---- ends of pieces to ends of descriptors ----
  status_e piece_status, moved_status;
  logic moved_valid, moved_pop;
  logic [2:0] moved_bits;
  assign piece_status = piece_status_q != ST_DONE ? piece_status_q : done_status_i;
  assign moved_status = status_e'(moved_bits);
  shef_fifo #(.W(3), .Depth(Begun)) u_moved (
      .clk_i, .rst_ni, .clr_i(!on_i), .zero_addr_i('0),
      .in_valid_i(done_valid_i && done_last_i), .in_ready_o(), .in_data_i(piece_status),
      .out_valid_o(moved_valid), .out_ready_i(moved_pop), .out_data_o(moved_bits), .count_o()
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !on_i) piece_status_q <= ST_DONE;
    else if (done_valid_i) piece_status_q <= done_last_i ? ST_DONE : piece_status;
  end

  // ---- retire: ends of descriptors to completions ----
  logic [31:0] head_q, completed_q, bytes_q, fail_tag_q, bytes_sum;
  logic [15:0] length_q;
  logic [$clog2(Begun):0] ends_q;   // chains that have completely begun and are not over
  logic [4:0] cpls_q;               // unacknowledged completions
  logic cpl_valid_q, fails;
  cpl_t cpl_q;
  status_e status, fail_q;
  logic [63:0] cpl_addr;

  assign status = begun.local_end ? begun.status : moved_status;
  assign begun_pop = begun_valid && (begun.local_end || moved_valid) &&
      (!cpl_valid_q || cpl_ready_i);
  assign moved_pop = begun_pop && !begun.local_end;
  assign fails = fail_q == ST_DONE && status != ST_DONE;
  assign bytes_sum = bytes_q + (fail_q == ST_DONE && status == ST_DONE ? 32'(begun.bytes) : 32'd0);
  assign cpl_addr = ring_i + {45'd0, entries_i, 6'd0} + 64'({completed_q[11:0] & mask, 4'd0});
  // The current chain is the one that failed.
  assign known_failed = fail_q != ST_DONE && ends_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q <= '0;
      completed_q <= '0;
      bytes_q <= '0;
      length_q <= '0;
      fail_q <= ST_DONE;
      fail_tag_q <= '0;
      ends_q <= '0;
      cpls_q <= '0;
      cpl_valid_q <= 1'b0;
      cpl_q <= '0;
    end else begin
      if ((cpl_valid_o && cpl_ready_i) != told_i) cpls_q <= told_i ? cpls_q - 1'b1 : cpls_q + 1'b1;
      if (start_i) begin
        head_q <= '0;
        completed_q <= '0;
      end
      if (!on_i) begin
        bytes_q <= '0;
        length_q <= '0;
        fail_q <= ST_DONE;
        ends_q <= '0;
        cpl_valid_q <= 1'b0;
      end else begin
        if (cpl_ready_i) cpl_valid_q <= 1'b0;
        if (begun_pop) begin
          head_q <= head_q + 32'd1;
          length_q <= begun.more ? length_q + 16'd1 : '0;
          bytes_q <= begun.more ? bytes_sum : '0;
          if (fails) fail_tag_q <= begun.tag;
          fail_q <= !begun.more ? ST_DONE : fails ? status : fail_q;
          if (!begun.more) begin
            completed_q <= completed_q + 32'd1;
            cpl_valid_q <= 1'b1;
            cpl_q <= '{
                addr: cpl_addr,
                tag: fail_q != ST_DONE ? fail_tag_q : begun.tag,
                status: fail_q != ST_DONE ? fail_q : status,
                retired: length_q + 16'd1,
                bytes: bytes_sum,
                seq: completed_q + 32'd1
            };
          end
        end
        if ((over && !more) != (begun_pop && !begun.more))
          ends_q <= (over && !more) ? ends_q + 1'b1 : ends_q - 1'b1;
      end
    end
  end
  assign head_o = head_q;
  assign cpl_valid_o = cpl_valid_q && on_i;
  assign cpl_o = cpl_q;

  logic told_all;
  assign told_all = !cpl_valid_q && cpls_q == '0;
  assign idle_o = head_q == tail_i && told_all;
  assign busy_o = fetch_q == F_WAIT || pieces_q != '0 || cpls_q != '0;
  // The work before the unreadable descriptors is done first.
  assign failed_o = (told_i && !told_ok_i) ||
      (fetch_failed_q && fetch_q == F_IDLE && !desc_valid && begin_q == B_LOAD && !begun_valid &&
      told_all);
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
