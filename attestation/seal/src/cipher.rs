//! The bare format: single chunks and tree nodes under versions that the caller answers for.

use alloc::boxed::Box;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit, Nonce, Tag};
use shef_proto::config::{NODE_ARITY, TAG_LEN};
use shef_proto::load::Key;

/// A 16-byte tag.
pub type ChunkTag = [u8; TAG_LEN as usize];

/// The IV of a chunk: `region (8) | version (48) | index (40)`, big-endian.
pub fn chunk_iv(region: u8, version: u64, index: u64) -> [u8; 12] {
    let mut iv = [0; 12];
    iv[0] = region;
    iv[1..7].copy_from_slice(&version.to_be_bytes()[2..]);
    iv[7..].copy_from_slice(&index.to_be_bytes()[3..]);
    iv
}

enum Aes {
    A128(Aes128Gcm),
    A256(Aes256Gcm),
}

impl Aes {
    fn new(key: &Key) -> Box<Self> {
        let key = key.expose();
        Box::new(match Aes128Gcm::new_from_slice(key) {
            Ok(aes) => Self::A128(aes),
            Err(_) => Self::A256(Aes256Gcm::new_from_slice(key).expect("a key has 16 or 32 bytes")),
        })
    }

    fn seal(&self, iv: [u8; 12], aad: &[u8], data: &mut [u8]) -> ChunkTag {
        let iv = Nonce::from(iv);
        match self {
            Self::A128(a) => a.encrypt_inout_detached(&iv, aad, data.into()),
            Self::A256(a) => a.encrypt_inout_detached(&iv, aad, data.into()),
        }
        .expect("a chunk is within GCM's limit")
        .into()
    }

    fn open(&self, iv: [u8; 12], aad: &[u8], data: &mut [u8], tag: &ChunkTag) -> bool {
        let (iv, tag) = (Nonce::from(iv), Tag::from(*tag));
        match self {
            Self::A128(a) => a.decrypt_inout_detached(&iv, aad, data.into(), &tag),
            Self::A256(a) => a.decrypt_inout_detached(&iv, aad, data.into(), &tag),
        }
        .is_ok()
    }
}

/// The bare format of one region: seals and opens single chunks under any version. It keeps nobody from using a version twice, so only a
/// Shield uses it directly.
pub struct ChunkCipher {
    aes: Box<Aes>,
    region: u8,
}

impl ChunkCipher {
    /// The cipher of region `region` under `key`.
    pub fn new(region: u8, key: &Key) -> Self {
        Self { aes: Aes::new(key), region }
    }

    /// Encrypts `chunk` in place and returns its tag.
    pub fn seal(&self, version: u64, index: u64, chunk: &mut [u8]) -> ChunkTag {
        self.aes.seal(chunk_iv(self.region, version, index), &[], chunk)
    }

    /// Decrypts `chunk` in place if its tag matches; otherwise leaves it as it is and returns false.
    #[must_use]
    pub fn open(&self, version: u64, index: u64, chunk: &mut [u8], tag: &ChunkTag) -> bool {
        self.aes.open(chunk_iv(self.region, version, index), &[], chunk, tag)
    }
}

/// Bytes of a tree node: eight counters and a tag.
pub const NODE_LEN: usize = shef_proto::config::NODE_LEN as usize;
/// Counters of a node.
const ARITY: usize = NODE_ARITY as usize;

const COUNTERS_LEN: usize = NODE_LEN - TAG_LEN as usize;
const COUNTER_LEN: usize = COUNTERS_LEN / ARITY;

/// The IV of a tree node: `region (8) | version (48) | level (4) | node (36)`, big-endian.
pub fn node_iv(region: u8, version: u64, level: u8, node: u64) -> [u8; 12] {
    chunk_iv(region, version, u64::from(level) << 36 | node)
}

/// Tree nodes of one region, in the bare format: as [`ChunkCipher`], for a Shield, which answers for the versions.
///
/// A node is eight 48-bit counters, big-endian, child 0 first, and a tag over them.
pub struct NodeCipher {
    aes: Box<Aes>,
    region: u8,
}

impl NodeCipher {
    /// The cipher of region `region` under its node key.
    pub fn new(region: u8, key: &Key) -> Self {
        Self { aes: Aes::new(key), region }
    }

    /// The 64 bytes of a node with these counters, of which the low 48 bits count.
    pub fn seal(&self, version: u64, level: u8, node: u64, counters: &[u64; ARITY]) -> [u8; NODE_LEN] {
        let mut out = [0; NODE_LEN];
        for (bytes, counter) in out.chunks_exact_mut(COUNTER_LEN).zip(counters) {
            bytes.copy_from_slice(&counter.to_be_bytes()[8 - COUNTER_LEN..]);
        }
        let (plain, tag) = out.split_at_mut(COUNTERS_LEN);
        tag.copy_from_slice(&self.aes.seal(node_iv(self.region, version, level, node), plain, &mut []));
        out
    }

    /// The counters of a node, if its tag matches.
    #[must_use]
    pub fn open(&self, version: u64, level: u8, node: u64, bytes: &[u8; NODE_LEN]) -> Option<[u64; ARITY]> {
        let (plain, tag) = bytes.split_last_chunk::<{ TAG_LEN as usize }>()?;
        if !self.aes.open(node_iv(self.region, version, level, node), plain, &mut [], tag) {
            return None;
        }
        let mut counters = [0; ARITY];
        for (counter, bytes) in counters.iter_mut().zip(plain.chunks_exact(COUNTER_LEN)) {
            *counter = bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b));
        }
        Some(counters)
    }
}
