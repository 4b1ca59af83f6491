//! Batches of register accesses: one round trip on a remote device.

use crate::{Device, DeviceError};

/// One access of a batch. Offsets are bytes into BAR0, multiples of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CtlOp {
    /// Reads a register.
    Read {
        /// Offset in the control window.
        offset: u32,
    },
    /// Writes a register.
    Write {
        /// Offset in the control window.
        offset: u32,
        /// Value.
        value: u32,
    },
    /// Reads a register until no bit of `clear` and at least one bit of `some` is set (`some` 0: no
    /// such condition), or it reads all ones, or it was read `polls` times. Time passes between two
    /// reads. A poll that does not settle ends the batch.
    Poll {
        /// Offset in the control window.
        offset: u32,
        /// Bits that must all be 0.
        clear: u32,
        /// Bits of which at least one must be 1.
        some: u32,
        /// Most reads, at least one.
        polls: u32,
    },
}

impl CtlOp {
    /// Whether `value` ends a poll successfully; true for the other accesses.
    pub fn settled(&self, value: u32) -> bool {
        match *self {
            Self::Poll { clear, some, .. } => {
                value != u32::MAX && value & clear == 0 && (some == 0 || value & some != 0)
            }
            _ => true,
        }
    }

    /// Reads of consecutive words, first to last.
    pub fn read_words(offset: u32, words: usize) -> impl Iterator<Item = Self> {
        (0..words as u32).map(move |i| Self::Read { offset: offset + 4 * i })
    }

    /// Writes of bytes into consecutive words; the last word is padded with zeros.
    pub fn write_bytes(offset: u32, bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        (0..).zip(bytes.chunks(4)).map(move |(i, chunk)| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            Self::Write { offset: offset + 4 * i, value: u32::from_le_bytes(word) }
        })
    }
}

/// Runs a batch access by access: the default of [`Device::ctl_batch`].
///
/// # Errors
/// The error of the first access that fails; later accesses are not made.
pub fn run<D: Device + ?Sized>(device: &mut D, ops: &[CtlOp]) -> Result<Vec<u32>, DeviceError> {
    let mut values = Vec::new();
    for op in ops {
        match *op {
            CtlOp::Read { offset } => values.push(device.ctl_read32(offset)?),
            CtlOp::Write { offset, value } => device.ctl_write32(offset, value)?,
            CtlOp::Poll { offset, polls, .. } => {
                let mut value = device.ctl_read32(offset)?;
                for _ in 1..polls {
                    if op.settled(value) || value == u32::MAX {
                        break;
                    }
                    device.wait_hint()?;
                    value = device.ctl_read32(offset)?;
                }
                values.push(value);
                if !op.settled(value) {
                    break;
                }
            }
        }
    }
    Ok(values)
}

/// The bytes of the words read.
pub fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
