//! Overwrites the stack that computations with secrets have used.
//!
//! Ciphers and derivations leave round keys and scalars on the stack. A value with padding can later
//! carry such bytes to the heap, and nothing erases them there. So a computation overwrites its part
//! of the stack when it ends.

use core::hint::black_box;

/// Bytes of the stack below AES-GCM with its key expansion.
pub const CIPHER: usize = 8 << 10;
/// Bytes of the stack below key derivation, HPKE and P-256.
pub const DERIVATION: usize = 128 << 10;

/// Overwrites `BYTES` of the stack below the frame that drops it: whichever way that is left.
pub struct Scrub<const BYTES: usize>;

impl<const BYTES: usize> Drop for Scrub<BYTES> {
    fn drop(&mut self) {
        scrub::<BYTES>();
    }
}

/// Runs `work` in a frame below this one, then overwrites `BYTES` of the stack from there on, after
/// a panic as well.
pub fn scrubbed<const BYTES: usize, T>(work: impl FnOnce() -> T) -> T {
    let _scrub = Scrub::<BYTES>;
    run(work)
}

/// [`scrubbed`] for what derives from secrets. Firmware has no such stack: it clears its memory after
/// each message.
#[cfg(not(feature = "units"))]
macro_rules! derived {
    ($work:expr) => {
        $crate::crypto::scrub::scrubbed::<{ $crate::crypto::scrub::DERIVATION }, _>(|| $work)
    };
}
#[cfg(feature = "units")]
macro_rules! derived {
    ($work:expr) => {
        $work
    };
}
pub(crate) use derived;

#[inline(never)]
fn run<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// Overwrites `BYTES` of the stack below the caller's frame.
#[inline(never)]
pub fn scrub<const BYTES: usize>() {
    let mut below = [0_u8; BYTES];
    black_box(&mut below);
}
