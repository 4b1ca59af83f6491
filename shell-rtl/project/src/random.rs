//! Random input data that a seed decides.

use sha2::{Digest, Sha256};

/// Bytes for an input region: the same for the same seed and region, in every program and on every
/// machine. Block `n` of 32 bytes is the SHA-256 of `shef-job`, seed, `n` (both 64 bits,
/// little-endian) and the region's name. For tests: the seed is no secret.
pub fn random(seed: u64, region: &str, bytes: usize) -> Vec<u8> {
    let block = |n: u64| {
        let hash = Sha256::new().chain_update("shef-job").chain_update(seed.to_le_bytes());
        hash.chain_update(n.to_le_bytes()).chain_update(region).finalize()
    };
    let mut all: Vec<u8> = (0..bytes.div_ceil(32) as u64).flat_map(block).collect();
    all.truncate(bytes);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_bytes_of_a_region() {
        let bytes = random(1, "a0", 100);
        assert_eq!(bytes.len(), 100);
        assert_eq!(bytes[..40], random(1, "a0", 40));
        assert!(random(0, "a0", 0).is_empty());
        for other in [random(2, "a0", 100), random(1, "a1", 100)] {
            assert_ne!(other, bytes);
        }
        assert_ne!(bytes[..32], bytes[32..64]);
        let first: [u8; 32] = Sha256::digest(
            [b"shef-job".as_slice(), &1_u64.to_le_bytes(), &0_u64.to_le_bytes(), b"a0"].concat(),
        )
        .into();
        assert_eq!(bytes[..32], first);
    }
}
