//! DMA slots: host memory that the card reaches, lent for one piece of a bulk transfer.
//!
//! Sealed data is written directly into the memory that the card fetches it from, and opened
//! directly from the memory that the card wrote it to. Several threads can fill and empty slots at
//! the same time; the device itself stays with one thread.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ring::DmaMemory;
use crate::{DeviceError, OutOfRange};

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 128 << 10;

/// Numbers of the free slots. The last one in is the first one out: it is most likely in a cache.
pub(crate) type Free = Arc<Mutex<Vec<usize>>>;

/// A device that lends slots.
pub trait DmaSlots {
    /// Whether the device lends slots now. Call it at the beginning of a transfer.
    ///
    /// # Errors
    /// Those of the transport.
    fn ready(&mut self) -> Result<bool, DeviceError>;

    /// Lends a slot of [`SLOT_BYTES`] bytes. If none is free, waits for one that the device works on.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] if all slots are lent, and those of the transport.
    fn slot(&mut self) -> Result<DmaSlot, DeviceError>;

    /// Writes a slot to card memory: its bytes go, one range after the other, to these addresses
    /// and lengths. The write is posted, like [`Device::mem_write`](crate::Device::mem_write).
    ///
    /// # Errors
    /// As [`Device::mem_write`](crate::Device::mem_write).
    fn write_slot(&mut self, slot: DmaSlot, ranges: &[(u64, usize)]) -> Result<(), DeviceError>;

    /// Prefetches ranges that [`DmaSlots::read_slot`] will read next. Both must be called in the
    /// same order. Returns whether the device started: there may be no free slot. Any other access
    /// to card memory or registers discards prefetched data.
    ///
    /// # Errors
    /// As [`Device::mem_read`](crate::Device::mem_read).
    fn read_ahead(&mut self, ranges: &[(u64, usize)]) -> Result<bool, DeviceError>;

    /// Reads ranges of card memory into a slot, one after the other, after all earlier writes.
    ///
    /// # Errors
    /// As [`DmaSlots::slot`] and [`Device::mem_read`](crate::Device::mem_read).
    fn read_slot(&mut self, ranges: &[(u64, usize)]) -> Result<DmaSlot, DeviceError>;
}

/// A slot on loan; dropping it returns it.
///
/// The device can change its bytes at any time. Copy them out once, and look only at the copy.
pub struct DmaSlot {
    memory: Arc<dyn DmaMemory + Send + Sync>,
    at: u64,
    number: usize,
    free: Free,
}

impl fmt::Debug for DmaSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DmaSlot").field(&self.number).finish()
    }
}

impl DmaSlot {
    pub(crate) fn new(
        memory: Arc<dyn DmaMemory + Send + Sync>,
        at: u64,
        number: usize,
        free: &Free,
    ) -> Self {
        Self { memory, at, number, free: Arc::clone(free) }
    }

    /// Device address of its first byte.
    pub(crate) fn device_address(&self) -> u64 {
        self.memory.device_address() + self.at
    }

    /// Whether it belongs to this set of slots.
    pub(crate) fn is_of(&self, free: &Free) -> bool {
        Arc::ptr_eq(&self.free, free)
    }

    fn inside(at: usize, len: usize) -> Result<(), DeviceError> {
        match at.checked_add(len) {
            Some(end) if end <= SLOT_BYTES => Ok(()),
            _ => {
                Err(OutOfRange { offset: at as u64, len: len as u64, size: SLOT_BYTES as u64 }
                    .into())
            }
        }
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`].
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        Self::inside(at, bytes.len())?;
        Ok(self.memory.write(self.at + at as u64, bytes)?)
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`].
    pub fn read(&self, at: usize, out: &mut [u8]) -> Result<(), DeviceError> {
        Self::inside(at, out.len())?;
        Ok(self.memory.read(self.at + at as u64, out)?)
    }
}

impl Drop for DmaSlot {
    fn drop(&mut self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}
