// Tag lines on chip: each entry holds 64 bytes of a region's tag area, four tags.
//
// req_*: a chunk needs its tag's place; granted in the same cycle (req_gnt_o) with the entry, which is held until the tag was
// used (rel_*) or put (put_*). req_fetch_o with the grant: the line must be read from memory; the answers come back on fill_* in
// the order of the grants. A fill writes only tags that are not known here, so a tag sealed meanwhile is never replaced by
// an older one. get_*: combinational read of one tag. put_*: valid/ready, a new tag. wb_*: valid/ready, an entry to be written
// back: when its four tags are new, when room is needed, or all of them with flush_i; ack_i: one such write was acknowledged, in
// order. An entry is not given away before its acknowledgement. drop_i forgets everything (nothing may be in flight).
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are left open by name)
module shef_tags
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Entries = 32,
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
    output logic               dirty_o         // something is not yet in memory
);
  typedef logic [Entries-1:0] set_t;
  typedef logic [CHUNK_INDEX_W-3:0] tagline_t;

  set_t valid_q, pending_q, wb_q, held_q, dirty_any_q, dirty_all;
  logic [3:0] known_q[Entries];
  logic [3:0] dirty_q[Entries];
  logic [6:0] refs_q[Entries];
  tagline_t line_q[Entries];
  reg_idx_t region_q[Entries];
  logic [EW-1:0] ptr_q;

  function automatic logic [EW-1:0] index_of(input set_t x);
    logic [EW-1:0] n;
    n = '0;
    for (int i = 0; i < int'(Entries); i++) if (x[i]) n = n | EW'(i);
    return n;
  endfunction

  // ---- request ----
  set_t hit, idle, above, pick;
  tagline_t want;
  logic is_hit, pressure;
  assign want = req_chunk_i[CHUNK_INDEX_W-1:2];
  assign req_addr_o = TagBase[req_region_i] + {20'd0, want, 6'd0};

  always_comb begin
    hit = '0;
    idle = '0;
    above = '0;
    pick = '0;
    is_hit = 1'b0;
    pressure = 1'b0;
    req_gnt_o = 1'b0;
    req_fetch_o = 1'b0;
    req_entry_o = '0;
    if (req_valid_i) begin
      for (int i = 0; i < int'(Entries); i++) hit[i] = valid_q[i] && line_q[i] == want && region_q[i] == req_region_i;
      is_hit = hit != '0;
      if (is_hit) begin
        req_entry_o = index_of(hit);
        req_gnt_o = 1'b1;
        req_fetch_o = req_read_i && !known_q[req_entry_o][req_chunk_i[1:0]] && !pending_q[req_entry_o];
      end else begin
        idle = ~valid_q | (~pending_q & ~wb_q & ~held_q & ~dirty_any_q);
        above = idle & ~((set_t'(1) << ptr_q) - set_t'(1));
        pick = (above != '0) ? (above & (~above + 1'b1)) : (idle & (~idle + 1'b1));
        req_entry_o = index_of(pick);
        req_gnt_o = idle != '0;
        req_fetch_o = req_gnt_o && req_read_i;
        pressure = !req_gnt_o;
      end
    end
  end

  // ---- fills, in the order of the grants ----
  logic [EW-1:0] fill_entry;
  logic fill_known;
  shef_fifo #(.W(EW), .Depth(Entries)) i_fills (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Entries)-1:0]),
      .in_valid_i(req_gnt_o && req_fetch_o), .in_ready_o(), .in_data_i(req_entry_o),
      .out_valid_o(fill_known), .out_ready_i(fill_valid_i), .out_data_o(fill_entry), .count_o()
  );

  // ---- write back ----
  set_t wb_want, wb_above, wb_pick;
  logic [EW-1:0] wb_entry, wb_entry_q, ack_entry;
  logic wb_valid_q;
  logic wb_start, wb_room;

  for (genvar i = 0; i < int'(Entries); i++) begin : g_all
    assign dirty_all[i] = &dirty_q[i];
  end
  always_comb begin
    wb_want = dirty_all & ~wb_q;
    if (flush_i || pressure) wb_want = dirty_any_q & ~wb_q & (~held_q | dirty_all);
    wb_above = wb_want & ~((set_t'(1) << ptr_q) - set_t'(1));
    wb_pick = (wb_above != '0) ? (wb_above & (~wb_above + 1'b1)) : (wb_want & (~wb_want + 1'b1));
    wb_entry = index_of(wb_pick);
  end
  assign wb_start = !wb_valid_q && wb_want != '0 && wb_room && !(put_valid_i && put_ready_o);

  logic [63:0] wb_addr_q, wb_strb_q;
  logic [511:0] wb_data, wb_data_q;
  assign wb_valid_o = wb_valid_q;
  assign wb_addr_o = wb_addr_q;
  assign wb_data_o = wb_data_q;
  assign wb_strb_o = wb_strb_q;
  assign dirty_o = (dirty_any_q | wb_q) != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      wb_valid_q <= 1'b0;
      wb_entry_q <= '0;
      wb_addr_q <= '0;
      wb_strb_q <= '0;
      wb_data_q <= '0;
    end else if (wb_start) begin
      wb_valid_q <= 1'b1;
      wb_entry_q <= wb_entry;
      wb_addr_q <= TagBase[region_q[wb_entry]] + {20'd0, line_q[wb_entry], 6'd0};
      wb_data_q <= wb_data;
      wb_strb_q <= {{16{dirty_q[wb_entry][3]}}, {16{dirty_q[wb_entry][2]}}, {16{dirty_q[wb_entry][1]}}, {16{dirty_q[wb_entry][0]}}};
    end else if (wb_ready_i) wb_valid_q <= 1'b0;
  end

  logic acks_valid;
  shef_fifo #(.W(EW), .Depth(Entries)) i_acks (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[$clog2(Entries)-1:0]),
      .in_valid_i(wb_start), .in_ready_o(wb_room), .in_data_i(wb_entry),
      .out_valid_o(acks_valid), .out_ready_i(ack_i), .out_data_o(ack_entry), .count_o()
  );

  // ---- tags ----
  assign put_ready_o = !fill_valid_i;
  assign get_valid_o = known_q[get_entry_i][get_quarter_i];

  // A memory for each quarter, written in one place and read in two: distributed RAM.
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
      if (clr_i) mem_q[zero_addr_i[EW-1:0]] <= '0;
      else if (write) mem_q[at] <= data;
    end
    assign of_get[q] = mem_q[get_entry_i];
    assign wb_data[128*q+:128] = mem_q[wb_entry];
  end

  // ---- state ----
  logic ref_up, rel, put;
  assign ref_up = req_valid_i && req_gnt_o;
  assign rel = rel_valid_i;
  assign put = put_valid_i && put_ready_o;

  for (genvar i = 0; i < int'(Entries); i++) begin : g_entry
    logic up, dn1, dn2;
    logic [6:0] refs_next;
    assign up = ref_up && req_entry_o == EW'(i);
    assign dn1 = rel && rel_entry_i == EW'(i);
    assign dn2 = put && put_entry_i == EW'(i);
    assign refs_next = refs_q[i] + 7'(up) - 7'(dn1) - 7'(dn2);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) begin
        refs_q[i] <= '0;
        held_q[i] <= 1'b0;
      end else if (up || dn1 || dn2) begin
        refs_q[i] <= refs_next;
        held_q[i] <= refs_next != '0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      valid_q <= '0;
      pending_q <= '0;
      wb_q <= '0;
      dirty_any_q <= '0;
      ptr_q <= '0;
      for (int i = 0; i < int'(Entries); i++) begin
        known_q[i] <= '0;
        dirty_q[i] <= '0;
        line_q[i] <= '0;
        region_q[i] <= '0;
      end
    end else begin
      if (fill_valid_i && fill_known) begin
        pending_q[fill_entry] <= 1'b0;
        known_q[fill_entry] <= 4'b1111;
      end
      if (put) begin
        known_q[put_entry_i][put_quarter_i] <= 1'b1;
        dirty_q[put_entry_i][put_quarter_i] <= 1'b1;
        dirty_any_q[put_entry_i] <= 1'b1;
      end
      if (wb_start) begin
        wb_q[wb_entry] <= 1'b1;
        dirty_q[wb_entry] <= '0;
        dirty_any_q[wb_entry] <= 1'b0;
      end
      if (ack_i && acks_valid) wb_q[ack_entry] <= 1'b0;
      if (ref_up && !is_hit) begin
        valid_q[req_entry_o] <= 1'b1;
        known_q[req_entry_o] <= '0;
        line_q[req_entry_o] <= want;
        region_q[req_entry_o] <= req_region_i;
        ptr_q <= (req_entry_o == EW'(Entries - 1)) ? '0 : req_entry_o + 1'b1;
      end
      if (ref_up && req_fetch_o) pending_q[req_entry_o] <= 1'b1;
      if (drop_i) valid_q <= '0;
    end
  end
  logic unused;
  assign unused = ^{wb_entry_q, zero_addr_i};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
