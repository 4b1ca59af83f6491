//! A simulated card: BAR0 with the Shield's control window and the kernel's mailbox, card memory,
//! the Security Kernel, and behind them the functional model or the Verilated RTL.
//!
//! A card is manufactured like a real one: [`Blank`] takes a device secret from its manufacturer,
//! returns the DeviceID key, takes the certificate and becomes a [`Card`]. Its root of trust is
//! `simulated`, as its evidence states.

mod backend;
mod card;
mod config_space;
pub mod control;
mod dma;
mod error;
mod f2;
mod host_port;
mod kernel;
mod link;
mod model;
mod platform;
mod rtl;
mod serve;

pub use backend::MemoryTap;
pub use card::{Blank, Card, CardOptions, CardProbe, Engine, MEMORY_BYTES};
pub use control::{Control, Identity};
pub use error::CardError;
pub use kernel::{BootFault, BootStage, KernelView};
pub use link::LinkFault;
pub use platform::{KERNEL_SVN, kernel_digest, shell_digest};
pub use rtl::{BareCard, RtlOptions};
pub use serve::{ServeOptions, serve};
pub use shef_device::{SimKernel, SimParameters, SimShell, WaveScope};
pub use shef_project::{
    ACCELERATOR, Design, TARGET, digits_config as config, repo_root as repository,
};
pub use shef_rtl::{PortEvent, Traced, cache_dir, check, measure, progress};

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = CardError::CODES;

use shef_proto::code::Code;

/// Checks that this machine has the tools that build a card around the RTL.
///
/// # Errors
/// [`CardError::Rtl`] names the first that is missing.
pub fn rtl_tools() -> Result<(), CardError> {
    shef_rtl::find_toolchain()?;
    shef_rtl::find_ibex()?;
    Ok(())
}

/// Codes of this crate and its dependencies, in groups.
pub fn codes() -> Vec<(&'static str, Vec<&'static Code>)> {
    vec![
        ("Security Kernel", shef_kernel::CODES.iter().collect()),
        ("Verilated RTL", shef_rtl::CODES.iter().collect()),
        ("projects", shef_project::CODES.iter().collect()),
        ("generators", shef_gen::CODES.iter().collect()),
        ("simulated card", CODES.iter().collect()),
    ]
}
