//! The core's bus.
#![expect(unsafe_code, reason = "registers are reached by their addresses")]

use crate::bus::Bus;
use crate::regs;
#[cfg(feature = "core")]
use crate::units::Units;

/// The bus of the core that runs this program. It does not exist on other machines.
#[derive(Clone, Copy, Debug)]
pub struct Mmio(());

#[cfg(feature = "core")]
impl Mmio {
    /// The bus.
    pub const CORE: Self = Self(());
}

/// The units of the core that runs this program.
#[cfg(feature = "core")]
pub const CORE: Units<Mmio> = Units::new(Mmio::CORE);

/// Location where the boot ROM leaves the identity: its length (32 bits), then its bytes. Stack and
/// heap memory ends before it.
pub const HANDOVER: u32 = 0x2003_f000;

const MEMORY_END: u32 = regs::MEMORY + regs::MEMORY_LEN as u32;
const RAM_END: u32 = regs::RAM + regs::RAM_LEN as u32;
const MEDIUM_END: u32 = regs::MEDIUM + regs::MEDIUM_LEN as u32;
const REGISTERS_END: u32 = regs::MEASURE + regs::MEASURE_LEN as u32;

/// Converts the address of a word in kernel memory, where Rust writes no object, in the end of RAM
/// that linker scripts reserve for the identity, in the boot medium, or of a register.
///
/// # Panics
/// The address is not one of these.
// Nearly all addresses are constants, for which the check compiles away.
#[inline(always)]
fn reached(address: u32) -> usize {
    let known = matches!(address, regs::MEMORY..MEMORY_END | HANDOVER..RAM_END | regs::MEDIUM..MEDIUM_END | regs::SYS..REGISTERS_END);
    assert!(known && address.is_multiple_of(4));
    address as usize
}

impl Bus for Mmio {
    fn read(&self, address: u32) -> u32 {
        // SAFETY: a value of this type exists only in programs for the core of `shef_kernel`
        // (feature `core`). Its bus answers these addresses with a word, or with a trap that ends
        // the program. Reads change no memory that Rust uses.
        unsafe { core::ptr::with_exposed_provenance::<u32>(reached(address)).read_volatile() }
    }

    fn write(&self, address: u32, value: u32) {
        // SAFETY: as above; the linker scripts keep stack, heap and statics out of these addresses,
        // and kernel memory, which holds the kernel's code, is closed to writes once it runs.
        unsafe {
            core::ptr::with_exposed_provenance_mut::<u32>(reached(address)).write_volatile(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HANDOVER, reached};
    use crate::regs;

    #[test]
    fn registers_medium_and_what_linker_scripts_leave_are_reached_and_no_more() {
        for address in [
            regs::MEMORY,
            regs::SYS,
            regs::MEDIUM + 4,
            HANDOVER,
            regs::MEASURE + regs::MEASURE_LEN as u32 - 4,
        ] {
            assert_eq!(reached(address), address as usize);
        }
        let stack_and_heap = [regs::RAM, HANDOVER - 4];
        for address in stack_and_heap.into_iter().chain([
            regs::ROM,
            regs::RAM + regs::RAM_LEN as u32,
            regs::MEASURE + 0x1000,
            regs::SYS + 2,
            u32::MAX - 3,
        ]) {
            assert!(std::panic::catch_unwind(|| reached(address)).is_err(), "{address:#x}");
        }
    }
}
