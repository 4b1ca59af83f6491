//! Register maps: one TOML file to a SystemVerilog package with decoder, Rust constants and a page
//! of documentation.
//!
//! The vocabulary is SystemRDL's (`addrmap`, `reg`, `field`, `mem`, `sw`); the file is checked
//! before anything is emitted.

use core::fmt::Write as _;
use serde::Deserialize;
use std::collections::BTreeMap;

/// An error in a register description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegsError {
    /// Not TOML, or an unknown key; the message has line and column.
    #[error("{0}")]
    Parse(String),
    /// Well-formed, but inconsistent.
    #[error("{map}.{item}: {problem}")]
    Invalid {
        /// Address map.
        map: String,
        /// Register or memory.
        item: String,
        /// The problem, with the values.
        problem: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    addrmap: Vec<AddrMap>,
}

/// One address map.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AddrMap {
    name: String,
    desc: String,
    size: u32,
    /// Offset of the map in its parent; number and distance of its copies follow.
    base: Option<u32>,
    #[serde(default = "once")]
    count: u32,
    #[serde(default)]
    stride: u32,
    #[serde(default)]
    reg: Vec<Reg>,
    #[serde(default)]
    mem: Vec<Mem>,
}

fn once() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reg {
    name: String,
    offset: u32,
    sw: Access,
    reset: Option<u32>,
    desc: String,
    #[serde(default)]
    field: Vec<Field>,
    /// A register, of any map of the file, whose fields this one shares; the SystemVerilog package
    /// has them once.
    like: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: String,
    bits: [u8; 2],
    desc: String,
    #[serde(default, rename = "enum")]
    values: BTreeMap<String, u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mem {
    name: String,
    offset: u32,
    bytes: u32,
    sw: Access,
    desc: String,
}

/// Access by software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Access {
    #[serde(rename = "r")]
    R,
    #[serde(rename = "w")]
    W,
    #[serde(rename = "rw")]
    Rw,
}

impl Access {
    fn reads(self) -> bool {
        self != Access::W
    }
    fn writes(self) -> bool {
        self != Access::R
    }
    fn name(self) -> &'static str {
        match self {
            Access::R => "r",
            Access::W => "w",
            Access::Rw => "rw",
        }
    }
}

/// Head of every Rust module of registers.
const FIELD: &str = r"
/// A field of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Lowest bit.
    pub lsb: u32,
    /// Bits.
    pub width: u32,
}

impl Field {
    /// The field's value in a register's value.
    pub const fn get(self, register: u32) -> u32 {
        (register >> self.lsb) & (((1u64 << self.width) - 1) as u32)
    }

    /// A register's value with this field set and all others 0.
    pub const fn put(self, value: u32) -> u32 {
        (value & (((1u64 << self.width) - 1) as u32)) << self.lsb
    }
}
";

/// The types of the list of all items.
const ITEM: &str = r"
/// Access by software.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    R,
    /// Write only; reads are answered with an error.
    W,
    /// Both.
    Rw,
}

/// A register or memory of a map.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Name.
    pub name: &'static str,
    /// Byte offset.
    pub offset: u32,
    /// Bytes.
    pub bytes: u32,
    /// Access by software.
    pub access: Access,
    /// Value after reset, where it is fixed.
    pub reset: Option<u32>,
}
";

/// A checked register description.
#[derive(Debug)]
pub struct RegisterMap {
    maps: Vec<AddrMap>,
}

/// Name, offset, bytes and access of a register or memory, in the order of addresses.
struct Item<'a> {
    name: &'a str,
    offset: u32,
    bytes: u32,
    sw: Access,
}

impl AddrMap {
    fn items(&self) -> Vec<Item<'_>> {
        let regs =
            self.reg.iter().map(|r| Item { name: &r.name, offset: r.offset, bytes: 4, sw: r.sw });
        let mems = self.mem.iter().map(|m| Item {
            name: &m.name,
            offset: m.offset,
            bytes: m.bytes,
            sw: m.sw,
        });
        let mut all: Vec<_> = regs.chain(mems).collect();
        all.sort_by_key(|i| i.offset);
        all
    }

    /// Full constant name, with the map's name as prefix, once.
    fn constant(&self, item: &str) -> String {
        let prefix = self.name.to_uppercase();
        if item.starts_with(&format!("{prefix}_")) {
            item.into()
        } else {
            format!("{prefix}_{item}")
        }
    }

    fn check(&self) -> Result<(), RegsError> {
        let fail = |item: &str, problem: String| {
            Err(RegsError::Invalid { map: self.name.clone(), item: item.into(), problem })
        };
        if !self.size.is_power_of_two()
            || self.count == 0
            || self.count > 1 && self.stride < self.size
        {
            return fail(
                "",
                format!("{} maps of {:#x} bytes, {:#x} apart", self.count, self.size, self.stride),
            );
        }
        let mut end = 0;
        for i in self.items() {
            if i.offset % 4 != 0 || i.bytes % 4 != 0 || i.bytes == 0 {
                return fail(
                    i.name,
                    format!("offset {:#x} and size {} must be multiples of 4", i.offset, i.bytes),
                );
            }
            if i.offset < end {
                return fail(
                    i.name,
                    format!(
                        "offset {:#x} overlaps the item before, which ends at {end:#x}",
                        i.offset
                    ),
                );
            }
            end = i.offset + i.bytes;
            if end > self.size {
                return fail(
                    i.name,
                    format!("ends at {end:#x}, behind the map's {:#x}", self.size),
                );
            }
        }
        for r in &self.reg {
            let mut used = 0u32;
            for f in &r.field {
                let [lsb, msb] = f.bits;
                if lsb > msb || msb > 31 {
                    return fail(&r.name, format!("field {} has bits {lsb}..{msb}", f.name));
                }
                let mask = (((1u64 << (msb - lsb + 1)) - 1) << lsb) as u32;
                if used & mask != 0 {
                    return fail(&r.name, format!("field {} overlaps another", f.name));
                }
                used |= mask;
                for (name, value) in &f.values {
                    if u64::from(*value) >> (msb - lsb + 1) != 0 {
                        return fail(
                            &r.name,
                            format!("value {name} = {value} does not fit field {}", f.name),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Addresses, reset values and fields.
    fn constants(&self, s: &mut String) {
        let w = self.size.trailing_zeros();
        let lower = &self.name;
        let items = self.items();
        writeln!(s, "\n  // {}", self.desc).unwrap();
        if let Some(base) = self.base {
            let upper = lower.to_uppercase();
            writeln!(s, "  localparam logic [31:0] {upper}_BASE = 32'h{base:x};").unwrap();
            writeln!(
                s,
                "  localparam int unsigned {upper}_COUNT = {};\n  localparam int unsigned {upper}_STRIDE = {};",
                self.count, self.stride
            )
            .unwrap();
        }
        for i in &items {
            writeln!(
                s,
                "  localparam logic [{}:0] {}_OFFSET = {w}'h{:x};",
                w - 1,
                self.constant(i.name),
                i.offset
            )
            .unwrap();
        }
        for r in &self.reg {
            if let Some(v) = r.reset {
                writeln!(
                    s,
                    "  localparam logic [31:0] {}_RESET = 32'h{v:08x};",
                    self.constant(&r.name)
                )
                .unwrap();
            }
            for f in &r.field {
                let c = format!("{}_{}", self.constant(&r.name), f.name);
                writeln!(s, "  localparam int unsigned {c}_LSB = {};", f.bits[0]).unwrap();
                let width = u32::from(f.bits[1] - f.bits[0] + 1);
                for (name, value) in &f.values {
                    writeln!(
                        s,
                        "  localparam logic [{}:0] {c}_{name} = {width}'d{value};",
                        width - 1
                    )
                    .unwrap();
                }
            }
        }
    }

    /// What an address selects.
    fn decoder(&self, s: &mut String) {
        let w = self.size.trailing_zeros();
        let lower = &self.name;
        let items = self.items();
        let sel_w = (u32::BITS - (items.len() as u32).leading_zeros()).max(1);
        writeln!(s, "\n  typedef enum logic [{}:0] {{", sel_w - 1).unwrap();
        writeln!(s, "    {}_SEL_NONE = {sel_w}'d0,", lower.to_uppercase()).unwrap();
        for (n, i) in items.iter().enumerate() {
            let comma = if n + 1 == items.len() { "" } else { "," };
            writeln!(s, "    {} = {sel_w}'d{}{comma}", self.sel(i.name), n + 1).unwrap();
        }
        writeln!(s, "  }} {lower}_sel_e;").unwrap();
        writeln!(s, "\n  // What a byte address selects; NONE is answered with an error.").unwrap();
        writeln!(
            s,
            "  function automatic {lower}_sel_e {lower}_decode(input logic [{}:0] addr);",
            w - 1
        )
        .unwrap();
        writeln!(s, "    {lower}_decode = {}_SEL_NONE;", lower.to_uppercase()).unwrap();
        for i in &items {
            let (lo, hi) = (i.offset, i.offset + i.bytes - 1);
            let low = if lo == 0 { String::new() } else { format!("addr >= {w}'h{lo:x} && ") };
            writeln!(s, "    if ({low}addr <= {w}'h{hi:x}) {lower}_decode = {};", self.sel(i.name))
                .unwrap();
        }
        writeln!(s, "  endfunction").unwrap();
    }

    /// What can be read and written.
    fn accesses(&self, s: &mut String) {
        let lower = &self.name;
        let items = self.items();
        for (what, test) in
            [("readable", Access::reads as fn(Access) -> bool), ("writable", Access::writes)]
        {
            writeln!(s, "\n  function automatic logic {lower}_{what}(input {lower}_sel_e sel);")
                .unwrap();
            writeln!(s, "    unique case (sel)").unwrap();
            let names: Vec<_> =
                items.iter().filter(|i| test(i.sw)).map(|i| self.sel(i.name)).collect();
            if !names.is_empty() {
                writeln!(s, "      {}: {lower}_{what} = 1'b1;", names.join(",\n      ")).unwrap();
            }
            writeln!(s, "      default: {lower}_{what} = 1'b0;\n    endcase\n  endfunction")
                .unwrap();
        }
    }
}

impl RegisterMap {
    /// Reads and checks a register description.
    pub fn parse(text: &str) -> Result<Self, RegsError> {
        let file: File = toml::from_str(text).map_err(|e| RegsError::Parse(e.to_string()))?;
        let map = Self { maps: file.addrmap };
        for m in &map.maps {
            m.check()?;
            for r in m.reg.iter().filter(|r| r.like.is_some()) {
                if !r.field.is_empty() || map.fields(r).is_empty() {
                    let problem = format!(
                        "like = {:?} names no register with fields, or fields stand here too",
                        r.like
                    );
                    return Err(RegsError::Invalid {
                        map: m.name.clone(),
                        item: r.name.clone(),
                        problem,
                    });
                }
            }
        }
        Ok(map)
    }

    /// The fields of a register: its own, or those of its `like` register.
    fn fields<'a>(&'a self, reg: &'a Reg) -> &'a [Field] {
        let Some(name) = &reg.like else { return &reg.field };
        self.maps.iter().flat_map(|m| &m.reg).find(|r| r.name == *name).map_or(&[], |r| &r.field)
    }

    /// Appends the maps of another description.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.maps.extend(other.maps);
        self
    }

    /// A package: offsets, fields, reset values and one decoder function for each map.
    pub fn to_systemverilog(&self, source: &str, package: &str) -> String {
        let mut s = format!(
            "// Generated from {source} by `cargo xtask generate`; do not edit.\n\
             `default_nettype none\n// A package offers more than one design uses.\n/* verilator lint_off UNUSEDPARAM */\npackage {package};\n",
        );
        for map in &self.maps {
            map.constants(&mut s);
            map.decoder(&mut s);
            map.accesses(&mut s);
        }
        s.push_str("\nendpackage\n/* verilator lint_on UNUSEDPARAM */\n`default_nettype wire\n");
        s
    }

    /// The source of crate `shef-regs`: every map.
    pub fn to_rust(&self) -> String {
        let mut s = Self::rust_head(
            "Register maps of the Shield, and of the Security Kernel's bus ([`bus`]).",
        );
        s.push_str("#![no_std]\n#![forbid(unsafe_code)]\n\npub mod bus;\n");
        s.push_str(FIELD);
        s.push_str(ITEM);
        for m in &self.maps {
            self.rust_map(m, &mut s);
        }
        s
    }

    /// Addresses and masks for a program on the bus that the first map describes: a map with the
    /// name of one of its items is at that item's address, any other one is given as offsets.
    pub fn to_rust_bus(&self, source: &str) -> String {
        let doc = |s: &mut String, pad: &str, text: &str| {
            s.push_str(&wrapped(&format!("{pad}///"), &format!("{}.", capital(text))));
        };
        let mut s = wrapped(
            "//!",
            &format!(
                "Addresses and bits on the bus. Generated from {source} by `cargo xtask generate`; do not edit."
            ),
        );
        let Some((bus, maps)) = self.maps.split_first() else { return s };
        for m in &bus.mem {
            s.push('\n');
            doc(&mut s, "", &m.desc);
            writeln!(s, "pub const {}: u32 = {:#010x};", m.name, m.offset).unwrap();
            writeln!(
                s,
                "/// Bytes of [`{0}`].\npub const {0}_LEN: usize = {1:#x};",
                m.name, m.bytes
            )
            .unwrap();
        }
        for m in maps {
            let base = bus
                .mem
                .iter()
                .find(|item| item.name.eq_ignore_ascii_case(&m.name))
                .map_or(0, |item| item.offset);
            s.push('\n');
            doc(&mut s, "", &m.desc);
            writeln!(s, "pub mod {} {{", m.name).unwrap();
            for i in m.items() {
                let reg = m.reg.iter().find(|r| r.name == i.name);
                let desc = reg.map_or_else(
                    || m.mem.iter().find(|x| x.name == i.name).map_or("", |x| x.desc.as_str()),
                    |r| r.desc.as_str(),
                );
                doc(&mut s, "    ", &format!("{desc} ({})", i.sw.name()));
                writeln!(s, "    pub const {}: u32 = {:#x};", i.name, base + i.offset).unwrap();
                for f in reg.map_or(&[][..], |r| &r.field) {
                    let [lsb, msb] = f.bits;
                    let ones = (1_u64 << (msb - lsb + 1)) - 1;
                    let name = format!("{}_{}", i.name, f.name);
                    doc(&mut s, "    ", &format!("bits of [`{}`]: {}", i.name, f.desc));
                    writeln!(s, "    pub const {name}: u32 = {:#x};", ones << lsb).unwrap();
                    for (value, n) in &f.values {
                        writeln!(s, "    /// Value of [`{name}`].\n    pub const {name}_{value}: u32 = {:#x};", n << lsb).unwrap();
                    }
                }
            }
            s.push_str("}\n");
        }
        s
    }

    fn rust_head(what: &str) -> String {
        let mut s = wrapped(
            "//!",
            &format!(
                "{what} Generated from shell-rtl/regs by `cargo xtask generate`; do not edit."
            ),
        );
        s.push_str("//!\n");
        s += &wrapped(
            "//!",
            "Offsets are in bytes, registers are 32 bits wide; byte strings lie in byte-lane order: byte i at offset + i.",
        );
        s
    }

    fn rust_map(&self, m: &AddrMap, s: &mut String) {
        let doc = |s: &mut String, text: &str| {
            s.push_str(&wrapped("    ///", &format!("{}.", capital(text))));
        };
        s.push('\n');
        s.push_str(&wrapped("///", &format!("{}.", m.desc)));
        writeln!(s, "pub mod {} {{\n    use super::{{Access, Field, Item}};\n", m.name).unwrap();
        writeln!(s, "    /// Bytes of the map.\n    pub const SIZE: u32 = {:#x};", m.size).unwrap();
        if let Some(base) = m.base {
            writeln!(s, "    /// Where the first map lies in the control window.\n    pub const BASE: u32 = {base:#x};").unwrap();
            writeln!(s, "    /// Maps.\n    pub const COUNT: u32 = {};", m.count).unwrap();
            writeln!(
                s,
                "    /// Bytes from a map to the next.\n    pub const STRIDE: u32 = {:#x};",
                m.stride
            )
            .unwrap();
        }
        for i in m.items() {
            let desc = m
                .reg
                .iter()
                .map(|r| (&r.name, &r.desc))
                .chain(m.mem.iter().map(|x| (&x.name, &x.desc)));
            let desc = desc.into_iter().find(|(n, _)| *n == i.name).map_or("", |(_, d)| d.as_str());
            doc(s, &format!("{desc} ({})", i.sw.name()));
            writeln!(s, "    pub const {}: u32 = {:#x};", m.short(i.name), i.offset).unwrap();
            if m.mem.iter().any(|x| x.name == i.name) {
                writeln!(
                    s,
                    "    /// Bytes of [`{0}`].\n    pub const {0}_BYTES: usize = {1};",
                    m.short(i.name),
                    i.bytes
                )
                .unwrap();
            }
        }
        for r in &m.reg {
            for f in self.fields(r) {
                let c = format!("{}_{}", m.short(&r.name), f.name);
                let w = f.bits[1] - f.bits[0] + 1;
                doc(s, &f.desc);
                writeln!(
                    s,
                    "    pub const {c}: Field = Field {{ lsb: {}, width: {w} }};",
                    f.bits[0]
                )
                .unwrap();
                for (n, v) in &f.values {
                    writeln!(s, "    /// Value of [`{c}`].\n    pub const {c}_{n}: u32 = {v};")
                        .unwrap();
                }
            }
        }
        Self::rust_items(m, s);
        s.push_str("}\n");
    }

    fn rust_items(m: &AddrMap, s: &mut String) {
        writeln!(
            s,
            "    /// All registers and memories, by address.\n    pub const ITEMS: &[Item] = &["
        )
        .unwrap();
        for i in m.items() {
            let reset = m.reg.iter().find(|r| r.name == i.name).and_then(|r| r.reset);
            let reset = reset.map_or("None".into(), |v| format!("Some({v:#x})"));
            let access = match i.sw {
                Access::R => "R",
                Access::W => "W",
                Access::Rw => "Rw",
            };
            writeln!(
                s,
                "        Item {{ name: \"{}\", offset: {:#x}, bytes: {}, access: Access::{access}, reset: {reset} }},",
                i.name, i.offset, i.bytes
            )
            .unwrap();
        }
        s.push_str("    ];\n");
    }

    /// The page `docs/reference/registers.md`.
    pub fn to_markdown(&self) -> String {
        let mut s = String::from("# Registers\n\n");
        s += &wrapped(
            "",
            "Generated from `shell-rtl/regs` by `cargo xtask generate`; do not edit. Registers are 32 bits wide; byte strings lie in \
             byte-lane order (byte i at offset + i). A read or write of anything that is not listed, or not allowed, is answered with SLVERR \
             and changes nothing.",
        );
        for m in &self.maps {
            let place = match m.base {
                None => String::new(),
                Some(base) if m.count == 1 => format!(" At `{base:#x}` of the control window."),
                Some(base) => format!(
                    " {} of them, at `{base:#x}` of the control window and then every {:#x} bytes.",
                    m.count, m.stride
                ),
            };
            let text = wrapped("", &format!("{}.{place}", m.desc));
            writeln!(s, "\n## {}\n\n{text}\n| offset | name | bytes | access | reset | what |\n|---|---|---|---|---|---|", m.name).unwrap();
            for i in m.items() {
                let reg = m.reg.iter().find(|r| r.name == i.name);
                let desc = reg.map_or_else(
                    || m.mem.iter().find(|x| x.name == i.name).map_or("", |x| x.desc.as_str()),
                    |r| r.desc.as_str(),
                );
                let reset =
                    reg.and_then(|r| r.reset).map_or("-".into(), |v| format!("`{v:#010x}`"));
                writeln!(
                    s,
                    "| `{:#06x}` | `{}` | {} | {} | {reset} | {desc} |",
                    i.offset,
                    i.name,
                    i.bytes,
                    i.sw.name()
                )
                .unwrap();
            }
            for r in m.reg.iter().filter(|r| r.like.is_some()) {
                let other = r.like.as_deref().unwrap_or_default();
                writeln!(
                    s,
                    "\n### {}\n\nThe fields of [`{other}`](#{}).",
                    r.name,
                    other.to_lowercase()
                )
                .unwrap();
            }
            for r in m.reg.iter().filter(|r| !r.field.is_empty()) {
                writeln!(s, "\n### {}\n\n| bits | field | what |\n|---|---|---|", r.name).unwrap();
                for f in &r.field {
                    let mut values: Vec<_> = f.values.iter().collect();
                    values.sort_by_key(|(_, v)| **v);
                    let values: Vec<_> = values.iter().map(|(n, v)| format!("{v} {n}")).collect();
                    let values = if values.is_empty() {
                        String::new()
                    } else {
                        format!(" ({})", values.join(", "))
                    };
                    writeln!(
                        s,
                        "| {}:{} | `{}` | {}{values} |",
                        f.bits[1], f.bits[0], f.name, f.desc
                    )
                    .unwrap();
                }
            }
        }
        s
    }
}

impl AddrMap {
    fn sel(&self, item: &str) -> String {
        format!("{}_SEL_{}", self.name.to_uppercase(), self.short(item))
    }
    fn short(&self, item: &str) -> String {
        item.strip_prefix(&format!("{}_", self.name.to_uppercase())).unwrap_or(item).into()
    }
}

/// Columns at which text and comments wrap.
const COLUMNS: usize = 100;

/// Text in lines that begin with `prefix` and wrap at [`COLUMNS`].
pub(crate) fn wrapped(prefix: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = prefix.to_owned();
    for word in text.split_whitespace() {
        if line.len() > prefix.len() && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            out += &line;
            out.push('\n');
            prefix.clone_into(&mut line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    out + &line + "\n"
}

fn capital(text: &str) -> String {
    let mut c = text.chars();
    c.next().map(|f| f.to_uppercase().chain(c).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(items: &str) -> Result<RegisterMap, RegsError> {
        RegisterMap::parse(&format!(
            "[[addrmap]]\nname = \"ctl\"\ndesc = \"d\"\nsize = 0x100\n{items}"
        ))
    }

    #[test]
    fn overlapping_registers_are_refused() {
        let one = "[[addrmap.reg]]\nname = \"A\"\noffset = 4\nsw = \"r\"\ndesc = \"a\"\n";
        assert!(map(one).is_ok());
        let err = map(&format!(
            "{one}[[addrmap.mem]]\nname = \"B\"\noffset = 4\nbytes = 8\nsw = \"r\"\ndesc = \"b\"\n"
        ))
        .unwrap_err();
        assert!(err.to_string().contains("overlaps"), "{err}");
    }

    #[test]
    fn a_map_has_an_end() {
        let err = map(
            "[[addrmap.mem]]\nname = \"B\"\noffset = 0xfc\nbytes = 8\nsw = \"r\"\ndesc = \"b\"\n",
        )
        .unwrap_err();
        assert!(err.to_string().contains("ends at 0x104"), "{err}");
    }

    #[test]
    fn maps_that_lie_in_another_do_not_overlap() {
        let reg = "[[addrmap.reg]]\nname = \"A\"\noffset = 4\nsw = \"r\"\ndesc = \"a\"\n";
        let m = map(&format!("base = 0x400\ncount = 4\nstride = 0x100\n{reg}")).unwrap();
        assert!(
            m.to_rust().contains("BASE: u32 = 0x400")
                && m.to_systemverilog("f", "p").contains("CTL_STRIDE = 256;")
        );
        let err = map(&format!("base = 0x400\ncount = 4\nstride = 0x80\n{reg}")).unwrap_err();
        assert!(err.to_string().contains("4 maps of 0x100 bytes, 0x80 apart"), "{err}");
    }

    #[test]
    fn unknown_keys_name_their_line() {
        let err = map(
            "[[addrmap.reg]]\nname = \"A\"\noffset = 4\naccess = \"r\"\nsw = \"r\"\ndesc = \"a\"\n",
        )
        .unwrap_err();
        assert!(err.to_string().contains("line 8"), "{err}");
    }

    #[test]
    fn a_register_has_the_fields_of_another() {
        let reg = |name, offset, rest| {
            format!(
                "[[addrmap.reg]]\nname = \"{name}\"\noffset = {offset}\nsw = \"r\"\ndesc = \"a\"\n{rest}"
            )
        };
        let field = "[[addrmap.reg.field]]\nname = \"BUSY\"\nbits = [2, 2]\ndesc = \"x\"\n";
        let m = map(&(reg("A", 4, field) + &reg("B", 8, "like = \"A\"\n"))).unwrap();
        assert!(m.to_rust().contains("pub const B_BUSY: Field = Field { lsb: 2, width: 1 };"));
        assert!(!m.to_systemverilog("f", "p").contains("B_BUSY"));
        let err = map(&(reg("A", 4, "") + &reg("B", 8, "like = \"A\"\n"))).unwrap_err();
        assert!(err.to_string().contains("names no register with fields"), "{err}");
    }

    #[test]
    fn text_wraps_at_100_columns_and_keeps_its_words() {
        let text = "word ".repeat(50);
        let lines = wrapped("    ///", &text);
        assert!(lines.lines().all(|l| l.len() <= COLUMNS && l.starts_with("    /// w")), "{lines}");
        assert_eq!(lines.matches("word").count(), 50);
        assert_eq!(wrapped("", "a b"), "a b\n");
    }

    #[test]
    fn fields_may_not_overlap() {
        let f = |n, a, b| {
            format!("[[addrmap.reg.field]]\nname = \"{n}\"\nbits = [{a}, {b}]\ndesc = \"x\"\n")
        };
        let reg = "[[addrmap.reg]]\nname = \"A\"\noffset = 4\nsw = \"r\"\ndesc = \"a\"\n";
        assert!(map(&format!("{reg}{}{}", f("X", 0, 3), f("Y", 4, 31))).is_ok());
        assert!(map(&format!("{reg}{}{}", f("X", 0, 3), f("Y", 3, 4))).is_err());
    }
}
