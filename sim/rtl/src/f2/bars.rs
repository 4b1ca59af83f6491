//! The host's accesses to the BARs.

use super::life::Flr;
use super::life::Slot;
use super::shell::F2Shell;
use crate::HostBus;

/// Bytes of BAR 0 (OCL).
pub const BAR0_BYTES: u32 = 1 << 26;
/// Bytes of BAR 4 (PCIS).
pub const BAR4_BYTES: u64 = 1 << 37;
/// Bytes of a page, which no burst crosses.
const PAGE: u64 = 4096;

impl<B: HostBus> F2Shell<B> {
    /// Whether the host reaches the function.
    fn there(&self) -> bool {
        let life = &self.image.life;
        self.slot == Slot::Loaded && life.flr == Flr::Idle && life.reset_until.is_none()
    }

    fn lite(&mut self, sda: bool, addr: u32, write: Option<(u32, u8)>) -> u32 {
        if !self.there() {
            self.step(1);
            return u32::MAX;
        }
        let lite = if sda { &mut self.image.sda } else { &mut self.image.ocl };
        let tag = match write {
            Some((data, strobes)) => lite.write(addr, data, strobes),
            None => lite.read(addr),
        };
        loop {
            self.edge();
            let lite = if sda { &mut self.image.sda } else { &mut self.image.ocl };
            if let Some((_, word)) = lite.take().filter(|(t, _)| *t == tag) {
                return word;
            }
        }
    }

    /// Reads a word of BAR 0; all ones if the CL was late.
    pub fn ocl_read(&mut self, addr: u32) -> u32 {
        self.lite(false, addr % BAR0_BYTES, None)
    }

    /// Writes a word of BAR 0.
    pub fn ocl_write(&mut self, addr: u32, value: u32) {
        self.lite(false, addr % BAR0_BYTES, Some((value, 0xf)));
    }

    /// Reads bytes of BAR 0: the shell splits what is wider than a word, low half first.
    pub fn ocl_read_bytes(&mut self, addr: u32, bytes: &mut [u8]) {
        let mut at = addr;
        let mut rest = bytes;
        while !rest.is_empty() {
            let skew = at as usize % 4;
            let n = (4 - skew).min(rest.len());
            let word = self.ocl_read(at & !3).to_le_bytes();
            let (now, later) = rest.split_at_mut(n);
            now.copy_from_slice(&word[skew..skew + n]);
            (rest, at) = (later, at.wrapping_add(n as u32));
        }
    }

    /// Writes bytes of BAR 0, split as by [`F2Shell::ocl_read_bytes`].
    pub fn ocl_write_bytes(&mut self, addr: u32, bytes: &[u8]) {
        let mut at = addr;
        let mut rest = bytes;
        while !rest.is_empty() {
            let skew = at as usize % 4;
            let (now, later) = rest.split_at((4 - skew).min(rest.len()));
            let mut word = [0; 4];
            word[skew..skew + now.len()].copy_from_slice(now);
            let strobes = ((1u8 << now.len()) - 1) << skew;
            let word = u32::from_le_bytes(word);
            self.lite(false, (at & !3) % BAR0_BYTES, Some((word, strobes)));
            (rest, at) = (later, at.wrapping_add(now.len() as u32));
        }
    }

    /// Reads a word of the management function's BAR 4 (SDA).
    pub fn sda_read(&mut self, addr: u32) -> u32 {
        self.lite(true, addr, None)
    }

    /// Writes a word on SDA.
    pub fn sda_write(&mut self, addr: u32, value: u32) {
        self.lite(true, addr, Some((value, 0xf)));
    }

    /// Reads a register of BAR 2.
    #[must_use]
    pub fn bar2_read(&self, offset: u32) -> u32 {
        if self.there() { self.image.irq.read(offset) } else { u32::MAX }
    }

    /// Writes a register of BAR 2.
    pub fn bar2_write(&mut self, offset: u32, value: u32) {
        if self.there() {
            self.image.irq.write(offset, value);
        }
    }

    /// Begins reads of BAR 4, split into packets; [`F2Shell::bar4_take`] gives their bytes in
    /// order. Reads and writes in flight have no order among each other. The number of packets.
    pub fn bar4_begin_read(&mut self, addr: u64, len: usize) -> usize {
        let mut packets = 0;
        let mut done = 0;
        while done < len {
            let at = addr + done as u64;
            let n = (len - done).min(self.packet(at, self.config.max_read_request));
            self.image.pcis.read(at % BAR4_BYTES, n);
            (packets, done) = (packets + 1, done + n);
        }
        packets
    }

    /// Begins writes of BAR 4, as [`F2Shell::bar4_begin_read`].
    pub fn bar4_begin_write(&mut self, addr: u64, bytes: &[u8]) -> usize {
        let mut packets = 0;
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = addr + (bytes.len() - rest.len()) as u64;
            let n = rest.len().min(self.packet(at, self.config.max_payload));
            self.image.pcis.write(at % BAR4_BYTES, &rest[..n]);
            (packets, rest) = (packets + 1, &rest[n..]);
        }
        packets
    }

    /// Bytes up to the end of a packet.
    fn packet(&self, at: u64, most: usize) -> usize {
        let most = (most as u64).min(PAGE);
        (most - at % most) as usize
    }

    /// The bytes of the next read of BAR 4 that was answered, or the next answered write.
    pub fn bar4_take(&mut self, write: bool) -> Option<Vec<u8>> {
        self.image.pcis.take(write).map(|(_, bytes)| bytes)
    }

    /// Whether an access of BAR 4 is in flight.
    #[must_use]
    pub fn bar4_busy(&self) -> bool {
        self.image.pcis.busy()
    }

    /// Reads bytes of BAR 4; all ones if the CL was late.
    pub fn bar4_read(&mut self, addr: u64, bytes: &mut [u8]) {
        if !self.there() {
            self.step(1);
            return bytes.fill(0xff);
        }
        let packets = self.bar4_begin_read(addr, bytes.len());
        let mut rest = bytes;
        for _ in 0..packets {
            let packet = self.bar4_wait(false);
            let (now, later) = rest.split_at_mut(packet.len());
            now.copy_from_slice(&packet);
            rest = later;
        }
    }

    /// Writes bytes of BAR 4, and waits until the CL has answered.
    pub fn bar4_write(&mut self, addr: u64, bytes: &[u8]) {
        if !self.there() {
            return self.step(1);
        }
        for _ in 0..self.bar4_begin_write(addr, bytes) {
            self.bar4_wait(true);
        }
    }

    fn bar4_wait(&mut self, write: bool) -> Vec<u8> {
        loop {
            if let Some(packet) = self.bar4_take(write) {
                return packet;
            }
            self.edge();
        }
    }
}
