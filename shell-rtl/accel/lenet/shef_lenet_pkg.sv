// Shapes of the network's layers, and what the stages of the accelerator pass on.
//
// Layers: 0 and 1 are filters of 5 x 5 with pooling, 2 to 4 take all of their inputs. A step reads
// two rows of 32 bytes of the layer's input and multiplies ten bytes of them with ten weights in
// each of 16 lanes. An output is the sum of several steps, and pooling takes the largest of several
// sums.
`default_nettype none
package shef_lenet_pkg;
  localparam int unsigned LANES = 16;
  localparam int unsigned TAPS = 10;   // of a lane: five bytes of each row
  localparam int unsigned LAYERS = 5;
  localparam int unsigned BATCH = 64;  // images that go through a layer one after the other

  typedef logic [2:0] layer_t;

  // Last values of the counters of a layer's steps, and its size in memory in lines.
  typedef struct packed {
    logic [2:0] taps;      // kernel row, or window of a line
    logic [2:0] depth;     // pair of channels, or line
    logic [2:0] rest;      // the same as taps, at the last depth
    logic [1:0] pool;      // sums of which the largest counts
    logic [3:0] col;       // pooled column, or group of 16 outputs
    logic [3:0] row;       // pooled row
    logic [10:0] offset;   // of its weights and biases
    logic [10:0] lines;    // of them: one of biases for a group, three for a step
    logic [5:0] in_lines;  // of one image
    logic [5:0] out_lines;
    logic [11:0] map;      // of its outputs for a batch, in the feature maps
  } shape_t;

  function automatic shape_t shape(input layer_t layer);
    case (layer)
      3'd0: return '{taps: 3'd2, depth: 3'd0, rest: 3'd2, pool: 2'd1, col: 4'd13, row: 4'd13,
          offset: 11'd0, lines: 11'd10, in_lines: 6'd16, out_lines: 6'd42, map: 12'd0};
      3'd1: return '{taps: 3'd4, depth: 3'd2, rest: 3'd4, pool: 2'd3, col: 4'd4, row: 4'd4,
          offset: 11'd10, lines: 11'd46, in_lines: 6'd42, out_lines: 6'd7, map: 12'd2688};
      3'd2: return '{taps: 3'd6, depth: 3'd6, rest: 3'd3, pool: 2'd0, col: 4'd7, row: 4'd0,
          offset: 11'd56, lines: 11'd1112, in_lines: 6'd7, out_lines: 6'd2, map: 12'd3136};
      3'd3: return '{taps: 3'd6, depth: 3'd1, rest: 3'd6, pool: 2'd0, col: 4'd5, row: 4'd0,
          offset: 11'd1168, lines: 11'd258, in_lines: 6'd2, out_lines: 6'd2, map: 12'd3264};
      default: return '{taps: 3'd6, depth: 3'd1, rest: 3'd6, pool: 2'd0, col: 4'd0, row: 4'd0,
          offset: 11'd1426, lines: 11'd43, in_lines: 6'd2, out_lines: 6'd1, map: 12'd0};
    endcase
  endfunction

  // Groups of 16 outputs, which have a line of biases each.
  function automatic logic [3:0] groups(input layer_t layer);
    return layer >= 3'd2 ? shape(layer).col + 4'd1 : 4'd1;
  endfunction

  // Where a step reads.
  typedef struct packed {
    logic [5:0] low;      // line whose lower half is read
    logic [5:0] high;     // line whose upper half is read
    logic swap;           // the first row is that of the upper half
    logic single;         // there is no second row
    logic [4:0] x;        // first byte
    logic [8:0] weights;  // word of weights
  } fetch_t;

  // What a step is for.
  typedef struct packed {
    logic valid;
    logic first;       // of its sum
    logic last;
    logic pool_first;  // first sum of an output
    logic pool_last;
    logic [3:0] col;
    logic image_last;  // last output of an image
  } step_t;
endpackage
`default_nettype wire
