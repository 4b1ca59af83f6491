// Tag lines on chip: each entry holds 64 bytes of a region's tag area, four tags.
//
// req_*: a chunk needs its tag's place; granted in the same cycle (req_gnt_o) with the entry, which
// is held until the tag was used (rel_*) or stored (put_*). req_fetch_o with the grant: the line
// must be read from memory; the responses arrive on fill_* in the order of the grants. A fill
// writes only tags that are not known here, so it never replaces a newly sealed tag with an older
// one. get_*: combinational read of one tag. put_*: valid/ready, a new tag. wb_*: valid/ready, an
// entry to write back: when its four tags are new, when room is needed, or all of them with
// flush_i; ack_i: one write was acknowledged, in order. An entry is not reallocated before its
// acknowledgement. drop_i drops everything (nothing may be in flight). The next entry to reallocate
// and the next one to write back are chosen in advance.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_tags
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Entries = 32,
    // bits that distinguish the chunks of a region, 3 or more
    parameter int unsigned ChunkW = CHUNK_INDEX_W,
    parameter addr_tab_t TagBase = '0,
    localparam int unsigned EW = TAG_ENTRY_W
) (
    input  wire                clk_i,
    input  wire                rst_ni,
    input  wire                clr_i,
    input  wire [ZERO_W-1:0]   zero_addr_i,
    input  wire                flush_i,
    input  wire                drop_i,

    input  wire                req_valid_i,
    input  wire                req_read_i,     // the tag's old value is needed
    input  wire  reg_idx_t     req_region_i,
    input  wire  chunk_idx_t   req_chunk_i,
    output logic               req_gnt_o,
    output logic [EW-1:0]      req_entry_o,
    output logic               req_fetch_o,
    output logic [63:0]        req_addr_o,     // of the tag line

    input  wire                fill_valid_i,
    input  wire  [511:0]       fill_data_i,

    input  wire  [EW-1:0]      get_entry_i,
    input  wire  [1:0]         get_quarter_i,
    output logic               get_valid_o,
    output logic [127:0]       get_tag_o,
    input  wire                rel_valid_i,
    input  wire  [EW-1:0]      rel_entry_i,

    input  wire                put_valid_i,
    output logic               put_ready_o,
    input  wire  [EW-1:0]      put_entry_i,
    input  wire  [1:0]         put_quarter_i,
    input  wire  [127:0]       put_tag_i,

    output logic               wb_valid_o,
    input  wire                wb_ready_i,
    output logic [63:0]        wb_addr_o,
    output logic [511:0]       wb_data_o,
    output logic [63:0]        wb_strb_o,
    input  wire                ack_i,
    output logic               dirty_o         // some tag is not yet in memory
);
  typedef logic [Entries-1:0] set_t;
  typedef logic [ChunkW-3:0] tagline_t;

  set_t valid_q, pending_q, wb_q, held_q, dirty_any_q, dirty_all;
  logic [3:0] known_q[Entries];
  logic [3:0] dirty_q[Entries];
  logic [6:0] refs_q[Entries];
  tagline_t line_q[Entries];
  reg_idx_t region_q[Entries];

  function automatic logic [EW-1:0] index_of(input set_t x);
    logic [EW-1:0] n;
    n = '0;
    for (int i = 0; i < int'(Entries); i++) if (x[i]) n = n | EW'(i);
    return n;
  endfunction

  function automatic set_t one_hot(input logic [EW-1:0] n);
    return set_t'(1) << n;
  endfunction

  // ---- request ----
  set_t hit, known_here, idle, victim_one, entry_one;
  logic [EW-1:0] victim;
  logic pressure_q;      // a request waits for an entry
  tagline_t want;
  logic is_hit, victim_idle;
  assign want = req_chunk_i[ChunkW-1:2];
  assign req_addr_o = TagBase[req_region_i] + {{(64 - ChunkW - 4) {1'b0}}, want, 6'd0};

  assign idle = ~valid_q | (~pending_q & ~wb_q & ~held_q & ~dirty_any_q);
  shef_choice #(.N(Entries)) u_victim (
      .clk_i, .rst_ni, .clr_i, .set_i(idle), .used_i(req_gnt_o && !is_hit), .one_o(victim_one),
      .index_o(victim), .ok_o(victim_idle)
  );
  always_comb begin
    for (int i = 0; i < int'(Entries); i++) begin
      hit[i] = req_valid_i && valid_q[i] && line_q[i] == want && region_q[i] == req_region_i;
      known_here[i] = known_q[i][req_chunk_i[1:0]] || pending_q[i];
    end
    is_hit = hit != '0;
    entry_one = is_hit ? hit : victim_one;
    req_entry_o = is_hit ? index_of(hit) : victim;
    req_gnt_o = req_valid_i && (is_hit || victim_idle);
    req_fetch_o = req_gnt_o && req_read_i && (!is_hit || (hit & ~known_here) != '0);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) pressure_q <= 1'b0;
    else pressure_q <= req_valid_i && !is_hit && idle == '0;
  end

  // ---- fills, in the order of the grants ----
  logic [EW-1:0] fill_entry;
  logic fill_known;
  shef_fifo #(.W(EW), .Depth(Entries)) u_fills (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Entries)-1:0]),
      .in_valid_i(req_gnt_o && req_fetch_o), .in_ready_o(), .in_data_i(req_entry_o),
      .out_valid_o(fill_known), .out_ready_i(fill_valid_i), .out_data_o(fill_entry), .count_o()
  );

  // ---- write back ----
  set_t wb_want, wb_one;
  logic [EW-1:0] wb_entry, ack_entry;
  logic wb_valid_q, wb_chosen, wb_sure_q, wb_start, wb_room;

  for (genvar i = 0; i < int'(Entries); i++) begin : g_all
    assign dirty_all[i] = &dirty_q[i];
  end
  assign wb_want = ((flush_i || pressure_q) ? dirty_any_q & (~held_q | dirty_all) : dirty_all) &
      ~wb_q;
  // an entry chosen a cycle ago still has tags to write
  assign wb_start = wb_sure_q && !wb_valid_q && wb_room && !(put_valid_i && put_ready_o);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) wb_sure_q <= 1'b0;
    else wb_sure_q <= wb_chosen && !wb_start;
  end
  shef_choice #(.N(Entries)) u_wb (
      .clk_i, .rst_ni, .clr_i, .set_i(wb_want), .used_i(wb_start), .one_o(wb_one),
      .index_o(wb_entry), .ok_o(wb_chosen)
  );

  logic [63:0] wb_strb_q;
  reg_idx_t wb_region_q;
  tagline_t wb_line_q;
  logic [511:0] wb_data, wb_data_q;
  assign wb_valid_o = wb_valid_q;
  assign wb_addr_o = TagBase[wb_region_q] + {{(64 - ChunkW - 4) {1'b0}}, wb_line_q, 6'd0};
  assign wb_data_o = wb_data_q;
  assign wb_strb_o = wb_strb_q;
  assign dirty_o = (dirty_any_q | wb_q) != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      wb_valid_q <= 1'b0;
      wb_region_q <= '0;
      wb_line_q <= '0;
      wb_strb_q <= '0;
      wb_data_q <= '0;
    end else if (wb_start) begin
      wb_valid_q <= 1'b1;
      wb_region_q <= region_q[wb_entry];
      wb_line_q <= line_q[wb_entry];
      wb_data_q <= wb_data;
      wb_strb_q <= {{16{dirty_q[wb_entry][3]}}, {16{dirty_q[wb_entry][2]}},
          {16{dirty_q[wb_entry][1]}}, {16{dirty_q[wb_entry][0]}}};
    end else if (wb_ready_i) wb_valid_q <= 1'b0;
  end

  logic acks_valid;
  shef_fifo #(.W(EW), .Depth(Entries)) u_acks (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Entries)-1:0]),
      .in_valid_i(wb_start), .in_ready_o(wb_room), .in_data_i(wb_entry),
      .out_valid_o(acks_valid), .out_ready_i(ack_i), .out_data_o(ack_entry), .count_o()
  );

  // ---- tags ----
  assign put_ready_o = !fill_valid_i;
  assign get_valid_o = known_q[get_entry_i][get_quarter_i];

  // A memory for each quarter, with one write port and two read ports: distributed RAM.
  logic [127:0] of_get[4];
  assign get_tag_o = byte_reverse128(of_get[get_quarter_i]);
  for (genvar q = 0; q < 4; q++) begin : g_quarter
    logic [127:0] mem_q[Entries];
    logic write;
    logic [EW-1:0] at;
    logic [127:0] data;
    always_comb begin
      write = put_valid_i && put_quarter_i == 2'(q);
      at = put_entry_i;
      data = byte_reverse128(put_tag_i);
      if (fill_valid_i) begin
        write = fill_known && !known_q[fill_entry][q];
        at = fill_entry;
        data = fill_data_i[128*q+:128];
      end
    end
    always_ff @(posedge clk_i) begin
      if (clr_i || write) mem_q[clr_i ? zero_addr_i[EW-1:0] : at] <= clr_i ? '0 : data;
    end
    assign of_get[q] = mem_q[get_entry_i];
    assign wb_data[128*q+:128] = mem_q[wb_entry];
  end

  // ---- state ----
  set_t taken, alloc, rel, put;
  assign taken = req_gnt_o ? entry_one : '0;
  assign alloc = (req_gnt_o && !is_hit) ? victim_one : '0;
  assign rel = rel_valid_i ? one_hot(rel_entry_i) : '0;
  assign put = (put_valid_i && put_ready_o) ? one_hot(put_entry_i) : '0;

  set_t filled, started, acked;
  assign filled = (fill_valid_i && fill_known) ? one_hot(fill_entry) : '0;
  assign started = wb_start ? wb_one : '0;
  assign acked = (ack_i && acks_valid) ? one_hot(ack_entry) : '0;

  for (genvar i = 0; i < int'(Entries); i++) begin : g_entry
    logic [6:0] left;
    assign left = refs_q[i] - 7'(rel[i]) - 7'(put[i]);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) begin
        refs_q[i] <= '0;
        held_q[i] <= 1'b0;
      end else begin
        refs_q[i] <= left + 7'(taken[i]);
        held_q[i] <= taken[i] || left != '0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      valid_q <= '0;
      pending_q <= '0;
      wb_q <= '0;
      dirty_any_q <= '0;
      for (int i = 0; i < int'(Entries); i++) begin
        known_q[i] <= '0;
        dirty_q[i] <= '0;
        line_q[i] <= '0;
        region_q[i] <= '0;
      end
    end else begin
      valid_q <= valid_q | alloc;
      pending_q <= (pending_q & ~filled) | (req_fetch_o ? entry_one : '0);
      dirty_any_q <= (dirty_any_q & ~started) | put;
      wb_q <= (wb_q & ~acked) | started;
      for (int i = 0; i < int'(Entries); i++) begin
        if (alloc[i]) begin
          known_q[i] <= '0;
          line_q[i] <= want;
          region_q[i] <= req_region_i;
        end
        if (filled[i]) known_q[i] <= 4'b1111;
        if (started[i]) dirty_q[i] <= '0;
        if (put[i]) begin
          known_q[i][put_quarter_i] <= 1'b1;
          dirty_q[i][put_quarter_i] <= 1'b1;
        end
      end
      if (drop_i) valid_q <= '0;
    end
  end
  logic unused;
  assign unused = ^{zero_addr_i, req_chunk_i};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
