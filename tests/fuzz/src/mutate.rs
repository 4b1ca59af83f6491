//! Mutations of messages.

use crate::MAX_INPUT;

/// xorshift64*: small, fast, and the same everywhere for the same seed.
pub struct Rng(u64);

impl Rng {
    /// A generator from any seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`, which must not be 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.draw() % n as u64) as usize
    }
}

/// Bytes with a meaning in CBOR, DER, TOML or JSON.
const TELLING: &[&[u8]] = &[
    &[0x00],
    &[0xff],
    &[0x7f],
    &[0x80],
    &[0xf6],
    &[0xf9, 0x7e, 0x00],
    &[0x5f],
    &[0x9f],
    &[0xbf],
    &[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0x5b, 0x10, 0, 0, 0, 0, 0, 0, 0],
    &[0x9b, 0x10, 0, 0, 0, 0, 0, 0, 0],
    &[0x3b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0xd2],
    &[0xd8, 0x3d],
    &[0x30, 0x80],
    &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
    &[0x02, 0x01, 0x80],
    b"{",
    b"[",
    b"\"",
    b"\\u0000",
    b"1e999",
    b"-0",
    b"null",
    b"'''",
    b"\n[[",
    b"..",
    b"%00",
    "\u{202e}".as_bytes(),
];

fn once(bytes: &mut Vec<u8>, pool: &[Vec<u8>], rng: &mut Rng) {
    let len = bytes.len();
    if len == 0 {
        bytes.extend_from_slice(TELLING[rng.below(TELLING.len())]);
        return;
    }
    let at = rng.below(len);
    match rng.below(11) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.draw() as u8,
        2 => bytes[at] = bytes[at].wrapping_add(if rng.below(2) == 0 { 1 } else { 255 }),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..(at + 1 + rng.below(16)).min(len))),
        5 => bytes.insert(at, rng.draw() as u8),
        6 => drop(bytes.splice(at..at, TELLING[rng.below(TELLING.len())].iter().copied())),
        7 => {
            let telling = TELLING[rng.below(TELLING.len())];
            let end = (at + telling.len()).min(len);
            bytes[at..end].copy_from_slice(&telling[..end - at]);
        }
        8 => {
            // A piece of this message, repeated.
            let end = (at + 1 + rng.below(64)).min(len);
            let piece = bytes[at..end].to_vec();
            let to = rng.below(len);
            bytes.splice(to..to, piece);
        }
        9 => {
            // A piece of another message.
            let other = &pool[rng.below(pool.len())];
            if !other.is_empty() {
                let from = rng.below(other.len());
                let end = (from + 1 + rng.below(128)).min(other.len());
                let to = (at + rng.below(32)).min(len);
                bytes.splice(at..to, other[from..end].iter().copied());
            }
        }
        _ => {
            // Deep nesting, or a long run.
            let piece = vec![bytes[at]; 1 << rng.below(13)];
            bytes.splice(at..at, piece);
        }
    }
}

/// A message of the pool, changed in one to eight places.
pub fn mutated(pool: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = if pool.is_empty() { Vec::new() } else { pool[rng.below(pool.len())].clone() };
    for _ in 0..1 + rng.below(8) {
        once(&mut bytes, pool, rng);
    }
    bytes.truncate(MAX_INPUT);
    bytes
}
