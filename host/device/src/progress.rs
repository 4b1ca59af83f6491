//! Progress of an accelerator, as a simulated card reports it: the last bursts of each of its ports,
//! and which side waits for which.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The burst of a report. Of a register access: one beat of four bytes at the register's address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedBurst {
    /// Whether it writes.
    pub write: bool,
    /// Its number, from 0, among those of its port and direction.
    pub number: u32,
    /// AXI id.
    pub id: u8,
    /// Byte address.
    pub addr: u64,
    /// Beats, 1 to 256.
    pub beats: u16,
    /// Bytes of a beat.
    pub size: u16,
    /// AxBURST: 0 FIXED, 1 INCR, 2 WRAP.
    pub kind: u8,
}

impl fmt::Display for CheckedBurst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { write, number, id, addr, beats, size, .. } = self;
        let name = if *write { "write" } else { "read" };
        write!(f, "{name} {number} of id {id:#04x}: {beats} beat(s) of {size} bytes at {addr:#x}")
    }
}

/// A side of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Party {
    /// The accelerator.
    Accelerator,
    /// The Shield, or the memory in its place.
    Memory,
    /// The Shield, or the bench in its place, which accesses registers for the host.
    Host,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accelerator => "the accelerator",
            Self::Memory => "memory",
            Self::Host => "the host",
        })
    }
}

/// A burst, and how far it is. Of a register access: one beat of four bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedBurst {
    /// Its request.
    pub burst: CheckedBurst,
    /// Beats of data that were transferred.
    pub beats: u16,
    /// Cycle of its last transfer: the request, a beat or the response.
    pub last: u64,
    /// Whether the response is complete.
    pub complete: bool,
}

impl fmt::Display for FollowedBurst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { burst, beats, last, complete } = self;
        write!(f, "{burst}: {beats} transferred, ")?;
        match complete {
            true => write!(f, "complete at cycle {last}"),
            false => write!(f, "last transfer at cycle {last}"),
        }
    }
}

/// A transfer that does not happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Its channel: `AR`, `R`, `AW`, `W` or `B`.
    pub channel: String,
    /// Number of its burst, from 0 among those of its port and direction.
    pub burst: u32,
    /// Whether VALID is high and READY low. Otherwise VALID is low.
    pub offered: bool,
    /// Cycle of the offer, or of the transfer after which VALID is awaited.
    pub since: u64,
    /// The side that waits.
    pub waits: Party,
    /// The side that it waits for.
    pub waits_for: Party,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { channel, burst, offered, since, waits, waits_for } = self;
        let (state, low) = if *offered { ("offered", "READY") } else { ("awaited", "VALID") };
        write!(f, "{channel} of burst {burst} {state} since cycle {since}, {channel}{low} low")?;
        write!(f, " ({waits} waits for {waits_for})")
    }
}

/// Progress of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortProgress {
    /// `port 0` to `port 3`, or `registers`.
    pub port: String,
    /// Cycle of its last transfer on any channel.
    pub last: Option<u64>,
    /// The last complete bursts of each direction, and all that are in flight.
    pub bursts: Vec<FollowedBurst>,
    /// The transfers that do not happen.
    pub waits: Vec<Wait>,
}

/// Progress of an accelerator, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The cycle.
    pub cycle: u64,
    /// Its ports: memory, then registers.
    pub ports: Vec<PortProgress>,
}

impl Progress {
    /// Name of the port of registers.
    pub const REGISTERS: &str = "registers";

    /// The memory ports.
    fn memory(&self) -> impl Iterator<Item = &PortProgress> {
        self.ports.iter().filter(|port| port.port != Self::REGISTERS)
    }

    /// Whether a port waits for this number of cycles, and no memory port had a transfer since.
    #[must_use]
    pub fn is_stuck(&self, cycles: u64) -> bool {
        let old = |since: u64| self.cycle.saturating_sub(since) >= cycles;
        self.memory().all(|port| port.last.is_none_or(old))
            && self.ports.iter().flat_map(|port| &port.waits).any(|wait| old(wait.since))
    }

    /// All waits in one line, or `no port waits`.
    #[must_use]
    pub fn waits(&self) -> String {
        let waits = self
            .ports
            .iter()
            .flat_map(|port| port.waits.iter().map(|wait| format!("{}: {wait}", port.port)));
        let waits: Vec<String> = waits.collect();
        if waits.is_empty() { "no port waits".to_owned() } else { waits.join("; ") }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cycle {}: {}", self.cycle, self.waits())?;
        for PortProgress { port, bursts, .. } in &self.ports {
            for burst in bursts {
                write!(f, "\n{port}: {burst}")?;
            }
        }
        Ok(())
    }
}

/// Watches a job for an end of its progress: a port waits ([`Progress::is_stuck`]), or no memory port
/// has a transfer and the job's status register does not change.
#[derive(Debug, Clone)]
pub struct StallWatch {
    cycles: u64,
    status: Option<u32>,
    /// Cycle at which the status changed.
    changed: u64,
}

impl StallWatch {
    /// For a job that starts now, with this limit in cycles.
    #[must_use]
    pub fn new(cycles: u64) -> Self {
        Self { cycles, status: None, changed: 0 }
    }

    /// The limit in cycles.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Whether the job makes no progress for the limit.
    pub fn is_stalled(&mut self, progress: &Progress, status: u32) -> bool {
        if self.status.replace(status) != Some(status) {
            self.changed = progress.cycle;
        }
        let last = progress.memory().filter_map(|port| port.last).fold(self.changed, u64::max);
        progress.is_stuck(self.cycles) || progress.cycle.saturating_sub(last) >= self.cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, last: Option<u64>, wait: Option<u64>) -> PortProgress {
        let waits = wait.into_iter().map(|since| Wait {
            channel: "R".to_owned(),
            burst: 7,
            offered: true,
            since,
            waits: Party::Memory,
            waits_for: Party::Accelerator,
        });
        let waits = waits.collect();
        PortProgress { port: name.to_owned(), last, bursts: Vec::new(), waits }
    }

    #[test]
    fn a_job_is_stalled_without_transfers_and_changes_or_while_a_port_waits() {
        let progress = |cycle, last, wait| Progress {
            cycle,
            ports: vec![port("port 0", last, wait), port(Progress::REGISTERS, Some(cycle), None)],
        };
        // The status changes at cycle 1000.
        let mut watch = StallWatch::new(100);
        let mut look =
            |cycle, last, wait, status| watch.is_stalled(&progress(cycle, last, wait), status);
        assert!(!look(900, None, None, 0));
        assert!(!look(1000, None, None, 1));
        assert!(!look(1099, None, None, 1));
        assert!(look(1100, None, None, 1), "neither a transfer nor a change");
        assert!(!look(1100, Some(1001), None, 1), "a transfer");
        assert!(look(1101, Some(1001), None, 1));
        // A status register that counts hides no wait.
        assert!(!look(1150, Some(1090), Some(1051), 2));
        assert!(!look(1150, Some(1051), Some(1040), 3), "another burst is transferred");
        assert!(look(1151, Some(1051), Some(1040), 4));
        let text = progress(1151, Some(1051), Some(1040)).to_string();
        assert!(
            text.contains("port 0: R of burst 7 offered since cycle 1040, RREADY low"),
            "{text}"
        );
    }
}
