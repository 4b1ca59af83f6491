//! The core's own bus.
#![expect(unsafe_code, reason = "registers are reached by their addresses")]

use crate::bus::Bus;
#[cfg(feature = "core")]
use crate::units::Units;

/// The bus of the core that this program runs on. Programs of other machines have none.
#[derive(Clone, Copy, Debug)]
pub struct Mmio(());

#[cfg(feature = "core")]
impl Mmio {
    /// The bus.
    pub const CORE: Self = Self(());
}

/// The units of the core that this program runs on.
#[cfg(feature = "core")]
pub const CORE: Units<Mmio> = Units::new(Mmio::CORE);

impl Bus for Mmio {
    fn read(&self, address: u32) -> u32 {
        // SAFETY: a value of this type exists in programs for the core of `shef_kernel` alone
        // (feature `core`). Its bus answers every address: with a register, or a trap that ends the
        // program; of memory, programs give it only what their linker scripts keep free of Rust's.
        unsafe { core::ptr::with_exposed_provenance::<u32>(address as usize).read_volatile() }
    }

    fn write(&self, address: u32, value: u32) {
        // SAFETY: as above.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(address as usize).write_volatile(value) }
    }
}
