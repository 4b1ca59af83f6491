//! The values that each bit can have, through logic and registers.

use std::collections::VecDeque;

use crate::cell::Kind;
use crate::rtlil::{Bit, Cell, Direction, Driver, FIRST, Netlist, ONE};

/// A set of values: 1 for 0, 2 for 1, 3 for both.
type Values = u8;
const LOW: Values = 1;
const HIGH: Values = 2;
const BOTH: Values = 3;

/// The values of a bit that is known or not.
fn of(bit: Bit) -> Values {
    if bit == ONE { HIGH } else { LOW }
}

fn not(values: Values) -> Values {
    values >> 1 | (values & 1) << 1
}

fn and(a: Values, b: Values) -> Values {
    (a & b & HIGH) | ((a | b) & LOW)
}

fn or(a: Values, b: Values) -> Values {
    not(and(not(a), not(b)))
}

fn xor(a: Values, b: Values) -> Values {
    let same = a & b != 0;
    let other = a & not(b) != 0;
    (u8::from(same) * LOW) | (u8::from(other) * HIGH)
}

/// The bits that have one value only once a reset is over.
pub(crate) struct Constants<'n> {
    netlist: &'n Netlist<'n>,
    values: Vec<Values>,
}

impl<'n> Constants<'n> {
    /// Starts with no value anywhere, and adds values until nothing changes. A register without a
    /// value then has that of its power-up.
    pub(crate) fn of(netlist: &'n Netlist<'n>) -> Self {
        let values = vec![0; netlist.len()];
        let mut constants = Self { netlist, values };
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); netlist.len()];
        for (c, cell) in (0_u32..).zip(&netlist.cells) {
            if cell.kind == "$buf" || !matches!(Kind::of(cell), Kind::Logic | Kind::Register) {
                continue;
            }
            for pin in cell.pins.iter().filter(|pin| pin.direction == Direction::Input) {
                for bit in netlist.bits(pin) {
                    let own = &mut readers[netlist.origin(*bit) as usize];
                    if own.last() != Some(&c) {
                        own.push(c);
                    }
                }
            }
        }
        for bit in 0..u32::try_from(netlist.len()).unwrap_or(Bit::MAX) {
            constants.values[bit as usize] = match netlist.driver(bit) {
                _ if bit < FIRST => of(bit),
                Driver::Cell(c, ..) => {
                    let kind = Kind::of(&netlist.cells[c as usize]);
                    if matches!(kind, Kind::Logic | Kind::Register) { 0 } else { BOTH }
                }
                _ => BOTH,
            };
        }
        let all = 0..u32::try_from(netlist.cells.len()).unwrap_or(u32::MAX);
        constants.settle(all.clone().collect(), &readers);
        let mut changed = VecDeque::new();
        for c in all {
            let cell = &netlist.cells[c as usize];
            if Kind::of(cell) != Kind::Register {
                continue;
            }
            for (i, bit) in netlist.pin(cell, "Q").iter().enumerate() {
                if constants.values[*bit as usize] == 0 {
                    constants.values[*bit as usize] =
                        constants.reset(cell, i).filter(|values| *values != 0).unwrap_or(LOW);
                    changed.extend(&readers[*bit as usize]);
                }
            }
        }
        constants.settle(changed, &readers);
        constants
    }

    fn settle(&mut self, mut work: VecDeque<u32>, readers: &[Vec<u32>]) {
        let mut queued = vec![false; self.netlist.cells.len()];
        work.iter().for_each(|c| queued[*c as usize] = true);
        while let Some(c) = work.pop_front() {
            queued[c as usize] = false;
            let cell = &self.netlist.cells[c as usize];
            let kind = Kind::of(cell);
            if cell.kind == "$buf" || !matches!(kind, Kind::Logic | Kind::Register) {
                continue;
            }
            for pin in cell.pins.iter().filter(|pin| pin.direction != Direction::Input) {
                for (i, bit) in self.netlist.bits(pin).iter().enumerate() {
                    let old = self.values[*bit as usize];
                    if old == BOTH || *bit < FIRST {
                        continue;
                    }
                    let new = old
                        | match kind {
                            Kind::Register => self.next(cell, i) | self.reset(cell, i).unwrap_or(0),
                            _ => self.logic(cell, i),
                        };
                    if new != old {
                        self.values[*bit as usize] = new;
                        for reader in &readers[*bit as usize] {
                            if !std::mem::replace(&mut queued[*reader as usize], true) {
                                work.push_back(*reader);
                            }
                        }
                    }
                }
            }
        }
    }

    fn get(&self, bit: Bit) -> Values {
        self.values[self.netlist.origin(bit) as usize]
    }

    fn all(&self, cell: &Cell<'_>, pin: &str) -> Vec<Values> {
        self.netlist.pin(cell, pin).iter().map(|bit| self.get(*bit)).collect()
    }

    /// The data of a register.
    fn next(&self, cell: &Cell<'_>, i: usize) -> Values {
        match cell.kind {
            "$dff" | "$dffe" | "$adff" | "$adffe" | "$aldff" | "$aldffe" | "$sdff" | "$sdffe"
            | "$sdffce" => self.netlist.pin(cell, "D").get(i).map_or(BOTH, |bit| self.get(*bit)),
            _ => BOTH,
        }
    }

    /// The values of an output of logic; those of arithmetic are not computed.
    fn logic(&self, cell: &Cell<'_>, i: usize) -> Values {
        let [a, b, s] = ["A", "B", "S"].map(|pin| self.netlist.pin(cell, pin));
        let signed = cell.number("A_SIGNED") == 1;
        // A short operand extends with its sign.
        let bit = |bits: &[Bit]| {
            let extension = bits.last().filter(|_| signed).map_or(LOW, |bit| self.get(*bit));
            bits.get(i).map_or(extension, |bit| self.get(*bit))
        };
        let any = |pin: &str| self.all(cell, pin).into_iter().fold(LOW, or);
        let every = |pin: &str| self.all(cell, pin).into_iter().fold(HIGH, and);
        let low = |values: Values| if i == 0 { values } else { LOW };
        let equal = || {
            let width = a.len().max(b.len());
            let at = |bits: &[Bit], i: usize| {
                let extension = bits.last().filter(|_| signed).map_or(LOW, |bit| self.get(*bit));
                bits.get(i).map_or(extension, |bit| self.get(*bit))
            };
            (0..width).fold(HIGH, |all, i| and(all, not(xor(at(a, i), at(b, i)))))
        };
        match cell.kind {
            "$pos" => bit(a),
            "$not" => not(bit(a)),
            "$and" => and(bit(a), bit(b)),
            "$or" => or(bit(a), bit(b)),
            "$xor" => xor(bit(a), bit(b)),
            "$xnor" => not(xor(bit(a), bit(b))),
            "$reduce_and" => low(every("A")),
            "$reduce_or" | "$reduce_bool" => low(any("A")),
            "$reduce_xor" => low(self.all(cell, "A").into_iter().fold(LOW, xor)),
            "$reduce_xnor" => low(not(self.all(cell, "A").into_iter().fold(LOW, xor))),
            "$logic_not" => low(not(any("A"))),
            "$logic_and" => low(and(any("A"), any("B"))),
            "$logic_or" => low(or(any("A"), any("B"))),
            "$eq" | "$eqx" => low(equal()),
            "$ne" | "$nex" => low(not(equal())),
            "$lt" | "$gt" | "$le" | "$ge" if !signed && a.len().max(b.len()) <= 128 => {
                low(self.compared(cell.kind, a, b))
            }
            "$mux" | "$bwmux" => {
                let select = if cell.kind == "$mux" { s.first() } else { s.get(i) };
                let select = select.map_or(BOTH, |bit| self.get(*bit));
                let (a, b) = (bit(a), bit(b));
                let from = |values: Values, which| if select & which != 0 { values } else { 0 };
                from(a, LOW) | from(b, HIGH)
            }
            "$pmux" => {
                let selects: Vec<Values> = self.all(cell, "S");
                let other = selects.iter().all(|select| select & LOW != 0);
                let first = if other { bit(a) } else { 0 };
                let of = |n: usize| b.get(n * a.len() + i).map_or(BOTH, |bit| self.get(*bit));
                let chosen = selects.iter().enumerate().filter(|(_, s)| *s & HIGH != 0);
                chosen.fold(first, |all, (n, _)| all | of(n))
            }
            _ => BOTH,
        }
    }

    /// A comparison, by the least and the largest value of each side.
    fn compared(&self, kind: &str, a: &[Bit], b: &[Bit]) -> Values {
        let values = |bits: &[Bit]| bits.iter().map(|bit| self.get(*bit)).collect::<Vec<_>>();
        let (a, b) = (values(a), values(b));
        if a.iter().chain(&b).any(|values| *values == 0) {
            return 0;
        }
        let bound = |bits: &[Values], of: fn(Values) -> bool| {
            let bits = bits.iter().enumerate().filter(|(_, values)| of(**values));
            bits.fold(0_u128, |all, (i, _)| all | 1 << i)
        };
        let least = |bits: &[Values]| bound(bits, |values| values == HIGH);
        let most = |bits: &[Values]| bound(bits, |values| values & HIGH != 0);
        // a < b is the opposite of a >= b.
        let less = |a: &[Values], b: &[Values]| {
            (u8::from(least(a) < most(b)) * HIGH) | (u8::from(most(a) >= least(b)) * LOW)
        };
        match kind {
            "$lt" => less(&a, &b),
            "$ge" => not(less(&a, &b)),
            "$gt" => less(&b, &a),
            _ => not(less(&b, &a)),
        }
    }

    /// The constant that a bit is: 0 or 1. A register has the value of its data, for its reset
    /// ends.
    pub(crate) fn value(&self, bit: Bit) -> Option<bool> {
        let data = self.netlist.register(self.netlist.origin(bit));
        let data = data.map_or(0, |(c, i)| self.next(&self.netlist.cells[c as usize], i as usize));
        match if matches!(data, LOW | HIGH) { data } else { self.get(bit) } {
            BOTH => None,
            values => Some(values == HIGH),
        }
    }

    /// The value of a register's reset; `None`: it has no reset.
    fn reset(&self, cell: &Cell<'_>, i: usize) -> Option<Values> {
        let name = match cell.kind {
            "$adff" | "$adffe" => "ARST_VALUE",
            "$sdff" | "$sdffe" | "$sdffce" => "SRST_VALUE",
            "$aldff" | "$aldffe" => {
                return self.netlist.pin(cell, "AD").get(i).map(|bit| self.get(*bit));
            }
            _ => return None,
        };
        let value = cell.parameter(name).unwrap_or("0");
        let high = match value.split_once('\'') {
            Some((_, bits)) => bits.as_bytes().iter().rev().nth(i) == Some(&b'1'),
            None => value.parse::<i64>().is_ok_and(|value| value >> i.min(63) & 1 == 1),
        };
        Some(if high { HIGH } else { LOW })
    }
}
