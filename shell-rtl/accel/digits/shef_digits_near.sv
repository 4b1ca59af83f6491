// One query of the digits accelerator: squared Euclidean distance of 64 pixel bytes to every
// training row, and the three nearest rows (ties: the smaller index), each with its label.
//
// No handshake, a row every cycle: query_we_i loads the query, row_valid_i compares a row
// (row_first_i starts a new pass). The label of the row must be at label_i three cycles after the
// row. Four cycles after the last row the nearest rows are at near_*_o and stay until the first row
// of the next pass arrives there. Fewer than three rows: index 0xffff.
`default_nettype none
module shef_digits_near (
  input  wire         clk_i,
  input  wire         rst_ni,
  input  wire         query_we_i,
  input  wire [511:0] data_i,
  input  wire         row_valid_i,
  input  wire         row_first_i,
  input  wire [ 11:0] row_index_i,
  input  wire [  3:0] label_i,
  output wire [ 21:0] distance_o,
  output wire [ 47:0] index_o,      // nearest in [15:0]
  output wire [ 11:0] label_o       // nearest in [3:0]
);
  // above every distance: 64 * 255^2 = 4,161,600
  localparam logic [21:0] FAR = 22'h3fffff;

  logic [2:0] valid_q;
  logic [2:0] first_q;
  logic [11:0] index_q[3];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      first_q <= '0;
    end else begin
      valid_q <= {valid_q[1:0], row_valid_i};
      first_q <= {first_q[1:0], row_first_i};
    end
    if (row_valid_i) index_q[0] <= row_index_i;
    if (valid_q[0]) index_q[1] <= index_q[0];
    if (valid_q[1]) index_q[2] <= index_q[1];
  end

  function automatic logic [15:0] square(input logic [7:0] a, input logic [7:0] b);
    int d;
    d = int'({24'd0, a}) - int'({24'd0, b});
    return 16'(d * d);
  endfunction

  // separate registers, not arrays: much faster in simulation
  for (genvar i = 0; i < 64; i++) begin : g_pixel
    logic [7:0] query_q;
    logic [15:0] square_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) query_q <= '0;
      else if (query_we_i) query_q <= data_i[8*i+:8];
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) square_q <= '0;
      else if (row_valid_i) square_q <= square(data_i[8*i+:8], query_q);
    end
  end

  for (genvar i = 0; i < 8; i++) begin : g_part
    logic [18:0] sum_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) sum_q <= '0;
      else if (valid_q[0]) begin
        sum_q <= {3'd0, g_pixel[8*i].square_q} + {3'd0, g_pixel[8*i+1].square_q}
            + {3'd0, g_pixel[8*i+2].square_q} + {3'd0, g_pixel[8*i+3].square_q}
            + {3'd0, g_pixel[8*i+4].square_q} + {3'd0, g_pixel[8*i+5].square_q}
            + {3'd0, g_pixel[8*i+6].square_q} + {3'd0, g_pixel[8*i+7].square_q};
      end
    end
  end

  logic [21:0] total_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) total_q <= '0;
    else if (valid_q[1]) begin
      total_q <= {3'd0, g_part[0].sum_q} + {3'd0, g_part[1].sum_q} + {3'd0, g_part[2].sum_q}
          + {3'd0, g_part[3].sum_q} + {3'd0, g_part[4].sum_q} + {3'd0, g_part[5].sum_q}
          + {3'd0, g_part[6].sum_q} + {3'd0, g_part[7].sum_q};
    end
  end

  // ---- the three nearest, 0 is the nearest ----
  logic [2:0][21:0] dist_q;
  logic [2:0][15:0] near_q;
  logic [2:0][3:0] label_q;
  wire [15:0] index = {4'd0, index_q[2]};
  wire under0 = total_q < dist_q[0];
  wire under1 = total_q < dist_q[1];
  wire under2 = total_q < dist_q[2];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int k = 0; k < 3; k++) begin
        dist_q[k] <= FAR;
        near_q[k] <= '1;
        label_q[k] <= '0;
      end
    end else if (valid_q[2]) begin
      if (first_q[2]) begin
        dist_q[0] <= total_q;
        near_q[0] <= index;
        label_q[0] <= label_i;
        for (int k = 1; k < 3; k++) begin
          dist_q[k] <= FAR;
          near_q[k] <= '1;
          label_q[k] <= '0;
        end
      end else begin
        if (under0) begin
          dist_q[0] <= total_q;
          near_q[0] <= index;
          label_q[0] <= label_i;
        end
        if (under1) begin
          dist_q[1] <= under0 ? dist_q[0] : total_q;
          near_q[1] <= under0 ? near_q[0] : index;
          label_q[1] <= under0 ? label_q[0] : label_i;
        end
        if (under2) begin
          dist_q[2] <= under1 ? dist_q[1] : total_q;
          near_q[2] <= under1 ? near_q[1] : index;
          label_q[2] <= under1 ? label_q[1] : label_i;
        end
      end
    end
  end

  assign distance_o = dist_q[0];
  assign index_o = {near_q[2], near_q[1], near_q[0]};
  assign label_o = {label_q[2], label_q[1], label_q[0]};
endmodule
`default_nettype wire
