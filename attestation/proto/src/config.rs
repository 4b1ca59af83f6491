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
        help: "Data and tags of all regions must not share a byte. Move one of the two ranges that the message names.",
    },
    Code {
        id: "SHEF-PRO-204",
        summary: "the configuration asks for something that is not supported yet",
        help: "Use the modes input and output, one engine set, one memory port and on_fault = \"shield\".",
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
    #[error("{0}")]
    Rule(String),
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
        /// the rule, with values
        rule: String,
    },
    /// Something that the design knows but the code does not do yet.
    #[error("not supported yet: {what}")]
    Unsupported {
        /// what is asked for
        what: String,
        /// region that asks for it
        region: Option<usize>,
        /// part of it
        field: Field,
    },
}

impl ConfigError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "SHEF-PRO-200",
            Self::Version { .. } => "SHEF-PRO-201",
            Self::Rule(_) | Self::Region { .. } | Self::Set { .. } => "SHEF-PRO-202",
            Self::Overlap { .. } => "SHEF-PRO-203",
            Self::Unsupported { .. } => "SHEF-PRO-204",
        }
    }
}

/// A valid configuration.
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

    /// Accelerator ports: one more than the highest that a set names.
    pub fn accelerator_ports(&self) -> u8 {
        self.sets.iter().map(|s| s.acc + 1).max().unwrap_or(1)
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
        let rule = |what: String| Err(ConfigError::Rule(what));
        if self.ports == 0 || usize::from(self.ports) > MAX_SETS {
            return rule(alloc::format!("1 to {MAX_SETS} memory ports, found {}", self.ports));
        }
        if self.sets.is_empty() || self.sets.len() > MAX_SETS {
            return rule(alloc::format!("1 to {MAX_SETS} engine sets, found {}", self.sets.len()));
        }
        if self.regions.is_empty() || self.regions.len() > MAX_REGIONS {
            return rule(alloc::format!("1 to {MAX_REGIONS} regions, found {}", self.regions.len()));
        }
        for (i, s) in self.sets.iter().enumerate() {
            let bad = |rule: String| Err(ConfigError::Set { set: i, rule });
            if !matches!(s.lanes, 1 | 2 | 4) {
                return bad(alloc::format!("lanes must be 1, 2 or 4, found {}", s.lanes));
            }
            // Reads leave two lines of each kind to writes, and writes two to reads; the directory names at most 64.
            if s.big_lines < 3 || s.small_lines < 3 || u32::from(s.big_lines) + u32::from(s.small_lines) > 64 {
                return bad(alloc::format!(
                    "big_lines and small_lines must be 3 or more each and 64 or less together, found {} and {}",
                    s.big_lines,
                    s.small_lines
                ));
            }
            if !(128..=4096).contains(&s.ring_beats) || !s.ring_beats.is_power_of_two() {
                return bad(alloc::format!("ring_beats must be a power of two from 128 to 4096, found {}", s.ring_beats));
            }
            if usize::from(s.acc) >= MAX_SETS {
                return bad(alloc::format!("acc names an accelerator port from 0 to {}, found {}", MAX_SETS - 1, s.acc));
            }
        }
        for (i, r) in self.regions.iter().enumerate() {
            self.check_region(i, r)?;
        }
        self.check_overlaps()?;
        let bits: u64 = self.regions.iter().filter(|r| r.mode == Mode::Output).map(Region::chunks).fold(0, u64::saturating_add);
        if bits > MAX_MAP_BITS {
            return rule(alloc::format!(
                "output regions have {bits} chunks together, on-chip memory holds a bit for {MAX_MAP_BITS}; use larger chunks"
            ));
        }
        // What the design names but nothing here does yet is refused, never silently weakened.
        let unsupported = |what: String, region, field| Err(ConfigError::Unsupported { what, region, field });
        for (i, r) in self.regions.iter().enumerate() {
            if matches!(r.mode, Mode::Counted | Mode::Tree | Mode::Bypass) {
                return unsupported(alloc::format!("mode \"{}\" of region {i} ({})", r.mode.name(), r.name), Some(i), Field::Mode);
            }
        }
        if let Some(i) = self.sets.iter().position(|s| s.cache_bytes != 0 || s.cache_line != 0) {
            return unsupported(alloc::format!("a cache (engine set {i})"), None, Field::Set);
        }
        if self.sets.len() > 1 || self.sets[0].acc != 0 {
            return unsupported("more than one engine set".to_string(), None, Field::Set);
        }
        if self.ports > 1 {
            return unsupported("more than one memory port".to_string(), None, Field::Port);
        }
        if self.on_fault != OnFault::Shield {
            return unsupported(alloc::format!("on_fault = \"{}\"", self.on_fault.name()), None, Field::Region);
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
        }
        let what = |i: usize, f: Field| {
            alloc::format!("{} of region {i} ({})", if f == Field::TagBase { "tags" } else { "data" }, self.regions[i].name)
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
