//! Card memory that can fail, and the records of faults and refusals.

use std::ops::Range;

use shef_proto::channel::{FaultKind, RefusalKind};

use crate::bus::BEAT;
use crate::memory::SparseMemory;

/// Behaviour of a faulty range of card memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFault {
    /// Answers with an error.
    Error,
    /// Never answers.
    Hang,
}

/// Receives each beat that the Shield writes: its address, the word, and a strobe bit for each
/// byte.
pub type WriteTap = Box<dyn FnMut(u64, &[u8; BEAT], u64) + Send>;

/// Card memory with fault injection.
#[derive(Default)]
pub(crate) struct Card {
    pub memory: SparseMemory,
    pub faults: Vec<(Range<u64>, MemoryFault)>,
    pub dead: bool,
    pub on_write: Option<WriteTap>,
}

impl Card {
    /// Checks whether an access to `len` bytes, whole beats, succeeds; otherwise returns the kind
    /// of its fault.
    pub(super) fn access(&self, addr: u64, len: u64) -> Result<(), FaultKind> {
        let (from, to) = (addr & !63, (addr + len + 63) & !63);
        let hit =
            |kind| self.faults.iter().any(|(r, k)| *k == kind && r.start < to && from < r.end);
        if self.dead || hit(MemoryFault::Hang) {
            Err(FaultKind::Timeout)
        } else if hit(MemoryFault::Error) {
            Err(FaultKind::Bus)
        } else {
            Ok(())
        }
    }

    /// Writes one beat.
    fn write_beat(&mut self, addr: u64, data: &[u8; BEAT], strobe: u64) {
        if let Some(tap) = &mut self.on_write {
            tap(addr, data, strobe);
        }
        self.memory.write_strobed(addr, data, strobe);
    }

    /// Writes bytes inside one beat.
    pub(super) fn write_part(&mut self, addr: u64, data: &[u8]) {
        let at = (addr % BEAT as u64) as usize;
        let mut beat = [0; BEAT];
        beat[at..at + data.len()].copy_from_slice(data);
        self.write_beat(addr - at as u64, &beat, (u64::MAX >> (BEAT - data.len())) << at);
    }

    /// Writes whole beats; the marks select the bytes that are written.
    pub(super) fn write_marked(
        &mut self,
        addr: u64,
        data: &[u8],
        marks: impl Iterator<Item = u64>,
    ) {
        for ((at, beat), mark) in (addr..).step_by(BEAT).zip(data.as_chunks().0).zip(marks) {
            self.write_beat(at, beat, mark);
        }
    }
}

/// A fault as reported in the statement. Region 0xff: it belongs to no single chunk or node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub kind: FaultKind,
    pub region: u8,
    pub chunk: u64,
    pub version: u64,
}

impl Fault {
    /// A memory fault that belongs to no single chunk: a time-out, or an error response to a tag
    /// line, a node or a write.
    pub(super) fn memory(kind: FaultKind) -> Self {
        Self { kind, region: 0xff, chunk: 0, version: 0 }
    }
}

/// The first refusal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub kind: RefusalKind,
    pub region: u8,
    pub addr: u64,
}

/// The statement's record of faults and refusals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Records {
    pub stopped: bool,
    pub fault: Option<Fault>,
    pub faults: u32,
    pub refusal: Option<Refusal>,
    pub refusals: u32,
}

impl Records {
    pub(super) fn fault(&mut self, fault: Fault) {
        self.faults = self.faults.saturating_add(1);
        self.fault.get_or_insert(fault);
    }

    pub(super) fn refuse(&mut self, kind: RefusalKind, region: u8, addr: u64) {
        self.refusals = self.refusals.saturating_add(1);
        self.refusal.get_or_insert(Refusal { kind, region, addr });
    }
}
