//! The Security Kernel's mailbox in the control window.
//!
//! The host writes a request, then its length (the doorbell); the kernel copies the request before it looks at it. One request at a time.

use crate::{Device, DeviceError};

/// Offset of the request buffer.
pub const REQUEST: u32 = 0xC000;
/// Offset of the answer buffer.
pub const ANSWER: u32 = 0xE000;
/// Bytes of the request buffer.
pub const MAX_REQUEST: usize = 0x2000;
/// Bytes of the answer buffer.
pub const MAX_ANSWER: usize = 0x1E00;
/// Register: length of the request; writing it hands the request over.
pub const REQ_LEN: u32 = 0xFF00;
/// Register: [`STATUS_IDLE`], [`STATUS_ANSWER`] or [`STATUS_BUSY`].
pub const STATUS: u32 = 0xFF04;
/// Register: length of the answer.
pub const RSP_LEN: u32 = 0xFF08;
/// Nothing was asked since reset.
pub const STATUS_IDLE: u32 = 0;
/// The answer buffer holds the answer to the last request.
pub const STATUS_ANSWER: u32 = 1;
/// The kernel works.
pub const STATUS_BUSY: u32 = 2;

/// Polls until a silent kernel is given up.
const MAX_POLLS: u32 = 1_000_000;

/// Hands `request` to the kernel over the control window and returns the answer.
///
/// # Errors
/// [`DeviceError::MailboxTooLong`], [`DeviceError::MailboxTimeout`], and those of the device.
pub fn call<D: Device + ?Sized>(device: &mut D, request: &[u8]) -> Result<Vec<u8>, DeviceError> {
    if request.len() > MAX_REQUEST {
        return Err(DeviceError::MailboxTooLong { len: request.len(), max: MAX_REQUEST });
    }
    write_bytes(device, REQUEST, request)?;
    device.ctl_write32(REQ_LEN, request.len() as u32)?;
    for polls in 0..=MAX_POLLS {
        match device.ctl_read32(STATUS)? {
            STATUS_ANSWER => break,
            status if polls == MAX_POLLS => return Err(DeviceError::MailboxTimeout { status, polls }),
            _ => device.wait_hint()?,
        }
    }
    let len = device.ctl_read32(RSP_LEN)? as usize;
    if len > MAX_ANSWER {
        return Err(DeviceError::MailboxTooLong { len, max: MAX_ANSWER });
    }
    read_bytes(device, ANSWER, len)
}

/// Writes bytes into a buffer of the control window, the last word filled with zeros.
///
/// # Errors
/// Those of the device.
pub fn write_bytes<D: Device + ?Sized>(device: &mut D, offset: u32, bytes: &[u8]) -> Result<(), DeviceError> {
    for (i, chunk) in bytes.chunks(4).enumerate() {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        device.ctl_write32(offset + 4 * i as u32, u32::from_le_bytes(word))?;
    }
    Ok(())
}

/// Reads bytes from a buffer of the control window.
///
/// # Errors
/// Those of the device.
pub fn read_bytes<D: Device + ?Sized>(device: &mut D, offset: u32, len: usize) -> Result<Vec<u8>, DeviceError> {
    let mut bytes = Vec::with_capacity(len + 3);
    for i in 0..len.div_ceil(4) {
        bytes.extend_from_slice(&device.ctl_read32(offset + 4 * i as u32)?.to_le_bytes());
    }
    bytes.truncate(len);
    Ok(bytes)
}
