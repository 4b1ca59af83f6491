// Decoder and mailboxes of the control window and of the kernel port.
//
// Both AXI4-Lite slaves respond to every access; an address without a register, or an access in the
// wrong direction, gets SLVERR and zero. The two ports share nothing that the host could reach:
// seed, public key, T and the last message decode on the kernel port alone and have separate
// memories.
//
// load_bell_o, chan_bell_o, seed_bell_o, krn_wipe_o are pulses; load_len_o is valid with
// load_bell_o.
// seq side: seq_addr_i selects a byte of the inbox (0x000 LOAD_MSG, 0x400 CHAN_REQ, 0x480 seed,
// 0x4a0 configuration digest) and seq_rdata_o follows one cycle later; seq_we_i writes a byte of
// the outbox (0x600 CHAN_RSP, 0x660 CONFIRM, 0x700 public key, 0x740 T, 0x780 last message).
// scrub_i (level) zeroes all memories and refuses host writes to them in that time; scrub_done_o is
// a level while it is held.
`default_nettype none
module shef_regs
  import shef_pkg::*;
  import shef_regs_pkg::*;
#(
    parameter int unsigned  ShellId = 1,
    parameter int unsigned ClockKhz = 250_000,
    parameter int unsigned  NPorts = 1,
    parameter int unsigned  NSets = 1,
    parameter int unsigned  NRegions = 1,
    parameter logic [255:0] ConfigDigest = '0
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        scrub_i,
    output logic             scrub_done_o,
    // control window
    input  wire axil_req_t   ctl_req_i,
    output axil_rsp_t        ctl_rsp_o,
    // kernel port
    input  wire axil_req_t   krn_req_i,
    output axil_rsp_t        krn_rsp_o,
    // state
    input  wire logic [31:0] status_i,
    input  wire logic        show_confirm_i,
    input  wire logic        show_answer_i,
    input  wire logic        show_pubkey_i,
    input  wire logic        show_t_i,
    input  wire logic        show_last_i,
    input  wire logic        seed_open_i,   // a seed may be written
    input  wire logic        seed_erase_i,
    output logic             load_bell_o,
    output logic [31:0]      load_len_o,
    output logic             chan_bell_o,
    output logic             seed_bell_o,
    output logic             krn_wipe_o,
    // sequencer
    input  wire logic [10:0] seq_addr_i,
    output logic [7:0]       seq_rdata_o,
    input  wire logic        seq_we_i,
    input  wire logic [7:0]  seq_wdata_i
);

  logic ctl_wr, ctl_wr_err, ctl_rd, ctl_rd_err_q;
  logic [15:0] ctl_wr_addr, ctl_rd_addr;
  logic [31:0] ctl_wr_data, ctl_rd_data;
  logic [3:0] ctl_wr_strb;

  shef_axil_slave #(
      .AddrW(16)
  ) u_ctl (
      .clk_i,
      .rst_ni,
      .req_i(ctl_req_i),
      .rsp_o(ctl_rsp_o),
      .wr_valid_o(ctl_wr),
      .wr_addr_o(ctl_wr_addr),
      .wr_data_o(ctl_wr_data),
      .wr_strb_o(ctl_wr_strb),
      .wr_err_i(ctl_wr_err),
      .rd_valid_o(ctl_rd),
      .rd_addr_o(ctl_rd_addr),
      .rd_data_i(ctl_rd_data),
      .rd_err_i(ctl_rd_err_q)
  );

  logic krn_wr, krn_wr_err, krn_rd, krn_rd_err_q;
  logic [11:0] krn_wr_addr, krn_rd_addr;
  logic [31:0] krn_wr_data, krn_rd_data;
  logic [3:0] krn_wr_strb;

  shef_axil_slave #(
      .AddrW(12)
  ) u_krn (
      .clk_i,
      .rst_ni,
      .req_i(krn_req_i),
      .rsp_o(krn_rsp_o),
      .wr_valid_o(krn_wr),
      .wr_addr_o(krn_wr_addr),
      .wr_data_o(krn_wr_data),
      .wr_strb_o(krn_wr_strb),
      .wr_err_i(krn_wr_err),
      .rd_valid_o(krn_rd),
      .rd_addr_o(krn_rd_addr),
      .rd_data_i(krn_rd_data),
      .rd_err_i(krn_rd_err_q)
  );

  // ---- scrub ----
  logic [8:0] scrub_cnt_q;
  logic scrubbed_q;
  assign scrub_done_o = scrubbed_q && scrub_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !scrub_i) begin
      scrub_cnt_q <= '0;
      scrubbed_q <= 1'b0;
    end else begin
      scrub_cnt_q <= scrub_cnt_q + 1'b1;
      if (scrub_cnt_q == '1) scrubbed_q <= 1'b1;
    end
  end

  // ---- writes ----
  ctl_sel_e ctl_wr_sel;
  krn_sel_e krn_wr_sel;
  logic ctl_wr_mem, krn_wr_seed;
  assign ctl_wr_sel = ctl_decode({ctl_wr_addr[15:2], 2'b00});
  assign krn_wr_sel = krn_decode({krn_wr_addr[11:2], 2'b00});
  assign ctl_wr_mem = ctl_wr_sel == CTL_SEL_LOAD_MSG || ctl_wr_sel == CTL_SEL_CHAN_REQ;
  assign krn_wr_seed = krn_wr_sel == KRN_SEL_SEED;
  // Registers and the seed accept whole words only; mailboxes accept bytes, but not while they are
  // being scrubbed. A seed is accepted only if all its words were written since the last one was
  // erased.
  logic [7:0] seed_fresh_q;
  logic krn_seed_refused;
  assign krn_seed_refused = krn_wr_sel == KRN_SEL_CTRL && krn_wr_data[KRN_CTRL_SEED_LSB] &&
      !(seed_open_i && (&seed_fresh_q));
  assign ctl_wr_err = !ctl_writable(ctl_wr_sel) || (ctl_wr_mem ? scrub_i : ctl_wr_strb != 4'hf);
  assign krn_wr_err = !krn_writable(krn_wr_sel) || krn_wr_strb != 4'hf ||
      (krn_wr_seed && !seed_open_i) || krn_seed_refused;

  assign load_bell_o = ctl_wr && !ctl_wr_err && ctl_wr_sel == CTL_SEL_LOAD_DOORBELL;
  assign load_len_o = ctl_wr_data;
  assign chan_bell_o = ctl_wr && !ctl_wr_err && ctl_wr_sel == CTL_SEL_CHAN_DOORBELL;
  assign seed_bell_o = krn_wr && !krn_wr_err && krn_wr_sel == KRN_SEL_CTRL &&
      krn_wr_data[KRN_CTRL_SEED_LSB];
  assign krn_wipe_o = krn_wr && !krn_wr_err && krn_wr_sel == KRN_SEL_CTRL &&
      krn_wr_data[KRN_CTRL_WIPE_LSB];

  // inbox: words 0..255 LOAD_MSG, 256.. CHAN_REQ
  logic [31:0] inbox[512];
  logic [31:0] inbox_q;
  logic [8:0] inbox_waddr;
  logic [31:0] inbox_wdata;
  logic [3:0] inbox_we;
  always_comb begin
    inbox_waddr = ctl_wr_sel == CTL_SEL_LOAD_MSG ? {1'b0, ctl_wr_addr[9:2]}
        : {1'b1, ctl_wr_addr[9:2]};
    inbox_wdata = ctl_wr_data;
    inbox_we = (ctl_wr && ctl_wr_mem && !ctl_wr_err) ? ctl_wr_strb : 4'h0;
    if (scrub_i) begin
      inbox_waddr = scrub_cnt_q;
      inbox_wdata = '0;
      inbox_we = 4'hf;
    end
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 4; i++) if (inbox_we[i]) inbox[inbox_waddr][8*i+:8] <= inbox_wdata[8*i+:8];
    inbox_q <= inbox[seq_addr_i[10:2]];
  end

  // seed: flip-flops, byte i in [8*i+:8]
  logic [255:0] seed_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || scrub_i || seed_erase_i) begin
      seed_q <= '0;
      seed_fresh_q <= '0;
    end else if (krn_wr && krn_wr_seed && !krn_wr_err) begin
      seed_q[{krn_wr_addr[4:2], 5'd0}+:32] <= krn_wr_data;
      seed_fresh_q[krn_wr_addr[4:2]] <= 1'b1;
    end
  end

  // The digest is stored byte 0 first; registers and the sequencer need byte i in [8*i+:8].
  logic [255:0] digest;
  always_comb begin
    for (int i = 0; i < 32; i++) digest[8*i+:8] = ConfigDigest[255-8*i-:8];
  end

  logic [10:0] seq_addr_q;
  logic [4:0] seq_byte;
  assign seq_byte = seq_addr_q[4:0];
  always_ff @(posedge clk_i) seq_addr_q <= rst_ni ? seq_addr_i : '0;
  always_comb begin
    if (seq_addr_q[10:5] == 6'h24) seq_rdata_o = seed_q[{seq_byte, 3'd0}+:8];  // 0x480
    else if (seq_addr_q[10:5] == 6'h25) seq_rdata_o = digest[{seq_byte, 3'd0}+:8];  // 0x4a0
    else seq_rdata_o = inbox_q[{seq_addr_q[1:0], 3'd0}+:8];
  end

  // outboxes: one for each port
  logic [31:0] ctl_out[32];
  logic [31:0] krn_out[64];
  logic [31:0] ctl_out_q, krn_out_q;
  logic [3:0] out_lane;
  assign out_lane = 4'b0001 << seq_addr_i[1:0];
  logic [4:0] ctl_out_waddr;
  logic [5:0] krn_out_waddr;
  logic [3:0] ctl_out_we, krn_out_we;
  assign ctl_out_waddr = scrub_i ? scrub_cnt_q[4:0] : seq_addr_i[6:2];
  assign krn_out_waddr = scrub_i ? scrub_cnt_q[5:0] : seq_addr_i[7:2];
  assign ctl_out_we = scrub_i ? 4'hf : (seq_we_i && seq_addr_i[10:7] == 4'b1100) ? out_lane : 4'h0;
  assign krn_out_we = scrub_i ? 4'hf : (seq_we_i && seq_addr_i[10:8] == 3'b111) ? out_lane : 4'h0;
  logic [7:0] out_wdata;
  assign out_wdata = scrub_i ? 8'd0 : seq_wdata_i;

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 4; i++) if (ctl_out_we[i]) ctl_out[ctl_out_waddr][8*i+:8] <= out_wdata;
    // CHAN_RSP at 0x2100.., CONFIRM at 0x120..: words 0..21 and 24..31
    ctl_out_q <= ctl_out[ctl_rd_addr[13] ? ctl_rd_addr[6:2] : {2'b11, ctl_rd_addr[4:2]}];
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 4; i++) if (krn_out_we[i]) krn_out[krn_out_waddr][8*i+:8] <= out_wdata;
    // PUBKEY at 0x40.., T at 0x80.., LAST at 0x100..: words 0..15, 16..23, 32..53
    krn_out_q <=
        krn_out[krn_rd_addr[8] ? {1'b1, krn_rd_addr[6:2]} : {1'b0, krn_rd_addr[7],
        krn_rd_addr[5:2]}];
  end

  // ---- reads ----
  ctl_sel_e ctl_rd_sel;
  ctl_sel_e ctl_rd_sel_q;
  logic [2:0] ctl_word_q;
  logic [31:0] ctl_status_q;
  assign ctl_rd_sel = ctl_decode({ctl_rd_addr[15:2], 2'b00});
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ctl_rd_sel_q <= CTL_SEL_NONE;
      ctl_rd_err_q <= 1'b0;
      ctl_word_q <= '0;
      ctl_status_q <= '0;
    end else if (ctl_rd) begin
      ctl_rd_sel_q <= ctl_rd_sel;
      ctl_rd_err_q <= !ctl_readable(ctl_rd_sel);
      ctl_word_q <= ctl_rd_addr[4:2];
      ctl_status_q <= status_i;
    end
  end
  always_comb begin
    unique case (ctl_rd_sel_q)
      CTL_SEL_MAGIC: ctl_rd_data = CTL_MAGIC_RESET;
      CTL_SEL_VERSION: ctl_rd_data = CTL_VERSION_RESET;
      CTL_SEL_SHELL: ctl_rd_data = ShellId;
      CTL_SEL_CLOCK_KHZ: ctl_rd_data = ClockKhz;
      CTL_SEL_SHAPE:
      ctl_rd_data = (NPorts << CTL_SHAPE_PORTS_LSB) | (NSets << CTL_SHAPE_SETS_LSB) |
          (NRegions << CTL_SHAPE_REGIONS_LSB);
      CTL_SEL_CONFIG_DIGEST: ctl_rd_data = digest[{ctl_word_q, 5'd0}+:32];
      CTL_SEL_STATUS: ctl_rd_data = ctl_status_q;
      CTL_SEL_CONFIRM: ctl_rd_data = show_confirm_i ? ctl_out_q : 32'd0;
      CTL_SEL_CHAN_RSP: ctl_rd_data = show_answer_i ? ctl_out_q : 32'd0;
      default: ctl_rd_data = 32'd0;
    endcase
  end

  krn_sel_e krn_rd_sel;
  krn_sel_e krn_rd_sel_q;
  logic [2:0] krn_word_q;
  logic [31:0] krn_status_q;
  assign krn_rd_sel = krn_decode({krn_rd_addr[11:2], 2'b00});
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      krn_rd_sel_q <= KRN_SEL_NONE;
      krn_rd_err_q <= 1'b0;
      krn_word_q <= '0;
      krn_status_q <= '0;
    end else if (krn_rd) begin
      krn_rd_sel_q <= krn_rd_sel;
      krn_rd_err_q <= !krn_readable(krn_rd_sel);
      krn_word_q <= krn_rd_addr[4:2];
      krn_status_q <= status_i;
    end
  end
  always_comb begin
    unique case (krn_rd_sel_q)
      KRN_SEL_STATUS: krn_rd_data = krn_status_q;
      KRN_SEL_PUBKEY: krn_rd_data = show_pubkey_i ? krn_out_q : 32'd0;
      KRN_SEL_T: krn_rd_data = show_t_i ? krn_out_q : 32'd0;
      KRN_SEL_CONFIG_DIGEST: krn_rd_data = digest[{krn_word_q, 5'd0}+:32];
      KRN_SEL_LAST: krn_rd_data = show_last_i ? krn_out_q : 32'd0;
      default: krn_rd_data = 32'd0;
    endcase
  end

  logic unused;
  assign unused = ^{ctl_wr_addr[1:0], krn_wr_addr[1:0], ctl_rd_addr[1:0], krn_rd_addr[1:0]};

endmodule
`default_nettype wire
