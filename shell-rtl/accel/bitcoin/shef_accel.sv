// Bitcoin's proof of work: the first nonce of a window for which the double SHA-256 of the block
// header, as a number, is at most a target.
//
// Registers: README.md. No memory: acc_* send no requests. Two pairs of pipelines compute two
// hashes a cycle: a run takes 198 cycles, 66 of them for the state after the first 64 bytes of the
// header, and half a cycle for each nonce up to the first hit. A start is refused if the window is
// empty or goes beyond the last nonce, or if there is no target.
//
// The pipelines have no reset. They move while busy, and while clear_i is high: their inputs are
// constants then, as all registers are in reset, so nothing of a header is left.
`default_nettype none
module shef_accel
  import shef_pkg::*;
  import shef_bitcoin_pkg::*;
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
  localparam int unsigned PIPES = 2;
  localparam logic [7:0] FIRST = 8'd65;   // cycles of a digest
  localparam logic [7:0] BOTH = 8'd130;   // of a digest of a digest

  // ---- registers ----
  wire [21:0][31:0] args;
  wire [31:0] first_nonce = args[19];
  wire [31:0] window = args[20];
  wire [31:0] difficulty = args[21];

  // The header's words in the order of SHA-256, the first one on top.
  wire [18:0][31:0] header;
  for (genvar i = 0; i < 19; i++) begin : g_header
    assign header[18-i] = swap(args[i]);
  end

  // Bytes 72..75: a target of 24 bits, the top one a sign, times 256^(exponent - 3).
  wire [7:0] exponent = args[18][31:24];
  wire [23:0] mantissa = args[18][23:0];
  function automatic logic [255:0] compact(input logic [7:0] e, input logic [23:0] m);
    logic [279:0] x;
    x = 280'(m) << {e, 3'd0};   // 256^3 times the target
    return 256'(x >> 24);
  endfunction
  wire [255:0] header_target = compact(exponent, mantissa);
  wire too_large = exponent > 8'd34 || exponent == 8'd34 && mantissa[23:8] != '0 ||
      exponent == 8'd33 && mantissa[23:16] != '0;
  wire no_target = difficulty > 32'd256 ||
      difficulty == '0 && (mantissa[23] || too_large || header_target == '0);

  wire [32:0] window_end = {1'b0, first_nonce} + {1'b0, window};
  wire refuse = window == '0 || window_end > 33'h1_0000_0000 || no_target;
  wire start, busy, over, unused_error;
  logic found_q;
  logic [31:0] nonce_q, tried_q, cycles_q;
  logic [255:0] hash_q;

  shef_kit_regs #(.NArgs(22), .NResults(12)) u_regs (
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
    .results_i({cycles_q, hash_q[31:0], hash_q[63:32], hash_q[95:64], hash_q[127:96],
        hash_q[159:128], hash_q[191:160], hash_q[223:192], hash_q[255:224], tried_q, nonce_q,
        31'd0, found_q}),
    .refuse_i(refuse),
    .start_o(start),
    .busy_o(busy),
    .error_o(unused_error),
    .end_i(over),
    .fail_i(1'b0),
    .irq_o
  );

  // ---- phases: the state after 64 bytes, the pipelines fill, hashes come out ----
  typedef enum logic [1:0] {
    S_STATE,
    S_FILL,
    S_COMPARE
  } phase_e;
  phase_e phase_q;
  logic [7:0] wait_q;
  logic [255:0] state_q;    // before the block in the first pipelines
  logic [255:0] target_q;
  logic [31:0] in_q;        // nonce of the block that enters pipeline 0
  logic [31:0] left_q;      // nonces whose hash is still to be compared
  logic en_q;
  wire cleared;

  // ---- pipelines ----
  wire [PIPES-1:0][255:0] digest, hash;
  for (genvar i = 0; i < PIPES; i++) begin : g_pipe
    wire [511:0] block = phase_q == S_STATE ? header[18:3] :
        {header[2:0], swap(in_q + 32'(i)), 32'h8000_0000, 320'd0, 32'd640};
    shef_bitcoin_hash u_hash (
      .clk_i,
      .en_i(en_q),
      .state_i(state_q),
      .block_i(block),
      .first_o(digest[i]),
      .hash_o(hash[i])
    );
  end

  // ---- comparison, a cycle after the hash ----
  logic [PIPES-1:0][255:0] seen_q;
  logic [PIPES-1:0] hit;
  logic any;
  logic [255:0] best;
  logic [31:0] which;   // pipeline of the first hit
  always_comb begin
    any = 1'b0;
    best = '0;
    which = '0;
    for (int unsigned i = 0; i < PIPES; i++) begin
      hit[i] = seen_q[i] <= target_q && left_q > 32'(i);
      if (hit[i] && !any) begin
        any = 1'b1;
        best = seen_q[i];
        which = 32'(i);
      end
    end
  end
  wire compare = busy && !start && phase_q == S_COMPARE;
  wire last = left_q <= 32'(PIPES);
  assign over = compare && (any || last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      phase_q <= S_STATE;
      {wait_q, state_q, target_q, in_q, left_q} <= '0;
      {found_q, nonce_q, tried_q, hash_q, cycles_q} <= '0;
      seen_q <= '0;
      en_q <= clear_i && !cleared;
    end else if (start) begin
      phase_q <= S_STATE;
      wait_q <= FIRST;
      state_q <= SHA_START;
      target_q <= difficulty == '0 ? header_target : {256{1'b1}} >> difficulty[8:0];
      in_q <= first_nonce;
      left_q <= window;
      en_q <= 1'b1;
      {found_q, nonce_q, tried_q, hash_q, cycles_q} <= '0;
    end else begin
      if (busy) begin
        cycles_q <= cycles_q + 32'd1;
        wait_q <= wait_q - 8'd1;
        seen_q <= hash;
        if (phase_q != S_STATE) in_q <= in_q + 32'(PIPES);
      end
      if (busy && wait_q == '0) begin
        unique case (phase_q)
          S_STATE: begin
            phase_q <= S_FILL;
            wait_q <= BOTH;
            state_q <= digest[0];
          end
          S_FILL: phase_q <= S_COMPARE;
          default: ;
        endcase
      end
      if (compare) begin
        left_q <= left_q - 32'(PIPES);
        tried_q <= tried_q + (any ? which + 32'd1 : last ? left_q : 32'(PIPES));
        if (any) begin
          found_q <= 1'b1;
          nonce_q <= first_nonce + tried_q + which;
          hash_q <= best;
        end
      end
      en_q <= busy && !over;
    end
  end

  // ---- cleared when constants have passed both digests ----
  wire [7:0] sweep;
  shef_sweep #(.Words(256)) u_sweep (
    .clk_i,
    .clear_i,
    .addr_o(sweep),
    .cleared_o(cleared)
  );
  assign cleared_o = cleared;

  // ---- no memory ----
  assign acc_aw_o = '0;
  assign acc_aw_valid_o = 1'b0;
  assign acc_w_o = '0;
  assign acc_w_valid_o = 1'b0;
  assign acc_b_ready_o = 1'b1;
  assign acc_ar_o = '0;
  assign acc_ar_valid_o = 1'b0;
  assign acc_r_ready_o = 1'b1;

  wire unused = &{1'b0, unused_error, sweep, digest, acc_aw_ready_i, acc_w_ready_i, acc_b_i,
      acc_b_valid_i, acc_ar_ready_i, acc_r_i, acc_r_valid_i};
endmodule
`default_nettype wire
