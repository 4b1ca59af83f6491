//! The resolved configuration of a Shield: its regions and shape, the deterministic CBOR that is measured, and the digest.
//!
//! The format is in `docs/reference/shield-config.md`. [`Config`] is always valid: it is made by [`Config::new`] or [`Config::from_cbor`],
//! and both check every rule.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use minicbor::{Decoder, Encoder};
use sha2::{Digest, Sha256};

use crate::code::Code;
use crate::hpke_suite::SUITE;

/// Version of the format.
pub const VERSION: u8 = 1;
/// Most regions that a Shield has.
pub const MAX_REGIONS: usize = 16;
/// Most engine sets, memory ports and accelerator ports.
pub const MAX_SETS: usize = 4;
/// Most chunks that a region fetches ahead.
pub const MAX_PREFETCH: u8 = 8;
/// Alignment of bases, sizes and tag bases.
pub const PAGE: u64 = 4096;
/// Bytes of a tag.
pub const TAG_LEN: u64 = 16;
/// Most bytes of the CBOR form.
pub const MAX_CBOR: usize = 4096;
/// Most chunks of all `output` regions together: each takes a bit of on-chip memory.
pub const MAX_MAP_BITS: u64 = 1 << 26;
/// Most chunks of all `counted` regions together: each takes a counter of on-chip memory.
pub const MAX_COUNTERS: u64 = 1 << 22;
/// Children of a tree node.
pub const NODE_ARITY: u64 = 8;
/// Bytes of a tree node.
pub const NODE_LEN: u64 = 64;
/// Most entries of one region's root table on chip.
pub const MAX_REGION_ROOT: u64 = 1 << 16;
/// Most root table entries of all `tree` regions together.
pub const MAX_ROOT: u64 = 1 << 17;
/// Chunks above this size take a big line.
pub const SMALL_CHUNK: u32 = 512;
/// Fewest lines of each kind, and most of both together.
pub const LINES: (u16, u16) = (3, 64);
/// Fewest lines of a cache, and most bytes.
pub const CACHE: (u32, u32) = (32, 8 << 20);
/// The largest version and epoch: 48 bits.
pub const MAX_EPOCH: u64 = (1 << 48) - 1;
/// Blocks of 16 bytes that a region's key may seal.
pub const MAX_KEY_BLOCKS: u64 = 1 << 48;

/// Codes of [`ConfigError`].
pub const CODES: &[Code] = &[
    Code {
        id: "SHEF-PRO-200",
        summary: "the configuration's bytes are malformed",
        help: "The bytes are not the deterministic CBOR of docs/reference/shield-config.md: truncated, trailing bytes, wrong order, or a longer form than needed.",
    },
    Code {
        id: "SHEF-PRO-201",
        summary: "the configuration is of another version or suite",
        help: "This program knows version 1 and suite 1. Update it, or regenerate the configuration.",
    },
    Code {
        id: "SHEF-PRO-202",
        summary: "the configuration breaks a rule",
        help: "The message names the region and the rule. docs/reference/shield-config.md lists all rules.",
    },
    Code {
        id: "SHEF-PRO-203",
        summary: "two ranges of memory overlap",
        help: "Data, tags and nodes of all regions must not share a byte. Move one of the two ranges that the message names.",
    },
];

/// How a region is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Sealed by the owner, read-only for the accelerator.
    Input,
    /// Each chunk is written once per epoch.
    Output,
    /// Scratch with a counter per chunk on chip.
    Counted,
    /// Scratch with counters in a tree in card memory.
    Tree,
    /// Not protected at all.
    Bypass,
}

impl Mode {
    /// The number in CBOR, statement and RTL.
    pub fn number(self) -> u8 {
        match self {
            Self::Input => 1,
            Self::Output => 2,
            Self::Counted => 3,
            Self::Tree => 4,
            Self::Bypass => 5,
        }
    }

    /// The mode with this number.
    pub fn from_number(n: u8) -> Option<Self> {
        [Self::Input, Self::Output, Self::Counted, Self::Tree, Self::Bypass].into_iter().find(|m| m.number() == n)
    }

    /// The name in `shield.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Counted => "counted",
            Self::Tree => "tree",
            Self::Bypass => "bypass",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Input, Self::Output, Self::Counted, Self::Tree, Self::Bypass].into_iter().find(|m| m.name() == name)
    }

    /// Whether chunks of the region have tags in memory.
    pub fn has_tags(self) -> bool {
        self != Self::Bypass
    }

    /// Whether the region has an epoch, named in the Load Key.
    pub fn has_epoch(self) -> bool {
        matches!(self, Self::Input | Self::Output)
    }
}

/// What a fault stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFault {
    /// The whole Shield.
    Shield,
    /// The faulty region only.
    Region,
    /// The whole Shield, and keys are zeroised.
    Halt,
}

impl OnFault {
    /// The number in CBOR.
    pub fn number(self) -> u8 {
        match self {
            Self::Shield => 0,
            Self::Region => 1,
            Self::Halt => 2,
        }
    }

    /// The policy with this number.
    pub fn from_number(n: u8) -> Option<Self> {
        [Self::Shield, Self::Region, Self::Halt].into_iter().find(|m| m.number() == n)
    }

    /// The name in `shield.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shield => "shield",
            Self::Region => "region",
            Self::Halt => "halt",
        }
    }

    /// The policy with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Shield, Self::Region, Self::Halt].into_iter().find(|m| m.name() == name)
    }
}

/// Shape of an engine set: speed and area, never security.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// AES lanes: 1, 2 or 4 blocks per cycle.
    pub lanes: u8,
    /// Lines for chunks above 512 B.
    pub big_lines: u16,
    /// Lines for chunks up to 512 B.
    pub small_lines: u16,
    /// Beats of 64 bytes in the read ring.
    pub ring_beats: u16,
    /// Accelerator port that the set serves.
    pub acc: u8,
    /// Bytes of the set's cache; 0 without one.
    pub cache_bytes: u32,
    /// Bytes of a cache line, which is the chunk of all regions of the set; 0 without a cache.
    pub cache_line: u16,
}

impl Default for Set {
    fn default() -> Self {
        Self { lanes: 4, big_lines: 8, small_lines: 32, ring_beats: 512, acc: 0, cache_bytes: 0, cache_line: 0 }
    }
}

/// One range of card memory with one protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Number, as in the IV and in the channel's `region` field; equal to the place in the list.
    pub id: u8,
    /// Name by which programs bind buffers: 1 to 32 of `a-z 0-9 _ -`.
    pub name: String,
    /// Protection.
    pub mode: Mode,
    /// First byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes of a chunk, 64 to 4096, a power of two.
    pub chunk: u32,
    /// AES key size: 128 or 256.
    pub key_bits: u16,
    /// Memory port.
    pub port: u8,
    /// Engine set.
    pub set: u8,
    /// First byte of the tags; 0 for `bypass`.
    pub tag_base: u64,
    /// First byte of the tree's nodes; for `tree` only.
    pub node_base: Option<u64>,
    /// Chunks that are fetched ahead of a sequential reader, 0 to 8.
    pub prefetch: u8,
    /// Bits of a chunk's version counter on chip, 36 or 48; for `counted` only.
    pub counter_bits: Option<u8>,
}

/// What a `shield.toml` need not say: chunks of 4 KiB, AES-256, the first port and set, nothing ahead. Mode, name, place and size are
/// for the caller; without them no configuration takes the region.
impl Default for Region {
    fn default() -> Self {
        Self {
            id: 0,
            name: String::new(),
            mode: Mode::Input,
            base: 0,
            size: 0,
            chunk: 4096,
            key_bits: 256,
            port: 0,
            set: 0,
            tag_base: 0,
            node_base: None,
            prefetch: 0,
            counter_bits: None,
        }
    }
}

impl Region {
    /// Number of chunks.
    pub fn chunks(&self) -> u64 {
        self.size / u64::from(self.chunk)
    }

    /// Base-2 logarithm of the chunk size, 6 to 12.
    pub fn chunk_log2(&self) -> u8 {
        self.chunk.trailing_zeros() as u8
    }

    /// Bytes of the data key.
    pub fn key_len(&self) -> usize {
        usize::from(self.key_bits) / 8
    }

    /// Bytes that the tags take, rounded up to whole pages.
    pub fn tag_size(&self) -> u64 {
        if self.mode.has_tags() { (self.chunks() * TAG_LEN).next_multiple_of(PAGE) } else { 0 }
    }

    /// Levels of the tree in memory: the fewest, and at least one, above which the root table holds a counter for each node of the highest.
    /// 0 for regions of other modes.
    pub fn tree_levels(&self) -> u32 {
        if self.mode != Mode::Tree {
            return 0;
        }
        (1..).find(|&levels| self.level_nodes(levels - 1) <= MAX_REGION_ROOT).unwrap_or(1)
    }

    /// Nodes of a level of the tree; level 0 holds the versions of chunks.
    pub fn level_nodes(&self, level: u32) -> u64 {
        (0..=level).fold(self.chunks(), |n, _| n.div_ceil(NODE_ARITY))
    }

    /// Address of a node: level after level from `node_base`, level 0 first.
    pub fn node_addr(&self, level: u32, node: u64) -> u64 {
        let before: u64 = (0..level).map(|l| self.level_nodes(l)).sum();
        self.node_base.unwrap_or(0) + (before + node) * NODE_LEN
    }

    /// Bytes that the tree's nodes take, rounded up to whole pages.
    pub fn node_size(&self) -> u64 {
        (0..self.tree_levels()).map(|l| self.level_nodes(l) * NODE_LEN).sum::<u64>().next_multiple_of(PAGE)
    }

    /// Entries of the root table on chip.
    pub fn root_entries(&self) -> u64 {
        self.tree_levels().checked_sub(1).map_or(0, |top| self.level_nodes(top))
    }

    /// Whether the chunks take big lines.
    pub fn is_big(&self) -> bool {
        self.chunk > SMALL_CHUNK
    }

    /// First byte of chunk `index`.
    pub fn chunk_addr(&self, index: u64) -> u64 {
        self.base + index * u64::from(self.chunk)
    }

    /// Address of the tag of chunk `index`.
    pub fn tag_addr(&self, index: u64) -> u64 {
        self.tag_base + index * TAG_LEN
    }

    /// Whether `len` bytes from `addr` on lie wholly inside.
    pub fn contains(&self, addr: u64, len: u64) -> bool {
        addr >= self.base && len <= self.size && addr - self.base <= self.size - len
    }
}

/// A part of a region's description, for messages that point at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The whole region.
    Region,
    /// `name`
    Name,
    /// `mode`
    Mode,
    /// `base`
    Base,
    /// `size`
    Size,
    /// `chunk`
    Chunk,
    /// `key`
    Key,
    /// `port`
    Port,
    /// `set`
    Set,
    /// `tag_base`
    TagBase,
    /// `node_base`
    NodeBase,
    /// `prefetch`
    Prefetch,
    /// `counter`
    Counter,
    /// `lanes` of a set
    Lanes,
    /// `big_lines` of a set
    BigLines,
    /// `small_lines` of a set
    SmallLines,
    /// `ring_beats` of a set
    RingBeats,
    /// `acc` of a set
    Acc,
    /// `cache` of a set
    Cache,
    /// `cache_line` of a set
    CacheLine,
    /// `ports`
    Ports,
    /// The list of sets
    Sets,
    /// The list of regions
    Regions,
}

/// Why a configuration is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not the deterministic CBOR of the format.
    #[error("malformed configuration: {0}")]
    Malformed(&'static str),
    /// Version or suite that this program does not know.
    #[error("configuration has version {version}, suite {suite}; expected version 1, suite 1")]
    Version {
        /// version found
        version: u64,
        /// suite found
        suite: u64,
    },
    /// A rule about the whole configuration.
    #[error("{rule}")]
    Rule {
        /// what the rule is about
        field: Field,
        /// the rule, with values
        rule: String,
    },
    /// A rule about a region.
    #[error("region {region} ({name}): {rule}")]
    Region {
        /// number of the region
        region: usize,
        /// its name
        name: String,
        /// the part that breaks the rule
        field: Field,
        /// the rule, with values
        rule: String,
    },
    /// Two ranges share bytes.
    #[error("{a} 0x{a_start:x}..0x{a_end:x} overlaps {b} 0x{b_start:x}..0x{b_end:x}")]
    Overlap {
        /// what the first range is
        a: String,
        /// its first byte
        a_start: u64,
        /// one past its last byte
        a_end: u64,
        /// what the second range is
        b: String,
        /// its first byte
        b_start: u64,
        /// one past its last byte
        b_end: u64,
        /// region whose description should change
        region: usize,
        /// the part of it that lies wrong
        field: Field,
    },
    /// A rule of an engine set.
    #[error("engine set {set}: {rule}")]
    Set {
        /// number of the set
        set: usize,
        /// the part of it that is wrong
        field: Field,
        /// the rule, with values
        rule: String,
    },
}

impl ConfigError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "SHEF-PRO-200",
            Self::Version { .. } => "SHEF-PRO-201",
            Self::Rule { .. } | Self::Region { .. } | Self::Set { .. } => "SHEF-PRO-202",
            Self::Overlap { .. } => "SHEF-PRO-203",
        }
    }
}

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
    /// The first rule that is broken, in the order of the list in `docs/reference/shield-config.md`.
    pub fn new(on_fault: OnFault, ports: u8, sets: Vec<Set>, regions: Vec<Region>) -> Result<Self, ConfigError> {
        let config = Self { on_fault, ports, sets, regions };
        config.check()?;
        Ok(config)
    }

    /// The suite: always 1.
    pub fn suite(&self) -> u16 {
        SUITE
    }

    /// What a fault stops.
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

    /// Accelerator ports to memory: one more than the highest that a set names.
    pub fn accelerator_ports(&self) -> u8 {
        self.sets.iter().map(|s| s.acc + 1).max().unwrap_or(0)
    }

    /// Whether the accelerator has card memory; without it there is the register channel only.
    pub fn has_memory(&self) -> bool {
        !self.regions.is_empty()
    }

    /// Memory port of engine set `set`: the one of all its regions.
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

    /// The region that holds all `len` bytes from `addr` on.
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
        Sha256::digest(self.to_cbor()).into()
    }

    /// The deterministic CBOR (RFC 8949 4.2.1) of `docs/reference/shield-config.md`.
    pub fn to_cbor(&self) -> Vec<u8> {
        let mut e = Encoder::new(Vec::new());
        self.encode(&mut e).expect("writing to a Vec cannot fail");
        e.into_writer()
    }

    fn encode(&self, e: &mut Encoder<Vec<u8>>) -> Result<(), minicbor::encode::Error<core::convert::Infallible>> {
        e.map(6)?.u8(1)?.u8(VERSION)?.u8(2)?.u16(SUITE)?.u8(3)?.u8(self.on_fault.number())?.u8(4)?.u8(self.ports)?;
        e.u8(5)?.array(self.sets.len() as u64)?;
        for s in &self.sets {
            e.map(7)?.u8(1)?.u8(s.lanes)?.u8(2)?.u16(s.big_lines)?.u8(3)?.u16(s.small_lines)?.u8(4)?.u16(s.ring_beats)?;
            e.u8(5)?.u8(s.acc)?.u8(6)?.u32(s.cache_bytes)?.u8(7)?.u16(s.cache_line)?;
        }
        e.u8(6)?.array(self.regions.len() as u64)?;
        for r in &self.regions {
            e.map(10 + u64::from(r.mode.has_tags()) + u64::from(r.node_base.is_some()) + u64::from(r.counter_bits.is_some()))?;
            e.u8(1)?.u8(r.id)?.u8(2)?.str(&r.name)?.u8(3)?.u8(r.mode.number())?;
            e.u8(4)?.u64(r.base)?.u8(5)?.u64(r.size)?.u8(6)?.u32(r.chunk)?;
            e.u8(7)?.u16(r.key_bits)?.u8(8)?.u8(r.port)?.u8(9)?.u8(r.set)?;
            if r.mode.has_tags() {
                e.u8(10)?.u64(r.tag_base)?;
            }
            if let Some(n) = r.node_base {
                e.u8(11)?.u64(n)?;
            }
            e.u8(12)?.u8(r.prefetch)?;
            if let Some(bits) = r.counter_bits {
                e.u8(13)?.u8(bits)?;
            }
        }
        Ok(())
    }

    /// Reads what [`Config::to_cbor`] wrote; any other byte string is refused.
    ///
    /// # Errors
    /// Malformed bytes, unknown version or suite, or a broken rule.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, ConfigError> {
        if bytes.len() > MAX_CBOR {
            return Err(ConfigError::Malformed("too long"));
        }
        let config = decode(bytes)?;
        config.check()?;
        // Whatever is not the one deterministic form of its content differs here.
        if config.to_cbor() != bytes {
            return Err(ConfigError::Malformed("not deterministic CBOR"));
        }
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let counts = [
            (Field::Ports, "memory ports", MAX_SETS, usize::from(self.ports)),
            (Field::Sets, "engine sets", MAX_SETS, self.sets.len()),
            (Field::Regions, "regions", MAX_REGIONS, self.regions.len()),
        ];
        if counts.iter().all(|(.., found)| *found == 0) {
            return Ok(());
        }
        for (field, what, max, found) in counts {
            if !(1..=max).contains(&found) {
                let none = if found == 0 { ": memory ports, engine sets and regions are there together or not at all" } else { "" };
                return Err(ConfigError::Rule { field, rule: alloc::format!("1 to {max} {what}, found {found}{none}") });
            }
        }
        for (i, s) in self.sets.iter().enumerate() {
            self.check_set(i, s)?;
        }
        for (i, r) in self.regions.iter().enumerate() {
            self.check_region(i, r)?;
            self.check_place(i, r)?;
        }
        for i in 0..self.sets.len() {
            if !self.regions.iter().any(|r| usize::from(r.set) == i) {
                return Err(ConfigError::Set { set: i, field: Field::Set, rule: "no region belongs to it".to_string() });
            }
        }
        self.check_overlaps()?;
        self.check_on_chip(Mode::Output, Region::chunks, MAX_MAP_BITS, "chunks", "a bit for each of")?;
        self.check_on_chip(Mode::Counted, Region::chunks, MAX_COUNTERS, "chunks", "a counter for each of")?;
        self.check_on_chip(Mode::Tree, Region::root_entries, MAX_ROOT, "root table entries", "")
    }

    fn check_set(&self, i: usize, s: &Set) -> Result<(), ConfigError> {
        let bad = |field: Field, rule: String| Err(ConfigError::Set { set: i, field, rule });
        if !matches!(s.lanes, 1 | 2 | 4) {
            return bad(Field::Lanes, alloc::format!("lanes must be 1, 2 or 4, found {}", s.lanes));
        }
        // Reads leave two lines of each kind to writes, and writes two to reads; the directory names at most 64.
        let (least, most) = LINES;
        for (field, name, lines) in [(Field::BigLines, "big_lines", s.big_lines), (Field::SmallLines, "small_lines", s.small_lines)] {
            if lines < least {
                return bad(field, alloc::format!("{name} must be {least} or more, found {lines}"));
            }
            if u32::from(s.big_lines) + u32::from(s.small_lines) > u32::from(most) && lines >= most / 2 {
                return bad(
                    field,
                    alloc::format!(
                        "big_lines and small_lines must be {most} or less together, found {} and {}",
                        s.big_lines,
                        s.small_lines
                    ),
                );
            }
        }
        if !(128..=4096).contains(&s.ring_beats) || !s.ring_beats.is_power_of_two() {
            return bad(Field::RingBeats, alloc::format!("ring_beats must be a power of two from 128 to 4096, found {}", s.ring_beats));
        }
        if usize::from(s.acc) >= MAX_SETS {
            return bad(Field::Acc, alloc::format!("acc names an accelerator port from 0 to {}, found {}", MAX_SETS - 1, s.acc));
        }
        if let Some(missing) = (0..s.acc).find(|&a| self.sets.iter().all(|o| o.acc != a)) {
            return bad(Field::Acc, alloc::format!("accelerator port {} needs a set on port {missing} too", s.acc));
        }
        match (s.cache_bytes, s.cache_line) {
            (0, 0) => {}
            (0, _) => return bad(Field::CacheLine, "cache_line without cache".to_string()),
            (bytes, line) => {
                if !line.is_power_of_two() || !(64..=4096).contains(&line) {
                    return bad(Field::CacheLine, alloc::format!("cache_line must be a power of two from 64 to 4096, found {line}"));
                }
                let (lines, most) = CACHE;
                if !bytes.is_power_of_two() || bytes > most || bytes / u32::from(line) < lines {
                    return bad(
                        Field::Cache,
                        alloc::format!(
                            "cache must be a power of two from {lines} lines ({} B) to {most} B, found {bytes}",
                            lines * u32::from(line)
                        ),
                    );
                }
            }
        }
        Ok(())
    }

    /// The rules of a region in its engine set.
    fn check_place(&self, i: usize, r: &Region) -> Result<(), ConfigError> {
        let bad = |field: Field, rule: String| Err(ConfigError::Region { region: i, name: r.name.clone(), field, rule });
        let set = &self.sets[usize::from(r.set)];
        if let Some(first) = self.regions[..i].iter().find(|o| o.set == r.set && o.port != r.port) {
            return bad(
                Field::Port,
                alloc::format!(
                    "port {}, but region {} ({}) of the same engine set uses port {}: all regions of a set use one memory port",
                    r.port,
                    first.id,
                    first.name,
                    first.port
                ),
            );
        }
        if set.cache_bytes != 0 {
            if r.mode == Mode::Output {
                return bad(Field::Mode, alloc::format!("engine set {} has a cache, which cannot hold output regions", r.set));
            }
            if r.chunk != u32::from(set.cache_line) {
                return bad(
                    Field::Chunk,
                    alloc::format!(
                        "chunk {} in engine set {}, whose cache has lines of {} B: they must be equal",
                        r.chunk,
                        r.set,
                        set.cache_line
                    ),
                );
            }
        }
        let lines = if r.is_big() { set.big_lines } else { set.small_lines };
        if u16::from(r.prefetch) + LINES.0 > lines && r.prefetch != 0 {
            return bad(
                Field::Prefetch,
                alloc::format!(
                    "prefetch {} needs {} {}, engine set {} has {lines}",
                    r.prefetch,
                    u16::from(r.prefetch) + LINES.0,
                    if r.is_big() { "big_lines" } else { "small_lines" },
                    r.set
                ),
            );
        }
        Ok(())
    }

    /// What all regions of a mode take of on-chip memory; the region that takes too much is named.
    fn check_on_chip(&self, mode: Mode, of: impl Fn(&Region) -> u64, most: u64, what: &str, each: &str) -> Result<(), ConfigError> {
        let mut sum = 0u64;
        for (i, r) in self.regions.iter().enumerate().filter(|(_, r)| r.mode == mode) {
            sum = sum.saturating_add(of(r));
            if sum > most {
                let name = mode.name();
                let fits = alloc::format!("{each} {most}");
                let rule = alloc::format!(
                    "the {name} regions up to this one have {sum} {what}, on-chip memory holds {}; use larger chunks or a smaller region",
                    fits.trim()
                );
                return Err(ConfigError::Region { region: i, name: r.name.clone(), field: Field::Size, rule });
            }
        }
        Ok(())
    }

    fn check_region(&self, i: usize, r: &Region) -> Result<(), ConfigError> {
        let bad = |field: Field, rule: String| Err(ConfigError::Region { region: i, name: r.name.clone(), field, rule });
        if usize::from(r.id) != i {
            return bad(Field::Region, alloc::format!("number {} at place {i} of the list", r.id));
        }
        let name_ok = (1..=32).contains(&r.name.len())
            && r.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if !name_ok {
            return bad(Field::Name, "a name is 1 to 32 of a-z 0-9 _ -".to_string());
        }
        if self.regions[..i].iter().any(|o| o.name == r.name) {
            return bad(Field::Name, "another region has this name".to_string());
        }
        if !r.chunk.is_power_of_two() || !(64..=4096).contains(&r.chunk) {
            return bad(Field::Chunk, alloc::format!("chunk must be a power of two from 64 to 4096, found {}", r.chunk));
        }
        if !matches!(r.key_bits, 128 | 256) {
            return bad(Field::Key, alloc::format!("key must be 128 or 256 bits, found {}", r.key_bits));
        }
        if !r.base.is_multiple_of(PAGE) {
            return bad(Field::Base, alloc::format!("base 0x{:x} is not a multiple of 4 KiB", r.base));
        }
        if r.size == 0 || !r.size.is_multiple_of(PAGE) {
            return bad(Field::Size, alloc::format!("size 0x{:x} is not a positive multiple of 4 KiB", r.size));
        }
        if r.base.checked_add(r.size).is_none() {
            return bad(Field::Size, "the region runs past the last address".to_string());
        }
        if r.chunks() > 1 << 31 {
            return bad(Field::Size, alloc::format!("{} chunks, at most 2^31", r.chunks()));
        }
        if r.mode.has_tags() {
            if !r.tag_base.is_multiple_of(PAGE) {
                return bad(Field::TagBase, alloc::format!("tag_base 0x{:x} is not a multiple of 4 KiB", r.tag_base));
            }
            if r.tag_base.checked_add(r.tag_size()).is_none() {
                return bad(Field::TagBase, "the tags run past the last address".to_string());
            }
        } else if r.tag_base != 0 {
            return bad(Field::TagBase, "a bypass region has no tags".to_string());
        }
        match (r.mode, r.node_base) {
            (Mode::Tree, None) => return bad(Field::NodeBase, "a tree region needs node_base".to_string()),
            (Mode::Tree, Some(n)) if !n.is_multiple_of(PAGE) => {
                return bad(Field::NodeBase, alloc::format!("node_base 0x{n:x} is not a multiple of 4 KiB"));
            }
            (Mode::Tree, Some(n)) if n.checked_add(r.node_size()).is_none() => {
                return bad(Field::NodeBase, "the nodes run past the last address".to_string());
            }
            (Mode::Tree, Some(_)) | (_, None) => {}
            (_, Some(_)) => return bad(Field::NodeBase, "only a tree region has node_base".to_string()),
        }
        if r.prefetch > MAX_PREFETCH {
            return bad(Field::Prefetch, alloc::format!("prefetch must be 0 to {MAX_PREFETCH} chunks, found {}", r.prefetch));
        }
        match (r.mode, r.counter_bits) {
            (Mode::Counted, Some(36 | 48)) => {}
            (Mode::Counted, _) => return bad(Field::Counter, "counter must be 36 or 48 bits".to_string()),
            (_, None) => {}
            (_, Some(_)) => return bad(Field::Counter, "only a counted region has counter".to_string()),
        }
        if r.port >= self.ports {
            return bad(Field::Port, alloc::format!("port {} does not exist, there are {}", r.port, self.ports));
        }
        if usize::from(r.set) >= self.sets.len() {
            return bad(Field::Set, alloc::format!("engine set {} does not exist, there are {}", r.set, self.sets.len()));
        }
        Ok(())
    }

    fn check_overlaps(&self) -> Result<(), ConfigError> {
        let mut ranges: Vec<(u64, u64, usize, Field)> = Vec::new();
        for (i, r) in self.regions.iter().enumerate() {
            ranges.push((r.base, r.base + r.size, i, Field::Base));
            if r.mode.has_tags() {
                ranges.push((r.tag_base, r.tag_base + r.tag_size(), i, Field::TagBase));
            }
            if let Some(n) = r.node_base {
                ranges.push((n, n + r.node_size(), i, Field::NodeBase));
            }
        }
        let what = |i: usize, f: Field| {
            let part = match f {
                Field::TagBase => "tags",
                Field::NodeBase => "nodes",
                _ => "data",
            };
            alloc::format!("{part} of region {i} ({})", self.regions[i].name)
        };
        for (n, b) in ranges.iter().enumerate() {
            for a in &ranges[..n] {
                if a.0 < b.1 && b.0 < a.1 {
                    return Err(ConfigError::Overlap {
                        a: what(b.2, b.3),
                        a_start: b.0,
                        a_end: b.1,
                        b: what(a.2, a.3),
                        b_start: a.0,
                        b_end: a.1,
                        region: b.2,
                        field: b.3,
                    });
                }
            }
        }
        Ok(())
    }
}

impl From<minicbor::decode::Error> for ConfigError {
    fn from(_: minicbor::decode::Error) -> Self {
        Self::Malformed("truncated or of another type")
    }
}

fn key(d: &mut Decoder<'_>, want: u8) -> Result<(), ConfigError> {
    if d.u8()? == want { Ok(()) } else { Err(ConfigError::Malformed("unexpected map key")) }
}

fn map(d: &mut Decoder<'_>) -> Result<u64, ConfigError> {
    d.map()?.ok_or(ConfigError::Malformed("indefinite length"))
}

fn array(d: &mut Decoder<'_>, max: usize) -> Result<usize, ConfigError> {
    let n = d.array()?.ok_or(ConfigError::Malformed("indefinite length"))?;
    usize::try_from(n).ok().filter(|&n| n <= max).ok_or(ConfigError::Malformed("too many entries"))
}

fn decode(bytes: &[u8]) -> Result<Config, ConfigError> {
    let mut d = Decoder::new(bytes);
    let d = &mut d;
    let entries = map(d)?;
    key(d, 1)?;
    let version = d.u64()?;
    key(d, 2)?;
    let suite = d.u64()?;
    if version != u64::from(VERSION) || suite != u64::from(SUITE) {
        return Err(ConfigError::Version { version, suite });
    }
    if entries != 6 {
        return Err(ConfigError::Malformed("wrong number of entries"));
    }
    key(d, 3)?;
    let on_fault = OnFault::from_number(d.u8()?).ok_or(ConfigError::Malformed("unknown fault policy"))?;
    key(d, 4)?;
    let ports = d.u8()?;
    key(d, 5)?;
    let mut sets = Vec::new();
    for _ in 0..array(d, MAX_SETS)? {
        if map(d)? != 7 {
            return Err(ConfigError::Malformed("wrong number of entries in a set"));
        }
        key(d, 1)?;
        let lanes = d.u8()?;
        key(d, 2)?;
        let big_lines = d.u16()?;
        key(d, 3)?;
        let small_lines = d.u16()?;
        key(d, 4)?;
        let ring_beats = d.u16()?;
        key(d, 5)?;
        let acc = d.u8()?;
        key(d, 6)?;
        let cache_bytes = d.u32()?;
        key(d, 7)?;
        sets.push(Set { lanes, big_lines, small_lines, ring_beats, acc, cache_bytes, cache_line: d.u16()? });
    }
    key(d, 6)?;
    let mut regions = Vec::new();
    for _ in 0..array(d, MAX_REGIONS)? {
        let entries = map(d)?;
        key(d, 1)?;
        let id = d.u8()?;
        key(d, 2)?;
        let name = d.str()?.to_string();
        key(d, 3)?;
        let mode = Mode::from_number(d.u8()?).ok_or(ConfigError::Malformed("unknown mode"))?;
        key(d, 4)?;
        let base = d.u64()?;
        key(d, 5)?;
        let size = d.u64()?;
        key(d, 6)?;
        let chunk = d.u32()?;
        key(d, 7)?;
        let key_bits = d.u16()?;
        key(d, 8)?;
        let port = d.u8()?;
        key(d, 9)?;
        let set = d.u8()?;
        // Which of the optional entries are there follows from the mode.
        let expected = 10 + u64::from(mode.has_tags()) + u64::from(mode == Mode::Tree) + u64::from(mode == Mode::Counted);
        if entries != expected {
            return Err(ConfigError::Malformed("missing or unknown entries in a region"));
        }
        let mut tag_base = 0;
        if mode.has_tags() {
            key(d, 10)?;
            tag_base = d.u64()?;
        }
        let mut node_base = None;
        if mode == Mode::Tree {
            key(d, 11)?;
            node_base = Some(d.u64()?);
        }
        key(d, 12)?;
        let prefetch = d.u8()?;
        let mut counter_bits = None;
        if mode == Mode::Counted {
            key(d, 13)?;
            counter_bits = Some(d.u8()?);
        }
        regions.push(Region { id, name, mode, base, size, chunk, key_bits, port, set, tag_base, node_base, prefetch, counter_bits });
    }
    if d.position() != bytes.len() {
        return Err(ConfigError::Malformed("trailing bytes"));
    }
    Ok(Config { on_fault, ports, sets, regions })
}
