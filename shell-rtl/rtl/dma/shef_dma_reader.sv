// Read side of a mover: keeps up to Slots bursts of up to Beats beats in flight, each under a
// separate id, and passes the beats on in request order, whatever the order of the responses.
//
// Handshake: requests (valid/ready) are bursts inside one page; AR as in AXI4; R is always
// accepted, because each burst has its place before it is requested; beats out (valid/ready) with
// their response. Latency two cycles from R to the beat, one beat a cycle. owed_o (level): a
// response is outstanding. bad_o (pulse): an unowed beat, or a misplaced RLAST.
`default_nettype none
module shef_dma_reader
  import shef_pkg::*;
#(
    parameter int unsigned Slots = 16,
    parameter int unsigned Beats = 64
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          req_valid_i,
    output logic         req_ready_o,
    input  wire  [57:0]  req_line_i,   // address / 64
    input  wire  [6:0]   req_beats_i,  // 1 .. Beats
    output axi_ax_t      ar_o,
    output logic         ar_valid_o,
    input  wire          ar_ready_i,
    input  wire  axi_r_t r_i,
    input  wire          r_valid_i,
    output logic         beat_valid_o,
    input  wire          beat_ready_i,
    output logic [511:0] beat_o,
    output logic [1:0]   resp_o,
    output logic         owed_o,
    output logic         bad_o
);
  localparam int unsigned SW = $clog2(Slots);
  localparam int unsigned BW = $clog2(Beats);

  logic [513:0] ram_q[Slots*Beats];
  logic [Slots-1:0] busy_q;                // requested and not yet completely passed on
  logic [Slots-1:0][BW:0] want_q, got_q;   // beats of the burst, and those present
  logic [SW-1:0] put_q, take_q;
  logic [BW-1:0] beat_q;
  logic [SW:0] open_q;                     // bursts with an incomplete response

  // ---- requests ----
  axi_ax_t ar_q;
  logic ar_valid_q, accept;
  assign ar_o = ar_q;
  assign ar_valid_o = ar_valid_q;
  assign req_ready_o = !busy_q[put_q] && (!ar_valid_q || ar_ready_i);
  assign accept = req_valid_i && req_ready_o;
  assign owed_o = open_q != '0;

  // ---- responses ----
  axi_r_t r_q;
  logic r_valid_q, r_good, r_end;
  logic [SW-1:0] slot;
  logic [BW:0] r_next;
  assign slot = r_q.id[SW-1:0];
  assign r_next = got_q[slot] + 1'b1;
  assign r_good = r_valid_q && (r_q.id >> SW) == '0 && busy_q[slot] &&
      got_q[slot] != want_q[slot] && r_q.last == (r_next == want_q[slot]);
  assign r_end = r_good && r_q.last;
  assign bad_o = r_valid_q && !r_good;

  // ---- beats in order ----
  logic load, load_end, out_valid_q;
  logic [513:0] out_q;
  assign load = busy_q[take_q] && got_q[take_q] != {1'b0, beat_q} && (!out_valid_q || beat_ready_i);
  assign load_end = load && {1'b0, beat_q} + 1'b1 == want_q[take_q];
  assign beat_valid_o = out_valid_q;
  assign {resp_o, beat_o} = out_q;

  always_ff @(posedge clk_i) begin
    if (r_good) ram_q[{slot, got_q[slot][BW-1:0]}] <= {r_q.resp, r_q.data};
    if (load) out_q <= ram_q[{take_q, beat_q}];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= '0;
      want_q <= '0;
      got_q <= '0;
      put_q <= '0;
      take_q <= '0;
      beat_q <= '0;
      open_q <= '0;
      ar_q <= '0;
      ar_valid_q <= 1'b0;
      r_q <= '0;
      r_valid_q <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      r_valid_q <= r_valid_i;
      if (r_valid_i) r_q <= r_i;
      if (r_good) got_q[slot] <= r_next;

      if (load) begin
        beat_q <= load_end ? '0 : beat_q + 1'b1;
        out_valid_q <= 1'b1;
      end else if (beat_ready_i) out_valid_q <= 1'b0;
      if (load_end) begin
        busy_q[take_q] <= 1'b0;
        take_q <= take_q + 1'b1;
      end

      if (ar_ready_i) ar_valid_q <= 1'b0;
      if (accept) begin
        ar_valid_q <= 1'b1;
        ar_q <= '{id: AXI_ID_W'(put_q), addr: {req_line_i, 6'd0}, len: 8'(req_beats_i) - 8'd1,
            size: AXI_SIZE_64, burst: AXI_BURST_INCR};
        busy_q[put_q] <= 1'b1;
        want_q[put_q] <= (BW + 1)'(req_beats_i);
        got_q[put_q] <= '0;
        put_q <= put_q + 1'b1;
      end
      if (accept != r_end) open_q <= accept ? open_q + 1'b1 : open_q - 1'b1;
    end
  end
endmodule
`default_nettype wire
