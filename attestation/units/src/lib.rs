//! The bus of the Security Kernel's core, its registers, and drivers of its crypto units.
#![no_std]
#[cfg(test)]
extern crate std;

mod bus;
mod mmio;
mod units;

pub use bus::Bus;
#[cfg(feature = "core")]
pub use mmio::CORE;
pub use mmio::{HANDOVER, Mmio};
pub use shef_regs::bus as regs;
pub use units::{Running, Units};
