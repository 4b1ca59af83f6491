//! Verified certificate chains, and a cache of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use shef_proto::cert::Chain;
use shef_proto::hpke_suite::PublicKey;

use crate::crypto::{ReadyFn, ReadyKey};
use crate::reference::TrustAnchor;

/// The trust anchors of a verifier, with a generation that identifies exactly this set.
#[derive(Clone, Debug)]
pub struct TrustAnchors {
    list: Vec<TrustAnchor>,
    generation: [u8; 32],
}

impl TrustAnchors {
    /// A set of anchors.
    #[must_use]
    pub fn new(list: Vec<TrustAnchor>) -> Self {
        let mut hash = Sha256::new();
        for anchor in &list {
            for part in [
                anchor.name().as_bytes(),
                anchor.kind().name().as_bytes(),
                &[u8::from(anchor.debug())],
                anchor.certificate().der(),
            ] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        Self { list, generation: hash.finalize().into() }
    }

    /// The anchors.
    #[must_use]
    pub fn list(&self) -> &[TrustAnchor] {
        &self.list
    }

    /// Digest of names, kinds and certificates.
    #[must_use]
    pub fn generation(&self) -> &[u8; 32] {
        &self.generation
    }
}

impl From<Vec<TrustAnchor>> for TrustAnchors {
    fn from(list: Vec<TrustAnchor>) -> Self {
        Self::new(list)
    }
}

/// A chain whose rules and signatures were verified under one of the anchors. Time and revocation
/// are checked at each use.
#[derive(Clone, Debug)]
pub struct VerifiedChain {
    pub(crate) chain: Chain,
    /// The attestation key, if the cache prepares keys.
    pub(crate) ak_ready: Option<ReadyKey>,
    /// Index of the anchor in the generation under which the chain was verified.
    pub(crate) anchor: usize,
    /// Serial numbers of AK, DeviceID and anchor.
    pub(crate) serials: [Vec<u8>; 3],
    /// Names of the certificates of AK, DeviceID and anchor in a revocation list.
    pub(crate) names: Vec<[u8; 32]>,
    /// SHA-256 of the anchor's public key.
    pub(crate) authority: [u8; 32],
    /// The certificates as received, leaf first.
    pub(crate) certificates: Vec<Vec<u8>>,
    /// Generation of the anchors.
    pub(crate) generation: [u8; 32],
}

impl VerifiedChain {
    /// Whether this is the chain of these certificates under these anchors.
    pub(crate) fn is_of(&self, certificates: &[Vec<u8>], anchors: &TrustAnchors) -> bool {
        self.certificates == certificates && self.generation == anchors.generation
    }
}

/// Bytes of each certificate's end that go into a key.
const END: usize = 16;

/// Key of a chain in a cache: the last bytes of its certificates, which are the ends of their
/// signatures, under a set of anchors. It is cheap to compute but not unique, so a cached chain is
/// compared in full when it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainKey([[u8; END]; 3]);

impl ChainKey {
    /// The key for these certificates (DER, leaf first) under these anchors.
    #[must_use]
    pub fn new(certificates: &[Vec<u8>], anchors: &TrustAnchors) -> Self {
        let end = |bytes: &[u8]| bytes.last_chunk().copied().unwrap_or_default();
        let certificate = |at: usize| certificates.get(at).map(|der| end(der)).unwrap_or_default();
        Self([end(&anchors.generation), certificate(0), certificate(1)])
    }
}

/// Caches verified chains, so that a known device takes one signature verification instead of
/// three. Only valid chains are cached.
pub trait ChainCache: Send + Sync {
    /// The chain with this key.
    fn get(&self, key: &ChainKey) -> Option<Arc<VerifiedChain>>;
    /// Prepares the attestation key of a chain, if the cache has an implementation that can.
    fn ready(&self, _ak: &PublicKey) -> Option<ReadyKey> {
        None
    }
    /// Stores a chain.
    fn put(&self, key: ChainKey, chain: Arc<VerifiedChain>);
}

/// An in-memory cache of bounded size. When it is full, the older half is dropped.
#[derive(Debug)]
pub struct MemoryChainCache {
    max: usize,
    ready: Option<ReadyFn>,
    /// Chains of the current and of the previous generation.
    ages: Mutex<[HashMap<ChainKey, Arc<VerifiedChain>>; 2]>,
}

impl MemoryChainCache {
    /// A cache of at most `max` chains (about 3 KiB each).
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, ready: None, ages: Mutex::default() }
    }

    /// The same, with attestation keys prepared by `ready`, which belongs to the implementation in
    /// [`crate::AppraisalRequest::verify`].
    #[must_use]
    pub fn with_ready_keys(self, ready: ReadyFn) -> Self {
        Self { ready: Some(ready), ..self }
    }
}

impl ChainCache for MemoryChainCache {
    fn get(&self, key: &ChainKey) -> Option<Arc<VerifiedChain>> {
        let ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        ages.iter().find_map(|age| age.get(key)).cloned()
    }

    fn ready(&self, ak: &PublicKey) -> Option<ReadyKey> {
        self.ready.and_then(|ready| ready(ak))
    }

    fn put(&self, key: ChainKey, chain: Arc<VerifiedChain>) {
        let mut ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        if ages[0].len() >= self.max / 2 {
            let full = std::mem::take(&mut ages[0]);
            ages[1] = full;
        }
        ages[0].insert(key, chain);
    }
}
