//! Why a configuration is refused, and which part of it is at fault.

use alloc::string::String;

/// A part of a region's description, for messages that refer to it.
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

crate::coded! {
    /// Why a configuration is refused.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ConfigError {
        /// Not the deterministic CBOR of the format.
        #[error("malformed configuration: {0}")]
        Malformed(&'static str) = "SHEF-PRO-200": "the configuration's bytes are malformed",
            "The bytes are not the deterministic CBOR of docs/reference/shield-config.md: truncated, trailing bytes, wrong order, or a \
             longer form than needed.",
        /// Version or suite that this program does not know.
        #[error("configuration has version {version}, suite {suite}; expected version 1, suite 1")]
        Version {
            /// version found
            version: u64,
            /// suite found
            suite: u64,
        } = "SHEF-PRO-201": "the configuration is of another version or suite",
            "This program knows version 1 and suite 1. Update it, or regenerate the configuration.",
        /// A rule about the whole configuration.
        #[error("{rule}")]
        Rule {
            /// the subject of the rule
            field: Field,
            /// the rule, with values
            rule: String,
        } = "SHEF-PRO-202": "the configuration breaks a rule",
            "The message names the region and the rule. docs/reference/shield-config.md lists all rules.",
        /// A rule about a region.
        #[error("region {region} ({name}): {rule}")]
        Region {
            /// number of the region
            region: usize,
            /// its name
            name: String,
            /// the part that violates the rule
            field: Field,
            /// the rule, with values
            rule: String,
        } = "SHEF-PRO-202",
        /// A rule about an engine set.
        #[error("engine set {set}: {rule}")]
        Set {
            /// number of the set
            set: usize,
            /// the part of it that is at fault
            field: Field,
            /// the rule, with values
            rule: String,
        } = "SHEF-PRO-202",
        /// Two ranges share bytes.
        #[error("{a} 0x{a_start:x}..0x{a_end:x} overlaps {b} 0x{b_start:x}..0x{b_end:x}")]
        Overlap {
            /// the first range
            a: String,
            /// its first byte
            a_start: u64,
            /// one past its last byte
            a_end: u64,
            /// the second range
            b: String,
            /// its first byte
            b_start: u64,
            /// one past its last byte
            b_end: u64,
            /// region whose description should change
            region: usize,
            /// the part of it that is misplaced
            field: Field,
        } = "SHEF-PRO-203": "two ranges of memory overlap",
            "Data, tags and nodes of all regions must not share a byte. Move one of the two ranges that the message names.",
    }
}
