//! A small assembler for RV32I, and the program that the tests of the subsystem run from ROM: it
//! performs the bus accesses that the host requests at the mailbox.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;

/// Register.
pub type Reg = u32;

/// Instructions, and branches to labels.
#[derive(Default)]
pub struct Asm {
    words: Vec<u32>,
    labels: BTreeMap<&'static str, usize>,
    branches: Vec<(usize, &'static str)>,
}

impl Asm {
    fn put(&mut self, word: u32) -> &mut Self {
        self.words.push(word);
        self
    }

    fn itype(&mut self, op: u32, f3: u32, rd: Reg, rs1: Reg, imm: i32) -> &mut Self {
        self.put((imm as u32) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op)
    }

    pub fn label(&mut self, name: &'static str) -> &mut Self {
        assert!(self.labels.insert(name, self.words.len()).is_none(), "label {name} twice");
        self
    }

    /// Fills with `unimp` up to a byte address.
    pub fn org(&mut self, address: usize) -> &mut Self {
        self.words.resize(address / 4, 0);
        self
    }

    pub fn addi(&mut self, rd: Reg, rs1: Reg, imm: i32) -> &mut Self {
        self.itype(0x13, 0, rd, rs1, imm)
    }

    pub fn andi(&mut self, rd: Reg, rs1: Reg, imm: i32) -> &mut Self {
        self.itype(0x13, 7, rd, rs1, imm)
    }

    pub fn or(&mut self, rd: Reg, rs1: Reg, rs2: Reg) -> &mut Self {
        self.put(rs2 << 20 | rs1 << 15 | 6 << 12 | rd << 7 | 0x33)
    }

    /// Any 32-bit number, in two instructions.
    pub fn li(&mut self, rd: Reg, value: u32) -> &mut Self {
        let low = ((value << 20) as i32) >> 20;
        self.put(value.wrapping_sub(low as u32) & 0xffff_f000 | rd << 7 | 0x37).addi(rd, rd, low)
    }

    pub fn lw(&mut self, rd: Reg, imm: i32, rs1: Reg) -> &mut Self {
        self.itype(0x03, 2, rd, rs1, imm)
    }

    fn store(&mut self, f3: u32, rs2: Reg, imm: i32, rs1: Reg) -> &mut Self {
        let imm = imm as u32;
        self.put(
            (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | (imm & 0x1f) << 7 | 0x23,
        )
    }

    pub fn sw(&mut self, rs2: Reg, imm: i32, rs1: Reg) -> &mut Self {
        self.store(2, rs2, imm, rs1)
    }

    pub fn sb(&mut self, rs2: Reg, imm: i32, rs1: Reg) -> &mut Self {
        self.store(0, rs2, imm, rs1)
    }

    pub fn jalr(&mut self, rd: Reg, rs1: Reg, imm: i32) -> &mut Self {
        self.itype(0x67, 0, rd, rs1, imm)
    }

    pub fn csrr(&mut self, rd: Reg, csr: i32) -> &mut Self {
        self.itype(0x73, 2, rd, 0, csr)
    }

    pub fn csrw(&mut self, csr: i32, rs1: Reg) -> &mut Self {
        self.itype(0x73, 1, 0, rs1, csr)
    }

    pub fn mret(&mut self) -> &mut Self {
        self.put(0x3020_0073)
    }

    pub fn beq(&mut self, rs1: Reg, rs2: Reg, to: &'static str) -> &mut Self {
        self.branches.push((self.words.len(), to));
        self.put(rs2 << 20 | rs1 << 15 | 0x63)
    }

    pub fn bne(&mut self, rs1: Reg, rs2: Reg, to: &'static str) -> &mut Self {
        self.branches.push((self.words.len(), to));
        self.put(rs2 << 20 | rs1 << 15 | 1 << 12 | 0x63)
    }

    pub fn jump(&mut self, to: &'static str) -> &mut Self {
        self.branches.push((self.words.len(), to));
        self.put(0x6f)
    }

    /// The words, with branches resolved.
    pub fn words(&self) -> Vec<u32> {
        let mut words = self.words.clone();
        for (at, to) in &self.branches {
            let distance = (self.labels[to] as i32 - *at as i32) * 4;
            let d = distance as u32;
            words[*at] |= if words[*at] & 0x7f == 0x6f {
                (d >> 20 & 1) << 31
                    | (d >> 1 & 0x3ff) << 21
                    | (d >> 11 & 1) << 20
                    | (d >> 12 & 0xff) << 12
            } else {
                (d >> 12 & 1) << 31
                    | (d >> 5 & 0x3f) << 25
                    | (d >> 1 & 0xf) << 8
                    | (d >> 11 & 1) << 7
            };
        }
        words
    }
}

pub const MEPC: i32 = 0x341;
pub const MCAUSE: i32 = 0x342;
pub const MTVEC: i32 = 0x305;

/// Commands of the program in ROM: the first word of a request; address and value follow.
#[derive(Clone, Copy)]
pub enum CoreOp {
    Read = 0,
    Write = 1,
    /// Calls the address.
    Call = 2,
    /// The bitwise OR of `value` words, starting at the address.
    Or = 3,
    /// Writes the fourth word of the request to `value` words.
    Fill = 4,
    WriteByte = 5,
}

/// Serves the mailbox: a request is [`CoreOp`], address, value; the answer is a word, and 1 + mcause
/// if it trapped (else 0).
pub fn probe() -> Vec<u32> {
    const RA: Reg = 1;
    const FLAG: Reg = 5;
    const T: Reg = 6;
    const MAILBOX: Reg = 8;
    const REQUEST: Reg = 9;
    const ASK: Reg = 10;
    const ADDRESS: Reg = 11;
    const VALUE: Reg = 12;
    const RESULT: Reg = 13;
    const FILL: Reg = 14;
    const ANSWER: Reg = 18;
    const CAUSE: Reg = 20;
    let mut a = Asm::default();
    a.jump("trap");
    a.org(0x80).li(MAILBOX, 0x4000_1000).li(REQUEST, 0x4000_4000).li(ANSWER, 0x4000_6000);
    a.label("loop").lw(FLAG, 4, MAILBOX).andi(FLAG, FLAG, 1).beq(FLAG, 0, "loop");
    a.lw(ASK, 0, REQUEST).lw(ADDRESS, 4, REQUEST).lw(VALUE, 8, REQUEST).lw(FILL, 12, REQUEST);
    a.addi(CAUSE, 0, 0).addi(RESULT, 0, 0);
    for (ask, to) in [
        (CoreOp::Read, "read"),
        (CoreOp::Write, "write"),
        (CoreOp::Call, "call"),
        (CoreOp::Or, "or"),
        (CoreOp::Fill, "fill"),
        (CoreOp::WriteByte, "byte"),
    ] {
        a.addi(T, 0, ask as i32).beq(ASK, T, to);
    }
    a.label("answer")
        .sw(RESULT, 0, ANSWER)
        .sw(CAUSE, 4, ANSWER)
        .addi(T, 0, 8)
        .sw(T, 8, MAILBOX)
        .jump("loop");
    a.label("read").lw(RESULT, 0, ADDRESS).jump("answer");
    a.label("write").sw(VALUE, 0, ADDRESS).jump("answer");
    a.label("byte").sb(VALUE, 0, ADDRESS).jump("answer");
    a.label("call").jalr(RA, ADDRESS, 0).jump("answer");
    a.label("or")
        .lw(T, 0, ADDRESS)
        .or(RESULT, RESULT, T)
        .addi(ADDRESS, ADDRESS, 4)
        .addi(VALUE, VALUE, -1)
        .bne(VALUE, 0, "or")
        .jump("answer");
    a.label("fill")
        .sw(FILL, 0, ADDRESS)
        .addi(ADDRESS, ADDRESS, 4)
        .addi(VALUE, VALUE, -1)
        .bne(VALUE, 0, "fill")
        .jump("answer");
    // Continues after the instruction that trapped; after the call if the target cannot be fetched.
    a.label("trap")
        .csrr(CAUSE, MCAUSE)
        .addi(CAUSE, CAUSE, 1)
        .csrr(T, MEPC)
        .addi(T, T, 4)
        .csrw(MEPC, T);
    a.addi(T, 0, 2).bne(CAUSE, T, "back").csrw(MEPC, RA).label("back").mret();
    a.words()
}

/// The package of a boot ROM with these words.
pub fn package(words: &[u32]) -> String {
    let list: Vec<String> = words.iter().map(|w| format!("32'h{w:08x}")).collect();
    format!(
        "`default_nettype none\npackage shef_kernel_rom_pkg;\n  localparam logic [31:0] WORDS[{}] = '{{\n    {}\n  }};\nendpackage\n`default_nettype wire\n",
        words.len(),
        list.join(",\n    ")
    )
}
