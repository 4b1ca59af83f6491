//! Configuration space of the card, 4 KiB: type 0 header, power management, MSI-X, PCI Express with
//! function-level reset, serial number.
//!
//! It stores bytes and decodes writes; its owner applies the effects to the card.

use shef_device::pci::{BAR_CTL, BAR_MEM, BAR_MSIX, IDS, MSIX_BYTES, VECTORS};

/// Bytes of configuration space.
pub const BYTES: usize = 4096;
/// Maximum payload after a reset, in bytes.
pub const MAX_PAYLOAD: usize = 128;
/// Maximum read request after a reset, in bytes.
pub const MAX_READ_REQUEST: usize = 512;
/// Offset of the MSI-X pending bits in their BAR.
pub const PBA: u32 = 0x8000;

const COMMAND: usize = 0x04;
const BARS: usize = 0x10;
const PM: usize = 0x40;
const MSIX: usize = 0x50;
const PCIE: usize = 0x70;
const SERIAL: usize = 0x100;

const COMMAND_MEMORY: u16 = 1 << 1;
const COMMAND_MASTER: u16 = 1 << 2;
const COMMAND_WRITABLE: u16 = COMMAND_MEMORY | COMMAND_MASTER | 1 << 6 | 1 << 8 | 1 << 10;
/// Processing accelerator.
const CLASS: u32 = 0x12_0000;
const SUBSYSTEM: u16 = 0x5ef1;
/// A 64-bit prefetchable BAR.
const BAR_KIND: u32 = 0xc;
const FLR: u16 = 1 << 15;

/// The side effect of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// A function-level reset.
    Reset,
    /// The function goes into power state D3hot.
    Sleep,
    /// It returns to D0, which resets it.
    Wake,
}

/// Configuration space.
pub struct ConfigSpace {
    bytes: Box<[u8; BYTES]>,
    /// Bits that software may change.
    mask: Box<[u8; BYTES]>,
    ctl_bytes: u64,
    memory_bytes: u64,
    serial: u64,
}

impl ConfigSpace {
    /// Configuration space of a card with these sizes of BAR0 and memory (powers of two, memory at
    /// least 1 MiB) and this serial number.
    pub fn new(ctl_bytes: u64, memory_bytes: u64, serial: u64) -> Self {
        let mut c = Self {
            bytes: Box::new([0; BYTES]),
            mask: Box::new([0; BYTES]),
            ctl_bytes,
            memory_bytes,
            serial,
        };
        let (vendor, device) = IDS[0];
        c.fixed(0x00, &vendor.to_le_bytes());
        c.fixed(0x02, &device.to_le_bytes());
        c.both(COMMAND, 0, COMMAND_WRITABLE);
        // Status: the capability list is present.
        c.fixed(0x06, &(1u16 << 4).to_le_bytes());
        c.fixed(0x08, &(CLASS << 8 | 1).to_le_bytes());
        c.mask[0x0c] = 0xff;
        for (bar, size) in [(BAR_CTL, ctl_bytes), (BAR_MSIX, MSIX_BYTES), (BAR_MEM, memory_bytes)] {
            let at = BARS + 4 * usize::from(bar);
            c.fixed(at, &BAR_KIND.to_le_bytes());
            c.mask[at..at + 8].copy_from_slice(&(!(size - 1)).to_le_bytes());
        }
        c.fixed(0x2c, &vendor.to_le_bytes());
        c.fixed(0x2e, &SUBSYSTEM.to_le_bytes());
        c.fixed(0x34, &[PM as u8]);
        c.mask[0x3c] = 0xff;
        // Power management: version 3, D0 and D3hot; returning from D3hot resets.
        c.fixed(PM, &[0x01, MSIX as u8, 0x03, 0x00]);
        c.both(PM + 4, 0, 0x3);
        c.fixed(MSIX, &[0x11, PCIE as u8]);
        c.both(MSIX + 2, VECTORS as u16 - 1, 0xc000);
        c.fixed(MSIX + 4, &u32::from(BAR_MSIX).to_le_bytes());
        c.fixed(MSIX + 8, &(PBA | u32::from(BAR_MSIX)).to_le_bytes());
        // PCI Express: version 2, endpoint; function-level reset, payloads of 256 bytes, role-based
        // errors; Gen4 x8.
        c.fixed(PCIE, &[0x10, 0x00, 0x02, 0x00]);
        c.fixed(PCIE + 4, &(1u32 << 28 | 1 << 15 | 1).to_le_bytes());
        let code = |bytes: usize| (bytes / 128).ilog2() as u16;
        let sizes = code(MAX_PAYLOAD) << 5 | code(MAX_READ_REQUEST) << 12;
        c.both(PCIE + 8, 0x0810 | sizes, 0x7fff);
        c.fixed(PCIE + 0x0c, &(8u32 << 4 | 4).to_le_bytes());
        c.both(PCIE + 0x10, 0, 0x0fc3);
        c.fixed(PCIE + 0x12, &(8u16 << 4 | 4).to_le_bytes());
        // Completion time-outs can be disabled.
        c.fixed(PCIE + 0x24, &(1u32 << 4).to_le_bytes());
        c.both(PCIE + 0x28, 0, 0x001f);
        c.fixed(PCIE + 0x2c, &(0x1eu32).to_le_bytes());
        c.both(PCIE + 0x30, 4, 0x000f);
        c.fixed(SERIAL, &(0x1_0003u32).to_le_bytes());
        c.fixed(SERIAL + 4, &serial.to_le_bytes());
        c
    }

    fn fixed(&mut self, at: usize, value: &[u8]) {
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn both(&mut self, at: usize, value: u16, mask: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self.mask[at..at + 2].copy_from_slice(&mask.to_le_bytes());
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Copies bytes out; bytes past the end read as ones.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        for (i, byte) in out.iter_mut().enumerate() {
            *byte = usize::try_from(offset)
                .ok()
                .and_then(|at| self.bytes.get(at.checked_add(i)?))
                .copied()
                .unwrap_or(0xff);
        }
    }

    /// Changes the writable bits and returns the side effect.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Effect {
        let asleep = self.asleep();
        let mut reset = false;
        for (i, byte) in data.iter().enumerate() {
            let Some(at) = usize::try_from(offset)
                .ok()
                .and_then(|at| at.checked_add(i))
                .filter(|at| *at < BYTES)
            else {
                break;
            };
            self.bytes[at] = (self.bytes[at] & !self.mask[at]) | (byte & self.mask[at]);
            // The bit reads as zero.
            reset |= at == PCIE + 9 && byte & (FLR >> 8) as u8 != 0;
        }
        match (reset, asleep, self.asleep()) {
            (true, ..) => Effect::Reset,
            (_, false, true) => Effect::Sleep,
            (_, true, false) => Effect::Wake,
            _ => Effect::None,
        }
    }

    /// Resets all writable bits to their power-on state.
    pub fn reset(&mut self) {
        *self = Self::new(self.ctl_bytes, self.memory_bytes, self.serial);
    }

    /// Whether the function responds to memory accesses.
    pub fn memory_enabled(&self) -> bool {
        self.word(COMMAND) & COMMAND_MEMORY != 0 && !self.asleep()
    }

    /// Whether the function may access host memory and raise interrupts.
    pub fn bus_master(&self) -> bool {
        self.word(COMMAND) & COMMAND_MASTER != 0 && !self.asleep()
    }

    /// Whether the function is in D3hot.
    pub fn asleep(&self) -> bool {
        self.bytes[PM + 4] & 3 == 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(c: &ConfigSpace, at: u64) -> u32 {
        let mut b = [0; 4];
        c.read(at, &mut b);
        u32::from_le_bytes(b)
    }

    #[test]
    fn the_lists_of_capabilities_can_be_walked() {
        let c = ConfigSpace::new(1 << 16, 1 << 34, 0x1122_3344_5566_7788);
        assert_eq!(get(&c, 0), 0xf010_1d0f);
        let mut at = u64::from(get(&c, 0x34) & 0xff);
        let mut ids = Vec::new();
        while at != 0 {
            let head = get(&c, at);
            ids.push((head & 0xff, at));
            at = u64::from(head >> 8 & 0xff);
        }
        assert_eq!(ids, [(0x01, 0x40), (0x11, 0x50), (0x10, 0x70)]);
        assert_eq!(
            (get(&c, 0x100), get(&c, 0x104), get(&c, 0x108)),
            (0x1_0003, 0x5566_7788, 0x1122_3344)
        );
        assert_eq!(get(&c, 0x74) >> 28 & 1, 1, "function-level reset");
        assert_eq!(get(&c, 0xffe) & 0xffff_0000, 0xffff_0000, "behind the end");
    }

    #[test]
    fn bars_can_be_sized() {
        for (ctl, memory) in [(1u64 << 16, 1u64 << 20), (1 << 26, 1 << 34), (1 << 16, 1 << 36)] {
            let mut c = ConfigSpace::new(ctl, memory, 0);
            for (at, size) in [(0x10, ctl), (0x18, 1 << 16), (0x20, memory)] {
                c.write(at, &[0xff; 8]);
                let value = u64::from(get(&c, at + 4)) << 32 | u64::from(get(&c, at));
                assert_eq!(value & 0xf, 0xc, "64 bits, prefetchable");
                assert_eq!((!(value & !0xf)).wrapping_add(1), size);
                c.write(at, &0x0000_0123_8000_0000u64.to_le_bytes());
                assert_eq!(get(&c, at), (0x8000_0000 & !(size - 1)) as u32 | 0xc);
            }
            c.reset();
            assert_eq!(get(&c, 0x20), 0xc);
            c.write(0x20, &[0xff; 8]);
            assert_eq!(get(&c, 0x24), (!(memory - 1) >> 32) as u32);
        }
    }

    #[test]
    fn writes_have_effects_and_read_only_bits_stay() {
        let mut c = ConfigSpace::new(1 << 16, 1 << 30, 7);
        assert_eq!(get(&c, 0x78) & 0xffff, 0x2810, "payloads of 128 bytes, reads of 512");
        assert!(!c.memory_enabled() && !c.bus_master());
        assert_eq!(c.write(0, &[0; 4]), Effect::None);
        assert_eq!(get(&c, 0), 0xf010_1d0f);
        c.write(4, &6u16.to_le_bytes());
        assert!(c.memory_enabled() && c.bus_master());
        assert_eq!(c.write(0x44, &[3]), Effect::Sleep);
        assert!(!c.memory_enabled() && !c.bus_master());
        assert_eq!(c.write(0x44, &[3]), Effect::None);
        assert_eq!(c.write(0x44, &[0]), Effect::Wake);
        assert_eq!(c.write(0x78, &0x8000u16.to_le_bytes()), Effect::Reset);
        assert_eq!(get(&c, 0x78) & 0x8000, 0, "the bit reads as zero");
        assert_eq!(c.write(0x78, &0x2810u32.to_le_bytes()), Effect::None);
        assert_eq!(c.write(0xfff, &[0xff; 9]), Effect::None);
        assert_eq!(c.write(u64::MAX, &[0xff; 9]), Effect::None);
    }
}
