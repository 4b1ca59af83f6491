//! The bare format: single chunks and tree nodes, with versions chosen by the caller.

use alloc::boxed::Box;

use shef_proto::config::{NODE_ARITY, TAG_LEN};
use shef_proto::load::Key;

use crate::gcm::{Aes, ChunkTag};

/// The IV of a chunk: `region (8) | version (48) | index (40)`, big-endian.
pub fn chunk_iv(region: u8, version: u64, index: u64) -> [u8; 12] {
    let mut iv = [0; 12];
    iv[0] = region;
    iv[1..7].copy_from_slice(&version.to_be_bytes()[2..]);
    iv[7..].copy_from_slice(&index.to_be_bytes()[3..]);
    iv
}

/// The bare format of one region: seals and opens single chunks under any version. It does not
/// prevent the reuse of a version, so only a Shield uses it directly.
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

    /// Encrypts `plain` into `sealed`, of the same length, and returns the tag.
    pub(crate) fn seal_into(
        &self,
        version: u64,
        index: u64,
        plain: &[u8],
        sealed: &mut [u8],
    ) -> ChunkTag {
        self.aes.seal_into(chunk_iv(self.region, version, index), plain, sealed)
    }

    /// Decrypts `sealed` into `plain`, of the same length, if its tag matches; otherwise zeroes
    /// `plain`.
    #[must_use]
    pub(crate) fn open_into(
        &self,
        version: u64,
        index: u64,
        sealed: &[u8],
        tag: &ChunkTag,
        plain: &mut [u8],
    ) -> bool {
        let fine = self.aes.open_into(chunk_iv(self.region, version, index), sealed, tag, plain);
        if !fine {
            plain.fill(0);
        }
        fine
    }

    /// Decrypts `chunk` in place if its tag matches; otherwise leaves it unchanged and returns
    /// false.
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

/// Tree nodes of one region, in the bare format: like [`ChunkCipher`], for a Shield, which chooses
/// the versions.
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

    /// The 64 bytes of a node with these counters (low 48 bits).
    pub fn seal(
        &self,
        version: u64,
        level: u8,
        node: u64,
        counters: &[u64; ARITY],
    ) -> [u8; NODE_LEN] {
        let mut out = [0; NODE_LEN];
        for (bytes, counter) in out.chunks_exact_mut(COUNTER_LEN).zip(counters) {
            bytes.copy_from_slice(&counter.to_be_bytes()[8 - COUNTER_LEN..]);
        }
        let (plain, tag) = out.split_at_mut(COUNTERS_LEN);
        tag.copy_from_slice(&self.aes.seal(
            node_iv(self.region, version, level, node),
            plain,
            &mut [],
        ));
        out
    }

    /// The counters of a node, if its tag matches.
    #[must_use]
    pub fn open(
        &self,
        version: u64,
        level: u8,
        node: u64,
        bytes: &[u8; NODE_LEN],
    ) -> Option<[u64; ARITY]> {
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
