//! Memory layout of a chunk: data, tag and, in a `tree` region, the nodes above it.

use shef_proto::config::Region;
use std::ops::Range;

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
    /// The node above it at this level. Level 0 holds chunk versions.
    Node(u32),
}

/// All parts that a chunk of this region has in memory.
pub fn parts(r: &Region) -> Vec<Part> {
    let mut list = vec![Part::Data];
    if r.mode.has_tags() {
        list.push(Part::Tag);
    }
    list.extend((0..r.tree_levels()).map(Part::Node));
    list
}

/// The address range of a part.
pub fn place(r: &Region, chunk: u64, part: Part) -> Range<u64> {
    match part {
        Part::Data => r.chunk_addr(chunk)..r.chunk_addr(chunk + 1),
        Part::Tag => r.tag_addr(chunk)..r.tag_addr(chunk + 1),
        Part::Node(level) => {
            let at = r.node_addr(level, chunk / below(level));
            at..at + NODE
        }
    }
}

/// The chunks that share this part (for a tag: its beat) with a chunk.
pub fn shared(chunk: u64, part: Part) -> Range<u64> {
    let n = match part {
        Part::Data => 1,
        Part::Tag => 4,
        Part::Node(level) => below(level),
    };
    chunk - chunk % n..chunk - chunk % n + n
}

/// Chunks below a node of a level.
fn below(level: u32) -> u64 {
    FAN.pow(level + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shef_proto::config::Mode;

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
    fn nodes_lie_level_by_level() {
        let r = region(1 << 20);
        assert_eq!(parts(&r), [Part::Data, Part::Tag, Part::Node(0), Part::Node(1)]);
        assert_eq!(place(&r, 17, Part::Node(0)).start, (1 << 41) + 64 * 2);
        assert_eq!(place(&r, 130, Part::Node(1)).start, (1 << 41) + 64 * ((1 << 17) + 2));
        assert_eq!(shared(130, Part::Node(1)), 128..192);
        assert_eq!(shared(6, Part::Tag), 4..8);
    }
}
