//! A record of what passes the ports of a design: the accelerator's reads as the shell observes them,
//! the bursts at the memory ports with the data of writes, and the accelerator's interrupt.

use crate::agent::Agent;
use crate::{Port, Sim};
use std::fmt;

/// Events that are kept; the others count in the digest only.
const KEPT: usize = 1 << 18;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortEventKind {
    /// The accelerator's read request is accepted.
    AcceleratorRead,
    /// The accelerator receives a beat.
    AcceleratorBeat,
    /// A read request to memory is accepted.
    MemoryRead,
    /// A write request to memory is accepted.
    MemoryWrite,
    /// Memory receives a beat.
    MemoryBeat,
    /// The accelerator's interrupt changes; `value` is its new level.
    Interrupt,
}

/// A handshake at a port, or a change of the interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortEvent {
    /// Cycle since the trace began.
    pub cycle: u64,
    /// The kind.
    pub kind: PortEventKind,
    /// Number of the port, among the accelerator's or the memory's.
    pub port: u8,
    /// Of a request, the byte address; of a beat, a digest of its data, strobes or response.
    pub value: u64,
    /// Of a request, its beats; of a beat, whether it is the last.
    pub beats: u16,
    /// AXI id; 0 of a beat that memory receives.
    pub id: u8,
}

impl fmt::Display for PortEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cycle, kind, port, value, beats, id } = self;
        match kind {
            PortEventKind::AcceleratorRead => write!(
                f,
                "read of {beats} beat(s) at {value:#x}, id {id:#04x}, at port {port} of the accelerator"
            )?,
            PortEventKind::AcceleratorBeat => {
                write!(f, "read beat of id {id:#04x} at port {port} of the accelerator")?;
            }
            PortEventKind::MemoryRead => {
                write!(f, "read of {beats} beat(s) at {value:#x} at memory port {port}")?;
            }
            PortEventKind::MemoryWrite => {
                write!(f, "write of {beats} beat(s) at {value:#x} at memory port {port}")?;
            }
            PortEventKind::MemoryBeat => {
                write!(f, "beat with digest {value:016x} written at memory port {port}")?;
            }
            PortEventKind::Interrupt => write!(f, "irq_o is {value}")?,
        }
        write!(f, ", cycle {cycle}")
    }
}

/// What a trace recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traced {
    /// The first events, in order.
    pub events: Vec<PortEvent>,
    /// Number of all events.
    pub count: u64,
    /// Digest of all events, for comparison with an equal run.
    pub digest: u64,
}

/// The ports of a memory port or an accelerator port.
struct Channels {
    number: u8,
    /// Valid, ready, id, address, length.
    ar: Option<[Port; 5]>,
    aw: Option<[Port; 5]>,
    /// Valid, ready, data, strobes, last.
    w: Option<[Port; 5]>,
    /// Observation outputs: valid, id, address, length.
    read: Option<[Port; 4]>,
    /// Valid, id, response, last.
    beat: Option<[Port; 4]>,
}

fn all<const N: usize>(sim: &Sim, names: [String; N]) -> Option<[Port; N]> {
    let found: Option<Vec<Port>> = names.iter().map(|name| sim.find(name)).collect();
    found?.try_into().ok()
}

/// Records handshakes while it is on.
pub struct PortTrace {
    channels: Vec<Channels>,
    irq: Option<Port>,
    /// The level before.
    raised: u64,
    begin: Option<u64>,
    traced: Traced,
}

fn mix(digest: u64, value: u64) -> u64 {
    let mixed = (digest ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

impl PortTrace {
    /// Binds to the ports of an instance; it is off.
    #[must_use]
    pub fn new(sim: &Sim) -> Self {
        let request = |k: u8, c: &str| {
            all(sim, ["valid", "ready", "id", "addr", "len"].map(|s| format!("mem{k}_{c}{s}")))
        };
        let channels = (0..4).map(|k| Channels {
            number: k,
            ar: request(k, "ar"),
            aw: request(k, "aw"),
            w: all(sim, ["valid", "ready", "data", "strb", "last"].map(|s| format!("mem{k}_w{s}"))),
            read: all(sim, ["arvalid", "arid", "araddr", "arlen"].map(|s| format!("obs{k}_{s}"))),
            beat: all(sim, ["rvalid", "rid", "rresp", "rlast"].map(|s| format!("obs{k}_{s}"))),
        });
        Self {
            channels: channels.collect(),
            irq: sim.find("seenr_irq"),
            raised: 0,
            begin: None,
            traced: Traced::default(),
        }
    }

    /// Records from the next cycle on, anew.
    pub fn start(&mut self, sim: &Sim) {
        self.begin = Some(sim.cycles());
        self.traced = Traced::default();
        self.raised = 0;
    }

    /// Stops, and returns the record.
    pub fn stop(&mut self) -> Traced {
        self.begin = None;
        std::mem::take(&mut self.traced)
    }
}

impl Agent for PortTrace {
    #[expect(clippy::cast_possible_truncation, reason = "ports of known width")]
    fn sample(&mut self, sim: &Sim) {
        use PortEventKind as Kind;
        let Some(begin) = self.begin else { return };
        let cycle = sim.cycles() - begin;
        let traced = &mut self.traced;
        let mut add = |event: PortEvent| {
            let PortEvent { cycle, kind, port, value, beats, id } = event;
            let rest = u64::from(beats) << 24 | u64::from(id) << 16 | u64::from(port) << 8;
            for word in [cycle, value, rest | kind as u64] {
                traced.digest = mix(traced.digest, word);
            }
            traced.count += 1;
            if traced.events.len() < KEPT {
                traced.events.push(event);
            }
        };
        if let Some(level) = self.irq.map(|irq| sim.get(irq))
            && level != self.raised
        {
            self.raised = level;
            let kind = Kind::Interrupt;
            add(PortEvent { cycle, kind, port: 0, value: level, beats: 0, id: 0 });
        }
        for c in &self.channels {
            let port = c.number;
            if let Some([valid, id, addr, len]) = c.read
                && sim.get(valid) != 0
            {
                let (kind, beats) = (Kind::AcceleratorRead, sim.get(len) as u16 + 1);
                let (value, id) = (sim.get(addr), sim.get(id) as u8);
                add(PortEvent { cycle, kind, port, value, beats, id });
            }
            if let Some([valid, id, resp, last]) = c.beat
                && sim.get(valid) != 0
            {
                let (kind, beats) = (Kind::AcceleratorBeat, sim.get(last) as u16);
                let (value, id) = (sim.get(resp), sim.get(id) as u8);
                add(PortEvent { cycle, kind, port, value, beats, id });
            }
            for (kind, ports) in [(Kind::MemoryRead, c.ar), (Kind::MemoryWrite, c.aw)] {
                if let Some([valid, ready, id, addr, len]) = ports
                    && sim.get(valid) != 0
                    && sim.get(ready) != 0
                {
                    let (beats, id) = (sim.get(len) as u16 + 1, sim.get(id) as u8);
                    add(PortEvent { cycle, kind, port, value: sim.get(addr), beats, id });
                }
            }
            if let Some([valid, ready, data, strb, last]) = c.w
                && sim.get(valid) != 0
                && sim.get(ready) != 0
            {
                let words = sim.raw(data).chunks(8).map(|word| {
                    word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
                });
                let value = words.fold(sim.get(strb), mix);
                let (kind, beats) = (Kind::MemoryBeat, sim.get(last) as u16);
                add(PortEvent { cycle, kind, port, value, beats, id: 0 });
            }
        }
    }

    fn drive(&mut self, _: &mut Sim) {}
}
