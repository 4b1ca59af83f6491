// Seals lines: gets the chunk's version and key stream, encrypts its beats and computes its tag.
//
// Order of a chunk: version raised or written bit set -> AES jobs -> line read, XOR -> memory write
// and GHASH -> tag. A chunk without a version is not sealed but reported (twice_o, a
// countermeasure: the directory lets no such chunk through). Chunks of frozen regions are released
// unsealed (dropped_o), but a seal that has begun is finished. A given version serves at most one
// seal. `bypass`: the line's marked bytes go to memory unchanged.
// Handshakes: chunks in (always room: Depth is the number of lines), everything else valid/ready.
// One beat a cycle; three cycles of preparation a chunk (`bypass`: one), hidden behind the previous
// beats. done_o: the chunk is in memory and its tag in the tag lines.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_seal
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Depth = 64,
    parameter log2_tab_t ChunkLog2 = '0,
    parameter addr_tab_t Base = '0,
    parameter logic [MAX_REGIONS-1:0] IsPlain = '0   // bypass
) (
    input  wire              clk_i,
    input  wire              rst_ni,
    input  wire              clr_i,
    input  wire              stop_i,
    input  wire [MAX_REGIONS-1:0] frozen_i,
    input  wire [ZERO_W-1:0] zero_addr_i,

    input  wire              chunk_valid_i,
    input  wire  line_t      chunk_line_i,
    input  wire  reg_idx_t   chunk_region_i,
    input  wire  chunk_idx_t chunk_index_i,

    // preparation of the chunk at the head
    output reg_idx_t         head_region_o,
    output chunk_idx_t       head_chunk_o,
    output line_t            head_line_o,
    output logic             set_valid_o,
    input  wire              set_ready_i,
    input  wire              set_done_i,
    input  wire  version_t   set_version_i,
    input  wire              set_refused_i,
    input  wire              set_last_i,
    output version_t         head_version_o,
    output logic             tag_req_o,
    input  wire              tag_gnt_i,
    input  wire              mask_ready_i,
    input  wire  tagref_t    tagref_i,
    output logic             go_o,           // AES may start on the head
    output logic             twice_o,
    output logic             dropped_o,      // head_line_o

    // beats
    output logic             get_valid_o,
    input  wire              get_ready_i,
    output line_t            get_line_o,
    output logic [5:0]       get_beat_o,
    input  wire              get_all_i,      // one cycle after the request
    input  wire              get_touched_i,  // the marks of the word are valid
    input  wire [511:0]      get_data_i,
    input  wire [63:0]       get_mark_i,
    input  wire              ks_valid_i,
    input  wire [511:0]      ks_i,           // in AXI byte order
    output logic             beat_valid_o,   // a beat is ready for XOR, GHASH and the memory port
    input  wire              beat_fire_i,
    output logic [511:0]     beat_o,
    output logic [63:0]      beat_strb_o,
    output logic             beat_plain_o,   // no XOR, no GHASH
    output reg_idx_t         beat_region_o,
    output logic             beat_first_o,
    output logic             beat_last_o,
    output logic [5:0]       beat_pow_o,
    output logic             burst_end_o,
    output logic [63:0]      burst_addr_o,
    output logic [2:0]       burst_len_o,

    // tag
    input  wire              s_valid_i,
    input  wire [127:0]      s_i,
    output tagref_t          tag_get_o,
    input  wire              mask_valid_i,
    input  wire [127:0]      mask_i,
    output logic             put_valid_o,
    input  wire              put_ready_i,
    output logic [127:0]     put_tag_o,

    input  wire              acked_i,        // the data of the oldest chunk is in memory
    output logic             done_o,
    output line_t            done_line_o,
    output logic             done_last_o,    // under the last version
    output logic             waits_o,        // bytes wait for keystream
    output logic             idle_o
);
  localparam int unsigned PW = $clog2(Depth);
  typedef struct packed {
    line_t line;
    reg_idx_t region;
    chunk_idx_t chunk;
  } item_t;

  // ---- preparation ----
  typedef enum logic [1:0] {ST_MARK, ST_WAIT, ST_GO, ST_NONE} state_e;
  state_e state_q;
  item_t head;
  logic head_valid, head_plain, start, last_q, frozen;
  logic [1:0] none_q;
  version_t version_q;
  logic [PW-1:0] zero_addr;
  assign zero_addr = zero_addr_i[PW-1:0];

  shef_fifo #(.W($bits(item_t)), .Depth(Depth)) u_queue (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr),
      .in_valid_i(chunk_valid_i), .in_ready_o(),
      .in_data_i({chunk_line_i, chunk_region_i, chunk_index_i}),
      .out_valid_o(head_valid), .out_ready_i(start || dropped_o), .out_data_o(head), .count_o()
  );
  assign head_region_o = head.region;
  assign head_chunk_o = head.chunk;
  assign head_line_o = head.line;
  assign head_version_o = version_q;
  assign head_plain = IsPlain[head.region];
  assign start = go_o || (head_valid && head_plain && !frozen && !stop_i);
  assign frozen = frozen_i[head.region];
  assign dropped_o = head_valid && frozen && state_q != ST_WAIT && !stop_i;
  assign set_valid_o = head_valid && !head_plain && state_q == ST_MARK && !frozen && !stop_i;
  assign tag_req_o = state_q == ST_GO && mask_ready_i && !frozen && !stop_i;
  assign go_o = tag_req_o && tag_gnt_i;
  // a failed node makes its region refuse shortly before the region is frozen
  assign twice_o = state_q == ST_NONE && none_q == '1 && !frozen;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      state_q <= ST_MARK;
      none_q <= '0;
      version_q <= '0;
      last_q <= 1'b0;
    end else begin
      none_q <= (state_q != ST_NONE) ? '0 : (none_q == '1) ? none_q : none_q + 1'b1;
      if (set_done_i) begin
        version_q <= set_version_i;
        last_q <= set_last_i;
      end
      unique case (state_q)
        ST_MARK: if (set_valid_o && set_ready_i) state_q <= ST_WAIT;
        ST_WAIT: if (set_done_i) state_q <= set_refused_i ? ST_NONE : ST_GO;
        ST_GO: if (go_o || dropped_o) state_q <= ST_MARK;
        default: if (dropped_o) state_q <= ST_MARK;
      endcase
    end
  end

  // ---- line reads ----
  item_t rd;
  logic rd_valid, rd_fire, rd_last, stage_q;
  logic [5:0] rd_beat_q;
  logic [2:0] words;   // in the small FIFO
  logic word_valid;
  logic [511:0] word, gated;
  logic [63:0] mark, word_mark;

  function automatic logic [5:0] last_of(input reg_idx_t region);
    return 6'((7'd1 << (ChunkLog2[region] - 4'd6)) - 7'd1);
  endfunction

  shef_fifo #(.W($bits(item_t)), .Depth(Depth)) u_reads (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr),
      .in_valid_i(start), .in_ready_o(), .in_data_i(head),
      .out_valid_o(rd_valid), .out_ready_i(rd_fire && rd_last), .out_data_o(rd), .count_o()
  );
  assign rd_last = rd_beat_q == last_of(rd.region);
  assign get_valid_o = rd_valid && !stop_i && words + 3'(stage_q) < 3'd4;
  assign get_line_o = rd.line;
  assign get_beat_o = rd_beat_q;
  assign rd_fire = get_valid_o && get_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      rd_beat_q <= '0;
      stage_q <= 1'b0;
    end else begin
      stage_q <= rd_fire;
      if (rd_fire) rd_beat_q <= rd_last ? '0 : rd_beat_q + 1'b1;
    end
  end
  always_comb begin
    gated = '0;
    mark = get_touched_i ? get_mark_i : '0;
    if (stage_q && (get_all_i || get_touched_i)) begin
      gated = get_data_i;
      if (!get_all_i && !(&get_mark_i)) gated = keep_marked(get_data_i, get_mark_i);
    end
  end
  shef_fifo #(.W(576), .Depth(4)) u_words (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr_i[1:0]),
      .in_valid_i(stage_q), .in_ready_o(), .in_data_i({mark, gated}),
      .out_valid_o(word_valid), .out_ready_i(beat_fire_i), .out_data_o({word_mark, word}),
      .count_o(words)
  );

  // ---- XOR: the chunk whose beats leave, with the parameters of each beat ----
  typedef struct packed {
    reg_idx_t region;
    logic plain;
    logic [5:0] last;      // beat
    logic [63:0] addr;     // of the chunk
  } leaving_t;
  item_t x;
  leaving_t x_q;
  logic x_waits, x_valid_q, x_load;
  logic [5:0] beat_q;
  shef_fifo #(.W($bits(item_t)), .Depth(Depth)) u_xor (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr),
      .in_valid_i(start), .in_ready_o(), .in_data_i(head),
      .out_valid_o(x_waits), .out_ready_i(x_load), .out_data_o(x), .count_o()
  );
  assign x_load = !x_valid_q || (beat_fire_i && beat_last_o);
  assign beat_plain_o = x_q.plain;
  assign beat_valid_o = x_valid_q && word_valid && (ks_valid_i || beat_plain_o) && !stop_i;
  assign beat_o = !beat_fire_i ? '0 : beat_plain_o ? word : word ^ ks_i;
  assign beat_strb_o = beat_plain_o ? word_mark : '1;
  assign beat_region_o = x_q.region;
  assign beat_first_o = beat_q == '0;
  assign beat_last_o = beat_q == x_q.last;
  assign beat_pow_o = x_q.last - beat_q;
  assign burst_end_o = beat_q[2:0] == 3'd7 || beat_last_o;
  assign burst_len_o = beat_q[2:0];
  assign burst_addr_o = x_q.addr | {52'd0, beat_q[5:3], 9'd0};   // chunks are aligned to their size
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      beat_q <= '0;
      x_valid_q <= 1'b0;
      x_q <= '0;
    end else begin
      if (beat_fire_i) beat_q <= beat_last_o ? '0 : beat_q + 1'b1;
      if (x_load) begin
        x_valid_q <= x_waits;
        x_q <= '{region: x.region, plain: IsPlain[x.region], last: last_of(x.region),
            addr: Base[x.region] + (64'(x.chunk) << ChunkLog2[x.region])};
      end
    end
  end

  // ---- tag ----
  logic tag_valid, s_valid;
  logic [127:0] s;
  shef_fifo #(.W($bits(tagref_t)), .Depth(Depth)) u_tags (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr),
      .in_valid_i(go_o), .in_ready_o(), .in_data_i(tagref_i),
      .out_valid_o(tag_valid), .out_ready_i(put_valid_o && put_ready_i), .out_data_o(tag_get_o),
      .count_o()
  );
  shef_fifo #(.W(128), .Depth(Depth)) u_s (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr),
      .in_valid_i(s_valid_i), .in_ready_o(), .in_data_i(s_i),
      .out_valid_o(s_valid), .out_ready_i(put_valid_o && put_ready_i), .out_data_o(s), .count_o()
  );
  assign put_valid_o = tag_valid && s_valid && mask_valid_i && !stop_i;
  assign put_tag_o = s ^ mask_i;

  // ---- the end of a chunk: data acknowledged and tag stored, both in order ----
  logic [PW:0] acked_q, tagged_q;
  logic end_valid, end_plain;
  shef_fifo #(.W(LINE_W + 2), .Depth(Depth)) u_ends (
      .clk_i, .rst_ni, .clr_i, .zero_addr_i(zero_addr),
      .in_valid_i(start), .in_ready_o(), .in_data_i({head_plain, last_q && !head_plain, head.line}),
      .out_valid_o(end_valid), .out_ready_i(done_o),
      .out_data_o({end_plain, done_last_o, done_line_o}), .count_o()
  );
  assign done_o = end_valid && acked_q != '0 && (tagged_q != '0 || end_plain) && !stop_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      acked_q <= '0;
      tagged_q <= '0;
    end else begin
      acked_q <= acked_q + (PW + 1)'(acked_i) - (PW + 1)'(done_o);
      tagged_q <= tagged_q + (PW + 1)'(put_valid_o && put_ready_i) -
          (PW + 1)'(done_o && !end_plain);
    end
  end
  assign waits_o = x_valid_q && word_valid && !ks_valid_i && !beat_plain_o && !stop_i;
  assign idle_o = !head_valid && !end_valid;
  logic unused;
  assign unused = ^{zero_addr_i, rd.chunk, x.line};
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
