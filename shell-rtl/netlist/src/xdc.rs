//! Constraint files: the part of Tcl and of Vivado's commands in which constraints are written, on
//! the objects of a netlist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cell::{self, Kind};
use crate::clocks::{Clocks, Domains, clock_of_pin};
use crate::crossings::{self, Crossing, End, Start};
use crate::rtlil::{Bit, Direction, FIRST, Netlist, vivado};

/// Where the custom logic is in AWS's design.
const SCOPE: &str = "WRAPPER/CL/";
/// Clocks that AWS's constraints define, by the port of the custom logic.
const AWS: [&str; 2] = ["clk_main_a0", "clk_hbm_ref"];
/// Longest bound of a path of several bits in ns: a period of the fastest clock, 266 MHz.
const LONGEST: f64 = 3.75;

/// An object of a netlist that a constraint can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Object {
    /// A bit of a register.
    Register(u32, u32),
    Memory(usize),
    /// A cell without content.
    Cell(u32),
    /// An instance of a module.
    Instance(u32),
    Port(u32),
    Net(u32),
    Clock(usize),
}

/// All objects of a netlist.
pub(crate) struct Objects<'n> {
    netlist: &'n Netlist<'n>,
    cells: Vec<Object>,
    /// Their names.
    names: Vec<String>,
    nets: Vec<Object>,
    ports: Vec<Object>,
    /// Paths of the instances of modules.
    instances: Vec<String>,
    clocks: BTreeMap<String, usize>,
}

/// Names of all registers and memories as in Vivado, with their places.
pub(crate) fn registers<'n>(netlist: &'n Netlist<'n>) -> Vec<(String, &'n str)> {
    let place = |object: Object| match object {
        Object::Register(c, i) => {
            let cell = &netlist.cells[c as usize];
            netlist.pin(cell, "Q").get(i as usize).map_or("", |bit| netlist.place(*bit))
        }
        Object::Memory(m) => netlist.memories[m].src,
        _ => "",
    };
    let state = |object: &Object| matches!(object, Object::Register(..) | Object::Memory(_));
    let found = cells(netlist).into_iter().filter(state);
    found.map(|object| (name(netlist, &[], object), place(object))).collect()
}

/// The leaf cells.
fn cells(netlist: &Netlist<'_>) -> Vec<Object> {
    let mut all: Vec<Object> = (0..netlist.memories.len()).map(Object::Memory).collect();
    for (c, cell) in (0_u32..).zip(&netlist.cells) {
        match Kind::of(cell) {
            _ if !cell.kind.starts_with('$') => all.push(Object::Cell(c)),
            Kind::Register | Kind::Latch => {
                let bits = (0_u32..).zip(netlist.pin(cell, "Q"));
                all.extend(bits.map(|(i, _)| Object::Register(c, i)));
            }
            _ => {}
        }
    }
    all
}

/// The name of an object in Vivado.
fn name(netlist: &Netlist<'_>, instances: &[String], object: Object) -> String {
    let path = |path: &str, name: &str| vivado(if path.is_empty() { name } else { path });
    match object {
        Object::Register(c, i) => {
            let bit = netlist.pin(&netlist.cells[c as usize], "Q")[i as usize];
            let Some(wire) = netlist.wire(bit) else { return String::new() };
            let name = path(wire.path, wire.name);
            match wire.width {
                1 => format!("{name}_reg"),
                _ => format!("{name}_reg[{}]", bit - wire.first),
            }
        }
        Object::Memory(m) => {
            let memory = &netlist.memories[m];
            format!("{}_reg", path(memory.path, memory.name))
        }
        Object::Cell(c) => {
            let cell = &netlist.cells[c as usize];
            path(cell.path, cell.name)
        }
        Object::Instance(i) => instances.get(i as usize).cloned().unwrap_or_default(),
        Object::Port(w) | Object::Net(w) => {
            let wire = &netlist.wires[w as usize];
            path(wire.path, wire.name)
        }
        Object::Clock(_) => String::new(),
    }
}

impl<'n> Objects<'n> {
    pub(crate) fn of(netlist: &'n Netlist<'n>, clocks: &Clocks) -> Self {
        let (mut nets, mut ports, mut instances) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (w, wire) in (0_u32..).zip(&netlist.wires).filter(|(_, wire)| !wire.path.is_empty()) {
            nets.push(Object::Net(w));
            if wire.port.is_some() {
                ports.push(Object::Port(w));
            }
            let mut above = vivado(wire.path);
            while let Some((parent, _)) = above.rsplit_once('/') {
                let parent = parent.to_owned();
                if !instances.insert(parent.clone()) {
                    break;
                }
                above = parent;
            }
        }
        let instances: Vec<String> = instances.into_iter().collect();
        let mut cells = cells(netlist);
        cells.extend((0_u32..).zip(&instances).map(|(i, _)| Object::Instance(i)));
        let aws = AWS.iter().filter_map(|name| {
            let domain = clocks.known(netlist.port(name)?.first)?;
            Some(((*name).to_owned(), domain))
        });
        let clocks = aws.collect();
        let names = cells.iter().map(|object| name(netlist, &instances, *object)).collect();
        Self { netlist, cells, names, nets, ports, instances, clocks }
    }

    fn name(&self, object: Object) -> String {
        name(self.netlist, &self.instances, object)
    }

    fn pins(&self, object: Object) -> Vec<&'n str> {
        match object {
            Object::Cell(c) => {
                self.netlist.cells[c as usize].pins.iter().map(|pin| pin.name).collect()
            }
            Object::Register(..) => vec!["C", "D", "Q", "CE", "R", "S", "CLR", "PRE"],
            Object::Memory(_) => vec!["CLK", "WCLK", "I", "O", "WE", "ADDRD", "RADR"],
            _ => Vec::new(),
        }
    }

    /// The bits that an object gives a clock to.
    fn outputs(&self, object: Object, pin: Option<&str>) -> Vec<Bit> {
        match object {
            Object::Port(w) | Object::Net(w) => self.netlist.wires[w as usize].bits().collect(),
            Object::Cell(c) => {
                let cell = &self.netlist.cells[c as usize];
                pin.map_or_else(Vec::new, |pin| self.netlist.pin(cell, pin).to_vec())
            }
            Object::Register(c, i) => {
                let cell = &self.netlist.cells[c as usize];
                let pin = if pin == Some("C") { "CLK" } else { "Q" };
                let bits = self.netlist.pin(cell, pin);
                let i = if pin == "Q" { i as usize } else { 0 };
                bits.get(i).copied().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Objects that a command found; a pin has its name.
type Found<'n> = BTreeSet<(Object, Option<&'n str>)>;

/// A value of Tcl.
#[derive(Clone, Debug)]
enum Value<'n> {
    Text(String),
    Objects(Found<'n>),
}

impl<'n> Value<'n> {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Objects(_) => "",
        }
    }

    fn objects(self) -> Found<'n> {
        match self {
            Self::Objects(found) => found,
            Self::Text(_) => Found::new(),
        }
    }
}

/// A remark on a line of a constraint file.
#[derive(Debug)]
pub(crate) struct Remark {
    pub file: PathBuf,
    pub line: u32,
    pub what: String,
}

/// An exception to the timing of paths.
#[derive(Debug)]
struct Exception<'n> {
    kind: ExceptionKind,
    /// Its value in ns; 0 without one.
    value: f64,
    /// `None`: from everywhere.
    from: Option<Found<'n>>,
    to: Option<Found<'n>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExceptionKind {
    /// `set_max_delay -datapath_only`.
    MaxDelay,
    /// `set_max_delay` of the whole path, clocks included.
    Timed,
    /// `set_false_path`, `set_clock_groups -asynchronous`.
    Ignored,
}

/// The constraints of a design.
#[derive(Default)]
pub(crate) struct Constraints<'n> {
    exceptions: Vec<Exception<'n>>,
    /// Groups of clocks that have no timing between them.
    groups: Vec<Vec<Found<'n>>>,
    /// Number of names and patterns in the constraints.
    pub patterns: usize,
    /// Patterns that match nothing.
    pub unmatched: Vec<Remark>,
    /// Commands that this reader does not know.
    pub unread: Vec<Remark>,
}

impl<'n> Constraints<'n> {
    /// Reads a file.
    pub(crate) fn read(
        &mut self,
        file: &Path,
        text: &str,
        objects: &mut Objects<'n>,
        clocks: &Clocks,
    ) {
        let variables = BTreeMap::new();
        let mut reader = Reader { file, line: 1, objects, clocks, variables, out: self };
        for (line, command) in commands(text) {
            reader.line = line;
            if let Err(what) = command.and_then(|command| reader.run(&command)) {
                reader.out.unread.push(Remark { file: file.to_owned(), line, what });
            }
        }
    }

    /// Whether an exception covers every path of a crossing; `bounded`: one that bounds its delay,
    /// and none that removes the bound.
    pub(crate) fn covers(
        &self,
        crossing: &Crossing,
        netlist: &Netlist<'_>,
        clocks: &Clocks,
        bounded: bool,
    ) -> Coverage {
        let scope = Scope { netlist, clocks };
        let (mut all, mut cancelled, mut longest) = (true, false, 0.0_f64);
        for from in &crossing.from {
            for to in &crossing.to {
                let covering = self.exceptions.iter().filter(|exception| {
                    contains(exception.from.as_ref(), |o, pin| scope.starts(*from, o, pin))
                        && contains(exception.to.as_ref(), |o, pin| scope.ends(*to, o, pin))
                });
                let covering: Vec<_> = covering.collect();
                let has = |kind| covering.iter().any(|own| own.kind == kind);
                let ignored = self.grouped(*from, *to, &scope) || has(ExceptionKind::Ignored);
                cancelled |= bounded && ignored;
                all &= has(ExceptionKind::MaxDelay) || (!bounded && ignored);
                longest = covering.iter().fold(longest, |longest, own| longest.max(own.value));
            }
        }
        match (all, cancelled) {
            (_, true) => Coverage::Cancelled,
            (true, _) if bounded && longest > LONGEST => Coverage::Long,
            (true, _) => Coverage::Whole,
            (false, _) => Coverage::Missing,
        }
    }

    fn grouped(&self, from: Start, to: End, scope: &Scope<'_, '_>) -> bool {
        self.groups.iter().any(|groups| {
            let of = |test: &dyn Fn(Object, Option<&str>) -> bool| {
                groups.iter().position(|group| contains(Some(group), test))
            };
            let from = of(&|object, pin| scope.starts(from, object, pin));
            let to = of(&|object, pin| scope.ends(to, object, pin));
            matches!((from, to), (Some(from), Some(to)) if from != to)
        })
    }
}

/// Whether constraints cover a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    Whole,
    Missing,
    /// An exception without a bound takes precedence.
    Cancelled,
    /// The bound is longer than a period: bits of several cycles can arrive together.
    Long,
}

fn contains(found: Option<&Found<'_>>, test: impl Fn(Object, Option<&str>) -> bool) -> bool {
    found.is_none_or(|found| found.iter().any(|(object, pin)| test(*object, *pin)))
}

struct Scope<'a, 't> {
    netlist: &'a Netlist<'t>,
    clocks: &'a Clocks,
}

impl Scope<'_, '_> {
    /// Whether an object of `-from` is the start of a crossing.
    fn starts(&self, from: Start, object: Object, pin: Option<&str>) -> bool {
        let Self { netlist, clocks } = *self;
        let outgoing = pin.is_none_or(|pin| ["C", "CLK", "WCLK", "Q", "O"].contains(&pin));
        match (from, object) {
            (Start::Cell(cell, bit), Object::Register(own, i)) => {
                let bits = netlist.pin(&netlist.cells[cell as usize], "Q");
                cell == own && bits.get(i as usize) == Some(&bit) && outgoing
            }
            (Start::Cell(cell, _), Object::Cell(own)) => cell == own,
            (Start::Memory(memory, _), Object::Memory(own)) => memory == own && outgoing,
            (Start::Port(bit), Object::Port(wire)) => {
                netlist.wires[wire as usize].bits().contains(&bit)
            }
            (Start::Cell(cell, bit), Object::Clock(domain)) => match clocks.of_cell(cell) {
                Some(own) => own == domain,
                None => clocks.behind(bit) == 1 << domain,
            },
            (Start::Memory(memory, _), Object::Clock(domain)) => {
                clocks.written(memory) == 1 << domain
            }
            (Start::Port(bit), Object::Clock(domain)) => clocks.of_port(bit) == domain,
            _ => false,
        }
    }

    /// Whether an object of `-to` is the end of a crossing.
    fn ends(&self, to: End, object: Object, pin: Option<&str>) -> bool {
        let incoming = pin.is_none_or(|pin| ["D", "CE", "R", "S", "CLR", "PRE"].contains(&pin));
        match (to, object) {
            (End::Register(cell, i), Object::Register(own, k)) => (cell, i) == (own, k) && incoming,
            (End::Register(cell, _) | End::Memory(cell), Object::Clock(domain)) => {
                self.clocks.of_cell(cell) == Some(domain)
            }
            (End::Cell(cell), Object::Cell(own)) => cell == own,
            _ => false,
        }
    }
}

struct Reader<'a, 'n> {
    file: &'a Path,
    line: u32,
    objects: &'a mut Objects<'n>,
    clocks: &'a Clocks,
    variables: BTreeMap<String, Value<'n>>,
    out: &'a mut Constraints<'n>,
}

/// A command: its name, its options with a value, those without one, and the least and largest
/// number of its other words.
type Command = (&'static str, &'static str, &'static str, (usize, usize));

/// The commands that this reader follows; any other command or option can change the timing in a way
/// that it does not see.
const COMMANDS: [Command; 17] = [
    ("get_cells", "-filter -of_objects -of", "-hierarchical", (0, usize::MAX)),
    ("get_pins", "-filter -of_objects -of", "-hierarchical", (0, usize::MAX)),
    ("get_nets", "-filter -of_objects -of", "-hierarchical", (0, usize::MAX)),
    ("get_ports", "-filter", "", (0, usize::MAX)),
    ("get_clocks", "-of_objects -of", "", (0, usize::MAX)),
    ("list", "", "", (0, usize::MAX)),
    ("set", "", "", (2, 2)),
    ("puts", "", "", (1, 1)),
    ("set_property", "", "", (3, 3)),
    ("create_generated_clock", "-name", "", (1, 1)),
    ("set_clock_groups", "-group -name", "-asynchronous", (0, 0)),
    ("set_false_path", "-from -to", "-setup -hold", (0, 0)),
    ("set_max_delay", "-from -to", "-datapath_only", (1, 1)),
    ("set_bus_skew", "-from -to", "", (1, 1)),
    // Placement; its objects must exist.
    ("create_pblock", "", "", (1, 1)),
    ("resize_pblock", "-add", "", (1, 1)),
    ("add_cells_to_pblock", "", "", (2, 2)),
];
/// Properties that keep a register or a level of the hierarchy as it is.
const KEEPS: [&str; 4] = ["ASYNC_REG", "DONT_TOUCH", "KEEP", "KEEP_HIERARCHY"];
/// Properties of placement.
const PLACES: [&str; 1] = ["USER_SLR_ASSIGNMENT"];

fn lists(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// The words of a command: options with their values, and the others.
#[derive(Default)]
struct Words<'n> {
    options: Vec<(String, Option<Value<'n>>)>,
    others: Vec<Value<'n>>,
}

impl<'n> Words<'n> {
    fn option(&self, names: &[&str]) -> Option<&Value<'n>> {
        let found = self.options.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.and_then(|(_, value)| value.as_ref())
    }

    fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(own, _)| own == name)
    }
}

impl<'n> Reader<'_, 'n> {
    fn run(&mut self, words: &[Word]) -> Result<Value<'n>, String> {
        let Some((name, rest)) = words.split_first() else {
            return Ok(Value::Text(String::new()));
        };
        let Word::Text(name) = name else {
            return Err("the name of a command is computed".to_owned());
        };
        let command = COMMANDS.iter().find(|(own, ..)| own == name);
        let (_, valued, flags, (least, most)) =
            command.ok_or_else(|| format!("{name} is no command that the lint reads"))?;
        let mut found = Words::default();
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            let value = self.value(word)?;
            let option = match &value {
                Value::Text(text) if text.starts_with('-') => text.clone(),
                _ => {
                    found.others.push(value);
                    continue;
                }
            };
            let deep = "-hierarchical";
            let short = option.len() > 1 && deep.starts_with(&option) && lists(flags, deep);
            let option = if short { deep.to_owned() } else { option };
            let value = if lists(valued, &option) {
                let next = rest.next().ok_or_else(|| format!("{option} has no value"))?;
                Some(self.value(next)?)
            } else if lists(flags, &option) {
                None
            } else {
                return Err(format!("{option} is no option of {name} that the lint reads"));
            };
            if found.has(&option) && option != "-group" {
                return Err(format!("{name} has {option} twice"));
            }
            found.options.push((option, value));
        }
        if !(*least..=*most).contains(&found.others.len()) {
            return Err(format!("{name} has {} words: expected {least}", found.others.len()));
        }
        self.execute(name, found)
    }

    fn value(&mut self, word: &Word) -> Result<Value<'n>, String> {
        match word {
            Word::Text(text) => Ok(Value::Text(text.clone())),
            Word::Variable(name) => {
                let value = self.variables.get(name).cloned();
                value.ok_or_else(|| format!("the variable {name} has no value"))
            }
            Word::Command(words) => self.run(words),
        }
    }

    fn execute(&mut self, name: &str, words: Words<'n>) -> Result<Value<'n>, String> {
        let nothing = Ok(Value::Text(String::new()));
        match name {
            "get_cells" | "get_pins" | "get_nets" | "get_ports" | "get_clocks" => {
                self.get(name, &words).map(Value::Objects)
            }
            "list" => {
                let mut all = Found::new();
                for value in words.others {
                    match value {
                        Value::Objects(found) => all.extend(found),
                        Value::Text(text) => return Err(format!("{text} is text in a list")),
                    }
                }
                Ok(Value::Objects(all))
            }
            "set" => {
                let [name, value] = words.others.as_slice() else {
                    return Err("expected set NAME VALUE".to_owned());
                };
                self.variables.insert(name.text().to_owned(), value.clone());
                nothing
            }
            "set_property" => {
                let (property, value) = (words.others[0].text(), words.others[1].text());
                let property = property.to_uppercase();
                match property.as_str() {
                    own if PLACES.contains(&own) => nothing,
                    own if !KEEPS.contains(&own) => {
                        Err(format!("{own} is no property that the lint knows as harmless"))
                    }
                    _ if cell::is_set(value) => nothing,
                    own => Err(format!("it takes {own} from its objects: expected TRUE")),
                }
            }
            "create_generated_clock" => {
                let target = words.others[0].clone().objects();
                if target.is_empty() {
                    return nothing;
                }
                // Any other pin would get another period, or none.
                let mut target = target.iter();
                let (Some((Object::Cell(c), Some(pin))), None) = (target.next(), target.next())
                else {
                    return Err("expected an output of one MMCM or PLL".to_owned());
                };
                let netlist = self.objects.netlist;
                let made = cell::clock_source(netlist.cells[*c as usize].kind)
                    && pin.starts_with("CLKOUT");
                let bits = self.objects.outputs(Object::Cell(*c), Some(pin));
                let root = bits.first().map(|bit| Clocks::root(netlist, *bit));
                let domain = root.and_then(|root| self.clocks.known(root)).filter(|_| made);
                let (Some(name), Some(domain)) = (words.option(&["-name"]), domain) else {
                    return Err("expected -name and an output of an MMCM or PLL".to_owned());
                };
                let (name, clocks) = (name.text().to_owned(), &mut self.objects.clocks);
                if clocks.contains_key(&name) {
                    return Err(format!("{name} is the name of another clock"));
                }
                clocks.insert(name, domain);
                nothing
            }
            "set_clock_groups" => {
                let groups = words.options.into_iter().filter(|(name, _)| name == "-group");
                let groups = groups.filter_map(|(_, value)| value);
                let groups =
                    groups.map(|value| self.named(value)).collect::<Result<Vec<_>, _>>()?;
                // One group is unrelated to all other clocks.
                if groups.len() < 2 {
                    return Err("expected two or more -group".to_owned());
                }
                let mut before: Domains = 0;
                for group in &groups {
                    let mut own: Domains = 0;
                    for (object, _) in group {
                        let Object::Clock(domain) = object else {
                            return Err("expected clocks in a -group".to_owned());
                        };
                        own |= 1 << domain;
                    }
                    if before & own != 0 {
                        return Err(self.within(before & own));
                    }
                    before |= own;
                }
                self.out.groups.push(groups);
                nothing
            }
            "set_false_path" | "set_max_delay" | "set_bus_skew" => {
                let kind = match name {
                    "set_false_path" => ExceptionKind::Ignored,
                    "set_max_delay" if words.has("-datapath_only") => {
                        if words.option(&["-from"]).is_none() {
                            return Err("set_max_delay -datapath_only needs -from".to_owned());
                        }
                        ExceptionKind::MaxDelay
                    }
                    _ => ExceptionKind::Timed,
                };
                let value = match words.others.first() {
                    None => 0.0,
                    Some(value) => {
                        let value = value.text().parse::<f64>().ok();
                        let value = value.filter(|value| value.is_finite() && *value > 0.0);
                        value.ok_or_else(|| format!("{name} has no value above 0 in ns"))?
                    }
                };
                let mut side = |name: &str| {
                    words.option(&[name]).cloned().map(|value| self.named(value)).transpose()
                };
                let (from, to) = (side("-from")?, side("-to")?);
                if [&from, &to].iter().any(|side| side.as_ref().is_some_and(Found::is_empty)) {
                    return nothing;
                }
                let to = to.ok_or_else(|| format!("{name} needs -to"))?;
                self.crosses(from.as_ref(), &to)?;
                // A bus skew is a further bound, and without hold times the set-up time stays.
                let stays = words.has("-hold") && !words.has("-setup");
                if name != "set_bus_skew" && !stays {
                    self.out.exceptions.push(Exception { kind, value, from, to: Some(to) });
                }
                nothing
            }
            _ => nothing,
        }
    }

    fn within(&self, domains: Domains) -> String {
        let names = self.clocks.domains.iter().enumerate();
        let names = names.filter(|(i, _)| domains >> i & 1 == 1);
        let names: Vec<&str> = names.map(|(_, domain)| domain.name.as_str()).collect();
        format!("it excepts paths within the clock {}", names.join(", "))
    }

    /// All paths between the two sides of an exception are between two clocks. Of a synchroniser of
    /// resets, the reset has no clock.
    fn crosses(&self, from: Option<&Found<'n>>, to: &Found<'n>) -> Result<(), String> {
        let (netlist, clocks) = (self.objects.netlist, self.clocks);
        let scope = Scope { netlist, clocks };
        let mut first: Domains = if from.is_some() { 0 } else { Domains::MAX };
        for (object, _) in from.into_iter().flatten() {
            let bits = |bits: &[Bit]| bits.iter().fold(0, |all, bit| all | clocks.behind(*bit));
            first |= match *object {
                Object::Clock(domain) => 1 << domain,
                Object::Register(c, _) => clocks.of_cell(c).map_or(0, |domain| 1 << domain),
                Object::Memory(memory) => clocks.written(memory),
                Object::Port(wire) => {
                    bits(&netlist.wires[wire as usize].bits().collect::<Vec<_>>())
                }
                Object::Cell(c) => {
                    let pins = netlist.cells[c as usize].pins.iter();
                    let outputs = pins.filter(|pin| pin.direction != Direction::Input);
                    outputs.fold(0, |all, pin| all | bits(netlist.bits(pin)))
                }
                Object::Instance(_) | Object::Net(_) => {
                    return Err("-from names no clock, register, memory, port or pin".to_owned());
                }
            };
        }
        for (object, pin) in to {
            match *object {
                Object::Clock(domain) if first >> domain & 1 == 1 => {
                    return Err(self.within(1 << domain));
                }
                Object::Clock(_) => {}
                Object::Register(..) | Object::Cell(_) => {
                    let ends = self.ends(*object, *pin);
                    let starts = |bit, domains| crossings::starts(netlist, clocks, bit, domains);
                    for (domain, bit) in ends.iter().copied() {
                        let excepted = |start: &Start| {
                            contains(from, |object, pin| scope.starts(*start, object, pin))
                        };
                        if let Some(start) = starts(bit, 1 << domain).into_iter().find(excepted) {
                            let from = match start {
                                Start::Cell(_, bit) | Start::Port(bit) => netlist.name(bit),
                                Start::Memory(memory, _) => {
                                    self.objects.name(Object::Memory(memory))
                                }
                            };
                            let (within, to) =
                                (self.within(1 << domain), self.objects.name(*object));
                            return Err(format!("{within}: {from} to {to}"));
                        }
                    }
                }
                _ => return Err("-to names no clock, register or pin".to_owned()),
            }
        }
        Ok(())
    }

    /// The nets at the inputs of a register or cell, with their clocks.
    fn ends(&self, object: Object, pin: Option<&str>) -> Vec<(usize, Bit)> {
        let (netlist, clocks) = (self.objects.netlist, self.clocks);
        let mut found = Vec::new();
        match object {
            Object::Register(c, i) => {
                let cell = &netlist.cells[c as usize];
                let bit = |name: &str| netlist.pin(cell, name).get(i as usize).copied();
                let pins: &[&str] = match pin {
                    Some("D") => &["D", "AD"],
                    Some("CE") => &["EN"],
                    Some("R" | "S") => &["SRST"],
                    Some("CLR" | "PRE") => {
                        let data = bit("D").map(|bit| netlist.origin(bit));
                        let chained =
                            data.is_some_and(|bit| bit < FIRST || netlist.is_async_reg(bit));
                        let first = bit("Q").is_some_and(|bit| netlist.is_async_reg(bit));
                        if first && chained { &[] } else { &cell::ASYNCHRONOUS }
                    }
                    Some(_) => &[],
                    None => &["D", "AD", "EN", "SRST", "ALOAD", "ARST", "SET", "CLR"],
                };
                let Some(domain) = clocks.of_cell(c) else { return found };
                for name in pins {
                    let whole = netlist.pin(cell, name);
                    let own = if whole.len() > 1 { bit(name) } else { whole.first().copied() };
                    found.extend(own.map(|bit| (domain, bit)));
                }
            }
            Object::Cell(c) => {
                let cell = &netlist.cells[c as usize];
                let inputs = cell.pins.iter().filter(|own| {
                    own.direction != Direction::Output && pin.is_none_or(|pin| pin == own.name)
                });
                for own in inputs {
                    let clock = clock_of_pin(cell, own.name).filter(|clock| *clock != own.name);
                    let clock = clock.and_then(|clock| netlist.pin(cell, clock).first());
                    let domain = clock.and_then(|bit| clocks.known(Clocks::root(netlist, *bit)));
                    let bits = netlist.bits(own).iter();
                    found.extend(
                        domain.into_iter().flat_map(|d| bits.clone().map(move |b| (d, *b))),
                    );
                }
            }
            _ => {}
        }
        found
    }

    /// Objects, or the clocks that a text names.
    fn named(&mut self, value: Value<'n>) -> Result<Found<'n>, String> {
        match value {
            Value::Objects(found) => Ok(found),
            Value::Text(names) => {
                let mut found = Found::new();
                for name in names.split_whitespace() {
                    let clocks = self.clock(name)?;
                    self.seen("a clock", name, &clocks);
                    found.extend(clocks);
                }
                Ok(found)
            }
        }
    }

    /// A clock by its whole name: a pattern would match clocks that Vivado derives and names, too.
    fn clock(&self, name: &str) -> Result<Found<'n>, String> {
        if name.contains(['*', '?', '[', '\\']) {
            return Err(format!("{name} is a pattern: expected the whole name of a clock"));
        }
        let domain = self.objects.clocks.get(name);
        Ok(domain.map(|domain| (Object::Clock(*domain), None)).into_iter().collect())
    }

    fn seen(&mut self, what: &str, pattern: &str, found: &Found<'n>) {
        self.out.patterns += 1;
        if found.is_empty() {
            let what = format!("{pattern} matches no {}", what.trim_start_matches("a "));
            self.out.unmatched.push(Remark { file: self.file.to_owned(), line: self.line, what });
        }
    }

    fn get(&mut self, name: &str, words: &Words<'n>) -> Result<Found<'n>, String> {
        let what = name.trim_start_matches("get_").trim_end_matches('s');
        let deep = words.has("-hierarchical");
        let filter = words.option(&["-filter"]).map(|value| value.text().to_owned());
        let filter =
            filter.map(|filter| tests(&filter).map(|tests| (filter, tests))).transpose()?;
        let of = words.option(&["-of_objects", "-of"]).cloned().map(Value::objects);
        let patterns: Vec<String> = words
            .others
            .iter()
            .flat_map(|value| value.text().split_whitespace().map(str::to_owned))
            .collect();
        let mut found = Found::new();
        match (&of, &filter) {
            (Some(of), _) => found = self.of_objects(name, of),
            (None, Some((_, tests))) if patterns.is_empty() => {
                found = self.matching(name, &Pattern::Tests(tests));
            }
            _ => {}
        }
        for pattern in &patterns {
            let pattern_of = if deep { Pattern::Deep(pattern) } else { Pattern::Shallow(pattern) };
            let own = match name {
                "get_clocks" => self.clock(pattern)?,
                _ => self.matching(name, &pattern_of),
            };
            if filter.is_none() {
                self.seen(what, pattern, &own);
            }
            found.extend(own);
        }
        if let Some((text, tests)) = &filter {
            // Each alternative has to match something.
            let mut kept = Found::new();
            for (text, all) in text.split("||").zip(tests) {
                let passes = |(o, pin): &&(Object, Option<&str>)| {
                    self.passes(*o, &self.objects.name(*o), *pin, all)
                };
                let own = found.iter().filter(passes).copied();
                let own: Found<'n> = own.collect();
                self.seen(what, &text.split_whitespace().collect::<Vec<_>>().join(" "), &own);
                kept.extend(own);
            }
            found = kept;
        } else if of.is_some() {
            self.seen(what, "-of_objects", &found);
        }
        Ok(found)
    }

    fn of_objects(&self, name: &str, of: &Found<'n>) -> Found<'n> {
        let netlist = self.objects.netlist;
        let mut found = Found::new();
        for (object, pin) in of {
            let bits = || self.objects.outputs(*object, *pin).into_iter();
            match name {
                "get_pins" => {
                    let own = self.objects.pins(*object).into_iter();
                    found.extend(own.map(|pin| (*object, Some(pin))));
                }
                "get_cells" => drop(found.insert((*object, None))),
                "get_clocks" => {
                    let roots = bits().map(|bit| Clocks::root(netlist, bit));
                    let domains = roots.filter_map(|root| self.clocks.known(root));
                    found.extend(domains.map(|domain| (Object::Clock(domain), None)));
                }
                "get_nets" => found.extend(bits().filter_map(|bit| {
                    let wire = netlist.wires.iter().position(|wire| wire.bits().contains(&bit));
                    Some((Object::Net(u32::try_from(wire?).ok()?), None))
                })),
                _ => {}
            }
        }
        found
    }

    /// The objects of a kind that match.
    fn matching(&self, name: &str, pattern: &Pattern<'_>) -> Found<'n> {
        let (objects, names) = match name {
            "get_cells" | "get_pins" => (&self.objects.cells, Some(&self.objects.names)),
            "get_nets" => (&self.objects.nets, None),
            _ => (&self.objects.ports, None),
        };
        let mut found = Found::new();
        let (cell, pin) = match pattern {
            Pattern::Shallow(text) | Pattern::Deep(text) => {
                text.rsplit_once('/').unwrap_or(("*", *text))
            }
            Pattern::Tests(_) => ("*", "*"),
        };
        for (i, object) in objects.iter().enumerate() {
            let made;
            let own_name = match names {
                Some(names) => &names[i],
                None => {
                    made = self.objects.name(*object);
                    &made
                }
            };
            match pattern {
                Pattern::Tests(tests) => {
                    let pins = if name == "get_pins" {
                        self.objects.pins(*object).into_iter().map(Some).collect()
                    } else {
                        vec![None]
                    };
                    let any = |pin: &Option<&str>| {
                        tests.iter().any(|all| self.passes(*object, own_name, *pin, all))
                    };
                    let passing = pins.into_iter().filter(any);
                    found.extend(passing.map(|pin| (*object, pin)));
                }
                _ if name == "get_pins" => {
                    let own = match pattern {
                        Pattern::Deep(_) => Pattern::Deep(cell),
                        _ => Pattern::Shallow(cell),
                    };
                    if own.hits(own_name) {
                        let pins = self.objects.pins(*object).into_iter();
                        let pins = pins.filter(|own| glob(pin, own));
                        found.extend(pins.map(|pin| (*object, Some(pin))));
                    }
                }
                pattern => {
                    if pattern.hits(own_name) {
                        found.insert((*object, None));
                    }
                }
            }
        }
        found
    }

    fn passes(&self, object: Object, name: &str, pin: Option<&str>, all: &[Test]) -> bool {
        let passes = |test: &Test| {
            let hit = match test.property.as_str() {
                "NAME" => test.names(name, pin),
                "REF_NAME" => match object {
                    Object::Cell(c) => test.hits(self.objects.netlist.cells[c as usize].kind),
                    _ => false,
                },
                "REF_PIN_NAME" => pin.is_some_and(|pin| test.hits(pin)),
                _ => test.hits(if matches!(object, Object::Register(..)) { "1" } else { "0" }),
            };
            hit != test.not
        };
        all.iter().all(passes)
    }
}

/// How a command searches for objects.
enum Pattern<'a> {
    /// By the whole name, `*` within one level of the hierarchy.
    Shallow(&'a str),
    /// By the name without the hierarchy, in all of it.
    Deep(&'a str),
    Tests(&'a [Vec<Test>]),
}

impl Pattern<'_> {
    fn hits(&self, own: &str) -> bool {
        let level = |text: &str| text.matches('/').count();
        match self {
            Self::Shallow(pattern) if level(pattern) == level(own) => glob(pattern, own),
            Self::Shallow(pattern) => pattern
                .strip_prefix(SCOPE)
                .is_some_and(|pattern| level(pattern) == level(own) && glob(pattern, own)),
            Self::Deep(pattern) => glob(pattern, own.rsplit('/').next().unwrap_or(own)),
            Self::Tests(_) => true,
        }
    }
}

/// A comparison of a filter.
struct Test {
    property: String,
    not: bool,
    pattern: String,
}

impl Test {
    fn hits(&self, text: &str) -> bool {
        glob(&self.pattern, text)
    }

    /// Whether it matches a cell, or a pin of it.
    fn names(&self, cell: &str, pin: Option<&str>) -> bool {
        let pattern = match self.pattern.strip_prefix(SCOPE) {
            Some(pattern) if !glob(&self.pattern, cell) => pattern,
            _ => &self.pattern,
        };
        let Some(pin) = pin else { return glob(pattern, cell) };
        match pattern.rsplit_once('/') {
            // The last part names the pin.
            Some((cells, own)) if !own.contains('*') => glob(own, pin) && glob(cells, cell),
            _ => glob(pattern, &format!("{cell}/{pin}")),
        }
    }
}

/// The comparisons of a filter, `&&` before `||`: any of the lists of which all hold.
fn tests(filter: &str) -> Result<Vec<Vec<Test>>, String> {
    let test = |text: &str| {
        if text.contains(['(', ')']) {
            return Err(format!("the lint reads no parentheses in a filter, found {text}"));
        }
        for (operator, not) in [("=~", false), ("!~", true), ("==", false), ("!=", true)] {
            if let Some((property, pattern)) = text.split_once(operator) {
                let property = property.trim().to_uppercase();
                let known = ["NAME", "REF_NAME", "REF_PIN_NAME", "IS_SEQUENTIAL"];
                if !known.contains(&property.as_str()) {
                    return Err(format!("{property} is no property that the lint reads"));
                }
                let pattern = pattern.trim().trim_matches(['"', '{', '}']).trim().to_owned();
                if operator.ends_with('=') && pattern.contains(['*', '?']) {
                    return Err(format!(
                        "{operator} compares with the text {pattern}: expected =~"
                    ));
                }
                return Ok(Test { property, not, pattern });
            }
        }
        Err(format!("expected a comparison like NAME =~ *x*, found {text}"))
    };
    filter.split("||").map(|all| all.split("&&").map(test).collect()).collect()
}

/// Whether a text matches a pattern with `*` and `?`.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => {
                p += 1;
                t += 1;
            }
            // An escaped bracket.
            Some(b'\\') if pattern.get(p + 1) == Some(&text[t]) => {
                p += 2;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// Text as it is.
    Text(String),
    /// The value of a variable.
    Variable(String),
    /// The result of a command.
    Command(Vec<Word>),
}

/// A text of Tcl. Substitutions inside of a word, and escapes, are errors.
struct Scanner<'t> {
    rest: &'t str,
    line: u32,
}

/// The commands of a text, each with its first line.
fn commands(text: &str) -> Vec<(u32, Result<Vec<Word>, String>)> {
    let text = text.replace("\r\n", "\n");
    let mut scanner = Scanner { rest: &text, line: 1 };
    let mut all = Vec::new();
    // Tcl ends a file at some of them.
    for (line, text) in (1_u32..).zip(text.split('\n')) {
        if text.contains(|c: char| c.is_control() && c != '\t') {
            all.push((line, Err("a control character".to_owned())));
        }
    }
    loop {
        scanner.blanks();
        let line = scanner.line;
        match scanner.peek() {
            None => return all,
            Some('\n' | ';') => drop(scanner.next()),
            Some(_) => {
                let command = scanner.command(false);
                if command.is_err() {
                    while scanner.peek().is_some_and(|c| c != '\n') {
                        scanner.next();
                    }
                }
                if command.as_ref().map_or(true, |words| !words.is_empty()) {
                    all.push((line, command));
                }
            }
        }
    }
}

impl Scanner<'_> {
    /// The next character; a backslash before a line's end makes both a space.
    fn peek(&self) -> Option<char> {
        if self.rest.starts_with("\\\n") { Some(' ') } else { self.rest.chars().next() }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        let length = if self.rest.starts_with("\\\n") { 2 } else { next.len_utf8() };
        self.line += u32::from(length == 2 && next == ' ' || next == '\n');
        self.rest = &self.rest[length..];
        Some(next)
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|c| c == ' ' || c == '\t') {
            self.next();
        }
    }

    /// The words of a command; `nested`: up to its bracket.
    fn command(&mut self, nested: bool) -> Result<Vec<Word>, String> {
        let mut words = Vec::new();
        if !nested && self.peek() == Some('#') {
            let line = self.rest.split('\n').next().unwrap_or_default();
            self.rest = &self.rest[line.len()..];
            return match line.ends_with('\\') {
                true => Err("a backslash continues a comment to the next line".to_owned()),
                false => Ok(words),
            };
        }
        loop {
            self.blanks();
            match self.peek() {
                Some(']') if nested => {
                    self.next();
                    return Ok(words);
                }
                None if nested => return Err("a [ is not closed".to_owned()),
                Some('\n' | ';') if nested => {
                    return Err("a command in brackets ends before its bracket".to_owned());
                }
                None | Some('\n' | ';') => return Ok(words),
                Some(first) => words.push(self.word(first, nested)?),
            }
        }
    }

    fn word(&mut self, first: char, nested: bool) -> Result<Word, String> {
        let word = match first {
            '{' => Word::Text(self.braced()?),
            '"' => Word::Text(self.quoted()?),
            '[' => {
                self.next();
                Word::Command(self.command(true)?)
            }
            '$' => {
                self.next();
                let braced = self.peek() == Some('{');
                let mut name = String::new();
                if braced {
                    name = self.braced()?;
                } else {
                    while let Some(c) =
                        self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '_')
                    {
                        name.push(c);
                        self.next();
                    }
                }
                Word::Variable(name)
            }
            _ => {
                let mut text = String::new();
                let ends = |c: char| " \t\n;".contains(c) || nested && c == ']';
                while let Some(c) = self.peek().filter(|c| !ends(*c)) {
                    text.push(plain(c)?);
                    self.next();
                }
                Word::Text(text)
            }
        };
        match self.peek() {
            None | Some(' ' | '\t' | '\n' | ';') => Ok(word),
            Some(']') if nested => Ok(word),
            Some(next) => Err(format!("expected a space after a word, found {next}")),
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        self.next();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some(c) => text.push(plain(c)?),
                None => return Err("a \" is not closed".to_owned()),
            }
        }
    }

    fn braced(&mut self) -> Result<String, String> {
        let (mut text, mut depth) = (String::new(), 0);
        while let Some(c) = self.next() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                '\\' if self.peek().is_some_and(|next| "{}\\".contains(next)) => {
                    return Err("an escape of a brace".to_owned());
                }
                _ => {}
            }
            text.push(c);
            if depth == 0 {
                return Ok(text[1..text.len() - 1].to_owned());
            }
        }
        Err("a { is not closed".to_owned())
    }
}

/// A character that Tcl replaces by nothing.
fn plain(c: char) -> Result<char, String> {
    match c {
        '[' => Err("a command inside of a word: write the word in braces".to_owned()),
        '$' => Err("a variable inside of a word: write the word in braces".to_owned()),
        '\\' => Err("an escape inside of a word: write the word in braces".to_owned()),
        c => Ok(c),
    }
}

#[cfg(test)]
mod tests {
    use super::{Word, commands, glob, tests};

    #[test]
    fn patterns_match_as_in_tcl() {
        assert!(glob("*u_fifo/wptr_q_reg[*]", "u_a/u_fifo/wptr_q_reg[3]"));
        assert!(glob("a*b*c", "axxbyybzc") && glob("*", "") && glob("a?c", "abc"));
        assert!(!glob("a?c", "ac") && !glob("a*b", "abc") && !glob("", "a"));
        assert!(glob(r"x\[3\]", "x[3]"));
    }

    #[test]
    fn commands_and_words_are_those_of_tcl() {
        let text = "# c\nset_false_path -from [get_cells -hier \\\n  -filter {NAME =~ *a[1]*; ]}] ; # why [\nset x 1; set y ${x}\n";
        let found = commands(text);
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4, 4]);
        let words = found[0].1.as_ref().unwrap();
        let [_, _, Word::Command(inner)] = words.as_slice() else { panic!("{words:?}") };
        assert_eq!(inner.last(), Some(&Word::Text("NAME =~ *a[1]*; ]".to_owned())));
        let last = found[2].1.as_ref().unwrap();
        assert_eq!(last.last(), Some(&Word::Variable("x".to_owned())));
        for (text, words) in [
            ("get_cells {a", "not closed"),
            ("get_cells [list", "not closed"),
            ("puts \"x", "not closed"),
            ("puts x[set y]", "inside of a word"),
            ("puts \"[set y]\"", "inside of a word"),
            ("puts [list][set y]", "a space after a word"),
            ("puts {*}{a b}", "a space after a word"),
            ("puts $a(b)", "a space after a word"),
            ("puts x$y", "inside of a word"),
            ("puts a\\nb", "inside of a word"),
            ("puts {a\\}", "an escape of a brace"),
            ("puts [list\nset_false_path]", "before its bracket"),
            ("# note \\\nset_max_delay 1", "continues a comment"),
            ("puts a\u{1a}", "a control character"),
        ] {
            let found = commands(text);
            let refused = |(_, command): &(u32, Result<_, String>)| {
                command.as_ref().is_err_and(|what| what.contains(words))
            };
            assert!(found.iter().any(refused), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_a_filter_does_not_mean_here_is_an_error() {
        assert!(tests("NAME =~ *a* && REF_PIN_NAME == D").is_ok());
        assert!(tests("PARENT =~ *a*").is_err());
        assert!(tests("*a*").is_err());
        assert!(tests("NAME == *a*").is_err());
        assert!(tests("NAME =~ *a* && (NAME =~ *b* || NAME =~ *c*)").is_err());
    }
}
