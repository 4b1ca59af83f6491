//! Overwrites the stack after computations with secrets.
//!
//! Ciphers and derivations leave round keys and scalars on the stack. A value with padding can
//! later carry these bytes to the heap, and nothing erases them there. A computation therefore
//! clears its part of the stack when it ends.

use core::hint::black_box;

/// Stack bytes that AES-GCM with its key expansion uses.
pub const CIPHER: usize = 8 << 10;
/// Stack bytes that key derivation, HPKE and P-256 use.
pub const DERIVATION: usize = 128 << 10;

/// Overwrites `BYTES` of the stack below the frame that drops it, on every exit path.
pub struct Scrub<const BYTES: usize>;

impl<const BYTES: usize> Drop for Scrub<BYTES> {
    fn drop(&mut self) {
        scrub::<BYTES>();
    }
}

/// Runs `work` in a frame below this one, then overwrites `BYTES` of the stack from there on, even
/// after a panic.
pub fn scrubbed<const BYTES: usize, T>(work: impl FnOnce() -> T) -> T {
    let _scrub = Scrub::<BYTES>;
    run(work)
}

/// [`scrubbed`] for derivations from secrets. Firmware does not need it: it clears its memory after
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
