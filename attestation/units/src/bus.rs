//! 32-bit accesses by address.

/// A bus with registers and memories: the core's ([`crate::Mmio`]), or a model of it in tests.
pub trait Bus {
    /// Reads the word at a word-aligned address.
    fn read(&self, address: u32) -> u32;

    /// Writes the word at a word-aligned address.
    fn write(&self, address: u32, value: u32);
}

impl<B: Bus + ?Sized> Bus for &B {
    fn read(&self, address: u32) -> u32 {
        (**self).read(address)
    }

    fn write(&self, address: u32, value: u32) {
        (**self).write(address, value);
    }
}
