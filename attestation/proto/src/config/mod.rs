//! The resolved configuration of a Shield: its regions and shape, its deterministic CBOR, which is
//! measured, and the digest.
//!
//! The format is in `docs/reference/shield-config.md`. [`Config`] is always valid: its
//! constructors, [`Config::new`] and [`Config::from_cbor`], check every rule.

mod cbor;
mod error;
mod region;
mod rules;

use alloc::vec::Vec;

pub use error::{ConfigError, Field};
pub use region::{Mode, OnFault, Region, Set};

use crate::crypto;
use crate::hpke_suite::SUITE;

/// Version of the format.
pub const VERSION: u8 = 1;
/// Maximum number of regions.
pub const MAX_REGIONS: usize = 16;
/// Maximum number of engine sets, of memory ports and of accelerator ports.
pub const MAX_SETS: usize = 4;
/// Maximum number of chunks that a region prefetches.
pub const MAX_PREFETCH: u8 = 8;
/// Alignment of bases, sizes and tag bases.
pub const PAGE: u64 = 4096;
/// Bytes of a tag.
pub const TAG_LEN: u64 = 16;
/// Maximum size of the CBOR form in bytes.
pub const MAX_CBOR: usize = 4096;
/// Maximum number of chunks in all `output` regions: each takes a bit of on-chip memory.
pub const MAX_MAP_BITS: u64 = 1 << 26;
/// Maximum number of chunks in all `counted` regions: each takes an on-chip counter.
pub const MAX_COUNTERS: u64 = 1 << 22;
/// Children of a tree node.
pub const NODE_ARITY: u64 = 8;
/// Bytes of a tree node.
pub const NODE_LEN: u64 = 64;
/// Maximum number of entries in a region's on-chip root table.
pub const MAX_REGION_ROOT: u64 = 1 << 16;
/// Maximum number of root table entries of all `tree` regions together.
pub const MAX_ROOT: u64 = 1 << 17;
/// Chunks above this size use a big line.
pub const SMALL_CHUNK: u32 = 512;
/// Minimum number of lines of each kind, and maximum of both together.
pub const LINES: (u16, u16) = (3, 64);
/// Minimum number of lines of a cache, and its maximum size in bytes.
pub const CACHE: (u32, u32) = (32, 8 << 20);
/// The largest version and epoch: 48 bits.
pub const MAX_EPOCH: u64 = (1 << 48) - 1;
/// Blocks of 16 bytes that a region's key may seal.
pub const MAX_KEY_BLOCKS: u64 = 1 << 48;

/// A valid configuration. It has memory ports, engine sets and regions, or none of the three.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    on_fault: OnFault,
    ports: u8,
    sets: Vec<Set>,
    regions: Vec<Region>,
}

impl Config {
    /// Checks every rule.
    ///
    /// # Errors
    /// The first violated rule, in the order of the list in `docs/reference/shield-config.md`.
    pub fn new(
        on_fault: OnFault,
        ports: u8,
        sets: Vec<Set>,
        regions: Vec<Region>,
    ) -> Result<Self, ConfigError> {
        let config = Self { on_fault, ports, sets, regions };
        config.check()?;
        Ok(config)
    }

    /// The suite: always 1.
    pub fn suite(&self) -> u16 {
        SUITE
    }

    /// The scope of a fault.
    pub fn on_fault(&self) -> OnFault {
        self.on_fault
    }

    /// Memory ports.
    pub fn ports(&self) -> u8 {
        self.ports
    }

    /// Engine sets.
    pub fn sets(&self) -> &[Set] {
        &self.sets
    }

    /// Accelerator ports to memory: one more than the highest port that a set names.
    pub fn accelerator_ports(&self) -> u8 {
        self.sets.iter().map(|s| s.acc + 1).max().unwrap_or(0)
    }

    /// Whether the accelerator has card memory; without it there is only the register channel.
    pub fn has_memory(&self) -> bool {
        !self.regions.is_empty()
    }

    /// Memory port of engine set `set`, which all its regions share.
    pub fn set_port(&self, set: usize) -> u8 {
        self.regions.iter().find(|r| usize::from(r.set) == set).map_or(0, |r| r.port)
    }

    /// Regions in order of their number.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Region `id`.
    pub fn region(&self, id: u8) -> Option<&Region> {
        self.regions.get(usize::from(id))
    }

    /// The region with this name.
    pub fn region_by_name(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|r| r.name == name)
    }

    /// The region that contains all `len` bytes starting at `addr`.
    pub fn region_at(&self, addr: u64, len: u64) -> Option<&Region> {
        self.regions.iter().find(|r| r.contains(addr, len))
    }

    /// Names of the regions that are not protected.
    pub fn bypass_regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().filter(|r| r.mode == Mode::Bypass)
    }

    /// Regions that a Load Key names: `input` and `output`, ascending.
    pub fn epoch_regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().filter(|r| r.mode.has_epoch())
    }

    /// SHA-256 of [`Config::to_cbor`].
    pub fn digest(&self) -> [u8; 32] {
        crypto::sha256(&self.to_cbor())
    }
}
