// Skid buffer: registers both directions of a valid/ready channel.
//
// Handshake: valid/ready on both sides, in_ready_o comes from a register. Latency one cycle, one
// word a cycle.
// clr_i zeroes and empties it.
`default_nettype none
module shef_skid #(
    parameter int unsigned W = 8
) (
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire          clr_i,
    input  wire          in_valid_i,
    output logic         in_ready_o,
    input  wire  [W-1:0] in_data_i,
    output logic         out_valid_o,
    input  wire          out_ready_i,
    output logic [W-1:0] out_data_o
);
  logic [W-1:0] out_q, skid_q;
  logic out_valid_q, skid_valid_q;

  assign in_ready_o = !skid_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o = out_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      out_valid_q <= 1'b0;
      skid_valid_q <= 1'b0;
      out_q <= '0;
      skid_q <= '0;
    end else if (!out_valid_q || out_ready_i) begin
      // the output register is free: refill it from the skid word first
      out_valid_q <= skid_valid_q || in_valid_i;
      if (skid_valid_q) out_q <= skid_q;
      else if (in_valid_i) out_q <= in_data_i;
      skid_valid_q <= 1'b0;
    end else if (in_valid_i && in_ready_o) begin
      skid_valid_q <= 1'b1;
      skid_q <= in_data_i;
    end
  end
endmodule
`default_nettype wire
