// Transformation of a dense feature: 16 values of one feature are clamped, and replaced by their
// logarithm or their bucket, or passed.
//
// Latency: 6 cycles (shef_ingest_pkg::STAGES), one line a cycle, no handshake: the sender knows
// when its line leaves. Logarithm: table of 128 segments with linear interpolation, one
// multiplication of 16 x 14 bits a lane.
`default_nettype none
module shef_ingest_dense
  import shef_ingest_pkg::*;
(
  input  wire              clk_i,
  input  wire              rst_ni,
  input  wire line_t       line_i,
  input  wire       [31:0] low_i,
  input  wire       [31:0] high_i,
  input  wire op_e         op_i,
  input  wire line_t       bounds_i,
  output line_t            line_o
);
  op_e op_q[5];
  line_t bounds_q;
  line_t clamped_q, value_q[4];
  line_t results;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      op_q <= '{default: OP_PASS};
      bounds_q <= '0;
      value_q <= '{default: '0};
    end else begin
      op_q <= '{op_i, op_q[0], op_q[1], op_q[2], op_q[3]};
      bounds_q <= bounds_i;
      value_q <= '{clamped_q, value_q[0], value_q[1], value_q[2]};
    end
  end

  for (genvar l = 0; l < LANES; l++) begin : g_lane
    wire signed [31:0] x = line_i[l];
    wire signed [31:0] clamped = clamped_q[l];
    logic [31:0] plus;        // 1 + value
    logic [4:0] exponent;
    logic [30:8] mantissa;    // of plus, without its leading one; lower bits do not count
    logic [15:0] below;
    logic [4:0] buckets;

    always_comb begin
      plus = (clamped < 0 ? '0 : clamped) + 32'd1;
      exponent = '0;
      for (int b = 0; b < 32; b++) if (plus[b]) exponent = 5'(b);
      mantissa = 23'((plus << (5'd31 - exponent)) >> 8);
      for (int b = 0; b < 16; b++) below[b] = $signed(bounds_q[b]) < clamped;
    end

    logic [4:0] exponent_q[3];
    logic [6:0] segment_q;
    logic [15:0] part_q, part2_q;   // of the segment
    logic [15:0] below_q;
    logic [4:0] bucket_q[3];
    logic [20:0] table_q, table2_q;
    logic [13:0] slope_q;
    logic [13:0] rise_q;
    logic [31:0] log_q;
    wire [20:4] fraction = 17'((table2_q + 21'(rise_q) + 21'd8) >> 4);
    always_comb begin
      buckets = '0;
      for (int b = 0; b < 16; b++) buckets += 5'(below_q[b]);
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        clamped_q[l] <= '0;
        exponent_q <= '{default: '0};
        bucket_q <= '{default: '0};
        {segment_q, part_q, part2_q, below_q} <= '0;
        {table_q, table2_q, slope_q, rise_q, log_q} <= '0;
      end else begin
        // 1: clamp
        clamped_q[l] <= x < $signed(low_i) ? low_i : x > $signed(high_i) ? high_i : x;
        // 2: normalise, compare
        exponent_q <= '{exponent, exponent_q[0], exponent_q[1]};
        segment_q <= mantissa[30:24];
        part_q <= mantissa[23:8];
        below_q <= below;
        // 3: look up, count
        table_q <= LOG[8'(segment_q)];
        slope_q <= 14'(LOG[8'(segment_q) + 8'd1] - LOG[8'(segment_q)]);
        part2_q <= part_q;
        bucket_q <= '{buckets, bucket_q[0], bucket_q[1]};
        // 4: interpolate
        rise_q <= 14'((30'(slope_q) * 30'(part2_q)) >> 16);
        table2_q <= table_q;
        // 5: round to 16 fractional bits
        log_q <= {11'd0, exponent_q[2], 16'd0} + 32'(fraction);
      end
    end

    // 6: select
    always_comb begin
      unique case (op_q[4])
        OP_LOG: results[l] = log_q;
        OP_BUCKET: results[l] = 32'(bucket_q[2]);
        default: results[l] = value_q[3][l];
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) line_o <= '0;
    else line_o <= results;
  end
endmodule
`default_nettype wire
