//! Predictable noise that passes the health tests: a pattern of 17 bits that matches itself only at
//! shift 0, so that a value drawn from it is one of 289.

use sha2::{Digest, Sha256};

/// Bits of the pattern.
const PERIOD: usize = 17;

/// The bit at this position: whether it is a square modulo 17.
pub fn bit(at: u64) -> bool {
    let at = at as usize % PERIOD;
    (1..PERIOD).any(|root| root * root % PERIOD == at)
}

fn word(at: usize) -> u32 {
    (0..32).fold(0, |word, n| word << 1 | u32::from(bit((at + n) as u64)))
}

/// The firmware's possible draws, each with the position of the word that then waits for the next
/// draw: 31 consecutive words after a first word, which waited for its reader, most likely the one
/// at `waits`.
pub fn draws(waits: usize) -> impl Iterator<Item = (usize, [u8; 32])> {
    let places = (0..PERIOD)
        .flat_map(move |first| (0..PERIOD).map(move |rest| ((waits + first) % PERIOD, rest)));
    places.map(|(first, rest)| {
        let words = std::iter::once(word(first)).chain((0..31).map(|n| word(rest + 32 * n)));
        let raw: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        ((rest + 32 * 31) % PERIOD, Sha256::digest(raw).into())
    })
}
