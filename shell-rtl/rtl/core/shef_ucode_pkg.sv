// Generated from shell-rtl/ucode/shield.uasm by `cargo xtask generate`; do not edit.
`default_nettype none
package shef_ucode_pkg;

  localparam int unsigned UCODE_PC_W = 9;
  localparam int unsigned UCODE_LEN = 497;
  localparam int unsigned UCODE_CONST_W = 8;
  localparam int unsigned UCODE_CONST_LEN = 226;

  localparam logic [63:0] UCODE_ROM[512] = '{
    0: 64'h5410000040100020,  // put hmac.key, ZERO32
    1: 64'h5420000041300013,  // put hmac.absorb, KEM_DKP_PRK
    2: 64'h5420000002080020,  // put hmac.absorb, SEED
    3: 64'h5830064000000020,  // get hmac.final, PRK
    4: 64'h3800041000000020,  // zero SEED
    5: 64'h3800061000000001,  // zero CTR
    6: 64'h5410000003200020,  // put hmac.key, PRK
    7: 64'h5420000041200002,  // put hmac.absorb, L32
    8: 64'h5420000041c80015,  // put hmac.absorb, KEM_CANDIDATE
    9: 64'h5420000003080001,  // put hmac.absorb, CTR
    10: 64'h5420000040000001,  // put hmac.absorb, ONE
    11: 64'h5831900000000020,  // get hmac.final, SK
    12: 64'h56000000c8000020,  // put p256.load_k, SK
    13: 64'h4a60000000000000,  // cmd p256.check_k
    14: 64'h6200000000000000,  // test p256
    15: 64'h0c00000000000015,  // jeq dkp_found
    16: 64'h4400061000000001,  // inc CTR
    17: 64'h0c10000000000006,  // jne dkp_next
    18: 64'h3800064000000020,  // zero PRK
    19: 64'h2800000000000001,  // cmpr r0, 1
    20: 64'h1400000000000000,  // ret
    21: 64'h4a40000000000000,  // cmd p256.mul_g
    22: 64'h6200000000000000,  // test p256
    23: 64'h2400000000000004,  // st8 PK, 4
    24: 64'h5a70001000000020,  // get p256.read_x, PK + 1, 32
    25: 64'h5a80021000000020,  // get p256.read_y, PK + 33, 32
    26: 64'h3800064000000020,  // zero PRK
    27: 64'h2800000000000000,  // cmpr r0, 0
    28: 64'h1400000000000000,  // ret
    29: 64'h3c001b5040080001,  // cmp ENC, POINT_TAG, 1
    30: 64'h0c10000000000037,  // jne decap_end
    31: 64'h561000000db00020,  // put p256.load_x, ENC + 1, 32
    32: 64'h562000000eb00020,  // put p256.load_y, ENC + 33, 32
    33: 64'h4a50000000000000,  // cmd p256.check_point
    34: 64'h6200000000000000,  // test p256
    35: 64'h0c10000000000037,  // jne decap_end
    36: 64'h56000000c8000020,  // put p256.load_k, SK
    37: 64'h4a30000000000000,  // cmd p256.mul
    38: 64'h6200000000000000,  // test p256
    39: 64'h0c10000000000037,  // jne decap_end
    40: 64'h5a70084000000020,  // get p256.read_x, DH
    41: 64'h5410000040100020,  // put hmac.key, ZERO32
    42: 64'h5420000042700013,  // put hmac.absorb, KEM_EAE_PRK
    43: 64'h5420000004200020,  // put hmac.absorb, DH
    44: 64'h5830064000000020,  // get hmac.final, PRK
    45: 64'h5410000003200020,  // put hmac.key, PRK
    46: 64'h5420000041200002,  // put hmac.absorb, L32
    47: 64'h5420000043080019,  // put hmac.absorb, KEM_SHARED
    48: 64'h542000000da80041,  // put hmac.absorb, ENC
    49: 64'h5420000000000041,  // put hmac.absorb, PK
    50: 64'h5420000040000001,  // put hmac.absorb, ONE
    51: 64'h58300a4000000020,  // get hmac.final, SHARED
    52: 64'h3800084000000020,  // zero DH
    53: 64'h3800064000000020,  // zero PRK
    54: 64'h2800000000000000,  // cmpr r0, 0
    55: 64'h1400000000000000,  // ret
    56: 64'h5420000043d00010,  // put hmac.absorb, HPKE_SUITE
    57: 64'h54200000c0480001,  // put hmac.absorb, IO_AEAD
    58: 64'h1400000000000000,  // ret
    59: 64'h1c700000c0480000,  // ld8 r7, IO_AEAD
    60: 64'h2800000700000001,  // cmpr r7, 1
    61: 64'h1870000000000020,  // set r7, 32
    62: 64'h0c10000000000040,  // jne nk_end
    63: 64'h1870000000000010,  // set r7, 16
    64: 64'h1400000000000000,  // ret
    65: 64'h24000c4000000000,  // st8 KSC, 0
    66: 64'h5410000040100020,  // put hmac.key, ZERO32
    67: 64'h1000000000000038,  // call hpke_suite
    68: 64'h542000004450000b,  // put hmac.absorb, LBL_PSK_ID
    69: 64'h58300c5000000020,  // get hmac.final, KSC + 1, 32
    70: 64'h5410000040100020,  // put hmac.key, ZERO32
    71: 64'h1000000000000038,  // call hpke_suite
    72: 64'h5420000044a80009,  // put hmac.absorb, LBL_INFO
    73: 64'h5420000100020000,  // put hmac.absorb, 0[r1], r2
    74: 64'h58300e5000000020,  // get hmac.final, KSC + 33, 32
    75: 64'h5410000005200020,  // put hmac.key, SHARED
    76: 64'h1000000000000038,  // call hpke_suite
    77: 64'h5420000044f00006,  // put hmac.absorb, LBL_SECRET
    78: 64'h5830105000000020,  // get hmac.final, SECRET
    79: 64'h100000000000003b,  // call hpke_nk
    80: 64'h2400062000000000,  // st8 LEN, 0
    81: 64'h2400063000070000,  // st8 LEN + 1, r7
    82: 64'h5410000008280020,  // put hmac.key, SECRET
    83: 64'h5420000003100002,  // put hmac.absorb, LEN
    84: 64'h1000000000000038,  // call hpke_suite
    85: 64'h5420000045200003,  // put hmac.absorb, LBL_KEY
    86: 64'h5420000006200041,  // put hmac.absorb, KSC
    87: 64'h5420000040000001,  // put hmac.absorb, ONE
    88: 64'h5830125000000020,  // get hmac.final, AEAD_KEY
    89: 64'h5410000008280020,  // put hmac.key, SECRET
    90: 64'h5420000041100002,  // put hmac.absorb, L12
    91: 64'h1000000000000038,  // call hpke_suite
    92: 64'h542000004538000a,  // put hmac.absorb, LBL_NONCE
    93: 64'h5420000006200041,  // put hmac.absorb, KSC
    94: 64'h5420000040000001,  // put hmac.absorb, ONE
    95: 64'h5830145000000020,  // get hmac.final, BASE_NONCE
    96: 64'h5410000008280020,  // put hmac.key, SECRET
    97: 64'h5420000041200002,  // put hmac.absorb, L32
    98: 64'h1000000000000038,  // call hpke_suite
    99: 64'h5420000045880003,  // put hmac.absorb, LBL_EXP
    100: 64'h5420000006200041,  // put hmac.absorb, KSC
    101: 64'h5420000040000001,  // put hmac.absorb, ONE
    102: 64'h5830165000000020,  // get hmac.final, EXPORTER
    103: 64'h38000a4000000020,  // zero SHARED
    104: 64'h3800105000000020,  // zero SECRET
    105: 64'h1400000000000000,  // ret
    106: 64'h100000000000003b,  // call hpke_nk
    107: 64'h1860000000000002,  // set r6, GCM_DECRYPT
    108: 64'h2800000700000020,  // cmpr r7, 32
    109: 64'h0c1000000000006f,  // jne open_init
    110: 64'h1860000000000003,  // set r6, GCM_DECRYPT + GCM_KEY256
    111: 64'h4900000000060000,  // cmd gcm.init, r6
    112: 64'h4d000000092f0000,  // send gcm, AEAD_KEY, r7
    113: 64'h4d0000000a28000c,  // send gcm, BASE_NONCE, 12
    114: 64'h551000000fb50000,  // put gcm.aad, AAD, r5
    115: 64'h5d20236300040000,  // xfer gcm.data, PT, 0[r3], r4
    116: 64'h59301a5000000010,  // get gcm.final, TAG
    117: 64'h3800125000000020,  // zero AEAD_KEY
    118: 64'h1860000300040000,  // add r6, r3, r4
    119: 64'h3c001a5600000010,  // cmp TAG, 0[r6], 16
    120: 64'h0c0000000000007b,  // jeq open_end
    121: 64'h3800236000000100,  // zero PT
    122: 64'h2800000000000001,  // cmpr r0, 1
    123: 64'h1400000000000000,  // ret
    124: 64'h541000000b280020,  // put hmac.key, EXPORTER
    125: 64'h5420000041200002,  // put hmac.absorb, L32
    126: 64'h1000000000000038,  // call hpke_suite
    127: 64'h5420000045a00003,  // put hmac.absorb, LBL_SEC
    128: 64'h5420000100020000,  // put hmac.absorb, 0[r1], r2
    129: 64'h5420000040000001,  // put hmac.absorb, ONE
    130: 64'h5830185000000020,  // get hmac.final, EXPORT
    131: 64'h3800165000000020,  // zero EXPORTER
    132: 64'h1400000000000000,  // ret
    133: 64'h2401801000000001,  // st8 IO_STATE, STATE_EMPTY
    134: 64'h0400000000000000,  // wait_event
    135: 64'h1c100000c0000000,  // ld8 r1, IO_EVENT
    136: 64'h2800000100000001,  // cmpr r1, EVENT_SEED
    137: 64'h0c0000000000008f,  // jeq do_seed
    138: 64'h2800000100000002,  // cmpr r1, EVENT_LOAD
    139: 64'h0c0000000000009d,  // jeq do_load
    140: 64'h2800000100000004,  // cmpr r1, EVENT_CHAN
    141: 64'h0c0000000000013a,  // jeq do_chan
    142: 64'h0800000000000086,  // jmp idle
    143: 64'h2c000410a4000020,  // copy SEED, IO_SEED
    144: 64'h2401805000000001,  // st8 IO_SEED_DONE, 1
    145: 64'h1000000000000000,  // call derive_key_pair
    146: 64'h0c10000000000098,  // jne seed_failed
    147: 64'h2c01700000080040,  // copy OUT_PUBKEY, PK + 1, 64
    148: 64'h2401808000000001,  // st8 IO_UNIT_WIPE, 1
    149: 64'h38000410000007bf,  // zero PK + 65, WORK_LEN
    150: 64'h2401801000000003,  // st8 IO_STATE, STATE_FRESH
    151: 64'h0800000000000086,  // jmp idle
    152: 64'h3801900000000020,  // zero SK
    153: 64'h38000410000007bf,  // zero PK + 65, WORK_LEN
    154: 64'h2401808000000001,  // st8 IO_UNIT_WIPE, 1
    155: 64'h2401801000000001,  // st8 IO_STATE, STATE_EMPTY
    156: 64'h0800000000000086,  // jmp idle
    157: 64'h20100000c0500000,  // ld16 r1, IO_LOAD_LEN
    158: 64'h2800000100000059,  // cmpr r1, LOAD_MIN
    159: 64'h0c2000000000012c,  // jlt load_refuse
    160: 64'h280000010000024a,  // cmpr r1, LOAD_MAX + 1
    161: 64'h0c3000000000012c,  // jge load_refuse
    162: 64'h2c00336080010000,  // copy MSG, IO_LOAD_MSG, r1
    163: 64'h2020000019b00000,  // ld16 r2, MSG
    164: 64'h2800000200000001,  // cmpr r2, 1
    165: 64'h0c1000000000012c,  // jne load_refuse
    166: 64'h2020000019c00000,  // ld16 r2, MSG_ENC_LEN
    167: 64'h2800000200000041,  // cmpr r2, 65
    168: 64'h0c1000000000012c,  // jne load_refuse
    169: 64'h202000001bd80000,  // ld16 r2, MSG_INFO_LEN
    170: 64'h2800000200000101,  // cmpr r2, 257
    171: 64'h0c3000000000012c,  // jge load_refuse
    172: 64'h1830000000020059,  // set r3, r2 + LOAD_MIN
    173: 64'h2800000100030000,  // cmpr r1, r3
    174: 64'h0c2000000000012c,  // jlt load_refuse
    175: 64'h204000021be80000,  // ld16 r4, MSG_INFO[r2]
    176: 64'h2800000400000101,  // cmpr r4, 257
    177: 64'h0c3000000000012c,  // jge load_refuse
    178: 64'h2800000400000010,  // cmpr r4, 16
    179: 64'h0c2000000000012c,  // jlt load_refuse
    180: 64'h1850000200040049,  // add r5, r2, r4 + 73
    181: 64'h2800000500010000,  // cmpr r5, r1
    182: 64'h0c1000000000012c,  // jne load_refuse
    183: 64'h183000000002037f,  // set r3, r2 + MSG_INFO + 2
    184: 64'h184000000004fff0,  // set r4, r4 - 16
    185: 64'h2c001b5019d00041,  // copy ENC, MSG_ENC, 65
    186: 64'h100000000000001d,  // call hpke_decap
    187: 64'h0c1000000000012c,  // jne load_refuse
    188: 64'h181000000000037d,  // set r1, MSG_INFO
    189: 64'h1000000000000041,  // call hpke_key_schedule
    190: 64'h24001f6000000000,  // st8 AAD, 0
    191: 64'h24001f7000000001,  // st8 AAD + 1, 1
    192: 64'h2c001f80a5000020,  // copy AAD + 2, IO_DIGEST, 32
    193: 64'h1850000000000022,  // set r5, 34
    194: 64'h100000000000006a,  // call hpke_open
    195: 64'h0c1000000000012c,  // jne load_refuse
    196: 64'h2800000400000021,  // cmpr r4, 33
    197: 64'h0c2000000000012c,  // jlt load_refuse
    198: 64'h1850000000000000,  // set r5, 0
    199: 64'h1860000000000021,  // set r6, 33
    200: 64'h1870000000000000,  // set r7, 0
    201: 64'h1c100000c0600000,  // ld8 r1, IO_N_REGIONS
    202: 64'h2800000500010000,  // cmpr r5, r1
    203: 64'h0c000000000000d8,  // jeq check_end
    204: 64'h240180e000050000,  // st8 IO_REGION, r5
    205: 64'h1000000000000130,  // call has_epoch
    206: 64'h0c100000000000d6,  // jne check_next
    207: 64'h2800000600040000,  // cmpr r6, r4
    208: 64'h0c3000000000012c,  // jge load_refuse
    209: 64'h1c10000611b00000,  // ld8 r1, PT[r6]
    210: 64'h2800000100050000,  // cmpr r1, r5
    211: 64'h0c1000000000012c,  // jne load_refuse
    212: 64'h1860000000060007,  // set r6, r6 + 7
    213: 64'h1870000000070001,  // set r7, r7 + 1
    214: 64'h1850000000050001,  // set r5, r5 + 1
    215: 64'h08000000000000c9,  // jmp check_region
    216: 64'h2800000600040000,  // cmpr r6, r4
    217: 64'h0c1000000000012c,  // jne load_refuse
    218: 64'h1c10000012b00000,  // ld8 r1, PT + 32
    219: 64'h2800000100070000,  // cmpr r1, r7
    220: 64'h0c1000000000012c,  // jne load_refuse
    221: 64'h4800000000000000,  // cmd hmac.hash
    222: 64'h542000001bea0000,  // put hmac.absorb, MSG_INFO, r2
    223: 64'h5830586000000020,  // get hmac.final, H_INFO
    224: 64'h4800000000000000,  // cmd hmac.hash
    225: 64'h5420000300040010,  // put hmac.absorb, 0[r3], r4 + 16
    226: 64'h58305a6000000020,  // get hmac.final, H_CT
    227: 64'h4800000000000000,  // cmd hmac.hash
    228: 64'h5420000045b8000d,  // put hmac.absorb, LBL_LOAD
    229: 64'h54200000a5000020,  // put hmac.absorb, IO_DIGEST
    230: 64'h5420000046200002,  // put hmac.absorb, LEN_POINT
    231: 64'h542000000da80041,  // put hmac.absorb, ENC
    232: 64'h5420000046200002,  // put hmac.absorb, LEN_POINT
    233: 64'h5420000000000041,  // put hmac.absorb, PK
    234: 64'h542000002c300020,  // put hmac.absorb, H_INFO
    235: 64'h542000002d300020,  // put hmac.absorb, H_CT
    236: 64'h58305c6000000020,  // get hmac.final, T
    237: 64'h18100000000008c6,  // set r1, LBL_SESSION
    238: 64'h182000000000000c,  // set r2, sizeof.LBL_SESSION
    239: 64'h100000000000007c,  // call hpke_export
    240: 64'h541000000c280020,  // put hmac.key, EXPORT
    241: 64'h5420000011b00020,  // put hmac.absorb, PT, 32
    242: 64'h5830064000000020,  // get hmac.final, PRK
    243: 64'h5410000003200020,  // put hmac.key, PRK
    244: 64'h542000002e300020,  // put hmac.absorb, T
    245: 64'h5420000040000001,  // put hmac.absorb, ONE
    246: 64'h5831960000000020,  // get hmac.final, SESSION
    247: 64'h1850000000000000,  // set r5, 0
    248: 64'h1860000000000021,  // set r6, 33
    249: 64'h1c100000c0600000,  // ld8 r1, IO_N_REGIONS
    250: 64'h2800000500010000,  // cmpr r5, r1
    251: 64'h0c00000000000113,  // jeq channel_keys
    252: 64'h240180e000050000,  // st8 IO_REGION, r5
    253: 64'h1c100000c3000000,  // ld8 r1, IO_REGION_INFO
    254: 64'h2800000100000000,  // cmpr r1, MODE_NONE
    255: 64'h0c00000000000111,  // jeq region_next
    256: 64'h2800000100000005,  // cmpr r1, MODE_BYPASS
    257: 64'h0c00000000000111,  // jeq region_next
    258: 64'h24005e6000000001,  // st8 KEY_INFO, 1
    259: 64'h24005e7000000000,  // st8 KEY_INFO + 1, 0
    260: 64'h24005e8000050000,  // st8 KEY_INFO + 2, r5
    261: 64'h1000000000000135,  // call derive_key
    262: 64'h5831820000000020,  // get hmac.final, IO_KEY
    263: 64'h1c100000c0b00000,  // ld8 r1, IO_KEY256
    264: 64'h2800000100000001,  // cmpr r1, 1
    265: 64'h0c0000000000010b,  // jeq region_key_go
    266: 64'h3801830000000010,  // zero IO_KEY + 16, 16
    267: 64'h2401810000000001,  // st8 IO_KEY_GO, 1
    268: 64'h1000000000000130,  // call has_epoch
    269: 64'h0c10000000000111,  // jne region_next
    270: 64'h2c01840611b80006,  // copy IO_EPOCH, PT + 1[r6], 6
    271: 64'h2401811000000001,  // st8 IO_EPOCH_GO, 1
    272: 64'h1860000000060007,  // set r6, r6 + 7
    273: 64'h1850000000050001,  // set r5, r5 + 1
    274: 64'h08000000000000f9,  // jmp region_keys
    275: 64'h24005e6000000003,  // st8 KEY_INFO, 3
    276: 64'h24005e7000000001,  // st8 KEY_INFO + 1, 1
    277: 64'h24005e80000000ff,  // st8 KEY_INFO + 2, 0xff
    278: 64'h1000000000000135,  // call derive_key
    279: 64'h5831920000000020,  // get hmac.final, K_RX
    280: 64'h24005e7000000002,  // st8 KEY_INFO + 1, 2
    281: 64'h1000000000000135,  // call derive_key
    282: 64'h5831940000000020,  // get hmac.final, K_TX
    283: 64'h24005e6000000004,  // st8 KEY_INFO, 4
    284: 64'h24005e7000000000,  // st8 KEY_INFO + 1, 0
    285: 64'h1000000000000135,  // call derive_key
    286: 64'h5830064000000020,  // get hmac.final, PRK
    287: 64'h5410000003200020,  // put hmac.key, PRK
    288: 64'h5420000046e00006,  // put hmac.absorb, LBL_SHIELD
    289: 64'h542000002e300020,  // put hmac.absorb, T
    290: 64'h5831660000000020,  // get hmac.final, OUT_CONFIRM
    291: 64'h2c0174002e300020,  // copy OUT_T, T
    292: 64'h3801900000000020,  // zero SK
    293: 64'h3801960000000020,  // zero SESSION
    294: 64'h3800000000000041,  // zero PK
    295: 64'h38000410000007bf,  // zero PK + 65, WORK_LEN
    296: 64'h2401808000000001,  // st8 IO_UNIT_WIPE, 1
    297: 64'h2401801000000004,  // st8 IO_STATE, STATE_KEYED
    298: 64'h2401802000000000,  // st8 IO_LOAD_DONE, ACCEPTED
    299: 64'h0800000000000086,  // jmp idle
    300: 64'h38000410000007bf,  // zero PK + 65, WORK_LEN
    301: 64'h2401808000000001,  // st8 IO_UNIT_WIPE, 1
    302: 64'h2401802000000001,  // st8 IO_LOAD_DONE, REFUSED
    303: 64'h0800000000000086,  // jmp idle
    304: 64'h1c100000c3000000,  // ld8 r1, IO_REGION_INFO
    305: 64'h2800000100000001,  // cmpr r1, MODE_INPUT
    306: 64'h0c00000000000134,  // jeq has_epoch_end
    307: 64'h2800000100000002,  // cmpr r1, MODE_OUTPUT
    308: 64'h1400000000000000,  // ret
    309: 64'h54100000cb000020,  // put hmac.key, SESSION
    310: 64'h542000004690000a,  // put hmac.absorb, LBL_KEYS
    311: 64'h542000002f300003,  // put hmac.absorb, KEY_INFO
    312: 64'h5420000040000001,  // put hmac.absorb, ONE
    313: 64'h1400000000000000,  // ret
    314: 64'h2c005e90a0000058,  // copy REQ, IO_CHAN_REQ
    315: 64'h400000003b880008,  // isz SEQ
    316: 64'h0c0000000000013f,  // jeq chan_next
    317: 64'h3c005e9032080058,  // cmp REQ, LAST
    318: 64'h0c00000000000173,  // jeq chan_done
    319: 64'h2c0077903b880008,  // copy NEXT, SEQ
    320: 64'h4400779000000008,  // inc NEXT
    321: 64'h0c00000000000176,  // jeq chan_refuse
    322: 64'h3c005e903bc80008,  // cmp REQ, NEXT, 8
    323: 64'h0c10000000000176,  // jne chan_refuse
    324: 64'h380078100000000c,  // zero IV
    325: 64'h2c0078503bc80008,  // copy IV + 4, NEXT, 8
    326: 64'h4900000000000003,  // cmd gcm.init, GCM_DECRYPT + GCM_KEY256
    327: 64'h4d000000c9000020,  // send gcm, K_RX
    328: 64'h4d0000003c08000c,  // send gcm, IV
    329: 64'h5d206f102f880040,  // xfer gcm.data, PLAIN, REQ + 8, 64
    330: 64'h59301a5000000010,  // get gcm.final, TAG
    331: 64'h3c001a5031880010,  // cmp TAG, REQ + 72, 16
    332: 64'h0c10000000000176,  // jne chan_refuse
    333: 64'h2c0077103bc80008,  // copy SEQ, NEXT
    334: 64'h2c0064102f480058,  // copy LAST, REQ
    335: 64'h3800731000000040,  // zero ANS
    336: 64'h2c00731037880002,  // copy ANS, PLAIN, 2
    337: 64'h2c00735037a80004,  // copy ANS + 4, PLAIN + 4, 4
    338: 64'h1c10000037880000,  // ld8 r1, PLAIN
    339: 64'h1c20000037900000,  // ld8 r2, PLAIN + 1
    340: 64'h1c300000c0680000,  // ld8 r3, IO_STOPPED
    341: 64'h2800000100000001,  // cmpr r1, 0x01
    342: 64'h0c00000000000170,  // jeq chan_answer
    343: 64'h2800000100000002,  // cmpr r1, 0x02
    344: 64'h0c00000000000187,  // jeq op_read
    345: 64'h2800000100000003,  // cmpr r1, 0x03
    346: 64'h0c00000000000193,  // jeq op_write
    347: 64'h2800000100000010,  // cmpr r1, 0x10
    348: 64'h0c0000000000019f,  // jeq op_flush
    349: 64'h2800000100000011,  // cmpr r1, 0x11
    350: 64'h0c000000000001a3,  // jeq op_invalidate
    351: 64'h2800000100000012,  // cmpr r1, 0x12
    352: 64'h0c000000000001af,  // jeq op_epoch
    353: 64'h2800000100000020,  // cmpr r1, 0x20
    354: 64'h0c000000000001c0,  // jeq op_statement
    355: 64'h2800000100000021,  // cmpr r1, 0x21
    356: 64'h0c000000000001d2,  // jeq op_map
    357: 64'h2800000100000030,  // cmpr r1, 0x30
    358: 64'h0c000000000001dc,  // jeq op_close
    359: 64'h2800000100000031,  // cmpr r1, 0x31
    360: 64'h0c000000000001e2,  // jeq op_abort
    361: 64'h2400733000000001,  // st8 ANS_STATUS, 1
    362: 64'h0800000000000170,  // jmp chan_answer
    363: 64'h2400733000000002,  // st8 ANS_STATUS, 2
    364: 64'h0800000000000170,  // jmp chan_answer
    365: 64'h2400733000000003,  // st8 ANS_STATUS, 3
    366: 64'h0800000000000170,  // jmp chan_answer
    367: 64'h2400733000000004,  // st8 ANS_STATUS, 4
    368: 64'h100000000000017e,  // call seal_answer
    369: 64'h2c01600034c80058,  // copy OUT_RSP, RSP
    370: 64'h2401804000000001,  // st8 IO_ANSWER, 1
    371: 64'h1000000000000179,  // call chan_clean
    372: 64'h2401803000000000,  // st8 IO_CHAN_DONE, ACCEPTED
    373: 64'h0800000000000086,  // jmp idle
    374: 64'h1000000000000179,  // call chan_clean
    375: 64'h2401803000000001,  // st8 IO_CHAN_DONE, REFUSED
    376: 64'h0800000000000086,  // jmp idle
    377: 64'h38006f1000000040,  // zero PLAIN
    378: 64'h3800731000000040,  // zero ANS
    379: 64'h38001a5000000010,  // zero TAG
    380: 64'h2401808000000001,  // st8 IO_UNIT_WIPE, 1
    381: 64'h1400000000000000,  // ret
    382: 64'h380078100000000c,  // zero IV
    383: 64'h2c0078503b880008,  // copy IV + 4, SEQ, 8
    384: 64'h2c0069903b880008,  // copy RSP, SEQ, 8
    385: 64'h4900000000000001,  // cmd gcm.init, GCM_KEY256
    386: 64'h4d000000ca000020,  // send gcm, K_TX
    387: 64'h4d0000003c08000c,  // send gcm, IV
    388: 64'h5d206a1039880040,  // xfer gcm.data, RSP + 8, ANS, 64
    389: 64'h59306e1000000010,  // get gcm.final, RSP + 72, 16
    390: 64'h1400000000000000,  // ret
    391: 64'h2800000300000001,  // cmpr r3, 1
    392: 64'h0c0000000000016d,  // jeq shield_stopped
    393: 64'h2c01848037a80004,  // copy IO_REG_ADDR, PLAIN + 4, 4
    394: 64'h1c300000c0b80000,  // ld8 r3, IO_REG_BAD
    395: 64'h2800000300000001,  // cmpr r3, 1
    396: 64'h0c00000000000169,  // jeq bad_argument
    397: 64'h2401814000000000,  // st8 IO_REG_GO, 0
    398: 64'h1c300000c0a80000,  // ld8 r3, IO_REG_ERR
    399: 64'h2800000300000001,  // cmpr r3, 1
    400: 64'h0c0000000000016b,  // jeq register_error
    401: 64'h2c007390c2800004,  // copy ANS_VALUE, IO_REG_RDATA, 4
    402: 64'h0800000000000170,  // jmp chan_answer
    403: 64'h2800000300000001,  // cmpr r3, 1
    404: 64'h0c0000000000016d,  // jeq shield_stopped
    405: 64'h2c01848037a80004,  // copy IO_REG_ADDR, PLAIN + 4, 4
    406: 64'h2c0184c037c80004,  // copy IO_REG_WDATA, PLAIN + 8, 4
    407: 64'h1c300000c0b80000,  // ld8 r3, IO_REG_BAD
    408: 64'h2800000300000001,  // cmpr r3, 1
    409: 64'h0c00000000000169,  // jeq bad_argument
    410: 64'h2401814000000001,  // st8 IO_REG_GO, 1
    411: 64'h1c300000c0a80000,  // ld8 r3, IO_REG_ERR
    412: 64'h2800000300000001,  // cmpr r3, 1
    413: 64'h0c0000000000016b,  // jeq register_error
    414: 64'h0800000000000170,  // jmp chan_answer
    415: 64'h2800000300000001,  // cmpr r3, 1
    416: 64'h0c0000000000016d,  // jeq shield_stopped
    417: 64'h2401812000000000,  // st8 IO_CMD_GO, SET_FLUSH
    418: 64'h08000000000001a6,  // jmp command_done
    419: 64'h2800000300000001,  // cmpr r3, 1
    420: 64'h0c0000000000016d,  // jeq shield_stopped
    421: 64'h2401812000000001,  // st8 IO_CMD_GO, SET_INVALIDATE
    422: 64'h10000000000001a9,  // call command_failed
    423: 64'h0c0000000000016f,  // jeq fault_met
    424: 64'h0800000000000170,  // jmp chan_answer
    425: 64'h1c300000c0980000,  // ld8 r3, IO_CMD_ERR
    426: 64'h2800000300000001,  // cmpr r3, 1
    427: 64'h0c000000000001ae,  // jeq command_failed_end
    428: 64'h1c300000c0680000,  // ld8 r3, IO_STOPPED
    429: 64'h2800000300000001,  // cmpr r3, 1
    430: 64'h1400000000000000,  // ret
    431: 64'h2800000300000001,  // cmpr r3, 1
    432: 64'h0c0000000000016d,  // jeq shield_stopped
    433: 64'h1c300000c0600000,  // ld8 r3, IO_N_REGIONS
    434: 64'h2800000200030000,  // cmpr r2, r3
    435: 64'h0c30000000000169,  // jge bad_argument
    436: 64'h240180e000020000,  // st8 IO_REGION, r2
    437: 64'h1000000000000130,  // call has_epoch
    438: 64'h0c10000000000169,  // jne bad_argument
    439: 64'h4000000037f80002,  // isz PLAIN + 14, 2
    440: 64'h0c10000000000169,  // jne bad_argument
    441: 64'h300078d037c80006,  // rev EPOCH_NEW, PLAIN + 8, 6
    442: 64'h30007930c3400006,  // rev EPOCH_NOW, IO_REGION_INFO + 8, 6
    443: 64'h3c0079303c680006,  // cmp EPOCH_NOW, EPOCH_NEW
    444: 64'h0c30000000000169,  // jge bad_argument
    445: 64'h2c0184003c680006,  // copy IO_EPOCH, EPOCH_NEW
    446: 64'h2401812000000002,  // st8 IO_CMD_GO, SET_EPOCH
    447: 64'h08000000000001a6,  // jmp command_done
    448: 64'h4000000037b00003,  // isz PLAIN + 5, 3
    449: 64'h0c10000000000169,  // jne bad_argument
    450: 64'h1c30000037a80000,  // ld8 r3, PLAIN + 4
    451: 64'h2800000300000000,  // cmpr r3, 0
    452: 64'h0c000000000001cc,  // jeq statement_shield
    453: 64'h183000000003ffff,  // set r3, r3 - 1
    454: 64'h1c400000c0600000,  // ld8 r4, IO_N_REGIONS
    455: 64'h2800000300040000,  // cmpr r3, r4
    456: 64'h0c30000000000169,  // jge bad_argument
    457: 64'h240180e000030000,  // st8 IO_REGION, r3
    458: 64'h2c007410c3000018,  // copy ANS_PAYLOAD, IO_REGION_INFO, 24
    459: 64'h0800000000000170,  // jmp chan_answer
    460: 64'h10000000000001ce,  // call shield_page
    461: 64'h0800000000000170,  // jmp chan_answer
    462: 64'h2401806000000001,  // st8 IO_SNAP, 1
    463: 64'h2c007410c4000028,  // copy ANS_PAYLOAD, IO_STAT, 40
    464: 64'h300076903b880008,  // rev ANS_PAYLOAD + 40, SEQ, 8
    465: 64'h1400000000000000,  // ret
    466: 64'h1c300000c0600000,  // ld8 r3, IO_N_REGIONS
    467: 64'h2800000200030000,  // cmpr r2, r3
    468: 64'h0c30000000000169,  // jge bad_argument
    469: 64'h240180e000020000,  // st8 IO_REGION, r2
    470: 64'h1c300000c3000000,  // ld8 r3, IO_REGION_INFO
    471: 64'h2800000300000002,  // cmpr r3, MODE_OUTPUT
    472: 64'h0c10000000000169,  // jne bad_argument
    473: 64'h2c018b0037a80004,  // copy IO_MAP_PAGE, PLAIN + 4, 4
    474: 64'h2c007410c6000030,  // copy ANS_PAYLOAD, IO_MAP, 48
    475: 64'h0800000000000170,  // jmp chan_answer
    476: 64'h2800000300000001,  // cmpr r3, 1
    477: 64'h0c000000000001e2,  // jeq op_abort
    478: 64'h2401812000000000,  // st8 IO_CMD_GO, SET_FLUSH
    479: 64'h10000000000001a9,  // call command_failed
    480: 64'h0c100000000001e2,  // jne op_abort
    481: 64'h2400733000000004,  // st8 ANS_STATUS, 4
    482: 64'h10000000000001ce,  // call shield_page
    483: 64'h2400741000000005,  // st8 ANS_PAYLOAD, STATE_CLOSED
    484: 64'h100000000000017e,  // call seal_answer
    485: 64'h2c01600034c80058,  // copy OUT_RSP, RSP
    486: 64'h2c01780034c80058,  // copy OUT_LAST, RSP
    487: 64'h2401801000000005,  // st8 IO_STATE, STATE_CLOSED
    488: 64'h2401807000000001,  // st8 IO_SET_WIPE, 1
    489: 64'h3801920000000020,  // zero K_RX
    490: 64'h3801940000000020,  // zero K_TX
    491: 64'h3800000000000041,  // zero PK
    492: 64'h38000410000007bf,  // zero PK + 65, WORK_LEN
    493: 64'h2401808000000001,  // st8 IO_UNIT_WIPE, 1
    494: 64'h2401804000000001,  // st8 IO_ANSWER, 1
    495: 64'h2401803000000000,  // st8 IO_CHAN_DONE, ACCEPTED
    496: 64'h0800000000000086,  // jmp idle
    default: 64'd0
  };

  localparam logic [7:0] UCODE_CONST[256] = '{
    0: 8'h01,
    1: 8'h04,
    2: 8'h00,
    3: 8'h00,
    4: 8'h00,
    5: 8'h00,
    6: 8'h00,
    7: 8'h00,
    8: 8'h00,
    9: 8'h00,
    10: 8'h00,
    11: 8'h00,
    12: 8'h00,
    13: 8'h00,
    14: 8'h00,
    15: 8'h00,
    16: 8'h00,
    17: 8'h00,
    18: 8'h00,
    19: 8'h00,
    20: 8'h00,
    21: 8'h00,
    22: 8'h00,
    23: 8'h00,
    24: 8'h00,
    25: 8'h00,
    26: 8'h00,
    27: 8'h00,
    28: 8'h00,
    29: 8'h00,
    30: 8'h00,
    31: 8'h00,
    32: 8'h00,
    33: 8'h00,
    34: 8'h00,
    35: 8'h0c,
    36: 8'h00,
    37: 8'h20,
    38: 8'h48,
    39: 8'h50,
    40: 8'h4b,
    41: 8'h45,
    42: 8'h2d,
    43: 8'h76,
    44: 8'h31,
    45: 8'h4b,
    46: 8'h45,
    47: 8'h4d,
    48: 8'h00,
    49: 8'h10,
    50: 8'h64,
    51: 8'h6b,
    52: 8'h70,
    53: 8'h5f,
    54: 8'h70,
    55: 8'h72,
    56: 8'h6b,
    57: 8'h48,
    58: 8'h50,
    59: 8'h4b,
    60: 8'h45,
    61: 8'h2d,
    62: 8'h76,
    63: 8'h31,
    64: 8'h4b,
    65: 8'h45,
    66: 8'h4d,
    67: 8'h00,
    68: 8'h10,
    69: 8'h63,
    70: 8'h61,
    71: 8'h6e,
    72: 8'h64,
    73: 8'h69,
    74: 8'h64,
    75: 8'h61,
    76: 8'h74,
    77: 8'h65,
    78: 8'h48,
    79: 8'h50,
    80: 8'h4b,
    81: 8'h45,
    82: 8'h2d,
    83: 8'h76,
    84: 8'h31,
    85: 8'h4b,
    86: 8'h45,
    87: 8'h4d,
    88: 8'h00,
    89: 8'h10,
    90: 8'h65,
    91: 8'h61,
    92: 8'h65,
    93: 8'h5f,
    94: 8'h70,
    95: 8'h72,
    96: 8'h6b,
    97: 8'h48,
    98: 8'h50,
    99: 8'h4b,
    100: 8'h45,
    101: 8'h2d,
    102: 8'h76,
    103: 8'h31,
    104: 8'h4b,
    105: 8'h45,
    106: 8'h4d,
    107: 8'h00,
    108: 8'h10,
    109: 8'h73,
    110: 8'h68,
    111: 8'h61,
    112: 8'h72,
    113: 8'h65,
    114: 8'h64,
    115: 8'h5f,
    116: 8'h73,
    117: 8'h65,
    118: 8'h63,
    119: 8'h72,
    120: 8'h65,
    121: 8'h74,
    122: 8'h48,
    123: 8'h50,
    124: 8'h4b,
    125: 8'h45,
    126: 8'h2d,
    127: 8'h76,
    128: 8'h31,
    129: 8'h48,
    130: 8'h50,
    131: 8'h4b,
    132: 8'h45,
    133: 8'h00,
    134: 8'h10,
    135: 8'h00,
    136: 8'h01,
    137: 8'h00,
    138: 8'h70,
    139: 8'h73,
    140: 8'h6b,
    141: 8'h5f,
    142: 8'h69,
    143: 8'h64,
    144: 8'h5f,
    145: 8'h68,
    146: 8'h61,
    147: 8'h73,
    148: 8'h68,
    149: 8'h69,
    150: 8'h6e,
    151: 8'h66,
    152: 8'h6f,
    153: 8'h5f,
    154: 8'h68,
    155: 8'h61,
    156: 8'h73,
    157: 8'h68,
    158: 8'h73,
    159: 8'h65,
    160: 8'h63,
    161: 8'h72,
    162: 8'h65,
    163: 8'h74,
    164: 8'h6b,
    165: 8'h65,
    166: 8'h79,
    167: 8'h62,
    168: 8'h61,
    169: 8'h73,
    170: 8'h65,
    171: 8'h5f,
    172: 8'h6e,
    173: 8'h6f,
    174: 8'h6e,
    175: 8'h63,
    176: 8'h65,
    177: 8'h65,
    178: 8'h78,
    179: 8'h70,
    180: 8'h73,
    181: 8'h65,
    182: 8'h63,
    183: 8'h73,
    184: 8'h68,
    185: 8'h65,
    186: 8'h66,
    187: 8'h2d,
    188: 8'h6c,
    189: 8'h6f,
    190: 8'h61,
    191: 8'h64,
    192: 8'h2f,
    193: 8'h31,
    194: 8'h00,
    195: 8'h01,
    196: 8'h00,
    197: 8'h41,
    198: 8'h73,
    199: 8'h68,
    200: 8'h65,
    201: 8'h66,
    202: 8'h2d,
    203: 8'h73,
    204: 8'h65,
    205: 8'h73,
    206: 8'h73,
    207: 8'h69,
    208: 8'h6f,
    209: 8'h6e,
    210: 8'h73,
    211: 8'h68,
    212: 8'h65,
    213: 8'h66,
    214: 8'h2d,
    215: 8'h6b,
    216: 8'h65,
    217: 8'h79,
    218: 8'h2f,
    219: 8'h31,
    220: 8'h73,
    221: 8'h68,
    222: 8'h69,
    223: 8'h65,
    224: 8'h6c,
    225: 8'h64,
    default: 8'd0
  };

endpackage
`default_nettype wire
