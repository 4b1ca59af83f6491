//! Paths from a register of one clock domain to a register of another one, and the forms in which
//! they are safe.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::cell::{self, Kind};
use crate::clocks::{ASYNCHRONOUS, Clocks, Domains, clock_of_pin, read_memory};
use crate::rtlil::{Bit, Direction, Driver, FIRST, Netlist, Pin, ZERO};

/// Where a crossing starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Start {
    /// The output of a register, or of a cell without content.
    Cell(u32, Bit),
    /// A port of the top module.
    Port(Bit),
    /// A memory, read by a cell.
    Memory(usize, u32),
}

/// Where a crossing ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    /// A bit of a register.
    Register(u32, u32),
    /// A port of a memory.
    Memory(u32),
    /// A cell without content.
    Cell(u32),
    /// A port of the top module.
    Port(Bit),
}

/// The form of a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// One bit through two or more registers.
    Synchroniser,
    /// A reset, asserted at once and released by a clock.
    Reset,
    /// A counter of which one bit changes at a time.
    Gray,
    /// The words of a FIFO whose pointers are Gray counters.
    Memory,
    /// A value that does not change while it is read, by its attribute.
    Static,
    /// Not recognised.
    Unknown,
}

/// All forms.
pub(crate) const FORMS: [Form; 6] =
    [Form::Synchroniser, Form::Reset, Form::Gray, Form::Memory, Form::Static, Form::Unknown];

impl Form {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Synchroniser => "synchroniser",
            Self::Reset => "reset",
            Self::Gray => "Gray counter",
            Self::Memory => "FIFO memory",
            Self::Static => "static",
            Self::Unknown => "unknown",
        }
    }
}

/// All paths between two registers.
#[derive(Debug)]
pub(crate) struct Crossing {
    pub form: Form,
    /// Why it has no form; empty: it has one.
    pub problem: String,
    pub from: BTreeSet<Start>,
    pub to: BTreeSet<End>,
    /// Names of the two registers.
    pub names: (String, String),
    /// Names of the two clocks.
    pub clocks: (String, String),
    /// Whether nothing of it has a clock on the first side.
    pub asynchronous: bool,
    /// Where the second one is declared.
    pub place: String,
}

impl Crossing {
    /// Whether it starts at a memory.
    pub(crate) fn of_memory(&self) -> bool {
        self.from.iter().any(|from| matches!(from, Start::Memory(..)))
    }
}

/// A path's end as found.
struct Path {
    end: End,
    pin: &'static str,
    /// The net at the pin.
    bit: Bit,
    domain: usize,
    from: Vec<Start>,
    form: Form,
    problem: String,
}

/// A Gray counter that passed the check.
struct Gray {
    /// Domains of the counter and of its readers.
    from: usize,
    to: usize,
    /// Bits of the binary counter beside it, and its next value.
    binary: HashSet<Bit>,
}

/// A reader of a bit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Data input of a register: cell and bit.
    Data(u32, u32),
    Other(Bit),
}

pub(crate) struct Finder<'n, 't> {
    netlist: &'n Netlist<'t>,
    clocks: &'n Clocks,
    readers: HashMap<Bit, Vec<Reader>>,
}

/// Registers behind a synchroniser through which bits are followed to a place where they meet.
/// Behind the first one, no logic is before them.
const REGISTERS: usize = 4;

/// Sets of paths, each with a number; 0 is the empty one.
struct Sets {
    all: Vec<Vec<usize>>,
    numbers: HashMap<Vec<usize>, u32>,
    unions: HashMap<(u32, u32), u32>,
}

impl Default for Sets {
    fn default() -> Self {
        let numbers = HashMap::from([(Vec::new(), 0)]);
        Self { all: vec![Vec::new()], numbers, unions: HashMap::new() }
    }
}

impl Sets {
    /// The number of a sorted set.
    fn of(&mut self, members: Vec<usize>) -> u32 {
        if let Some(number) = self.numbers.get(&members) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(members.clone());
        self.numbers.insert(members, number);
        number
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == 0 {
            return a;
        }
        if a == 0 {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(known) = self.unions.get(&key) {
            return *known;
        }
        let members: BTreeSet<usize> =
            self.members(a).iter().chain(self.members(b)).copied().collect();
        let number = self.of(members.into_iter().collect());
        self.unions.insert(key, number);
        number
    }

    fn members(&self, set: u32) -> &[usize] {
        &self.all[set as usize]
    }
}

/// Finds the crossings of a design.
pub(crate) fn find(netlist: &Netlist<'_>, clocks: &Clocks) -> Vec<Crossing> {
    let mut finder = Finder { netlist, clocks, readers: HashMap::new() };
    let mut paths = finder.paths();
    finder.read_by(&paths);
    for path in &mut paths {
        (path.form, path.problem) = match finder.single(path) {
            Ok(form) => (form, String::new()),
            Err(problem) => (Form::Unknown, problem),
        };
    }
    let counters = finder.together(&mut paths);
    finder.meeting(&mut paths);
    for path in paths.iter_mut().filter(|path| path.form == Form::Memory) {
        if let Err(problem) = finder.fifo(path, &counters) {
            (path.form, path.problem) = (Form::Unknown, problem);
        }
    }
    finder.merged(paths)
}

/// The registers, ports and memories of these domains behind a bit.
pub(crate) fn starts(
    netlist: &Netlist<'_>,
    clocks: &Clocks,
    bit: Bit,
    domains: Domains,
) -> Vec<Start> {
    let (mut found, mut seen, mut stack) = (Vec::new(), HashSet::new(), vec![bit]);
    while let Some(bit) = stack.pop() {
        if clocks.behind(bit) & domains == 0 || !seen.insert(bit) {
            continue;
        }
        if clocks.leaf(netlist, bit).is_some() {
            found.push(match netlist.driver(bit) {
                Driver::Cell(cell, ..) => Start::Cell(cell, bit),
                _ => Start::Port(bit),
            });
            continue;
        }
        if clocks.memory_behind(netlist, bit) & domains != 0
            && let Driver::Cell(cell, ..) = netlist.driver(bit)
        {
            let vendors = Start::Cell(cell, bit);
            let memory = read_memory(netlist, bit);
            found.push(memory.map_or(vendors, |memory| Start::Memory(memory, cell)));
        }
        netlist.sources(bit, &mut |from| stack.push(from));
    }
    found.sort();
    found.dedup();
    found
}

impl Finder<'_, '_> {
    fn name_of_domains(&self, domains: Domains) -> String {
        let found = self.clocks.domains.iter().enumerate().filter(|(i, _)| domains >> i & 1 == 1);
        let names: Vec<&str> = found.map(|(_, domain)| domain.name.as_str()).collect();
        names.join(", ")
    }

    /// Every pin that depends on a register of another domain.
    fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        let mut check = |end: End, pin: &'static str, bit: Bit, domain: usize| {
            let foreign = self.clocks.behind(bit) & !(1 << domain);
            if foreign != 0 {
                let from = starts(self.netlist, self.clocks, bit, foreign);
                let (form, problem) = (Form::Unknown, String::new());
                found.push(Path { end, pin, bit, domain, from, form, problem });
            }
        };
        for (c, cell) in (0_u32..).zip(&self.netlist.cells) {
            let bits = |name: &str| self.netlist.pin(cell, name);
            match (Kind::of(cell), self.clocks.of_cell(c)) {
                (Kind::Register, Some(domain)) => {
                    for pin in ["D", "AD"] {
                        for (i, bit) in (0_u32..).zip(bits(pin)) {
                            check(End::Register(c, i), pin, *bit, domain);
                        }
                    }
                    for pin in ["EN", "SRST", "ALOAD", "ARST", "SET", "CLR"] {
                        for (i, bit) in (0_u32..).zip(bits(pin)) {
                            check(End::Register(c, i), pin, *bit, domain);
                        }
                    }
                }
                (Kind::ClockedRead, Some(domain)) => {
                    for pin in ["ADDR", "EN", "SRST", "ARST"] {
                        bits(pin).iter().for_each(|bit| check(End::Memory(c), pin, *bit, domain));
                    }
                }
                (Kind::Write, Some(domain)) => {
                    for pin in ["ADDR", "DATA", "EN"] {
                        bits(pin).iter().for_each(|bit| check(End::Memory(c), pin, *bit, domain));
                    }
                }
                (Kind::Box, _) => {
                    for pin in &cell.pins {
                        let clock = clock_of_pin(cell, pin.name);
                        let [clock] = clock.map_or(&[][..], bits) else { continue };
                        let domain = self.clocks.known(Clocks::root(self.netlist, *clock));
                        if pin.direction == Direction::Input
                            && *clock != self.netlist.bits(pin).first().copied().unwrap_or(ZERO)
                            && let Some(domain) = domain
                        {
                            let bits = self.netlist.bits(pin).iter();
                            bits.for_each(|bit| check(End::Cell(c), "input", *bit, domain));
                        }
                    }
                }
                _ => {}
            }
        }
        let outputs = self.netlist.wires.iter().filter(|w| w.port == Some(Direction::Output));
        for bit in outputs.flat_map(|wire| wire.bits()) {
            let domain = self.clocks.of_port(bit);
            if domain != ASYNCHRONOUS {
                check(End::Port(bit), "output", bit, domain);
            }
        }
        // A vendor's memory with two clocks: nothing shows what its words wait for.
        for (c, cell) in (0_u32..).zip(&self.netlist.cells) {
            let known = |pin: &Pin<'_>| {
                let root = Clocks::root(self.netlist, *self.netlist.bits(pin).first()?);
                self.clocks.known(root)
            };
            let memory = ["RAMB", "FIFO"].iter().any(|kind| cell.kind.starts_with(kind));
            let mut domains = cell::clock_pins(cell).filter_map(known);
            let (Some(first), Some(second)) = (domains.next(), domains.next()) else { continue };
            let output =
                |pin: &&Pin<'_>| pin.direction == Direction::Output && pin.name.starts_with("DO");
            let bit = cell.pins.iter().find(output).and_then(|pin| self.netlist.bits(pin).first());
            if let (true, true, Some(bit)) = (memory, first != second, bit) {
                let from = vec![Start::Cell(c, *bit)];
                let (form, problem) = (Form::Unknown, String::new());
                let (end, bit) = (End::Cell(c), *bit);
                found.push(Path { end, pin: "content", bit, domain: second, from, form, problem });
            }
        }
        // A memory that is read with a clock other than the one that writes it.
        for (c, cell) in (0_u32..).zip(&self.netlist.cells) {
            if let (Kind::ClockedRead, Some(domain), Some(memory)) =
                (Kind::of(cell), self.clocks.of_cell(c), cell.memory)
                && self.clocks.written(memory) & !(1 << domain) != 0
            {
                let from = vec![Start::Memory(memory, c)];
                let (form, problem) = (Form::Unknown, String::new());
                let bit = self.netlist.pin(cell, "DATA").first().copied().unwrap_or(ZERO);
                let end = End::Memory(c);
                found.push(Path { end, pin: "D", bit, domain, from, form, problem });
            }
        }
        found
    }

    /// Finds the readers of the registers that paths end in.
    fn read_by(&mut self, paths: &[Path]) {
        let mut wanted = vec![false; self.netlist.len()];
        for path in paths {
            if let End::Register(cell, i) = path.end {
                let cell = &self.netlist.cells[cell as usize];
                let bits = self.netlist.pin(cell, "Q");
                // A reset is one bit for all of a register.
                let all = cell::ASYNCHRONOUS.contains(&path.pin);
                for bit in bits.iter().enumerate().filter(|(k, _)| all || *k == i as usize) {
                    wanted[*bit.1 as usize] = true;
                }
            }
        }
        let mut readers: HashMap<Bit, Vec<Reader>> = HashMap::new();
        let mut add = |bit: Bit, reader: Reader| {
            let origin = self.netlist.origin(bit);
            if wanted[origin as usize] {
                readers.entry(origin).or_default().push(reader);
            }
        };
        for (c, cell) in (0_u32..).zip(&self.netlist.cells) {
            if cell.kind == "$buf" {
                continue;
            }
            let register = Kind::of(cell) == Kind::Register;
            for pin in cell.pins.iter().filter(|pin| pin.direction != Direction::Output) {
                for (i, bit) in (0_u32..).zip(self.netlist.bits(pin)) {
                    let data = register && pin.name == "D";
                    add(*bit, if data { Reader::Data(c, i) } else { Reader::Other(*bit) });
                }
            }
        }
        for wire in self.netlist.wires.iter().filter(|w| w.port == Some(Direction::Output)) {
            wire.bits().for_each(|bit| add(bit, Reader::Other(bit)));
        }
        self.readers = readers;
    }

    fn output(&self, cell: u32, i: u32) -> Bit {
        let bits = self.netlist.pin(&self.netlist.cells[cell as usize], "Q");
        bits.get(i as usize).copied().unwrap_or(ZERO)
    }

    fn attribute(&self, bit: Bit, name: &str) -> Option<&str> {
        self.netlist.wire(bit)?.attribute(name)
    }

    /// The form of a path alone.
    fn single(&self, path: &Path) -> Result<Form, String> {
        let memories = path.from.iter().filter(|from| matches!(from, Start::Memory(..))).count();
        if memories > 0 && memories == path.from.len() && path.pin == "D" {
            return Ok(Form::Memory);
        }
        if !path.from.is_empty() && path.from.iter().all(|from| self.is_static(*from)) {
            return Ok(Form::Static);
        }
        if cell::ASYNCHRONOUS.contains(&path.pin) {
            return self.reset(path).map(|()| Form::Reset);
        }
        if path.pin == "content" {
            return Err("a vendor's memory with two clocks: expected shef_async_fifo".to_owned());
        }
        let End::Register(cell, i) = path.end else {
            return Err("expected a synchroniser before it".to_owned());
        };
        if path.pin != "D" {
            return Err(format!("it reaches the pin {} without a synchroniser", path.pin));
        }
        let origin = self.netlist.origin(path.bit);
        if !path
            .from
            .iter()
            .any(|from| matches!(from, Start::Cell(_, bit) | Start::Port(bit) if *bit == origin))
        {
            return Err("there is logic before the first register".to_owned());
        }
        let kind = self.netlist.cells[cell as usize].kind;
        if !["$dff", "$aldff", "$adff"].contains(&kind) {
            return Err("the first register has an enable or a synchronous reset".to_owned());
        }
        let first = self.output(cell, i);
        if !self.netlist.is_async_reg(first) {
            return Err(format!("{} has no attribute ASYNC_REG", self.netlist.name(first)));
        }
        let readers = self.readers.get(&first).map_or(&[][..], Vec::as_slice);
        let [Reader::Data(second, k)] = readers else {
            return Err(format!(
                "{} has {} readers instead of a second register alone",
                self.netlist.name(first),
                readers.len()
            ));
        };
        if self.clocks.of_cell(*second) != Some(path.domain) {
            return Err("the second register has another clock".to_owned());
        }
        let second = self.output(*second, *k);
        if !self.netlist.is_async_reg(second) {
            return Err(format!("{} has no attribute ASYNC_REG", self.netlist.name(second)));
        }
        Ok(Form::Synchroniser)
    }

    fn is_static(&self, from: Start) -> bool {
        match from {
            Start::Cell(_, bit) => self.attribute(bit, "shef_cdc") == Some("static"),
            _ => false,
        }
    }

    /// Checks that a path is the reset of a chain of registers.
    fn reset(&self, path: &Path) -> Result<(), String> {
        let End::Register(c, _) = path.end else {
            return Err("expected a reset synchroniser before it".to_owned());
        };
        let none = || {
            format!(
                "the reset of {} comes from another clock",
                self.netlist.name(self.output(c, 0))
            )
        };
        let cell = &self.netlist.cells[c as usize];
        let reset = self.source_of_reset(path.bit);
        if self.clocks.leaf(self.netlist, reset).is_none() {
            return Err("there is logic before the asynchronous reset".to_owned());
        }
        for (i, bit) in (0_u32..).zip(self.netlist.pin(cell, "D")) {
            let q = self.output(c, i);
            let from = self.netlist.origin(*bit);
            if !self.netlist.is_async_reg(q) {
                return Err(none());
            }
            if from < FIRST {
                // The first one: only registers of the chain read it.
                let readers = self.readers.get(&q).map_or(&[][..], Vec::as_slice);
                let chained = |reader: &Reader| match reader {
                    Reader::Data(next, _) => self.same_reset(*next, reset),
                    Reader::Other(_) => false,
                };
                if readers.is_empty() || !readers.iter().all(chained) {
                    return Err(none());
                }
            } else if !self.netlist.register(from).is_some_and(|(c, _)| self.same_reset(c, reset)) {
                return Err(none());
            }
        }
        Ok(())
    }

    /// The bit that a reset comes from, through inverters.
    fn source_of_reset(&self, bit: Bit) -> Bit {
        let bit = self.netlist.origin(bit);
        if let Driver::Cell(c, ..) = self.netlist.driver(bit) {
            let cell = &self.netlist.cells[c as usize];
            if let ("$not" | "$logic_not", [input]) = (cell.kind, self.netlist.pin(cell, "A")) {
                return self.netlist.origin(*input);
            }
        }
        bit
    }

    fn same_reset(&self, cell: u32, reset: Bit) -> bool {
        let cell = &self.netlist.cells[cell as usize];
        cell::ASYNCHRONOUS.iter().any(|pin| match self.netlist.pin(cell, pin) {
            [bit] => self.source_of_reset(*bit) == reset,
            _ => false,
        })
    }

    /// Finds values of which several bits pass separate synchronisers, and the Gray counters among
    /// them.
    fn together(&self, paths: &mut [Path]) -> Vec<Gray> {
        let mut values: BTreeMap<(Bit, usize), Vec<usize>> = BTreeMap::new();
        for (p, path) in paths.iter().enumerate() {
            if path.form != Form::Synchroniser {
                continue;
            }
            let bit = self.netlist.origin(path.bit);
            let mut keys = BTreeSet::new();
            keys.extend(self.netlist.wire(bit).map(|wire| wire.first));
            // Copies of the bits of one value are bits of that value.
            if let Some((c, i)) = self.netlist.register(bit) {
                let data = self.netlist.pin(&self.netlist.cells[c as usize], "D")[i as usize];
                keys.extend(self.netlist.wire(self.netlist.origin(data)).map(|wire| wire.first));
            }
            for key in keys {
                values.entry((key, path.domain)).or_default().push(p);
            }
        }
        let (mut counters, mut good) = (Vec::new(), HashSet::new());
        let mut bad = Vec::new();
        for ((first, to), members) in values {
            if members.len() < 2 || self.attribute(first, "shef_cdc") == Some("flags") {
                continue;
            }
            let bits: BTreeSet<Bit> =
                members.iter().map(|p| self.netlist.origin(paths[*p].bit)).collect();
            // A register's bits have the register's name.
            let register = bits.first().and_then(|bit| self.netlist.wire(*bit));
            if register.is_some_and(|wire| {
                wire.first != first && bits.iter().all(|bit| wire.bits().contains(bit))
            }) {
                continue;
            }
            let names: BTreeSet<String> =
                bits.iter().map(|bit| self.start_name(Start::Port(*bit))).collect();
            let name = names.into_iter().collect::<Vec<_>>().join(", ");
            let wire = self.netlist.wire(first).map(|wire| wire.bits());
            let whole = wire.is_some_and(|wire| bits.iter().all(|bit| wire.contains(bit)));
            let result = if bits.len() == 1 {
                Err(format!("{name} passes {} synchronisers of one clock", members.len()))
            } else if bits.len() < members.len() {
                Err(format!("bits of {name} pass several synchronisers each"))
            } else if !whole {
                Err(format!("{} bits of {name} pass separate synchronisers", bits.len()))
            } else {
                self.gray(first).map_err(|why| {
                    format!(
                        "{} bits of {name} pass separate synchronisers, and it is no Gray counter: {why}",
                        bits.len()
                    )
                })
            };
            match result {
                Ok((from, binary)) => {
                    counters.push(Gray { from, to, binary });
                    good.extend(members);
                }
                Err(problem) => bad.push((members, problem)),
            }
        }
        for p in &good {
            paths[*p].form = Form::Gray;
        }
        for (members, problem) in bad {
            // A counter's next value is a second name of its bits.
            for p in members.into_iter().filter(|p| !good.contains(p)) {
                (paths[p].form, paths[p].problem) = (Form::Unknown, problem.clone());
            }
        }
        counters
    }

    /// Finds synchronised bits that meet in one register, at a memory or at a cell, also behind
    /// further registers: they may be bits of one value, and arrive in different cycles.
    fn meeting(&self, paths: &mut [Path]) {
        let synchronised: Vec<(usize, Bit)> = paths
            .iter()
            .enumerate()
            .filter(|(_, path)| path.form == Form::Synchroniser)
            .filter_map(|(p, path)| Some((p, self.second(path)?)))
            .collect();
        let value = |p: usize| {
            let bit = self.netlist.origin(paths[p].bit);
            (bit, paths[p].domain, self.clocks.behind(bit))
        };
        let mut sets = Sets::default();
        let mut seeds: HashMap<Bit, u32> = HashMap::new();
        for (p, bit) in &synchronised {
            let (one, _, from) = value(*p);
            let flag = self.attribute(one, "shef_cdc") == Some("flags");
            if from != 1 << ASYNCHRONOUS && !flag {
                seeds.insert(*bit, sets.of(vec![*p]));
            }
        }
        let mut found = BTreeMap::new();
        let mut before = 1;
        for register in 0..=REGISTERS {
            if seeds.len() <= before {
                break;
            }
            before = seeds.len();
            let reached = self.reached(&seeds, &mut sets);
            let behind = |bit: &Bit| reached[self.netlist.origin(*bit) as usize];
            let mut meet = |set: u32, at: Bit, sets: &Sets| {
                let members = sets.members(set);
                for (i, a) in members.iter().enumerate() {
                    for b in &members[i + 1..] {
                        let ((_, to, from), (_, to_two, from_two)) = (value(*a), value(*b));
                        if (to, from) == (to_two, from_two) {
                            found.entry((*a, *b)).or_insert(at);
                        }
                    }
                }
            };
            let mut next = seeds.clone();
            for cell in &self.netlist.cells {
                let all = |sets: &mut Sets, pins: &[&Pin<'_>]| {
                    let bits = pins.iter().flat_map(|pin| self.netlist.bits(pin));
                    bits.fold(0, |set, bit| sets.union(set, behind(bit)))
                };
                match Kind::of(cell) {
                    Kind::Register => {
                        let pins = cell.pins.iter().filter(|pin| {
                            pin.direction == Direction::Input
                                && !["CLK", "D", "ARST", "CLR", "SET", "ALOAD", "AD"]
                                    .contains(&pin.name)
                        });
                        let common = all(&mut sets, &pins.collect::<Vec<_>>());
                        let data = self.netlist.pin(cell, "D").iter();
                        for (data, q) in data.zip(self.netlist.pin(cell, "Q")) {
                            let set = sets.union(common, behind(data));
                            meet(set, *q, &sets);
                            let origin = self.netlist.origin(*data);
                            let delayed = common == 0 && seeds.contains_key(&origin);
                            if set != 0 && (register == 0 || delayed) {
                                next.entry(*q).or_insert(set);
                            }
                        }
                    }
                    Kind::ClockedRead | Kind::Write | Kind::Box if !cell::buffer(cell.kind) => {
                        let address = |pin: &&Pin<'_>| {
                            pin.direction == Direction::Input
                                && (!cell.kind.starts_with('$')
                                    || ["ADDR", "EN"].contains(&pin.name))
                        };
                        let pins: Vec<_> = cell.pins.iter().filter(address).collect();
                        let at = pins.first().and_then(|pin| self.netlist.bits(pin).first());
                        let set = all(&mut sets, &pins);
                        at.into_iter().for_each(|at| meet(set, *at, &sets));
                    }
                    _ => {}
                }
            }
            seeds = next;
        }
        for ((a, b), at) in found {
            let names = [a, b].map(|p| self.netlist.name(self.netlist.origin(paths[p].bit)));
            let [one, two] = names;
            let problem = format!(
                "{one} and {two} pass separate synchronisers and meet in {}",
                self.netlist.name(at)
            );
            (paths[a].form, paths[a].problem) = (Form::Unknown, problem);
        }
    }

    /// The second register of a synchroniser.
    fn second(&self, path: &Path) -> Option<Bit> {
        let End::Register(cell, i) = path.end else { return None };
        match self.readers.get(&self.output(cell, i))?.as_slice() {
            [Reader::Data(second, k)] => Some(self.output(*second, *k)),
            _ => None,
        }
    }

    /// The set of seeds behind every bit, without registers between.
    fn reached(&self, seeds: &HashMap<Bit, u32>, sets: &mut Sets) -> Vec<u32> {
        let mut reached = vec![0; self.netlist.len()];
        // 0: not visited, 1: its inputs are being visited, 2: done.
        let mut state = vec![0_u8; self.netlist.len()];
        let mut stack = Vec::new();
        for (bit, seed) in seeds {
            (reached[*bit as usize], state[*bit as usize]) = (*seed, 2);
        }
        for start in FIRST..u32::try_from(self.netlist.len()).unwrap_or(Bit::MAX) {
            stack.push(start);
            while let Some(bit) = stack.last().copied() {
                let at = bit as usize;
                match state[at] {
                    0 => {
                        state[at] = 1;
                        self.netlist.sources(bit, &mut |from| {
                            if from >= FIRST && state[from as usize] == 0 {
                                stack.push(from);
                            }
                        });
                    }
                    1 => {
                        let mut all = 0;
                        self.netlist.sources(bit, &mut |from| {
                            all = sets.union(all, reached[from as usize]);
                        });
                        (reached[at], state[at]) = (all, 2);
                        stack.pop();
                    }
                    _ => drop(stack.pop()),
                }
            }
        }
        reached
    }

    /// The next value of a register's bit where the register does not keep its value, and the
    /// conditions for that.
    fn next(&self, bit: Bit) -> Option<(Bit, Vec<(Bit, bool)>)> {
        let (c, i) = self.netlist.register(bit)?;
        let data = self.netlist.pin(&self.netlist.cells[c as usize], "D");
        let mut value = self.netlist.origin(*data.get(i as usize)?);
        let mut conditions = Vec::new();
        while let Driver::Cell(m, _, k) = self.netlist.driver(value) {
            let mux = &self.netlist.cells[m as usize];
            if mux.kind != "$mux" {
                break;
            }
            let side = |pin| self.netlist.origin(self.netlist.pin(mux, pin)[k as usize]);
            let select = self.netlist.origin(self.netlist.pin(mux, "S")[0]);
            let (a, b) = (side("A"), side("B"));
            // A mux without a second side keeps nothing.
            if a == bit || a == crate::rtlil::UNKNOWN {
                (value, _) = (b, conditions.push((select, true)));
            } else if b == bit || b == crate::rtlil::UNKNOWN {
                (value, _) = (a, conditions.push((select, false)));
            } else {
                break;
            }
        }
        Some((value, conditions))
    }

    /// Checks that a register is a Gray counter. Returns its domain, and the bits of its binary
    /// counter and of the next value of that.
    fn gray(&self, first: Bit) -> Result<(usize, HashSet<Bit>), String> {
        let wire = self.netlist.wire(first).ok_or("it is no register")?;
        let bits: Vec<Bit> = wire.bits().collect();
        let registers: Option<Vec<(u32, u32)>> =
            bits.iter().map(|bit| self.netlist.register(*bit)).collect();
        let registers = registers.ok_or("not all of its bits are registers")?;
        let domain = self.clocks.of_cell(registers[0].0).ok_or("it has no clock")?;
        let next: Option<Vec<_>> = bits.iter().map(|bit| self.next(*bit)).collect();
        let next = next.ok_or("not all of its bits are registers")?;
        let conditions = &next[0].1;
        if next.iter().any(|(_, own)| own != conditions)
            || registers.iter().any(|(c, _)| self.clocks.of_cell(*c) != Some(domain))
        {
            return Err("its bits change under different conditions".to_owned());
        }
        self.resets_to_zero(&bits)?;
        // Each bit is the exclusive or of two neighbours of the binary value.
        let operands = |bit: Bit| match self.netlist.driver(bit) {
            Driver::Cell(c, _, i) if self.netlist.cells[c as usize].kind == "$xor" => {
                let cell = &self.netlist.cells[c as usize];
                let side = |pin| {
                    let bits = self.netlist.pin(cell, pin);
                    bits.get(i as usize).map_or(ZERO, |bit| self.netlist.origin(*bit))
                };
                (side("A"), side("B"))
            }
            _ => (bit, ZERO),
        };
        let mut binary = vec![ZERO; bits.len()];
        let mut above = ZERO;
        for i in (0..bits.len()).rev() {
            let (a, b) = operands(next[i].0);
            binary[i] = if b == above {
                a
            } else if a == above {
                b
            } else {
                return Err(format!("bit {i} is no exclusive or of two neighbours"));
            };
            above = binary[i];
        }
        let counter = self.counter(&binary, conditions)?;
        self.resets_to_zero(&counter)?;
        Ok((domain, counter.into_iter().chain(binary).collect()))
    }

    /// Checks that a value is a register plus one or plus one bit, and that the register takes it
    /// under these conditions. Returns the register's bits.
    fn counter(&self, value: &[Bit], conditions: &[(Bit, bool)]) -> Result<Vec<Bit>, String> {
        let none = || "its binary value is no counter".to_owned();
        let Driver::Cell(c, ..) = self.netlist.driver(value[0]) else { return Err(none()) };
        let cell = &self.netlist.cells[c as usize];
        let sum = self.netlist.pin(cell, "Y");
        if cell.kind != "$add" || sum.get(..value.len()) != Some(value) {
            return Err(none());
        }
        let operand = |pin| -> Vec<Bit> {
            let bits = self.netlist.pin(cell, pin).iter().map(|bit| self.netlist.origin(*bit));
            let mut bits: Vec<Bit> = bits.take(value.len()).collect();
            bits.resize(value.len(), ZERO);
            bits
        };
        let is_step = |bits: &[Bit]| bits[0] != ZERO && bits[1..].iter().all(|bit| *bit == ZERO);
        let (a, b) = (operand("A"), operand("B"));
        let counter = if is_step(&b) {
            a
        } else if is_step(&a) {
            b
        } else {
            return Err(none());
        };
        let keeps = |(bit, value): (&Bit, &Bit)| {
            self.next(*bit).is_some_and(|(next, own)| next == *value && own == conditions)
        };
        if counter.iter().zip(value).all(keeps) { Ok(counter) } else { Err(none()) }
    }

    fn resets_to_zero(&self, bits: &[Bit]) -> Result<(), String> {
        for (c, i) in bits.iter().filter_map(|bit| self.netlist.register(*bit)) {
            let cell = &self.netlist.cells[c as usize];
            let loaded = self.netlist.pin(cell, "AD").get(i as usize);
            let value = cell.parameter("ARST_VALUE").filter(|value| value.contains(['1', 'x']));
            if loaded.is_some_and(|bit| self.netlist.origin(*bit) != ZERO)
                || cell.pin("ARST").is_some() && value.is_some()
            {
                return Err("its reset value is not zero".to_owned());
            }
        }
        Ok(())
    }

    /// Checks that a memory's words pass between two Gray counters: the one that writes and the one
    /// that reads.
    fn fifo(&self, path: &Path, counters: &[Gray]) -> Result<(), String> {
        for from in &path.from {
            let Start::Memory(memory, reader) = *from else { continue };
            let name = self.netlist.memories[memory].path.replace(' ', ".");
            let addressed = |cell: u32, from: usize, to: usize| {
                let cell = &self.netlist.cells[cell as usize];
                let address = self.netlist.pin(cell, "ADDR");
                let is_counter = |gray: &Gray| {
                    (gray.from, gray.to) == (from, to)
                        && address
                            .iter()
                            .all(|bit| gray.binary.contains(&self.netlist.origin(*bit)))
                };
                counters.iter().any(is_counter)
            };
            for (c, cell) in (0_u32..).zip(&self.netlist.cells) {
                if cell.memory != Some(memory) || Kind::of(cell) != Kind::Write {
                    continue;
                }
                let Some(writer) = self.clocks.of_cell(c) else { continue };
                if !addressed(c, writer, path.domain) {
                    return Err(format!(
                        "the write address of {name} is no Gray counter that passes to the reader"
                    ));
                }
                if !addressed(reader, path.domain, writer) {
                    return Err(format!(
                        "the read address of {name} is no Gray counter that passes to the writer"
                    ));
                }
            }
        }
        Ok(())
    }

    fn start_name(&self, from: Start) -> String {
        let whole = |bit: Bit| {
            let wire = self.netlist.wire(bit);
            wire.map_or_else(
                || self.netlist.name(bit),
                |wire| {
                    let name = if wire.path.is_empty() { wire.name } else { wire.path };
                    name.replace(' ', ".").trim_start_matches(['\\', '$']).to_owned()
                },
            )
        };
        match from {
            Start::Cell(_, bit) | Start::Port(bit) => whole(bit),
            Start::Memory(memory, _) => self.netlist.memories[memory].path.replace(' ', "."),
        }
    }

    fn end(&self, end: End) -> (String, String) {
        match end {
            End::Register(c, i) => {
                let bit = self.output(c, i);
                (self.start_name(Start::Port(bit)), self.netlist.place(bit).to_owned())
            }
            End::Memory(c) | End::Cell(c) => {
                let cell = &self.netlist.cells[c as usize];
                let memory = cell.memory.map(|m| &self.netlist.memories[m]);
                match memory {
                    Some(memory) => (memory.path.replace(' ', "."), memory.src.to_owned()),
                    None => (cell.name.to_owned(), cell.src.to_owned()),
                }
            }
            End::Port(bit) => {
                (self.start_name(Start::Port(bit)), self.netlist.place(bit).to_owned())
            }
        }
    }

    /// One crossing for each pair of registers.
    fn merged(&self, paths: Vec<Path>) -> Vec<Crossing> {
        let mut all: BTreeMap<(Form, String, String, &'static str, String), Crossing> =
            BTreeMap::new();
        for path in paths {
            let foreign = self.clocks.behind(path.bit) & !(1 << path.domain);
            let from = path.from.first().map_or_else(String::new, |from| self.start_name(*from));
            let (to, place) = self.end(path.end);
            // All bits of a counter are one crossing.
            let key_to = if path.form == Form::Gray { String::new() } else { to.clone() };
            let key = (path.form, from.clone(), key_to, path.pin, path.problem.clone());
            let clocks = || {
                let foreign = match path.from.first() {
                    Some(Start::Memory(memory, _)) if foreign == 0 => self.clocks.written(*memory),
                    _ => foreign,
                };
                (self.name_of_domains(foreign), self.name_of_domains(1 << path.domain))
            };
            let crossing = all.entry(key).or_insert_with(|| Crossing {
                form: path.form,
                problem: path.problem.clone(),
                from: BTreeSet::new(),
                to: BTreeSet::new(),
                names: (from, to),
                clocks: clocks(),
                asynchronous: foreign == 1 << ASYNCHRONOUS,
                place,
            });
            crossing.from.extend(path.from);
            crossing.to.insert(path.end);
        }
        all.into_values().collect()
    }
}
