// Read side of the digits accelerator: requests labels, queries and training rows in the order of
// use, and labels each returned beat.
//
// Order: labels, then for every batch of four queries its query rows and the whole training set.
// Requests run ahead of the responses across batches, up to MaxBeats beats, in bursts of up to 64
// beats that never cross a 4 KiB page; all have id 0, so the responses come in the same order. R is
// always accepted: the consumer of the beats never stalls, because a pass is requested only when
// its result has a place (reserve_valid_o/reserve_ready_i, one per pass).
// AR: valid/ready, registered. Beats leave one cycle after R with their label. stop_i (level) ends
// the requests;
// done_o: nothing more to request or to receive. start_i is a pulse while done_o; the inputs must
// stay until done_o.
`default_nettype none
module shef_digits_fetch
  import shef_pkg::*;
#(
  parameter int unsigned MaxBeats = 1024
) (
  input  wire           clk_i,
  input  wire           rst_ni,
  input  wire           start_i,
  input  wire           stop_i,
  output wire           done_o,
  input  wire    [57:0] train_line_i,   // addresses in units of 64 bytes
  input  wire    [57:0] query_line_i,
  input  wire    [57:0] label_line_i,
  input  wire    [12:0] train_rows_i,   // 1..4096
  input  wire    [15:0] query_rows_i,   // 1..65535
  output wire           reserve_valid_o,
  input  wire           reserve_ready_i,
  output axi_ax_t       acc_ar_o,
  output wire           acc_ar_valid_o,
  input  wire           acc_ar_ready_i,
  input  wire axi_r_t   acc_r_i,
  input  wire           acc_r_valid_i,
  output wire           acc_r_ready_o,
  output wire           r_error_o,
  output logic          beat_label_o,
  output logic          beat_query_o,
  output logic          beat_row_o,
  output logic [511:0]  beat_data_o,
  output logic [ 11:0]  beat_index_o,   // label beat, query of the batch, training row
  output logic          beat_first_o,   // of the training set
  output logic          beat_last_o,
  output logic [  3:0]  beat_queries_o  // which queries of the batch exist
);
  localparam int unsigned CountW = $clog2(MaxBeats + 1);

  typedef enum logic [1:0] {
    SEG_NONE,
    SEG_LABELS,
    SEG_QUERIES,
    SEG_ROWS
  } seg_e;

  wire [6:0] label_beats = 7'((14'(train_rows_i) + 14'd63) >> 6);

  // ---- requests ----
  seg_e ask_q;
  logic [57:0] line_q;
  logic [12:0] left_q;        // beats of the segment still to request
  logic [57:0] next_query_q;
  logic [15:0] queries_left_q;  // queries not yet requested
  logic ar_valid_q;
  logic [57:0] ar_line_q;
  logic [5:0] ar_len_q;
  logic [CountW-1:0] out_q;   // beats requested and not yet received

  wire [6:0] to_page = 7'd64 - {1'b0, line_q[5:0]};
  wire [6:0] burst = (left_q < {6'd0, to_page}) ? left_q[6:0] : to_page;
  wire [5:0] burst_len = 6'(burst - 7'd1);
  wire room = out_q <= CountW'(MaxBeats - 64);
  wire ar_free = !ar_valid_q || acc_ar_ready_i;
  wire ask = ask_q != SEG_NONE && left_q != '0 && room && ar_free && !stop_i;
  wire seg_end = ask_q != SEG_NONE && left_q == '0;
  // end of the queries: the pass over the rows may be requested when its result has a place
  assign reserve_valid_o = seg_end && ask_q == SEG_QUERIES && !stop_i;
  wire r_fire = acc_r_valid_i && acc_r_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ask_q <= SEG_NONE;
      line_q <= '0;
      left_q <= '0;
      next_query_q <= '0;
      queries_left_q <= '0;
      ar_valid_q <= 1'b0;
      ar_line_q <= '0;
      ar_len_q <= '0;
      out_q <= '0;
    end else begin
      out_q <= out_q + (ask ? CountW'(burst) : '0) - (r_fire && out_q != '0 ? CountW'(1) : '0);
      if (ask) begin
        ar_valid_q <= 1'b1;
        ar_line_q <= line_q;
        ar_len_q <= burst_len;
        line_q <= line_q + 58'(burst);
        left_q <= left_q - 13'(burst);
      end else if (acc_ar_ready_i) ar_valid_q <= 1'b0;

      if (start_i) begin
        ask_q <= SEG_LABELS;
        line_q <= label_line_i;
        left_q <= 13'(label_beats);
        next_query_q <= query_line_i;
        queries_left_q <= query_rows_i;
      end else if (stop_i) ask_q <= SEG_NONE;
      else if (seg_end) begin
        if (ask_q == SEG_QUERIES) begin
          if (reserve_ready_i) begin
            ask_q <= SEG_ROWS;
            line_q <= train_line_i;
            left_q <= train_rows_i;
          end
        end else if (queries_left_q != '0) begin
          ask_q <= SEG_QUERIES;
          line_q <= next_query_q;
          next_query_q <= next_query_q + 58'd4;
          left_q <= (queries_left_q < 16'd4) ? 13'(queries_left_q) : 13'd4;
          queries_left_q <= (queries_left_q < 16'd4) ? 16'd0 : queries_left_q - 16'd4;
        end else ask_q <= SEG_NONE;
      end
    end
  end

  assign acc_ar_valid_o = ar_valid_q;
  assign acc_ar_o = '{
    id: '0,
    addr: {ar_line_q, 6'd0},
    len: {2'd0, ar_len_q},
    size: AXI_SIZE_64,
    burst: AXI_BURST_INCR
  };

  // ---- responses ----
  seg_e take_q;
  logic [12:0] index_q;
  logic [12:0] end_q;  // last index of the segment
  logic [15:0] take_left_q;  // queries not yet received
  wire seg_last = index_q == end_q;
  wire [12:0] next_queries = (take_left_q < 16'd4) ? 13'(take_left_q) : 13'd4;

  assign acc_r_ready_o = 1'b1;
  assign r_error_o = r_fire && acc_r_i.resp != AXI_OKAY;
  assign done_o = ask_q == SEG_NONE && !ar_valid_q && out_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      take_q <= SEG_NONE;
      index_q <= '0;
      end_q <= '0;
      take_left_q <= '0;
    end else if (start_i) begin
      take_q <= SEG_LABELS;
      index_q <= '0;
      end_q <= 13'(label_beats) - 13'd1;
      take_left_q <= query_rows_i;
    end else if (r_fire && take_q != SEG_NONE) begin
      index_q <= index_q + 13'd1;
      if (seg_last) begin
        index_q <= '0;
        if (take_q == SEG_QUERIES) begin
          take_q <= SEG_ROWS;
          end_q <= train_rows_i - 13'd1;
        end else if (take_left_q != '0) begin
          take_q <= SEG_QUERIES;
          end_q <= next_queries - 13'd1;
          take_left_q <= take_left_q - 16'(next_queries);
        end else take_q <= SEG_NONE;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_label_o <= 1'b0;
      beat_query_o <= 1'b0;
      beat_row_o <= 1'b0;
      beat_data_o <= '0;
      beat_index_o <= '0;
      beat_first_o <= 1'b0;
      beat_last_o <= 1'b0;
      beat_queries_o <= '0;
    end else begin
      beat_label_o <= r_fire && take_q == SEG_LABELS;
      beat_query_o <= r_fire && take_q == SEG_QUERIES;
      beat_row_o <= r_fire && take_q == SEG_ROWS;
      if (r_fire) begin
        beat_data_o <= acc_r_i.data;
        beat_index_o <= index_q[11:0];
        beat_first_o <= index_q == '0;
        beat_last_o <= seg_last;
        if (take_q == SEG_QUERIES) beat_queries_o <= 4'b1111 >> (3'd3 - end_q[2:0]);
      end
    end
  end

  wire unused = &{1'b0, acc_r_i.id, acc_r_i.last};
endmodule
`default_nettype wire
