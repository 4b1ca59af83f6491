//! What a Shield refuses of its accelerator, for a memory that the accelerator reaches without one
//! (docs/reference/sealed-memory.md; `shef_split` and `shef_lookup` decide it in the Shield).

use crate::burst::{AxiBurst, BEAT};
use shef_proto::config::{Mode, Region};
use std::collections::{BTreeSet, HashMap};

/// The rules of a Shield's regions.
#[derive(Debug, Clone)]
pub struct Unshielded {
    regions: Vec<Region>,
    /// The touched chunks of `output` regions by address, a bit for each written byte.
    written: HashMap<u64, Vec<u64>>,
    /// Chunks of `output` regions in which all bytes are written.
    closed: BTreeSet<u64>,
    /// Chunks that the present burst writes.
    present: BTreeSet<u64>,
}

/// What becomes of a beat that the accelerator writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBeat {
    /// It is stored.
    Stored,
    /// It is the first of a chunk with this address and length, which is zeros before.
    First(u64, u64),
    /// Its chunk is closed, as all its bytes were written before: it is dropped.
    Refused,
}

impl Unshielded {
    /// The rules for these regions, in a new epoch.
    #[must_use]
    pub fn new(regions: &[Region]) -> Self {
        Self {
            regions: regions.to_vec(),
            written: HashMap::new(),
            closed: BTreeSet::new(),
            present: BTreeSet::new(),
        }
    }

    /// Begins a new epoch of all `output` regions.
    pub fn new_epoch(&mut self) {
        *self = Self::new(&self.regions);
    }

    fn region(&self, addr: u64) -> Option<&Region> {
        self.regions.iter().find(|region| (region.base..region.base + region.size).contains(&addr))
    }

    /// Address and length of the chunk of an `output` region.
    fn output_chunk(&self, addr: u64) -> Option<(u64, u64)> {
        let region = self.region(addr).filter(|region| region.mode == Mode::Output)?;
        let len = u64::from(region.chunk);
        Some((addr - (addr - region.base) % len, len))
    }

    /// Whether all beats of a burst are refused: it is not INCR, is wider than the bus, crosses a
    /// page, is outside of the regions, or writes an `input` region.
    #[must_use]
    pub fn refuses(&self, burst: AxiBurst) -> bool {
        burst.burst != 1
            || burst.size > 6
            || burst.crosses_page()
            || self
                .region(burst.addr)
                .is_none_or(|region| burst.write && region.mode == Mode::Input)
    }

    /// Whether a beat may be read: no chunk of an `output` region without a written byte.
    #[must_use]
    pub fn can_read(&self, line: u64) -> bool {
        self.output_chunk(line).is_none_or(|(chunk, _)| self.written.contains_key(&chunk))
    }

    /// Records a written beat. In a Shield, a chunk with gaps may be closed as well, to make room
    /// for others.
    pub fn write(&mut self, line: u64, strobes: u64) -> WriteBeat {
        let Some((chunk, len)) = self.output_chunk(line) else { return WriteBeat::Stored };
        if self.closed.contains(&chunk) {
            return WriteBeat::Refused;
        }
        if strobes == 0 {
            return WriteBeat::Stored;
        }
        let lines = usize::try_from(len / BEAT as u64).unwrap_or(1);
        let at = usize::try_from((line - chunk) / BEAT as u64).unwrap_or(0);
        let first = !self.written.contains_key(&chunk);
        let bytes = self.written.entry(chunk).or_insert_with(|| vec![0; lines]);
        bytes[at] |= strobes;
        self.present.insert(chunk);
        if first { WriteBeat::First(chunk, len) } else { WriteBeat::Stored }
    }

    /// The end of a burst that writes: it closes the chunks that it made whole.
    pub fn end_of_write(&mut self) {
        let whole = |chunk: &u64| self.written[chunk].iter().all(|line| *line == u64::MAX);
        self.closed.extend(std::mem::take(&mut self.present).iter().filter(|chunk| whole(chunk)));
    }
}
