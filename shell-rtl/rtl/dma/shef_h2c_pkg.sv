// What the window to card memory does with an access.
`default_nettype none
package shef_h2c_pkg;
  import shef_pkg::*;

  typedef enum logic [1:0] {
    H2C_MEMORY = 2'd0,   // card memory
    H2C_OUTSIDE = 2'd1,  // at or above the end of card memory: zeros, or dropped; OKAY
    H2C_REFUSED = 2'd2   // zeros, or dropped; SLVERR
  } h2c_kind_e;

  // A burst is INCR, of whole beats if there are several, and inside a page of 4 KiB. With closed,
  // card memory is out of reach.
  function automatic h2c_kind_e h2c_kind(input logic [63:0] addr, input logic [7:0] len,
      input logic [2:0] size, input logic [1:0] burst, input logic [63:0] card_bytes,
      input logic closed);
    if (closed || burst != AXI_BURST_INCR || (size != AXI_SIZE_64 && len != '0) ||
        {3'd0, addr[11:6]} + {1'b0, len} > 9'd63) h2c_kind = H2C_REFUSED;
    else h2c_kind = addr < card_bytes ? H2C_MEMORY : H2C_OUTSIDE;
  endfunction
endpackage
`default_nettype wire
