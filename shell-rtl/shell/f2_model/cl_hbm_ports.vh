// Ports of the HBM IP of AWS F2 (cl_hbm of the HDK): two stacks of 8 GiB, 32 AXI3 ports, the APB
// ports and their monitors. Names and widths are the vendor's.
`define SHEF_HBM_PORT(nn) \
    input  wire logic         AXI_``nn``_ACLK, \
    input  wire logic         AXI_``nn``_ARESET_N, \
    input  wire logic [33:0]  AXI_``nn``_ARADDR, \
    input  wire logic [1:0]   AXI_``nn``_ARBURST, \
    input  wire logic [5:0]   AXI_``nn``_ARID, \
    input  wire logic [3:0]   AXI_``nn``_ARLEN, \
    input  wire logic [2:0]   AXI_``nn``_ARSIZE, \
    input  wire logic         AXI_``nn``_ARVALID, \
    output logic              AXI_``nn``_ARREADY, \
    output logic [5:0]        AXI_``nn``_RID, \
    output logic [255:0]      AXI_``nn``_RDATA, \
    output logic [31:0]       AXI_``nn``_RDATA_PARITY, \
    output logic [1:0]        AXI_``nn``_RRESP, \
    output logic              AXI_``nn``_RLAST, \
    output logic              AXI_``nn``_RVALID, \
    input  wire logic         AXI_``nn``_RREADY, \
    input  wire logic [33:0]  AXI_``nn``_AWADDR, \
    input  wire logic [1:0]   AXI_``nn``_AWBURST, \
    input  wire logic [5:0]   AXI_``nn``_AWID, \
    input  wire logic [3:0]   AXI_``nn``_AWLEN, \
    input  wire logic [2:0]   AXI_``nn``_AWSIZE, \
    input  wire logic         AXI_``nn``_AWVALID, \
    output logic              AXI_``nn``_AWREADY, \
    input  wire logic [255:0] AXI_``nn``_WDATA, \
    input  wire logic [31:0]  AXI_``nn``_WDATA_PARITY, \
    input  wire logic [31:0]  AXI_``nn``_WSTRB, \
    input  wire logic         AXI_``nn``_WLAST, \
    input  wire logic         AXI_``nn``_WVALID, \
    output logic              AXI_``nn``_WREADY, \
    output logic [5:0]        AXI_``nn``_BID, \
    output logic [1:0]        AXI_``nn``_BRESP, \
    output logic              AXI_``nn``_BVALID, \
    input  wire logic         AXI_``nn``_BREADY
`define SHEF_HBM_STACK(n) \
    input  wire logic         HBM_REF_CLK_``n, \
    input  wire logic         APB_``n``_PCLK, \
    input  wire logic         APB_``n``_PRESET_N, \
    input  wire logic [21:0]  APB_``n``_PADDR, \
    input  wire logic         APB_``n``_PSEL, \
    input  wire logic         APB_``n``_PENABLE, \
    input  wire logic         APB_``n``_PWRITE, \
    input  wire logic [31:0]  APB_``n``_PWDATA, \
    output logic [31:0]       APB_``n``_PRDATA, \
    output logic              APB_``n``_PREADY, \
    output logic              APB_``n``_PSLVERR, \
    input  wire logic         MON_APB_``n``_PRESET_N, \
    output logic [21:0]       APB_``n``_PADDR_MON, \
    output logic              APB_``n``_PSEL_MON, \
    output logic              APB_``n``_PENABLE_MON, \
    output logic              APB_``n``_PWRITE_MON, \
    output logic [31:0]       APB_``n``_PWDATA_MON, \
    output logic [31:0]       APB_``n``_PRDATA_MON, \
    output logic              APB_``n``_PREADY_MON, \
    output logic              APB_``n``_PSLVERR_MON, \
    output logic              apb_complete_``n, \
    output logic              DRAM_``n``_STAT_CATTRIP, \
    output logic [6:0]        DRAM_``n``_STAT_TEMP
    `SHEF_HBM_STACK(0),
    `SHEF_HBM_STACK(1),
    `SHEF_HBM_PORT(00),
    `SHEF_HBM_PORT(01),
    `SHEF_HBM_PORT(02),
    `SHEF_HBM_PORT(03),
    `SHEF_HBM_PORT(04),
    `SHEF_HBM_PORT(05),
    `SHEF_HBM_PORT(06),
    `SHEF_HBM_PORT(07),
    `SHEF_HBM_PORT(08),
    `SHEF_HBM_PORT(09),
    `SHEF_HBM_PORT(10),
    `SHEF_HBM_PORT(11),
    `SHEF_HBM_PORT(12),
    `SHEF_HBM_PORT(13),
    `SHEF_HBM_PORT(14),
    `SHEF_HBM_PORT(15),
    `SHEF_HBM_PORT(16),
    `SHEF_HBM_PORT(17),
    `SHEF_HBM_PORT(18),
    `SHEF_HBM_PORT(19),
    `SHEF_HBM_PORT(20),
    `SHEF_HBM_PORT(21),
    `SHEF_HBM_PORT(22),
    `SHEF_HBM_PORT(23),
    `SHEF_HBM_PORT(24),
    `SHEF_HBM_PORT(25),
    `SHEF_HBM_PORT(26),
    `SHEF_HBM_PORT(27),
    `SHEF_HBM_PORT(28),
    `SHEF_HBM_PORT(29),
    `SHEF_HBM_PORT(30),
    `SHEF_HBM_PORT(31)
`undef SHEF_HBM_PORT
`undef SHEF_HBM_STACK
