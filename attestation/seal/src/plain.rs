//! Bulk plaintext.

use alloc::vec;
use alloc::vec::Vec;

/// Bulk plaintext, erased when dropped. It is never reallocated, so no copy is left behind.
pub struct Plain {
    bytes: Vec<u8>,
    len: usize,
}

impl Plain {
    /// A buffer of zeros.
    pub fn zeros(len: usize) -> Self {
        Self { bytes: vec![0; len], len }
    }

    /// Truncates the visible part to `len` bytes. The rest is still erased on drop.
    pub fn shorten(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl core::ops::Deref for Plain {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl core::ops::DerefMut for Plain {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // At memory write speed: byte by byte it would take longer than the cipher. The barrier
        // prevents the compiler from removing it.
        self.bytes.fill(0);
        zeroize::optimization_barrier(&self.bytes[..]);
    }
}
