//! Constraint files: the part of Tcl and of Vivado's commands in which constraints are written, on
//! the objects of a netlist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cell::Kind;
use crate::clocks::Clocks;
use crate::crossings::{Crossing, End, Start};
use crate::rtlil::{Bit, Netlist, vivado};

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
    /// Whether it holds for some of the paths only: those through a point, or of one edge.
    partial: bool,
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
    BusSkew,
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
            if let Err(what) = reader.run(&command) {
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
                let has = |kind, partial| {
                    let mut covering = covering.iter();
                    covering.any(|own| own.kind == kind && (partial || !own.partial))
                };
                let grouped = self.grouped(*from, *to, &scope);
                cancelled |= bounded && (grouped || has(ExceptionKind::Ignored, true));
                let ignored = grouped || has(ExceptionKind::Ignored, false);
                all &= has(ExceptionKind::MaxDelay, false) || (!bounded && ignored);
                let delays = covering.iter().filter(|own| own.kind != ExceptionKind::BusSkew);
                longest = delays.fold(longest, |longest, own| longest.max(own.value));
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

/// Commands without a further meaning here; their objects must exist.
const OTHERS: &str = "set_multicycle_path set_input_jitter set_system_jitter set_clock_uncertainty \
    set_clock_latency set_propagated_clock set_input_delay set_output_delay create_pblock resize_pblock \
    add_cells_to_pblock set_min_delay group_path set_max_fanout puts";

/// Options that have a value.
const VALUED: &str = "-from -to -through -group -name -period -waveform -source -divide_by -multiply_by -master_clock \
    -filter -of_objects -of -setup -hold -add_delay -max -min -clock -rise_from -fall_from -rise_to -fall_to \
    -edges -edge_shift -duty_cycle";

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
    fn run(&mut self, command: &str) -> Result<Value<'n>, String> {
        let words = words(command)?;
        let Some((name, rest)) = words.split_first() else {
            return Ok(Value::Text(String::new()));
        };
        let name = name.text.as_str();
        let mut found = Words::default();
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            let value = self.value(word)?;
            match &value {
                Value::Text(text) if text.starts_with('-') && text.len() > 1 && !word.quoted => {
                    let text = text.clone();
                    // `-setup` and `-hold` are flags of a false path.
                    let flag =
                        name == "set_false_path" && ["-setup", "-hold"].contains(&text.as_str());
                    let value = if lists(VALUED, &text) && !flag {
                        let next = rest.next().ok_or_else(|| format!("{text} has no value"))?;
                        Some(self.value(next)?)
                    } else {
                        None
                    };
                    found.options.push((text, value));
                }
                _ => found.others.push(value),
            }
        }
        self.execute(name, found)
    }

    fn value(&mut self, word: &Word) -> Result<Value<'n>, String> {
        if word.braced {
            return Ok(Value::Text(word.text.clone()));
        }
        if let Some(inner) = word.text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            return self.run(inner);
        }
        let Some(at) = word.text.find('$') else { return Ok(Value::Text(word.text.clone())) };
        let (before, rest) = word.text.split_at(at);
        let end = rest[1..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '{' && c != '}');
        let end = end.map_or(rest.len(), |end| end + 1);
        let name = rest[1..end].trim_matches(['{', '}']);
        let value = self.variables.get(name).cloned();
        let value = value.ok_or_else(|| format!("the variable {name} has no value"))?;
        match value {
            Value::Text(text) => {
                let word = Word { text: format!("{before}{text}{}", &rest[end..]), ..*word };
                self.value(&Word { braced: !word.text.contains('$'), ..word })
            }
            objects @ Value::Objects(_) => Ok(objects),
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
                words.others.into_iter().for_each(|value| all.extend(value.objects()));
                Ok(Value::Objects(all))
            }
            "set" => {
                let [name, value] = words.others.as_slice() else {
                    return Err("expected set NAME VALUE".to_owned());
                };
                self.variables.insert(name.text().to_owned(), value.clone());
                nothing
            }
            "set_disable_timing" | "set_case_analysis" => {
                Err(format!("{name} removes paths from timing, and the lint does not follow it"))
            }
            "set_property" => {
                let text = |i: usize| words.others.get(i).map_or("", Value::text).to_uppercase();
                match (&*text(0), &*text(1)) {
                    ("ASYNC_REG", "0" | "FALSE" | "NO") => {
                        Err("it takes ASYNC_REG from a synchroniser".to_owned())
                    }
                    _ => nothing,
                }
            }
            "create_clock" | "create_generated_clock" => {
                let target = words.others.first().cloned().map_or_else(Found::new, Value::objects);
                let bits = target.iter().flat_map(|(o, pin)| self.objects.outputs(*o, *pin));
                let root = |bit| Clocks::root(self.objects.netlist, bit);
                let domain = bits.map(root).find_map(|root| self.clocks.known(root));
                let aws = AWS.iter().find(|aws| {
                    name == "create_clock"
                        && domain.is_some()
                        && self.objects.clocks.get(**aws) == domain.as_ref()
                });
                if let Some(aws) = aws {
                    return Err(format!("AWS's constraints define {aws}, with its period"));
                }
                if let (Some(name), Some(domain)) = (words.option(&["-name"]), domain) {
                    self.objects.clocks.insert(name.text().to_owned(), domain);
                }
                nothing
            }
            "set_clock_groups" => {
                let groups = words.options.into_iter().filter(|(name, _)| name == "-group");
                let groups = groups.filter_map(|(_, value)| value);
                let groups = groups.map(|value| self.named_clocks(value)).collect();
                self.out.groups.push(groups);
                nothing
            }
            "set_false_path" | "set_max_delay" | "set_bus_skew" => {
                let edges = ["-through", "-rise_from", "-fall_from", "-rise_to", "-fall_to"];
                let partial = edges.iter().any(|name| words.has(name));
                let kind = match name {
                    // The set-up time stays.
                    "set_false_path" if words.has("-hold") && !words.has("-setup") => {
                        return nothing;
                    }
                    "set_false_path" => ExceptionKind::Ignored,
                    "set_bus_skew" => ExceptionKind::BusSkew,
                    _ if !words.has("-datapath_only") => ExceptionKind::Timed,
                    _ if words.option(&["-from"]).is_none() => {
                        return Err("set_max_delay -datapath_only needs -from".to_owned());
                    }
                    _ => ExceptionKind::MaxDelay,
                };
                let mut side =
                    |name: &str| words.option(&[name]).cloned().map(|v| self.named_clocks(v));
                let (from, to) = (side("-from"), side("-to"));
                let value = match kind {
                    ExceptionKind::Ignored => 0.0,
                    _ => {
                        let values = words.others.iter().map(Value::text);
                        let value = values.filter_map(|text| text.parse::<f64>().ok()).next();
                        let value = value.filter(|value| value.is_finite() && *value > 0.0);
                        value.ok_or_else(|| format!("{name} has no value above 0 in ns"))?
                    }
                };
                self.out.exceptions.push(Exception { kind, value, partial, from, to });
                nothing
            }
            name if lists(OTHERS, name) => nothing,
            name => Err(format!("{name} is no command that the lint reads")),
        }
    }

    /// Objects, or the clocks that a text names.
    fn named_clocks(&mut self, value: Value<'n>) -> Found<'n> {
        match value {
            Value::Objects(found) => found,
            Value::Text(names) => {
                let mut found = Found::new();
                for name in names.split_whitespace() {
                    let clocks = self.matching("get_clocks", &Pattern::Shallow(name));
                    self.seen("a clock", name, &clocks);
                    found.extend(clocks);
                }
                found
            }
        }
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
        if words.has("-regexp") {
            return Err("the lint reads patterns with * and ?, not -regexp".to_owned());
        }
        let is_deep = |name: &str| name.len() >= 2 && "-hierarchical".starts_with(name);
        let deep = words.options.iter().any(|(name, _)| is_deep(name));
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
            let own = self.matching(name, &pattern_of);
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
            "get_ports" => (&self.objects.ports, None),
            _ => {
                let clocks = self.objects.clocks.iter();
                let clocks = clocks.filter(|(own, _)| pattern.hits(own));
                return clocks.map(|(_, domain)| (Object::Clock(*domain), None)).collect();
            }
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

/// The comparisons of a filter: any of the lists of which all hold.
fn tests(filter: &str) -> Result<Vec<Vec<Test>>, String> {
    let test = |text: &str| {
        let text = text.trim().trim_start_matches('(').trim_end_matches(')');
        for (operator, not) in [("=~", false), ("!~", true), ("==", false), ("!=", true)] {
            if let Some((property, pattern)) = text.split_once(operator) {
                let property = property.trim().to_uppercase();
                let known = ["NAME", "REF_NAME", "REF_PIN_NAME", "IS_SEQUENTIAL"];
                if !known.contains(&property.as_str()) {
                    return Err(format!("{property} is no property that the lint reads"));
                }
                let pattern = pattern.trim().trim_matches(['"', '{', '}']).trim().to_owned();
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
#[derive(Clone, Debug)]
struct Word {
    text: String,
    /// In braces: nothing is replaced.
    braced: bool,
    quoted: bool,
}

/// The words of a command; nested commands keep their brackets.
fn words(command: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while let Some(first) = rest.chars().next() {
        let (open, close) = match first {
            '{' => ('{', '}'),
            '[' => ('[', ']'),
            _ => (' ', ' '),
        };
        let end = if first == '"' {
            rest[1..].find('"').map(|end| end + 2)
        } else if open == ' ' {
            // An index in brackets is part of the word.
            Some(rest.find(char::is_whitespace).unwrap_or(rest.len()))
        } else {
            let mut depth = 0_i32;
            rest.char_indices().find_map(|(i, c)| {
                depth += i32::from(c == open) - i32::from(c == close);
                (depth == 0).then_some(i + 1)
            })
        };
        let end = end.ok_or_else(|| format!("a {first} is not closed"))?;
        let (word, after) = rest.split_at(end);
        let quoted = first == '{' || first == '"';
        let text = if quoted { word[1..word.len() - 1].to_owned() } else { word.to_owned() };
        words.push(Word { text, braced: first == '{', quoted });
        rest = after.trim_start();
    }
    Ok(words)
}

/// The commands of a text, each with its first line.
fn commands(text: &str) -> Vec<(u32, String)> {
    let mut all = Vec::new();
    let (mut command, mut start, mut depth) = (String::new(), 1, 0_i32);
    for (n, line) in (1_u32..).zip(text.lines()) {
        let line = line.trim();
        if command.is_empty() {
            start = n;
            if line.starts_with('#') {
                continue;
            }
        }
        // A comment after a command.
        let line = line.split(";#").next().unwrap_or(line).split("; #").next().unwrap_or(line);
        let (line, continues) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        depth += line
            .chars()
            .map(|c| i32::from("{[".contains(c)) - i32::from("}]".contains(c)))
            .sum::<i32>();
        command.push_str(line);
        command.push(' ');
        if !continues && depth <= 0 {
            let done = std::mem::take(&mut command);
            let parts = done.split(';').map(str::trim).filter(|part| !part.is_empty());
            all.extend(parts.map(|part| (start, part.to_owned())));
            depth = 0;
        }
    }
    if !command.trim().is_empty() {
        all.push((start, command));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{commands, glob, tests, words};

    #[test]
    fn patterns_match_as_in_tcl() {
        assert!(glob("*u_fifo/wptr_q_reg[*]", "u_a/u_fifo/wptr_q_reg[3]"));
        assert!(glob("a*b*c", "axxbyybzc") && glob("*", "") && glob("a?c", "abc"));
        assert!(!glob("a?c", "ac") && !glob("a*b", "abc") && !glob("", "a"));
        assert!(glob(r"x\[3\]", "x[3]"));
    }

    #[test]
    fn commands_and_words_keep_what_is_nested() {
        let text = "# c\nset_false_path -from [get_cells -hier \\\n  -filter {NAME =~ *a[1]*}] ; # why\nset x 1; set y 2\n";
        let found = commands(text);
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4, 4]);
        let words = words(&found[0].1).unwrap();
        assert_eq!(words.len(), 3);
        assert!(words[2].text.starts_with("[get_cells") && words[2].text.ends_with(']'));
        assert!(super::words("get_cells {a").is_err());
    }

    #[test]
    fn an_unknown_property_is_an_error() {
        assert!(tests("NAME =~ *a* && REF_PIN_NAME == D").is_ok());
        assert!(tests("PARENT =~ *a*").is_err());
        assert!(tests("*a*").is_err());
    }
}
