// Copy engine of f2_small_cl: reads `count` bursts of `beats` beats, one id each, into a buffer of
// 64 lines, and writes them. stop_i: it finishes the bursts that it has begun, wipes its buffer
// with ended_o, and holds stopped_o. It has initial values, as it finishes bursts while the rest is
// in reset.
`default_nettype none
module f2_small_pcim
  import f2_fault_pkg::*;
(
    input  wire logic         clk_i,
    input  wire fault_e       fault_i,
    input  wire logic         stop_i,
    output logic              ended_o,
    output logic              stopped_o,
    input  wire logic         go_i,
    input  wire logic [63:0]  from_i,
    input  wire logic [63:0]  to_i,
    input  wire logic [6:0]   count_i,
    input  wire logic [6:0]   beats_i,
    output logic              busy_o,
    output logic              done_o,
    output logic              error_o,
    output logic      [15:0]  awid_o,
    output logic      [63:0]  awaddr_o,
    output logic      [7:0]   awlen_o,
    output logic      [2:0]   awsize_o,
    output logic      [1:0]   awburst_o,
    output logic              awvalid_o,
    input  wire logic         awready_i,
    output logic      [511:0] wdata_o,
    output logic      [63:0]  wstrb_o,
    output logic              wlast_o,
    output logic              wvalid_o,
    input  wire logic         wready_i,
    input  wire logic [1:0]   bresp_i,
    input  wire logic         bvalid_i,
    output logic              bready_o,
    output logic      [15:0]  arid_o,
    output logic      [63:0]  araddr_o,
    output logic      [7:0]   arlen_o,
    output logic      [2:0]   arsize_o,
    output logic      [1:0]   arburst_o,
    output logic              arvalid_o,
    input  wire logic         arready_i,
    input  wire logic [15:0]  rid_i,
    input  wire logic [511:0] rdata_i,
    input  wire logic [1:0]   rresp_i,
    input  wire logic         rvalid_i,
    output logic              rready_o
);
  typedef enum logic [2:0] {IDLE, READ, WRITE, ANSWERS, WIPE, STOPPED} state_e;
  state_e state_q = IDLE;
  logic [511:0] buffer_q [64];
  logic [5:0] at_q [64];
  // Bursts that were offered, beats and answers that came.
  logic [6:0] ar_q = '0, r_q = '0, aw_q = '0, w_q = '0, b_q = '0, count_q = '0, beats_q = '0;
  // Beats that the reads begun will bring.
  logic [6:0] due_q = '0;
  logic ar_on_q = 1'b0, aw_on_q = 1'b0, w_on_q = 1'b0, error_q = 1'b0, done_q = 1'b0;
  logic auto_q = 1'b0, fell_q = 1'b0, stop_q = 1'b0;
  logic [5:0] wipe_q = '0;
  logic [63:0] from_q = '0, to_q = '0;

  // A stop that has begun ends with the wipe.
  wire stop = stop_i || stop_q;
  wire left_open = fault_i == PCIM_LEFT_OPEN && stop;
  wire by_itself = fault_i == PCIM_BY_ITSELF && !auto_q;
  wire two = fault_i == PCIM_TWO_BEATS;
  wire [63:0] stride = {51'd0, beats_q, 6'd0};
  wire [5:0] line = 6'(rid_i[5:0] * beats_q[5:0]) + at_q[rid_i[5:0]];
  wire take_ar = arvalid_o && arready_i;
  wire take_r = rvalid_i && rready_o;
  wire take_aw = awvalid_o && awready_i;
  wire take_w = wvalid_o && wready_i;
  wire last_beat = w_q == beats_q - 7'd1;
  wire [6:0] most = fault_i == PCIM_33_READS ? 7'd64 : 7'd32;

  assign busy_o = state_q != IDLE;
  assign done_o = done_q;
  assign error_o = error_q;
  assign ended_o = state_q == WIPE;
  assign stopped_o = state_q == STOPPED;

  assign arvalid_o = ar_on_q;
  assign arid_o = fault_i == PCIM_ONE_ID ? 16'd0 : {9'd0, ar_q};
  assign araddr_o = two ? {from_q[63:12], 12'hfc0}
      : from_q + 64'(ar_q) * stride + (fault_i == PCIM_AR_CHANGES && fell_q ? 64'd64 : 64'd0);
  assign arlen_o = two ? 8'd1 : 8'(beats_q) - 8'd1;
  assign arsize_o = 3'd6;
  assign arburst_o = fault_i == PCIM_FIXED ? 2'd0 : 2'd1;
  assign rready_o = fault_i != PCIM_RREADY_LOW;

  assign awvalid_o = aw_on_q && !(fault_i == PCIM_AW_FALLS && fell_q);
  assign awid_o = {9'd0, aw_q};
  assign awaddr_o = to_q + 64'(aw_q) * stride + (fault_i == PCIM_STROBE_ADDR ? 64'd4 : 64'd0);
  assign awlen_o = 8'(beats_q) - 8'd1;
  assign awsize_o = fault_i == PCIM_SIZE ? 3'd5 : 3'd6;
  assign awburst_o = 2'd1;
  assign wvalid_o = w_on_q && fault_i != PCIM_NO_W;
  assign wdata_o = buffer_q[6'(aw_q[5:0] * beats_q[5:0]) + w_q[5:0]]
      ^ (fault_i == PCIM_W_CHANGES && fell_q ? 512'd1 : 512'd0);
  assign wstrb_o = (w_q == '0 ? {64{1'b1}} << to_q[5:0] : {64{1'b1}})
      & ~(fault_i == PCIM_STROBE_GAP ? 64'hf000_0000_0000_0000 >> 2 : '0);
  assign wlast_o = last_beat || (fault_i == PCIM_WLAST_EARLY && w_q == '0);
  assign bready_o = fault_i != PCIM_BREADY_LOW;

  always_ff @(posedge clk_i) begin
    done_q <= 1'b0;
    stop_q <= stop && state_q != STOPPED;
    auto_q <= fault_i == PCIM_BY_ITSELF && !stop && (auto_q || state_q == IDLE);
    // In every second cycle of a wait, for the faults.
    fell_q <= !fell_q && ((arvalid_o && !arready_i) || (awvalid_o && !awready_i)
        || (wvalid_o && !wready_i));
    if (take_ar) begin
      ar_q <= ar_q + 1'b1;
      due_q <= due_q + (two ? 7'd2 : beats_q);
      ar_on_q <= 1'b0;
    end
    if (take_r) begin
      r_q <= r_q + 1'b1;
      at_q[rid_i[5:0]] <= at_q[rid_i[5:0]] + 1'b1;
      buffer_q[line] <= rdata_i;
      error_q <= error_q || rresp_i != '0;
    end
    if (bvalid_i && bready_o) begin
      b_q <= b_q + 1'b1;
      error_q <= error_q || bresp_i != '0;
    end
    unique case (state_q)
      IDLE: begin
        if (stop) begin
          state_q <= WIPE;
        end else if (go_i || by_itself) begin
          state_q <= READ;
          count_q <= by_itself ? 7'd1 : count_i > most ? most : count_i;
          beats_q <= by_itself ? 7'd1 : beats_i;
          {from_q, to_q} <= {from_i, to_i};
          {ar_q, r_q, aw_q, w_q, b_q, due_q, error_q} <= '0;
          for (int k = 0; k < 64; k++) at_q[k] <= '0;
        end
      end
      READ: begin
        if (!ar_on_q || take_ar) begin
          ar_on_q <= !stop && ar_q + 7'(take_ar) != count_q;
        end
        if (!ar_on_q && r_q == due_q && (stop || ar_q == count_q)) begin
          state_q <= stop ? WIPE : WRITE;
        end
      end
      WRITE: begin
        if (take_aw) aw_on_q <= 1'b0;
        if (take_w) begin
          w_q <= w_q + 1'b1;
          if (last_beat) w_on_q <= 1'b0;
        end
        // The next burst, once both channels are through with this one.
        if (!aw_on_q && !w_on_q) begin
          if (w_q != '0) begin
            aw_q <= aw_q + 1'b1;
            w_q <= '0;
          end else if (aw_q == count_q || stop) begin
            state_q <= ANSWERS;
          end else begin
            {aw_on_q, w_on_q} <= 2'b11;
          end
        end
      end
      ANSWERS: begin
        if (b_q == aw_q) begin
          state_q <= stop ? WIPE : IDLE;
          done_q <= !stop;
        end
      end
      WIPE: begin
        wipe_q <= wipe_q + 1'b1;
        buffer_q[wipe_q] <= '0;
        if (&wipe_q) state_q <= STOPPED;
      end
      STOPPED: if (!stop_i) state_q <= IDLE;
      default: state_q <= IDLE;
    endcase
    if (left_open && state_q == WRITE && !aw_on_q && take_w && !last_beat) begin
      state_q <= WIPE;
      {aw_on_q, w_on_q} <= '0;
    end
  end
endmodule
`default_nettype wire
