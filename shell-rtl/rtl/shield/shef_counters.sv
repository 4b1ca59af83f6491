// On-chip version counters of the chunks in `counted` regions: the number of seals of each chunk.
// Zero: never written.
//
// ask_*: valid/ready; the response comes in the cycle after the handshake (ans_valid_o, from the
// memory's read register), one a cycle.
// set_*: valid/ready; raises the counter and returns the new value two cycles later (set_done_o),
// one every three cycles. A counter whose bits are all ones is exhausted (ans_last_o, set_last_o):
// then set_refused_o, and the counter stays. A chunk must not be queried while it is being raised.
// Two counters of 36 bits in a word of 72, or one of 48, by region. Memories of at most 4096 words
// are zeroed in parallel, after reset and when clr_i rises, in 4096 cycles at most; busy_o until
// done.
`default_nettype none
module shef_counters
  import shef_pkg::*;
  import shef_set_pkg::*;
#(
    parameter int unsigned Words = 1,
    parameter logic [MAX_REGIONS-1:0][31:0] FirstWord = '0,  // of each region
    parameter logic [MAX_REGIONS-1:0] IsWide = '0,           // 48 bits
    parameter int unsigned NarrowW = 36                      // may only be lowered, for tests
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               clr_i,
    output logic              busy_o,

    input  wire               ask_valid_i,
    output logic              ask_ready_o,
    input  wire  reg_idx_t    ask_region_i,
    input  wire  chunk_idx_t  ask_chunk_i,
    output logic              ans_valid_o,
    output version_t          ans_version_o,
    output logic              ans_last_o,

    input  wire               set_valid_i,
    output logic              set_ready_o,
    input  wire  reg_idx_t    set_region_i,
    input  wire  chunk_idx_t  set_chunk_i,
    output logic              set_done_o,
    output version_t          set_version_o,
    output logic              set_refused_o,
    output logic              set_last_o
);
  localparam int unsigned BankAW = (Words > 2048) ? 12 : (Words > 1) ? $clog2(Words) : 1;
  localparam int unsigned Banks = (Words + (1 << BankAW) - 1) >> BankAW;
  localparam int unsigned AW = BankAW + ((Banks > 1) ? $clog2(Banks) : 1);
  localparam version_t NARROW_END = version_t'((64'd1 << NarrowW) - 64'd1);

  if (NarrowW < 2 || NarrowW > 36) begin : g_bad_width
    $error("shef_counters: 2 to 36 bits");
  end

  // ---- zeroing ----
  logic sweep_q, clr_q;
  logic [BankAW-1:0] sweep_addr_q;
  assign busy_o = sweep_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || (clr_i && !clr_q)) begin
      sweep_q <= 1'b1;
      sweep_addr_q <= '0;
    end else if (sweep_q) begin
      sweep_addr_q <= sweep_addr_q + 1'b1;
      if (sweep_addr_q == '1) sweep_q <= 1'b0;
    end
    clr_q <= rst_ni && clr_i;
  end

  // ---- first cycle: read ----
  logic set, ask, raise_q;
  logic [AW-1:0] addr;
  reg_idx_t region;
  chunk_idx_t chunk;
  logic ask_q, set_q, wide_q, high_q;
  logic [AW-1:0] addr_q;

  assign set_ready_o = !set_q && !raise_q && !busy_o;
  assign ask_ready_o = !(set_valid_i && set_ready_o) && !busy_o;
  assign set = set_valid_i && set_ready_o;
  assign ask = ask_valid_i && ask_ready_o;
  assign region = set ? set_region_i : ask_region_i;
  assign chunk = set ? set_chunk_i : ask_chunk_i;
  assign addr = AW'(FirstWord[region]) + (IsWide[region] ? AW'(chunk) : AW'(chunk >> 1));

  // ---- second cycle: the word is present ----
  logic [71:0] word, word_q;
  version_t value, next, value_q;
  logic ends, next_ends, done_q, refused_q, last_q;
  logic [AW-1:0] raise_addr_q;

  assign value = wide_q ? word[47:0] : {12'd0, high_q ? word[71:36] : word[35:0]};
  assign ends = value == (wide_q ? '1 : NARROW_END);
  assign next = value + 1'b1;
  assign next_ends = next == (wide_q ? '1 : NARROW_END);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      ask_q <= 1'b0;
      set_q <= 1'b0;
      wide_q <= 1'b0;
      high_q <= 1'b0;
      addr_q <= '0;
      value_q <= '0;
      done_q <= 1'b0;
      refused_q <= 1'b0;
      last_q <= 1'b0;
      raise_q <= 1'b0;
      raise_addr_q <= '0;
      word_q <= '0;
    end else begin
      ask_q <= ask;
      set_q <= set;
      if (ask || set) begin
        wide_q <= IsWide[region];
        high_q <= chunk[0];
        addr_q <= addr;
      end
      done_q <= set_q;
      raise_q <= set_q && !ends;
      if (set_q) begin
        value_q <= next;
        refused_q <= ends;
        last_q <= next_ends;
        raise_addr_q <= addr_q;
        word_q <= wide_q ? {24'd0, next} : high_q ? {next[35:0], word[35:0]}
            : {word[71:36], next[35:0]};
      end
    end
  end
  assign ans_valid_o = ask_q;
  assign ans_version_o = value;
  assign ans_last_o = ends;
  assign set_done_o = done_q;
  assign set_version_o = value_q;
  assign set_refused_o = refused_q;
  assign set_last_o = last_q;

  // ---- third cycle: write ----
  logic [Banks-1:0][71:0] words;
  for (genvar b = 0; b < int'(Banks); b++) begin : g_bank
    logic [71:0] mem_q[1 << BankAW];
    logic [71:0] read_q;
    always_ff @(posedge clk_i) begin
      if (sweep_q) mem_q[sweep_addr_q] <= '0;
      else if (raise_q && raise_addr_q[AW-1:BankAW] == (AW - BankAW)'(b))
        mem_q[raise_addr_q[BankAW-1:0]] <= word_q;
    end
    always_ff @(posedge clk_i) begin
      if (clr_i) read_q <= '0;
      else if ((ask || set) && addr[AW-1:BankAW] == (AW - BankAW)'(b))
        read_q <= mem_q[addr[BankAW-1:0]];
    end
    assign words[b] = read_q;
  end
  always_comb begin
    word = '0;
    for (int unsigned b = 0; b < Banks; b++)
      if (addr_q[AW-1:BankAW] == (AW - BankAW)'(b)) word = words[b];
  end
endmodule
`default_nettype wire
