//! Interrupts: 16 lines of the CL, the registers of BAR 2 that give them MSI-X vectors, and the
//! MSI-X table.

use super::rules::{Record, Rule};
use crate::agent::Rng;
use crate::{Port, Result, Sim};
use std::collections::VecDeque;

/// Lines of the CL.
const LINES: usize = 16;
/// Entries of the MSI-X table.
const VECTORS: usize = 33;
/// Most cycles from a request to its ack.
const MOST_DELAY: u64 = 64;

/// Offsets in BAR 2.
mod bar2 {
    pub const ID: u32 = 0x2000;
    pub const ENABLE: u32 = 0x2004;
    pub const ENABLE_SET: u32 = 0x2008;
    pub const ENABLE_CLEAR: u32 = 0x200c;
    pub const LINE_VECTORS: u32 = 0x2080;
    pub const TABLE: u32 = 0x8000;
    pub const PENDING: u32 = 0x8fe0;
}

/// How the function delivers MSI-X.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Msix {
    /// Not enabled: a vector becomes pending.
    #[default]
    Off,
    /// Enabled, by the table in BAR 2 as the driver wrote it.
    Table,
    /// Enabled, with a table that the host's VFIO keeps: no vector is masked here.
    Eventfds,
}

/// An interrupt that reached the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// The line of the CL.
    pub line: u8,
    /// Vector.
    pub vector: u8,
    /// Address of the message, as the table has it.
    pub address: u64,
    /// Data of the message.
    pub data: u32,
}

/// A line.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    /// The request was high before the last edge.
    was: bool,
    /// Requested, and no ack yet.
    open: bool,
    /// The request was high for more than one clock.
    long: bool,
    /// Cycle of the ack.
    at: u64,
}

/// The lines and the registers.
pub(crate) struct Irq {
    req: Port,
    ack: Port,
    lines: [Line; LINES],
    any_open: bool,
    last: u64,
    enable: u16,
    vectors: [u8; LINES],
    table: [[u32; 4]; VECTORS],
    pending: u64,
    pub msix: Msix,
    /// Lines that the host gave to the CL.
    pub given: u16,
    arrived: VecDeque<Interrupt>,
    rng: Rng,
}

impl Irq {
    pub fn new(sim: &Sim, seed: u64) -> Result<Self> {
        let mut irq = Self {
            req: sim.port_of("cl_sh_apppf_irq_req", 16)?,
            ack: sim.port_of("sh_cl_apppf_irq_ack", 16)?,
            lines: [Line::default(); LINES],
            any_open: false,
            last: 0,
            enable: 0,
            vectors: [0; LINES],
            table: [[0; 4]; VECTORS],
            pending: 0,
            msix: Msix::Off,
            given: u16::MAX,
            arrived: VecDeque::new(),
            rng: Rng::new(seed ^ 0x149),
        };
        irq.reset();
        Ok(irq)
    }

    /// The function is reset: registers and table.
    pub fn reset(&mut self) {
        (self.enable, self.vectors, self.pending) = (0, [0; LINES], 0);
        // Every vector is masked.
        self.table = [[0, 0, 0, 1]; VECTORS];
        self.msix = Msix::Off;
    }

    /// The CL is reset: requests are forgotten.
    pub fn forget(&mut self) {
        self.lines = [Line::default(); LINES];
        self.any_open = false;
        self.last = 0;
    }

    /// The next interrupt that reached the host.
    pub fn take(&mut self) -> Option<Interrupt> {
        self.arrived.pop_front()
    }

    /// A register of BAR 2.
    pub fn read(&self, offset: u32) -> u32 {
        let offset = offset & !3;
        match offset {
            bar2::ID => 0x1fc2_0006,
            bar2::ENABLE => u32::from(self.enable),
            bar2::LINE_VECTORS..0x2090 => {
                let k = (offset - bar2::LINE_VECTORS) as usize;
                u32::from_le_bytes([0, 1, 2, 3].map(|n| self.vectors[k + n]))
            }
            bar2::PENDING => self.pending as u32,
            o if o == bar2::PENDING + 4 => (self.pending >> 32) as u32,
            _ => self.entry(offset).map_or(0, |(k, word)| self.table[k][word]),
        }
    }

    /// Writes a register of BAR 2.
    pub fn write(&mut self, offset: u32, value: u32) {
        let offset = offset & !3;
        match offset {
            bar2::ENABLE => self.enable = value as u16,
            bar2::ENABLE_SET => self.enable |= value as u16,
            bar2::ENABLE_CLEAR => self.enable &= !(value as u16),
            bar2::LINE_VECTORS..0x2090 => {
                let k = (offset - bar2::LINE_VECTORS) as usize;
                for (n, byte) in value.to_le_bytes().into_iter().enumerate() {
                    self.vectors[k + n] = byte & 0x1f;
                }
            }
            _ => {
                if let Some((k, word)) = self.entry(offset) {
                    self.table[k][word] = value;
                    self.unmasked();
                }
            }
        }
    }

    /// Entry and word of the table.
    fn entry(&self, offset: u32) -> Option<(usize, usize)> {
        let word = (offset.checked_sub(bar2::TABLE)? / 4) as usize;
        (word < 4 * VECTORS).then_some((word / 4, word % 4))
    }

    /// Delivers pending vectors that are no longer masked.
    pub fn unmasked(&mut self) {
        for vector in 0..VECTORS {
            if self.pending >> vector & 1 == 1 && self.carries(vector) {
                self.pending &= !(1 << vector);
                self.deliver(None, vector);
            }
        }
    }

    fn carries(&self, vector: usize) -> bool {
        match self.msix {
            Msix::Off => false,
            Msix::Table => self.table[vector][3] & 1 == 0,
            Msix::Eventfds => true,
        }
    }

    fn deliver(&mut self, line: Option<usize>, vector: usize) {
        let [low, high, data, _] = self.table[vector];
        let line = line.or_else(|| self.vectors.iter().position(|v| usize::from(*v) == vector));
        self.arrived.push_back(Interrupt {
            line: line.unwrap_or(0) as u8,
            vector: vector as u8,
            address: u64::from(high) << 32 | u64::from(low),
            data,
        });
    }

    fn raise(&mut self, line: usize) {
        let vector = usize::from(self.vectors[line]).min(VECTORS - 1);
        if self.carries(vector) {
            self.deliver(Some(line), vector);
        } else {
            self.pending |= 1 << vector;
        }
    }

    /// Before the edge of cycle `to.cycle`.
    pub fn sample(&mut self, sim: &Sim, to: &mut Record) {
        let req = sim.get(self.req);
        if req == 0 && self.last == 0 {
            return;
        }
        self.last = req;
        for k in 0..LINES {
            let now = req >> k & 1 == 1;
            let line = self.lines[k];
            self.lines[k].was = now;
            if !now {
                continue;
            }
            let signal = || format!("cl_sh_apppf_irq_req[{k}]");
            if to.reset {
                to.broken(Rule::ResetValid, signal(), "1 in reset");
            } else if line.was {
                if line.open && !line.long {
                    to.broken(Rule::IrqPulse, signal(), "1 in a second cycle");
                    self.lines[k].long = true;
                    self.raise(k);
                }
            } else if line.open {
                to.broken(Rule::IrqRepeat, signal(), "1 before the ack");
            } else {
                if self.given >> k & 1 == 0 {
                    to.broken(Rule::IrqVector, signal(), "1 on a line that the CL was not given");
                }
                let at = to.cycle + 2 + self.rng.below(MOST_DELAY);
                self.lines[k] = Line { was: true, open: true, long: false, at };
                self.any_open = true;
            }
        }
    }

    /// After the edge of cycle `now`: a line that is enabled is acknowledged.
    pub fn drive(&mut self, sim: &mut Sim, now: u64) {
        if !self.any_open && sim.get(self.ack) == 0 {
            return;
        }
        let mut ack = 0;
        self.any_open = false;
        for k in 0..LINES {
            let line = self.lines[k];
            if line.open && line.at <= now && self.enable >> k & 1 == 1 {
                self.lines[k].open = false;
                ack |= 1 << k;
                self.raise(k);
            }
            self.any_open |= self.lines[k].open;
        }
        sim.set(self.ack, ack);
    }
}
