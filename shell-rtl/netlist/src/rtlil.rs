//! A flat netlist of word-level cells, as yosys writes it (RTLIL).

use std::collections::HashMap;

/// One bit of a net: [`ZERO`], [`ONE`], [`UNKNOWN`], [`HIGH_Z`], or a bit of a wire.
pub(crate) type Bit = u32;

pub(crate) const ZERO: Bit = 0;
pub(crate) const ONE: Bit = 1;
pub(crate) const UNKNOWN: Bit = 2;
pub(crate) const HIGH_Z: Bit = 3;
/// The first bit of a wire.
pub(crate) const FIRST: Bit = 4;

/// Direction of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Input,
    Output,
    Inout,
}

impl Direction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Inout => "inout",
        }
    }
}

/// A declared or internal wire.
#[derive(Debug)]
pub(crate) struct Wire<'t> {
    /// Name; that of a declared wire begins with a backslash.
    pub name: &'t str,
    /// Instances, generate blocks and the declared name, separated by spaces; empty: internal.
    pub path: &'t str,
    pub src: &'t str,
    pub first: Bit,
    pub width: u32,
    pub port: Option<Direction>,
    /// Attributes of the source.
    pub attributes: Vec<(&'t str, &'t str)>,
}

impl Wire<'_> {
    pub(crate) fn bits(&self) -> std::ops::Range<Bit> {
        self.first..self.first + self.width
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }
}

/// A memory array.
#[derive(Debug)]
pub(crate) struct Memory<'t> {
    pub name: &'t str,
    pub path: &'t str,
    pub src: &'t str,
}

/// A cell: an operator or register of yosys (its kind begins with `$`), or an instance of a module
/// without content.
#[derive(Debug)]
pub(crate) struct Cell<'t> {
    pub kind: &'t str,
    /// With its hierarchy, separated by dots.
    pub name: &'t str,
    /// Instances, generate blocks and its own name, separated by spaces; empty: internal.
    pub path: &'t str,
    pub src: &'t str,
    pub parameters: Vec<(&'t str, &'t str)>,
    pub pins: Vec<Pin<'t>>,
    /// The memory that it reads, writes or initialises.
    pub memory: Option<usize>,
}

/// The connection of a port of a cell.
#[derive(Debug)]
pub(crate) struct Pin<'t> {
    pub name: &'t str,
    start: u32,
    len: u32,
    pub direction: Direction,
}

impl Cell<'_> {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    /// A parameter that is a small number.
    pub(crate) fn number(&self, name: &str) -> u32 {
        let value = self.parameter(name).unwrap_or("0");
        let bits = value.split_once('\'').map(|(_, bits)| u32::from_str_radix(bits, 2));
        bits.unwrap_or_else(|| value.parse()).unwrap_or(0)
    }

    pub(crate) fn pin(&self, name: &str) -> Option<&Pin<'_>> {
        self.pins.iter().find(|pin| pin.name == name)
    }
}

/// What gives a bit its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    Nothing,
    /// An input or inout port of the top module.
    Port,
    /// Another bit.
    Bit(Bit),
    /// A bit of a pin of a cell: cell, pin, and the bit's place in the pin.
    Cell(u32, u16, u32),
}

/// The ports of a module without content.
type Ports<'t> = HashMap<&'t str, Direction>;

/// A flat design.
#[derive(Debug, Default)]
pub(crate) struct Netlist<'t> {
    pub top: &'t str,
    pub src: &'t str,
    pub wires: Vec<Wire<'t>>,
    pub memories: Vec<Memory<'t>>,
    pub cells: Vec<Cell<'t>>,
    connections: Vec<Bit>,
    drivers: Vec<Driver>,
    /// Of each bit, the one that gives it its value through assignments and ports of instances.
    origins: Vec<Bit>,
    /// Further drivers of bits that already have one.
    pub second: Vec<(Bit, Driver)>,
}

impl<'t> Netlist<'t> {
    /// Reads what yosys wrote. `None`: it is not a netlist.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let boxes = black_boxes(text);
        let mut reader = Reader { boxes, ..Reader::default() };
        reader.read(text)?;
        let Reader { mut netlist, aliases, .. } = reader;
        let names = netlist.memories.iter().enumerate().map(|(i, memory)| (memory.name, i));
        let names: HashMap<&str, usize> = names.collect();
        for cell in &mut netlist.cells {
            // Strings escape the backslash of a name.
            let id = cell.parameter("MEMID").map(|id| id.strip_prefix('\\').unwrap_or(id));
            cell.memory = id.and_then(|id| names.get(id).copied());
        }
        netlist.drive(&aliases);
        Some(netlist)
    }

    fn drive(&mut self, aliases: &[(Bit, Bit)]) {
        let count = self.wires.last().map_or(FIRST, |wire| wire.first + wire.width);
        self.drivers = vec![Driver::Nothing; count as usize];
        let mut found = Vec::new();
        for wire in &self.wires {
            if matches!(wire.port, Some(Direction::Input | Direction::Inout)) {
                found.extend(wire.bits().map(|bit| (bit, Driver::Port)));
            }
        }
        found.extend(aliases.iter().map(|(to, from)| (*to, Driver::Bit(*from))));
        for (c, cell) in (0_u32..).zip(&self.cells) {
            let buffer = cell.kind == "$buf";
            for (p, pin) in (0_u16..).zip(&cell.pins) {
                if pin.direction == Direction::Input {
                    continue;
                }
                for (i, bit) in (0_u32..).zip(self.bits(pin)) {
                    let driver = match cell.pin("A").filter(|_| buffer) {
                        Some(input) => Driver::Bit(self.bits(input)[i as usize]),
                        None => Driver::Cell(c, p, i),
                    };
                    found.push((*bit, driver));
                }
            }
        }
        for (bit, driver) in found {
            match self.drivers.get_mut(bit as usize) {
                Some(free @ Driver::Nothing) if bit >= FIRST => *free = driver,
                Some(_) => self.second.push((bit, driver)),
                None => {}
            }
        }
        self.origins = (0..count).collect();
        let mut chain = Vec::new();
        for start in FIRST..count {
            let mut bit = start;
            // A loop of assignments ends here, too; it is found as a loop.
            while let Driver::Bit(from) = self.drivers[bit as usize]
                && self.origins[bit as usize] == bit
                && chain.len() < 10_000
            {
                chain.push(bit);
                bit = from;
            }
            let origin = self.origins[bit as usize];
            for bit in chain.drain(..) {
                self.origins[bit as usize] = origin;
            }
        }
    }

    /// Number of bits, constants included.
    pub(crate) fn len(&self) -> usize {
        self.drivers.len()
    }

    pub(crate) fn driver(&self, bit: Bit) -> Driver {
        self.drivers.get(bit as usize).copied().unwrap_or(Driver::Nothing)
    }

    /// The bit that gives this one its value, through assignments and ports of instances.
    pub(crate) fn origin(&self, bit: Bit) -> Bit {
        self.origins.get(bit as usize).copied().unwrap_or(bit)
    }

    /// The bits of a pin, the lowest first.
    pub(crate) fn bits(&self, pin: &Pin<'_>) -> &[Bit] {
        let start = pin.start as usize;
        &self.connections[start..start + pin.len as usize]
    }

    /// The bits of a pin of a cell; empty without the pin.
    pub(crate) fn pin(&self, cell: &Cell<'_>, name: &str) -> &[Bit] {
        cell.pin(name).map_or(&[], |pin| self.bits(pin))
    }

    /// The wire that contains a bit.
    pub(crate) fn wire(&self, bit: Bit) -> Option<&Wire<'t>> {
        let after = self.wires.partition_point(|wire| wire.first <= bit);
        self.wires.get(after.checked_sub(1)?).filter(|wire| wire.bits().contains(&bit))
    }

    /// The port of the top module with this name.
    pub(crate) fn port(&self, name: &str) -> Option<&Wire<'t>> {
        self.wires.iter().find(|wire| wire.port.is_some() && wire.name.get(1..) == Some(name))
    }

    /// A bit's name in messages: hierarchy, wire and index.
    pub(crate) fn name(&self, bit: Bit) -> String {
        match bit {
            ZERO => return "constant 0".to_owned(),
            ONE => return "constant 1".to_owned(),
            UNKNOWN | HIGH_Z => return "an unknown constant".to_owned(),
            _ => {}
        }
        let Some(wire) = self.wire(bit) else { return "an unknown net".to_owned() };
        let name = if wire.path.is_empty() {
            wire.name.trim_start_matches(['\\', '$']).to_owned()
        } else {
            wire.path.replace(' ', ".")
        };
        match wire.width {
            1 => name,
            _ => format!("{name}[{}]", bit - wire.first),
        }
    }

    /// Place of a bit's declaration.
    pub(crate) fn place(&self, bit: Bit) -> &'t str {
        let src = self.wire(bit).map_or("", |wire| wire.src);
        match (src, self.driver(bit)) {
            ("", Driver::Cell(cell, ..)) => self.cells[cell as usize].src,
            _ => src,
        }
    }
}

/// The modules without content.
fn black_boxes(text: &str) -> HashMap<&str, Ports<'_>> {
    let mut all = HashMap::new();
    // They are few and short; the design itself is skipped by its attribute.
    let mut rest = text;
    while let Some(at) = rest.find("\nmodule \\") {
        let before = &rest[..at];
        let attributes = before.lines().rev().take_while(|line| line.starts_with("attribute"));
        let boxed = attributes
            .clone()
            .any(|line| line.contains("\\blackbox") || line.contains("\\whitebox"));
        rest = &rest[at + 9..];
        if !boxed {
            continue;
        }
        let body = rest.split("\nend\n").next().unwrap_or_default();
        let mut ports = HashMap::new();
        for line in body.lines() {
            let mut words = line.trim_start().split(' ');
            let name = line.rsplit('\\').next().unwrap_or_default();
            if words.next() == Some("wire") {
                let mut words = words;
                let direction = words.find_map(|word| match word {
                    "input" => Some(Direction::Input),
                    "output" => Some(Direction::Output),
                    "inout" => Some(Direction::Inout),
                    _ => None,
                });
                ports.extend(direction.map(|direction| (name, direction)));
            }
        }
        all.insert(body.lines().next().unwrap_or_default().trim(), ports);
    }
    all
}

#[derive(Default)]
struct Reader<'t> {
    netlist: Netlist<'t>,
    boxes: HashMap<&'t str, Ports<'t>>,
    names: HashMap<&'t str, (Bit, u32)>,
    aliases: Vec<(Bit, Bit)>,
    next: Bit,
}

/// Attributes of the statement that follows.
#[derive(Default)]
struct Attributes<'t> {
    src: &'t str,
    path: &'t str,
    more: Vec<(&'t str, &'t str)>,
}

impl<'t> Attributes<'t> {
    fn add(&mut self, line: &'t str) {
        let Some((name, value)) = line.split_once(' ') else { return };
        let value = value.trim_matches('"');
        match name {
            "\\src" => self.src = value,
            "\\hdlname" => self.path = value,
            _ => self.more.push((name.trim_start_matches('\\'), value)),
        }
    }
}

impl<'t> Reader<'t> {
    /// Reads the module with the attribute `top`.
    fn read(&mut self, text: &'t str) -> Option<()> {
        self.next = FIRST;
        let (mut attributes, mut inside, mut found) = (Attributes::default(), false, false);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = line.trim_start();
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "attribute" => {
                    attributes.add(rest);
                    continue;
                }
                "module" => {
                    inside = attributes.more.iter().any(|(name, _)| *name == "top");
                    if inside {
                        found = true;
                        self.netlist.top = rest.trim_start_matches('\\');
                        self.netlist.src = attributes.src;
                    }
                }
                "end" => inside = false,
                "wire" if inside => self.wire(rest, std::mem::take(&mut attributes))?,
                "memory" if inside => {
                    let Attributes { src, path, .. } = std::mem::take(&mut attributes);
                    let name = rest.rsplit(' ').next()?;
                    self.netlist.memories.push(Memory { name, path, src });
                }
                "cell" if inside => {
                    let Attributes { src, path, .. } = attributes;
                    self.cell(rest, (src, path), &mut lines)?;
                }
                "connect" if inside => {
                    let (mut to, mut from) = (Vec::new(), Vec::new());
                    let rest = self.signal(rest, &mut to)?;
                    self.signal(rest, &mut from)?;
                    self.aliases.extend(to.into_iter().zip(from));
                }
                _ => {}
            }
            attributes = Attributes::default();
        }
        found.then_some(())
    }

    fn wire(&mut self, rest: &'t str, attributes: Attributes<'t>) -> Option<()> {
        let (mut width, mut port) = (1, None);
        let mut words = rest.split(' ');
        let name = loop {
            match words.next()? {
                "width" => width = words.next()?.parse().ok()?,
                "input" => port = words.next().map(|_| Direction::Input),
                "output" => port = words.next().map(|_| Direction::Output),
                "inout" => port = words.next().map(|_| Direction::Inout),
                "offset" => drop(words.next()),
                "upto" | "signed" => {}
                name => break name,
            }
        };
        let Attributes { src, path, more } = attributes;
        let first = self.next;
        self.next = first.checked_add(width)?;
        self.names.insert(name, (first, width));
        self.netlist.wires.push(Wire { name, path, src, first, width, port, attributes: more });
        Some(())
    }

    fn cell(
        &mut self,
        rest: &'t str,
        (src, path): (&'t str, &'t str),
        lines: &mut std::str::Lines<'t>,
    ) -> Option<()> {
        let (kind, name) = rest.split_once(' ')?;
        let kind = kind.trim_start_matches('\\');
        let name = name.trim_start_matches('\\');
        let (mut parameters, mut pins, mut bits) = (Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            let line = line.trim_start();
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "end" => break,
                "parameter" => {
                    let rest = rest.trim_start_matches("signed ").trim_start_matches("real ");
                    let (name, value) = rest.split_once(' ')?;
                    // Zero is what a missing one is, too.
                    if value == "0" {
                        continue;
                    }
                    parameters.push((name.trim_start_matches('\\'), value.trim_matches('"')));
                }
                "connect" => {
                    let (name, signal) = rest.split_once(' ')?;
                    let name = name.trim_start_matches('\\');
                    bits.clear();
                    self.signal(signal, &mut bits)?;
                    let start = u32::try_from(self.netlist.connections.len()).ok()?;
                    let len = u32::try_from(bits.len()).ok()?;
                    self.netlist.connections.extend(&bits);
                    let direction = match self.boxes.get(kind) {
                        Some(ports) => ports.get(name).copied().unwrap_or(Direction::Inout),
                        None if name == "Y" || name == "Q" => Direction::Output,
                        None if name == "DATA" && kind.starts_with("$memrd") => Direction::Output,
                        None => Direction::Input,
                    };
                    pins.push(Pin { name, start, len, direction });
                }
                _ => {}
            }
        }
        self.netlist.cells.push(Cell { kind, name, path, src, parameters, pins, memory: None });
        Some(())
    }

    /// Appends the bits of a signal, the lowest first, and returns the text after it.
    fn signal<'a>(&self, text: &'a str, out: &mut Vec<Bit>) -> Option<&'a str> {
        let text = text.trim_start();
        let start = out.len();
        if let Some(mut rest) = text.strip_prefix('{') {
            let mut parts = Vec::new();
            loop {
                rest = rest.trim_start();
                if let Some(after) = rest.strip_prefix('}') {
                    // The highest is written first.
                    out[start..].reverse();
                    let mut end = out.len();
                    for part in parts {
                        out[end - part..end].reverse();
                        end -= part;
                    }
                    return self.slice(after, out, start);
                }
                let before = out.len();
                rest = self.signal(rest, out)?;
                parts.push(out.len() - before);
            }
        }
        if let Some(string) = text.strip_prefix('"') {
            let end = string.find('"')?;
            for byte in string[..end].bytes().rev() {
                out.extend((0..8).map(|i| Bit::from(byte >> i & 1)));
            }
            return Some(&string[end + 1..]);
        }
        let end = text.find(' ').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        if word.starts_with(['\\', '$']) {
            let (first, width) = *self.names.get(word)?;
            out.extend(first..first + width);
            return self.slice(rest, out, start);
        }
        match word.split_once('\'') {
            Some((width, digits)) => {
                let width: usize = width.parse().ok()?;
                let bit = |digit: u8| match digit {
                    b'0' => ZERO,
                    b'1' => ONE,
                    b'z' => HIGH_Z,
                    _ => UNKNOWN,
                };
                let digits = digits.trim_start_matches('s').as_bytes();
                // An unknown highest digit extends.
                let fill = digits.first().map_or(ZERO, |d| bit(*d).max(ONE));
                let fill = if fill == ONE { ZERO } else { fill };
                out.extend(digits.iter().rev().take(width).map(|digit| bit(*digit)));
                out.resize(start + width, fill);
            }
            None => {
                let value: i64 = word.parse().ok()?;
                out.extend((0..32).map(|i| if value >> i & 1 == 1 { ONE } else { ZERO }));
            }
        }
        Some(rest)
    }

    /// Cuts the bits from `start` on to the ranges that follow a signal.
    fn slice<'a>(&self, text: &'a str, out: &mut Vec<Bit>, start: usize) -> Option<&'a str> {
        let mut rest = text;
        while let Some(range) = rest.trim_start().strip_prefix('[') {
            let (inside, after) = range.split_once(']')?;
            let (high, low) = inside.split_once(':').unwrap_or((inside, inside));
            let (high, low): (usize, usize) = (high.parse().ok()?, low.parse().ok()?);
            let cut = out.get(start + low..=start + high)?.to_vec();
            out.truncate(start);
            out.extend(cut);
            rest = after;
        }
        Some(rest)
    }
}

/// The path of an instance or register in Vivado: instances separated by slashes, generate blocks
/// by dots, as the labels of this repository tell them apart.
pub(crate) fn vivado(path: &str) -> String {
    let mut out = String::new();
    let mut block = false;
    for part in path.split(' ') {
        if !out.is_empty() {
            out.push(if block { '.' } else { '/' });
        }
        out.push_str(part);
        block = ["g_", "gen_", "genblk"].iter().any(|label| part.starts_with(label));
    }
    out
}
