// Memory port of several engine sets: requests take turns, write data follows in AW order, and
// responses are routed back by set number.
//
// Handshake: AXI4 on both sides; set_* belong to the sets, mem_* to the port. A request leaves with
// the number of its set in id[7:6] (SetNo), which is removed again on the way back. Sets offer an
// AW only when its data are present, so no set can hold the W channel; R and B are accepted
// whenever the set accepts them. A response for a set that is not at this port goes to the first
// one with an unused id, and becomes its protocol fault.
// No latency: requests and responses pass combinationally (W one cycle after its AW). One beat a
// cycle each way. With one set: wires. Reset drops the bursts that wait for their data; nothing
// here is secret.
`default_nettype none
// verilator lint_off PINCONNECTEMPTY
// (outputs that are not needed here are named and left open)
module shef_port_mux
  import shef_pkg::*;
#(
    parameter int unsigned NSets = 2,
    parameter logic [NSets-1:0][1:0] SetNo = '0
) (
    input  wire                    clk_i,
    input  wire                    rst_ni,

    input  wire  axi_ax_t [NSets-1:0] set_aw_i,
    input  wire  [NSets-1:0]       set_aw_valid_i,
    output logic [NSets-1:0]       set_aw_ready_o,
    input  wire  axi_w_t [NSets-1:0] set_w_i,
    input  wire  [NSets-1:0]       set_w_valid_i,
    output logic [NSets-1:0]       set_w_ready_o,
    output axi_b_t [NSets-1:0]     set_b_o,
    output logic [NSets-1:0]       set_b_valid_o,
    input  wire  [NSets-1:0]       set_b_ready_i,
    input  wire  axi_ax_t [NSets-1:0] set_ar_i,
    input  wire  [NSets-1:0]       set_ar_valid_i,
    output logic [NSets-1:0]       set_ar_ready_o,
    output axi_r_t [NSets-1:0]     set_r_o,
    output logic [NSets-1:0]       set_r_valid_o,
    input  wire  [NSets-1:0]       set_r_ready_i,

    output axi_ax_t                mem_aw_o,
    output logic                   mem_aw_valid_o,
    input  wire                    mem_aw_ready_i,
    output axi_w_t                 mem_w_o,
    output logic                   mem_w_valid_o,
    input  wire                    mem_w_ready_i,
    input  wire  axi_b_t           mem_b_i,
    input  wire                    mem_b_valid_i,
    output logic                   mem_b_ready_o,
    output axi_ax_t                mem_ar_o,
    output logic                   mem_ar_valid_o,
    input  wire                    mem_ar_ready_i,
    input  wire  axi_r_t           mem_r_i,
    input  wire                    mem_r_valid_i,
    output logic                   mem_r_ready_o
);
  if (NSets == 1) begin : g_wires
    assign mem_aw_o = set_aw_i;
    assign mem_aw_valid_o = set_aw_valid_i;
    assign set_aw_ready_o = mem_aw_ready_i;
    assign mem_w_o = set_w_i;
    assign mem_w_valid_o = set_w_valid_i;
    assign set_w_ready_o = mem_w_ready_i;
    assign set_b_o = mem_b_i;
    assign set_b_valid_o = mem_b_valid_i;
    assign mem_b_ready_o = set_b_ready_i;
    assign mem_ar_o = set_ar_i;
    assign mem_ar_valid_o = set_ar_valid_i;
    assign set_ar_ready_o = mem_ar_ready_i;
    assign set_r_o = mem_r_i;
    assign set_r_valid_o = mem_r_valid_i;
    assign mem_r_ready_o = set_r_ready_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni, SetNo};
  end else begin : g_mux
    localparam int unsigned SW = $clog2(NSets);
    typedef logic [SW-1:0] place_t;

    // ---- AR ----
    place_t ar_sel;
    shef_turn #(.N(NSets)) i_ar (
        .clk_i, .rst_ni, .req_i(set_ar_valid_i), .done_i(mem_ar_ready_i), .valid_o(mem_ar_valid_o),
        .sel_o(ar_sel)
    );
    always_comb begin
      mem_ar_o = set_ar_i[ar_sel];
      mem_ar_o.id[7:6] = SetNo[ar_sel];
      set_ar_ready_o = '0;
      set_ar_ready_o[ar_sel] = mem_ar_ready_i;
    end

    // ---- AW, and the order of the data ----
    place_t aw_sel, w_sel;
    logic aw_valid, w_room, w_known, w_end;
    shef_turn #(.N(NSets)) i_aw (
        .clk_i, .rst_ni, .req_i(set_aw_valid_i), .done_i(mem_aw_ready_i && w_room),
        .valid_o(aw_valid), .sel_o(aw_sel)
    );
    shef_fifo #(.W(SW), .Depth(8)) i_order (
        .clk_i, .rst_ni, .clr_i(1'b0), .zero_addr_i('0),
        .in_valid_i(mem_aw_valid_o && mem_aw_ready_i), .in_ready_o(w_room), .in_data_i(aw_sel),
        .out_valid_o(w_known), .out_ready_i(w_end), .out_data_o(w_sel), .count_o()
    );
    assign mem_aw_valid_o = aw_valid && w_room;
    assign mem_w_o = set_w_i[w_sel];
    assign mem_w_valid_o = w_known && set_w_valid_i[w_sel];
    assign w_end = mem_w_valid_o && mem_w_ready_i && mem_w_o.last;
    always_comb begin
      mem_aw_o = set_aw_i[aw_sel];
      mem_aw_o.id[7:6] = SetNo[aw_sel];
      set_aw_ready_o = '0;
      set_aw_ready_o[aw_sel] = mem_aw_ready_i && w_room;
      set_w_ready_o = '0;
      set_w_ready_o[w_sel] = mem_w_ready_i && w_known;
    end

    // ---- responses ----
    logic [NSets-1:0] b_for, r_for;
    always_comb begin
      b_for = '0;
      r_for = '0;
      for (int unsigned s = 0; s < NSets; s++) begin
        b_for[s] = mem_b_i.id[7:6] == SetNo[s];
        r_for[s] = mem_r_i.id[7:6] == SetNo[s];
        set_b_o[s] = mem_b_i;
        set_b_o[s].id[7:6] = 2'b00;
        set_r_o[s] = mem_r_i;
        set_r_o[s].id[7:6] = 2'b00;
      end
      if (b_for == '0) begin
        b_for[0] = 1'b1;
        set_b_o[0].id[7:6] = 2'b11;
      end
      if (r_for == '0) begin
        r_for[0] = 1'b1;
        set_r_o[0].id[7:6] = 2'b11;
      end
    end
    assign set_b_valid_o = b_for & {NSets{mem_b_valid_i}};
    assign set_r_valid_o = r_for & {NSets{mem_r_valid_i}};
    assign mem_b_ready_o = (b_for & ~set_b_ready_i) == '0;
    assign mem_r_ready_o = (r_for & ~set_r_ready_i) == '0;

    logic unused;
    always_comb begin
      unused = 1'b0;
      for (int unsigned s = 0; s < NSets; s++)
        unused ^= ^{set_aw_i[s].id[7:6], set_ar_i[s].id[7:6]};
    end
  end
endmodule
// verilator lint_on PINCONNECTEMPTY
`default_nettype wire
