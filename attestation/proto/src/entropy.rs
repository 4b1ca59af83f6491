//! Randomness is an input: every function that needs it takes a `&mut dyn Entropy`. This crate has
//! no entropy source.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// A source of random bytes. Programs supply the operating system's source; [`SeededEntropy`] is
/// for repeatable simulation.
pub trait Entropy {
    /// Fills all of `out`.
    fn fill(&mut self, out: &mut [u8]);

    /// Whether the bytes come from a test seed and are predictable to anyone who knows it. Keys
    /// made from them must not go to a device that is not simulated.
    fn is_seeded(&self) -> bool {
        false
    }
}

impl<E: Entropy + ?Sized> Entropy for &mut E {
    fn fill(&mut self, out: &mut [u8]) {
        (**self).fill(out);
    }

    fn is_seeded(&self) -> bool {
        (**self).is_seeded()
    }
}

/// Repeatable bytes from a seed, for simulated devices only: block `i` is
/// `HMAC-SHA-256(key, i u64)` with
/// `key = SHA-256("shef-seeded/1" | label_len u16 | label | seed u64)`.
pub struct SeededEntropy {
    key: Zeroizing<[u8; 32]>,
    counter: u64,
    block: Zeroizing<[u8; 32]>,
    used: usize,
}

impl SeededEntropy {
    /// The stream of `seed` for one party or purpose; different labels are independent.
    pub fn new(seed: u64, label: &str) -> Self {
        let mut h = Sha256::new();
        h.update(b"shef-seeded/1");
        h.update(u16::try_from(label.len()).unwrap_or(u16::MAX).to_be_bytes());
        h.update(label.as_bytes());
        h.update(seed.to_be_bytes());
        Self {
            key: Zeroizing::new(h.finalize().into()),
            counter: 0,
            block: Zeroizing::new([0; 32]),
            used: 32,
        }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            if self.used == 32 {
                let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key[..])
                    .expect("HMAC takes a key of any length");
                mac.update(&self.counter.to_be_bytes());
                self.block.copy_from_slice(&mac.finalize().into_bytes());
                self.counter += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }

    fn is_seeded(&self) -> bool {
        true
    }
}
