//! The statement: pages of the Shield and of each region, and the written maps.

use alloc::vec;
use alloc::vec::Vec;

use super::message::{le32, le64};
use super::{FaultKind, PAYLOAD_LEN, RefusalKind};
use crate::config::Mode;
use crate::load::Transcript;

/// Chunks that one MAP answer covers.
pub const MAP_BITS: u64 = 384;

/// State of the Shield in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Keyed.
    Keyed,
    /// Closed.
    Closed,
}

/// Statement page 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShieldStatement {
    /// State of the session.
    pub state: State,
    /// A fault stopped the Shield.
    pub stopped: bool,
    /// Kind of the first fault.
    pub fault_kind: FaultKind,
    /// Region of the first fault.
    pub fault_region: u8,
    /// Number of faults.
    pub faults: u32,
    /// Number of refusals.
    pub refusals: u32,
    /// Kind of the first refusal.
    pub refusal_kind: RefusalKind,
    /// Region of the first refusal; 0xff if no single region holds the burst.
    pub refusal_region: u8,
    /// Chunk of the first fault.
    pub fault_chunk: u64,
    /// Version of the first fault.
    pub fault_version: u64,
    /// Address of the first refusal.
    pub refusal_addr: u64,
    /// Number of requests that ran, including this one.
    pub requests: u64,
}

impl ShieldStatement {
    /// A keyed Shield without faults or refusals, after `requests` requests.
    pub fn keyed(requests: u64) -> Self {
        Self {
            state: State::Keyed,
            stopped: false,
            fault_kind: FaultKind::None,
            fault_region: 0,
            faults: 0,
            refusals: 0,
            refusal_kind: RefusalKind::None,
            refusal_region: 0,
            fault_chunk: 0,
            fault_version: 0,
            refusal_addr: 0,
            requests,
        }
    }

    /// The payload of an answer.
    pub fn to_payload(&self) -> [u8; PAYLOAD_LEN] {
        let mut p = [0; PAYLOAD_LEN];
        p[0] = match self.state {
            State::Keyed => 4,
            State::Closed => 5,
        };
        p[1] = u8::from(self.stopped);
        p[2] = self.fault_kind.number();
        p[3] = self.fault_region;
        p[4..8].copy_from_slice(&self.faults.to_le_bytes());
        p[8..12].copy_from_slice(&self.refusals.to_le_bytes());
        p[12] = self.refusal_kind.number();
        p[13] = self.refusal_region;
        p[16..24].copy_from_slice(&self.fault_chunk.to_le_bytes());
        p[24..32].copy_from_slice(&self.fault_version.to_le_bytes());
        p[32..40].copy_from_slice(&self.refusal_addr.to_le_bytes());
        p[40..48].copy_from_slice(&self.requests.to_le_bytes());
        p
    }

    /// Reads a payload; `None` if it holds values that no Shield sends.
    pub fn from_payload(p: &[u8; PAYLOAD_LEN]) -> Option<Self> {
        let s = Self {
            state: match p[0] {
                4 => State::Keyed,
                5 => State::Closed,
                _ => return None,
            },
            stopped: match p[1] {
                0 => false,
                1 => true,
                _ => return None,
            },
            fault_kind: FaultKind::from_number(p[2])?,
            fault_region: p[3],
            faults: le32(p, 4),
            refusals: le32(p, 8),
            refusal_kind: RefusalKind::from_number(p[12])?,
            refusal_region: p[13],
            fault_chunk: le64(p, 16),
            fault_version: le64(p, 24),
            refusal_addr: le64(p, 32),
            requests: le64(p, 40),
        };
        (s.to_payload() == *p).then_some(s)
    }
}

/// Statement page 1 + r.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionStatement {
    /// Mode.
    pub mode: Mode,
    /// Base-2 logarithm of the chunk size.
    pub chunk_log2: u8,
    /// A fault froze the region (only under `on_fault = "region"`).
    pub frozen: bool,
    /// Chunks sealed in the current epoch.
    pub written: u32,
    /// Current epoch.
    pub epoch: u64,
    /// Chunks in the region.
    pub chunks: u64,
}

impl RegionStatement {
    /// The payload of an answer.
    pub fn to_payload(&self) -> [u8; PAYLOAD_LEN] {
        let mut p = [0; PAYLOAD_LEN];
        p[0] = self.mode.number();
        p[1] = self.chunk_log2;
        p[2] = u8::from(self.frozen);
        p[4..8].copy_from_slice(&self.written.to_le_bytes());
        p[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        p[16..24].copy_from_slice(&self.chunks.to_le_bytes());
        p
    }

    /// Reads a payload; `None` if it holds values that no Shield sends.
    pub fn from_payload(p: &[u8; PAYLOAD_LEN]) -> Option<Self> {
        let s = Self {
            mode: Mode::from_number(p[0])?,
            chunk_log2: p[1],
            frozen: p[2] == 1,
            written: le32(p, 4),
            epoch: le64(p, 8),
            chunks: le64(p, 16),
        };
        (s.to_payload() == *p).then_some(s)
    }
}

/// Chunks of an `output` region that were sealed in its current epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenMap {
    bits: Vec<u8>,
    chunks: u64,
}

impl WrittenMap {
    /// A map of a region with `chunks` chunks, all unwritten.
    pub fn empty(chunks: u64) -> Self {
        Self { bits: vec![0; chunks.div_ceil(8) as usize], chunks }
    }

    /// Whether chunk `index` was sealed.
    pub fn is_written(&self, index: u64) -> bool {
        index < self.chunks && self.bits[(index / 8) as usize] >> (index % 8) & 1 == 1
    }

    /// Marks chunk `index`; false if it was already marked or does not exist.
    pub fn set(&mut self, index: u64) -> bool {
        if index >= self.chunks || self.is_written(index) {
            return false;
        }
        self.bits[(index / 8) as usize] |= 1 << (index % 8);
        true
    }

    /// Chunks in the region.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Number of sealed chunks.
    pub fn count(&self) -> u64 {
        self.bits.iter().map(|b| u64::from(b.count_ones())).sum()
    }

    /// Payload of the MAP answer for page `word`; `None` past the region.
    pub fn page(&self, word: u64) -> Option<[u8; PAYLOAD_LEN]> {
        if word.checked_mul(MAP_BITS)? >= self.chunks {
            return None;
        }
        let from = (word * MAP_BITS / 8) as usize;
        let n = (self.bits.len() - from).min(PAYLOAD_LEN);
        let mut p = [0; PAYLOAD_LEN];
        p[..n].copy_from_slice(&self.bits[from..from + n]);
        Some(p)
    }

    /// Reads the payload of a MAP answer; false if it has bits past the region.
    pub(super) fn set_page(&mut self, word: u64, payload: &[u8; PAYLOAD_LEN]) -> bool {
        for k in 0..MAP_BITS {
            if payload[(k / 8) as usize] >> (k % 8) & 1 == 1 && !self.set(word * MAP_BITS + k) {
                return false;
            }
        }
        true
    }
}

/// A complete statement, read over the sealed channel. Only
/// [`OwnerChannel::statement`](super::OwnerChannel::statement) creates one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub(super) transcript: Transcript,
    pub(super) config_digest: [u8; 32],
    pub(super) shield: ShieldStatement,
    pub(super) regions: Vec<(RegionStatement, Option<WrittenMap>)>,
}

impl Statement {
    /// T of its session.
    pub fn transcript(&self) -> Transcript {
        self.transcript
    }

    /// Digest of the configuration it was read for.
    pub fn config_digest(&self) -> &[u8; 32] {
        &self.config_digest
    }

    /// Page 0.
    pub fn shield(&self) -> &ShieldStatement {
        &self.shield
    }

    /// Page of a region.
    pub fn region(&self, id: u8) -> Option<&RegionStatement> {
        self.regions.get(usize::from(id)).map(|(r, _)| r)
    }

    /// Regions that a fault froze.
    pub fn frozen(&self) -> impl Iterator<Item = u8> {
        (0..).zip(&self.regions).filter(|(_, (page, _))| page.frozen).map(|(id, _)| id)
    }

    /// Written map of an `output` region.
    pub fn written(&self, id: u8) -> Option<&WrittenMap> {
        self.regions.get(usize::from(id)).and_then(|(_, m)| m.as_ref())
    }
}
