//! Boot code and Security Kernel: measure, load, quote.
//!
//! [`identify`] is the core of the boot code. It takes the device secret once, derives the DeviceID
//! key, certifies the measured kernel's attestation key, and leaves an [`Identity`] without the
//! secrets that the kernel must not have. [`Kernel::handle`] is the kernel behind its mailbox. They
//! access hardware through [`BootPlatform`] and [`Platform`]. In the FPGA they are two programs
//! (`shef-firmware`); natively [`boot`] runs one after the other.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod boot;
mod error;
mod identity;
mod kernel;
mod medium;
mod platform;
pub use boot::{BootError, KernelImage, Measurement, boot, device_id_key, identify};
pub use error::KernelError;
pub use identity::{IDENTITY_MAX, Identity};
pub use kernel::{Kernel, WAITS};
pub use medium::{Medium, SIGNATURE_FILE_LEN, SIMULATED_SIGNER, admit};
pub use platform::{BootPlatform, EntropyQuality, Platform, PlatformError, Shell};

use shef_proto::code::{Code, count, join};

const PARTS: &[&[Code]] = &[BootError::CODES, KernelError::CODES];

/// All codes of this crate.
pub const CODES: &[Code] = &join::<{ count(PARTS) }>(PARTS);
