//! Assembler of the Shield's byte sequencer: `shell-rtl/ucode/*.uasm` to the package
//! `shef_ucode_pkg`.
//!
//! Instruction set and syntax are in `shell-rtl/ucode/README.md`. The assembler checks operand
//! kinds, address spaces, sizes, names and ranges.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of instructions of a program.
pub const MAX_PROGRAM: usize = 2048;
const SCRATCH: u32 = 0x0000;
const CONSTANTS: u32 = 0x0800;
const EXT: u32 = 0x1000;
const END: u32 = 0x2000;

shef_proto::coded! {
    /// Why a microprogram does not assemble.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum UcodeError {
        /// An error in a line.
        #[error("{file}:{line}: {message}")]
        Line {
            /// file as it was named
            file: String,
            /// line, from 1
            line: usize,
            /// message
            message: String,
        } = "SHEF-GEN-020": "a microprogram does not assemble",
            "The message names file and line. shell-rtl/ucode/README.md lists instructions and directives.",
        /// A file cannot be read.
        #[error("{file}: {message}")]
        Read {
            /// file as it was named
            file: String,
            /// the system's message
            message: String,
        } = "SHEF-GEN-021": "a file of a microprogram cannot be read", "Look at the path in the .include directive.",
        /// Too many bytes or instructions.
        #[error("{what} takes {used}, there are {limit}")]
        TooLarge {
            /// the full resource
            what: &'static str,
            /// amount needed
            used: usize,
            /// amount available
            limit: usize,
        } = "SHEF-GEN-022": "a microprogram is too large",
            "Scratch RAM has 2048 bytes, the constant ROM 2048 bytes, the program 2048 instructions.",
    }
}

/// An assembled program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Instruction words with their source lines.
    pub words: Vec<(u64, String)>,
    /// The constant ROM.
    pub constants: Vec<u8>,
    /// Bytes of scratch RAM in use.
    pub scratch: usize,
}

/// Operand shapes of an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    None,
    Label,
    /// `set rD, n`
    Set,
    /// `add rD, rB, n`
    Add,
    /// `ld rD, B`
    Load,
    /// `st8 A, n`
    Store,
    /// `cmpr rB, n`
    CmpR,
    /// `A, B [, n]`
    Move,
    /// `A [, n]`
    Dest,
    /// `B [, n]`
    Source,
    /// `unit.cmd [, n]`
    Cmd,
    /// `unit, B [, n]`
    Send,
    /// `unit, A [, n]`
    Recv,
    /// `unit.cmd, B [, n]`
    Put,
    /// `unit.cmd, A [, n]`
    Get,
    /// `unit.cmd, A, B [, n]`
    Xfer,
    /// `unit`
    Test,
}

impl Shape {
    /// Least and greatest number of operands.
    fn operands(self) -> (usize, usize) {
        match self {
            Self::None => (0, 0),
            Self::Label | Self::Test => (1, 1),
            Self::Set | Self::Load | Self::Store | Self::CmpR => (2, 2),
            Self::Add => (3, 3),
            Self::Dest | Self::Source | Self::Cmd => (1, 2),
            Self::Move | Self::Send | Self::Recv | Self::Put | Self::Get => (2, 3),
            Self::Xfer => (3, 4),
        }
    }
}

/// Mnemonic, operation, condition, operands.
const MNEMONICS: &[(&str, u64, u64, Shape)] = &[
    ("wait_event", 1, 0, Shape::None),
    ("jmp", 2, 0, Shape::Label),
    ("jeq", 3, 0, Shape::Label),
    ("jne", 3, 1, Shape::Label),
    ("jlt", 3, 2, Shape::Label),
    ("jge", 3, 3, Shape::Label),
    ("call", 4, 0, Shape::Label),
    ("ret", 5, 0, Shape::None),
    ("set", 6, 0, Shape::Set),
    ("add", 6, 0, Shape::Add),
    ("ld8", 7, 0, Shape::Load),
    ("ld16", 8, 0, Shape::Load),
    ("st8", 9, 0, Shape::Store),
    ("cmpr", 10, 0, Shape::CmpR),
    ("copy", 11, 0, Shape::Move),
    ("rev", 12, 0, Shape::Move),
    ("xor", 13, 0, Shape::Move),
    ("zero", 14, 0, Shape::Dest),
    ("cmp", 15, 0, Shape::Move),
    ("isz", 16, 0, Shape::Source),
    ("inc", 17, 0, Shape::Dest),
    ("cmd", 18, 0, Shape::Cmd),
    ("send", 19, 0, Shape::Send),
    ("recv", 20, 0, Shape::Recv),
    ("put", 21, 0, Shape::Put),
    ("get", 22, 0, Shape::Get),
    ("xfer", 23, 0, Shape::Xfer),
    ("test", 24, 0, Shape::Test),
];
const OP_CMP: u64 = 15;

#[derive(Clone, Copy)]
struct Symbol {
    value: u32,
    /// Size in bytes of a buffer; `None` for plain numbers and labels.
    size: Option<u32>,
    address: bool,
}

struct Statement {
    file: String,
    line: usize,
    text: String,
}

#[derive(Default)]
struct Assembler {
    symbols: BTreeMap<String, Symbol>,
    units: BTreeMap<String, (u64, BTreeMap<String, u64>)>,
    code: Vec<Statement>,
    labels: BTreeMap<String, usize>,
    scratch: u32,
    constants: Vec<u8>,
}

/// An evaluated address operand.
struct Place {
    reg: u64,
    addr: u32,
    size: Option<u32>,
}

impl Place {
    /// The bits of a destination, operand A.
    fn destination(&self) -> u64 {
        self.reg << 49 | u64::from(self.addr) << 36
    }

    /// The bits of a source, operand B.
    fn source(&self) -> u64 {
        self.reg << 32 | u64::from(self.addr) << 19
    }

    fn check_writable(&self) -> Res<()> {
        if self.reg == 0 && (CONSTANTS..EXT).contains(&self.addr) {
            return Err("the constant ROM cannot be written".to_owned());
        }
        Ok(())
    }
}

type Res<T> = Result<T, String>;

/// Assembles `file`; `read` returns the text of a file by its name in `.include`.
///
/// # Errors
/// The first mistake with file and line.
pub fn assemble(
    file: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Program, UcodeError> {
    let mut a = Assembler::default();
    a.file(file, read, 0)?;
    let mut words = Vec::with_capacity(a.code.len());
    for s in &a.code {
        let word = a.encode(&s.text).map_err(|message| UcodeError::Line {
            file: s.file.clone(),
            line: s.line,
            message,
        })?;
        words.push((word, s.text.clone()));
    }
    for (what, used, limit) in [
        ("scratch RAM", a.scratch as usize, (CONSTANTS - SCRATCH) as usize),
        ("the constant ROM", a.constants.len(), (EXT - CONSTANTS) as usize),
        ("the program", words.len(), MAX_PROGRAM),
    ] {
        if used > limit {
            return Err(UcodeError::TooLarge { what, used, limit });
        }
    }
    Ok(Program { words, constants: a.constants, scratch: a.scratch as usize })
}

/// Removes the comment; `;` inside quotes stays.
fn code_part(line: &str) -> &str {
    let mut quoted = false;
    for (i, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ';' if !quoted => return &line[..i],
            _ => {}
        }
    }
    line
}

fn is_name(s: &str) -> bool {
    !s.is_empty()
        && !s.as_bytes()[0].is_ascii_digit()
        && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `r0` .. `r7`.
fn register(s: &str) -> Option<u64> {
    match s.as_bytes() {
        [b'r', d @ b'0'..=b'7'] => Some(u64::from(d - b'0')),
        _ => None,
    }
}

fn number(s: &str) -> Option<u32> {
    s.strip_prefix("0x").map_or_else(|| s.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}

impl Assembler {
    fn file(
        &mut self,
        file: &str,
        read: &dyn Fn(&str) -> Result<String, String>,
        depth: usize,
    ) -> Result<(), UcodeError> {
        let text = read(file).map_err(|message| UcodeError::Read { file: file.into(), message })?;
        for (i, raw) in text.lines().enumerate() {
            let at = |message: String| UcodeError::Line { file: file.into(), line: i + 1, message };
            let line = code_part(raw).trim();
            if let Some(name) = line.strip_prefix(".include") {
                let name = name
                    .trim()
                    .strip_prefix('"')
                    .and_then(|n| n.strip_suffix('"'))
                    .ok_or_else(|| at(".include wants \"FILE\"".into()))?;
                if depth >= 4 {
                    return Err(at(format!("{name} is included too deeply")));
                }
                self.file(name, read, depth + 1)?;
            } else if line.starts_with('.') {
                self.directive(line).map_err(at)?;
            } else if let Some(label) = line.strip_suffix(':') {
                self.label(label.trim()).map_err(at)?;
            } else if !line.is_empty() {
                let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
                self.code.push(Statement { file: file.into(), line: i + 1, text });
            }
        }
        Ok(())
    }

    fn label(&mut self, name: &str) -> Res<()> {
        if !is_name(name) || register(name).is_some() {
            return Err(format!("`{name}` is not a name"));
        }
        match self.labels.insert(name.into(), self.code.len()) {
            None => Ok(()),
            Some(_) => Err(format!("label `{name}` is defined twice")),
        }
    }

    fn define(&mut self, name: &str, symbol: Symbol) -> Res<()> {
        if !is_name(name) || register(name).is_some() {
            return Err(format!("`{name}` is not a name"));
        }
        match self.symbols.insert(name.into(), symbol) {
            None => Ok(()),
            Some(_) => Err(format!("`{name}` is defined twice")),
        }
    }

    fn directive(&mut self, line: &str) -> Res<()> {
        let (directive, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let rest = rest.trim();
        match directive {
            ".equ" => {
                let value = self.expr(rest)?.0;
                self.define(name, Symbol { value, size: None, address: self.is_address(rest) })
            }
            ".scratch" => {
                let size = self.expr(rest)?.0;
                let value = SCRATCH + self.scratch;
                self.scratch += size;
                self.define(name, Symbol { value, size: Some(size), address: true })
            }
            ".field" => {
                let (at, size) = rest
                    .rsplit_once(char::is_whitespace)
                    .ok_or(".field wants NAME ADDRESS SIZE")?;
                let value = self.expr(at.trim())?.0;
                let size = self.expr(size)?.0;
                if value + size > END {
                    return Err(format!("{name} ends beyond the address space"));
                }
                self.define(name, Symbol { value, size: Some(size), address: true })
            }
            ".bytes" => {
                let value = CONSTANTS + self.constants.len() as u32;
                let mut bytes = Vec::new();
                let mut left = rest;
                while !left.is_empty() {
                    if let Some(quoted) = left.strip_prefix('"') {
                        let (text, after) = quoted.split_once('"').ok_or("unfinished string")?;
                        bytes.extend_from_slice(text.as_bytes());
                        left = after.trim_start();
                    } else {
                        let (item, after) =
                            left.split_once(char::is_whitespace).unwrap_or((left, ""));
                        bytes.push(
                            u8::try_from(self.expr(item)?.0)
                                .map_err(|_| format!("{item} is not a byte"))?,
                        );
                        left = after.trim_start();
                    }
                }
                if bytes.is_empty() {
                    return Err(format!("{name} has no bytes"));
                }
                let size = Some(bytes.len() as u32);
                self.constants.extend(bytes);
                self.define(name, Symbol { value, size, address: true })
            }
            ".unit" => {
                let mut items = rest.split_whitespace();
                let unit = items
                    .next()
                    .and_then(number)
                    .filter(|&n| n < 3)
                    .ok_or(".unit wants NAME 0..2 COMMAND=NUMBER ...")?;
                let mut commands = BTreeMap::new();
                for item in items {
                    let (command, n) = item
                        .split_once('=')
                        .ok_or_else(|| format!("`{item}` is not COMMAND=NUMBER"))?;
                    let n = number(n)
                        .filter(|&n| n < 16)
                        .ok_or_else(|| format!("`{n}` is not a command number"))?;
                    commands.insert(command.to_owned(), u64::from(n));
                }
                match self.units.insert(name.into(), (u64::from(unit), commands)) {
                    None => Ok(()),
                    Some(_) => Err(format!("unit `{name}` is defined twice")),
                }
            }
            _ => Err(format!("unknown directive `{directive}`")),
        }
    }

    /// Sum of numbers and names; the size stays known if the sum is a single name.
    fn expr(&self, text: &str) -> Res<(u32, Option<u32>)> {
        let text = text.replace(' ', "");
        let (mut value, mut terms) = (0_i64, 0);
        let mut left = text.as_str();
        let mut sign = 1_i64;
        loop {
            let end = left.find(['+', '-']).unwrap_or(left.len());
            let term = &left[..end];
            let (v, s) = match (number(term), self.symbols.get(term)) {
                (Some(n), _) => (n, None),
                (None, Some(s)) => (s.value, s.size),
                (None, None) if term.is_empty() => {
                    return Err(format!("`{text}` is not an expression"));
                }
                (None, None) => match term
                    .strip_prefix("sizeof.")
                    .and_then(|n| self.symbols.get(n))
                    .and_then(|s| s.size)
                {
                    Some(n) => (n, None),
                    None => return Err(format!("unknown name `{term}`")),
                },
            };
            value += sign * i64::from(v);
            terms += 1;
            if end == left.len() {
                let value =
                    u32::try_from(value).map_err(|_| format!("`{text}` is out of range"))?;
                return Ok((value, s.filter(|_| terms == 1)));
            }
            sign = if left.as_bytes()[end] == b'-' { -1 } else { 1 };
            left = &left[end + 1..];
        }
    }

    /// Whether an expression contains an address.
    fn is_address(&self, text: &str) -> bool {
        text.split(['+', '-']).any(|term| self.symbols.get(term.trim()).is_some_and(|s| s.address))
    }

    fn place(&self, text: &str) -> Res<Place> {
        let (base, reg) = match text.strip_suffix(']').and_then(|t| t.split_once('[')) {
            Some((base, reg)) => (
                base.trim(),
                Some(register(reg.trim()).ok_or_else(|| format!("`{reg}` is not a register"))?),
            ),
            None => (text, None),
        };
        let (addr, size) = self.expr(base)?;
        if reg.is_none() && number(base).is_none() && !self.is_address(base) {
            return Err(format!("`{text}` is a number, not an address"));
        }
        if addr >= END {
            return Err(format!("address {addr:#x} is outside the address space"));
        }
        Ok(Place { reg: reg.unwrap_or(0), addr, size: size.filter(|_| reg.is_none()) })
    }

    /// `expr`, `rN`, `rN + expr` or `rN - expr` as register and 16-bit immediate.
    fn amount(&self, text: &str) -> Res<u64> {
        let text = text.replace(' ', "");
        let (reg, imm) = match register(text.get(..2).unwrap_or("")) {
            Some(r) => match text.as_bytes().get(2) {
                None => (r, 0),
                Some(b'+') => (r, self.expr(&text[3..])?.0),
                Some(b'-') => (r, (1 << 16) - self.expr(&text[3..])?.0.clamp(1, 0xffff)),
                Some(_) => (0, self.expr(&text)?.0),
            },
            None => (0, self.expr(&text)?.0),
        };
        if imm > 0xffff {
            return Err(format!("`{text}` does not fit 16 bits"));
        }
        Ok(reg << 16 | u64::from(imm))
    }

    fn unit(&self, text: &str, with_command: bool) -> Res<u64> {
        let (unit, command) = match text.split_once('.') {
            Some((u, c)) if with_command => (u, Some(c)),
            None if !with_command => (text, None),
            _ => {
                return Err(format!(
                    "`{text}` is not {}",
                    if with_command { "UNIT.COMMAND" } else { "a unit" }
                ));
            }
        };
        let (n, commands) = self.units.get(unit).ok_or_else(|| format!("unknown unit `{unit}`"))?;
        let command = match command {
            Some(c) => {
                *commands.get(c).ok_or_else(|| format!("unit `{unit}` has no command `{c}`"))?
            }
            None => 0,
        };
        Ok(n << 56 | command << 52)
    }

    fn encode(&self, text: &str) -> Res<u64> {
        let (mnemonic, rest) = text.split_once(' ').unwrap_or((text, ""));
        let &(_, op, cond, shape) = MNEMONICS
            .iter()
            .find(|(m, ..)| *m == mnemonic)
            .ok_or_else(|| format!("unknown instruction `{mnemonic}`"))?;
        let texts: Vec<&str> =
            if rest.is_empty() { Vec::new() } else { rest.split(',').map(str::trim).collect() };
        let (least, most) = shape.operands();
        if texts.len() < least || texts.len() > most {
            return Err(format!(
                "`{mnemonic}` takes {least} to {most} operands, not {}",
                texts.len()
            ));
        }
        Ok(op << 58 | cond << 52 | Operands { symbols: self, texts }.encode(op, shape)?)
    }
}

/// The operands of an instruction.
struct Operands<'a> {
    symbols: &'a Assembler,
    texts: Vec<&'a str>,
}

impl Operands<'_> {
    fn place(&self, at: usize) -> Res<Place> {
        self.symbols.place(self.texts[at])
    }

    fn amount(&self, at: usize) -> Res<u64> {
        self.symbols.amount(self.texts[at])
    }

    fn unit(&self, at: usize, with_command: bool) -> Res<u64> {
        self.symbols.unit(self.texts[at], with_command)
    }

    fn label(&self, at: usize) -> Res<u64> {
        let name = self.texts[at];
        let target = self.symbols.labels.get(name);
        target.map(|at| *at as u64).ok_or_else(|| format!("unknown label `{name}`"))
    }

    fn register(&self, at: usize) -> Res<u64> {
        let name = self.texts[at];
        register(name).ok_or_else(|| format!("`{name}` is not a register"))
    }

    /// The register that an instruction sets.
    fn destination_register(&self, at: usize) -> Res<u64> {
        match self.register(at)? {
            0 => Err("r0 is always zero".to_owned()),
            r => Ok(r << 52),
        }
    }

    /// The length: as given, or the size of the one buffer (or of both, if they agree). `buffers`
    /// names the operand of each.
    fn length(&self, at: usize, buffers: &[(&Place, usize)]) -> Res<u64> {
        let n = if at < self.texts.len() {
            self.amount(at)?
        } else {
            let mut sizes = buffers.iter().filter_map(|(p, _)| p.size);
            let first = sizes.next().ok_or("a length is needed here")?;
            if sizes.any(|s| s != first) {
                return Err("the two buffers differ in size; give the length".into());
            }
            u64::from(first)
        };
        for (p, operand) in buffers {
            if let Some(size) = p.size.filter(|size| n >> 16 == 0 && n > u64::from(*size)) {
                let buffer = self.texts[*operand];
                return Err(format!("{n} bytes are more than `{buffer}` has ({size})"));
            }
        }
        Ok(n)
    }

    /// The bits of the instruction below operation and condition.
    fn encode(&self, op: u64, shape: Shape) -> Res<u64> {
        Ok(match shape {
            Shape::None => 0,
            Shape::Label => self.label(0)?,
            Shape::Set => self.destination_register(0)? | self.amount(1)?,
            Shape::Add => {
                self.destination_register(0)? | self.register(1)? << 32 | self.amount(2)?
            }
            Shape::Load => self.destination_register(0)? | self.place(1)?.source(),
            Shape::Store => {
                let d = self.place(0)?;
                d.check_writable()?;
                d.destination() | self.amount(1)?
            }
            Shape::CmpR => self.register(0)? << 32 | self.amount(1)?,
            Shape::Move => {
                let (d, s) = (self.place(0)?, self.place(1)?);
                if op != OP_CMP {
                    d.check_writable()?;
                }
                d.destination() | s.source() | self.length(2, &[(&d, 0), (&s, 1)])?
            }
            Shape::Dest => {
                let d = self.place(0)?;
                d.check_writable()?;
                d.destination() | self.length(1, &[(&d, 0)])?
            }
            Shape::Source => {
                let s = self.place(0)?;
                s.source() | self.length(1, &[(&s, 0)])?
            }
            Shape::Cmd => {
                let unit = self.unit(0, true)?;
                unit | if self.texts.len() > 1 { self.amount(1)? } else { 0 }
            }
            Shape::Send | Shape::Put => {
                let s = self.place(1)?;
                self.unit(0, shape == Shape::Put)? | s.source() | self.length(2, &[(&s, 1)])?
            }
            Shape::Recv | Shape::Get => {
                let d = self.place(1)?;
                d.check_writable()?;
                self.unit(0, shape == Shape::Get)? | d.destination() | self.length(2, &[(&d, 1)])?
            }
            Shape::Xfer => {
                let (d, s) = (self.place(1)?, self.place(2)?);
                if d.addr >= CONSTANTS || s.addr >= CONSTANTS {
                    return Err("`xfer` works on scratch RAM only".into());
                }
                self.unit(0, true)?
                    | d.destination()
                    | s.source()
                    | self.length(3, &[(&d, 1), (&s, 2)])?
            }
            Shape::Test => self.unit(0, false)?,
        })
    }
}

fn bits(n: usize) -> u32 {
    usize::BITS - n.max(2).saturating_sub(1).leading_zeros()
}

impl Program {
    /// The package, as committed.
    pub fn to_systemverilog(&self, source: &str) -> String {
        let (pc_w, const_w) = (bits(self.words.len()), bits(self.constants.len().max(1)));
        let mut s = String::new();
        let _ = write!(
            s,
            "// Generated from {source} by `cargo xtask generate`; do not edit.\n`default_nettype none\n\
             // A package offers more than one design uses.\n/* verilator lint_off UNUSEDPARAM */\npackage shef_ucode_pkg;\n\n  \
             localparam int unsigned UCODE_PC_W = {pc_w};\n  localparam int unsigned UCODE_LEN = {};\n  localparam int unsigned UCODE_CONST_W = {const_w};\n  \
             localparam int unsigned UCODE_CONST_LEN = {};\n\n  localparam logic [63:0] UCODE_ROM[{}] = '{{\n",
            self.words.len(),
            self.constants.len(),
            1_usize << pc_w,
        );
        // Positional and padded: some tools read keyed patterns of unpacked arrays differently.
        let entry = |s: &mut String, i: usize, n: usize, value: &str, text: &str| {
            let comma = if i + 1 < n { "," } else { "" };
            let comment = if text.is_empty() { String::new() } else { format!("  // {i}: {text}") };
            let _ = writeln!(s, "    {value}{comma}{comment}");
        };
        for i in 0..1 << pc_w {
            let (word, text) = self.words.get(i).map_or((0, ""), |(w, t)| (*w, t.as_str()));
            entry(&mut s, i, 1 << pc_w, &format!("64'h{word:016x}"), text);
        }
        let _ = write!(
            s,
            "  }};\n\n  localparam logic [7:0] UCODE_CONST[{}] = '{{\n",
            1_usize << const_w
        );
        for i in 0..1 << const_w {
            entry(
                &mut s,
                i,
                1 << const_w,
                &format!("8'h{:02x}", self.constants.get(i).copied().unwrap_or(0)),
                "",
            );
        }
        s.push_str(
            "  };\n\nendpackage\n/* verilator lint_on UNUSEDPARAM */\n`default_nettype wire\n",
        );
        s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asm(text: &str) -> Result<Program, UcodeError> {
        let text = text.to_owned();
        assemble("t.uasm", &move |f| {
            if f == "t.uasm" { Ok(text.clone()) } else { Err("no such file".into()) }
        })
    }

    const HEAD: &str = ".unit gcm 1 init=0 data=2\n.scratch A 16\n.scratch B 16\n.scratch C 4\n.bytes K \"a;b\" 0x0a 7\n.field X 0x1820 32\n.equ N 5\n";

    fn word(line: &str) -> u64 {
        asm(&format!("{HEAD}start:\n{line}\n")).unwrap().words[0].0
    }

    #[test]
    fn words_are_as_the_sequencer_decodes_them() {
        assert_eq!(word("wait_event"), 1 << 58);
        assert_eq!(word("jge start"), 3 << 58 | 3 << 52);
        assert_eq!(word("set r3, r2 - 1"), 6 << 58 | 3 << 52 | 2 << 16 | 0xffff);
        assert_eq!(word("add r1, r2, r3 + 5"), 6 << 58 | 1 << 52 | 2 << 32 | 3 << 16 | 5);
        assert_eq!(word("copy B, A"), 11 << 58 | 16 << 36 | 16);
        assert_eq!(word("copy A + 1[r4], K, 2"), 11 << 58 | 4 << 49 | 1 << 36 | 0x800 << 19 | 2);
        assert_eq!(
            word("xfer gcm.data, A, B, r5"),
            23 << 58 | 1 << 56 | 2 << 52 | 16 << 19 | 5 << 16
        );
        assert_eq!(word("put gcm.init, K"), 21 << 58 | 1 << 56 | 0x800 << 19 | 5);
        assert_eq!(word("zero X"), 14 << 58 | 0x1820 << 36 | 32);
        assert_eq!(word("st8 X, sizeof.A"), 9 << 58 | 0x1820 << 36 | 16);
    }

    #[test]
    fn constants_and_scratch_are_laid_out_in_order() {
        let p = asm(&format!("{HEAD}ret")).unwrap();
        assert_eq!(p.constants, b"a;b\x0a\x07");
        assert_eq!(p.scratch, 36);
    }

    #[test]
    fn labels_may_come_later() {
        let p = asm("jmp end\nret\nend:\nret\n").unwrap();
        assert_eq!(p.words[0].0, 2 << 58 | 2);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (line, expected) in [
            ("frob A", "unknown instruction `frob`"),
            ("copy A, C", "the two buffers differ in size; give the length"),
            ("copy A, B, 17", "17 bytes are more than `A` has (16)"),
            ("copy K, A, 5", "the constant ROM cannot be written"),
            ("copy A", "`copy` takes 2 to 3 operands, not 1"),
            ("copy A, D, 1", "unknown name `D`"),
            ("copy A, N, 1", "`N` is a number, not an address"),
            ("copy A, start, 1", "unknown name `start`"),
            ("jmp nowhere", "unknown label `nowhere`"),
            ("set r0, 1", "r0 is always zero"),
            ("set r8, 1", "`r8` is not a register"),
            ("set r1, 65536", "`65536` does not fit 16 bits"),
            ("put aes.init, A", "unknown unit `aes`"),
            ("put gcm.go, A", "unit `gcm` has no command `go`"),
            ("put gcm, A", "`gcm` is not UNIT.COMMAND"),
            ("xfer gcm.data, A, K, 1", "`xfer` works on scratch RAM only"),
            ("copy A, 0x2000, 1", "address 0x2000 is outside the address space"),
            ("zero 0[r1]", "a length is needed here"),
            (".scratch A 1", "`A` is defined twice"),
            (".field Y 0x1fff 2", "Y ends beyond the address space"),
            (".frob", "unknown directive `.frob`"),
            (".bytes L \"abc", "unfinished string"),
            (".bytes L 256", "256 is not a byte"),
            ("start:", "label `start` is defined twice"),
            ("r1:", "`r1` is not a name"),
        ] {
            let e = asm(&format!("{HEAD}start:\n{line}\n")).unwrap_err();
            assert_eq!(
                e,
                UcodeError::Line { file: "t.uasm".into(), line: 9, message: expected.into() },
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_too_large_or_missing_is_said() {
        assert_eq!(
            asm(".scratch A 2049\n").unwrap_err(),
            UcodeError::TooLarge { what: "scratch RAM", used: 2049, limit: 2048 }
        );
        assert_eq!(asm(&"ret\n".repeat(MAX_PROGRAM + 1)).unwrap_err().code(), "SHEF-GEN-022");
        assert_eq!(
            asm(".include \"x.uasm\"").unwrap_err(),
            UcodeError::Read { file: "x.uasm".into(), message: "no such file".into() }
        );
        let circle = assemble("c", &|_| Ok(".include \"c\"".into())).unwrap_err();
        assert_eq!(circle.code(), "SHEF-GEN-020");
    }

    #[test]
    fn every_error_code_is_listed() {
        for e in [
            asm("x").unwrap_err(),
            asm(".scratch A 4096").unwrap_err(),
            asm(".include \"x\"").unwrap_err(),
        ] {
            assert!(UcodeError::CODES.iter().any(|c| c.id == e.code()));
        }
    }
}
