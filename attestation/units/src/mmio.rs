//! The core's own bus.
#![expect(unsafe_code, reason = "registers are reached by their addresses")]

use crate::bus::Bus;

/// The bus of the core that this code runs on. Programs of other machines cannot make one.
#[derive(Clone, Copy, Debug)]
pub struct Mmio(());

impl Mmio {
    /// The bus.
    ///
    /// # Safety
    /// The program runs on the core of `shef_kernel`, and gives the bus no address of memory that
    /// Rust objects live in.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

impl Bus for Mmio {
    fn read(&self, address: u32) -> u32 {
        // SAFETY: by the contract of `new` this is the core of `shef_kernel`, whose bus answers
        // every address: a register, a memory outside of Rust's, or a trap that ends the program.
        unsafe { core::ptr::with_exposed_provenance::<u32>(address as usize).read_volatile() }
    }

    fn write(&self, address: u32, value: u32) {
        // SAFETY: as above, and by the same contract no Rust object lives there.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(address as usize).write_volatile(value) }
    }
}
