//! The checks that look at the netlist alone.

use crate::cell::{Kind, buffer, clock_source};
use crate::clocks::{ASYNCHRONOUS, Clocks};
use crate::rtlil::{Bit, Cell, Direction, Driver, FIRST, Netlist, ONE, UNKNOWN, Wire, ZERO};
use crate::{Check, Design, Finding, check, xdc};

/// Kinds of cells that AWS refuses, and the beginnings of their names.
const FORBIDDEN: [&str; 11] = [
    "DNA_PORT",
    "FRAME_ECC",
    "MCAP",
    "ICAP",
    "MASTER_JTAG",
    "DCIRESET",
    "EFUSE_USR",
    "USR_ACCESS",
    "STARTUP",
    "BSCAN",
    "SYSMON",
];
/// Modules of AWS's kit whose clocks the instance controls.
const HOST_CLOCKS: [&str; 3] = ["aws_clk_gen", "AWS_CLK_GEN", "aws_clk_regs"];
/// Pins of a clock cell that are clocks.
const CLOCKS: [&str; 4] = ["CLKIN", "CLKIN1", "CLKIN2", "CLKFBIN"];
/// Pins that stop a clock cell.
const STOPS: [&str; 2] = ["RST", "PWRDWN"];
/// Names that AWS's own constraints match.
const TAKEN: [&str; 2] = ["*ram_reg*", "*rd_do_reg*"];

fn ports<'n>(design: &'n Design<'_>, direction: Direction) -> impl Iterator<Item = &'n Wire<'n>> {
    design.netlist.wires.iter().filter(move |wire| wire.port == Some(direction))
}

fn name<'n>(wire: &Wire<'n>) -> &'n str {
    wire.name.trim_start_matches('\\')
}

/// Bits of a wire as a range of its indices.
fn range(wire: &Wire<'_>, bits: &[Bit]) -> String {
    let (first, last) = (bits.first(), bits.last());
    match (first, last) {
        _ if bits.len() == wire.width as usize => name(wire).to_owned(),
        (Some(first), Some(last)) if first != last => {
            format!("{}[{}:{}]", name(wire), last - wire.first, first - wire.first)
        }
        (Some(first), _) => format!("{}[{}]", name(wire), first - wire.first),
        _ => name(wire).to_owned(),
    }
}

/// The place of a driver, if it has one.
fn place_of<'n>(netlist: &Netlist<'n>, driver: Driver) -> &'n str {
    match driver {
        Driver::Cell(cell, ..) => netlist.cells[cell as usize].src,
        Driver::Bit(bit) => netlist.place(bit),
        Driver::Nothing | Driver::Port => "",
    }
}

/// Every output has a driver, and no net has two.
pub(crate) fn outputs(design: &Design<'_>) -> Check {
    let netlist = design.netlist;
    let (mut findings, mut count) = (Vec::new(), 0);
    for wire in ports(design, Direction::Output) {
        count += wire.width;
        let open: Vec<Bit> = wire
            .bits()
            .filter(|bit| {
                let origin = netlist.origin(*bit);
                origin >= FIRST && netlist.driver(origin) == Driver::Nothing
                    || (UNKNOWN..FIRST).contains(&origin)
            })
            .collect();
        if !open.is_empty() {
            let what = format!("{} has no driver", range(wire, &open));
            findings.push(design.finding(wire.src, what));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for (bit, driver) in &netlist.second {
        let Some(wire) = netlist.wire(*bit) else { continue };
        // Inputs have their own check; pins of memory are driven from both sides.
        if wire.port == Some(Direction::Input)
            || wire.port == Some(Direction::Inout)
            || !seen.insert(wire.first)
        {
            continue;
        }
        let mut what = format!("{} has a second driver", netlist.name(*bit));
        let first = design.place(place_of(netlist, netlist.driver(*bit)));
        if !first.is_empty() {
            what = format!("{what}; the first is at {first}");
        }
        let src = place_of(netlist, *driver);
        findings.push(design.finding(if src.is_empty() { wire.src } else { src }, what));
    }
    check("outputs", "SHEF-NET-102", format!("{count} bits"), findings)
}

/// No input is driven.
pub(crate) fn inputs(design: &Design<'_>) -> Check {
    let netlist = design.netlist;
    let (mut findings, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    for (bit, driver) in &netlist.second {
        if let Some(wire) = netlist.wire(*bit)
            && wire.port == Some(Direction::Input)
            && seen.insert(wire.first)
        {
            let by = match *driver {
                Driver::Cell(cell, ..) => netlist.cells[cell as usize].name.to_owned(),
                Driver::Bit(from) => netlist.name(from),
                _ => "the custom logic".to_owned(),
            };
            let src = place_of(netlist, *driver);
            let what = format!("{} is an input, and {by} drives it", netlist.name(*bit));
            findings.push(design.finding(if src.is_empty() { wire.src } else { src }, what));
        }
    }
    let count = ports(design, Direction::Input).count();
    check("inputs", "SHEF-NET-103", format!("{count} ports"), findings)
}

/// The undriven bit that a bit gets its value from, if so. The front end assigns an unknown value to
/// a variable that nothing assigns.
fn open(netlist: &Netlist<'_>, bit: Bit) -> Option<Bit> {
    let origin = netlist.origin(bit);
    if origin >= FIRST {
        return (netlist.driver(origin) == Driver::Nothing).then_some(origin);
    }
    let mut bit = bit;
    while let Driver::Bit(from) = netlist.driver(bit) {
        if from == UNKNOWN {
            return Some(bit);
        }
        bit = from;
    }
    None
}

/// Every net that something reads has a driver.
pub(crate) fn undriven(design: &Design<'_>) -> Check {
    let netlist = design.netlist;
    let (mut findings, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    for cell in netlist.cells.iter().filter(|cell| cell.kind != "$buf") {
        for pin in cell.pins.iter().filter(|pin| pin.direction == Direction::Input) {
            for bit in netlist.bits(pin) {
                let Some(origin) = open(netlist, *bit) else { continue };
                let Some(wire) = netlist.wire(origin) else { continue };
                if wire.port.is_none() && seen.insert(wire.first) {
                    let src = if wire.src.is_empty() { cell.src } else { wire.src };
                    let what = format!("{} is read and has no driver", netlist.name(origin));
                    findings.push(design.finding(src, what));
                }
            }
        }
    }
    check("undriven", "SHEF-NET-104", format!("{} cells", netlist.cells.len()), findings)
}

/// Handshakes that the shell waits for are no constants, and no request is always there.
pub(crate) fn answers(design: &Design<'_>) -> Check {
    let (netlist, constants) = (design.netlist, design.constants);
    let (mut findings, mut count) = (Vec::new(), 0);
    let constant = |wire: &Wire<'_>| {
        let mut bits = wire.bits().map(|bit| constants.value(bit));
        let first = bits.next()??;
        bits.all(|bit| bit.is_some()).then_some(first)
    };
    for wire in ports(design, Direction::Output) {
        let Some(row) = design.table.iter().find(|port| port.name == name(wire)) else { continue };
        let answers = row.if_unused.contains("an endpoint that answers");
        let ends = |suffix: &str| name(wire).ends_with(suffix);
        let never = match constant(wire) {
            Some(false) if answers => ends("ready") || ends("valid") || ends("last"),
            Some(true) if answers => ends("valid") || ends("last"),
            Some(_) => row.if_unused.contains("never constant"),
            None => false,
        };
        let asks = ends("valid") || ends("req");
        count += usize::from(answers || asks || row.if_unused.contains("never constant"));
        if never {
            let what = format!("{} is constant: expected {}", name(wire), row.if_unused);
            findings.push(design.finding(wire.src, what));
        } else if asks && wire.bits().any(|bit| constants.value(bit) == Some(true)) {
            let what = format!("{} is constant 1: expected a request that ends", name(wire));
            findings.push(design.finding(wire.src, what));
        }
    }
    // The port that asks takes the answer, and sends what it announced.
    for (asks, takes) in [
        ("cl_sh_pcim_awvalid", "cl_sh_pcim_wvalid"),
        ("cl_sh_pcim_wvalid", "cl_sh_pcim_wlast"),
        ("cl_sh_pcim_awvalid", "cl_sh_pcim_bready"),
        ("cl_sh_pcim_arvalid", "cl_sh_pcim_rready"),
    ] {
        if let (Some(asking), Some(taking)) = (netlist.port(asks), netlist.port(takes)) {
            count += 1;
            if constant(asking).is_none() && constant(taking) == Some(false) {
                let what = format!("{takes} is constant 0, but {asks} is not");
                findings.push(design.finding(taking.src, what));
            }
        }
    }
    check("answers", "SHEF-NET-105", format!("{count} handshakes"), findings)
}

/// Whether a reset of a cell, low while active, never ends: it is constant 0 or open.
fn never_ends(design: &Design<'_>, cell: &Cell<'_>, pin: &str) -> bool {
    let netlist = design.netlist;
    let open = |bit: Bit| bit >= FIRST && netlist.driver(bit) == Driver::Nothing;
    match netlist.pin(cell, pin) {
        [bit] => open(netlist.origin(*bit)) || design.constants.value(*bit) == Some(false),
        _ => true,
    }
}

/// The memory's pins and its statistics bus are those of the one `sh_ddr`.
pub(crate) fn memory(design: &Design<'_>) -> Check {
    let netlist = design.netlist;
    let mut findings = Vec::new();
    let instances: Vec<_> = netlist.cells.iter().filter(|cell| cell.kind == "sh_ddr").collect();
    if instances.len() != 1 {
        let what = format!("{} instances of sh_ddr: expected 1", instances.len());
        findings.push(design.finding(netlist.src, what));
    }
    let from_it = |bit: Bit| {
        let driver = netlist.driver(netlist.origin(bit));
        matches!(driver, Driver::Cell(cell, ..) if netlist.cells[cell as usize].kind == "sh_ddr")
    };
    let mut count = 0;
    for wire in ports(design, Direction::Output) {
        let row = design.table.iter().find(|port| port.name == name(wire));
        let interface = row.map_or("", |row| row.interface.as_str());
        if !interface.starts_with("ddr") {
            continue;
        }
        count += 1;
        if !instances.is_empty() && !wire.bits().any(from_it) {
            let what = format!("{} does not come from sh_ddr", name(wire));
            findings.push(design.finding(wire.src, what));
        }
    }
    if let [ddr] = instances.as_slice() {
        for pin in ["stat_clk", "clk"] {
            if !netlist.pin(ddr, pin).iter().any(|bit| netlist.origin(*bit) >= FIRST) {
                findings.push(design.finding(ddr.src, format!("{pin} of sh_ddr has no clock")));
            }
        }
        for pin in ["rst_n", "stat_rst_n"] {
            if never_ends(design, ddr, pin) {
                findings.push(design.finding(ddr.src, format!("{pin} of sh_ddr is always 0")));
            }
        }
    }
    check("memory", "SHEF-NET-106", format!("{count} ports"), findings)
}

/// A custom logic with the HBM gives the shell the IP's monitors, and the IP its clocks.
pub(crate) fn hbm(design: &Design<'_>) -> Check {
    let netlist = design.netlist;
    let mut findings = Vec::new();
    let instances: Vec<_> = netlist.cells.iter().filter(|cell| cell.kind == "cl_hbm").collect();
    if instances.len() > 1 {
        let what = format!("{} instances of cl_hbm: expected at most 1", instances.len());
        findings.push(design.finding(netlist.src, what));
    }
    let mut count = 0;
    if let [hbm] = instances.as_slice() {
        let mut same = |pin: &str, port: &Wire<'_>| {
            count += 1;
            let bits = netlist.pin(hbm, pin);
            let origins = bits.iter().map(|bit| netlist.origin(*bit));
            if bits.len() != port.width as usize
                || !origins.eq(port.bits().map(|bit| netlist.origin(bit)))
            {
                let what = format!("{} is not connected to {pin} of cl_hbm", name(port));
                findings.push(design.finding(port.src, what));
            }
        };
        for stack in 0..2 {
            for wire in netlist.wires.iter().filter(|wire| wire.port.is_some()) {
                let port = name(wire).strip_prefix("hbm_apb_").unwrap_or_default();
                let signal = port.strip_suffix(&format!("_{stack}")).unwrap_or_default();
                match signal {
                    // The IP has no such pins.
                    "" | "pprot" | "pstrb" => {}
                    "preset_n" => same(&format!("MON_APB_{stack}_PRESET_N"), wire),
                    _ => same(&format!("APB_{stack}_{}_MON", signal.to_uppercase()), wire),
                }
            }
            if let Some(wire) = netlist.port("clk_hbm_ref") {
                same(&format!("HBM_REF_CLK_{stack}"), wire);
                same(&format!("APB_{stack}_PCLK"), wire);
            }
        }
        for pin in hbm.pins.iter().filter(|pin| pin.name.ends_with("_ACLK")) {
            count += 1;
            if !netlist.bits(pin).iter().any(|bit| netlist.origin(*bit) >= FIRST) {
                let what = format!("{} of cl_hbm has no clock", pin.name);
                findings.push(design.finding(hbm.src, what));
            }
        }
    }
    if let [hbm] = instances.as_slice() {
        let asks = |port: &str| {
            ["AWVALID", "ARVALID"].iter().any(|pin| {
                let bits = netlist.pin(hbm, &format!("{port}_{pin}")).iter();
                bits.clone().any(|bit| design.constants.value(*bit) != Some(false))
            })
        };
        let axi = (0..32).map(|n| format!("AXI_{n:02}"));
        let axi = axi.filter(|port| asks(port)).map(|port| format!("{port}_ARESET_N"));
        for pin in axi.chain((0..2).map(|stack| format!("APB_{stack}_PRESET_N"))) {
            count += 1;
            if never_ends(design, hbm, &pin) {
                findings.push(design.finding(hbm.src, format!("{pin} of cl_hbm is always 0")));
            }
        }
    }
    check("hbm", "SHEF-NET-118", format!("{count} connections"), findings)
}

/// No cell that AWS refuses.
pub(crate) fn cells(design: &Design<'_>) -> Check {
    let boxes = design.netlist.cells.iter().filter(|cell| !cell.kind.starts_with('$'));
    let (mut findings, mut count) = (Vec::new(), 0);
    for cell in boxes {
        count += 1;
        if FORBIDDEN.iter().any(|kind| cell.kind.starts_with(kind)) {
            let path = if cell.path.is_empty() { cell.name } else { cell.path }.replace(' ', ".");
            findings.push(design.finding(cell.src, format!("{path} is a {}", cell.kind)));
        }
    }
    check("cells", "SHEF-NET-107", format!("{count} instances without content"), findings)
}

/// Whether a register of the main clock or a reset of the shell drives a bit, or its inverse.
fn resets(design: &Design<'_>, bit: Bit) -> bool {
    let netlist = design.netlist;
    let bit = match netlist.driver(bit) {
        Driver::Cell(c, ..) => {
            let cell = &netlist.cells[c as usize];
            match (cell.kind, netlist.pin(cell, "A")) {
                ("$not" | "$logic_not", [input]) => netlist.origin(*input),
                _ => bit,
            }
        }
        _ => bit,
    };
    if let Some((register, _)) = netlist.register(bit) {
        let main = netlist.port("clk_main_a0").and_then(|wire| design.clocks.known(wire.first));
        return main.is_some() && design.clocks.of_cell(register) == main;
    }
    let port = netlist.wire(bit).filter(|wire| wire.port.is_some()).map_or("", name);
    design.table.iter().any(|row| row.name == port && row.interface == "reset")
}

/// Clocks come from the shell and from clock cells that nothing can change.
pub(crate) fn clocks(design: &Design<'_>) -> Check {
    let netlist = design.netlist;
    let mut findings = Vec::new();
    for cell in &netlist.cells {
        if HOST_CLOCKS.contains(&cell.kind) {
            let what = format!("{} is a {}, whose clocks the instance sets", cell.name, cell.kind);
            findings.push(design.finding(cell.src, what));
        }
        let source = clock_source(cell.kind);
        if !source && !buffer(cell.kind) {
            continue;
        }
        for pin in cell.pins.iter().filter(|pin| pin.direction == Direction::Input) {
            let expected = match pin.name {
                "I" if !source => continue,
                clock if source && CLOCKS.contains(&clock) => {
                    "a clock of the shell or of a clock cell"
                }
                stop if source && STOPS.contains(&stop) => {
                    "a register of clk_main_a0 or a reset of the shell"
                }
                _ => "a constant",
            };
            let fits = |bit: Bit| match expected {
                _ if bit < FIRST => true,
                "a constant" => false,
                _ if STOPS.contains(&pin.name) => resets(design, bit),
                _ => design.clocks.is_clean(netlist, Clocks::root(netlist, bit)),
            };
            let mut bits = netlist.bits(pin).iter().map(|bit| netlist.origin(*bit));
            if let Some(bit) = bits.find(|bit| !fits(*bit)) {
                let (pin, found) = (pin.name, netlist.name(bit));
                let what = format!("{pin} of {} is {found}: expected {expected}", cell.name);
                findings.push(design.finding(cell.src, what));
            }
        }
    }
    for domain in design.clocks.domains.iter().skip(1) {
        if !domain.clean {
            let what =
                format!("the clock {} is no clock of the shell or of a clock cell", domain.name);
            findings.push(design.finding(netlist.place(domain.root), what));
        }
    }
    let names: Vec<&str> =
        design.clocks.domains.iter().skip(ASYNCHRONOUS + 1).map(|d| d.name.as_str()).collect();
    check("clocks", "SHEF-NET-108", names.join(", "), findings)
}

/// No loop of logic.
pub(crate) fn loops(design: &Design<'_>) -> Check {
    let netlist = design.netlist;
    let mut findings = Vec::new();
    for found in components(netlist) {
        let named: Vec<Bit> = {
            let mut bits: Vec<Bit> = found
                .iter()
                .copied()
                .filter(|bit| netlist.wire(*bit).is_some_and(|wire| !wire.path.is_empty()))
                .collect();
            bits.sort_unstable();
            bits
        };
        let Some(first) = named.first().or(found.first()) else { continue };
        let mut names: Vec<String> = named.iter().map(|bit| netlist.name(*bit)).collect();
        names.dedup();
        let more = names.len().saturating_sub(4);
        names.truncate(4);
        let mut what = format!("a loop of logic through {}", names.join(", "));
        if more > 0 {
            what = format!("{what} and {more} more");
        }
        findings.push(design.finding(netlist.place(*first), what));
    }
    check("loops", "SHEF-NET-109", format!("{} bits", netlist.len()), findings)
}

/// The sets of bits that depend on one another (Tarjan), without recursion.
fn components(netlist: &Netlist<'_>) -> Vec<Vec<Bit>> {
    const NONE: u32 = u32::MAX;
    let count = netlist.len();
    let (mut index, mut low) = (vec![NONE; count], vec![0_u32; count]);
    let mut on_stack = vec![false; count];
    let (mut next, mut stack, mut found) = (0, Vec::new(), Vec::new());
    // A bit, and where its sources begin in `sources`, after those of the bits before it, with the
    // next of them to visit.
    let mut work: Vec<(Bit, usize, usize)> = Vec::new();
    let mut sources: Vec<Bit> = Vec::new();
    for start in FIRST..u32::try_from(count).unwrap_or(NONE) {
        if index[start as usize] != NONE {
            continue;
        }
        let mut enter = Some(start);
        loop {
            if let Some(bit) = enter.take() {
                let at = bit as usize;
                (index[at], low[at], on_stack[at]) = (next, next, true);
                next += 1;
                stack.push(bit);
                work.push((bit, sources.len(), sources.len()));
                netlist.sources(bit, &mut |from| {
                    if from >= FIRST {
                        sources.push(from);
                    }
                });
            }
            let Some((bit, first, visited)) = work.last_mut() else { break };
            let at = *bit as usize;
            if let Some(from) = sources.get(*visited).copied() {
                *visited += 1;
                let to = from as usize;
                if index[to] == NONE {
                    enter = Some(from);
                } else if on_stack[to] {
                    low[at] = low[at].min(index[to]);
                }
                continue;
            }
            let (bit, own) = (*bit, sources[*first..].contains(bit));
            sources.truncate(*first);
            work.pop();
            if let Some((parent, ..)) = work.last() {
                let parent = *parent as usize;
                low[parent] = low[parent].min(low[at]);
            }
            if low[at] == index[at] {
                let from = stack.iter().rposition(|member| *member == bit).unwrap_or_default();
                for member in &stack[from..] {
                    on_stack[*member as usize] = false;
                }
                if stack.len() - from > 1 || own {
                    found.push(stack[from..].to_vec());
                }
                stack.truncate(from);
            }
        }
    }
    found
}

/// No latch.
pub(crate) fn latches(design: &Design<'_>) -> Check {
    let mut findings = Vec::new();
    let mut registers = 0;
    for cell in &design.netlist.cells {
        match Kind::of(cell) {
            Kind::Latch => {
                let bit = design.netlist.pin(cell, "Q").first().copied().unwrap_or(ZERO);
                let what = match cell.kind.starts_with('$') {
                    true => format!("{} is a latch", design.netlist.name(bit)),
                    false => format!("{} is a {}: a latch", cell.name, cell.kind),
                };
                findings.push(design.finding(cell.src, what));
            }
            Kind::Register => registers += design.netlist.pin(cell, "Q").len(),
            _ => {}
        }
    }
    check("latches", "SHEF-NET-110", format!("{registers} register bits"), findings)
}

/// The ids are constants that AWS takes and that its scripts do not spoil.
pub(crate) fn ids(design: &Design<'_>) -> Check {
    let (mut findings, mut looked) = (Vec::new(), Vec::new());
    for port in ["cl_sh_id0", "cl_sh_id1"] {
        let Some(wire) = design.netlist.port(port) else { continue };
        let mut add = |what: String| findings.push(design.finding(wire.src, what));
        let mut value = Some(0_u32);
        for (i, bit) in wire.bits().enumerate() {
            value = match design.netlist.origin(bit) {
                ZERO => value,
                ONE => value.map(|value| {
                    value | 1_u32.checked_shl(u32::try_from(i).unwrap_or(0)).unwrap_or(0)
                }),
                _ => None,
            };
        }
        let Some(value) = value else {
            add(format!("{port} is no constant"));
            continue;
        };
        looked.push(format!("{port} {value:08x}"));
        let (high, vendor) = (value >> 16, value & 0xffff);
        if matches!(value >> 28, 2 | 3) {
            add(format!(
                "{port} is {value:08x}: it begins with {}, which AWS's script strips",
                value >> 28
            ));
        }
        if port == "cl_sh_id0" && vendor == 0x1d0f && !(0xf000..=0xf0ff).contains(&high) {
            add(format!(
                "{port} is {value:08x}: expected a device of f000 to f0ff for vendor 1d0f"
            ));
        }
        if port == "cl_sh_id0" && (vendor == 0 || vendor == 0xffff) {
            add(format!("{port} is {value:08x}: it has no vendor"));
        }
    }
    check("ids", "SHEF-NET-111", looked.join(", "), findings)
}

/// No register has a name that AWS's constraints match.
pub(crate) fn names(design: &Design<'_>) -> Check {
    let registers = xdc::registers(design.netlist);
    let mut findings: Vec<Finding> = Vec::new();
    let mut last = String::new();
    for (name, src) in &registers {
        if let Some(pattern) = TAKEN.iter().find(|pattern| xdc::glob(pattern, name)) {
            // One for all bits.
            let register = name.split("_reg[").next().unwrap_or_default();
            if register != last {
                findings.push(design.finding(src, format!("{name} matches {pattern}")));
                register.clone_into(&mut last);
            }
        }
    }
    check("names", "SHEF-NET-115", format!("{} registers", registers.len()), findings)
}
