//! Places: memory of this program that the card reaches too, lent to whoever fills or empties them.
//!
//! A bulk transfer costs a copy less where what is sealed goes straight into the memory that the card fetches it from, and what came is opened straight out of it.
//! Several threads fill and empty places at once; the device stays with one.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ring::DmaMemory;
use crate::{DeviceError, OutOfRange};

/// Bytes of a place.
pub const PLACE: usize = 128 << 10;

/// Numbers of the places that nobody has, the one that came back last at the end: it is most likely in a cache.
pub(crate) type Free = Arc<Mutex<Vec<usize>>>;

/// A device that lends places.
pub trait Places {
    /// Whether it has any: called at the beginning of a transfer.
    ///
    /// # Errors
    /// Those of the transport.
    fn ready(&mut self) -> Result<bool, DeviceError>;

    /// A place of [`PLACE`] bytes. Waits for one that the device works on.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] where all are lent, and those of the transport.
    fn place(&mut self) -> Result<Place, DeviceError>;

    /// Has what lies in a place, one range behind the other, written to these ranges of card memory, addresses and bytes. Posted, as
    /// [`Device::mem_write`](crate::Device::mem_write).
    ///
    /// # Errors
    /// As [`Device::mem_write`](crate::Device::mem_write).
    fn write_place(&mut self, place: Place, ranges: &[(u64, usize)]) -> Result<(), DeviceError>;

    /// Says that these ranges are read next by [`Places::read_place`], and in this order where this is said several times: the device begins. Whether it does: there may
    /// be no place. What else is done with card memory or registers forgets it.
    ///
    /// # Errors
    /// As [`Device::mem_read`](crate::Device::mem_read).
    fn read_ahead(&mut self, ranges: &[(u64, usize)]) -> Result<bool, DeviceError>;

    /// Reads ranges of card memory, after everything that was written before, into a place: one behind the other.
    ///
    /// # Errors
    /// As [`Places::place`] and [`Device::mem_read`](crate::Device::mem_read).
    fn read_place(&mut self, ranges: &[(u64, usize)]) -> Result<Place, DeviceError>;
}

/// A place on loan: whoever drops it gives it back. Nobody else writes to it meanwhile but the device, which is not trusted not to: what is copied out of it is looked at
/// afterwards, never before.
pub struct Place {
    memory: Arc<dyn DmaMemory + Send + Sync>,
    at: u64,
    number: usize,
    free: Free,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.number).finish()
    }
}

impl Place {
    pub(crate) fn new(memory: Arc<dyn DmaMemory + Send + Sync>, at: u64, number: usize, free: &Free) -> Self {
        Self { memory, at, number, free: Arc::clone(free) }
    }

    /// Address of its first byte for the device.
    pub(crate) fn device_address(&self) -> u64 {
        self.memory.device_address() + self.at
    }

    /// Whether it is one of these.
    pub(crate) fn is_of(&self, free: &Free) -> bool {
        Arc::ptr_eq(&self.free, free)
    }

    fn inside(at: usize, len: usize) -> Result<(), DeviceError> {
        match at.checked_add(len) {
            Some(end) if end <= PLACE => Ok(()),
            _ => Err(OutOfRange { offset: at as u64, len: len as u64, size: PLACE as u64 }.into()),
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

impl Drop for Place {
    fn drop(&mut self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}
