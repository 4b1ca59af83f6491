// Gate of an AXI4-Lite port to the design: passes accesses while it is open, and answers them with
// an error while it is closed. With Mailbox, addresses from 0xC000 on go to the mailbox, open or
// not.
//
// Port (req_i, rsp_o): one write and one read at a time, AW and W in any order, every access gets
// one response, which is stable until it is accepted. The gate receives a complete access before it
// forwards it, and the response before it returns it: nothing of the port is combinational. If
// open_i falls during an access to the design, the access gets SLVERR and zero at once, and the
// gate ignores the design's later response: the design is reset before open_i rises again. An
// access that the design does not answer within Patience cycles ends in the same way. From then on
// the gate sends the design nothing until open_i falls, so that a dead design never blocks the
// mailbox.
// drop_i (pulse): the master has dropped its accesses, and so does the gate.
// Latency in addition to that of the slave: three cycles.
`default_nettype none
module shef_system_gate
  import shef_pkg::*;
#(
    parameter bit Mailbox = 1'b1,
    parameter int unsigned Patience = 1 << 12
) (
    input  wire logic      clk_i,
    input  wire logic      rst_ni,
    input  wire logic      open_i,
    input  wire logic      drop_i,
    input  wire axil_req_t req_i,
    output axil_rsp_t      rsp_o,
    output axil_req_t      design_req_o,
    input  wire axil_rsp_t design_rsp_i,
    output axil_req_t      mailbox_req_o,
    input  wire axil_rsp_t mailbox_rsp_i
);

  typedef enum logic [1:0] {
    G_TAKE,   // waits for an access
    G_ASK,    // the slave has the access, or gets it
    G_ANSWER
  } gate_e;

  localparam int unsigned WaitBits = $clog2(Patience + 2);
  logic mute_q;  // the design left an access unanswered since it is there
  wire there = open_i && !mute_q;

  // ---- writes ----
  gate_e wr_q;
  logic [WaitBits-1:0] wr_wait_q;  // cycles that the slave has had the access
  logic aw_full_q, w_full_q, aw_due_q, w_due_q;
  logic [AXIL_ADDR_W-1:0] aw_addr_q;
  logic [31:0] w_data_q;
  logic [3:0] w_strb_q;
  logic [1:0] b_resp_q;
  wire wr_mailbox = Mailbox && aw_addr_q[15:14] == 2'b11;
  wire wr_shut = !wr_mailbox && !there;
  wire wr_late = wr_q == G_ASK && !wr_mailbox && wr_wait_q == WaitBits'(Patience);
  logic aw_ready, w_ready, b_valid;
  logic [1:0] b_resp;
  assign aw_ready = wr_mailbox ? mailbox_rsp_i.aw_ready : design_rsp_i.aw_ready;
  assign w_ready = wr_mailbox ? mailbox_rsp_i.w_ready : design_rsp_i.w_ready;
  assign b_valid = wr_mailbox ? mailbox_rsp_i.b_valid : design_rsp_i.b_valid;
  assign b_resp = wr_mailbox ? mailbox_rsp_i.b_resp : design_rsp_i.b_resp;

  // ---- reads ----
  gate_e rd_q;
  logic [WaitBits-1:0] rd_wait_q;
  logic ar_full_q, ar_due_q;
  logic [AXIL_ADDR_W-1:0] ar_addr_q;
  logic [31:0] r_data_q;
  logic [1:0] r_resp_q;
  wire rd_mailbox = Mailbox && ar_addr_q[15:14] == 2'b11;
  wire rd_shut = !rd_mailbox && !there;
  wire rd_late = rd_q == G_ASK && !rd_mailbox && rd_wait_q == WaitBits'(Patience);
  logic ar_ready, r_valid;
  logic [1:0] r_resp;
  logic [31:0] r_data;
  assign ar_ready = rd_mailbox ? mailbox_rsp_i.ar_ready : design_rsp_i.ar_ready;
  assign r_valid = rd_mailbox ? mailbox_rsp_i.r_valid : design_rsp_i.r_valid;
  assign r_resp = rd_mailbox ? mailbox_rsp_i.r_resp : design_rsp_i.r_resp;
  assign r_data = rd_mailbox ? mailbox_rsp_i.r_data : design_rsp_i.r_data;

  assign rsp_o = '{
      aw_ready: !aw_full_q,
      w_ready: !w_full_q,
      b_resp: b_resp_q,
      b_valid: wr_q == G_ANSWER,
      ar_ready: !ar_full_q,
      r_data: r_data_q,
      r_resp: r_resp_q,
      r_valid: rd_q == G_ANSWER
  };

  axil_req_t [1:0] ask;
  assign design_req_o = ask[0];
  assign mailbox_req_o = ask[1];
  for (genvar s = 0; s < 2; s++) begin : g_slave
    wire wr_mine = wr_q == G_ASK && wr_mailbox == 1'(s);
    wire rd_mine = rd_q == G_ASK && rd_mailbox == 1'(s);
    assign ask[s] = '{
        aw_addr: wr_mine ? aw_addr_q : '0,
        aw_valid: wr_mine && aw_due_q,
        w_data: wr_mine ? w_data_q : '0,
        w_strb: wr_mine ? w_strb_q : '0,
        w_valid: wr_mine && w_due_q,
        b_ready: wr_mine,
        ar_addr: rd_mine ? ar_addr_q : '0,
        ar_valid: rd_mine && ar_due_q,
        r_ready: rd_mine
    };
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || drop_i || !open_i) mute_q <= 1'b0;
    else if (wr_late || rd_late) mute_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || drop_i) begin
      wr_q <= G_TAKE;
      aw_full_q <= 1'b0;
      w_full_q <= 1'b0;
      aw_due_q <= 1'b0;
      w_due_q <= 1'b0;
      aw_addr_q <= '0;
      w_data_q <= '0;
      w_strb_q <= '0;
      b_resp_q <= AXI_OKAY;
      wr_wait_q <= '0;
    end else begin
      wr_wait_q <= wr_q == G_ASK && !wr_mailbox ? wr_wait_q + 1'b1 : '0;
      if (req_i.aw_valid && !aw_full_q) begin
        aw_full_q <= 1'b1;
        aw_addr_q <= req_i.aw_addr;
      end
      if (req_i.w_valid && !w_full_q) begin
        w_full_q <= 1'b1;
        w_data_q <= req_i.w_data;
        w_strb_q <= req_i.w_strb;
      end
      unique case (wr_q)
        G_TAKE:
        if (aw_full_q && w_full_q) begin
          wr_q <= wr_shut ? G_ANSWER : G_ASK;
          b_resp_q <= AXI_SLVERR;
          aw_due_q <= !wr_shut;
          w_due_q <= !wr_shut;
        end
        G_ASK: begin
          if (aw_ready) aw_due_q <= 1'b0;
          if (w_ready) w_due_q <= 1'b0;
          if (wr_shut) begin
            wr_q <= G_ANSWER;
            aw_due_q <= 1'b0;
            w_due_q <= 1'b0;
          end else if (b_valid) begin
            wr_q <= G_ANSWER;
            b_resp_q <= b_resp;
          end
        end
        default:
        if (req_i.b_ready) begin
          wr_q <= G_TAKE;
          aw_full_q <= 1'b0;
          w_full_q <= 1'b0;
          w_data_q <= '0;
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || drop_i) begin
      rd_q <= G_TAKE;
      ar_full_q <= 1'b0;
      ar_due_q <= 1'b0;
      ar_addr_q <= '0;
      r_data_q <= '0;
      r_resp_q <= AXI_OKAY;
      rd_wait_q <= '0;
    end else begin
      rd_wait_q <= rd_q == G_ASK && !rd_mailbox ? rd_wait_q + 1'b1 : '0;
      if (req_i.ar_valid && !ar_full_q) begin
        ar_full_q <= 1'b1;
        ar_addr_q <= req_i.ar_addr;
      end
      unique case (rd_q)
        G_TAKE:
        if (ar_full_q) begin
          rd_q <= rd_shut ? G_ANSWER : G_ASK;
          r_resp_q <= AXI_SLVERR;
          ar_due_q <= !rd_shut;
        end
        G_ASK: begin
          if (ar_ready) ar_due_q <= 1'b0;
          if (rd_shut) begin
            rd_q <= G_ANSWER;
            ar_due_q <= 1'b0;
          end else if (r_valid) begin
            rd_q <= G_ANSWER;
            r_resp_q <= r_resp;
            r_data_q <= r_resp == AXI_OKAY ? r_data : 32'd0;
          end
        end
        default:
        if (req_i.r_ready) begin
          rd_q <= G_TAKE;
          ar_full_q <= 1'b0;
          r_data_q <= '0;
        end
      endcase
    end
  end

endmodule
`default_nettype wire
