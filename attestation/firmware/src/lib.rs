//! Boot ROM and Security Kernel for the RISC-V core of `shef_kernel`.
//!
//! Two programs, `rom` and `kernel`, around the crate `shef-kernel`. Here is what both need and
//! what can be tested on any machine: the hardware as the crate sees it ([`Hardware`]), the mailbox
//! ([`serve`]) and the heap ([`Arena`]).
//!
//! Memory: `attestation/firmware/ld`. A trap, a panic (the compiler makes an illegal instruction of
//! it) or an exhausted heap wipes RAM and units, raises an alert and stops the core until reset.
#![no_std]
extern crate alloc;

mod hardware;
mod heap;
#[cfg(feature = "hardware")]
pub mod machine;
mod mailbox;
pub mod signer;

pub use hardware::{Hardware, stop};
pub use heap::{Arena, Words};
pub use mailbox::serve;

/// Where the boot ROM leaves the identity: the bytes are those of [`shef_kernel::Identity::to_bytes`].
pub use shef_units::HANDOVER;
