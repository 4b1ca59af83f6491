// W beats of the cache: holds them until their line is present, and counts owed beats.
//
// aw_fire_i (pulse): a burst was accepted, which owes aw_len_i + 1 beats. W is valid/ready; a beat
// is accepted only if a burst owes it and there is room. free_o: beats that are present and not
// reserved; promise_i (pulse) reserves promise_n_i of them, at most free_o.
// pop_i removes the oldest beat, which must be reserved; valid_o: it is present, on data_o and
// strb_o. whole_o: no beat that is present had a strobe low. hold_i (level): no beat is accepted.
// clr_i (level, with hold_i) zeroes the word at zero_addr_i; the counts of present, owed and
// reserved beats do not change, so that earlier bursts end as they began.
`default_nettype none
module shef_cache_beats
  import shef_pkg::*;
#(
    parameter int unsigned Depth = 64,   // a power of two
    localparam int unsigned PW = $clog2(Depth)
) (
    input  wire           clk_i,
    input  wire           rst_ni,
    input  wire           hold_i,
    input  wire           clr_i,
    input  wire  [PW-1:0] zero_addr_i,
    input  wire           aw_fire_i,
    input  wire  [7:0]    aw_len_i,
    input  wire  [511:0]  w_data_i,
    input  wire  [63:0]   w_strb_i,
    input  wire           w_valid_i,
    output logic          w_ready_o,
    output logic [PW:0]   free_o,
    input  wire           promise_i,
    input  wire  [PW:0]   promise_n_i,
    input  wire           pop_i,
    output logic          valid_o,
    output logic [511:0]  data_o,
    output logic [63:0]   strb_o,
    output logic          whole_o
);
  logic [511:0] data_mem_q[Depth];
  logic [63:0] strb_mem_q[Depth];
  logic [Depth-1:0] part_q;         // had a strobe low
  logic [PW-1:0] wp_q, rp_q;
  logic [PW:0] count_q, free_q, parts_q;
  logic [15:0] owed_q;
  logic push, part;

  assign w_ready_o = count_q != (PW + 1)'(Depth) && owed_q != '0 && !hold_i;
  assign push = w_valid_i && w_ready_o;
  assign part = w_strb_i != '1;
  assign free_o = free_q;
  assign valid_o = count_q != '0;
  assign data_o = data_mem_q[rp_q];
  assign strb_o = strb_mem_q[rp_q];
  assign whole_o = parts_q == '0;

  always_ff @(posedge clk_i) begin
    if (clr_i) begin
      data_mem_q[zero_addr_i] <= '0;
      strb_mem_q[zero_addr_i] <= '0;
    end else if (push) begin
      data_mem_q[wp_q] <= w_data_i;
      strb_mem_q[wp_q] <= w_strb_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      part_q <= '0;
      wp_q <= '0;
      rp_q <= '0;
      count_q <= '0;
      free_q <= '0;
      parts_q <= '0;
      owed_q <= '0;
    end else begin
      if (push) begin
        wp_q <= wp_q + 1'b1;
        part_q[wp_q] <= part;
      end
      if (pop_i) rp_q <= rp_q + 1'b1;
      count_q <= count_q + (PW + 1)'(push) - (PW + 1)'(pop_i);
      free_q <= free_q + (PW + 1)'(push) - (promise_i ? promise_n_i : '0);
      parts_q <= parts_q + (PW + 1)'(push && part) - (PW + 1)'(pop_i && part_q[rp_q]);
      owed_q <= owed_q + (aw_fire_i ? {8'd0, aw_len_i} + 16'd1 : 16'd0) - 16'(push);
    end
  end
endmodule
`default_nettype wire
