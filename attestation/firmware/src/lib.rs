//! Boot ROM and Security Kernel for the RISC-V core of `shef_kernel`.
//!
//! Two programs, `rom` and `kernel`, built on the crate `shef-kernel`. This library holds their
//! shared parts and those that can be tested on any machine: the hardware interface ([`Hardware`]),
//! the mailbox ([`serve`]) and the heap ([`Arena`]).
//!
//! Memory: `attestation/firmware/ld`. A trap, a panic (compiled to an illegal instruction) or an
//! exhausted heap wipes RAM and units, raises an alert and stops the core until reset.
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

/// Location of the boot ROM's identity, in the form of [`shef_kernel::Identity::to_bytes`].
pub use shef_units::HANDOVER;
