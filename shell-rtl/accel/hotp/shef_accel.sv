// The one-time-code accelerator: HOTP (RFC 4226) with HMAC-SHA-256 and a key of 32 bytes, as TOTP
// (RFC 6238) uses it.
//
// Registers in README.md; AXI4-Lite slave that accepts AW and W together, one write and one read at
// a time. It uses no memory: its memory port sends no requests and accepts every response. A code
// takes 550 cycles; irq_o is high while a code is ready.
`default_nettype none
module shef_accel
  import shef_pkg::*;
(
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        clear_i,     // zero all memories, in reset
    output logic             cleared_o,   // done, until clear_i falls
    input  wire logic [15:0] reg_awaddr_i,
    input  wire logic        reg_awvalid_i,
    output logic             reg_awready_o,
    input  wire logic [31:0] reg_wdata_i,
    input  wire logic [3:0]  reg_wstrb_i,
    input  wire logic        reg_wvalid_i,
    output logic             reg_wready_o,
    output logic [1:0]       reg_bresp_o,
    output logic             reg_bvalid_o,
    input  wire logic        reg_bready_i,
    input  wire logic [15:0] reg_araddr_i,
    input  wire logic        reg_arvalid_i,
    output logic             reg_arready_o,
    output logic [31:0]      reg_rdata_o,
    output logic [1:0]       reg_rresp_o,
    output logic             reg_rvalid_o,
    input  wire logic        reg_rready_i,
    output axi_ax_t          acc_aw_o,
    output logic             acc_aw_valid_o,
    input  wire logic        acc_aw_ready_i,
    output axi_w_t           acc_w_o,
    output logic             acc_w_valid_o,
    input  wire logic        acc_w_ready_i,
    input  wire axi_b_t      acc_b_i,
    input  wire logic        acc_b_valid_i,
    output logic             acc_b_ready_o,
    output axi_ax_t          acc_ar_o,
    output logic             acc_ar_valid_o,
    input  wire logic        acc_ar_ready_i,
    input  wire axi_r_t      acc_r_i,
    input  wire logic        acc_r_valid_i,
    output logic             acc_r_ready_o,
    output logic             irq_o
);
  // ---- registers ----
  localparam logic [15:0] KEY_END = 16'h20;
  localparam logic [15:0] COUNT_HIGH = 16'h20;
  localparam logic [15:0] COUNT_LOW = 16'h24;
  localparam logic [15:0] CTRL = 16'h28;
  localparam logic [15:0] STATUS = 16'h2c;
  localparam logic [15:0] CODE = 16'h30;

  // ---- commands of shef_hmac ----
  localparam logic [3:0] HMAC_INIT = 4'd1;
  localparam logic [3:0] HMAC_ABSORB = 4'd2;
  localparam logic [3:0] HMAC_FINAL = 4'd3;

  typedef enum logic [2:0] {
    S_IDLE,
    S_INIT,
    S_KEY,
    S_ABSORB,
    S_COUNT,
    S_FINAL,
    S_MAC
  } state_e;

  state_e state_q;
  logic [255:0] key_q;     // byte 0 on top; rotated once in each use
  logic [7:0] key_have_q;  // words written so far
  logic [63:0] count_q;
  logic [31:0] high_q;     // upper half of a counter whose lower half is still missing
  logic [151:0] head_q;    // bytes 0..18 of the MAC, byte 0 on top
  logic [4:0] index_q;
  logic [30:0] code_q;
  logic done_q;

  // ---- HMAC ----
  logic cmd_valid, cmd_ready, in_valid, in_ready, out_valid;
  logic [3:0] cmd;
  logic [7:0] in_data, out_data;
  logic unused_ok;

  shef_hmac u_hmac (
      .clk_i,
      .rst_ni,
      .wipe_i(clear_i),
      .cmd_valid_i(cmd_valid),
      .cmd_ready_o(cmd_ready),
      .cmd_i(cmd),
      .len_i(16'd8),
      .in_valid_i(in_valid),
      .in_ready_o(in_ready),
      .in_data_i(in_data),
      .out_valid_o(out_valid),
      .out_ready_i(state_q == S_MAC),
      .out_data_o(out_data),
      .ok_o(unused_ok)
  );

  assign cleared_o = clear_i && cmd_ready;

  always_comb begin
    cmd_valid = 1'b0;
    cmd = HMAC_INIT;
    in_valid = 1'b0;
    in_data = key_q[255:248];
    unique case (state_q)
      S_INIT: cmd_valid = 1'b1;
      S_KEY: in_valid = 1'b1;
      S_ABSORB: begin
        cmd_valid = 1'b1;
        cmd = HMAC_ABSORB;
      end
      S_COUNT: begin
        in_valid = 1'b1;
        in_data = count_q[{~index_q[2:0], 3'd0}+:8];
      end
      S_FINAL: begin
        cmd_valid = 1'b1;
        cmd = HMAC_FINAL;
      end
      default: ;
    endcase
  end

  // ---- dynamic truncation: four bytes at the offset in the last byte ----
  logic [151:0] truncated;
  assign truncated = head_q << {out_data[3:0], 3'd0};

  // ---- register writes ----
  logic write, key_write, count_write, start, good, b_q;
  logic [63:0] count_new;
  assign write = reg_awvalid_i && reg_wvalid_i && !b_q;
  assign reg_awready_o = write;
  assign reg_wready_o = write;
  assign reg_bvalid_o = b_q;
  assign count_new = {high_q, reg_wdata_i};
  always_comb begin
    logic whole;
    whole = write && state_q == S_IDLE && reg_wstrb_i == 4'hf && reg_awaddr_i[1:0] == 2'd0;
    key_write = whole && reg_awaddr_i < KEY_END && key_have_q != '1;
    count_write = whole && (reg_awaddr_i == COUNT_HIGH ||
        (reg_awaddr_i == COUNT_LOW && count_new >= count_q));
    start = whole && reg_awaddr_i == CTRL && reg_wdata_i == 32'd1 && key_have_q == '1 &&
        count_q != '1;
    good = key_write || count_write || start;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= S_IDLE;
      key_q <= '0;
      key_have_q <= '0;
      count_q <= '0;
      high_q <= '0;
      head_q <= '0;
      index_q <= '0;
      code_q <= '0;
      done_q <= 1'b0;
      b_q <= 1'b0;
      reg_bresp_o <= AXI_OKAY;
    end else begin
      if (write) begin
        b_q <= 1'b1;
        reg_bresp_o <= good ? AXI_OKAY : AXI_SLVERR;
      end else if (reg_bready_i) b_q <= 1'b0;

      if (key_write) begin
        key_q[{~reg_awaddr_i[4:2], 5'd0}+:32] <= reg_wdata_i;
        key_have_q[reg_awaddr_i[4:2]] <= 1'b1;
      end
      if (count_write) begin
        if (reg_awaddr_i == COUNT_HIGH) high_q <= reg_wdata_i;
        else count_q <= count_new;
      end

      unique case (state_q)
        S_IDLE:
        if (start) begin
          state_q <= S_INIT;
          done_q <= 1'b0;
        end
        S_INIT: if (cmd_ready) state_q <= S_KEY;
        S_KEY:
        if (in_ready) begin
          key_q <= {key_q[247:0], key_q[255:248]};
          index_q <= index_q + 1'b1;
          if (index_q == '1) state_q <= S_ABSORB;
        end
        S_ABSORB: if (cmd_ready) state_q <= S_COUNT;
        S_COUNT:
        if (in_ready) begin
          index_q <= index_q + 1'b1;
          if (index_q == 5'd7) begin
            index_q <= '0;
            state_q <= S_FINAL;
          end
        end
        S_FINAL: if (cmd_ready) state_q <= S_MAC;
        default:  // S_MAC
        if (out_valid) begin
          if (index_q < 5'd19) head_q <= {head_q[143:0], out_data};
          index_q <= index_q + 1'b1;
          if (index_q == '1) begin
            code_q <= truncated[150:120];
            head_q <= '0;
            done_q <= 1'b1;
            count_q <= count_q + 1'b1;
            state_q <= S_IDLE;
          end
        end
      endcase
    end
  end

  // ---- register reads ----
  assign reg_arready_o = !reg_rvalid_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reg_rvalid_o <= 1'b0;
      reg_rresp_o <= AXI_OKAY;
      reg_rdata_o <= '0;
    end else if (reg_arvalid_i && !reg_rvalid_o) begin
      reg_rvalid_o <= 1'b1;
      reg_rresp_o <= AXI_OKAY;
      reg_rdata_o <= '0;
      if (reg_araddr_i == COUNT_HIGH) reg_rdata_o <= count_q[63:32];
      else if (reg_araddr_i == COUNT_LOW) reg_rdata_o <= count_q[31:0];
      else if (reg_araddr_i == STATUS) reg_rdata_o <= {30'd0, done_q, state_q != S_IDLE};
      else if (reg_araddr_i == CODE && done_q) reg_rdata_o <= {1'b0, code_q};
      else reg_rresp_o <= AXI_SLVERR;
    end else if (reg_rready_i) reg_rvalid_o <= 1'b0;
  end
  assign irq_o = done_q;

  // ---- no memory ----
  assign acc_aw_o = '0;
  assign acc_aw_valid_o = 1'b0;
  assign acc_w_o = '0;
  assign acc_w_valid_o = 1'b0;
  assign acc_b_ready_o = 1'b1;
  assign acc_ar_o = '0;
  assign acc_ar_valid_o = 1'b0;
  assign acc_r_ready_o = 1'b1;

  logic unused;
  assign unused = ^{unused_ok, truncated, acc_aw_ready_i, acc_w_ready_i, acc_b_i, acc_b_valid_i,
      acc_ar_ready_i, acc_r_i, acc_r_valid_i};

endmodule
`default_nettype wire
