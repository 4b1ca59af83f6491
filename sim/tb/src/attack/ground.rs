//! Where a chunk's bytes lie in memory: data, tag, and in a `tree` region the nodes above it.

use shef_proto::config::{Mode, Region};
use std::ops::Range;

/// Most entries of the root table: levels are added until it is this small.
const ROOTS: u64 = 65_536;
/// Children of a node.
const FAN: u64 = 8;
/// Bytes of a node.
const NODE: u64 = 64;

/// A part of memory that belongs to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Ciphertext.
    Data,
    /// Tag.
    Tag,
    /// The node above it at this level; level 0 holds chunk versions.
    Node(u8),
}

/// Nodes of each level that lies in memory, level 0 first; empty for other modes than `tree`.
pub fn levels(r: &Region) -> Vec<u64> {
    if r.mode != Mode::Tree {
        return Vec::new();
    }
    let mut list = vec![r.chunks().div_ceil(FAN)];
    while let Some(last) = list.last()
        && *last > ROOTS
    {
        list.push(last.div_ceil(FAN));
    }
    list
}

/// All parts that lie in memory for a chunk of this region.
pub fn parts(r: &Region) -> Vec<Part> {
    let mut list = vec![Part::Data];
    if r.mode.has_tags() {
        list.push(Part::Tag);
    }
    list.extend((0u8..).zip(levels(r)).map(|(l, _)| Part::Node(l)));
    list
}

/// Where a part lies.
pub fn place(r: &Region, chunk: u64, part: Part) -> Range<u64> {
    match part {
        Part::Data => r.chunk_addr(chunk)..r.chunk_addr(chunk + 1),
        Part::Tag => r.tag_addr(chunk)..r.tag_addr(chunk + 1),
        Part::Node(level) => {
            let before: u64 = levels(r).iter().take(usize::from(level)).sum();
            let at = r.node_base.unwrap_or(0) + NODE * (before + chunk / below(level));
            at..at + NODE
        }
    }
}

/// Chunks that share this part (for a tag: the beat it lies in) with a chunk.
pub fn shared(chunk: u64, part: Part) -> Range<u64> {
    let n = match part {
        Part::Data => 1,
        Part::Tag => 4,
        Part::Node(level) => below(level),
    };
    chunk - chunk % n..chunk - chunk % n + n
}

/// Chunks below a node of a level.
fn below(level: u8) -> u64 {
    FAN.pow(u32::from(level) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(chunks: u64) -> Region {
        Region {
            id: 0,
            name: "t".into(),
            mode: Mode::Tree,
            base: 0,
            size: chunks * 64,
            chunk: 64,
            key_bits: 256,
            port: 0,
            set: 0,
            tag_base: 1 << 40,
            node_base: Some(1 << 41),
            prefetch: 0,
            counter_bits: None,
        }
    }

    #[test]
    fn levels_end_where_the_root_table_fits() {
        assert_eq!(levels(&region(8 * ROOTS)), [ROOTS]);
        assert_eq!(levels(&region(8 * ROOTS + 64)), [ROOTS + 8, ROOTS / 8 + 1]);
        assert_eq!(parts(&region(64)), [Part::Data, Part::Tag, Part::Node(0)]);
    }

    #[test]
    fn nodes_lie_level_by_level() {
        let r = region(16 * ROOTS);
        assert_eq!(place(&r, 17, Part::Node(0)).start, (1 << 41) + 64 * 2);
        assert_eq!(place(&r, 130, Part::Node(1)).start, (1 << 41) + 64 * (2 * ROOTS + 2));
        assert_eq!(shared(130, Part::Node(1)), 128..192);
        assert_eq!(shared(6, Part::Tag), 4..8);
    }
}
