//! Which bits a cell's output depends on, and what a register consists of.

use crate::rtlil::{Bit, Cell, Direction, Driver, Netlist, Pin};

/// How a cell stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Outputs follow inputs: an operator, a vendor's cell of logic, or a module without content and
    /// without a clock.
    Logic,
    /// A register with a clock.
    Register,
    /// A latch.
    Latch,
    /// Reads a memory, without a clock.
    Read,
    /// Reads a memory at a clock edge.
    ClockedRead,
    /// Writes a memory.
    Write,
    /// The initial content of a memory.
    Init,
    /// An instance of a module without content, with a clock.
    Box,
}

impl Kind {
    pub(crate) fn of(cell: &Cell<'_>) -> Self {
        let kind = cell.kind;
        if !kind.starts_with('$') {
            let unregistered = kind.starts_with("DSP") && cell.parameter("PREG").is_some();
            return match () {
                () if buffer(kind) || clock_source(kind) => Self::Box,
                () if kind.starts_with("LD") && vendors(kind) => Self::Latch,
                () if unregistered && cell.number("PREG") == 0 => Self::Logic,
                () if clock_pins(cell).next().is_none() => Self::Logic,
                () => Self::Box,
            };
        }
        match kind {
            "$dlatch" | "$adlatch" | "$dlatchsr" | "$sr" => Self::Latch,
            "$memrd_v2" | "$memrd" if cell.number("CLK_ENABLE") == 0 => Self::Read,
            "$memrd_v2" | "$memrd" => Self::ClockedRead,
            "$memwr_v2" | "$memwr" => Self::Write,
            "$meminit" | "$meminit_v2" => Self::Init,
            "$dff" | "$dffe" | "$adff" | "$adffe" | "$aldff" | "$aldffe" | "$sdff" | "$sdffe"
            | "$sdffce" | "$dffsr" | "$dffsre" | "$ff" => Self::Register,
            _ => Self::Logic,
        }
    }
}

/// Pins of a register that act without its clock.
pub(crate) const ASYNCHRONOUS: [&str; 4] = ["ALOAD", "ARST", "SET", "CLR"];

impl Netlist<'_> {
    /// Calls `f` with every bit that bit `i` of an output depends on without a register between.
    pub(crate) fn inputs(&self, cell: &Cell<'_>, i: u32, f: &mut impl FnMut(Bit)) {
        match Kind::of(cell) {
            Kind::Logic => self.operands(cell, i as usize, f),
            Kind::Read => self.pin(cell, "ADDR").iter().for_each(|bit| f(*bit)),
            Kind::Latch => {
                let all = cell.pins.iter().filter(|p| p.direction == Direction::Input);
                for pin in all {
                    let bits = self.bits(pin);
                    match pin.name {
                        "D" => bits.get(i as usize).into_iter().for_each(|bit| f(*bit)),
                        _ => bits.iter().for_each(|bit| f(*bit)),
                    }
                }
            }
            Kind::Box if buffer(cell.kind) => self.pin(cell, "I").iter().for_each(|bit| f(*bit)),
            Kind::Box if distributed(cell.kind) => {
                let address = |pin: &&Pin<'_>| {
                    pin.direction == Direction::Input
                        && ["A", "DPRA", "RADR"].iter().any(|name| pin.name.starts_with(name))
                };
                let bits = cell.pins.iter().filter(address).flat_map(|pin| self.bits(pin));
                bits.for_each(|bit| f(*bit));
            }
            _ => {}
        }
    }

    fn operands(&self, cell: &Cell<'_>, i: usize, f: &mut impl FnMut(Bit)) {
        let [a, b, s] = ["A", "B", "S"].map(|name| self.pin(cell, name));
        let signed = cell.number("A_SIGNED") == 1;
        // A short operand extends with its sign.
        let extended = |bits: &[Bit]| {
            let sign = bits.last().filter(|_| signed).copied();
            bits.get(i).copied().or(sign)
        };
        let mut all = |bits: &[Bit]| bits.iter().for_each(|bit| f(*bit));
        match cell.kind {
            "$not" | "$pos" | "$buf" | "$and" | "$or" | "$xor" | "$xnor" => {
                all(extended(a).as_slice());
                all(extended(b).as_slice());
            }
            "$mux" => {
                all(a.get(i).copied().as_slice());
                all(b.get(i).copied().as_slice());
                all(s);
            }
            "$pmux" => {
                let width = a.len().max(1);
                all(a.get(i).copied().as_slice());
                b.iter().skip(i).step_by(width).for_each(|bit| all(&[*bit]));
                all(s);
            }
            "$bwmux" => {
                [a, b, s].iter().for_each(|bits| all(bits.get(i).copied().as_slice()));
            }
            "$bmux" => {
                let width = cell.number("WIDTH").max(1) as usize;
                a.iter().skip(i).step_by(width).for_each(|bit| all(&[*bit]));
                all(s);
            }
            "$demux" => {
                let width = a.len().max(1);
                all(a.get(i % width).copied().as_slice());
                all(s);
            }
            "$tribuf" => {
                all(a.get(i).copied().as_slice());
                all(self.pin(cell, "EN"));
            }
            "$add" | "$sub" | "$neg" => {
                [a, b].iter().for_each(|bits| all(&bits[..bits.len().min(i + 1)]));
            }
            "$shl" | "$sshl" => {
                all(&a[..a.len().min(i + 1)]);
                all(b);
            }
            "$shr" => {
                all(&a[a.len().min(i)..]);
                all(b);
            }
            _ => {
                for pin in cell.pins.iter().filter(|pin| pin.direction == Direction::Input) {
                    all(self.bits(pin));
                }
            }
        }
    }

    /// Calls `f` with every bit that a bit depends on directly.
    pub(crate) fn sources(&self, bit: Bit, f: &mut impl FnMut(Bit)) {
        match self.driver(bit) {
            Driver::Bit(from) => f(from),
            Driver::Cell(cell, _, i) => self.inputs(&self.cells[cell as usize], i, f),
            Driver::Nothing | Driver::Port => {}
        }
    }

    /// Whether the register of a bit has the attribute ASYNC_REG.
    pub(crate) fn is_async_reg(&self, bit: Bit) -> bool {
        self.wire(bit).and_then(|wire| wire.attribute("ASYNC_REG")).is_some_and(is_set)
    }

    /// The register or latch that a bit is an output of, with the bit's place in it.
    pub(crate) fn register(&self, bit: Bit) -> Option<(u32, u32)> {
        match self.driver(bit) {
            Driver::Cell(cell, _, i)
                if matches!(Kind::of(&self.cells[cell as usize]), Kind::Register) =>
            {
                Some((cell, i))
            }
            _ => None,
        }
    }
}

/// Whether Vivado takes the value of an attribute for true.
pub(crate) fn is_set(value: &str) -> bool {
    let one = value.split_once('\'').map_or(value, |(_, bits)| bits.trim_start_matches('0'));
    one == "1" || ["TRUE", "YES"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether a cell passes its pin `I` on to `O`.
pub(crate) fn buffer(kind: &str) -> bool {
    ["BUFG", "BUFGCE", "BUFGCE_DIV", "BUFG_GT", "BUFG_PS", "BUFGCE_1", "IBUF", "IBUFG", "OBUF"]
        .contains(&kind)
}

/// Whether a cell makes clocks.
pub(crate) fn clock_source(kind: &str) -> bool {
    kind.starts_with("MMCM") || kind.starts_with("PLL")
}

/// Whether a name is one of the vendor's library.
fn vendors(kind: &str) -> bool {
    kind.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_')
}

/// Whether a cell is memory of LUTs: its address acts without a clock.
pub(crate) fn distributed(kind: &str) -> bool {
    vendors(kind)
        && (kind.starts_with("SRL") || kind.starts_with("RAM") && !kind.starts_with("RAMB"))
}

/// The inputs of a cell without content that are clocks, by their names.
pub(crate) fn clock_pins<'c>(cell: &'c Cell<'_>) -> impl Iterator<Item = &'c Pin<'c>> {
    // `C` of a DSP is an operand.
    let is_clock = |name: &str| {
        let name = name.to_ascii_lowercase();
        name == "c" && !cell.kind.starts_with("DSP")
            || name.contains("clk") && !name.contains("clken")
            || name.contains("clock")
    };
    let inputs = cell.pins.iter().filter(|pin| pin.direction == Direction::Input);
    inputs.filter(move |pin| is_clock(pin.name))
}

#[cfg(test)]
mod tests {
    use super::is_set;

    #[test]
    fn attributes_are_set_by_true_yes_or_one() {
        assert!(["TRUE", "true", "Yes", "1", "1'1", "4'0001"].into_iter().all(is_set));
        let not = ["", "0", "no", "NO", "OFF", "off", "FALSE", "1'0", "2'00", "2'10", "1'x", "2"];
        assert!(!not.into_iter().any(is_set));
    }
}
