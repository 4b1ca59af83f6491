//! Noise that the health tests let through and a test can foretell: a pattern of 17 bits that is like
//! itself at no other place, so that what is drawn of it is one of 289 values.

use sha2::{Digest, Sha256};

/// Bits of the pattern.
const PERIOD: usize = 17;

/// The bit at this place: whether it is a square modulo 17.
pub fn bit(at: u64) -> bool {
    let at = at as usize % PERIOD;
    (1..PERIOD).any(|root| root * root % PERIOD == at)
}

fn word(at: usize) -> u32 {
    (0..32).fold(0, |word, n| word << 1 | u32::from(bit((at + n) as u64)))
}

/// What firmware draws, and the place of the word that waits for the next draw: 31 words that follow
/// each other after a first one, which waited for its reader, most likely that at `waits`.
pub fn draws(waits: usize) -> impl Iterator<Item = (usize, [u8; 32])> {
    let places = (0..PERIOD)
        .flat_map(move |first| (0..PERIOD).map(move |rest| ((waits + first) % PERIOD, rest)));
    places.map(|(first, rest)| {
        let words = std::iter::once(word(first)).chain((0..31).map(|n| word(rest + 32 * n)));
        let raw: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        ((rest + 32 * 31) % PERIOD, Sha256::digest(raw).into())
    })
}
