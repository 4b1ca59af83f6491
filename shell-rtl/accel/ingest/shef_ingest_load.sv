// Input side of the ingest accelerator: takes the lines of configuration and columns, checks them,
// and sends each through its pipeline to its place in the store.
//
// line port: valid/ready, one line a cycle; a header waits until half_free_i says that the half of
// the store that comes next is free. begin_o: a header was taken, with its rows; index_valid_o: a
// line of the inverse index, in this cycle; out_valid_o: a transformed line, six cycles after its
// line was taken.
// fail_o (pulse): the configuration or a group is malformed. Nothing is taken after it until
// start_i.
// all_o: every line was taken, the last group was complete and rows_i rows were seen.
`default_nettype none
module shef_ingest_load
  import shef_ingest_pkg::*;
(
  input  wire              clk_i,
  input  wire              rst_ni,
  input  wire              clear_i,
  input  wire        [3:0] sweep_i,
  input  wire              start_i,
  input  wire              stop_i,
  input  wire       [31:0] lines_i,     // of the columns
  input  wire       [31:0] rows_i,
  input  wire        [2:0] sparse_i,    // features
  output wire              fail_o,
  output wire              all_o,

  input  wire              line_valid_i,
  output wire              line_ready_o,
  input  wire line_t       line_i,

  input  wire              half_free_i,
  output wire              half_o,
  output wire              begin_o,
  output wire        [6:0] rows_o,
  output wire              index_valid_o,
  output wire        [2:0] index_sparse_o,

  output wire              out_valid_o,
  output place_t           out_place_o,
  output line_t            out_line_o
);
  localparam int unsigned CONFIG = 20;   // lines of the configuration
  typedef enum logic [2:0] {CONFIGURE, HEADER, INDEX, COLUMN, LIST, FAILED} state_e;

  state_e state_q;
  logic [4:0] count_q;        // configuration: lines
  logic half_q;
  logic [31:0] lines_q;       // not taken yet
  logic [31:0] rows_q;        // not seen yet
  logic [6:0] group_rows_q;
  logic [6:0] uniques_q[8];
  logic [2:0] sparse_q;
  logic [3:0] dense_q;
  logic [1:0] part_q;
  logic [5:0] entry_q;

  // ---- configuration ----
  line_t low_q, high_q;
  logic [DENSE-1:0][1:0] op_q;
  logic [7:0][31:0] size_q, salt_q;
  line_t bounds_mem[DENSE];
  logic bad_config;
  always_comb begin
    bad_config = 1'b0;
    for (int unsigned f = 0; f < DENSE; f++) begin
      if (count_q == 5'd1 && $signed(line_i[f]) < $signed(low_q[f])) bad_config = 1'b1;
      if (count_q == 5'd2 && line_i[f] > 32'd2) bad_config = 1'b1;
    end
    for (int unsigned k = 0; k < SPARSE; k++) begin
      if (count_q == 5'd3 && line_i[k] == '0 && 3'(k) < sparse_i) bad_config = 1'b1;
    end
  end

  // ---- header ----
  wire [6:0] head_rows = line_i[0][6:0];
  wire [2:0] head_parts = 3'((head_rows + 7'd15) >> 4);
  logic bad_header;
  logic [31:0] head_lines;    // of the group
  always_comb begin
    bad_header = line_i[0] == '0 || line_i[0] > 32'(ROWS) || line_i[0] > rows_q;
    head_lines = 32'd1 + 32'(sparse_i) + {25'd0, head_parts, 4'd0};
    for (int unsigned k = 0; k < SPARSE; k++) begin
      if (3'(k) < sparse_i) begin
        if (line_i[k+1] == '0 || line_i[k+1] > 32'(ROWS)) bad_header = 1'b1;
        head_lines += 32'(line_i[k+1][6:0]);
      end
    end
    if (head_lines > lines_q) bad_header = 1'b1;
  end

  // ---- inverse index: a byte a row ----
  logic bad_index;
  always_comb begin
    bad_index = 1'b0;
    for (int unsigned r = 0; r < ROWS; r++) begin
      if (7'(r) < group_rows_q && line_i[r/4][8*(r%4)+:8] >= 8'(uniques_q[sparse_q])) begin
        bad_index = 1'b1;
      end
    end
  end

  // ---- sequence ----
  wire [2:0] last_sparse = sparse_i - 3'd1;
  wire last_part = 7'({part_q, 4'd15}) + 7'd1 >= group_rows_q;
  wire last_entry = 7'(entry_q) + 7'd1 == uniques_q[sparse_q];
  wire over = state_q == HEADER && lines_q == '0;
  assign line_ready_o = !stop_i && !start_i && state_q != FAILED && !over &&
      (state_q != HEADER || half_free_i);
  wire take = line_valid_i && line_ready_o;
  logic bad;
  always_comb begin
    unique case (state_q)
      CONFIGURE: bad = bad_config;
      HEADER: bad = bad_header;
      INDEX: bad = bad_index;
      default: bad = 1'b0;
    endcase
  end
  assign fail_o = take && bad || over && rows_q != '0 && !start_i;
  assign all_o = over && rows_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= CONFIGURE;
      {count_q, half_q, lines_q, rows_q, group_rows_q} <= '0;
      uniques_q <= '{default: '0};
      {sparse_q, dense_q, part_q, entry_q} <= '0;
      {low_q, high_q, op_q, size_q, salt_q} <= '0;
    end else if (start_i) begin
      state_q <= CONFIGURE;
      {count_q, half_q} <= '0;
      lines_q <= lines_i;
      rows_q <= rows_i;
    end else if (fail_o) begin
      state_q <= FAILED;
    end else if (take) begin
      if (state_q != CONFIGURE) lines_q <= lines_q - 32'd1;
      unique case (state_q)
        CONFIGURE: begin
          count_q <= count_q + 1'b1;
          if (count_q == 5'(CONFIG - 1)) state_q <= HEADER;
          if (count_q == 5'd0) low_q <= line_i;
          if (count_q == 5'd1) high_q <= line_i;
          for (int unsigned f = 0; f < DENSE; f++) if (count_q == 5'd2) op_q[f] <= line_i[f][1:0];
          if (count_q == 5'd3) {salt_q, size_q} <= line_i;
        end
        HEADER: begin
          state_q <= INDEX;
          group_rows_q <= head_rows;
          rows_q <= rows_q - line_i[0];
          for (int unsigned k = 0; k < SPARSE; k++) uniques_q[k] <= line_i[k+1][6:0];
          {sparse_q, dense_q, part_q, entry_q} <= '0;
        end
        INDEX: begin
          sparse_q <= sparse_q + 3'd1;
          if (sparse_q == last_sparse) begin
            sparse_q <= '0;
            state_q <= COLUMN;
          end
        end
        COLUMN: begin
          part_q <= last_part ? '0 : part_q + 1'b1;
          if (last_part) dense_q <= dense_q + 1'b1;
          if (last_part && dense_q == '1) state_q <= LIST;
        end
        default: begin
          entry_q <= last_entry ? '0 : entry_q + 1'b1;
          if (last_entry) sparse_q <= sparse_q + 3'd1;
          if (last_entry && sparse_q == last_sparse) begin
            state_q <= HEADER;
            half_q <= !half_q;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) bounds_mem[sweep_i] <= '0;
    else if (take && state_q == CONFIGURE && count_q >= 5'd4) begin
      bounds_mem[4'(count_q - 5'd4)] <= line_i;
    end
  end

  assign half_o = half_q;
  assign begin_o = take && state_q == HEADER && !bad;
  assign rows_o = head_rows;
  assign index_valid_o = take && state_q == INDEX;
  assign index_sparse_o = sparse_q;

  // ---- pipelines ----
  line_t dense_line, list_line;
  shef_ingest_dense u_dense (
    .clk_i,
    .rst_ni,
    .line_i,
    .low_i(low_q[dense_q]),
    .high_i(high_q[dense_q]),
    .op_i(op_e'(op_q[dense_q])),
    .bounds_i(bounds_mem[dense_q]),
    .line_o(dense_line)
  );
  shef_ingest_hash u_hash (
    .clk_i,
    .rst_ni,
    .line_i,
    .salt_i(salt_q[sparse_q]),
    .size_i(size_q[sparse_q]),
    .line_o(list_line)
  );
  logic [STAGES-1:0] valid_q;
  place_t place_q[STAGES];
  wire place_t place = '{
    half: half_q,
    list: state_q == LIST,
    sparse: sparse_q,
    entry: entry_q,
    dense: dense_q,
    rows: part_q,
    last: state_q == LIST && last_entry && sparse_q == last_sparse
  };
  wire transform = take && (state_q == COLUMN || state_q == LIST);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      place_q <= '{default: '0};
    end else begin
      valid_q <= start_i ? '0 : {valid_q[STAGES-2:0], transform};
      place_q[0] <= place;
      for (int s = 1; s < STAGES; s++) place_q[s] <= place_q[s-1];
    end
  end
  assign out_valid_o = valid_q[STAGES-1];
  assign out_place_o = place_q[STAGES-1];
  assign out_line_o = out_place_o.list ? list_line : dense_line;
endmodule
`default_nettype wire
