//! vfio-user, QEMU's protocol for a PCI device over a Unix socket. A [`Client`] drives a device
//! that another process serves; a [`Server`] serves one.
//!
//! Written for this project because the client must detect refusals and time-outs. The server must
//! answer every message, whatever its contents, and access memory that arrives without a file
//! descriptor.
//!
//! Supported: version negotiation with optional capabilities, device, region and interrupt
//! information, mappable areas with their file descriptor, interrupts by event descriptors, region
//! reads and writes, DMA maps with and without a file descriptor, DMA reads and writes by message
//! for the latter, reset. Not supported: migration, dirty pages, twin sockets, several writes in
//! one message.

mod client;
mod control;
mod dma;
mod error;
mod function;
mod listening;
mod server;
mod socket;
pub mod wire;

pub use client::{Client, DEFAULT_TIMEOUT};
pub use dma::{DmaError, DmaErrorKind};
pub use error::VfioUserError;
pub use function::{VfioUserFunction, open, open_uri};
pub use listening::Listening;
pub use server::{Backend, Bus, NO_ANSWER, Region, Server};

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = VfioUserError::CODES;

/// System error numbers, as used in replies.
pub mod errno {
    #![expect(missing_docs, reason = "the system's own names")]
    pub const EIO: u32 = libc::EIO as u32;
    pub const EBUSY: u32 = libc::EBUSY as u32;
    pub const EEXIST: u32 = libc::EEXIST as u32;
    pub const EINVAL: u32 = libc::EINVAL as u32;
    pub const EFAULT: u32 = libc::EFAULT as u32;
    pub const EMSGSIZE: u32 = libc::EMSGSIZE as u32;
    pub const ENOENT: u32 = libc::ENOENT as u32;
    pub const ENOSPC: u32 = libc::ENOSPC as u32;
    pub const ENXIO: u32 = libc::ENXIO as u32;
    pub const EOPNOTSUPP: u32 = libc::EOPNOTSUPP as u32;
    pub const EPROTO: u32 = libc::EPROTO as u32;
    pub const ETIMEDOUT: u32 = libc::ETIMEDOUT as u32;
}

/// Indices of regions of a PCI function.
pub mod region {
    /// First of the six BARs.
    pub const BAR0: u32 = 0;
    /// Expansion ROM.
    pub const ROM: u32 = 6;
    /// Configuration space.
    pub const CONFIG: u32 = 7;
    /// Number of regions, including VGA's.
    pub const COUNT: u32 = 9;
}

/// Indices of kinds of interrupt of a PCI function.
pub mod irq {
    /// MSI-X.
    pub const MSIX: u32 = 2;
    /// Number of kinds.
    pub const COUNT: u32 = 5;
}
