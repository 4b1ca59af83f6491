//! Device errors on the wire: errors that programs distinguish by their fields keep them, and all
//! others are sent as code and message.

use shef_device::DeviceError;

use super::WireError;
use super::bytes::{Reader, Writer};

const OTHER: u8 = 0;
const GONE: u8 = 1;
const CTL_REFUSED: u8 = 2;
const MEMORY_RANGE: u8 = 3;
const MAILBOX_TOO_LONG: u8 = 4;
const MAILBOX_TIMEOUT: u8 = 5;

pub(super) fn write(w: &mut Writer, error: &DeviceError) {
    match error {
        DeviceError::Gone { offset } => {
            w.u8(GONE);
            w.u32(*offset);
        }
        DeviceError::CtlRefused { access, offset } => {
            w.u8(CTL_REFUSED);
            w.u8(u8::from(*access == "write"));
            w.u32(*offset);
        }
        DeviceError::MemoryRange { addr, len, memory_bytes } => {
            w.u8(MEMORY_RANGE);
            for n in [addr, len, memory_bytes] {
                w.u64(*n);
            }
        }
        DeviceError::MailboxTooLong { len, max } => {
            w.u8(MAILBOX_TOO_LONG);
            w.u64(*len as u64);
            w.u64(*max as u64);
        }
        DeviceError::MailboxTimeout { status, polls } => {
            w.u8(MAILBOX_TIMEOUT);
            w.u32(*status);
            w.u32(*polls);
        }
        other => {
            w.u8(OTHER);
            w.text(other.code());
            w.text(&other.to_string());
        }
    }
}

pub(super) fn read(r: &mut Reader<'_>) -> Result<DeviceError, WireError> {
    Ok(match r.u8("kind of error")? {
        OTHER => DeviceError::Remote { code: code(r)?, message: r.text("message of an error")? },
        GONE => DeviceError::Gone { offset: r.u32("offset")? },
        CTL_REFUSED => {
            let access = if r.flag("access")? { "write" } else { "read" };
            DeviceError::CtlRefused { access, offset: r.u32("offset")? }
        }
        MEMORY_RANGE => DeviceError::MemoryRange {
            addr: r.u64("address")?,
            len: r.u64("length")?,
            memory_bytes: r.u64("memory size")?,
        },
        MAILBOX_TOO_LONG => {
            let (len, max) = (r.u64("length")?, r.u64("limit")?);
            let size = |n: u64| {
                usize::try_from(n).map_err(|_| WireError::Value {
                    what: "mailbox length",
                    found: n,
                    expected: "a size of this machine",
                })
            };
            DeviceError::MailboxTooLong { len: size(len)?, max: size(max)? }
        }
        MAILBOX_TIMEOUT => {
            DeviceError::MailboxTimeout { status: r.u32("status")?, polls: r.u32("polls")? }
        }
        found => {
            return Err(WireError::Value {
                what: "kind of error",
                found: found.into(),
                expected: "0 to 5",
            });
        }
    })
}

/// A stable code: `SHEF-XXX-nnn`.
pub(super) fn code(r: &mut Reader<'_>) -> Result<String, WireError> {
    let code = r.text("code of an error")?;
    let fine = code.len() <= 32
        && code.starts_with("SHEF-")
        && code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-');
    if fine { Ok(code) } else { Err(WireError::Text { what: "code of an error" }) }
}
