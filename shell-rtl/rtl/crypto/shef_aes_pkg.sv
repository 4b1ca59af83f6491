// AES tables and functions (FIPS 197), shared by the pipelines and the key expansion.
//
// A block is stored as the standard prints it: byte 0 in the top bits, column c in [127-32c -: 32].
// Two forms of the round give the same result and are compared by test: TABLE (S-box and MixColumns
// in one 32-bit table, the fastest in simulation) and LOGIC (an 8-bit S-box and MixColumns by
// shifts, the smallest on an FPGA).
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_aes_pkg;

`ifdef SYNTHESIS
  localparam bit TABLE_FORM = 1'b0;
`else
  localparam bit TABLE_FORM = 1'b1;
`endif

  // cycles from a job's handshake to its keystream with four lanes
  localparam int unsigned AES_STAGES = 15;

  localparam logic [7:0] SBOX [256] = '{
    8'h63, 8'h7c, 8'h77, 8'h7b, 8'hf2, 8'h6b, 8'h6f, 8'hc5,
    8'h30, 8'h01, 8'h67, 8'h2b, 8'hfe, 8'hd7, 8'hab, 8'h76,
    8'hca, 8'h82, 8'hc9, 8'h7d, 8'hfa, 8'h59, 8'h47, 8'hf0,
    8'had, 8'hd4, 8'ha2, 8'haf, 8'h9c, 8'ha4, 8'h72, 8'hc0,
    8'hb7, 8'hfd, 8'h93, 8'h26, 8'h36, 8'h3f, 8'hf7, 8'hcc,
    8'h34, 8'ha5, 8'he5, 8'hf1, 8'h71, 8'hd8, 8'h31, 8'h15,
    8'h04, 8'hc7, 8'h23, 8'hc3, 8'h18, 8'h96, 8'h05, 8'h9a,
    8'h07, 8'h12, 8'h80, 8'he2, 8'heb, 8'h27, 8'hb2, 8'h75,
    8'h09, 8'h83, 8'h2c, 8'h1a, 8'h1b, 8'h6e, 8'h5a, 8'ha0,
    8'h52, 8'h3b, 8'hd6, 8'hb3, 8'h29, 8'he3, 8'h2f, 8'h84,
    8'h53, 8'hd1, 8'h00, 8'hed, 8'h20, 8'hfc, 8'hb1, 8'h5b,
    8'h6a, 8'hcb, 8'hbe, 8'h39, 8'h4a, 8'h4c, 8'h58, 8'hcf,
    8'hd0, 8'hef, 8'haa, 8'hfb, 8'h43, 8'h4d, 8'h33, 8'h85,
    8'h45, 8'hf9, 8'h02, 8'h7f, 8'h50, 8'h3c, 8'h9f, 8'ha8,
    8'h51, 8'ha3, 8'h40, 8'h8f, 8'h92, 8'h9d, 8'h38, 8'hf5,
    8'hbc, 8'hb6, 8'hda, 8'h21, 8'h10, 8'hff, 8'hf3, 8'hd2,
    8'hcd, 8'h0c, 8'h13, 8'hec, 8'h5f, 8'h97, 8'h44, 8'h17,
    8'hc4, 8'ha7, 8'h7e, 8'h3d, 8'h64, 8'h5d, 8'h19, 8'h73,
    8'h60, 8'h81, 8'h4f, 8'hdc, 8'h22, 8'h2a, 8'h90, 8'h88,
    8'h46, 8'hee, 8'hb8, 8'h14, 8'hde, 8'h5e, 8'h0b, 8'hdb,
    8'he0, 8'h32, 8'h3a, 8'h0a, 8'h49, 8'h06, 8'h24, 8'h5c,
    8'hc2, 8'hd3, 8'hac, 8'h62, 8'h91, 8'h95, 8'he4, 8'h79,
    8'he7, 8'hc8, 8'h37, 8'h6d, 8'h8d, 8'hd5, 8'h4e, 8'ha9,
    8'h6c, 8'h56, 8'hf4, 8'hea, 8'h65, 8'h7a, 8'hae, 8'h08,
    8'hba, 8'h78, 8'h25, 8'h2e, 8'h1c, 8'ha6, 8'hb4, 8'hc6,
    8'he8, 8'hdd, 8'h74, 8'h1f, 8'h4b, 8'hbd, 8'h8b, 8'h8a,
    8'h70, 8'h3e, 8'hb5, 8'h66, 8'h48, 8'h03, 8'hf6, 8'h0e,
    8'h61, 8'h35, 8'h57, 8'hb9, 8'h86, 8'hc1, 8'h1d, 8'h9e,
    8'he1, 8'hf8, 8'h98, 8'h11, 8'h69, 8'hd9, 8'h8e, 8'h94,
    8'h9b, 8'h1e, 8'h87, 8'he9, 8'hce, 8'h55, 8'h28, 8'hdf,
    8'h8c, 8'ha1, 8'h89, 8'h0d, 8'hbf, 8'he6, 8'h42, 8'h68, 8'h41, 8'h99, 8'h2d, 8'h0f, 8'hb0,
    8'h54, 8'hbb, 8'h16
  };

  localparam logic [31:0] TBOX [256] = '{
    32'hc66363a5, 32'hf87c7c84, 32'hee777799, 32'hf67b7b8d,
    32'hfff2f20d, 32'hd66b6bbd, 32'hde6f6fb1, 32'h91c5c554,
    32'h60303050, 32'h02010103, 32'hce6767a9, 32'h562b2b7d,
    32'he7fefe19, 32'hb5d7d762, 32'h4dababe6, 32'hec76769a,
    32'h8fcaca45, 32'h1f82829d, 32'h89c9c940, 32'hfa7d7d87,
    32'heffafa15, 32'hb25959eb, 32'h8e4747c9, 32'hfbf0f00b,
    32'h41adadec, 32'hb3d4d467, 32'h5fa2a2fd, 32'h45afafea,
    32'h239c9cbf, 32'h53a4a4f7, 32'he4727296, 32'h9bc0c05b,
    32'h75b7b7c2, 32'he1fdfd1c, 32'h3d9393ae, 32'h4c26266a,
    32'h6c36365a, 32'h7e3f3f41, 32'hf5f7f702, 32'h83cccc4f,
    32'h6834345c, 32'h51a5a5f4, 32'hd1e5e534, 32'hf9f1f108,
    32'he2717193, 32'habd8d873, 32'h62313153, 32'h2a15153f,
    32'h0804040c, 32'h95c7c752, 32'h46232365, 32'h9dc3c35e,
    32'h30181828, 32'h379696a1, 32'h0a05050f, 32'h2f9a9ab5,
    32'h0e070709, 32'h24121236, 32'h1b80809b, 32'hdfe2e23d,
    32'hcdebeb26, 32'h4e272769, 32'h7fb2b2cd, 32'hea75759f,
    32'h1209091b, 32'h1d83839e, 32'h582c2c74, 32'h341a1a2e,
    32'h361b1b2d, 32'hdc6e6eb2, 32'hb45a5aee, 32'h5ba0a0fb,
    32'ha45252f6, 32'h763b3b4d, 32'hb7d6d661, 32'h7db3b3ce,
    32'h5229297b, 32'hdde3e33e, 32'h5e2f2f71, 32'h13848497,
    32'ha65353f5, 32'hb9d1d168, 32'h00000000, 32'hc1eded2c,
    32'h40202060, 32'he3fcfc1f, 32'h79b1b1c8, 32'hb65b5bed,
    32'hd46a6abe, 32'h8dcbcb46, 32'h67bebed9, 32'h7239394b,
    32'h944a4ade, 32'h984c4cd4, 32'hb05858e8, 32'h85cfcf4a,
    32'hbbd0d06b, 32'hc5efef2a, 32'h4faaaae5, 32'hedfbfb16,
    32'h864343c5, 32'h9a4d4dd7, 32'h66333355, 32'h11858594,
    32'h8a4545cf, 32'he9f9f910, 32'h04020206, 32'hfe7f7f81,
    32'ha05050f0, 32'h783c3c44, 32'h259f9fba, 32'h4ba8a8e3,
    32'ha25151f3, 32'h5da3a3fe, 32'h804040c0, 32'h058f8f8a,
    32'h3f9292ad, 32'h219d9dbc, 32'h70383848, 32'hf1f5f504,
    32'h63bcbcdf, 32'h77b6b6c1, 32'hafdada75, 32'h42212163,
    32'h20101030, 32'he5ffff1a, 32'hfdf3f30e, 32'hbfd2d26d,
    32'h81cdcd4c, 32'h180c0c14, 32'h26131335, 32'hc3ecec2f,
    32'hbe5f5fe1, 32'h359797a2, 32'h884444cc, 32'h2e171739,
    32'h93c4c457, 32'h55a7a7f2, 32'hfc7e7e82, 32'h7a3d3d47,
    32'hc86464ac, 32'hba5d5de7, 32'h3219192b, 32'he6737395,
    32'hc06060a0, 32'h19818198, 32'h9e4f4fd1, 32'ha3dcdc7f,
    32'h44222266, 32'h542a2a7e, 32'h3b9090ab, 32'h0b888883,
    32'h8c4646ca, 32'hc7eeee29, 32'h6bb8b8d3, 32'h2814143c,
    32'ha7dede79, 32'hbc5e5ee2, 32'h160b0b1d, 32'haddbdb76,
    32'hdbe0e03b, 32'h64323256, 32'h743a3a4e, 32'h140a0a1e,
    32'h924949db, 32'h0c06060a, 32'h4824246c, 32'hb85c5ce4,
    32'h9fc2c25d, 32'hbdd3d36e, 32'h43acacef, 32'hc46262a6,
    32'h399191a8, 32'h319595a4, 32'hd3e4e437, 32'hf279798b,
    32'hd5e7e732, 32'h8bc8c843, 32'h6e373759, 32'hda6d6db7,
    32'h018d8d8c, 32'hb1d5d564, 32'h9c4e4ed2, 32'h49a9a9e0,
    32'hd86c6cb4, 32'hac5656fa, 32'hf3f4f407, 32'hcfeaea25,
    32'hca6565af, 32'hf47a7a8e, 32'h47aeaee9, 32'h10080818,
    32'h6fbabad5, 32'hf0787888, 32'h4a25256f, 32'h5c2e2e72,
    32'h381c1c24, 32'h57a6a6f1, 32'h73b4b4c7, 32'h97c6c651,
    32'hcbe8e823, 32'ha1dddd7c, 32'he874749c, 32'h3e1f1f21,
    32'h964b4bdd, 32'h61bdbddc, 32'h0d8b8b86, 32'h0f8a8a85,
    32'he0707090, 32'h7c3e3e42, 32'h71b5b5c4, 32'hcc6666aa,
    32'h904848d8, 32'h06030305, 32'hf7f6f601, 32'h1c0e0e12,
    32'hc26161a3, 32'h6a35355f, 32'hae5757f9, 32'h69b9b9d0,
    32'h17868691, 32'h99c1c158, 32'h3a1d1d27, 32'h279e9eb9,
    32'hd9e1e138, 32'hebf8f813, 32'h2b9898b3, 32'h22111133,
    32'hd26969bb, 32'ha9d9d970, 32'h078e8e89, 32'h339494a7,
    32'h2d9b9bb6, 32'h3c1e1e22, 32'h15878792, 32'hc9e9e920,
    32'h87cece49, 32'haa5555ff, 32'h50282878, 32'ha5dfdf7a,
    32'h038c8c8f, 32'h59a1a1f8, 32'h09898980, 32'h1a0d0d17,
    32'h65bfbfda, 32'hd7e6e631, 32'h844242c6, 32'hd06868b8,
    32'h824141c3, 32'h299999b0, 32'h5a2d2d77, 32'h1e0f0f11, 32'h7bb0b0cb, 32'ha85454fc,
    32'h6dbbbbd6, 32'h2c16163a
  };

  function automatic logic [31:0] sub_word(input logic [31:0] x);
    return {SBOX[x[31:24]], SBOX[x[23:16]], SBOX[x[15:8]], SBOX[x[7:0]]};
  endfunction

  function automatic logic [7:0] xtime(input logic [7:0] x);
    return {x[6:0], 1'b0} ^ (x[7] ? 8'h1b : 8'h00);
  endfunction

  function automatic logic [31:0] mix_column(input logic [31:0] x);
    logic [7:0] a, b, c, d, t;
    {a, b, c, d} = x;
    t = a ^ b ^ c ^ d;
    return {a ^ t ^ xtime(a ^ b), b ^ t ^ xtime(b ^ c), c ^ t ^ xtime(c ^ d), d ^ t ^ xtime(d ^ a)};
  endfunction

  // One column of a middle round from the four bytes that ShiftRows brings into it.
  function automatic logic [31:0] column_table(input logic [7:0] a, input logic [7:0] b,
      input logic [7:0] c,
                                               input logic [7:0] d);
    logic [31:0] ta, tb, tc, td;
    ta = TBOX[a];
    tb = TBOX[b];
    tc = TBOX[c];
    td = TBOX[d];
    return ta ^ {tb[7:0], tb[31:8]} ^ {tc[15:0], tc[31:16]} ^ {td[23:0], td[31:24]};
  endfunction

  function automatic logic [31:0] column_logic(input logic [7:0] a, input logic [7:0] b,
      input logic [7:0] c,
                                               input logic [7:0] d);
    return mix_column(sub_word({a, b, c, d}));
  endfunction

  function automatic logic [127:0] round_table(input logic [127:0] s, input logic [127:0] k);
    return {
      k[127:96] ^ column_table(s[127:120], s[87:80], s[47:40], s[7:0]),
      k[95:64] ^ column_table(s[95:88], s[55:48], s[15:8], s[103:96]),
      k[63:32] ^ column_table(s[63:56], s[23:16], s[111:104], s[71:64]),
      k[31:0] ^ column_table(s[31:24], s[119:112], s[79:72], s[39:32])
    };
  endfunction

  function automatic logic [127:0] round_logic(input logic [127:0] s, input logic [127:0] k);
    return {
      k[127:96] ^ column_logic(s[127:120], s[87:80], s[47:40], s[7:0]),
      k[95:64] ^ column_logic(s[95:88], s[55:48], s[15:8], s[103:96]),
      k[63:32] ^ column_logic(s[63:56], s[23:16], s[111:104], s[71:64]),
      k[31:0] ^ column_logic(s[31:24], s[119:112], s[79:72], s[39:32])
    };
  endfunction

  function automatic logic [127:0] round_last(input logic [127:0] s, input logic [127:0] k);
    return k ^ {
      sub_word({s[127:120], s[87:80], s[47:40], s[7:0]}),
      sub_word({s[95:88], s[55:48], s[15:8], s[103:96]}),
      sub_word({s[63:56], s[23:16], s[111:104], s[71:64]}),
      sub_word({s[31:24], s[119:112], s[79:72], s[39:32]})
    };
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
