// Root table of the counter trees: one 48-bit counter per word, banked for fast zeroing.
//
// rd_*: the word is at rd_data_o one cycle after rd_en_i and stays there until the next read. wr_*:
// one write a cycle. While clr_i is high the word at zero_addr_i of every bank is zeroed: a sweep
// over ROOT_BANK_WORDS addresses (fewer if the table is smaller) zeroes everything.
`default_nettype none
module shef_tree_root
  import shef_set_pkg::*;
  import shef_tree_pkg::*;
#(
    parameter int unsigned Words = 1,
    localparam int unsigned Banks = (Words + ROOT_BANK_WORDS - 1) / ROOT_BANK_WORDS,
    localparam int unsigned BankWords = (Words < 2) ? 2 : (Words < ROOT_BANK_WORDS) ? Words
    : ROOT_BANK_WORDS,
    localparam int unsigned AW = $clog2(BankWords),
    localparam int unsigned BW = (Banks > 1) ? $clog2(Banks) : 1
) (
    input  wire              clk_i,
    input  wire              clr_i,
    input  wire [ZERO_W-1:0] zero_addr_i,
    input  wire              rd_en_i,
    input  wire [16:0]       rd_addr_i,
    output version_t         rd_data_o,
    input  wire              wr_en_i,
    input  wire [16:0]       wr_addr_i,
    input  wire  version_t   wr_data_i
);
  logic [BW-1:0] rd_bank, wr_bank, rd_bank_q;
  logic [AW-1:0] zero_addr;
  version_t bank_data[Banks];
  assign rd_bank = (Banks > 1) ? BW'(rd_addr_i >> AW) : '0;
  assign wr_bank = (Banks > 1) ? BW'(wr_addr_i >> AW) : '0;
  assign zero_addr = (32'(zero_addr_i) < BankWords) ? AW'(zero_addr_i) : AW'(BankWords - 1);

  for (genvar b = 0; b < int'(Banks); b++) begin : g_bank
    version_t mem_q[BankWords];
    version_t data_q;
    always_ff @(posedge clk_i) begin
      if (clr_i) mem_q[zero_addr] <= '0;
      else if (wr_en_i && wr_bank == BW'(b)) mem_q[wr_addr_i[AW-1:0]] <= wr_data_i;
    end
    always_ff @(posedge clk_i) begin
      if (clr_i) data_q <= '0;
      else if (rd_en_i && rd_bank == BW'(b)) data_q <= mem_q[rd_addr_i[AW-1:0]];
    end
    assign bank_data[b] = data_q;
  end

  always_ff @(posedge clk_i) begin
    if (clr_i) rd_bank_q <= '0;
    else if (rd_en_i) rd_bank_q <= rd_bank;
  end
  assign rd_data_o = bank_data[rd_bank_q];
  logic unused;
  assign unused = ^{rd_addr_i, wr_addr_i, zero_addr_i};
endmodule
`default_nettype wire
