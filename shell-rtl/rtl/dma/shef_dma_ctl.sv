// Registers of the DMA engine behind AXI4-Lite: decodes queue and register from the address.
//
// Whole words only; an address without a register, or an access in the wrong direction, gets
// SLVERR. write_o is a pulse with queue, register offset and value. read_queue_o and read_reg_o
// select read_data_i combinationally.
`default_nettype none
module shef_dma_ctl
  import shef_pkg::*;
  import shef_dma_pkg::*;
  import shef_dma_regs_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_ni,
    input  wire axil_req_t req_i,
    output axil_rsp_t    rsp_o,
    output logic         write_o,
    output logic [QUEUE_W-1:0] write_queue_o,
    output logic [5:0]   write_reg_o,
    output logic [31:0]  write_data_o,
    output logic [QUEUE_W-1:0] read_queue_o,
    output logic [5:0]   read_reg_o,
    input  wire  [31:0]  read_data_i
);
  logic wr, wr_err, rd, rd_err_q;
  logic [15:0] wr_addr, rd_addr;
  logic [3:0] wr_strb;
  logic [31:0] rd_data_q;

  shef_axil_slave #(
      .AddrW(16)
  ) u_slave (
      .clk_i,
      .rst_ni,
      .req_i,
      .rsp_o,
      .wr_valid_o(wr),
      .wr_addr_o(wr_addr),
      .wr_data_o(write_data_o),
      .wr_strb_o(wr_strb),
      .wr_err_i(wr_err),
      .rd_valid_o(rd),
      .rd_addr_o(rd_addr),
      .rd_data_i(rd_data_q),
      .rd_err_i(rd_err_q)
  );

  assign write_queue_o = wr_addr[7:6];
  assign write_reg_o = {wr_addr[5:2], 2'b00};
  assign wr_err = wr_addr[15:8] != REGS_PAGE || wr_strb != 4'hf ||
      !dma_writable(dma_decode(write_reg_o));
  assign write_o = wr && !wr_err;
  assign read_queue_o = rd_addr[7:6];
  assign read_reg_o = {rd_addr[5:2], 2'b00};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_data_q <= '0;
      rd_err_q <= 1'b0;
    end else if (rd) begin
      rd_data_q <= read_data_i;
      rd_err_q <= rd_addr[15:8] != REGS_PAGE || !dma_readable(dma_decode(read_reg_o));
    end
  end

  logic unused;
  assign unused = ^{wr_addr[1:0], rd_addr[1:0]};
endmodule
`default_nettype wire
