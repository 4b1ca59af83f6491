// Types of the affine transform: what its stages pass on for a group of four pixels.
`default_nettype none
package shef_affine_pkg;
  localparam int unsigned PIXELS = 4;  // of a group: neighbours in a row of the target

  // Where a pixel of the target lies in the source.
  typedef struct packed {
    logic [3:0] x;     // upper left of its four neighbours: column and row, modulo 16
    logic [3:0] y;
    logic [7:0] fx;    // how far it is from there, in 1/256
    logic [7:0] fy;
    logic [1:0] in_x;  // columns x and x + 1 are in the picture
    logic [1:0] in_y;  // rows y and y + 1 are in the picture
  } place_t;

  // A group lies in two by two tiles of 8 x 8 pixels. A tile belongs to the bank {row, column} of
  // the low bits of its numbers, so each of the four is in another bank.
  typedef struct packed {
    place_t [PIXELS-1:0] places;
    logic [3:0] need;        // banks whose tile is read
    logic [3:0][5:0] col;    // the tile of each bank
    logic [3:0][5:0] row;
  } group_t;

  typedef struct packed {
    logic [31:0] a, b, c;  // source column = a * column + b * row + c, in 1/65536
    logic [31:0] d, e, f;  // source row = d * column + e * row + f
  } map_t;
endpackage
`default_nettype wire
