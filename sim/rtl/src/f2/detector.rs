//! The time-out detector in front of OCL, SDA and PCIS.

use super::clock::MAIN_PS;

/// Cycles of `clk_main_a0` in 8 us.
pub(crate) const LIMIT: u64 = 8_000_000 / MAIN_PS;
/// Cycles after which an access times out while the detector is tripped: 16 ns.
pub(crate) const SHORT: u64 = 16_000 / MAIN_PS;
/// Cycles for which it stays tripped: 4 ms.
const PENALTY: u64 = 4_000_000_000 / MAIN_PS;

/// Counts for an access, and for 4 ms after a late one lets no access through.
#[derive(Debug, Clone, Default)]
pub(crate) struct Detector {
    /// The interface works again after these 4 ms.
    recovers: bool,
    until: Option<u64>,
    /// Late accesses.
    pub late: u64,
    /// Address of the last one; bit 0 is set for a read, bit 1 for a write.
    pub address: u64,
}

impl Detector {
    pub fn new(recovers: bool) -> Self {
        Self { recovers, ..Self::default() }
    }

    /// An access is late.
    pub fn trip(&mut self, now: u64, address: u64, write: bool) {
        self.late += 1;
        self.address = (address & !3) | if write { 2 } else { 1 };
        self.until = Some(if self.recovers { now + PENALTY } else { u64::MAX });
    }

    /// Whether an access times out at once.
    #[inline]
    pub fn closed(&self, now: u64) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}
