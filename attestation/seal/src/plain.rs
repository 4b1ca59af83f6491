//! Plaintext in bulk.

use alloc::vec;
use alloc::vec::Vec;

/// Plaintext in bulk, erased when dropped. Its memory is what it was made with, so that nothing is
/// left behind elsewhere.
pub struct Plain {
    bytes: Vec<u8>,
    len: usize,
}

impl Plain {
    /// So many zeros.
    pub fn zeros(len: usize) -> Self {
        Self { bytes: vec![0; len], len }
    }

    /// Shows only the first `len` bytes from now on. The rest is erased with them.
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
        // As fast as memory is written: byte by byte it would take longer than the cipher. The
        // barrier keeps it from being left out.
        self.bytes.fill(0);
        zeroize::optimization_barrier(&self.bytes[..]);
    }
}
