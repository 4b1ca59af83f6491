// Hash of sparse ids: 16 ids of one feature become rows of its table.
//
// row = (mix(id ^ salt) * size) >> 32, where mix is the finaliser of MurmurHash3 for 32 bits, a
// bijection. An id of 2^32 - 1 is padding and stays. Latency: 6 cycles (shef_ingest_pkg::STAGES),
// one line a cycle, no handshake. Three multiplications of 32 bits a lane.
`default_nettype none
module shef_ingest_hash
  import shef_ingest_pkg::*;
(
  input  wire              clk_i,
  input  wire              rst_ni,
  input  wire line_t       line_i,
  input  wire       [31:0] salt_i,
  input  wire       [31:0] size_i,
  output line_t            line_o
);
  logic [31:0] size_q[4];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) size_q <= '{default: '0};
    else size_q <= '{size_i, size_q[0], size_q[1], size_q[2]};
  end

  for (genvar l = 0; l < LANES; l++) begin : g_lane
    logic [31:0] mix_q[4];
    logic [31:0] row_q, line_q;
    logic [4:0] pad_q;
    wire [31:0] salted = line_i[l] ^ salt_i;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        mix_q <= '{default: '0};
        {row_q, line_q, pad_q} <= '0;
      end else begin
        pad_q <= {pad_q[3:0], line_i[l] == PAD};
        mix_q[0] <= salted ^ (salted >> 16);
        mix_q[1] <= mix_q[0] * 32'h85eb_ca6b;
        mix_q[2] <= (mix_q[1] ^ (mix_q[1] >> 13)) * 32'hc2b2_ae35;
        mix_q[3] <= mix_q[2] ^ (mix_q[2] >> 16);
        row_q <= 32'((64'(mix_q[3]) * 64'(size_q[3])) >> 32);
        line_q <= pad_q[4] ? PAD : row_q;
      end
    end
    assign line_o[l] = line_q;
  end
endmodule
`default_nettype wire
