//! Random data that are the same everywhere: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).

/// A generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at most 2^32.
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.word() >> 32) * n) >> 32
    }
}

/// Words of a seed.
pub fn words(seed: u64, count: usize) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.word() as u32).collect()
}

/// Words in memory, little-endian.
pub fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_the_published_sequence() {
        // The first outputs of splitmix64 for the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(
            [random.word(), random.word(), random.word()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
