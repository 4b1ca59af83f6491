//! The [`Device`] that all transports to a PCI function share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use shef_regs::ctl;

use super::bulk::{self, Bulk};
use super::{
    BAR_CTL, BAR_MEM, COMMAND_MASTER, COMMAND_MEMORY, Function, REGISTERS, RING_FROM,
    VECTOR_ACCELERATOR, command, f2,
};
use crate::dma_slots::{DmaSlot, DmaSlots, SLOT_BYTES};
use crate::progress::Progress;
use crate::{CTL_BYTES, Device, DeviceError, DeviceInfo, OutOfRange, mailbox};

/// Longest single wait for the accelerator's interrupt.
const INTERRUPT_WAIT: Duration = Duration::from_millis(20);
/// First and longest pause of a host that polls without an interrupt.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));
/// Pauses after a reset before the host gives up on a card that does not answer: 10 s.
const RESET_PAUSES: u32 = 10_000;
/// Total time limit of these pauses, if each register read is slow.
const RESET_LIMIT: Duration = Duration::from_secs(300);

/// Whether a card's users can access the register at `offset`.
fn allowed(offset: u32) -> bool {
    offset.is_multiple_of(4) && REGISTERS.iter().any(|range| range.contains(&offset))
}

/// Offset of class and revision in configuration space.
const CLASS_REVISION: u16 = 8;

/// A card behind a PCI function. Its users, this program or an owner behind an agent, can access
/// the [`REGISTERS`] of the control window only.
///
/// Writes of card memory are posted: they complete before any later operation on this value, and
/// that operation reports their errors.
pub struct PciCard<F: Function> {
    /// From the first bulk transfer on, if the card has a DMA engine.
    bulk: Option<Bulk<F::Memory>>,
    /// Memory of earlier rings that had lent slots when they ended, and whether the card was quiet
    /// then.
    lent: Vec<(Vec<Arc<F::Memory>>, bool)>,
    function: F,
    info: DeviceInfo,
    pause: Duration,
}

impl<F: Function> PciCard<F> {
    /// Takes an open function: checks that it has the card's BARs and enables memory accesses and
    /// bus mastering. `info` describes the card; the function provides the size of card memory.
    ///
    /// # Errors
    /// [`DeviceError::NoMedium`], [`DeviceError::Gone`], [`DeviceError::NotACard`] and the
    /// transport's errors.
    pub fn open(
        function: F,
        uri: &str,
        description: &str,
        root_of_trust: &str,
    ) -> Result<Self, DeviceError> {
        let memory_bytes = function.bar_bytes(BAR_MEM);
        let info = DeviceInfo::new(uri, description, root_of_trust, memory_bytes, false);
        let mut card = Self { bulk: None, lent: Vec::new(), function, info, pause: PAUSE.0 };
        card.present(0)?;
        let bars = [(BAR_CTL, u64::from(CTL_BYTES)), (BAR_MEM, 4096)];
        for (bar, need) in bars {
            let bytes = card.function.bar_bytes(bar);
            if bytes < need {
                return Err(DeviceError::NotACard { uri: uri.to_owned(), bar, bytes, need });
            }
        }
        command(&mut card.function, COMMAND_MEMORY, 0)?;
        if f2::waits(&mut card.function)? {
            return Err(DeviceError::NoMedium { uri: uri.to_owned() });
        }
        command(&mut card.function, COMMAND_MASTER, 0)?;
        Ok(card)
    }

    /// Uses the ring; false if there is no ring. If the ring was turned off in between, for example
    /// because an image was loaded, it is turned on again, once, unless earlier writes are lost
    /// with it.
    fn ring(
        &mut self,
        mut run: impl FnMut(&mut Bulk<F::Memory>, &mut F) -> Result<(), DeviceError>,
    ) -> Result<bool, DeviceError> {
        loop {
            let fresh = self.bulk.is_none();
            if fresh {
                self.present(0)?;
                self.bulk = Bulk::open(&mut self.function)?;
                // Bus mastering may have been withdrawn because the card did not confirm that it
                // had stopped. By now it has: its queue was off.
                command(&mut self.function, COMMAND_MASTER, 0)?;
            }
            let Some(bulk) = &mut self.bulk else { return Ok(false) };
            let settled = bulk.settled();
            match run(bulk, &mut self.function) {
                Ok(()) => return Ok(true),
                Err(error) => {
                    self.end_ring();
                    if fresh || !settled || !matches!(error, DeviceError::Queue { .. }) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Waits until written data is in card memory, as every operation after a write expects, and
    /// discards prefetched data.
    fn settle(&mut self) -> Result<(), DeviceError> {
        let result = self.bulk.as_mut().map_or(Ok(()), |bulk| bulk.settle(&mut self.function));
        if result.is_err() {
            self.end_ring();
        }
        result
    }

    /// Turns the ring off and withdraws its memory from the card.
    fn end_ring(&mut self) {
        if let Some(bulk) = self.bulk.take() {
            // A card that does not stop must not master the bus when its memory is reused.
            self.lent.push(bulk.close(&mut self.function, |function| {
                command(function, 0, COMMAND_MASTER).is_ok()
            }));
        }
        for (memory, quiet) in std::mem::take(&mut self.lent) {
            let memory = bulk::release(&mut self.function, memory, quiet);
            if !memory.is_empty() {
                self.lent.push((memory, quiet));
            }
        }
    }

    /// The function. Earlier writes are in card memory first; their errors are not reported to a
    /// caller that bypasses the card.
    pub fn function(&mut self) -> &mut F {
        let _ = self.settle();
        &mut self.function
    }

    /// Whether the function still answers on the bus. Class and revision always come from the
    /// hardware, and all ones is not a class; the vendor ID may be cached by the operating system.
    fn present(&mut self, offset: u32) -> Result<(), DeviceError> {
        let mut class = [0; 4];
        self.function.config_read(CLASS_REVISION, &mut class)?;
        if class == [0xff; 4] { Err(DeviceError::Gone { offset }) } else { Ok(()) }
    }

    fn word(&mut self, offset: u32) -> Result<u32, DeviceError> {
        let mut word = [0; 4];
        self.function.bar_read(BAR_CTL, offset.into(), &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    /// Requests a slot from the ring.
    fn lend(
        &mut self,
        mut lend: impl FnMut(&mut Bulk<F::Memory>, &mut F) -> Result<Option<DmaSlot>, DeviceError>,
    ) -> Result<DmaSlot, DeviceError> {
        let mut slot = None;
        self.ring(|ring, function| lend(ring, function).map(|lent| slot = lent))?;
        slot.ok_or_else(bulk::all_lent)
    }

    /// Checks ranges of card memory that go through a slot.
    fn check_place(&self, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        ranges.iter().try_for_each(|(addr, len)| self.check(*addr, *len))?;
        let sum = ranges.iter().try_fold(0, |sum: usize, (_, len)| sum.checked_add(*len));
        match sum {
            Some(1..=SLOT_BYTES) if ranges.iter().all(|(_, len)| *len > 0) => Ok(()),
            _ => Err(OutOfRange {
                offset: 0,
                len: sum.unwrap_or(usize::MAX) as u64,
                size: SLOT_BYTES as u64,
            }
            .into()),
        }
    }

    fn check(&self, addr: u64, len: usize) -> Result<(), DeviceError> {
        let memory_bytes = self.info.memory_bytes;
        if addr.checked_add(len as u64).is_some_and(|end| end <= memory_bytes) {
            Ok(())
        } else {
            Err(DeviceError::MemoryRange { addr, len: len as u64, memory_bytes })
        }
    }
}

impl<F: Function> Device for PciCard<F> {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError> {
        let refused = DeviceError::CtlRefused { access: "read", offset };
        if !allowed(offset) {
            return Err(refused);
        }
        self.settle()?;
        let value = self.word(offset)?;
        if value != u32::MAX {
            return Ok(value);
        }
        // All ones: the device has left, or the bytes are legitimate, or the register refuses the
        // access.
        self.present(offset)?;
        let bytes = ctl::ITEMS.iter().any(|item| {
            item.bytes > 4 && (item.offset..item.offset + item.bytes).contains(&offset)
        }) || (mailbox::REQUEST..mailbox::REQ_LEN).contains(&offset);
        if bytes { Ok(value) } else { Err(refused) }
    }

    fn ctl_write32(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        if !allowed(offset) {
            return Err(DeviceError::CtlRefused { access: "write", offset });
        }
        self.settle()?;
        self.pause = PAUSE.0;
        self.function.bar_write(BAR_CTL, offset.into(), &value.to_le_bytes())
    }

    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.mem_read_ranges(&mut [(addr, bytes)])
    }

    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.mem_write_ranges(&[(addr, bytes)])
    }

    fn mem_read_ranges(&mut self, ranges: &mut [(u64, &mut [u8])]) -> Result<(), DeviceError> {
        ranges.iter().try_for_each(|(addr, bytes)| self.check(*addr, bytes.len()))?;
        let bulk = ranges.iter().any(|(_, bytes)| bytes.len() >= RING_FROM);
        if bulk && self.ring(|ring, function| ring.read(function, ranges))? {
            return Ok(());
        }
        self.settle()?;
        for (addr, bytes) in ranges {
            self.function.bar_read(BAR_MEM, *addr, bytes)?;
            // A card that is gone reads as all ones.
            if bytes.len() >= 4 && bytes.iter().all(|b| *b == 0xff) {
                self.present(0)?;
            }
        }
        Ok(())
    }

    fn dma_slots(&mut self) -> Option<&mut dyn DmaSlots> {
        Some(self)
    }

    fn mem_write_ranges(&mut self, ranges: &[(u64, &[u8])]) -> Result<(), DeviceError> {
        ranges.iter().try_for_each(|(addr, bytes)| self.check(*addr, bytes.len()))?;
        let bulk = ranges.iter().any(|(_, bytes)| bytes.len() >= RING_FROM);
        if bulk && self.ring(|ring, function| ring.write(function, ranges))? {
            return Ok(());
        }
        self.settle()?;
        ranges.iter().try_for_each(|(addr, bytes)| self.function.bar_write(BAR_MEM, *addr, bytes))
    }

    fn wait_hint(&mut self) -> Result<(), DeviceError> {
        self.settle()?;
        self.function.wait_vector(VECTOR_ACCELERATOR, self.pause)?;
        self.pause = (2 * self.pause).min(PAUSE.1);
        Ok(())
    }

    fn wait_interrupt(&mut self) -> Result<bool, DeviceError> {
        self.settle()?;
        let came = self.function.wait_vector(VECTOR_ACCELERATOR, INTERRUPT_WAIT)?;
        if !came {
            self.present(0)?;
        }
        Ok(came)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.end_ring();
        self.function.reset()?;
        command(&mut self.function, COMMAND_MEMORY | COMMAND_MASTER, 0)?;
        self.pause = PAUSE.0;
        answers(RESET_LIMIT, || self.ctl_read32(mailbox::STATUS))
    }

    fn progress(&mut self) -> Option<Progress> {
        self.function.progress()
    }
}

/// Waits until the mailbox's `status` is readable, which it is once the Security Kernel runs.
fn answers(
    limit: Duration,
    mut status: impl FnMut() -> Result<u32, DeviceError>,
) -> Result<(), DeviceError> {
    let (end, mut polls) = (Instant::now() + limit, 0);
    while polls < RESET_PAUSES && Instant::now() < end {
        match status() {
            Ok(_) => return Ok(()),
            Err(DeviceError::CtlRefused { .. }) => std::thread::sleep(PAUSE.1),
            Err(error) => return Err(error),
        }
        polls += 1;
    }
    Err(DeviceError::MailboxTimeout { status: u32::MAX, polls })
}

impl<F: Function> DmaSlots for PciCard<F> {
    fn ready(&mut self) -> Result<bool, DeviceError> {
        self.ring(|ring, function| ring.check(function))
    }

    fn slot(&mut self) -> Result<DmaSlot, DeviceError> {
        self.lend(|ring, function| ring.slot(function))
    }

    fn write_slot(&mut self, slot: DmaSlot, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        self.check_place(ranges)?;
        let Some(ring) = self.bulk.as_mut().filter(|ring| ring.owns(&slot)) else {
            return Err(bulk::stale());
        };
        let result = ring.write_slot(&mut self.function, slot, ranges);
        if result.is_err() {
            self.end_ring();
        }
        result
    }

    fn read_ahead(&mut self, ranges: &[(u64, usize)]) -> Result<bool, DeviceError> {
        self.check_place(ranges)?;
        let mut begun = false;
        self.ring(|ring, function| ring.read_ahead(function, ranges, 0).map(|done| begun = done))?;
        Ok(begun)
    }

    fn read_slot(&mut self, ranges: &[(u64, usize)]) -> Result<DmaSlot, DeviceError> {
        self.check_place(ranges)?;
        self.lend(|ring, function| ring.read_slot(function, ranges))
    }
}

impl<F: Function> Drop for PciCard<F> {
    fn drop(&mut self) {
        // There is no caller left to report an error to.
        let _ = self.settle();
        self.end_ring();
        // Lent memory is freed with its last slot, unless the card may still use it: then never.
        self.lent.drain(..).filter(|(_, quiet)| !quiet).for_each(std::mem::forget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_of_a_card_whose_registers_are_slow_ends() {
        let mut reads = 0;
        let error = answers(Duration::from_millis(100), || {
            reads += 1;
            std::thread::sleep(Duration::from_millis(30));
            Err(DeviceError::CtlRefused { access: "read", offset: mailbox::STATUS })
        });
        assert!(
            matches!(error, Err(DeviceError::MailboxTimeout { polls, .. }) if polls == reads && reads < 5),
            "{reads}"
        );
    }
}
