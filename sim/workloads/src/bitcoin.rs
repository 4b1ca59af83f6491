//! Bitcoin's proof of work: the nonce that makes the hash of a block header small.

use sha2::{Digest, Sha256};

use crate::WorkloadError;
use crate::task::{Paper, Scale, Task, Value, Workload};

/// Bytes of a header without its nonce.
pub const HEADER: usize = 76;
/// Names of the registers with the header's bytes, four in each.
const HEADER_REGISTERS: [&str; HEADER / 4] = [
    "header0", "header1", "header2", "header3", "header4", "header5", "header6", "header7",
    "header8", "header9", "header10", "header11", "header12", "header13", "header14", "header15",
    "header16", "header17", "header18",
];
/// Names of the registers with the hash, from its leading digits on.
const HASH_REGISTERS: [&str; 8] =
    ["hash0", "hash1", "hash2", "hash3", "hash4", "hash5", "hash6", "hash7"];
/// The nonce of block 0.
pub const GENESIS_NONCE: u32 = 2_083_236_893;
/// The first nonce of block 0 whose hash has 24 leading zero bits.
const SEARCHED_NONCE: u32 = 13_320_040;
/// The difficulty of the search.
const SEARCH_BITS: u32 = 24;

/// Search for a nonce.
pub struct Bitcoin;

/// A hash as Bitcoin displays it: the first byte is the most significant one.
pub type Hash = [u8; 32];

/// What a hash must not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// This number of leading bits is zero, 1 to 256.
    Bits(u32),
    /// The target in bytes 72 to 75 of the header.
    Header,
}

/// A nonce and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The nonce.
    pub nonce: u32,
    /// SHA-256 of SHA-256 of the header with this nonce.
    pub hash: Hash,
}

/// The hash of a header with this nonce.
pub fn hash(header: &[u8; HEADER], nonce: u32) -> Hash {
    hash_after(Sha256::new_with_prefix(header), nonce)
}

/// The hash of a header that is absorbed already.
fn hash_after(header: Sha256, nonce: u32) -> Hash {
    let once = header.chain_update(nonce.to_le_bytes()).finalize();
    let mut hash: Hash = Sha256::digest(once).into();
    hash.reverse();
    hash
}

/// The largest hash that the header's own target allows: three bytes m and an exponent e stand for
/// m * 256^(e - 3). `None` if it is negative, zero, or larger than any hash.
pub fn compact(header: &[u8; HEADER]) -> Option<Hash> {
    let [m0, m1, m2, exponent] = [header[72], header[73], header[74], header[75]];
    if m2 & 0x80 != 0 {
        return None;
    }
    let mut target = [0; 32];
    for (place, byte) in [m0, m1, m2].into_iter().enumerate() {
        // The byte's weight is 256^(exponent - 3 + place).
        match (usize::from(exponent) + place).checked_sub(3) {
            Some(weight) if weight < 32 => target[31 - weight] = byte,
            Some(_) if byte != 0 => return None,
            _ => {}
        }
    }
    (target != [0; 32]).then_some(target)
}

/// The largest hash with this number of leading zero bits, at most 256.
fn with_zeros(bits: u32) -> Hash {
    let mut target = [0xff; 32];
    for bit in 0..bits as usize {
        target[bit / 8] &= !(0x80 >> (bit % 8));
    }
    target
}

/// The first of `window` nonces from `first` on whose hash is at most `target`.
pub fn reference(header: &[u8; HEADER], first: u32, window: u32, target: &Hash) -> Option<Found> {
    let start = Sha256::new_with_prefix(header);
    (0..window)
        .map(|i| first + i)
        .map(|nonce| Found { nonce, hash: hash_after(start.clone(), nonce) })
        .find(|found| found.hash <= *target)
}

/// The header of block 0, without its nonce.
pub fn genesis() -> [u8; HEADER] {
    // As displayed: the last byte of the digest first.
    let mut root = *b"\x4a\x5e\x1e\x4b\xaa\xb8\x9f\x3a\x32\x51\x8a\x88\xc3\x1b\xc8\x7f\
                      \x61\x8f\x76\x67\x3e\x2c\xc7\x7a\xb2\x12\x7b\x7a\xfd\xed\xa3\x3b";
    root.reverse();
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&1u32.to_le_bytes());
    header[36..68].copy_from_slice(&root);
    header[68..72].copy_from_slice(&1_231_006_505u32.to_le_bytes());
    header[72..].copy_from_slice(&0x1d00_ffffu32.to_le_bytes());
    header
}

/// The search in a window of nonces.
///
/// # Errors
/// SHEF-WRK-002 if the header is not 76 bytes. SHEF-WRK-003 if the window is empty or goes beyond
/// the last nonce, the difficulty is not 1 to 256 bits, or the header's target is negative, zero or
/// too large.
pub fn task(
    header: &[u8],
    first: u32,
    window: u32,
    difficulty: Target,
) -> Result<Task, WorkloadError> {
    let value = |what| WorkloadError::Value { what };
    let header: &[u8; HEADER] = header.try_into().map_err(|_| WorkloadError::Data {
        file: "block header".into(),
        what: format!(
            "expected the {HEADER} bytes of a header without its nonce, found {}",
            header.len()
        ),
    })?;
    if window == 0 || u64::from(first) + u64::from(window) > 1 << 32 {
        return Err(value(format!(
            "expected a window of 1 to {} nonces from {first} on, found {window}",
            (1u64 << 32) - u64::from(first)
        )));
    }
    let (bits, target) = match difficulty {
        Target::Bits(bits @ 1..=256) => (bits, with_zeros(bits)),
        Target::Bits(bits) => {
            return Err(value(format!("expected a difficulty of 1 to 256 bits, found {bits}")));
        }
        Target::Header => {
            let target = compact(header).ok_or_else(|| {
                let field = u32::from_le_bytes([header[72], header[73], header[74], header[75]]);
                value(format!(
                    "expected a target of 1 to 2^256 - 1 in the header's bits, found {field:#010x}"
                ))
            })?;
            (0, target)
        }
    };
    let found = reference(header, first, window, &target);
    let mut registers: Vec<_> = HEADER_REGISTERS
        .into_iter()
        .zip(header.as_chunks::<4>().0)
        .map(|(name, bytes)| (name, Value::Number(u32::from_le_bytes(*bytes))))
        .collect();
    registers.extend([
        ("first", Value::Number(first)),
        ("window", Value::Number(window)),
        ("difficulty", Value::Number(bits)),
    ]);
    let mut reads = vec![
        ("status", 2),
        ("found", u32::from(found.is_some())),
        ("nonce", found.map_or(0, |found| found.nonce)),
        ("tried", found.map_or(window, |found| found.nonce - first + 1)),
    ];
    let hash = found.map_or([0; 32], |found| found.hash);
    let words = hash.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word));
    reads.extend(HASH_REGISTERS.into_iter().zip(words));
    Ok(Task {
        shape: match difficulty {
            Target::Bits(bits) => format!("{} hashes, {bits} bits", reads[3].1),
            Target::Header => format!("{} hashes, the header's target", reads[3].1),
        },
        registers,
        reads,
        facts: found.map(|found| ("nonce", found.nonce.to_string())).into_iter().collect(),
        ..Task::default()
    })
}

/// Block 0 with the target of its header, in a window of 2^14 nonces that holds its own.
///
/// # Errors
/// None: the data are fixed.
pub fn genesis_task() -> Result<Task, WorkloadError> {
    task(&genesis(), GENESIS_NONCE - 16_000, 1 << 14, Target::Header)
}

impl Workload for Bitcoin {
    fn name(&self) -> &'static str {
        "bitcoin"
    }

    fn about(&self) -> &'static str {
        "search for the nonce of a Bitcoin block: double SHA-256 of headers"
    }

    fn paper(&self) -> Option<Paper> {
        Some(Paper {
            best: Some(1.0),
            worst: Some(1.0),
            source: "Figure 6: register interface only, difficulty 24",
        })
    }

    /// `Small` is block 0 itself; the others search for its first nonce with 24 leading zero bits,
    /// from a nonce shortly before it or from 0.
    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        let search = |first| task(&genesis(), first, 1 << 24, Target::Bits(SEARCH_BITS));
        match scale {
            Scale::Small => genesis_task(),
            Scale::Quick => search(SEARCHED_NONCE - (1 << 18) + 1),
            Scale::Full => search(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn displayed(hash: &Hash) -> String {
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn block_0_has_its_published_hash() {
        assert_eq!(
            displayed(&hash(&genesis(), GENESIS_NONCE)),
            "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"
        );
        let task = genesis_task().unwrap();
        let expected = [("found", 1), ("nonce", GENESIS_NONCE), ("tried", 16_001), ("hash0", 0)];
        for read in expected {
            assert!(task.reads.contains(&read), "{read:?} in {:?}", task.reads);
        }
    }

    #[test]
    fn a_target_in_the_header_is_three_bytes_and_an_exponent() {
        let target = |bits: u32| {
            let mut header = genesis();
            header[72..].copy_from_slice(&bits.to_le_bytes());
            compact(&header).map(|target| displayed(&target))
        };
        let zeros = |n| "0".repeat(n);
        assert_eq!(target(0x1d00_ffff), Some(zeros(8) + "ffff" + &zeros(52)));
        assert_eq!(target(0x0300_0012), Some(zeros(62) + "12"));
        assert_eq!(target(0x0200_1234), Some(zeros(62) + "12"));
        assert_eq!(target(0x2200_00ff), Some("ff".to_owned() + &zeros(62)));
        assert_eq!(target(0x2100_ffff), Some("ffff".to_owned() + &zeros(60)));
        // Zero, zero after the shift, negative, too large.
        for bits in [0x1d00_0000, 0x0100_00ff, 0x1d80_ffff, 0x2200_ffff, 0x2101_0000, 0xff00_0001] {
            assert_eq!(target(bits), None, "{bits:#010x}");
        }
    }

    #[test]
    fn a_difficulty_counts_leading_zero_bits() {
        assert_eq!(displayed(&with_zeros(1)), "7".to_owned() + &"f".repeat(63));
        assert_eq!(displayed(&with_zeros(24)), "0".repeat(6) + &"f".repeat(58));
        assert_eq!(displayed(&with_zeros(256)), "0".repeat(64));
    }

    #[test]
    fn the_search_ends_at_the_first_hit() {
        let found = reference(&genesis(), 0, 1 << 16, &with_zeros(8)).unwrap();
        assert_eq!(found.hash[0], 0);
        assert_eq!(reference(&genesis(), 0, found.nonce, &with_zeros(8)), None);
        let answer = hash(&genesis(), SEARCHED_NONCE);
        assert_eq!(
            displayed(&answer),
            "00000023c23d0afbedc03f8af514bc1e5c9d29b830b53e24f564e197480f881c"
        );
        let task = Bitcoin.task(Scale::Quick).unwrap();
        assert!(task.reads.contains(&("tried", 1 << 18)));
        assert!(task.reads.contains(&("nonce", SEARCHED_NONCE)));
    }

    #[test]
    fn headers_windows_and_difficulties_out_of_range_are_refused() {
        for len in [0, 75, 77, 80] {
            let error = task(&vec![0; len], 0, 1, Target::Bits(1)).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-002", "{len} bytes");
        }
        let mut negative = genesis();
        negative[74] |= 0x80;
        for (header, first, window, target) in [
            (genesis(), 0, 0, Target::Bits(24)),
            (genesis(), u32::MAX, 2, Target::Bits(24)),
            (genesis(), 0, 1, Target::Bits(0)),
            (genesis(), 0, 1, Target::Bits(257)),
            (negative, 0, 1, Target::Header),
        ] {
            let error = task(&header, first, window, target).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003", "{first} {window} {target:?}");
        }
        assert!(task(&genesis(), u32::MAX, 1, Target::Bits(1)).is_ok());
    }
}
