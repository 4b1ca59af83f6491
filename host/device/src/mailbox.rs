//! The Security Kernel's mailbox in the control window.
//!
//! The host writes a request, then its length (the doorbell); the kernel copies the request before
//! it parses it. One request at a time.

use crate::batch::{CtlOp, bytes_of};
use crate::{Device, DeviceError};

/// Offset of the request buffer.
pub const REQUEST: u32 = 0xC000;
/// Offset of the answer buffer.
pub const ANSWER: u32 = 0xE000;
/// Bytes of the request buffer.
pub const MAX_REQUEST: usize = 0x2000;
/// Bytes of the answer buffer.
pub const MAX_ANSWER: usize = 0x1E00;
/// Register: length of the request; writing it submits the request.
pub const REQ_LEN: u32 = 0xFF00;
/// Register: [`STATUS_IDLE`], [`STATUS_ANSWER`] or [`STATUS_BUSY`].
pub const STATUS: u32 = 0xFF04;
/// Register: length of the answer.
pub const RSP_LEN: u32 = 0xFF08;
/// No request since reset.
pub const STATUS_IDLE: u32 = 0;
/// The answer buffer holds the answer to the last request.
pub const STATUS_ANSWER: u32 = 1;
/// The kernel is working.
pub const STATUS_BUSY: u32 = 2;

/// Polls before the host gives up on a silent kernel.
const MAX_POLLS: u32 = 1_000_000;

/// Sends `request` to the kernel through the control window and returns the answer.
///
/// # Errors
/// [`DeviceError::MailboxTooLong`], [`DeviceError::MailboxTimeout`], and those of the device.
pub fn call<D: Device + ?Sized>(device: &mut D, request: &[u8]) -> Result<Vec<u8>, DeviceError> {
    call_by(request, |ops| device.ctl_batch(ops))
}

/// Like [`call`], but `run` makes the accesses, and may abort.
///
/// # Errors
/// As [`call`], and those of `run`.
pub fn call_by(
    request: &[u8],
    mut run: impl FnMut(&[CtlOp]) -> Result<Vec<u32>, DeviceError>,
) -> Result<Vec<u8>, DeviceError> {
    if request.len() > MAX_REQUEST {
        return Err(DeviceError::MailboxTooLong { len: request.len(), max: MAX_REQUEST });
    }
    let mut ops: Vec<CtlOp> = CtlOp::write_bytes(REQUEST, request).collect();
    ops.push(CtlOp::Write { offset: REQ_LEN, value: request.len() as u32 });
    ops.push(CtlOp::Poll {
        offset: STATUS,
        clear: !STATUS_ANSWER,
        some: STATUS_ANSWER,
        polls: MAX_POLLS,
    });
    ops.push(CtlOp::Read { offset: RSP_LEN });
    match run(&ops)?[..] {
        [_, len] if len as usize <= MAX_ANSWER => {
            let len = len as usize;
            let words = run(&CtlOp::read_words(ANSWER, len.div_ceil(4)).collect::<Vec<_>>())?;
            let mut bytes = bytes_of(&words);
            bytes.truncate(len);
            Ok(bytes)
        }
        [_, len] => Err(DeviceError::MailboxTooLong { len: len as usize, max: MAX_ANSWER }),
        [u32::MAX] => Err(DeviceError::Gone { offset: STATUS }),
        ref values => Err(DeviceError::MailboxTimeout {
            status: values.first().copied().unwrap_or(0),
            polls: MAX_POLLS,
        }),
    }
}

/// Writes bytes into a buffer of the control window; the last word is padded with zeros.
///
/// # Errors
/// The device's.
pub fn write_bytes<D: Device + ?Sized>(
    device: &mut D,
    offset: u32,
    bytes: &[u8],
) -> Result<(), DeviceError> {
    device.ctl_batch(&CtlOp::write_bytes(offset, bytes).collect::<Vec<_>>()).map(|_| ())
}

/// Reads bytes from a buffer of the control window.
///
/// # Errors
/// The device's.
pub fn read_bytes<D: Device + ?Sized>(
    device: &mut D,
    offset: u32,
    len: usize,
) -> Result<Vec<u8>, DeviceError> {
    let words =
        device.ctl_batch(&CtlOp::read_words(offset, len.div_ceil(4)).collect::<Vec<_>>())?;
    let mut bytes = bytes_of(&words);
    bytes.truncate(len);
    Ok(bytes)
}
