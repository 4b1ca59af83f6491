//! The clock of every register, and the clocks of the registers behind every bit.

use shef_gen::f2::Port;

use crate::cell::{Kind, buffer, clock_pins, clock_source, distributed};
use crate::rtlil::{Bit, Cell, Driver, FIRST, Netlist};

/// A set of clock domains, one bit each.
pub(crate) type Domains = u64;

/// Domain of signals without a known clock.
pub(crate) const ASYNCHRONOUS: usize = 0;
/// Further domains share this one.
const LAST: usize = 63;

/// The clock of a domain, before buffers and dividers: domains of one root are related.
#[derive(Debug)]
pub(crate) struct Domain {
    /// The port, output of a cell or net.
    pub root: Bit,
    pub name: String,
    /// Whether a clock of the shell or a clock cell drives it, not logic.
    pub clean: bool,
}

/// The clocks of a design.
#[derive(Debug)]
pub(crate) struct Clocks {
    pub domains: Vec<Domain>,
    /// Of each cell: the domain of its clock.
    of_cell: Vec<Option<u8>>,
    /// Of each bit: the domains of the registers and ports that it depends on.
    behind: Vec<Domains>,
    /// Of each memory, by its cells' `MEMID`: the domains that write it.
    written: Vec<Domains>,
    /// Of each port of the top module: its domain.
    ports: Vec<(Bit, u32, usize)>,
    /// The clocks of the shell.
    shell: Vec<Bit>,
}

/// The pin of a cell without content that is the clock of one of its pins; `None`: the pin has no
/// clock. A block memory has two, of which port A is the first.
pub(crate) fn clock_of_pin<'c>(cell: &'c Cell<'_>, pin: &str) -> Option<&'c str> {
    match cell.kind {
        "sh_ddr" if pin.contains("stat") => Some("stat_clk"),
        "sh_ddr" if pin.starts_with("cl_sh_ddr_axi_") || pin == "sh_cl_ddr_is_ready" => Some("clk"),
        "sh_ddr" => None,
        "cl_hbm" if pin.starts_with("MON_") || pin.ends_with("PRESET_N") => None,
        "cl_hbm" => {
            // Of a port with two digits, or of a stack with one.
            let digits = pin.trim_start_matches(|c: char| !c.is_ascii_digit());
            let number = digits.split('_').next().unwrap_or_default();
            let axi = pin.starts_with("AXI_");
            let is_clock = |name: &str| {
                let name = name.strip_prefix(if axi { "AXI_" } else { "APB_" });
                let name = name.and_then(|name| name.strip_prefix(number));
                name == Some(if axi { "_ACLK" } else { "_PCLK" })
            };
            cell.pins.iter().find(|pin| is_clock(pin.name)).map(|pin| pin.name)
        }
        kind if buffer(kind) => (pin == "CE").then_some("I"),
        kind if clock_source(kind) => None,
        kind if kind.starts_with("RAMB") => {
            let names = clock_pins(cell).map(|clock| clock.name);
            let port_b = ["ADDRB", "DINB", "DINPB", "DOUTB", "DOUTPB", "ENB", "REGCEB", "WEB"];
            let b = port_b.iter().any(|name| pin.starts_with(name)) || pin.ends_with('B');
            names.into_iter().find(|clock| clock.starts_with("CLKB") == b)
        }
        _ => clock_pins(cell).next().map(|clock| clock.name),
    }
}

impl Clocks {
    /// `table`: the clocks of the top module's ports.
    pub(crate) fn of(netlist: &Netlist<'_>, table: &[Port]) -> Self {
        let nothing = Domain { root: 0, name: "asynchronous".to_owned(), clean: true };
        let mut clocks = Self {
            domains: vec![nothing],
            of_cell: vec![None; netlist.cells.len()],
            behind: vec![0; netlist.len()],
            written: vec![0; netlist.memories.len()],
            ports: Vec::new(),
            shell: Vec::new(),
        };
        let of_shell = table.iter().filter(|port| port.interface == "clock");
        let of_shell = of_shell.filter_map(|port| netlist.port(&port.name));
        clocks.shell.extend(of_shell.map(|wire| wire.first));
        for (c, cell) in netlist.cells.iter().enumerate() {
            if let [clock] = netlist.pin(cell, "CLK")
                && cell.kind.starts_with('$')
                && Kind::of(cell) != Kind::Read
            {
                let domain = clocks.domain(netlist, *clock);
                clocks.of_cell[c] = u8::try_from(domain).ok();
                if Kind::of(cell) == Kind::Write
                    && let Some(memory) = cell.memory
                {
                    clocks.written[memory] |= 1 << domain;
                }
            }
            let own = [buffer(cell.kind), clock_source(cell.kind), cell.kind == "sh_ddr"];
            if Kind::of(cell) == Kind::Box && own == [false; 3] {
                for pin in clock_pins(cell).filter(|pin| netlist.bits(pin).len() == 1) {
                    let bit = netlist.origin(netlist.bits(pin)[0]);
                    if bit >= FIRST {
                        clocks.domain(netlist, bit);
                    }
                }
            }
        }
        for wire in netlist.wires.iter().filter(|wire| wire.port.is_some()) {
            let row = table.iter().find(|port| wire.name.get(1..) == Some(port.name.as_str()));
            let clock = row.map_or("", |port| port.clock.split(' ').next().unwrap_or_default());
            let domain = match netlist.port(clock) {
                Some(clock) => clocks.domain(netlist, clock.first),
                None => ASYNCHRONOUS,
            };
            clocks.ports.push((wire.first, wire.width, domain));
        }
        clocks.propagate(netlist);
        clocks
    }

    /// The bit that a clock comes from, through buffers, dividers and inverters.
    pub(crate) fn root(netlist: &Netlist<'_>, clock: Bit) -> Bit {
        let mut bit = netlist.origin(clock);
        for _ in 0..1000 {
            let Driver::Cell(cell, ..) = netlist.driver(bit) else { break };
            let cell = &netlist.cells[cell as usize];
            let input = match cell.kind {
                kind if buffer(kind) => netlist.pin(cell, "I"),
                "$not" => netlist.pin(cell, "A"),
                _ => break,
            };
            let [input] = input else { break };
            bit = netlist.origin(*input);
        }
        bit
    }

    /// The domain of a clock net.
    pub(crate) fn domain(&mut self, netlist: &Netlist<'_>, clock: Bit) -> usize {
        let root = Self::root(netlist, clock);
        if let Some(known) = self.known(root) {
            return known;
        }
        if self.domains.len() <= LAST {
            let name = match netlist.driver(root) {
                Driver::Cell(cell, pin, _)
                    if Kind::of(&netlist.cells[cell as usize]) == Kind::Box =>
                {
                    let cell = &netlist.cells[cell as usize];
                    format!("{}.{}", cell.name, cell.pins[usize::from(pin)].name)
                }
                _ => netlist.name(root),
            };
            let clean = self.is_clean(netlist, root);
            self.domains.push(Domain { root, name, clean });
        }
        self.domains.len() - 1
    }

    /// Whether a root is a clock of the shell or an output of a clock cell.
    pub(crate) fn is_clean(&self, netlist: &Netlist<'_>, root: Bit) -> bool {
        match netlist.driver(root) {
            Driver::Port => self.shell.contains(&root),
            Driver::Cell(cell, pin, _) => {
                let cell = &netlist.cells[cell as usize];
                clock_source(cell.kind) && cell.pins[usize::from(pin)].name.starts_with("CLK")
            }
            _ => false,
        }
    }

    /// The domain with this root.
    pub(crate) fn known(&self, root: Bit) -> Option<usize> {
        self.domains.iter().skip(1).position(|domain| domain.root == root).map(|i| i + 1)
    }

    /// The domain of a register or memory port.
    pub(crate) fn of_cell(&self, cell: u32) -> Option<usize> {
        self.of_cell[cell as usize].map(usize::from)
    }

    /// The domain of a port of the top module.
    pub(crate) fn of_port(&self, bit: Bit) -> usize {
        let found =
            self.ports.iter().find(|(first, width, _)| (*first..first + width).contains(&bit));
        found.map_or(ASYNCHRONOUS, |(.., domain)| *domain)
    }

    /// The domains that write a memory.
    pub(crate) fn written(&self, memory: usize) -> Domains {
        self.written[memory]
    }

    /// The domains of the registers, memories and ports that a bit depends on.
    pub(crate) fn behind(&self, bit: Bit) -> Domains {
        self.behind.get(bit as usize).copied().unwrap_or(0)
    }

    /// The domains of a bit that is not the output of logic; `None`: it is.
    pub(crate) fn leaf(&self, netlist: &Netlist<'_>, bit: Bit) -> Option<Domains> {
        match netlist.driver(bit) {
            Driver::Nothing => Some(0),
            Driver::Port => Some(1 << self.of_port(bit)),
            Driver::Bit(_) => None,
            Driver::Cell(c, pin, _) => {
                let cell = &netlist.cells[c as usize];
                match Kind::of(cell) {
                    Kind::Register | Kind::ClockedRead => {
                        Some(self.of_cell(c).map_or(0, |domain| 1 << domain))
                    }
                    Kind::Box if buffer(cell.kind) || distributed(cell.kind) => None,
                    Kind::Box => Some(1 << self.of_pin(netlist, cell, pin)),
                    Kind::Logic | Kind::Latch | Kind::Read => None,
                    Kind::Write | Kind::Init => Some(0),
                }
            }
        }
    }

    /// The domain of a pin of a cell without content.
    fn of_pin(&self, netlist: &Netlist<'_>, cell: &Cell<'_>, pin: u16) -> usize {
        let clock = clock_of_pin(cell, cell.pins[usize::from(pin)].name);
        let root = |clock| match netlist.pin(cell, clock) {
            [clock] => self.known(Self::root(netlist, *clock)),
            _ => None,
        };
        clock.and_then(root).unwrap_or(ASYNCHRONOUS)
    }

    /// Computes the domains behind every bit, depth first.
    fn propagate(&mut self, netlist: &Netlist<'_>) {
        // 0: not visited, 1: its inputs are being visited, 2: done.
        let mut state = vec![0_u8; netlist.len()];
        let mut stack = Vec::new();
        for start in FIRST..u32::try_from(netlist.len()).unwrap_or(Bit::MAX) {
            stack.push(start);
            while let Some(bit) = stack.last().copied() {
                let at = bit as usize;
                match state[at] {
                    0 => {
                        if let Some(domains) = self.leaf(netlist, bit) {
                            self.behind[at] = domains;
                            state[at] = 2;
                            stack.pop();
                            continue;
                        }
                        state[at] = 1;
                        netlist.sources(bit, &mut |from| {
                            if from >= FIRST && state[from as usize] == 0 {
                                stack.push(from);
                            }
                        });
                    }
                    1 => {
                        let mut domains = self.memory_behind(netlist, bit);
                        netlist.sources(bit, &mut |from| domains |= self.behind[from as usize]);
                        self.behind[at] = domains;
                        state[at] = 2;
                        stack.pop();
                    }
                    _ => drop(stack.pop()),
                }
            }
        }
    }

    /// The domains that write the memory that a bit is read from without a clock.
    pub(crate) fn memory_behind(&self, netlist: &Netlist<'_>, bit: Bit) -> Domains {
        let vendors = || match netlist.driver(bit) {
            Driver::Cell(cell, pin, _) => {
                let cell = &netlist.cells[cell as usize];
                let own = distributed(cell.kind) && Kind::of(cell) == Kind::Box;
                if own { 1 << self.of_pin(netlist, cell, pin) } else { 0 }
            }
            _ => 0,
        };
        read_memory(netlist, bit).map_or_else(vendors, |memory| self.written[memory])
    }
}

/// The memory that a bit is read from, without a clock.
pub(crate) fn read_memory(netlist: &Netlist<'_>, bit: Bit) -> Option<usize> {
    let Driver::Cell(cell, ..) = netlist.driver(bit) else { return None };
    let cell = &netlist.cells[cell as usize];
    cell.memory.filter(|_| Kind::of(cell) == Kind::Read)
}
