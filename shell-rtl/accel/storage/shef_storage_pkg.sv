// Commands, records and the policy of the storage node: README.md has the layout of their bytes.
`default_nettype none
package shef_storage_pkg;
  localparam int unsigned RECORD = 64;            // lines of a record: one of header, then data
  localparam logic [12:0] MAX_LENGTH = 13'd4032;
  localparam logic [31:0] MAGIC = 32'h3143_4552;  // "REC1"
  localparam logic [31:0] PUT = 32'd1;
  localparam logic [31:0] GET = 32'd2;

  // A command that is decoded. A refused one moves nothing.
  typedef struct packed {
    logic good;
    logic put;
    logic [23:0] store;      // first record in the store: 256 a slot
    logic [8:0] records;     // 1..256
    logic [20:0] block;      // first record of the client: in `put` or in `get`
    logic [5:0] purpose;
    logic [63:0] requester;
    logic [63:0] now;
  } command_t;

  typedef enum logic [2:0] {
    V_GRANTED,
    V_BROKEN,
    V_EXPIRED,
    V_OWNER,
    V_OBJECTION,
    V_PURPOSE
  } verdict_e;

  // slots: of the store; blocks: of the client's region that the command names.
  function automatic command_t decode(input logic [511:0] line, input logic [31:0] slots,
                                      input logic [31:0] put_blocks,
                                      input logic [31:0] get_blocks);
    command_t c;
    logic [31:0] op, slot, first, records, block, purpose, blocks;
    op = line[31:0];
    slot = line[63:32];
    first = line[95:64];
    records = line[127:96];
    block = line[159:128];
    purpose = line[191:160];
    blocks = op == PUT ? put_blocks : get_blocks;
    c.put = op == PUT;
    c.store = {slot[15:0], first[7:0]};
    c.records = records[8:0];
    c.block = block[20:0];
    c.purpose = purpose[5:0];
    c.requester = line[255:192];
    c.now = line[319:256];
    c.good = (op == PUT || op == GET) && slot < slots && first[31:8] == '0 && records != '0 &&
        records[31:9] == '0 && {2'd0, first[7:0]} + {1'b0, records[8:0]} <= 10'd256 &&
        {1'b0, block} + {24'd0, records[8:0]} <= {1'b0, blocks} && purpose[31:6] == '0 &&
        line[511:320] == '0;
    return c;
  endfunction

  // What the policy says of a record with this header line, to a requester with a purpose.
  function automatic verdict_e verdict(input logic [511:0] header, input logic put,
                                       input logic [63:0] requester, input logic [5:0] purpose,
                                       input logic [63:0] now);
    logic own, objects;
    logic [63:0] purposes;
    own = header[127:64] == requester;
    objects = header[32];
    purposes = header[191:128];
    if (header[31:0] != MAGIC || header[63:33] != '0 || header[287:256] > 32'(MAX_LENGTH) ||
        header[511:288] != '0) return V_BROKEN;
    if (now >= header[255:192]) return V_EXPIRED;
    if (own) return V_GRANTED;
    if (put) return V_OWNER;
    if (objects) return V_OBJECTION;
    if (!purposes[purpose]) return V_PURPOSE;
    return V_GRANTED;
  endfunction
endpackage
`default_nettype wire
