// Faults of f2_small_cl, one at a time. The comment names the rule of the shell that the fault
// breaks.
`default_nettype none
package f2_fault_pkg;
  typedef enum logic [7:0] {
    NONE              = 8'd0,
    PCIS_SERIAL       = 8'd1,   // pcis-read-8us
    PCIS_READ_NEVER   = 8'd2,   // pcis-read-8us
    PCIS_WRITE_NEVER  = 8'd3,   // pcis-write-8us
    PCIS_R_UNASKED    = 8'd4,   // pcis-r-unasked
    PCIS_B_UNASKED    = 8'd5,   // pcis-b-unasked
    PCIS_R_ID         = 8'd6,   // pcis-r-id
    PCIS_B_ID         = 8'd7,   // pcis-b-id
    PCIS_RLAST        = 8'd8,   // pcis-rlast
    PCIS_R_CHANGES    = 8'd9,   // pcis-r-steady
    PCIS_B_FALLS      = 8'd10,  // pcis-b-steady
    OCL_READ_NEVER    = 8'd11,  // ocl-read-8us
    OCL_WRITE_NEVER   = 8'd12,  // ocl-write-8us
    OCL_R_UNASKED     = 8'd13,  // ocl-r-unasked
    OCL_B_UNASKED     = 8'd14,  // ocl-b-unasked
    OCL_R_CHANGES     = 8'd15,  // ocl-r-steady
    OCL_B_FALLS       = 8'd16,  // ocl-b-steady
    SDA_READ_NEVER    = 8'd17,  // sda-read-8us
    SDA_WRITE_NEVER   = 8'd18,  // sda-write-8us
    SDA_R_UNASKED     = 8'd19,  // sda-r-unasked
    SDA_B_UNASKED     = 8'd20,  // sda-b-unasked
    SDA_R_CHANGES     = 8'd21,  // sda-r-steady
    SDA_B_FALLS       = 8'd22,  // sda-b-steady
    SDA_MAGIC         = 8'd23,  // sda-magic
    PCIM_SIZE         = 8'd24,  // pcim-size
    PCIM_FIXED        = 8'd25,  // pcim-incr
    PCIM_TWO_BEATS    = 8'd26,  // pcim-4k
    PCIM_ONE_ID       = 8'd27,  // pcim-read-id
    PCIM_33_READS     = 8'd28,  // pcim-reads-open
    PCIM_STROBE_GAP   = 8'd29,  // pcim-strobes
    PCIM_STROBE_ADDR  = 8'd30,  // pcim-strobe-address
    PCIM_NO_W         = 8'd31,  // pcim-w-8us
    PCIM_RREADY_LOW   = 8'd32,  // pcim-r-8us
    PCIM_BREADY_LOW   = 8'd33,  // pcim-b-8us
    PCIM_BY_ITSELF    = 8'd34,  // pcim-bus-master
    PCIM_AR_CHANGES   = 8'd35,  // pcim-ar-steady
    PCIM_AW_FALLS     = 8'd36,  // pcim-aw-steady
    PCIM_W_CHANGES    = 8'd37,  // pcim-w-steady
    PCIM_WLAST_EARLY  = 8'd38,  // pcim-wlast
    PCIM_LEFT_OPEN    = 8'd39,  // pcim-left-open
    RESET_VALID       = 8'd40,  // reset-valid
    IRQ_LONG          = 8'd41,  // irq-pulse
    IRQ_TWICE         = 8'd42,  // irq-repeat
    IRQ_VECTOR_16     = 8'd43,  // irq-vector
    FLR_UNASKED       = 8'd44,  // flr-unasked
    FLR_NEVER         = 8'd45,  // flr-never
    FLR_NO_WIPE       = 8'd46,  // flr-early
    ID_OTHER          = 8'd47,  // id-mismatch
    ID_CHANGES        = 8'd48,  // id-static
    DDR_NO_ACK        = 8'd49,  // ddr-stat
    POWER_NO_WIPE     = 8'd50   // power-late
  } fault_e;
endpackage
`default_nettype wire
