// shef_key_use: a region key never seals more than its limit of blocks, if no more chunks follow
// the signal than there are lines and chunks of one already accepted burst. The signal stays until
// the key is erased. Limit 2^9 blocks, 2 lines, chunks of 64 B.
`default_nettype none
module key_use
  import shef_set_pkg::*;
(
    input wire           clk_i,
    input wire           rst_ni,
    input wire           clr_i,
    input wire           use_i,
    input wire reg_idx_t use_region_i
);
  localparam log2_tab_t LOG2 = {16{4'd6}};
  localparam int unsigned Lines = 2;
  logic [1:0] exhausted;
  shef_key_use #(.NRegions(2), .NLines(Lines), .LimitLog2(9), .ChunkLog2(LOG2)) dut (
      .clk_i, .rst_ni, .clr_i, .use_i, .use_region_i, .exhausted_o(exhausted)
  );

  logic init = 1'b0;
  logic clr_q;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    clr_q <= clr_i || !rst_ni;
  end
  for (genvar r = 0; r < 2; r++) begin : g_region
    localparam int unsigned COST = 5;     // blocks of a chunk, and one for its tag's mask
    logic [15:0] sealed;      // blocks under this key
    logic [6:0] late;         // chunks since the signal
    logic was;
    logic mine;
    assign mine = use_i && use_region_i == 4'(r);
    always_ff @(posedge clk_i) begin
      // 2 lines, a burst of 64 chunks, 2 segments between splitter and directory
      if (late == 7'd68) assume (!mine);
      was <= exhausted[r];
      if (!rst_ni || clr_i) begin
        sealed <= '0;
        late <= '0;
      end else begin
        sealed <= sealed + (mine ? 16'(COST) : 16'd0);
        if (exhausted[r] && mine) late <= late + 1'b1;
      end
    end
    always_comb begin
      if (init && rst_ni && !clr_q) begin
        assert (sealed <= 16'h200);
        if (was) assert (exhausted[r]);
      end
      if (init && rst_ni) begin
        assert (dut.g_region[r].used_q == 49'(sealed));
        assert (late <= 7'd68);
        if (!exhausted[r])
          assert (late == '0 && 32'(sealed) < 32'h200 - COST * (Lines + 68) + COST);
        else assert (32'(sealed) < 32'h200 - COST * (Lines + 68) + COST * (2 + 32'(late)));
      end
    end
  end
  always_comb cover (init && rst_ni && exhausted[1] && g_region[1].late == 7'd3);
endmodule
`default_nettype wire
