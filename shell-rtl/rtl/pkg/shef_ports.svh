// Flat ports for the buses of shef_pkg, for tops that a test bench or another language drives: the
// signals of AMBA AXI4 in lower case behind the bus's name, as in mem_awaddr.
//
// `SHEF_AXI_M_PORTS(bus, dim), `SHEF_AXI_S_PORTS(bus, dim): ports of an AXI4 master or slave, for
//   the port list of a module; dim is the unpacked dimension of an array of ports, else empty.
// `SHEF_AXI_REQ(bus, index), `SHEF_AXI_RSP(bus, index): the bits of its axi_req_t and axi_rsp_t,
//   to assign from and to; index is that of the port in the array, else empty.
// `SHEF_AXIL_M_PORTS(bus, width), `SHEF_AXIL_S_PORTS(bus, width): ports of an AXI4-Lite master or
//   slave with that address width.
// `SHEF_AXIL_REQ(bus), `SHEF_AXIL_RSP(bus): the bits of a slave's axil_req_t and axil_rsp_t.
//
// No include guard: whatever an accelerator's source defines, a top has the macros of this file.

`define SHEF_AXI_PORTS(bus, dim, req, rsp) \
    req [7:0]   bus``_awid dim, \
    req [63:0]  bus``_awaddr dim, \
    req [7:0]   bus``_awlen dim, \
    req [2:0]   bus``_awsize dim, \
    req [1:0]   bus``_awburst dim, \
    req         bus``_awvalid dim, \
    rsp         bus``_awready dim, \
    req [511:0] bus``_wdata dim, \
    req [63:0]  bus``_wstrb dim, \
    req         bus``_wlast dim, \
    req         bus``_wvalid dim, \
    rsp         bus``_wready dim, \
    rsp [7:0]   bus``_bid dim, \
    rsp [1:0]   bus``_bresp dim, \
    rsp         bus``_bvalid dim, \
    req         bus``_bready dim, \
    req [7:0]   bus``_arid dim, \
    req [63:0]  bus``_araddr dim, \
    req [7:0]   bus``_arlen dim, \
    req [2:0]   bus``_arsize dim, \
    req [1:0]   bus``_arburst dim, \
    req         bus``_arvalid dim, \
    rsp         bus``_arready dim, \
    rsp [7:0]   bus``_rid dim, \
    rsp [511:0] bus``_rdata dim, \
    rsp [1:0]   bus``_rresp dim, \
    rsp         bus``_rlast dim, \
    rsp         bus``_rvalid dim, \
    req         bus``_rready dim
`define SHEF_AXI_M_PORTS(bus, dim) `SHEF_AXI_PORTS(bus, dim, output logic, input wire logic)
`define SHEF_AXI_S_PORTS(bus, dim) `SHEF_AXI_PORTS(bus, dim, input wire logic, output logic)

`define SHEF_AXI_REQ(bus, index) \
    {bus``_awid index, bus``_awaddr index, bus``_awlen index, bus``_awsize index, \
     bus``_awburst index, bus``_awvalid index, \
     bus``_wdata index, bus``_wstrb index, bus``_wlast index, bus``_wvalid index, \
     bus``_bready index, \
     bus``_arid index, bus``_araddr index, bus``_arlen index, bus``_arsize index, \
     bus``_arburst index, bus``_arvalid index, \
     bus``_rready index}
`define SHEF_AXI_RSP(bus, index) \
    {bus``_awready index, bus``_wready index, \
     bus``_bid index, bus``_bresp index, bus``_bvalid index, \
     bus``_arready index, \
     bus``_rid index, bus``_rdata index, bus``_rresp index, bus``_rlast index, bus``_rvalid index}

`define SHEF_AXIL_PORTS(bus, width, req, rsp) \
    req [width-1:0] bus``_awaddr, \
    req             bus``_awvalid, \
    rsp             bus``_awready, \
    req [31:0]      bus``_wdata, \
    req [3:0]       bus``_wstrb, \
    req             bus``_wvalid, \
    rsp             bus``_wready, \
    rsp [1:0]       bus``_bresp, \
    rsp             bus``_bvalid, \
    req             bus``_bready, \
    req [width-1:0] bus``_araddr, \
    req             bus``_arvalid, \
    rsp             bus``_arready, \
    rsp [31:0]      bus``_rdata, \
    rsp [1:0]       bus``_rresp, \
    rsp             bus``_rvalid, \
    req             bus``_rready
`define SHEF_AXIL_M_PORTS(bus, width) `SHEF_AXIL_PORTS(bus, width, output logic, input wire logic)
`define SHEF_AXIL_S_PORTS(bus, width) `SHEF_AXIL_PORTS(bus, width, input wire logic, output logic)
`define SHEF_AXIL_REQ(bus) \
    {16'(bus``_awaddr), bus``_awvalid, bus``_wdata, bus``_wstrb, bus``_wvalid, bus``_bready, \
     16'(bus``_araddr), bus``_arvalid, bus``_rready}
`define SHEF_AXIL_RSP(bus) \
    {bus``_awready, bus``_wready, bus``_bresp, bus``_bvalid, \
     bus``_arready, bus``_rdata, bus``_rresp, bus``_rvalid}

// What reaches an accelerator, for a bench to watch: read requests and read beats (shef_sim_top).
`define SHEF_OBS_PORTS(dim) \
    output logic        obs_arvalid dim, \
    output logic [7:0]  obs_arid dim, \
    output logic [63:0] obs_araddr dim, \
    output logic [7:0]  obs_arlen dim, \
    output logic        obs_rvalid dim, \
    output logic [7:0]  obs_rid dim, \
    output logic [1:0]  obs_rresp dim, \
    output logic        obs_rlast dim
`define SHEF_OBS(index, req, rsp) \
    assign obs_arvalid index = req.ar_valid && rsp.ar_ready; \
    assign obs_arid index = req.ar.id; \
    assign obs_araddr index = req.ar.addr; \
    assign obs_arlen index = req.ar.len; \
    assign obs_rvalid index = rsp.r_valid && req.r_ready; \
    assign obs_rid index = rsp.r.id; \
    assign obs_rresp index = rsp.r.resp; \
    assign obs_rlast index = rsp.r.last
