//! Boot code and Security Kernel: measure, load, quote.
//!
//! [`boot`] is the boot code: it reads the device secret once, derives the DeviceID key, measures
//! the kernel image, certifies the attestation key and erases everything that the kernel must not
//! have. [`Kernel::handle`] is the kernel behind its mailbox. Both access hardware through
//! [`Platform`].
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod boot;
mod error;
mod kernel;
mod platform;
#[expect(dead_code, reason = "the map is whole, the kernel uses a part of it")]
mod regs;

pub use boot::{BootError, KernelImage, boot, device_id_key};
pub use error::KernelError;
pub use kernel::{Kernel, WAITS};
pub use platform::{EntropyQuality, Platform, PlatformError, Shell};

use shef_proto::code::{Code, count, join};

const PARTS: &[&[Code]] = &[BootError::CODES, KernelError::CODES];

/// All codes of this crate.
pub const CODES: &[Code] = &join::<{ count(PARTS) }>(PARTS);
