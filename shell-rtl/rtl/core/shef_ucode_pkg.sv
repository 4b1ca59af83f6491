// Generated from shell-rtl/ucode/shield.uasm by `cargo xtask generate`; do not edit.
`default_nettype none
// A package offers more than one design uses.
/* verilator lint_off UNUSEDPARAM */
package shef_ucode_pkg;

  localparam int unsigned UCODE_PC_W = 9;
  localparam int unsigned UCODE_LEN = 499;
  localparam int unsigned UCODE_CONST_W = 8;
  localparam int unsigned UCODE_CONST_LEN = 226;

  localparam logic [63:0] UCODE_ROM[512] = '{
    64'h0800000000000086,  // 0: jmp start
    64'h5410000040100020,  // 1: put hmac.key, ZERO32
    64'h5420000041300013,  // 2: put hmac.absorb, KEM_DKP_PRK
    64'h5420000002080020,  // 3: put hmac.absorb, SEED
    64'h5830064000000020,  // 4: get hmac.final, PRK
    64'h3800041000000020,  // 5: zero SEED
    64'h3800061000000001,  // 6: zero CTR
    64'h5410000003200020,  // 7: put hmac.key, PRK
    64'h5420000041200002,  // 8: put hmac.absorb, L32
    64'h5420000041c80015,  // 9: put hmac.absorb, KEM_CANDIDATE
    64'h5420000003080001,  // 10: put hmac.absorb, CTR
    64'h5420000040000001,  // 11: put hmac.absorb, ONE
    64'h5831900000000020,  // 12: get hmac.final, SK
    64'h56000000c8000020,  // 13: put p256.load_k, SK
    64'h4a60000000000000,  // 14: cmd p256.check_k
    64'h6200000000000000,  // 15: test p256
    64'h0c00000000000016,  // 16: jeq dkp_found
    64'h4400061000000001,  // 17: inc CTR
    64'h0c10000000000007,  // 18: jne dkp_next
    64'h3800064000000020,  // 19: zero PRK
    64'h2800000000000001,  // 20: cmpr r0, 1
    64'h1400000000000000,  // 21: ret
    64'h4a40000000000000,  // 22: cmd p256.mul_g
    64'h6200000000000000,  // 23: test p256
    64'h2400000000000004,  // 24: st8 PK, 4
    64'h5a70001000000020,  // 25: get p256.read_x, PK + 1, 32
    64'h5a80021000000020,  // 26: get p256.read_y, PK + 33, 32
    64'h3800064000000020,  // 27: zero PRK
    64'h2800000000000000,  // 28: cmpr r0, 0
    64'h1400000000000000,  // 29: ret
    64'h3c001b5040080001,  // 30: cmp ENC, POINT_TAG, 1
    64'h0c10000000000038,  // 31: jne decap_end
    64'h561000000db00020,  // 32: put p256.load_x, ENC + 1, 32
    64'h562000000eb00020,  // 33: put p256.load_y, ENC + 33, 32
    64'h4a50000000000000,  // 34: cmd p256.check_point
    64'h6200000000000000,  // 35: test p256
    64'h0c10000000000038,  // 36: jne decap_end
    64'h56000000c8000020,  // 37: put p256.load_k, SK
    64'h4a30000000000000,  // 38: cmd p256.mul
    64'h6200000000000000,  // 39: test p256
    64'h0c10000000000038,  // 40: jne decap_end
    64'h5a70084000000020,  // 41: get p256.read_x, DH
    64'h5410000040100020,  // 42: put hmac.key, ZERO32
    64'h5420000042700013,  // 43: put hmac.absorb, KEM_EAE_PRK
    64'h5420000004200020,  // 44: put hmac.absorb, DH
    64'h5830064000000020,  // 45: get hmac.final, PRK
    64'h5410000003200020,  // 46: put hmac.key, PRK
    64'h5420000041200002,  // 47: put hmac.absorb, L32
    64'h5420000043080019,  // 48: put hmac.absorb, KEM_SHARED
    64'h542000000da80041,  // 49: put hmac.absorb, ENC
    64'h5420000000000041,  // 50: put hmac.absorb, PK
    64'h5420000040000001,  // 51: put hmac.absorb, ONE
    64'h58300a4000000020,  // 52: get hmac.final, SHARED
    64'h3800084000000020,  // 53: zero DH
    64'h3800064000000020,  // 54: zero PRK
    64'h2800000000000000,  // 55: cmpr r0, 0
    64'h1400000000000000,  // 56: ret
    64'h5420000043d00010,  // 57: put hmac.absorb, HPKE_SUITE
    64'h54200000c0480001,  // 58: put hmac.absorb, IO_AEAD
    64'h1400000000000000,  // 59: ret
    64'h1c700000c0480000,  // 60: ld8 r7, IO_AEAD
    64'h2800000700000001,  // 61: cmpr r7, 1
    64'h1870000000000020,  // 62: set r7, 32
    64'h0c10000000000041,  // 63: jne nk_end
    64'h1870000000000010,  // 64: set r7, 16
    64'h1400000000000000,  // 65: ret
    64'h24000c4000000000,  // 66: st8 KSC, 0
    64'h5410000040100020,  // 67: put hmac.key, ZERO32
    64'h1000000000000039,  // 68: call hpke_suite
    64'h542000004450000b,  // 69: put hmac.absorb, LBL_PSK_ID
    64'h58300c5000000020,  // 70: get hmac.final, KSC + 1, 32
    64'h5410000040100020,  // 71: put hmac.key, ZERO32
    64'h1000000000000039,  // 72: call hpke_suite
    64'h5420000044a80009,  // 73: put hmac.absorb, LBL_INFO
    64'h5420000100020000,  // 74: put hmac.absorb, 0[r1], r2
    64'h58300e5000000020,  // 75: get hmac.final, KSC + 33, 32
    64'h5410000005200020,  // 76: put hmac.key, SHARED
    64'h1000000000000039,  // 77: call hpke_suite
    64'h5420000044f00006,  // 78: put hmac.absorb, LBL_SECRET
    64'h5830105000000020,  // 79: get hmac.final, SECRET
    64'h100000000000003c,  // 80: call hpke_nk
    64'h2400062000000000,  // 81: st8 LEN, 0
    64'h2400063000070000,  // 82: st8 LEN + 1, r7
    64'h5410000008280020,  // 83: put hmac.key, SECRET
    64'h5420000003100002,  // 84: put hmac.absorb, LEN
    64'h1000000000000039,  // 85: call hpke_suite
    64'h5420000045200003,  // 86: put hmac.absorb, LBL_KEY
    64'h5420000006200041,  // 87: put hmac.absorb, KSC
    64'h5420000040000001,  // 88: put hmac.absorb, ONE
    64'h5830125000000020,  // 89: get hmac.final, AEAD_KEY
    64'h5410000008280020,  // 90: put hmac.key, SECRET
    64'h5420000041100002,  // 91: put hmac.absorb, L12
    64'h1000000000000039,  // 92: call hpke_suite
    64'h542000004538000a,  // 93: put hmac.absorb, LBL_NONCE
    64'h5420000006200041,  // 94: put hmac.absorb, KSC
    64'h5420000040000001,  // 95: put hmac.absorb, ONE
    64'h5830145000000020,  // 96: get hmac.final, BASE_NONCE
    64'h5410000008280020,  // 97: put hmac.key, SECRET
    64'h5420000041200002,  // 98: put hmac.absorb, L32
    64'h1000000000000039,  // 99: call hpke_suite
    64'h5420000045880003,  // 100: put hmac.absorb, LBL_EXP
    64'h5420000006200041,  // 101: put hmac.absorb, KSC
    64'h5420000040000001,  // 102: put hmac.absorb, ONE
    64'h5830165000000020,  // 103: get hmac.final, EXPORTER
    64'h38000a4000000020,  // 104: zero SHARED
    64'h3800105000000020,  // 105: zero SECRET
    64'h1400000000000000,  // 106: ret
    64'h100000000000003c,  // 107: call hpke_nk
    64'h1860000000000002,  // 108: set r6, GCM_DECRYPT
    64'h2800000700000020,  // 109: cmpr r7, 32
    64'h0c10000000000070,  // 110: jne open_init
    64'h1860000000000003,  // 111: set r6, GCM_DECRYPT + GCM_KEY256
    64'h4900000000060000,  // 112: cmd gcm.init, r6
    64'h4d000000092f0000,  // 113: send gcm, AEAD_KEY, r7
    64'h4d0000000a28000c,  // 114: send gcm, BASE_NONCE, 12
    64'h551000000fb50000,  // 115: put gcm.aad, AAD, r5
    64'h5d20236300040000,  // 116: xfer gcm.data, PT, 0[r3], r4
    64'h59301a5000000010,  // 117: get gcm.final, TAG
    64'h3800125000000020,  // 118: zero AEAD_KEY
    64'h1860000300040000,  // 119: add r6, r3, r4
    64'h3c001a5600000010,  // 120: cmp TAG, 0[r6], 16
    64'h0c0000000000007c,  // 121: jeq open_end
    64'h3800236000000100,  // 122: zero PT
    64'h2800000000000001,  // 123: cmpr r0, 1
    64'h1400000000000000,  // 124: ret
    64'h541000000b280020,  // 125: put hmac.key, EXPORTER
    64'h5420000041200002,  // 126: put hmac.absorb, L32
    64'h1000000000000039,  // 127: call hpke_suite
    64'h5420000045a00003,  // 128: put hmac.absorb, LBL_SEC
    64'h5420000100020000,  // 129: put hmac.absorb, 0[r1], r2
    64'h5420000040000001,  // 130: put hmac.absorb, ONE
    64'h5830185000000020,  // 131: get hmac.final, EXPORT
    64'h3800165000000020,  // 132: zero EXPORTER
    64'h1400000000000000,  // 133: ret
    64'h2401801000000001,  // 134: st8 IO_STATE, STATE_EMPTY
    64'h0400000000000000,  // 135: wait_event
    64'h1c100000c0000000,  // 136: ld8 r1, IO_EVENT
    64'h2800000100000001,  // 137: cmpr r1, EVENT_SEED
    64'h0c00000000000090,  // 138: jeq do_seed
    64'h2800000100000002,  // 139: cmpr r1, EVENT_LOAD
    64'h0c0000000000009e,  // 140: jeq do_load
    64'h2800000100000004,  // 141: cmpr r1, EVENT_CHAN
    64'h0c0000000000013b,  // 142: jeq do_chan
    64'h0800000000000087,  // 143: jmp idle
    64'h2c000410a4000020,  // 144: copy SEED, IO_SEED
    64'h2401805000000001,  // 145: st8 IO_SEED_DONE, 1
    64'h1000000000000001,  // 146: call derive_key_pair
    64'h0c10000000000099,  // 147: jne seed_failed
    64'h2c01700000080040,  // 148: copy OUT_PUBKEY, PK + 1, 64
    64'h2401808000000001,  // 149: st8 IO_UNIT_WIPE, 1
    64'h38000410000007bf,  // 150: zero PK + 65, WORK_LEN
    64'h2401801000000003,  // 151: st8 IO_STATE, STATE_FRESH
    64'h0800000000000087,  // 152: jmp idle
    64'h3801900000000020,  // 153: zero SK
    64'h38000410000007bf,  // 154: zero PK + 65, WORK_LEN
    64'h2401808000000001,  // 155: st8 IO_UNIT_WIPE, 1
    64'h2401801000000001,  // 156: st8 IO_STATE, STATE_EMPTY
    64'h0800000000000087,  // 157: jmp idle
    64'h20100000c0500000,  // 158: ld16 r1, IO_LOAD_LEN
    64'h2800000100000059,  // 159: cmpr r1, LOAD_MIN
    64'h0c2000000000012d,  // 160: jlt load_refuse
    64'h280000010000024a,  // 161: cmpr r1, LOAD_MAX + 1
    64'h0c3000000000012d,  // 162: jge load_refuse
    64'h2c00336080010000,  // 163: copy MSG, IO_LOAD_MSG, r1
    64'h2020000019b00000,  // 164: ld16 r2, MSG
    64'h2800000200000001,  // 165: cmpr r2, 1
    64'h0c1000000000012d,  // 166: jne load_refuse
    64'h2020000019c00000,  // 167: ld16 r2, MSG_ENC_LEN
    64'h2800000200000041,  // 168: cmpr r2, 65
    64'h0c1000000000012d,  // 169: jne load_refuse
    64'h202000001bd80000,  // 170: ld16 r2, MSG_INFO_LEN
    64'h2800000200000101,  // 171: cmpr r2, 257
    64'h0c3000000000012d,  // 172: jge load_refuse
    64'h1830000000020059,  // 173: set r3, r2 + LOAD_MIN
    64'h2800000100030000,  // 174: cmpr r1, r3
    64'h0c2000000000012d,  // 175: jlt load_refuse
    64'h204000021be80000,  // 176: ld16 r4, MSG_INFO[r2]
    64'h2800000400000101,  // 177: cmpr r4, 257
    64'h0c3000000000012d,  // 178: jge load_refuse
    64'h2800000400000010,  // 179: cmpr r4, 16
    64'h0c2000000000012d,  // 180: jlt load_refuse
    64'h1850000200040049,  // 181: add r5, r2, r4 + 73
    64'h2800000500010000,  // 182: cmpr r5, r1
    64'h0c1000000000012d,  // 183: jne load_refuse
    64'h183000000002037f,  // 184: set r3, r2 + MSG_INFO + 2
    64'h184000000004fff0,  // 185: set r4, r4 - 16
    64'h2c001b5019d00041,  // 186: copy ENC, MSG_ENC, 65
    64'h100000000000001e,  // 187: call hpke_decap
    64'h0c1000000000012d,  // 188: jne load_refuse
    64'h181000000000037d,  // 189: set r1, MSG_INFO
    64'h1000000000000042,  // 190: call hpke_key_schedule
    64'h24001f6000000000,  // 191: st8 AAD, 0
    64'h24001f7000000001,  // 192: st8 AAD + 1, 1
    64'h2c001f80a5000020,  // 193: copy AAD + 2, IO_DIGEST, 32
    64'h1850000000000022,  // 194: set r5, 34
    64'h100000000000006b,  // 195: call hpke_open
    64'h0c1000000000012d,  // 196: jne load_refuse
    64'h2800000400000021,  // 197: cmpr r4, 33
    64'h0c2000000000012d,  // 198: jlt load_refuse
    64'h1850000000000000,  // 199: set r5, 0
    64'h1860000000000021,  // 200: set r6, 33
    64'h1870000000000000,  // 201: set r7, 0
    64'h1c100000c0600000,  // 202: ld8 r1, IO_N_REGIONS
    64'h2800000500010000,  // 203: cmpr r5, r1
    64'h0c000000000000d9,  // 204: jeq check_end
    64'h240180e000050000,  // 205: st8 IO_REGION, r5
    64'h1000000000000131,  // 206: call has_epoch
    64'h0c100000000000d7,  // 207: jne check_next
    64'h2800000600040000,  // 208: cmpr r6, r4
    64'h0c3000000000012d,  // 209: jge load_refuse
    64'h1c10000611b00000,  // 210: ld8 r1, PT[r6]
    64'h2800000100050000,  // 211: cmpr r1, r5
    64'h0c1000000000012d,  // 212: jne load_refuse
    64'h1860000000060007,  // 213: set r6, r6 + 7
    64'h1870000000070001,  // 214: set r7, r7 + 1
    64'h1850000000050001,  // 215: set r5, r5 + 1
    64'h08000000000000ca,  // 216: jmp check_region
    64'h2800000600040000,  // 217: cmpr r6, r4
    64'h0c1000000000012d,  // 218: jne load_refuse
    64'h1c10000012b00000,  // 219: ld8 r1, PT + 32
    64'h2800000100070000,  // 220: cmpr r1, r7
    64'h0c1000000000012d,  // 221: jne load_refuse
    64'h4800000000000000,  // 222: cmd hmac.hash
    64'h542000001bea0000,  // 223: put hmac.absorb, MSG_INFO, r2
    64'h5830586000000020,  // 224: get hmac.final, H_INFO
    64'h4800000000000000,  // 225: cmd hmac.hash
    64'h5420000300040010,  // 226: put hmac.absorb, 0[r3], r4 + 16
    64'h58305a6000000020,  // 227: get hmac.final, H_CT
    64'h4800000000000000,  // 228: cmd hmac.hash
    64'h5420000045b8000d,  // 229: put hmac.absorb, LBL_LOAD
    64'h54200000a5000020,  // 230: put hmac.absorb, IO_DIGEST
    64'h5420000046200002,  // 231: put hmac.absorb, LEN_POINT
    64'h542000000da80041,  // 232: put hmac.absorb, ENC
    64'h5420000046200002,  // 233: put hmac.absorb, LEN_POINT
    64'h5420000000000041,  // 234: put hmac.absorb, PK
    64'h542000002c300020,  // 235: put hmac.absorb, H_INFO
    64'h542000002d300020,  // 236: put hmac.absorb, H_CT
    64'h58305c6000000020,  // 237: get hmac.final, T
    64'h18100000000008c6,  // 238: set r1, LBL_SESSION
    64'h182000000000000c,  // 239: set r2, sizeof.LBL_SESSION
    64'h100000000000007d,  // 240: call hpke_export
    64'h541000000c280020,  // 241: put hmac.key, EXPORT
    64'h5420000011b00020,  // 242: put hmac.absorb, PT, 32
    64'h5830064000000020,  // 243: get hmac.final, PRK
    64'h5410000003200020,  // 244: put hmac.key, PRK
    64'h542000002e300020,  // 245: put hmac.absorb, T
    64'h5420000040000001,  // 246: put hmac.absorb, ONE
    64'h5831960000000020,  // 247: get hmac.final, SESSION
    64'h1850000000000000,  // 248: set r5, 0
    64'h1860000000000021,  // 249: set r6, 33
    64'h1c100000c0600000,  // 250: ld8 r1, IO_N_REGIONS
    64'h2800000500010000,  // 251: cmpr r5, r1
    64'h0c00000000000114,  // 252: jeq channel_keys
    64'h240180e000050000,  // 253: st8 IO_REGION, r5
    64'h1c100000c3000000,  // 254: ld8 r1, IO_REGION_INFO
    64'h2800000100000000,  // 255: cmpr r1, MODE_NONE
    64'h0c00000000000112,  // 256: jeq region_next
    64'h2800000100000005,  // 257: cmpr r1, MODE_BYPASS
    64'h0c00000000000112,  // 258: jeq region_next
    64'h24005e6000000001,  // 259: st8 KEY_INFO, 1
    64'h24005e7000000000,  // 260: st8 KEY_INFO + 1, 0
    64'h24005e8000050000,  // 261: st8 KEY_INFO + 2, r5
    64'h1000000000000136,  // 262: call derive_key
    64'h5831820000000020,  // 263: get hmac.final, IO_KEY
    64'h1c100000c0b00000,  // 264: ld8 r1, IO_KEY256
    64'h2800000100000001,  // 265: cmpr r1, 1
    64'h0c0000000000010c,  // 266: jeq region_key_go
    64'h3801830000000010,  // 267: zero IO_KEY + 16, 16
    64'h2401810000000001,  // 268: st8 IO_KEY_GO, 1
    64'h1000000000000131,  // 269: call has_epoch
    64'h0c10000000000112,  // 270: jne region_next
    64'h2c01840611b80006,  // 271: copy IO_EPOCH, PT + 1[r6], 6
    64'h2401811000000001,  // 272: st8 IO_EPOCH_GO, 1
    64'h1860000000060007,  // 273: set r6, r6 + 7
    64'h1850000000050001,  // 274: set r5, r5 + 1
    64'h08000000000000fa,  // 275: jmp region_keys
    64'h24005e6000000003,  // 276: st8 KEY_INFO, 3
    64'h24005e7000000001,  // 277: st8 KEY_INFO + 1, 1
    64'h24005e80000000ff,  // 278: st8 KEY_INFO + 2, 0xff
    64'h1000000000000136,  // 279: call derive_key
    64'h5831920000000020,  // 280: get hmac.final, K_RX
    64'h24005e7000000002,  // 281: st8 KEY_INFO + 1, 2
    64'h1000000000000136,  // 282: call derive_key
    64'h5831940000000020,  // 283: get hmac.final, K_TX
    64'h24005e6000000004,  // 284: st8 KEY_INFO, 4
    64'h24005e7000000000,  // 285: st8 KEY_INFO + 1, 0
    64'h1000000000000136,  // 286: call derive_key
    64'h5830064000000020,  // 287: get hmac.final, PRK
    64'h5410000003200020,  // 288: put hmac.key, PRK
    64'h5420000046e00006,  // 289: put hmac.absorb, LBL_SHIELD
    64'h542000002e300020,  // 290: put hmac.absorb, T
    64'h5831660000000020,  // 291: get hmac.final, OUT_CONFIRM
    64'h2c0174002e300020,  // 292: copy OUT_T, T
    64'h3801900000000020,  // 293: zero SK
    64'h3801960000000020,  // 294: zero SESSION
    64'h3800000000000041,  // 295: zero PK
    64'h38000410000007bf,  // 296: zero PK + 65, WORK_LEN
    64'h2401808000000001,  // 297: st8 IO_UNIT_WIPE, 1
    64'h2401801000000004,  // 298: st8 IO_STATE, STATE_KEYED
    64'h2401802000000000,  // 299: st8 IO_LOAD_DONE, ACCEPTED
    64'h0800000000000087,  // 300: jmp idle
    64'h38000410000007bf,  // 301: zero PK + 65, WORK_LEN
    64'h2401808000000001,  // 302: st8 IO_UNIT_WIPE, 1
    64'h2401802000000001,  // 303: st8 IO_LOAD_DONE, REFUSED
    64'h0800000000000087,  // 304: jmp idle
    64'h1c100000c3000000,  // 305: ld8 r1, IO_REGION_INFO
    64'h2800000100000001,  // 306: cmpr r1, MODE_INPUT
    64'h0c00000000000135,  // 307: jeq has_epoch_end
    64'h2800000100000002,  // 308: cmpr r1, MODE_OUTPUT
    64'h1400000000000000,  // 309: ret
    64'h54100000cb000020,  // 310: put hmac.key, SESSION
    64'h542000004690000a,  // 311: put hmac.absorb, LBL_KEYS
    64'h542000002f300003,  // 312: put hmac.absorb, KEY_INFO
    64'h5420000040000001,  // 313: put hmac.absorb, ONE
    64'h1400000000000000,  // 314: ret
    64'h2c005e90a0000058,  // 315: copy REQ, IO_CHAN_REQ
    64'h2c0077903b880008,  // 316: copy NEXT, SEQ
    64'h4400779000000008,  // 317: inc NEXT
    64'h0c00000000000141,  // 318: jeq chan_again
    64'h3c005e903bc80008,  // 319: cmp REQ, NEXT, 8
    64'h0c00000000000146,  // 320: jeq chan_open
    64'h400000003b880008,  // 321: isz SEQ
    64'h0c00000000000177,  // 322: jeq chan_refuse
    64'h3c005e9032080058,  // 323: cmp REQ, LAST
    64'h0c00000000000175,  // 324: jeq chan_done
    64'h0800000000000177,  // 325: jmp chan_refuse
    64'h380078100000000c,  // 326: zero IV
    64'h2c0078503bc80008,  // 327: copy IV + 4, NEXT, 8
    64'h4900000000000003,  // 328: cmd gcm.init, GCM_DECRYPT + GCM_KEY256
    64'h4d000000c9000020,  // 329: send gcm, K_RX
    64'h4d0000003c08000c,  // 330: send gcm, IV
    64'h5d206f102f880040,  // 331: xfer gcm.data, PLAIN, REQ + 8, 64
    64'h59301a5000000010,  // 332: get gcm.final, TAG
    64'h3c001a5031880010,  // 333: cmp TAG, REQ + 72, 16
    64'h0c10000000000177,  // 334: jne chan_refuse
    64'h2c0077103bc80008,  // 335: copy SEQ, NEXT
    64'h2c0064102f480058,  // 336: copy LAST, REQ
    64'h3800731000000040,  // 337: zero ANS
    64'h2c00731037880002,  // 338: copy ANS, PLAIN, 2
    64'h2c00735037a80004,  // 339: copy ANS + 4, PLAIN + 4, 4
    64'h1c10000037880000,  // 340: ld8 r1, PLAIN
    64'h1c20000037900000,  // 341: ld8 r2, PLAIN + 1
    64'h1c300000c0680000,  // 342: ld8 r3, IO_STOPPED
    64'h2800000100000001,  // 343: cmpr r1, 0x01
    64'h0c00000000000172,  // 344: jeq chan_answer
    64'h2800000100000002,  // 345: cmpr r1, 0x02
    64'h0c00000000000186,  // 346: jeq op_read
    64'h2800000100000003,  // 347: cmpr r1, 0x03
    64'h0c00000000000192,  // 348: jeq op_write
    64'h2800000100000010,  // 349: cmpr r1, 0x10
    64'h0c0000000000019e,  // 350: jeq op_flush
    64'h2800000100000011,  // 351: cmpr r1, 0x11
    64'h0c000000000001a2,  // 352: jeq op_invalidate
    64'h2800000100000012,  // 353: cmpr r1, 0x12
    64'h0c000000000001ae,  // 354: jeq op_epoch
    64'h2800000100000020,  // 355: cmpr r1, 0x20
    64'h0c000000000001bf,  // 356: jeq op_statement
    64'h2800000100000021,  // 357: cmpr r1, 0x21
    64'h0c000000000001d1,  // 358: jeq op_map
    64'h2800000100000030,  // 359: cmpr r1, 0x30
    64'h0c000000000001de,  // 360: jeq op_close
    64'h2800000100000031,  // 361: cmpr r1, 0x31
    64'h0c000000000001e4,  // 362: jeq op_abort
    64'h2400733000000001,  // 363: st8 ANS_STATUS, 1
    64'h0800000000000172,  // 364: jmp chan_answer
    64'h2400733000000002,  // 365: st8 ANS_STATUS, 2
    64'h0800000000000172,  // 366: jmp chan_answer
    64'h2400733000000003,  // 367: st8 ANS_STATUS, 3
    64'h0800000000000172,  // 368: jmp chan_answer
    64'h2400733000000004,  // 369: st8 ANS_STATUS, 4
    64'h100000000000017d,  // 370: call seal_answer
    64'h2c01600034c80058,  // 371: copy OUT_RSP, RSP
    64'h2401804000000001,  // 372: st8 IO_ANSWER, 1
    64'h2401803000000000,  // 373: st8 IO_CHAN_DONE, ACCEPTED
    64'h0800000000000178,  // 374: jmp chan_clean
    64'h2401803000000001,  // 375: st8 IO_CHAN_DONE, REFUSED
    64'h38006f1000000040,  // 376: zero PLAIN
    64'h3800731000000040,  // 377: zero ANS
    64'h38001a5000000010,  // 378: zero TAG
    64'h2401808000000001,  // 379: st8 IO_UNIT_WIPE, 1
    64'h0800000000000087,  // 380: jmp idle
    64'h380078100000000c,  // 381: zero IV
    64'h2c0078503b880008,  // 382: copy IV + 4, SEQ, 8
    64'h2c0069903b880008,  // 383: copy RSP, SEQ, 8
    64'h4900000000000001,  // 384: cmd gcm.init, GCM_KEY256
    64'h4d000000ca000020,  // 385: send gcm, K_TX
    64'h4d0000003c08000c,  // 386: send gcm, IV
    64'h5d206a1039880040,  // 387: xfer gcm.data, RSP + 8, ANS, 64
    64'h59306e1000000010,  // 388: get gcm.final, RSP + 72, 16
    64'h1400000000000000,  // 389: ret
    64'h2800000300000001,  // 390: cmpr r3, 1
    64'h0c0000000000016f,  // 391: jeq shield_stopped
    64'h2c01848037a80004,  // 392: copy IO_REG_ADDR, PLAIN + 4, 4
    64'h1c300000c0b80000,  // 393: ld8 r3, IO_REG_BAD
    64'h2800000300000001,  // 394: cmpr r3, 1
    64'h0c0000000000016b,  // 395: jeq bad_argument
    64'h2401814000000000,  // 396: st8 IO_REG_GO, 0
    64'h1c300000c0a80000,  // 397: ld8 r3, IO_REG_ERR
    64'h2800000300000001,  // 398: cmpr r3, 1
    64'h0c0000000000016d,  // 399: jeq register_error
    64'h2c007390c2800004,  // 400: copy ANS_VALUE, IO_REG_RDATA, 4
    64'h0800000000000172,  // 401: jmp chan_answer
    64'h2800000300000001,  // 402: cmpr r3, 1
    64'h0c0000000000016f,  // 403: jeq shield_stopped
    64'h2c01848037a80004,  // 404: copy IO_REG_ADDR, PLAIN + 4, 4
    64'h2c0184c037c80004,  // 405: copy IO_REG_WDATA, PLAIN + 8, 4
    64'h1c300000c0b80000,  // 406: ld8 r3, IO_REG_BAD
    64'h2800000300000001,  // 407: cmpr r3, 1
    64'h0c0000000000016b,  // 408: jeq bad_argument
    64'h2401814000000001,  // 409: st8 IO_REG_GO, 1
    64'h1c300000c0a80000,  // 410: ld8 r3, IO_REG_ERR
    64'h2800000300000001,  // 411: cmpr r3, 1
    64'h0c0000000000016d,  // 412: jeq register_error
    64'h0800000000000172,  // 413: jmp chan_answer
    64'h2800000300000001,  // 414: cmpr r3, 1
    64'h0c0000000000016f,  // 415: jeq shield_stopped
    64'h2401812000000000,  // 416: st8 IO_CMD_GO, SET_FLUSH
    64'h08000000000001a5,  // 417: jmp command_done
    64'h2800000300000001,  // 418: cmpr r3, 1
    64'h0c0000000000016f,  // 419: jeq shield_stopped
    64'h2401812000000001,  // 420: st8 IO_CMD_GO, SET_INVALIDATE
    64'h10000000000001a8,  // 421: call command_failed
    64'h0c00000000000171,  // 422: jeq fault_met
    64'h0800000000000172,  // 423: jmp chan_answer
    64'h1c300000c0980000,  // 424: ld8 r3, IO_CMD_ERR
    64'h2800000300000001,  // 425: cmpr r3, 1
    64'h0c000000000001ad,  // 426: jeq command_failed_end
    64'h1c300000c0680000,  // 427: ld8 r3, IO_STOPPED
    64'h2800000300000001,  // 428: cmpr r3, 1
    64'h1400000000000000,  // 429: ret
    64'h2800000300000001,  // 430: cmpr r3, 1
    64'h0c0000000000016f,  // 431: jeq shield_stopped
    64'h1c300000c0600000,  // 432: ld8 r3, IO_N_REGIONS
    64'h2800000200030000,  // 433: cmpr r2, r3
    64'h0c3000000000016b,  // 434: jge bad_argument
    64'h240180e000020000,  // 435: st8 IO_REGION, r2
    64'h1000000000000131,  // 436: call has_epoch
    64'h0c1000000000016b,  // 437: jne bad_argument
    64'h4000000037f80002,  // 438: isz PLAIN + 14, 2
    64'h0c1000000000016b,  // 439: jne bad_argument
    64'h300078d037c80006,  // 440: rev EPOCH_NEW, PLAIN + 8, 6
    64'h30007930c3400006,  // 441: rev EPOCH_NOW, IO_REGION_INFO + 8, 6
    64'h3c0079303c680006,  // 442: cmp EPOCH_NOW, EPOCH_NEW
    64'h0c3000000000016b,  // 443: jge bad_argument
    64'h2c0184003c680006,  // 444: copy IO_EPOCH, EPOCH_NEW
    64'h2401812000000002,  // 445: st8 IO_CMD_GO, SET_EPOCH
    64'h08000000000001a5,  // 446: jmp command_done
    64'h4000000037b00003,  // 447: isz PLAIN + 5, 3
    64'h0c1000000000016b,  // 448: jne bad_argument
    64'h1c30000037a80000,  // 449: ld8 r3, PLAIN + 4
    64'h2800000300000000,  // 450: cmpr r3, 0
    64'h0c000000000001cb,  // 451: jeq statement_shield
    64'h183000000003ffff,  // 452: set r3, r3 - 1
    64'h1c400000c0600000,  // 453: ld8 r4, IO_N_REGIONS
    64'h2800000300040000,  // 454: cmpr r3, r4
    64'h0c3000000000016b,  // 455: jge bad_argument
    64'h240180e000030000,  // 456: st8 IO_REGION, r3
    64'h2c007410c3000018,  // 457: copy ANS_PAYLOAD, IO_REGION_INFO, 24
    64'h0800000000000172,  // 458: jmp chan_answer
    64'h10000000000001cd,  // 459: call shield_page
    64'h0800000000000172,  // 460: jmp chan_answer
    64'h2401806000000001,  // 461: st8 IO_SNAP, 1
    64'h2c007410c4000028,  // 462: copy ANS_PAYLOAD, IO_STAT, 40
    64'h300076903b880008,  // 463: rev ANS_PAYLOAD + 40, SEQ, 8
    64'h1400000000000000,  // 464: ret
    64'h1c300000c0600000,  // 465: ld8 r3, IO_N_REGIONS
    64'h2800000200030000,  // 466: cmpr r2, r3
    64'h0c3000000000016b,  // 467: jge bad_argument
    64'h240180e000020000,  // 468: st8 IO_REGION, r2
    64'h1c300000c3000000,  // 469: ld8 r3, IO_REGION_INFO
    64'h2800000300000002,  // 470: cmpr r3, MODE_OUTPUT
    64'h0c1000000000016b,  // 471: jne bad_argument
    64'h2c018b0037a80004,  // 472: copy IO_MAP_PAGE, PLAIN + 4, 4
    64'h1c300000c0c00000,  // 473: ld8 r3, IO_MAP_BAD
    64'h2800000300000001,  // 474: cmpr r3, 1
    64'h0c0000000000016b,  // 475: jeq bad_argument
    64'h2c007410c6000030,  // 476: copy ANS_PAYLOAD, IO_MAP, 48
    64'h0800000000000172,  // 477: jmp chan_answer
    64'h2800000300000001,  // 478: cmpr r3, 1
    64'h0c000000000001e4,  // 479: jeq op_abort
    64'h2401812000000000,  // 480: st8 IO_CMD_GO, SET_FLUSH
    64'h10000000000001a8,  // 481: call command_failed
    64'h0c100000000001e4,  // 482: jne op_abort
    64'h2400733000000004,  // 483: st8 ANS_STATUS, 4
    64'h10000000000001cd,  // 484: call shield_page
    64'h2400741000000005,  // 485: st8 ANS_PAYLOAD, STATE_CLOSED
    64'h100000000000017d,  // 486: call seal_answer
    64'h2c01600034c80058,  // 487: copy OUT_RSP, RSP
    64'h2c01780034c80058,  // 488: copy OUT_LAST, RSP
    64'h2401801000000005,  // 489: st8 IO_STATE, STATE_CLOSED
    64'h2401807000000001,  // 490: st8 IO_SET_WIPE, 1
    64'h3801920000000020,  // 491: zero K_RX
    64'h3801940000000020,  // 492: zero K_TX
    64'h3800000000000041,  // 493: zero PK
    64'h38000410000007bf,  // 494: zero PK + 65, WORK_LEN
    64'h2401808000000001,  // 495: st8 IO_UNIT_WIPE, 1
    64'h2401804000000001,  // 496: st8 IO_ANSWER, 1
    64'h2401803000000000,  // 497: st8 IO_CHAN_DONE, ACCEPTED
    64'h0800000000000087,  // 498: jmp idle
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000,
    64'h0000000000000000
  };

  localparam logic [7:0] UCODE_CONST[256] = '{
    8'h01,
    8'h04,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h0c,
    8'h00,
    8'h20,
    8'h48,
    8'h50,
    8'h4b,
    8'h45,
    8'h2d,
    8'h76,
    8'h31,
    8'h4b,
    8'h45,
    8'h4d,
    8'h00,
    8'h10,
    8'h64,
    8'h6b,
    8'h70,
    8'h5f,
    8'h70,
    8'h72,
    8'h6b,
    8'h48,
    8'h50,
    8'h4b,
    8'h45,
    8'h2d,
    8'h76,
    8'h31,
    8'h4b,
    8'h45,
    8'h4d,
    8'h00,
    8'h10,
    8'h63,
    8'h61,
    8'h6e,
    8'h64,
    8'h69,
    8'h64,
    8'h61,
    8'h74,
    8'h65,
    8'h48,
    8'h50,
    8'h4b,
    8'h45,
    8'h2d,
    8'h76,
    8'h31,
    8'h4b,
    8'h45,
    8'h4d,
    8'h00,
    8'h10,
    8'h65,
    8'h61,
    8'h65,
    8'h5f,
    8'h70,
    8'h72,
    8'h6b,
    8'h48,
    8'h50,
    8'h4b,
    8'h45,
    8'h2d,
    8'h76,
    8'h31,
    8'h4b,
    8'h45,
    8'h4d,
    8'h00,
    8'h10,
    8'h73,
    8'h68,
    8'h61,
    8'h72,
    8'h65,
    8'h64,
    8'h5f,
    8'h73,
    8'h65,
    8'h63,
    8'h72,
    8'h65,
    8'h74,
    8'h48,
    8'h50,
    8'h4b,
    8'h45,
    8'h2d,
    8'h76,
    8'h31,
    8'h48,
    8'h50,
    8'h4b,
    8'h45,
    8'h00,
    8'h10,
    8'h00,
    8'h01,
    8'h00,
    8'h70,
    8'h73,
    8'h6b,
    8'h5f,
    8'h69,
    8'h64,
    8'h5f,
    8'h68,
    8'h61,
    8'h73,
    8'h68,
    8'h69,
    8'h6e,
    8'h66,
    8'h6f,
    8'h5f,
    8'h68,
    8'h61,
    8'h73,
    8'h68,
    8'h73,
    8'h65,
    8'h63,
    8'h72,
    8'h65,
    8'h74,
    8'h6b,
    8'h65,
    8'h79,
    8'h62,
    8'h61,
    8'h73,
    8'h65,
    8'h5f,
    8'h6e,
    8'h6f,
    8'h6e,
    8'h63,
    8'h65,
    8'h65,
    8'h78,
    8'h70,
    8'h73,
    8'h65,
    8'h63,
    8'h73,
    8'h68,
    8'h65,
    8'h66,
    8'h2d,
    8'h6c,
    8'h6f,
    8'h61,
    8'h64,
    8'h2f,
    8'h31,
    8'h00,
    8'h01,
    8'h00,
    8'h41,
    8'h73,
    8'h68,
    8'h65,
    8'h66,
    8'h2d,
    8'h73,
    8'h65,
    8'h73,
    8'h73,
    8'h69,
    8'h6f,
    8'h6e,
    8'h73,
    8'h68,
    8'h65,
    8'h66,
    8'h2d,
    8'h6b,
    8'h65,
    8'h79,
    8'h2f,
    8'h31,
    8'h73,
    8'h68,
    8'h69,
    8'h65,
    8'h6c,
    8'h64,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00,
    8'h00
  };

endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
