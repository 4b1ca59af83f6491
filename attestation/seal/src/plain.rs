//! Plaintext in bulk.

use alloc::vec;
use alloc::vec::Vec;

/// Plaintext in bulk, erased when dropped. It has the length that it was made with, so that nothing is left behind elsewhere.
pub struct Plain(Vec<u8>);

impl Plain {
    /// So many zeros.
    pub fn zeros(len: usize) -> Self {
        Self(vec![0; len])
    }
}

impl core::ops::Deref for Plain {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl core::ops::DerefMut for Plain {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // As fast as memory is written: byte by byte it would take longer than the cipher. The barrier keeps it from being left out.
        self.0.fill(0);
        zeroize::optimization_barrier(&self.0[..]);
    }
}
