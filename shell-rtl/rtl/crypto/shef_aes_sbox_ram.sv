// SubBytes of one block (FIPS 197) in block RAM: eight synchronous ROMs of 256 bytes, each with two
// ports.
//
// No handshake: with en_i the bytes of state_i are replaced, and state_o shows them one cycle
// later; otherwise state_o does not change.
// clear_i zeroes state_o.
`default_nettype none
module shef_aes_sbox_ram (
  input  wire          clk_i,
  input  wire          clear_i,
  input  wire          en_i,
  input  wire  [127:0] state_i,
  output logic [127:0] state_o
);
  for (genvar i = 0; i < 8; i++) begin : g_rom
    (* ram_style = "block" *) logic [7:0] rom[256];
    initial for (int n = 0; n < 256; n++) rom[n] = shef_aes_pkg::SBOX[n];

    always_ff @(posedge clk_i) begin
      if (clear_i) state_o[16*i+:16] <= '0;
      else if (en_i) begin
        state_o[16*i+:8] <= rom[state_i[16*i+:8]];
        state_o[16*i+8+:8] <= rom[state_i[16*i+8+:8]];
      end
    end
  end
endmodule
`default_nettype wire
