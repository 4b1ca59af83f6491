// shef_system_gate with a mailbox: one write and one read at a time. Each gets one response, at
// once if the gate is closed. An access to the mailbox goes only there. One to the design goes only
// there, and only while the gate is open. Address and data go once and unchanged. OKAY comes only
// from the slave, with its data; an error carries zero. Once the gate has closed, an earlier access
// gets an error, and nothing of the design reaches the port. A design that leaves an access
// unanswered for Patience cycles, here 3, counts as gone until the gate closes. AW, W and AR follow
// the handshake rules towards the mailbox always and towards the design while it is there; B and R
// towards the port.
// After drop_i a gate without a mailbox has nothing in flight, and it never accesses a mailbox.
// The master and the slaves may withdraw an unmatched valid or ready: on a slower clock they are
// there in some cycles only. Assumed: a slave responds only to accesses it has accepted, to a write
// after its data; the design does so after each opening, and does anything while the gate is
// closed.
`default_nettype none
module system_gate
  import shef_pkg::*;
(
    input wire            clk_i,
    input wire            rst_ni,
    input wire            open_i,
    input wire            drop_i,
    input wire axil_req_t req_i,
    input wire axil_rsp_t design_rsp_i,
    input wire axil_rsp_t mailbox_rsp_i
);
  axil_rsp_t rsp;
  axil_rsp_t [1:0] rsp_s;
  axil_req_t [1:0] req;
  assign rsp_s = {mailbox_rsp_i, design_rsp_i};
  localparam int unsigned Patience = 3;
  shef_system_gate #(.Patience(Patience)) dut (
      .clk_i, .rst_ni, .open_i, .drop_i(1'b0), .req_i, .rsp_o(rsp), .design_req_o(req[0]),
      .design_rsp_i, .mailbox_req_o(req[1]), .mailbox_rsp_i
  );
  axi_channel #(.W(2)) u_b (.clk_i, .rst_ni, .valid_i(rsp.b_valid), .ready_i(req_i.b_ready),
      .data_i(rsp.b_resp), .break_i(1'b0));
  axi_channel #(.W(34)) u_r (
      .clk_i, .rst_ni, .valid_i(rsp.r_valid), .ready_i(req_i.r_ready),
      .data_i({rsp.r_resp, rsp.r_data}), .break_i(1'b0)
  );
  // the same without a mailbox, with a master that may drop its accesses
  axil_rsp_t krn_rsp;
  axil_req_t krn_req, no_req;
  shef_system_gate #(.Mailbox(1'b0)) u_drop (
      .clk_i, .rst_ni, .open_i, .drop_i, .req_i, .rsp_o(krn_rsp), .design_req_o(krn_req),
      .design_rsp_i, .mailbox_req_o(no_req), .mailbox_rsp_i
  );
  logic dropped;
  always_ff @(posedge clk_i) dropped <= rst_ni && drop_i;

  // per slave: the design is a new one after the gate was closed, and gone after a missing response
  logic mute, there;
  logic [1:0] on;
  assign there = open_i && !mute;
  assign on = {1'b1, there};
  logic [1:0] aw_take, w_take, b_take, ar_take, r_take;
  for (genvar s = 0; s < 2; s++) begin : g_slave
    axi_channel #(.W(16)) u_aw (
        .clk_i, .rst_ni(rst_ni && on[s]), .valid_i(req[s].aw_valid), .ready_i(rsp_s[s].aw_ready),
        .data_i(req[s].aw_addr), .break_i(1'b0)
    );
    axi_channel #(.W(36)) u_w (
        .clk_i, .rst_ni(rst_ni && on[s]), .valid_i(req[s].w_valid), .ready_i(rsp_s[s].w_ready),
        .data_i({req[s].w_data, req[s].w_strb}), .break_i(1'b0)
    );
    axi_channel #(.W(16)) u_ar (
        .clk_i, .rst_ni(rst_ni && on[s]), .valid_i(req[s].ar_valid), .ready_i(rsp_s[s].ar_ready),
        .data_i(req[s].ar_addr), .break_i(1'b0)
    );
    assign aw_take[s] = req[s].aw_valid && rsp_s[s].aw_ready;
    assign w_take[s] = req[s].w_valid && rsp_s[s].w_ready;
    assign b_take[s] = rsp_s[s].b_valid && req[s].b_ready;
    assign ar_take[s] = req[s].ar_valid && rsp_s[s].ar_ready;
    assign r_take[s] = rsp_s[s].r_valid && req[s].r_ready;
  end

  logic init = 1'b0;
  // accesses that each slave has accepted and not answered, since it is on
  logic [1:0][1:0] addr_open, data_open, read_open;
  // accesses that the port has accepted and not answered
  logic aw_in, w_in, ar_in;
  logic [15:0] aw_addr, ar_addr;
  logic [35:0] w_word;
  // the slave's response, if any
  logic b_said, r_said;
  logic [1:0] b_word, r_resp;
  logic [31:0] r_word;
  logic shut_wr, shut_rd;  // the gate was closed since the access was complete
  logic [2:0] closed_for;
  logic aw_mail, ar_mail;
  assign aw_mail = aw_addr[15:14] == 2'b11;
  assign ar_mail = ar_addr[15:14] == 2'b11;
  // cycles that a complete access has waited for the design
  logic [2:0] wr_age, rd_age;
  logic wr_waits, rd_waits;
  assign wr_waits = aw_in && w_in && !aw_mail && !rsp.b_valid;
  assign rd_waits = ar_in && !ar_mail && !rsp.r_valid;
  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    if (!init) assume (!rst_ni);
    for (int s = 0; s < 2; s++) begin
      if (!rst_ni || !on[s]) begin
        addr_open[s] <= '0;
        data_open[s] <= '0;
        read_open[s] <= '0;
      end else begin
        addr_open[s] <= addr_open[s] + 2'(aw_take[s]) - 2'(b_take[s]);
        data_open[s] <= data_open[s] + 2'(w_take[s]) - 2'(b_take[s]);
        read_open[s] <= read_open[s] + 2'(ar_take[s]) - 2'(r_take[s]);
      end
    end
    if (!rst_ni) begin
      aw_in <= 1'b0;
      w_in <= 1'b0;
      ar_in <= 1'b0;
      b_said <= 1'b0;
      r_said <= 1'b0;
      shut_wr <= 1'b0;
      shut_rd <= 1'b0;
      closed_for <= '0;
      mute <= 1'b0;
      wr_age <= '0;
      rd_age <= '0;
    end else begin
      wr_age <= wr_waits ? wr_age + 1'b1 : '0;
      rd_age <= rd_waits ? rd_age + 1'b1 : '0;
      mute <= open_i && (mute || (wr_waits && wr_age == 3'(Patience + 1)) || (rd_waits && rd_age == 3'(Patience + 1)));
      if (there) closed_for <= '0;
      else if (closed_for != '1) closed_for <= closed_for + 1'b1;
      if (req_i.aw_valid && rsp.aw_ready) begin
        aw_in <= 1'b1;
        aw_addr <= req_i.aw_addr;
      end
      if (req_i.w_valid && rsp.w_ready) begin
        w_in <= 1'b1;
        w_word <= {req_i.w_data, req_i.w_strb};
      end
      if (req_i.ar_valid && rsp.ar_ready) begin
        ar_in <= 1'b1;
        ar_addr <= req_i.ar_addr;
      end
      if (b_take[1] || (b_take[0] && there && !shut_wr)) begin
        b_said <= 1'b1;
        b_word <= b_take[1] ? rsp_s[1].b_resp : rsp_s[0].b_resp;
      end
      if (r_take[1] || (r_take[0] && there && !shut_rd)) begin
        r_said <= 1'b1;
        r_resp <= r_take[1] ? rsp_s[1].r_resp : rsp_s[0].r_resp;
        r_word <= r_take[1] ? rsp_s[1].r_data : rsp_s[0].r_data;
      end
      shut_wr <= aw_in && w_in && (shut_wr || (!there && !b_said));
      shut_rd <= ar_in && (shut_rd || (!there && !r_said));
      if (rsp.b_valid && req_i.b_ready) begin
        aw_in <= 1'b0;
        w_in <= 1'b0;
        b_said <= 1'b0;
        shut_wr <= 1'b0;
      end
      if (rsp.r_valid && req_i.r_ready) begin
        ar_in <= 1'b0;
        r_said <= 1'b0;
        shut_rd <= 1'b0;
      end
    end
  end
  always_comb begin
    for (int s = 0; s < 2; s++) begin
      if (on[s]) begin
        if (rsp_s[s].b_valid) assume (addr_open[s] != '0 && data_open[s] != '0);
        if (rsp_s[s].r_valid) assume (read_open[s] != '0);
      end
    end
  end
  always_comb begin
    if (init && rst_ni) begin
      if (dropped) begin
        assert (krn_rsp.aw_ready && krn_rsp.w_ready && krn_rsp.ar_ready);
        assert (!krn_rsp.b_valid && !krn_rsp.r_valid && krn_req == '0);
      end
      assert (no_req == '0);
      // one at a time, answered once
      assert (rsp.aw_ready == !aw_in && rsp.w_ready == !w_in && rsp.ar_ready == !ar_in);
      if (rsp.b_valid) assert (aw_in && w_in);
      if (rsp.r_valid) assert (ar_in);
      // only to the slave of its address, unchanged and whole
      for (int s = 0; s < 2; s++) begin
        if (req[s].aw_valid || req[s].w_valid)
          assert (aw_in && w_in && aw_mail == 1'(s) && !rsp.b_valid);
        if (req[s].aw_valid) assert (addr_open[s] == '0 && req[s].aw_addr == aw_addr);
        if (req[s].w_valid)
          assert (data_open[s] == '0 && {req[s].w_data, req[s].w_strb} == w_word);
        if (req[s].ar_valid)
          assert (ar_in && ar_mail == 1'(s) && !rsp.r_valid && read_open[s] == '0 &&
              req[s].ar_addr == ar_addr);
        if (on[s]) assert (addr_open[s] <= 2'd1 && data_open[s] <= 2'd1 && read_open[s] <= 2'd1);
      end
      // nothing begins at the design while the gate is closed
      if (closed_for != '0) assert (!req[0].aw_valid && !req[0].w_valid && !req[0].ar_valid);
      // the response is that of the slave, or an error with zero
      if (rsp.b_valid) assert (rsp.b_resp == (b_said ? b_word : AXI_SLVERR));
      if (rsp.r_valid) begin
        assert (rsp.r_resp == (r_said ? r_resp : AXI_SLVERR));
        assert (rsp.r_data == (r_said && r_resp == AXI_OKAY ? r_word : 32'd0));
        if (ar_mail) assert (r_said);
      end else assert (rsp.r_data == '0);
      if (rsp.b_valid && aw_mail) assert (b_said);
      // nothing waits for a missing design
      if (!aw_mail && shut_wr) assert (rsp.b_valid);
      if (!ar_mail && shut_rd) assert (rsp.r_valid);
      // nor longer than a bound for a present one
      assert (wr_age <= 3'(Patience + 3) && rd_age <= 3'(Patience + 3));
      // supporting invariants
      assert (dut.mute_q == mute);
      if (dut.wr_q == 2'd1 && !aw_mail) assert (wr_age == 3'(dut.wr_wait_q) + 3'd1);
      if (dut.rd_q == 2'd1 && !ar_mail) assert (rd_age == 3'(dut.rd_wait_q) + 3'd1);
      if (dut.wr_q == 2'd0) assert (wr_age == '0);
      if (dut.rd_q == 2'd0) assert (rd_age == '0);
      assert (dut.aw_full_q == aw_in && dut.w_full_q == w_in && dut.ar_full_q == ar_in);
      assert ((dut.wr_q == 2'd2) == rsp.b_valid && (dut.rd_q == 2'd2) == rsp.r_valid);
      assert (dut.wr_q != 2'd3 && dut.rd_q != 2'd3);
      if (dut.wr_q != 2'd0) assert (aw_in && w_in);
      if (dut.rd_q != 2'd0) assert (ar_in);
      if (aw_in) assert (dut.aw_addr_q == aw_addr);
      if (w_in) assert ({dut.w_data_q, dut.w_strb_q} == w_word);
      else assert (dut.w_data_q == '0);
      if (ar_in) assert (dut.ar_addr_q == ar_addr);
      if (dut.wr_q == 2'd1) assert (dut.b_resp_q == AXI_SLVERR);
      if (dut.rd_q == 2'd1) assert (dut.r_resp_q == AXI_SLVERR);
      if (dut.wr_q != 2'd1) assert (!dut.aw_due_q && !dut.w_due_q);
      if (dut.rd_q != 2'd1) assert (!dut.ar_due_q);
      if (dut.wr_q != 2'd2) assert (!b_said);
      if (dut.rd_q != 2'd2) assert (!r_said);
      if (dut.wr_q == 2'd1 && !aw_mail) assert (!shut_wr && closed_for == '0);
      if (dut.rd_q == 2'd1 && !ar_mail) assert (!shut_rd && closed_for == '0);
      for (int s = 0; s < 2; s++) begin
        if (s == 1 || (on[0] && closed_for == '0)) begin
          assert (addr_open[s] == 2'(dut.wr_q == 2'd1 && aw_mail == 1'(s) && !dut.aw_due_q));
          assert (data_open[s] == 2'(dut.wr_q == 2'd1 && aw_mail == 1'(s) && !dut.w_due_q));
          assert (read_open[s] == 2'(dut.rd_q == 2'd1 && ar_mail == 1'(s) && !dut.ar_due_q));
        end
      end
      if (closed_for != '0) assert (addr_open[0] == '0 && data_open[0] == '0 && read_open[0] == '0);
    end
    cover (init && rst_ni && rsp.b_valid && aw_mail && !open_i && rsp.b_resp == AXI_OKAY);
    cover (init && rst_ni && rsp.b_valid && !aw_mail && rsp.b_resp == AXI_OKAY);
    cover (init && rst_ni && rsp.r_valid && !ar_mail && r_said && rsp.r_data == 32'h1234_5678);
    cover (init && rst_ni && rsp.r_valid && !ar_mail && shut_rd && open_i);
    cover (init && rst_ni && mute && open_i && rsp.r_valid && !ar_mail && rsp.b_valid && aw_mail);
    cover (init && rst_ni && shut_wr && rsp.b_valid && !aw_mail && read_open[1] == 2'd1);
  end
endmodule
`default_nettype wire
