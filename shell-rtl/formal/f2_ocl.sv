// shef_f2_ocl against any shell that keeps AXI's rules and any core: every access is answered once,
// in order and unchanged until it is taken, at most Patience cycles and a few more after its VALID,
// whatever the core does; a master that takes answers at once never waits longer, also for a read and a
// write at the same time. Nothing is answered that was not asked for. The answer of the core that
// the shell receives belongs to its own access: a late one never reaches a later access. Without a
// core no access leaves, and the medium is written only while it is open. START and RESET are commands only for
// their own write.
`default_nettype none
module f2_ocl
  import shef_f2_pkg::*;
(
    input wire clk_i,
    input wire rst_ni,
    input wire [31:0] awaddr,
    input wire awvalid,
    input wire [31:0] wdata,
    input wire [3:0] wstrb,
    input wire wvalid,
    input wire bready,
    input wire [31:0] araddr,
    input wire arvalid,
    input wire rready,
    input wire linked_i,
    input wire access_ready_i,
    input wire answer_valid_i,
    input wire answer_t answer_i,
    input wire running_i,
    input wire held_i,
    input wire status_t status_i
);
  localparam int unsigned Patience = 5;
  logic awready, wready, bvalid, arready, rvalid, access_valid, answer_ready, start, reset;
  logic [1:0] bresp, rresp;
  logic [31:0] rdata;
  access_t access;
  shef_f2_ocl #(.Patience(Patience)) dut (
      .clk_i, .rst_ni,
      .ocl_awaddr(awaddr), .ocl_awvalid(awvalid), .ocl_awready(awready),
      .ocl_wdata(wdata), .ocl_wstrb(wstrb), .ocl_wvalid(wvalid), .ocl_wready(wready),
      .ocl_bresp(bresp), .ocl_bvalid(bvalid), .ocl_bready(bready),
      .ocl_araddr(araddr), .ocl_arvalid(arvalid), .ocl_arready(arready),
      .ocl_rdata(rdata), .ocl_rresp(rresp), .ocl_rvalid(rvalid), .ocl_rready(rready),
      .linked_i, .access_valid_o(access_valid), .access_ready_i, .access_o(access),
      .answer_valid_i, .answer_ready_o(answer_ready), .answer_i, .running_i, .held_i,
      .start_o(start), .reset_o(reset), .status_i, .max_payload_i('0), .max_read_i('0),
      .pcis_read_late_i(1'b0), .pcis_write_late_i(1'b0), .irq_dropped_i(1'b0), .unlocked_i(1'b0),
      .wipe_cycles_i('0)
  );

  logic init = 1'b0, past = 1'b0;
  logic write_open, read_open;       // accepted and not answered
  logic [1:0] sent;                  // accesses at the core that it has not answered
  logic mine;                        // the one that is open is among them, and is the last
  logic [4:0] write_waits, read_waits;
  logic aw_q, w_q, ar_q, b_q, r_q;   // offers that waited in the last cycle
  logic [31:0] awaddr_q, wdata_q, araddr_q, rdata_q;
  logic [3:0] wstrb_q;
  logic [1:0] bresp_q, rresp_q;
  logic start_asked, reset_asked;
  wire write_valid = awvalid && wvalid;

  always_ff @(posedge clk_i) begin
    init <= 1'b1;
    past <= init && rst_ni;
    if (!init) assume (!rst_ni);
    aw_q <= rst_ni && awvalid && !awready;
    w_q <= rst_ni && wvalid && !wready;
    ar_q <= rst_ni && arvalid && !arready;
    b_q <= rst_ni && bvalid && !bready;
    r_q <= rst_ni && rvalid && !rready;
    {awaddr_q, wdata_q, araddr_q, rdata_q, wstrb_q, bresp_q, rresp_q} <=
        {awaddr, wdata, araddr, rdata, wstrb, bresp, rresp};
    start_asked <= write_valid && awready && awaddr[31:2] == 30'h4007 && wdata == 32'd1 && wstrb == 4'hf;
    reset_asked <= write_valid && awready && awaddr[31:2] == 30'h4007 && wdata == 32'd2 && wstrb == 4'hf;
    if (!rst_ni) begin
      write_open <= 1'b0;
      read_open <= 1'b0;
      sent <= '0;
      mine <= 1'b0;
      write_waits <= '0;
      read_waits <= '0;
    end else begin
      if (awvalid && awready) write_open <= 1'b1;
      else if (bvalid && bready) write_open <= 1'b0;
      if (arvalid && arready) read_open <= 1'b1;
      else if (rvalid && rready) read_open <= 1'b0;
      if (!linked_i) sent <= '0;
      else sent <= sent + 2'(access_valid && access_ready_i) - 2'(answer_valid_i);
      if (!linked_i || dut.give_up || dut.answered) mine <= 1'b0;
      else if (access_valid && access_ready_i && !dut.give_up) mine <= 1'b1;
      write_waits <= (write_valid || write_open) && !bvalid ? write_waits + 5'(write_waits != '1) : '0;
      read_waits <= (arvalid || read_open) && !rvalid ? read_waits + 5'(read_waits != '1) : '0;
    end
  end

  // The shell: offers stay, it has one access of each kind, and it takes answers.
  always_comb begin
    if (init && rst_ni) begin
      if (aw_q) assume (awvalid && awaddr == awaddr_q);
      if (w_q) assume (wvalid && wdata == wdata_q && wstrb == wstrb_q);
      if (ar_q) assume (arvalid && araddr == araddr_q);
      if (write_open) assume (!awvalid && !wvalid);
      if (read_open) assume (!arvalid);
      // AW and W come together.
      assume (awvalid == wvalid);
      // The core answers an access after it was sent.
      if (answer_valid_i) assume (sent != '0 && linked_i);
    end
  end
  always_comb if (init) assume (bready && rready);

  always_ff @(posedge clk_i) begin
    if (past && rst_ni) begin
      if (bvalid) a_b : assert (write_open);
      if (rvalid) a_r : assert (read_open);
      a_one : assert (!(bvalid && rvalid));
      if (b_q) a_b_stays : assert (bvalid && bresp == bresp_q);
      if (r_q) a_r_stays : assert (rvalid && rresp == rresp_q && rdata == rdata_q);
      a_write_bound : assert (write_waits <= 5'(Patience + 6));
      a_read_bound : assert (read_waits <= 5'(Patience + 6));
      if (dut.answered) a_own : assert (mine && sent == 2'd1);
      if (access_valid) begin
        a_core : assert (sent == '0);
        a_page : assert (!access.boot || access.addr < 17'(MEDIUM_WORDS));
      end
      if (start) a_start : assert (start_asked);
      if (reset) a_reset : assert (reset_asked);
      // How the ghosts follow the states.
      inv_sent : assert (sent <= 2'd1);
      inv_owed : assert ((sent == 2'd1) == (dut.owed_q || mine));
      inv_mine : assert (mine == (dut.state_q == 2'd2));
      // Ages are those of the ghosts, and an access under way is the older one.
      if ((write_valid || write_open) && !bvalid) inv_write_age : assert (
          5'(dut.write_age_q) == (write_waits < 5'(Patience) ? write_waits : 5'(Patience)));
      if ((arvalid || read_open) && !rvalid) inv_read_age : assert (
          5'(dut.read_age_q) == (read_waits < 5'(Patience) ? read_waits : 5'(Patience)));
      if (read_open && write_valid) inv_read_older : assert (dut.read_age_q >= dut.write_age_q);
      if (write_open && arvalid) inv_write_older : assert (dut.write_age_q >= dut.read_age_q);
      if (!awvalid && !write_open) inv_write_none : assert (dut.write_age_q == '0);
      if (!arvalid && !read_open) inv_read_none : assert (dut.read_age_q == '0);
      if (write_valid && !write_open) inv_write_waits : assert (write_waits <= 5'(Patience) +
          (dut.state_q == 2'd0 ? 5'd3 : dut.state_q == 2'd3 ? 5'd2 : 5'd1));
      if (arvalid && !read_open) inv_read_waits : assert (read_waits <= 5'(Patience) +
          (dut.state_q == 2'd0 ? 5'd3 : dut.state_q == 2'd3 ? 5'd2 : 5'd1));
      if (write_open && !bvalid) inv_write_late : assert (write_waits <= 5'(Patience) + 5'd4);
      if (read_open && !rvalid) inv_read_late : assert (read_waits <= 5'(Patience) + 5'd4);
      inv_states : assert (!(write_open && read_open));
      inv_open : assert ((write_open || read_open) == (dut.state_q != 2'd0));
      if (write_open) inv_write : assert (dut.write_q);
      if (read_open) inv_read : assert (!dut.write_q);
      if (dut.state_q == 2'd1 || dut.state_q == 2'd2) inv_free : assert (!dut.owed_q);
    end
    if (past && rst_ni) begin
      c_answer : cover (dut.answered && !answer_i.error);
      c_late : cover (dut.owed_q);
      c_dropped : cover (dut.owed_q && answer_valid_i);
      c_start : cover (start);
    end
  end
endmodule
`default_nettype wire
