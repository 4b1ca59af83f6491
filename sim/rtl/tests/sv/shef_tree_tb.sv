// shef_tree beside a shef_gcm, for tests: four trees of one to four levels, places and ids mixed
// with a region without a tree.
`default_nettype none
module shef_tree_tb
  import shef_pkg::*;
  import shef_set_pkg::*; #(
  parameter int unsigned Sets = 2,
  parameter int unsigned Lanes = 4
) (
  input wire clk, input wire rst_n, input wire clr, input wire [15:0] zero_addr, input wire stop,
  input wire req_valid, output wire req_ready, input wire [1:0] req_kind,
  input wire [3:0] req_region, input wire [39:0] req_chunk,
  output wire rsp_valid, output wire rsp_bump, output wire [47:0] rsp_version,
  output wire rsp_exhausted,
  output wire ar_valid, input wire ar_ready, output wire [63:0] ar_addr, input wire r_valid,
  input wire [511:0] r_data,
  output wire wb_valid, input wire wb_ready, output wire [63:0] wb_addr,
  output wire [511:0] wb_data, input wire ack,
  output wire job_valid, input wire job_stall, output wire [3:0] job_region,
  output wire [39:0] job_index, output wire [47:0] job_version,
  output wire gh_valid, input wire gh_stall,
  output wire fault_valid, output wire [3:0] fault_region, output wire [39:0] fault_index,
  output wire [47:0] fault_version,
  output wire fault_internal, output wire idle,
  input wire key_valid, output wire key_ready, input wire [3:0] key_place, input wire key256,
  input wire [255:0] key
);
  localparam region_cfg_t NONE = '0;
  function automatic region_cfg_t tree(input logic [7:0] id, input logic [63:0] size,
      input logic [63:0] nodes, input bit long_key);
    region_cfg_t r;
    r = NONE;
    r.id = id;
    r.mode = MODE_TREE;
    r.size = size;
    r.chunk_log2 = 4'd6;
    r.key256 = long_key;
    r.node_base = nodes;
    return r;
  endfunction
  // by place: 2 levels, no tree, 1 level, 4 levels, 3 levels (16 entries of the root table each)
  localparam region_cfg_t [4:0] REGIONS = {
    tree(8'd12, 64'd100 << 12, 64'h4000_0000, 1'b1),
    tree(8'd3, 64'd1000 << 12, 64'h3000_0000, 1'b1),
    tree(8'd9, 64'd2 << 12, 64'h2000_0000, 1'b0), NONE,
    tree(8'd5, 64'd15 << 12, 64'h1000_0000, 1'b1)};
  function automatic logic [7:0] id_of(input logic [3:0] place);
    logic [7:0] id;
    id = '0;
    for (int i = 0; i < 5; i++) if (place == 4'(i)) id = REGIONS[i].id;
    return id;
  endfunction

  logic job_ready, gh_ready, gcm_job_ready, gcm_gh_ready, ks_valid, s_valid;
  logic [3:0] gh_region;
  logic [511:0] ks, gh_data;
  logic [127:0] s;
  assign job_ready = gcm_job_ready && !job_stall;
  assign gh_ready = gcm_gh_ready && !gh_stall;

  shef_tree #(.NRegions(5), .Regions(REGIONS), .Sets(Sets), .RootLog2(4)) u_tree (
    .clk_i(clk), .rst_ni(rst_n), .clr_i(clr), .zero_addr_i(zero_addr), .stop_i(stop),
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_kind_i(req_kind),
    .req_region_i(req_region), .req_chunk_i(req_chunk),
    .rsp_valid_o(rsp_valid), .rsp_bump_o(rsp_bump), .rsp_version_o(rsp_version),
    .rsp_exhausted_o(rsp_exhausted),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .r_valid_i(r_valid),
    .r_data_i(r_data),
    .wb_valid_o(wb_valid), .wb_ready_i(wb_ready), .wb_addr_o(wb_addr), .wb_data_o(wb_data),
    .ack_i(ack),
    .job_valid_o(job_valid), .job_ready_i(job_ready), .job_region_o(job_region),
    .job_index_o(job_index), .job_version_o(job_version),
    .ks_valid_i(ks_valid), .ks_i(ks[511:384]),
    .gh_valid_o(gh_valid), .gh_ready_i(gh_ready), .gh_region_o(gh_region), .gh_data_o(gh_data),
    .s_valid_i(s_valid), .s_i(s),
    .fault_valid_o(fault_valid), .fault_region_o(fault_region), .fault_index_o(fault_index),
    .fault_version_o(fault_version),
    .fault_internal_o(fault_internal), .idle_o(idle)
  );

  wire wiped;
  wire [1:0] s_slot;
  wire [7:0] ks_user, s_user;
  shef_gcm #(.NRegions(1), .NNodes(5), .Lanes(Lanes)) u_gcm (
    .clk_i(clk), .rst_ni(rst_n), .wipe_i(clr), .wipe_done_o(wiped),
    .key_valid_i(key_valid), .key_ready_o(key_ready), .key_region_i(key_place), .key_node_i(1'b1),
    .key256_i(key256), .chunk_log2_i(4'd6),
    .key_i(key),
    .job_valid_i(job_valid && !job_stall), .job_ready_o(gcm_job_ready),
    .job_key_i({1'b1, job_region}),
    .job_block_i({id_of(job_region), job_version, job_index, 32'd1, 384'd0}), .job_user_i('0),
    .ks_valid_o(ks_valid), .ks_o(ks), .ks_user_o(ks_user),
    .gh_valid_i(gh_valid && !gh_stall), .gh_ready_o(gcm_gh_ready), .gh_key_i({1'b1, gh_region}),
    .gh_slot_i(2'd2), .gh_first_i(1'b1),
    .gh_last_i(1'b1), .gh_pow_i('0), .gh_data_i(gh_data), .gh_user_i('0),
    .s_valid_o(s_valid), .s_slot_o(s_slot), .s_o(s), .s_user_o(s_user)
  );
  wire unused = &{1'b0, wiped, s_slot, ks_user, s_user, ks[383:0]};
endmodule
`default_nettype wire
