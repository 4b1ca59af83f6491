//! What a Shield refuses of its accelerator, for a memory that the accelerator reaches without one
//! (docs/reference/sealed-memory.md; `shef_split` and `shef_lookup` decide it in the Shield).

use crate::axi_memory::BEAT;
use shef_proto::config::{Mode, Region};
use std::collections::{BTreeSet, HashMap};

/// A burst as AR or AW requests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxiBurst {
    /// Whether it writes.
    pub write: bool,
    /// Address of its first byte.
    pub addr: u64,
    /// 1 to 256.
    pub beats: u32,
    /// AxSIZE: binary logarithm of the bytes of a beat.
    pub size: u8,
    /// AxBURST: 1 is INCR.
    pub burst: u8,
}

impl AxiBurst {
    /// Bytes of a beat.
    fn bytes(self) -> u64 {
        1 << self.size
    }

    /// Address of the first byte of a beat. All beats but the first are aligned to their size.
    fn beat(self, n: u32) -> u64 {
        match n {
            0 => self.addr,
            n => (self.addr & !(self.bytes() - 1)).wrapping_add(u64::from(n) * self.bytes()),
        }
    }

    /// Address of the 64 bytes of the bus in which a beat lies.
    #[must_use]
    pub fn line(self, n: u32) -> u64 {
        self.beat(n) & !(BEAT as u64 - 1)
    }

    /// The byte lanes of a beat, a bit for each of 64. The size is at most 6.
    #[must_use]
    pub fn lanes(self, n: u32) -> u64 {
        let first = self.beat(n) % 64;
        let end = (self.beat(n) & !(self.bytes() - 1)) % 64 + self.bytes();
        (u64::MAX >> (64 - end)) & (u64::MAX << first)
    }

    /// Whether it leaves the 4 KiB page of its first byte.
    #[must_use]
    pub fn crosses_page(self) -> bool {
        self.addr % 4096 + u64::from(self.beats - 1) * self.bytes() >= 4096
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_lie_where_axi_places_them() {
        let burst = AxiBurst { write: false, addr: 0x103e, beats: 3, size: 2, burst: 1 };
        assert_eq!([0, 1, 2].map(|n| burst.beat(n)), [0x103e, 0x1040, 0x1044]);
        assert_eq!([0, 1, 2].map(|n| burst.lanes(n)), [0b11 << 62, 0b1111, 0b1111 << 4]);
        assert_eq!([0, 1].map(|n| burst.line(n)), [0x1000, 0x1040]);
        let whole = AxiBurst { addr: 0x1fc0, beats: 1, size: 6, ..burst };
        assert_eq!(whole.lanes(0), u64::MAX);
        assert!(!whole.crosses_page() && AxiBurst { beats: 2, ..whole }.crosses_page());
    }
}
