//! Regions, engine sets and the scope of a fault.

use alloc::string::String;

use super::{MAX_REGION_ROOT, NODE_ARITY, NODE_LEN, PAGE, SMALL_CHUNK, TAG_LEN};

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
        [Self::Input, Self::Output, Self::Counted, Self::Tree, Self::Bypass]
            .into_iter()
            .find(|m| m.number() == n)
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
        [Self::Input, Self::Output, Self::Counted, Self::Tree, Self::Bypass]
            .into_iter()
            .find(|m| m.name() == name)
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

/// The part of the Shield that a fault stops.
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

/// Shape of an engine set. It affects speed and area, never security.
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
        Self {
            lanes: 4,
            big_lines: 8,
            small_lines: 32,
            ring_beats: 512,
            acc: 0,
            cache_bytes: 0,
            cache_line: 0,
        }
    }
}

/// One range of card memory with one protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Number, as in the IV and in the channel's `region` field; equal to the index in the list.
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
    /// Chunks prefetched for a sequential reader, 0 to 8.
    pub prefetch: u8,
    /// Bits of a chunk's version counter on chip, 36 or 48; for `counted` only.
    pub counter_bits: Option<u8>,
}

/// The defaults of a `shield.toml`: chunks of 4 KiB, AES-256, the first port and set, no prefetch.
/// The caller sets mode, name, base and size; no configuration accepts the region without them.
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

    /// Size of the tags, rounded up to whole pages.
    pub fn tag_size(&self) -> u64 {
        if self.mode.has_tags() { (self.chunks() * TAG_LEN).next_multiple_of(PAGE) } else { 0 }
    }

    /// Levels of the tree in memory: the fewest, at least one, for which the root table holds a
    /// counter for each node of the highest level. 0 for regions of other modes.
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

    /// Size of the tree's nodes, rounded up to whole pages.
    pub fn node_size(&self) -> u64 {
        (0..self.tree_levels())
            .map(|l| self.level_nodes(l) * NODE_LEN)
            .sum::<u64>()
            .next_multiple_of(PAGE)
    }

    /// Entries of the root table on chip.
    pub fn root_entries(&self) -> u64 {
        self.tree_levels().checked_sub(1).map_or(0, |top| self.level_nodes(top))
    }

    /// Whether the chunks use big lines.
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

    /// Whether the `len` bytes starting at `addr` are entirely inside.
    pub fn contains(&self, addr: u64, len: u64) -> bool {
        addr >= self.base && len <= self.size && addr - self.base <= self.size - len
    }
}
