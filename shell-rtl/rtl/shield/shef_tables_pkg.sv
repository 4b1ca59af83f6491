// Tables of an engine set: region parameters, computed from the configuration at elaboration.
//
// A table has one value for each of the 16 possible places of a set; `n` of them hold regions.
`default_nettype none
package shef_tables_pkg;
  import shef_pkg::*;
  import shef_set_pkg::*;
  import shef_tree_pkg::*;

  typedef region_cfg_t [MAX_REGIONS-1:0] regions_t;
  typedef logic [MAX_REGIONS-1:0][31:0] words_t;

  // chunk size
  function automatic log2_tab_t tab_log2(input int unsigned n, input regions_t regions);
    log2_tab_t t;
    t = {MAX_REGIONS{4'd6}};
    for (int unsigned r = 0; r < n; r++) t[r] = regions[r].chunk_log2;
    return t;
  endfunction

  // region id; all ones if there is no region
  function automatic id_tab_t tab_id(input int unsigned n, input regions_t regions);
    id_tab_t t;
    t = '1;
    for (int unsigned r = 0; r < n; r++) t[r] = regions[r].id;
    return t;
  endfunction

  // first byte of the region's chunks, or of its tags
  function automatic addr_tab_t tab_base(input int unsigned n, input regions_t regions,
      input bit tags);
    addr_tab_t t;
    t = '0;
    for (int unsigned r = 0; r < n; r++) t[r] = tags ? regions[r].tag_base : regions[r].base;
    return t;
  endfunction

  // regions of that mode
  function automatic logic [MAX_REGIONS-1:0] tab_mode(input int unsigned n, input regions_t regions,
      input region_mode_e mode);
    logic [MAX_REGIONS-1:0] t;
    t = '0;
    for (int unsigned r = 0; r < n; r++) t[r] = regions[r].mode == mode;
    return t;
  endfunction

  // regions whose chunks need a line of 4 KiB
  function automatic logic [MAX_REGIONS-1:0] tab_big(input int unsigned n, input regions_t regions);
    logic [MAX_REGIONS-1:0] t;
    t = '0;
    for (int unsigned r = 0; r < n; r++) t[r] = regions[r].chunk_log2 > 4'd9;
    return t;
  endfunction

  // words that the region needs in the written map (`output`) or in the counters (`counted`)
  function automatic words_t tab_words(input int unsigned n, input regions_t regions,
      input region_mode_e mode);
    words_t t;
    logic [63:0] chunks;
    t = '0;
    for (int unsigned r = 0; r < n; r++) begin
      chunks = regions[r].size >> regions[r].chunk_log2;
      // 32 bits of the written map, one or two counters
      if (regions[r].mode == mode)
        t[r] = (mode == MODE_OUTPUT) ? 32'((chunks + 64'd31) >> 5) : regions[r].wide_counter
            ? 32'(chunks) : 32'((chunks + 64'd1) >> 1);
    end
    return t;
  endfunction

  // first word of each region, for regions in a contiguous layout
  function automatic words_t tab_first(input int unsigned n, input words_t words);
    words_t t;
    logic [31:0] sum;
    t = '0;
    sum = '0;
    for (int unsigned r = 0; r < n; r++) begin
      t[r] = sum;
      sum = sum + words[r];
    end
    return t;
  endfunction

  // all words
  function automatic int unsigned total(input int unsigned n, input words_t words);
    int unsigned sum;
    sum = 0;
    for (int unsigned r = 0; r < n; r++) sum = sum + words[r];
    return sum;
  endfunction

  // regions with a counter of a whole word
  function automatic logic [MAX_REGIONS-1:0] tab_wide(input int unsigned n,
      input regions_t regions);
    logic [MAX_REGIONS-1:0] t;
    t = '0;
    for (int unsigned r = 0; r < n; r++) t[r] = regions[r].wide_counter;
    return t;
  endfunction

  // bits that distinguish the chunks of a region
  function automatic int unsigned chunk_bits(input int unsigned n, input regions_t regions);
    int unsigned bits;
    bits = 3;
    for (int unsigned r = 0; r < n; r++)
      while (bits < CHUNK_INDEX_W && ((regions[r].size - 64'd1) >> regions[r].chunk_log2) >> bits !=
          64'd0) bits++;
    return bits;
  endfunction

  // places for data keys, by the region's id
  function automatic int unsigned num_slots(input int unsigned n, input regions_t regions);
    int unsigned most;
    most = 1;
    for (int unsigned r = 0; r < n; r++)
      if (32'(regions[r].id) + 1 > most) most = 32'(regions[r].id) + 1;
    return most;
  endfunction

  // roots of all counter trees
  function automatic int unsigned num_roots(input int unsigned n, input regions_t regions);
    int unsigned sum;
    sum = 0;
    for (int unsigned r = 0; r < n; r++) sum = sum + tree_roots(regions[r], 16);
    return sum;
  endfunction

  // places for node keys, by the region's id like the data keys
  function automatic int unsigned num_nodes(input int unsigned n, input regions_t regions);
    int unsigned most;
    most = 0;
    for (int unsigned r = 0; r < n; r++)
      if (regions[r].mode == MODE_TREE && 32'(regions[r].id) + 1 > most)
        most = 32'(regions[r].id) + 1;
    return most;
  endfunction

  // chunks to prefetch
  function automatic logic [MAX_REGIONS-1:0][3:0] tab_prefetch(input int unsigned n,
      input regions_t regions);
    logic [MAX_REGIONS-1:0][3:0] t;
    t = '0;
    for (int unsigned r = 0; r < n; r++)
      t[r] = (regions[r].mode == MODE_OUTPUT) ? '0 : regions[r].prefetch;
    return t;
  endfunction

  // number of chunks
  function automatic logic [MAX_REGIONS-1:0][CHUNK_INDEX_W-1:0] tab_chunks(input int unsigned n,
      input regions_t regions);
    logic [MAX_REGIONS-1:0][CHUNK_INDEX_W-1:0] t;
    t = '0;
    for (int unsigned r = 0; r < n; r++)
      t[r] = CHUNK_INDEX_W'(regions[r].size >> regions[r].chunk_log2);
    return t;
  endfunction
endpackage
`default_nettype wire
