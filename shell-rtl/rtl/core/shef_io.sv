// The Shield's hardware as the sequencer sees it: state and doorbell flags, key store, commands to
// the engine set, accelerator registers, fault record and statement values. One byte address space,
// docs in shell-rtl/ucode/README.md.
//
// ext bus as in shef_seq (0x000..0x7ff go to shef_regs, 0x800.. are here). An access that starts an
// operation (a set command, a register access, a wipe of the sets) is acknowledged on completion.
// Key store: 128 bytes in flip-flops, cleared by reset, wipe_i and renew_i. wipe_i (level) also
// drops all state except the pending events. An accepted seed (begin_o) and the end of a session
// (end_o) are pulses to shef_renew; renew_i (level) then zeroes everything here except state and
// flags, and renewed_i lets the session go on. load_bell_i, chan_bell_i, seed_bell_i are pulses; a
// bell that cannot be served is refused at once. Halt (on_fault = "halt"): a Shield that has
// stopped in a session rings automatically, before every other bell, and is busy on the channel
// until the session is closed.
// Statistics: cnt_i is the counter cnt_sel_o of set cnt_set_o up to three cycles later; map_i
// follows map_word_o in the same way.
`default_nettype none
module shef_io
  import shef_pkg::*;
  import shef_regs_pkg::*;
#(
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [(NRegions == 0 ? 1 : NRegions)-1:0] Regions = '0,
    parameter int unsigned NSets = 1,
    parameter bit Halt = 1'b0,
    parameter logic [7:0] AeadId = 8'd2
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             wipe_i,
    output logic                  begin_o,
    output logic                  end_o,
    input  wire logic             renew_i,
    input  wire logic             renewed_i,
    input  wire logic             renew_failed_i,
    // sequencer
    input  wire logic             ext_req_i,
    input  wire logic             ext_we_i,
    input  wire logic [11:0]      ext_addr_i,
    input  wire logic [7:0]       ext_wdata_i,
    output logic                  ext_ack_o,
    output logic [7:0]            ext_rdata_o,
    output logic                  event_o,
    output logic                  unit_wipe_o,
    input  wire logic             unit_wiped_i,
    // mailboxes
    output logic                  box_we_o,
    input  wire logic [7:0]       box_rdata_i,
    input  wire logic             load_bell_i,
    input  wire logic [31:0]      load_len_i,
    input  wire logic             chan_bell_i,
    input  wire logic             seed_bell_i,
    output logic                  seed_erase_o,
    output logic                  seed_open_o,
    output logic [31:0]           status_o,
    output logic [2:0]            state_o,
    output logic                  answer_o,
    // fault unit
    input  wire logic             stopped_i,
    input  wire fault_t           fault_i,
    input  wire logic [31:0]      fault_count_i,
    input  wire refusal_t         refusal_i,
    input  wire logic [31:0]      refusal_count_i,
    input  wire logic [MAX_REGIONS-1:0] region_fault_i,
    // engine sets
    output logic                  key_valid_o,
    input  wire logic             key_ready_i,
    output logic                  key_node_o,
    output logic [REGION_W-1:0]   region_o,
    output logic [255:0]          key_o,
    output logic                  cmd_valid_o,
    input  wire logic             cmd_ready_i,
    output set_cmd_e              cmd_o,
    input  wire logic             cmd_done_i,
    input  wire logic             cmd_err_i,
    output logic                  epoch_we_o,
    output logic [VERSION_W-1:0]  epoch_o,
    input  wire logic [VERSION_W-1:0] stat_epoch_i,
    input  wire logic [31:0]      stat_written_i,
    output logic [25:0]           map_word_o,
    input  wire logic [31:0]      map_i,
    output logic [1:0]            cnt_set_o,
    output logic [3:0]            cnt_sel_o,
    input  wire logic [47:0]      cnt_i,
    // accelerator registers
    output logic                  reg_start_o,
    output logic                  reg_write_o,
    output logic [15:0]           reg_addr_o,
    output logic [31:0]           reg_wdata_o,
    input  wire logic             reg_done_i,
    input  wire logic             reg_err_i,
    input  wire logic [31:0]      reg_rdata_i
);

  // ---- address map (the same names in shell-rtl/ucode/io.uasm) ----
  localparam logic [11:0] IO_EVENT = 12'h800;  // r: bit 0 seed, 1 load, 2 channel, 3 halt (alone)
  localparam logic [11:0] IO_STATE = 12'h801;  // rw
  localparam logic [11:0] IO_LOAD_DONE = 12'h802;  // w: 1 = refused
  localparam logic [11:0] IO_CHAN_DONE = 12'h803;  // w: 1 = refused
  localparam logic [11:0] IO_ANSWER = 12'h804;  // w: 1 = CHAN_RSP holds a response
  localparam logic [11:0] IO_SEED_DONE = 12'h805;  // w: erase the seed, clear the event
  localparam logic [11:0] IO_SNAP = 12'h806;  // w: latch the statement values
  // w: the session is over; never acknowledged, the wipe restarts the program
  localparam logic [11:0] IO_END = 12'h807;
  // w: wipe the crypto units, acknowledged when clear
  localparam logic [11:0] IO_UNIT_WIPE = 12'h808;
  localparam logic [11:0] IO_AEAD = 12'h809;  // r: HPKE AEAD id
  localparam logic [11:0] IO_LOAD_LEN = 12'h80a;  // r: two bytes
  localparam logic [11:0] IO_N_REGIONS = 12'h80c;  // r
  localparam logic [11:0] IO_STOPPED = 12'h80d;  // r
  localparam logic [11:0] IO_REGION = 12'h80e;  // rw: region of the registers below
  localparam logic [11:0] IO_KEY_GO = 12'h810;  // w: give KEY to the set; 1 = for the tree's nodes
  localparam logic [11:0] IO_EPOCH_GO = 12'h811;  // w: first epoch
  localparam logic [11:0] IO_CMD_GO = 12'h812;  // w: set_cmd_e; acknowledged when done
  localparam logic [11:0] IO_CMD_ERR = 12'h813;  // r
  localparam logic [11:0] IO_REG_GO = 12'h814;  // w: 1 = write; acknowledged when done
  localparam logic [11:0] IO_REG_ERR = 12'h815;  // r
  localparam logic [11:0] IO_KEY256 = 12'h816;  // r: the region's key has 256 bits
  // r: the register address is not a multiple of 4 below 64 KiB
  localparam logic [11:0] IO_REG_BAD = 12'h817;
  // r: the page of the written map begins past the region
  localparam logic [11:0] IO_MAP_BAD = 12'h818;
  localparam logic [11:0] IO_N_SETS = 12'h819;  // r
  localparam logic [11:0] IO_CNT_SET = 12'h81a;  // w: engine set of the statistics
  localparam logic [11:0] IO_CNT_SEL = 12'h81b;  // w: latch this counter; acknowledged when done
  localparam logic [6:0] IO_KEY = 7'h41;  // w: 0x820, 32 bytes
  localparam logic [8:0] IO_EPOCH = 9'h108;  // w: 0x840, 6 bytes
  localparam logic [9:0] IO_REG_ADDR = 10'h212;  // w: 0x848, 4 bytes, little-endian
  localparam logic [9:0] IO_REG_WDATA = 10'h213;  // w: 0x84c
  localparam logic [9:0] IO_REG_RDATA = 10'h214;  // r: 0x850
  localparam logic [8:0] IO_CNT = 9'h10b;  // r: 0x858, 6 bytes, little-endian
  localparam logic [6:0] IO_REGION_INFO = 7'h43;  // r: 0x860, 24 bytes
  localparam logic [11:0] IO_STAT = 12'h880;  // r: 40 bytes
  localparam logic [9:0] IO_MAP_PAGE = 10'h22c;  // w: 0x8b0, 4 bytes, little-endian
  localparam logic [11:0] IO_MAP = 12'h8c0;  // r: 48 bytes
  localparam logic [4:0] IO_KEYS = 5'h12;  // rw: 0x900, 128 bytes

  // ---- flags ----
  logic [2:0] state_q;
  logic seed_event_q, seed_erase_q, load_busy_q, load_refused_q, chan_busy_q, chan_refused_q,
      answer_q, halt_q, uncleared_q, end_q;
  logic [15:0] load_len_q;
  logic idle, halt;
  assign idle = !load_busy_q && !chan_busy_q;
  assign halt = Halt && stopped_i && idle && state_q == CTL_STATUS_STATE_KEYED;
  assign seed_open_o = !wipe_i && !seed_erase_q && idle &&
      (state_q == CTL_STATUS_STATE_EMPTY || state_q == CTL_STATUS_STATE_CLOSED);
  assign event_o = seed_event_q || load_busy_q || chan_busy_q;
  assign state_o = state_q;
  assign answer_o = answer_q;
  assign begin_o = seed_bell_i && seed_open_o;
  assign end_o = end_q;

  always_comb begin
    status_o = '0;
    status_o[CTL_STATUS_STATE_LSB+:3] = state_q;
    status_o[CTL_STATUS_STOPPED_LSB] = stopped_i;
    status_o[CTL_STATUS_LOAD_BUSY_LSB] = load_busy_q;
    status_o[CTL_STATUS_LOAD_REFUSED_LSB] = load_refused_q;
    status_o[CTL_STATUS_CHAN_BUSY_LSB] = chan_busy_q;
    status_o[CTL_STATUS_CHAN_REFUSED_LSB] = chan_refused_q;
    status_o[CTL_STATUS_CHAN_ANSWER_LSB] = answer_q;
    status_o[CTL_STATUS_UNCLEARED_LSB] = uncleared_q;
    status_o[CTL_STATUS_FAULT_KIND_LSB+:4] = fault_i.kind;
  end

  // ---- access ----
  typedef enum logic [3:0] {
    IO_IDLE,
    IO_ACK,
    IO_READ_WAIT,
    IO_CNT_WAIT,
    IO_KEY_WAIT,
    IO_CMD_WAIT,
    IO_CMD_RUN,
    IO_REG_RUN,
    IO_WIPE_WAIT,
    IO_OVER
  } io_state_e;

  io_state_e io_q;
  logic [1:0] wait_q;
  logic wipe_units_q;
  logic wr, io_start;
  logic [11:0] addr;
  assign addr = ext_addr_i;
  assign io_start = ext_req_i && io_q == IO_IDLE;
  assign wr = io_start && ext_we_i;
  assign ext_ack_o = io_q == IO_ACK;
  assign box_we_o = wr && !addr[11];

  logic [REGION_W-1:0] region_q;
  logic [255:0] key_q;
  logic [VERSION_W-1:0] epoch_q;
  logic epoch_we_q, key_valid_q, key_node_q, cmd_valid_q, cmd_err_q, reg_start_q, reg_write_q;
  set_cmd_e cmd_q;
  logic [31:0] reg_addr_q, reg_wdata_q, map_page_q;
  logic [319:0] snap_q;
  logic [1:0] cnt_set_q;
  logic [3:0] cnt_sel_q;
  logic [47:0] cnt_q;
  logic [127:0][7:0] keys_q;

  assign region_o = region_q;
  assign key_o = key_q;
  assign key_valid_o = key_valid_q;
  assign key_node_o = key_node_q;
  assign cnt_set_o = cnt_set_q;
  assign cnt_sel_o = cnt_sel_q;
  assign epoch_o = epoch_q;
  assign epoch_we_o = epoch_we_q;
  assign cmd_valid_o = cmd_valid_q;
  assign cmd_o = cmd_q;
  assign reg_start_o = reg_start_q;
  assign reg_write_o = reg_write_q;
  assign reg_addr_o = reg_addr_q[15:0];
  assign reg_wdata_o = reg_wdata_q;
  assign seed_erase_o = seed_erase_q;
  assign unit_wipe_o = wipe_units_q;

  // Region values, little-endian as in the statement.
  region_cfg_t cfg;
  logic [63:0] chunks;
  logic [191:0] region_info;
  always_comb begin
    cfg = '0;
    for (int i = 0; i < int'(NRegions); i++) if (region_q == REGION_W'(i)) cfg = Regions[i];
    chunks = cfg.size >> cfg.chunk_log2;
    region_info = {64'(chunks), 16'd0, stat_epoch_i, stat_written_i, 8'd0, 7'd0,
        region_fault_i[region_q], 4'd0, cfg.chunk_log2, 5'd0, cfg.mode};
  end

  // Written map: byte j of a page is byte j mod 4 of word 12 * page + j / 4.
  logic [35:0] map_word;
  assign map_word = {4'd0, map_page_q} * 36'd12 + {32'd0, addr[5:2]};
  logic map_in_range;
  assign map_in_range = {23'd0, map_word, 5'd0} < chunks;
  logic [41:0] map_first;
  assign map_first = {10'd0, map_page_q} * 42'd384;
  assign map_word_o = map_word[25:0];

  logic [7:0] rdata;
  logic [11:0] stat_off, map_off;
  assign stat_off = addr - IO_STAT;
  assign map_off = addr - IO_MAP;
  always_comb begin
    rdata = 8'd0;
    if (addr == IO_EVENT) rdata = halt_q ? 8'd8 : {5'd0, chan_busy_q, load_busy_q, seed_event_q};
    if (addr == IO_STATE) rdata = {5'd0, state_q};
    if (addr == IO_AEAD) rdata = AeadId;
    if (addr == IO_LOAD_LEN) rdata = load_len_q[15:8];
    if (addr == IO_LOAD_LEN + 12'd1) rdata = load_len_q[7:0];
    if (addr == IO_N_REGIONS) rdata = 8'(NRegions);
    if (addr == IO_STOPPED) rdata = {7'd0, stopped_i};
    if (addr == IO_REGION) rdata = {4'd0, region_q};
    if (addr == IO_CMD_ERR) rdata = {7'd0, cmd_err_q};
    if (addr == IO_REG_ERR) rdata = {7'd0, reg_err_i};
    if (addr == IO_KEY256) rdata = {7'd0, cfg.key256};
    if (addr == IO_REG_BAD) rdata = {7'd0, reg_addr_q[31:16] != 16'd0 || reg_addr_q[1:0] != 2'd0};
    if (addr == IO_MAP_BAD) rdata = {7'd0, {22'd0, map_first} >= chunks};
    if (addr == IO_N_SETS) rdata = 8'(NSets);
    if (addr[11:3] == IO_CNT && addr[2:0] < 3'd6) rdata = cnt_q[{addr[2:0], 3'd0}+:8];
    if (addr[11:2] == IO_REG_RDATA) rdata = reg_rdata_i[{addr[1:0], 3'd0}+:8];
    if (addr[11:5] == IO_REGION_INFO && addr[4:0] < 5'd24)
      rdata = region_info[{addr[4:0], 3'd0}+:8];
    if (addr >= IO_STAT && stat_off < 12'd40) rdata = snap_q[{stat_off[5:0], 3'd0}+:8];
    if (addr >= IO_MAP && map_off < 12'd48)
      rdata = map_in_range ? map_i[{addr[1:0], 3'd0}+:8] : 8'd0;
    if (addr[11:7] == IO_KEYS) rdata = keys_q[addr[6:0]];
  end

  logic box_q;  // the byte comes from a mailbox
  logic [7:0] rdata_q;
  assign ext_rdata_o = box_q ? box_rdata_i : rdata_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || wipe_i) begin
      state_q <= CTL_STATUS_STATE_SCRUB;
      seed_event_q <= 1'b0;
      load_busy_q <= 1'b0;
      load_refused_q <= 1'b0;
      chan_busy_q <= 1'b0;
      chan_refused_q <= 1'b0;
      answer_q <= 1'b0;
      halt_q <= 1'b0;
      uncleared_q <= 1'b0;
      end_q <= 1'b0;
      load_len_q <= '0;
      io_q <= IO_IDLE;
      wait_q <= '0;
      wipe_units_q <= 1'b0;
      region_q <= '0;
      key_q <= '0;
      epoch_q <= '0;
      epoch_we_q <= 1'b0;
      key_valid_q <= 1'b0;
      key_node_q <= 1'b0;
      cmd_valid_q <= 1'b0;
      cmd_err_q <= 1'b0;
      cmd_q <= SET_FLUSH;
      reg_start_q <= 1'b0;
      reg_write_q <= 1'b0;
      reg_addr_q <= '0;
      reg_wdata_q <= '0;
      map_page_q <= '0;
      snap_q <= '0;
      cnt_set_q <= '0;
      cnt_sel_q <= '0;
      cnt_q <= '0;
      keys_q <= '0;
      seed_erase_q <= 1'b0;
      rdata_q <= '0;
      box_q <= 1'b0;
    end else begin
      epoch_we_q <= 1'b0;
      reg_start_q <= 1'b0;
      end_q <= 1'b0;
      seed_erase_q <= 1'b0;

      // doorbells
      if (load_bell_i && idle) begin
        load_refused_q <= 1'b0;
        if (state_q == CTL_STATUS_STATE_FRESH && load_len_i <= 32'd1024) begin
          load_busy_q <= 1'b1;
          load_len_q <= load_len_i[15:0];
        end else load_refused_q <= 1'b1;
      end
      if (halt) begin
        chan_refused_q <= 1'b0;
        chan_busy_q <= 1'b1;
        halt_q <= 1'b1;
      end else if (chan_bell_i && idle) begin
        chan_refused_q <= 1'b0;
        if (state_q == CTL_STATUS_STATE_KEYED) chan_busy_q <= 1'b1;
        else chan_refused_q <= 1'b1;
      end
      if (begin_o) begin
        state_q <= CTL_STATUS_STATE_DERIVE;
        answer_q <= 1'b0;
        load_refused_q <= 1'b0;
        chan_refused_q <= 1'b0;
        uncleared_q <= 1'b0;
      end
      if (renewed_i) begin
        if (state_q != CTL_STATUS_STATE_DERIVE) begin
          // the last message is shown when nothing of the session is left
          answer_q <= 1'b1;
          chan_busy_q <= 1'b0;
          halt_q <= 1'b0;
        end else if (renew_failed_i) begin
          state_q <= CTL_STATUS_STATE_EMPTY;
          seed_erase_q <= 1'b1;
          uncleared_q <= 1'b1;
        end else seed_event_q <= 1'b1;
      end

      unique case (io_q)
        IO_IDLE: begin
          if (ext_req_i) begin
            io_q <= IO_ACK;
            rdata_q <= ext_we_i ? 8'd0 : rdata;
            box_q <= !addr[11] && !ext_we_i;
          end
          if (ext_req_i && !ext_we_i && addr >= IO_MAP && map_off < 12'd48) begin
            io_q <= IO_READ_WAIT;
            wait_q <= 2'd3;
          end
          if (wr) begin
            if (addr == IO_STATE) state_q <= ext_wdata_i[2:0];
            if (addr == IO_LOAD_DONE) begin
              load_busy_q <= 1'b0;
              load_refused_q <= ext_wdata_i[0];
            end
            if (addr == IO_CHAN_DONE) begin
              chan_busy_q <= 1'b0;
              halt_q <= 1'b0;
              chan_refused_q <= ext_wdata_i[0];
            end
            if (addr == IO_ANSWER) answer_q <= ext_wdata_i[0];
            if (addr == IO_SEED_DONE) begin
              seed_event_q <= 1'b0;
              seed_erase_q <= 1'b1;
            end
            if (addr == IO_SNAP)
              snap_q <= {
                refusal_i.addr,
                16'd0, fault_i.version,
                24'd0, fault_i.chunk,
                16'd0, refusal_i.region, 4'd0, refusal_i.kind,
                refusal_count_i,
                fault_count_i,
                fault_i.region, 4'd0, fault_i.kind, 7'd0, stopped_i, 5'd0, state_q
              };
            if (addr == IO_END) begin
              state_q <= CTL_STATUS_STATE_CLOSED;
              chan_refused_q <= 1'b0;
              end_q <= 1'b1;
              io_q <= IO_OVER;
            end
            if (addr == IO_UNIT_WIPE) begin
              wipe_units_q <= 1'b1;
              io_q <= IO_WIPE_WAIT;
            end
            if (addr == IO_REGION) region_q <= ext_wdata_i[REGION_W-1:0];
            if (addr == IO_KEY_GO) begin
              key_valid_q <= 1'b1;
              key_node_q <= ext_wdata_i[0];
              io_q <= IO_KEY_WAIT;
            end
            if (addr == IO_EPOCH_GO) epoch_we_q <= 1'b1;
            if (addr == IO_CMD_GO) begin
              cmd_valid_q <= 1'b1;
              cmd_q <= set_cmd_e'(ext_wdata_i[1:0]);
              io_q <= IO_CMD_WAIT;
            end
            if (addr == IO_CNT_SET) cnt_set_q <= ext_wdata_i[1:0];
            if (addr == IO_CNT_SEL) begin
              cnt_sel_q <= ext_wdata_i[3:0];
              io_q <= IO_CNT_WAIT;
              wait_q <= 2'd3;
            end
            if (addr == IO_REG_GO) begin
              reg_start_q <= 1'b1;
              reg_write_q <= ext_wdata_i[0];
              io_q <= IO_REG_RUN;
            end
            if (addr[11:5] == IO_KEY) key_q[8'd255-{addr[4:0], 3'd0}-:8] <= ext_wdata_i;
            if (addr[11:3] == IO_EPOCH && addr[2:0] < 3'd6)
              epoch_q[6'd47-{addr[2:0], 3'd0}-:8] <= ext_wdata_i;
            if (addr[11:2] == IO_REG_ADDR) reg_addr_q[{addr[1:0], 3'd0}+:8] <= ext_wdata_i;
            if (addr[11:2] == IO_REG_WDATA) reg_wdata_q[{addr[1:0], 3'd0}+:8] <= ext_wdata_i;
            if (addr[11:2] == IO_MAP_PAGE) map_page_q[{addr[1:0], 3'd0}+:8] <= ext_wdata_i;
            if (addr[11:7] == IO_KEYS) keys_q[addr[6:0]] <= ext_wdata_i;
          end
        end
        IO_READ_WAIT: begin
          wait_q <= wait_q - 1'b1;
          if (wait_q == '0) begin
            rdata_q <= rdata;
            io_q <= IO_ACK;
          end
        end
        IO_CNT_WAIT: begin
          wait_q <= wait_q - 1'b1;
          if (wait_q == '0) begin
            cnt_q <= cnt_i;
            io_q <= IO_ACK;
          end
        end
        IO_KEY_WAIT:
        if (key_ready_i) begin
          key_valid_q <= 1'b0;
          key_q <= '0;
          io_q <= IO_ACK;
        end
        IO_CMD_WAIT:
        if (cmd_ready_i) begin
          cmd_valid_q <= 1'b0;
          if (cmd_done_i) begin
            cmd_err_q <= cmd_err_i;
            io_q <= IO_ACK;
          end else io_q <= IO_CMD_RUN;
        end
        IO_CMD_RUN:
        if (cmd_done_i) begin
          cmd_err_q <= cmd_err_i;
          io_q <= IO_ACK;
        end
        IO_REG_RUN: if (reg_done_i) io_q <= IO_ACK;
        IO_WIPE_WAIT:
        if (unit_wiped_i) begin
          wipe_units_q <= 1'b0;
          io_q <= IO_ACK;
        end
        IO_OVER: ;  // until the wipe comes
        default: io_q <= IO_IDLE;  // IO_ACK
      endcase

      // session data other than the state: as in a wipe
      if (renew_i) begin
        load_len_q <= '0;
        io_q <= IO_IDLE;
        wait_q <= '0;
        wipe_units_q <= 1'b0;
        region_q <= '0;
        key_q <= '0;
        epoch_q <= '0;
        epoch_we_q <= 1'b0;
        key_valid_q <= 1'b0;
        key_node_q <= 1'b0;
        cmd_valid_q <= 1'b0;
        cmd_err_q <= 1'b0;
        cmd_q <= SET_FLUSH;
        reg_start_q <= 1'b0;
        reg_write_q <= 1'b0;
        reg_addr_q <= '0;
        reg_wdata_q <= '0;
        map_page_q <= '0;
        snap_q <= '0;
        cnt_set_q <= '0;
        cnt_sel_q <= '0;
        cnt_q <= '0;
        keys_q <= '0;
        rdata_q <= '0;
        box_q <= 1'b0;
      end
    end
  end

  logic unused;
  assign unused = ^{cfg, map_word[35:26], map_off[11:6], stat_off[11:6]};

endmodule
`default_nettype wire
