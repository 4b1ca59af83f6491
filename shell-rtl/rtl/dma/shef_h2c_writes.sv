// Writes of the window to card memory: splits each into bursts of at most 8 beats inside 512 bytes,
// and answers in request order, when memory has acknowledged all bursts of the write.
//
// Handshake: AW, W and B as AXI4 slave, AW, W and B (always accepted) as AXI4 master of card
// memory. A burst is sent once all its beats are here; its id is the place of its write. Open
// writes are accepted. One beat a cycle. aw_port_i is the number of the memory port of mem_aw_o, in
// the same cycle, and w_port_o that of mem_w_o.
// cut_i (level): writes that are open, and those that come, are answered with SLVERR, after their
// data, which are dropped, except for bursts that are complete; it stays until quiet_o (level,
// nothing in flight at memory), or hold_i. hold_i (level, with cut_i): resets what is at memory.
// owed_o (level): memory owes a response or does not accept a burst. bad_o (pulse): an unowed B.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_h2c_writes
  import shef_pkg::*;
  import shef_h2c_pkg::*;
#(
    parameter logic [63:0] CardBytes = 64'h4_0000_0000,
    parameter int unsigned Open = 32,
    parameter int unsigned Beats = 64,  // that wait to be sent, at least one burst
    parameter int unsigned Bursts = 8,  // that wait to be sent
    parameter int unsigned PW = 1
) (
    input  wire           clk_i,
    input  wire           rst_ni,
    input  wire           hold_i,
    input  wire           cut_i,
    input  wire  axi_ax_t aw_i,
    input  wire           aw_valid_i,
    output logic          aw_ready_o,
    input  wire  axi_w_t  w_i,
    input  wire           w_valid_i,
    output logic          w_ready_o,
    output axi_b_t        b_o,
    output logic          b_valid_o,
    input  wire           b_ready_i,
    output axi_ax_t       mem_aw_o,
    output logic          mem_aw_valid_o,
    input  wire           mem_aw_ready_i,
    input  wire  [PW-1:0] aw_port_i,
    output axi_w_t        mem_w_o,
    output logic          mem_w_valid_o,
    input  wire           mem_w_ready_i,
    output logic [PW-1:0] w_port_o,
    input  wire  axi_b_t  mem_b_i,
    input  wire           mem_b_valid_i,
    output logic          quiet_o,
    output logic          owed_o,
    output logic          bad_o
);
  localparam int unsigned OW = $clog2(Open);
  typedef logic [OW-1:0] place_t;

  typedef struct packed {
    logic [AXI_ID_W-1:0] id;
    h2c_kind_e kind;
  } write_t;

  typedef struct packed {
    logic [57:0] line;  // address / 64
    logic [7:0] len;
    h2c_kind_e kind;
    place_t place;
  } data_t;

  typedef struct packed {
    logic [57:0] line;
    logic [2:0] len;
    place_t place;
  } burst_t;

  // ---- open writes, each in its place ----
  h2c_kind_e kind;
  write_t head;
  logic push, pop, head_valid;
  logic [OW:0] count;
  place_t put_q, take_q;
  logic [Open-1:0] whole_q, error_q;  // all its data are here; memory has answered with an error
  logic [Open-1:0][3:0] left_q;       // bursts without a response
  assign kind = h2c_kind(aw_i.addr, aw_i.len, aw_i.size, aw_i.burst, CardBytes, cut_i);
  assign push = aw_valid_i && aw_ready_o;
  shef_fifo #(.W($bits(write_t)), .Depth(Open)) u_open (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(aw_valid_i), .in_ready_o(aw_ready_o), .in_data_i({aw_i.id, kind}),
      .out_valid_o(head_valid), .out_ready_i(pop), .out_data_o(head), .count_o(count)
  );

  // ---- data ----
  data_t at;
  logic at_valid, w_take, w_end, wanted, part_end, beat_room, burst_room;
  logic [OW:0] at_count, at_stale_q;  // writes without all their data, and those of them cut
  logic [7:0] at_q;                   // beats of the write that are here
  logic [5:0] line;
  logic [2:0] part_q;                 // beats of the burst that are here
  burst_t part;
  shef_fifo #(.W($bits(data_t)), .Depth(Open)) u_data (
      .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(push), .in_ready_o(), .in_data_i({aw_i.addr[63:6], aw_i.len, kind, put_q}),
      .out_valid_o(at_valid), .out_ready_i(w_take && w_end), .out_data_o(at), .count_o(at_count)
  );
  assign wanted = at.kind == H2C_MEMORY && !cut_i && at_stale_q == '0;
  assign w_ready_o = at_valid && (!wanted || (beat_room && burst_room));
  assign w_take = w_valid_i && w_ready_o;
  assign w_end = at_q == at.len;
  assign line = at.line[5:0] + at_q[5:0];
  assign part_end = w_end || line[2:0] == 3'd7;
  logic unused;
  assign unused = w_i.last;  // the length says so
  assign part = '{line: {at.line[57:6], line - {3'd0, part_q}}, len: part_q, place: at.place};

  // ---- bursts ----
  logic beat_valid, burst_valid, start, load, load_end, aw_free, w_free;
  axi_w_t beat;
  burst_t burst;
  wire at_rst_n = rst_ni && !hold_i;
  shef_bram_fifo #(.W(576), .Depth(Beats)) u_beats (
      .clk_i, .rst_ni(at_rst_n), .clr_i(cut_i && quiet_o), .zero_addr_i('0),
      .in_valid_i(w_take && wanted), .in_ready_o(beat_room), .in_data_i({w_i.data, w_i.strb}),
      .out_valid_o(beat_valid), .out_ready_i(load), .out_data_o({beat.data, beat.strb}), .count_o()
  );
  shef_fifo #(.W($bits(burst_t)), .Depth(Bursts)) u_bursts (
      .clk_i, .rst_ni(at_rst_n), .clr_i(1'b0), .zero_addr_i('0),
      .in_valid_i(w_take && wanted && part_end), .in_ready_o(burst_room), .in_data_i(part),
      .out_valid_o(burst_valid), .out_ready_i(start), .out_data_o(burst), .count_o()
  );

  axi_ax_t aw_q;
  axi_w_t w_q;
  logic aw_valid_q, w_valid_q, active_q;
  logic [2:0] rest_q;  // beats of the burst to load, less one
  logic [PW-1:0] w_port_q;
  assign aw_free = !aw_valid_q || mem_aw_ready_i;
  assign w_free = !w_valid_q || mem_w_ready_i;
  assign load = active_q && w_free && beat_valid;
  assign load_end = load && beat.last;
  assign beat.last = rest_q == '0;
  assign start = burst_valid && aw_free && (!active_q || load_end);
  assign mem_aw_o = aw_q;
  assign mem_aw_valid_o = aw_valid_q;
  assign mem_w_o = w_q;
  assign mem_w_valid_o = w_valid_q;
  assign w_port_o = w_port_q;
  always_ff @(posedge clk_i) begin
    if (!at_rst_n) begin
      aw_q <= '0;
      aw_valid_q <= 1'b0;
      w_q <= '0;
      w_valid_q <= 1'b0;
      w_port_q <= '0;
      active_q <= 1'b0;
      rest_q <= '0;
    end else begin
      if (aw_free) aw_valid_q <= start;
      if (start) begin
        aw_q <= '{id: AXI_ID_W'(burst.place), addr: {burst.line, 6'd0}, len: 8'(burst.len),
            size: AXI_SIZE_64, burst: AXI_BURST_INCR};
        rest_q <= burst.len;
        active_q <= 1'b1;
      end else if (load_end) active_q <= 1'b0;
      else if (load) rest_q <= rest_q - 1'b1;
      if (w_free) w_valid_q <= load;
      if (load) begin
        w_q <= beat;
        w_port_q <= aw_port_i;
      end
    end
  end

  // ---- responses ----
  axi_b_t b_q;
  logic b_valid_q, stale, answer, good;
  logic [OW:0] stale_q;       // open writes that were cut, the oldest ones
  logic [OW+3:0] owed_q;      // bursts that have no B yet
  place_t b_place;
  assign b_place = place_t'(mem_b_i.id);
  assign good = mem_b_valid_i && (mem_b_i.id >> OW) == '0 && owed_q != '0 && left_q[b_place] != '0;
  assign bad_o = mem_b_valid_i && !good;
  assign owed_o = owed_q != '0;
  assign quiet_o = !burst_valid && !active_q && !aw_valid_q && !w_valid_q && owed_q == '0;
  assign stale = cut_i || stale_q != '0;
  assign answer = head_valid && whole_q[take_q] &&
      (stale || head.kind != H2C_MEMORY || left_q[take_q] == '0);
  assign pop = answer && (!b_valid_q || b_ready_i);
  assign b_o = b_q;
  assign b_valid_o = b_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      put_q <= '0;
      take_q <= '0;
      whole_q <= '0;
      error_q <= '0;
      left_q <= '0;
      at_q <= '0;
      at_stale_q <= '0;
      part_q <= '0;
      b_q <= '0;
      b_valid_q <= 1'b0;
      stale_q <= '0;
      owed_q <= '0;
    end else begin
      if (good) begin
        left_q[b_place] <= left_q[b_place] - 1'b1;
        if (mem_b_i.resp != AXI_OKAY) error_q[b_place] <= 1'b1;
      end
      if (w_take) at_q <= w_end ? '0 : at_q + 1'b1;
      if (w_take && w_end) whole_q[at.place] <= 1'b1;
      if (cut_i) part_q <= '0;
      else if (w_take && wanted) part_q <= part_end ? '0 : part_q + 1'b1;
      if (push) begin
        put_q <= put_q + 1'b1;
        whole_q[put_q] <= 1'b0;
        if (kind == H2C_MEMORY) begin
          error_q[put_q] <= 1'b0;
          left_q[put_q] <= 4'(({3'd0, aw_i.addr[8:6]} + aw_i.len[5:0]) >> 3) + 4'd1;
        end
      end
      if (pop) begin
        take_q <= take_q + 1'b1;
        b_q <= '{
            id: head.id,
            resp: head.kind == H2C_OUTSIDE ||
                (head.kind == H2C_MEMORY && !stale && !error_q[take_q]) ? AXI_OKAY : AXI_SLVERR
        };
      end
      if (pop || b_ready_i) b_valid_q <= pop;

      if (cut_i) stale_q <= count + (OW + 1)'(push) - (OW + 1)'(pop);
      else if (pop && stale_q != '0) stale_q <= stale_q - 1'b1;
      if (cut_i) at_stale_q <= at_count + (OW + 1)'(push) - (OW + 1)'(w_take && w_end);
      else if (w_take && w_end && at_stale_q != '0) at_stale_q <= at_stale_q - 1'b1;
      if (hold_i) owed_q <= '0;
      else if (start != good) owed_q <= start ? owed_q + 1'b1 : owed_q - 1'b1;
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
