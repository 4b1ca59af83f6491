// Sizes and types of the ingest accelerator, and its table of logarithms.
`default_nettype none
package shef_ingest_pkg;
  localparam int unsigned LANES = 16;      // words of a line
  localparam int unsigned DENSE = 16;      // dense features
  localparam int unsigned SPARSE = 7;      // sparse features, at most
  localparam int unsigned ROWS = 64;       // rows of a group, at most
  localparam int unsigned STAGES = 6;      // of the pipelines of dense values and of ids
  localparam logic [31:0] PAD = '1;        // an id that is no entry

  typedef logic [LANES-1:0][31:0] line_t;

  typedef enum logic [1:0] {
    OP_PASS = 2'd0,    // the clamped value
    OP_LOG = 2'd1,     // log2(1 + value) with 16 fractional bits, negative values as 0
    OP_BUCKET = 2'd2   // how many of the 16 boundaries are below the value
  } op_e;

  // Where a line of results goes.
  typedef struct packed {
    logic half;          // of the store
    logic list;          // a unique list, not a dense column
    logic [2:0] sparse;  // its feature
    logic [5:0] entry;   // list of this feature
    logic [3:0] dense;   // feature of a dense column
    logic [1:0] rows;    // its rows: 16 * rows ..
    logic last;          // of the group
  } place_t;

  // round(2^20 * log2(1 + i / 128)).
  localparam logic [20:0] LOG[129] = '{
    21'd0, 21'd11773, 21'd23454, 21'd35047, 21'd46551, 21'd57968, 21'd69300,
    21'd80547, 21'd91711, 21'd102794, 21'd113796, 21'd124719, 21'd135563, 21'd146330,
    21'd157021, 21'd167637, 21'd178179, 21'd188648, 21'd199045, 21'd209372, 21'd219628,
    21'd229815, 21'd239934, 21'd249985, 21'd259971, 21'd269891, 21'd279746, 21'd289537,
    21'd299266, 21'd308932, 21'd318537, 21'd328082, 21'd337566, 21'd346991, 21'd356359,
    21'd365668, 21'd374920, 21'd384117, 21'd393257, 21'd402343, 21'd411375, 21'd420353,
    21'd429278, 21'd438150, 21'd446971, 21'd455741, 21'd464460, 21'd473129, 21'd481749,
    21'd490320, 21'd498843, 21'd507318, 21'd515745, 21'd524126, 21'd532461, 21'd540750,
    21'd548995, 21'd557194, 21'd565349, 21'd573460, 21'd581529, 21'd589554, 21'd597537,
    21'd605478, 21'd613378, 21'd621236, 21'd629054, 21'd636832, 21'd644570, 21'd652269,
    21'd659928, 21'd667549, 21'd675132, 21'd682677, 21'd690185, 21'd697655, 21'd705089,
    21'd712487, 21'd719848, 21'd727174, 21'd734464, 21'd741720, 21'd748941, 21'd756127,
    21'd763280, 21'd770399, 21'd777484, 21'd784537, 21'd791557, 21'd798544, 21'd805500,
    21'd812423, 21'd819315, 21'd826176, 21'd833005, 21'd839804, 21'd846573, 21'd853311,
    21'd860020, 21'd866699, 21'd873348, 21'd879969, 21'd886561, 21'd893124, 21'd899658,
    21'd906165, 21'd912644, 21'd919095, 21'd925518, 21'd931915, 21'd938284, 21'd944627,
    21'd950944, 21'd957234, 21'd963498, 21'd969736, 21'd975949, 21'd982136, 21'd988298,
    21'd994435, 21'd1000547, 21'd1006635, 21'd1012698, 21'd1018737, 21'd1024752, 21'd1030743,
    21'd1036711, 21'd1042655, 21'd1048576
  };
endpackage
`default_nettype wire
