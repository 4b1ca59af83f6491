//! The bus of the Security Kernel's core, and the registers on it.
#![no_std]

mod bus;
mod mmio;
pub mod regs;

pub use bus::Bus;
pub use mmio::Mmio;
