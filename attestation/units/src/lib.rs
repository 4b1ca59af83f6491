//! The bus of the Security Kernel's core, its registers, and drivers of its crypto units.
#![no_std]
#[cfg(test)]
extern crate std;

mod bus;
mod mmio;
pub mod regs;
mod units;

pub use bus::Bus;
#[cfg(feature = "core")]
pub use mmio::CORE;
pub use mmio::{HANDOVER, Mmio};
pub use units::{Running, Units};
