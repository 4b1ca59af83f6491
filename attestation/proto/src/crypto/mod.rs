//! Cryptographic primitives behind one trait: scalar multiplication on P-256, SHA-256 and AES-GCM.
//!
//! [`Crypto`] has two implementations: [`Software`], and the units of the Security Kernel's
//! subsystem (feature `units`, for the firmware). [`ACTIVE`] is the one that this build uses. This
//! module builds HMAC, HKDF and ECDSA on it, as the formats need them.

mod ecdsa;
pub mod scrub;
mod software;
mod units;

use alloc::vec::Vec;

use zeroize::Zeroizing;

pub use ecdsa::{in_range, is_low_s, sign, to_low_s, twin, verify};
pub use software::Software;

/// The type of this build's implementation.
#[cfg(not(feature = "units"))]
pub type Active = Software;
/// The implementation of this build.
#[cfg(not(feature = "units"))]
pub const ACTIVE: &Active = &Software;
/// The type of this build's implementation.
#[cfg(feature = "units")]
pub type Active = shef_units::Units<shef_units::Mmio>;
/// The implementation of this build.
#[cfg(feature = "units")]
pub const ACTIVE: &Active = &shef_units::CORE;

/// Bytes of a GCM tag.
pub const TAG_LEN: usize = 16;

/// The primitives. Numbers and coordinates are big-endian.
pub trait Crypto {
    /// A running SHA-256, which may overlap with other hashes; units have one at a time.
    type Running;

    /// SHA-256 of the concatenated parts.
    fn sha256(&self, parts: &[&[u8]]) -> [u8; 32];

    /// Begins a running SHA-256.
    fn begin(&self) -> Self::Running;

    /// Appends to it.
    fn add(&self, hash: &mut Self::Running, part: &[u8]);

    /// Finishes it.
    fn end(&self, hash: Self::Running) -> [u8; 32];

    /// Whether `x | y` is a point of the curve.
    fn on_curve(&self, point: &[u8; 64]) -> bool;

    /// `scalar` times `point`, which is on the curve, or times the generator; `None` is the point
    /// at infinity. Takes the same time for every scalar.
    fn multiply(&self, scalar: &[u8; 32], point: Option<&[u8; 64]>) -> Option<[u8; 64]>;

    /// Encrypts `data` in place with AES-GCM and returns the tag. The key has 16 or 32 bytes.
    fn seal(&self, key: &[u8], iv: &[u8; 12], aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN];

    /// Decrypts `data` in place. If the tag is wrong, zeroises `data` and returns false.
    #[must_use]
    fn open(
        &self,
        key: &[u8],
        iv: &[u8; 12],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> bool;
}

/// SHA-256 of one message.
#[must_use]
pub fn sha256(message: &[u8]) -> [u8; 32] {
    ACTIVE.sha256(&[message])
}

/// HMAC-SHA-256 of the concatenated parts.
#[must_use]
pub fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut inner = Zeroizing::new([0x36; BLOCK]);
    let mut outer = Zeroizing::new([0x5c; BLOCK]);
    let mut xor = |key: &[u8]| {
        for ((inner, outer), byte) in inner.iter_mut().zip(outer.iter_mut()).zip(key) {
            *inner ^= byte;
            *outer ^= byte;
        }
    };
    if key.len() > BLOCK {
        xor(&Zeroizing::new(sha256(key))[..]);
    } else {
        xor(key);
    }
    let mut all: Vec<&[u8]> = Vec::with_capacity(1 + parts.len());
    all.push(&inner[..]);
    all.extend_from_slice(parts);
    let digest = Zeroizing::new(ACTIVE.sha256(&all));
    ACTIVE.sha256(&[&outer[..], &digest[..]])
}

/// `HKDF-Extract(salt, parts)`.
#[must_use]
pub fn extract(salt: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(hmac(salt, parts))
}

/// `HKDF-Expand(prk, parts)` for at most 32 bytes: one block.
#[must_use]
pub fn expand<const N: usize>(prk: &[u8; 32], info: &[&[u8]]) -> Zeroizing<[u8; N]> {
    const { assert!(N <= 32) };
    let mut all: Vec<&[u8]> = Vec::with_capacity(info.len() + 1);
    all.extend_from_slice(info);
    all.push(&[1]);
    let block = Zeroizing::new(hmac(prk, &all));
    let mut out = Zeroizing::new([0; N]);
    out.copy_from_slice(&block[..N]);
    out
}
