// Window of the host to card memory, where it finds ciphertext and tags only.
//
// Handshake: h2c is an AXI4 slave with Open reads and Open writes in flight, answered in request
// order per direction. Bursts are INCR inside 4 KiB, of whole beats if there are several, with any
// strobes; others get SLVERR. At and above CardBytes, a multiple of 4 KiB: zeros, or dropped, with
// OKAY.
// mem: as in shef_dma, one port per memory port; R and B are accepted from one port at a time. A
// read that follows a write's B sees the write.
// wipe_i (level): every access, open ones too, is answered with SLVERR (zeros), as soon as its data
// are here; wiped_o rises when nothing is in flight at memory, or nothing can be. hold_i (level):
// the same at once, and what is at memory is reset (the ports are reset too).
// A port that owes a response or does not accept a burst for TimeoutCycles, or breaks the
// protocol, closes the window in the same way until hold_i.
`default_nettype none
module shef_h2c
  import shef_pkg::*;
#(
    parameter logic [63:0] CardBytes = 64'h4_0000_0000,
    parameter int unsigned TimeoutCycles = 1 << 20,
    parameter int unsigned Open = 32,
    parameter int unsigned NPorts = 1,
    parameter int unsigned NRegions = 1,
    parameter region_cfg_t [(NRegions == 0 ? 1 : NRegions)-1:0] Regions = '0,
    parameter int unsigned NSets = 1,
    parameter set_cfg_t [(NSets == 0 ? 1 : NSets)-1:0] Sets = '0
) (
    input  wire           clk_i,
    input  wire           rst_ni,
    input  wire           hold_i,
    input  wire           wipe_i,
    output logic          wiped_o,
    input  wire axi_req_t h2c_req_i,
    output axi_rsp_t      h2c_rsp_o,
    output axi_req_t [NPorts-1:0] mem_req_o,
    input  wire axi_rsp_t [NPorts-1:0] mem_rsp_i
);
  localparam int unsigned PW = (NPorts > 1) ? $clog2(NPorts) : 1;
  typedef logic [PW-1:0] port_t;

  // ---- life ----
  logic cut, closed_q, dead_q, quiet, late;
  logic [1:0] quiets, owed, bad;
  assign cut = hold_i || wipe_i || closed_q || dead_q;
  assign quiet = quiets == '1;
  assign wiped_o = wipe_i && (quiet || dead_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || hold_i) begin
      closed_q <= 1'b0;
      dead_q <= 1'b0;
    end else begin
      closed_q <= wipe_i || (closed_q && !quiet);
      if (late || bad != '0) dead_q <= 1'b1;
    end
  end

  // ---- accesses ----
  axi_ax_t ar, aw;
  axi_w_t w;
  axi_r_t r;
  axi_b_t b;
  logic ar_valid, ar_ready, r_valid, aw_valid, aw_ready, w_valid, w_ready, b_valid;
  port_t ar_port, r_port, aw_port, w_port, b_port;

  shef_h2c_reads #(
      .CardBytes(CardBytes),
      .Open(Open),
      .Slots(2 * Open)
  ) u_reads (
      .clk_i,
      .rst_ni,
      .hold_i,
      .cut_i(cut),
      .ar_i(h2c_req_i.ar),
      .ar_valid_i(h2c_req_i.ar_valid),
      .ar_ready_o(h2c_rsp_o.ar_ready),
      .r_o(h2c_rsp_o.r),
      .r_valid_o(h2c_rsp_o.r_valid),
      .r_ready_i(h2c_req_i.r_ready),
      .mem_ar_o(ar),
      .mem_ar_valid_o(ar_valid),
      .mem_ar_ready_i(ar_ready),
      .mem_r_i(r),
      .mem_r_valid_i(r_valid),
      .quiet_o(quiets[0]),
      .owed_o(owed[0]),
      .bad_o(bad[0])
  );

  shef_h2c_writes #(
      .CardBytes(CardBytes),
      .Open(Open),
      .PW(PW)
  ) u_writes (
      .clk_i,
      .rst_ni,
      .hold_i,
      .cut_i(cut),
      .aw_i(h2c_req_i.aw),
      .aw_valid_i(h2c_req_i.aw_valid),
      .aw_ready_o(h2c_rsp_o.aw_ready),
      .w_i(h2c_req_i.w),
      .w_valid_i(h2c_req_i.w_valid),
      .w_ready_o(h2c_rsp_o.w_ready),
      .b_o(h2c_rsp_o.b),
      .b_valid_o(h2c_rsp_o.b_valid),
      .b_ready_i(h2c_req_i.b_ready),
      .mem_aw_o(aw),
      .mem_aw_valid_o(aw_valid),
      .mem_aw_ready_i(aw_ready),
      .aw_port_i(aw_port),
      .mem_w_o(w),
      .mem_w_valid_o(w_valid),
      .mem_w_ready_i(w_ready),
      .w_port_o(w_port),
      .mem_b_i(b),
      .mem_b_valid_i(b_valid),
      .quiet_o(quiets[1]),
      .owed_o(owed[1]),
      .bad_o(bad[1])
  );

  shef_watch #(
      .Cycles(TimeoutCycles)
  ) u_watch (
      .clk_i,
      .rst_ni(rst_ni && !hold_i),
      .wait_i(owed != '0),
      .progress_i((ar_valid && ar_ready) || r_valid || (aw_valid && aw_ready) ||
          (w_valid && w_ready) || b_valid),
      .late_o(late)
  );

  // ---- memory ports ----
  shef_dma_port #(
      .NPorts(NPorts), .NRegions(NRegions), .Regions(Regions), .NSets(NSets), .Sets(Sets)
  ) u_ar_port (.addr_i(ar.addr), .port_o(ar_port));
  shef_dma_port #(
      .NPorts(NPorts), .NRegions(NRegions), .Regions(Regions), .NSets(NSets), .Sets(Sets)
  ) u_aw_port (.addr_i(aw.addr), .port_o(aw_port));

  logic [NPorts-1:0] r_asks, b_asks;
  shef_turn #(.N(NPorts)) u_r_turn (
      .clk_i, .rst_ni, .req_i(r_asks), .done_i(1'b1), .valid_o(r_valid), .sel_o(r_port)
  );
  shef_turn #(.N(NPorts)) u_b_turn (
      .clk_i, .rst_ni, .req_i(b_asks), .done_i(1'b1), .valid_o(b_valid), .sel_o(b_port)
  );
  assign r = mem_rsp_i[r_port].r;
  assign b = mem_rsp_i[b_port].b;
  assign ar_ready = mem_rsp_i[ar_port].ar_ready;
  assign aw_ready = mem_rsp_i[aw_port].aw_ready;
  assign w_ready = mem_rsp_i[w_port].w_ready;
  for (genvar p = 0; p < int'(NPorts); p++) begin : g_port
    assign r_asks[p] = mem_rsp_i[p].r_valid;
    assign b_asks[p] = mem_rsp_i[p].b_valid;
    assign mem_req_o[p] = '{
        aw: aw,
        aw_valid: aw_valid && aw_port == port_t'(p),
        w: w,
        w_valid: w_valid && w_port == port_t'(p),
        b_ready: b_port == port_t'(p),
        ar: ar,
        ar_valid: ar_valid && ar_port == port_t'(p),
        r_ready: r_port == port_t'(p)
    };
  end
endmodule
`default_nettype wire
