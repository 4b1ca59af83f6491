//! AXI4 bursts on a bus of 64 bytes.

/// Bytes of a beat.
pub const BEAT: usize = 64;

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
