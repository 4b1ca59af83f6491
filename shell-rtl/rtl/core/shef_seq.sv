// Microcoded byte sequencer: runs the program of shef_ucode_pkg over a private scratch RAM and the
// control crypto units.
//
// Addresses of the program are 13 bits: 0x0000 scratch RAM (2 KiB), 0x0800 constant ROM (read
// only), 0x1000 the `ext` bus. An operand is address + index register; r0 is always zero. The
// instruction word is described in shell-rtl/ucode/README.md.
//
// ext bus: ext_req_o with ext_we_o, ext_addr_o, ext_wdata_o held until ext_ack_i; ext_rdata_i is
// valid with the ack.
// Unit u (0 hmac, 1 gcm, 2 p256): cmd/in/out streams as in the unit's header; valid never waits for
// ready.
// event_i: a level; the instruction WAIT_EVENT continues when any bit is set.
// wipe_i: level; the sequencer stops, clears registers and scrubs the scratch RAM; wipe_done_o is a
// level while wipe_i is held. When wipe_i falls the program starts at address 0. trap_o (level
// until wipe): the sequencer met an illegal instruction.
//
// Time: 3 cycles an instruction and 2 a byte copied or sent, 3 a byte compared, 4 a byte xored, 1
// or 2 more if the ext bus takes part; comparisons take the same time wherever the bytes differ.
`default_nettype none
module shef_seq
  import shef_ucode_pkg::*;
(
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             wipe_i,
    output logic                  wipe_done_o,
    output logic                  trap_o,
    input  wire logic             event_i,
    output logic                  ext_req_o,
    output logic                  ext_we_o,
    output logic [11:0]           ext_addr_o,
    output logic [7:0]            ext_wdata_o,
    input  wire logic             ext_ack_i,
    input  wire logic [7:0]       ext_rdata_i,
    output logic [2:0]            cmd_valid_o,
    input  wire logic [2:0]       cmd_ready_i,
    output logic [3:0]            cmd_o,
    output logic [15:0]           len_o,
    output logic [2:0]            in_valid_o,
    input  wire logic [2:0]       in_ready_i,
    output logic [7:0]            in_data_o,
    input  wire logic [2:0]       out_valid_i,
    output logic [2:0]            out_ready_o,
    input  wire logic [2:0][7:0]  out_data_i,
    input  wire logic [2:0]       ok_i
);

  localparam int unsigned AddrW = 13;
  localparam int unsigned ScratchW = 11;
  localparam int unsigned StackDepth = 8;

  typedef enum logic [4:0] {
    OP_TRAP = 5'd0,
    OP_WAIT_EVENT = 5'd1,
    OP_JMP = 5'd2,
    OP_JCC = 5'd3,
    OP_CALL = 5'd4,
    OP_RET = 5'd5,
    OP_ADD = 5'd6,
    OP_LD8 = 5'd7,
    OP_LD16 = 5'd8,
    OP_ST8 = 5'd9,
    OP_CMPR = 5'd10,
    OP_COPY = 5'd11,
    OP_REV = 5'd12,
    OP_XOR = 5'd13,
    OP_ZERO = 5'd14,
    OP_CMP = 5'd15,
    OP_ISZ = 5'd16,
    OP_INC = 5'd17,
    OP_CMD = 5'd18,
    OP_SEND = 5'd19,
    OP_RECV = 5'd20,
    OP_PUT = 5'd21,
    OP_GET = 5'd22,
    OP_XFER = 5'd23,
    OP_TEST = 5'd24
  } op_e;

  typedef enum logic [3:0] {
    S_WIPE,
    S_FETCH,
    S_DECODE,
    S_EXEC,
    S_CMD,       // wait for the unit, issue its command
    S_READ_B,    // address the source byte
    S_HAVE_B,    // source byte is present
    S_READ_A,    // destination byte is present (xor, compare)
    S_WRITE,     // write one byte
    S_STREAM,    // to and from a unit
    S_READY,     // wait until the unit is idle, take its ok
    S_IDLE,      // wait for an event
    S_TRAP
  } state_e;

  state_e state_q;

  // ---- program ----
  logic [UCODE_PC_W-1:0] pc_q;
  logic [63:0] ir_q;
  logic [UCODE_PC_W-1:0] stack_q[StackDepth];
  logic [$clog2(StackDepth):0] sp_q;
  logic [15:0] regs_q[8];

  op_e op;
  logic [1:0] unit;
  logic [3:0] cmd;
  logic [2:0] unit_sel;
  assign op = op_e'(ir_q[62:58]);
  assign unit = ir_q[57:56];
  assign cmd = ir_q[55:52];
  assign unit_sel = 3'b001 << unit;

  // operand values, latched in S_DECODE
  logic [AddrW-1:0] a_q, b_q;
  logic [15:0] n_q;   // remaining bytes
  logic [15:0] rb_q;  // plain value of the index register of b
  logic [15:0] imm_n;
  logic [15:0] a_full, b_full;
  assign imm_n = regs_q[ir_q[18:16]] + ir_q[15:0];
  assign a_full = regs_q[ir_q[51:49]] + {3'd0, ir_q[48:36]};
  assign b_full = regs_q[ir_q[34:32]] + {3'd0, ir_q[31:19]};

  logic eq_q, lt_q;
  logic decided_q;  // compare: an earlier byte differed
  logic taken;
  always_comb begin
    unique case (cmd[1:0])
      2'd0: taken = eq_q;
      2'd1: taken = !eq_q;
      2'd2: taken = lt_q;
      default: taken = !lt_q;
    endcase
  end

  // ---- memories ----
  logic [7:0] scratch[2**ScratchW];
  logic [7:0] scratch_q, const_q, ext_q;
  logic ram_we;
  logic [ScratchW-1:0] ram_waddr;
  logic [7:0] ram_wdata;
  logic rd_en;
  logic [AddrW-1:0] rd_addr;
  logic [1:0] rd_page_q;
  logic [7:0] rd_data;

  always_ff @(posedge clk_i) begin
    if (ram_we) scratch[ram_waddr] <= ram_wdata;
    if (rd_en) scratch_q <= scratch[rd_addr[ScratchW-1:0]];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || wipe_i) begin
      const_q <= '0;
      ext_q <= '0;
      rd_page_q <= '0;
    end else if (rd_en) begin
      const_q <= rd_addr[ScratchW-1:0] < ScratchW'(UCODE_CONST_LEN)
          ? UCODE_CONST[rd_addr[UCODE_CONST_W-1:0]] : 8'd0;
      ext_q <= ext_rdata_i;
      rd_page_q <= rd_addr[12:11];
    end
  end

  always_comb begin
    unique case (rd_page_q)
      2'd0: rd_data = scratch_q;
      2'd1: rd_data = const_q;
      default: rd_data = ext_q;
    endcase
  end

  logic b_ext, a_ext, a_const;
  assign b_ext = b_q[12];
  assign a_ext = a_q[12];
  assign a_const = a_q[12:11] == 2'd1;

  // ---- streams ----
  logic tx_have_q;           // the byte at rd_data is to be sent
  logic [15:0] tx_left_q, rx_left_q;
  logic tx_fire, rx_fire, rx_write_ok;
  logic stream_out_valid;
  logic [7:0] stream_out_data;
  assign stream_out_valid = |(out_valid_i & unit_sel);
  always_comb begin
    unique case (unit)
      2'd0: stream_out_data = out_data_i[0];
      2'd1: stream_out_data = out_data_i[1];
      default: stream_out_data = out_data_i[2];
    endcase
  end

  assign in_valid_o = (state_q == S_STREAM && tx_have_q) ? unit_sel : 3'b000;
  assign in_data_o = rd_data;
  assign tx_fire = |(in_valid_o & in_ready_i);
  // The scratch RAM takes a received byte at once, the ext bus when it acknowledges.
  assign rx_write_ok = a_ext ? ext_ack_i : 1'b1;
  assign out_ready_o = (state_q == S_STREAM && rx_left_q != 16'd0 && rx_write_ok) ? unit_sel
      : 3'b000;
  assign rx_fire = state_q == S_STREAM && rx_left_q != 16'd0 && stream_out_valid && rx_write_ok;

  assign cmd_valid_o = state_q == S_CMD ? unit_sel : 3'b000;
  assign cmd_o = cmd;
  assign len_o = n_q;

  // ---- write data ----
  logic [7:0] wr_byte_q;
  logic [ScratchW-1:0] wipe_cnt_q;
  logic wiped_q;
  logic last_byte, move;
  assign last_byte = n_q == 16'd1;
  assign move = op == OP_COPY || op == OP_REV;
  logic tx_read;  // the stream reads its next byte
  assign tx_read = state_q == S_STREAM && tx_left_q != 16'd0 && (!tx_have_q || tx_fire);

  always_comb begin
    ram_we = 1'b0;
    ram_waddr = a_q[ScratchW-1:0];
    ram_wdata = wr_byte_q;
    if (state_q == S_WIPE) begin
      ram_we = !wiped_q;
      ram_waddr = wipe_cnt_q;
      ram_wdata = 8'd0;
    end else if (state_q == S_WRITE) begin
      ram_we = !a_ext;
    end else if (state_q == S_HAVE_B && move) begin
      ram_we = !a_ext;
      ram_wdata = rd_data;
    end else if (rx_fire) begin
      ram_we = !a_ext;
      ram_wdata = stream_out_data;
    end
  end

  always_comb begin
    ext_req_o = 1'b0;
    ext_we_o = 1'b0;
    ext_addr_o = b_q[11:0];
    ext_wdata_o = wr_byte_q;
    rd_en = 1'b0;
    rd_addr = b_q;
    unique case (state_q)
      S_WIPE: begin  // leaves a scrubbed byte in the output register
        rd_en = 1'b1;
        rd_addr = {2'b00, wipe_cnt_q};
      end
      S_READ_B: begin
        ext_req_o = b_ext;
        rd_en = !b_ext || ext_ack_i;
      end
      S_HAVE_B: begin  // read the destination byte (used by xor and compare only)
        rd_addr = a_q;
        ext_addr_o = a_q[11:0];
        if (op == OP_XOR || op == OP_CMP) begin
          ext_req_o = a_ext;
          rd_en = !a_ext || ext_ack_i;
        end
      end
      S_WRITE: begin
        ext_req_o = a_ext;
        ext_we_o = 1'b1;
        ext_addr_o = a_q[11:0];
      end
      S_STREAM: begin
        if (tx_read) begin
          ext_req_o = b_ext;
          rd_en = !b_ext || ext_ack_i;
        end else if (rx_left_q != 16'd0 && a_ext) begin
          ext_req_o = stream_out_valid;
          ext_we_o = 1'b1;
          ext_addr_o = a_q[11:0];
          ext_wdata_o = stream_out_data;
        end
      end
      default: ;
    endcase
  end

  // arithmetic on the current byte
  logic inc_carry_q;
  logic [8:0] inc_sum;
  assign inc_sum = {1'b0, rd_data} + {8'd0, inc_carry_q};
  logic [7:0] b_byte_q;
  logic [16:0] cmpr_diff;
  assign cmpr_diff = {1'b0, rb_q} - {1'b0, imm_n};

  assign trap_o = state_q == S_TRAP;
  assign wipe_done_o = state_q == S_WIPE && wiped_q;


  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= S_WIPE;
      wipe_cnt_q <= '0;
      wiped_q <= 1'b0;
      pc_q <= '0;
      ir_q <= '0;
      sp_q <= '0;
      for (int i = 0; i < StackDepth; i++) stack_q[i] <= '0;
      for (int i = 0; i < 8; i++) regs_q[i] <= '0;
      a_q <= '0;
      b_q <= '0;
      n_q <= '0;
      rb_q <= '0;
      eq_q <= 1'b0;
      lt_q <= 1'b0;
      decided_q <= 1'b0;
      tx_have_q <= 1'b0;
      tx_left_q <= '0;
      rx_left_q <= '0;
      wr_byte_q <= '0;
      b_byte_q <= '0;
      inc_carry_q <= 1'b0;
    end else if (wipe_i && state_q != S_WIPE) begin
      state_q <= S_WIPE;
      wipe_cnt_q <= '0;
      wiped_q <= 1'b0;
      pc_q <= '0;
      ir_q <= '0;
      sp_q <= '0;
      for (int i = 0; i < 8; i++) regs_q[i] <= '0;
      a_q <= '0;
      b_q <= '0;
      n_q <= '0;
      rb_q <= '0;
      eq_q <= 1'b0;
      lt_q <= 1'b0;
      decided_q <= 1'b0;
      tx_have_q <= 1'b0;
      tx_left_q <= '0;
      rx_left_q <= '0;
      wr_byte_q <= '0;
      b_byte_q <= '0;
      inc_carry_q <= 1'b0;
    end else begin
      unique case (state_q)
        S_WIPE: begin
          wipe_cnt_q <= wipe_cnt_q + 1'b1;
          if (wipe_cnt_q == '1) wiped_q <= 1'b1;
          if (wiped_q && !wipe_i) state_q <= S_FETCH;
        end

        S_FETCH: begin
          ir_q <= 32'(pc_q) < UCODE_LEN ? UCODE_ROM[pc_q] : 64'd0;
          pc_q <= pc_q + 1'b1;
          state_q <= S_DECODE;
        end

        S_DECODE: begin
          a_q <= a_full[AddrW-1:0];
          b_q <= b_full[AddrW-1:0];
          rb_q <= regs_q[ir_q[34:32]];
          n_q <= imm_n;
          inc_carry_q <= 1'b1;
          decided_q <= 1'b0;
          tx_have_q <= 1'b0;
          tx_left_q <= '0;
          rx_left_q <= '0;
          state_q <= S_EXEC;
        end

        S_EXEC: begin
          state_q <= S_FETCH;
          unique case (op)
            OP_WAIT_EVENT: state_q <= S_IDLE;
            OP_JMP: pc_q <= n_q[UCODE_PC_W-1:0];
            OP_JCC: if (taken) pc_q <= n_q[UCODE_PC_W-1:0];
            OP_CALL: begin
              stack_q[sp_q[2:0]] <= pc_q;
              sp_q <= sp_q + 1'b1;
              pc_q <= n_q[UCODE_PC_W-1:0];
              if (sp_q[3]) state_q <= S_TRAP;
            end
            OP_RET: begin
              pc_q <= stack_q[sp_q[2:0]-3'd1];
              sp_q <= sp_q - 1'b1;
              if (sp_q == '0) state_q <= S_TRAP;
            end
            OP_ADD: if (cmd[2:0] != 3'd0) regs_q[cmd[2:0]] <= n_q + rb_q;
            OP_CMPR: begin
              eq_q <= cmpr_diff[15:0] == 16'd0;
              lt_q <= cmpr_diff[16];
            end
            OP_LD8, OP_LD16: begin
              n_q <= op == OP_LD16 ? 16'd2 : 16'd1;
              regs_q[cmd[2:0]] <= '0;
              if (cmd[2:0] == 3'd0) state_q <= S_TRAP;
              else state_q <= S_READ_B;
            end
            OP_ST8: begin
              wr_byte_q <= n_q[7:0];
              n_q <= 16'd1;
              state_q <= a_const ? S_TRAP : S_WRITE;
            end
            OP_COPY, OP_XOR, OP_CMP, OP_ISZ: begin
              eq_q <= 1'b1;
              lt_q <= 1'b0;
              if (n_q != 16'd0) state_q <= S_READ_B;
              if (a_const && (op == OP_COPY || op == OP_XOR)) state_q <= S_TRAP;
            end
            OP_REV: begin
              b_q <= b_q + n_q[AddrW-1:0] - 1'b1;
              if (n_q != 16'd0) state_q <= a_const ? S_TRAP : S_READ_B;
            end
            OP_INC: begin  // from the last byte upwards
              a_q <= a_q + n_q[AddrW-1:0] - 1'b1;
              b_q <= a_q + n_q[AddrW-1:0] - 1'b1;
              if (n_q != 16'd0) state_q <= a_const ? S_TRAP : S_READ_B;
            end
            OP_ZERO: begin
              wr_byte_q <= 8'd0;
              if (n_q != 16'd0) state_q <= a_const ? S_TRAP : S_WRITE;
            end
            OP_CMD: state_q <= unit == 2'd3 ? S_TRAP : S_CMD;
            OP_PUT, OP_GET, OP_XFER, OP_SEND, OP_RECV: begin
              tx_left_q <= (op == OP_GET || op == OP_RECV) ? 16'd0 : n_q;
              rx_left_q <= (op == OP_PUT || op == OP_SEND) ? 16'd0 : n_q;
              if (unit == 2'd3 || (a_const && op != OP_PUT && op != OP_SEND)
                  || (op == OP_XFER && (a_ext || b_q[12:11] != 2'd0))) state_q <= S_TRAP;
              else if (n_q != 16'd0) state_q <= (op == OP_SEND || op == OP_RECV) ? S_STREAM : S_CMD;
            end
            OP_TEST: state_q <= unit == 2'd3 ? S_TRAP : S_READY;
            default: state_q <= S_TRAP;
          endcase
        end

        S_IDLE: if (event_i) state_q <= S_FETCH;

        S_CMD: if (|(cmd_ready_i & unit_sel)) state_q <= op == OP_CMD ? S_FETCH : S_STREAM;

        S_READY: begin
          if (|(cmd_ready_i & unit_sel)) begin
            eq_q <= |(ok_i & unit_sel);
            state_q <= S_FETCH;
          end
        end

        S_READ_B: if (rd_en) state_q <= S_HAVE_B;

        S_HAVE_B: begin
          b_byte_q <= rd_data;
          unique case (op)
            OP_LD8, OP_LD16: begin
              regs_q[cmd[2:0]] <= {regs_q[cmd[2:0]][7:0], rd_data};
              n_q <= n_q - 16'd1;
              b_q <= b_q + 1'b1;
              state_q <= last_byte ? S_FETCH : S_READ_B;
            end
            OP_ISZ: begin
              if (rd_data != 8'd0) eq_q <= 1'b0;
              n_q <= n_q - 16'd1;
              b_q <= b_q + 1'b1;
              state_q <= last_byte ? S_FETCH : S_READ_B;
            end
            OP_XOR, OP_CMP: if (rd_en) state_q <= S_READ_A;
            OP_INC: begin
              wr_byte_q <= inc_sum[7:0];
              inc_carry_q <= inc_sum[8];
              eq_q <= inc_sum[8];  // after the first byte: the counter wrapped
              state_q <= S_WRITE;
            end
            // copy, rev: written at once to the scratch RAM, with a handshake to the ext bus
            default: begin
              wr_byte_q <= rd_data;
              if (a_ext) begin
                state_q <= S_WRITE;
              end else begin
                n_q <= n_q - 16'd1;
                a_q <= a_q + 1'b1;
                b_q <= op == OP_REV ? b_q - 1'b1 : b_q + 1'b1;
                state_q <= last_byte ? S_FETCH : S_READ_B;
              end
            end
          endcase
        end

        S_READ_A: begin  // a op b
          if (op == OP_XOR) begin
            wr_byte_q <= rd_data ^ b_byte_q;
            state_q <= S_WRITE;
          end else begin
            if (rd_data != b_byte_q) begin
              eq_q <= 1'b0;
              decided_q <= 1'b1;
              if (!decided_q) lt_q <= rd_data < b_byte_q;
            end
            n_q <= n_q - 16'd1;
            a_q <= a_q + 1'b1;
            b_q <= b_q + 1'b1;
            state_q <= last_byte ? S_FETCH : S_READ_B;
          end
        end

        S_WRITE: begin
          if (!a_ext || ext_ack_i) begin
            n_q <= n_q - 16'd1;
            a_q <= op == OP_INC ? a_q - 1'b1 : a_q + 1'b1;
            b_q <= (op == OP_INC || op == OP_REV) ? b_q - 1'b1 : b_q + 1'b1;
            if (last_byte) state_q <= S_FETCH;
            else if (op != OP_ZERO) state_q <= S_READ_B;
          end
        end

        S_STREAM: begin
          if (tx_fire) tx_have_q <= 1'b0;
          if (tx_read && rd_en) begin
            tx_have_q <= 1'b1;
            tx_left_q <= tx_left_q - 16'd1;
            b_q <= b_q + 1'b1;
          end
          if (rx_fire) begin
            rx_left_q <= rx_left_q - 16'd1;
            a_q <= a_q + 1'b1;
          end
          if (tx_left_q == 16'd0 && (!tx_have_q || tx_fire) &&
              (rx_left_q == 16'd0 || (rx_fire && rx_left_q == 16'd1)))
            state_q <= S_FETCH;
        end

        default: state_q <= S_TRAP;
      endcase
    end
  end

  logic unused;
  assign unused = ^{a_full[15:13], b_full[15:13], ir_q[63], ir_q[35]};

endmodule
`default_nettype wire
