//! The shape of a counter tree: how many levels of nodes lie in card memory, and where.
//!
//! The format is in `docs/reference/sealed-memory.md`, "Counter tree".

use crate::config::PAGE;

/// Counters of a node.
pub const ARITY: u64 = 8;
/// Bytes of a node.
pub const NODE_LEN: u64 = 64;
/// Most nodes of the top level in memory: each has a counter in the root table on chip.
pub const MAX_ROOT: u64 = 65536;

/// The levels of a tree over some chunks. Level 0 holds the versions of the chunks, level `l + 1` those of the nodes of level `l`, and the
/// root table on chip those of the last level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    chunks: u64,
    levels: u8,
}

impl Tree {
    /// The tree over `chunks` chunks: the fewest levels, at least one, whose last has at most [`MAX_ROOT`] nodes.
    #[must_use]
    pub fn over(chunks: u64) -> Self {
        let mut levels = 1;
        let mut top = chunks.div_ceil(ARITY);
        while top > MAX_ROOT {
            top = top.div_ceil(ARITY);
            levels += 1;
        }
        Self { chunks, levels }
    }

    /// Levels in memory.
    #[must_use]
    pub fn levels(&self) -> u8 {
        self.levels
    }

    /// Nodes of a level.
    #[must_use]
    pub fn nodes(&self, level: u8) -> u64 {
        (0..=level).fold(self.chunks, |n, _| n.div_ceil(ARITY))
    }

    /// Counters of the root table: nodes of the last level.
    #[must_use]
    pub fn root(&self) -> u64 {
        self.nodes(self.levels - 1)
    }

    /// Where a node lies, counted in bytes from the first node of the tree: the levels follow each other, level 0 first.
    #[must_use]
    pub fn offset(&self, level: u8, node: u64) -> u64 {
        ((0..level).map(|l| self.nodes(l)).sum::<u64>() + node) * NODE_LEN
    }

    /// Bytes of all nodes, rounded up to whole pages.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.offset(self.levels, 0).next_multiple_of(PAGE)
    }

    /// The node that lies `offset` bytes from the first: its level and number.
    #[must_use]
    pub fn at(&self, offset: u64) -> Option<(u8, u64)> {
        let node = offset / NODE_LEN;
        (0..self.levels).rev().map(|l| (l, self.offset(l, 0) / NODE_LEN)).find(|(_, first)| node >= *first).and_then(|(l, first)| {
            let node = node - first;
            (offset.is_multiple_of(NODE_LEN) && node < self.nodes(l)).then_some((l, node))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_small_and_large_regions() {
        for (chunks, levels, root) in [
            (1, 1, 1),
            (8, 1, 1),
            (9, 1, 2),
            (8 * 65536, 1, 65536),
            (8 * 65536 + 1, 2, 8193),
            (16 << 18, 2, 65536),
            (1 << 25, 3, 65536),
            (1 << 28, 4, 65536),
            (1 << 31, 5, 65536),
        ] {
            let t = Tree::over(chunks);
            assert_eq!((t.levels(), t.root()), (levels, root), "{chunks} chunks");
        }
    }

    #[test]
    fn levels_follow_each_other() {
        let t = Tree::over(8 * 65536 + 1);
        assert_eq!((t.nodes(0), t.nodes(1)), (65537, 8193));
        assert_eq!(t.offset(0, 65536), 65536 * 64);
        assert_eq!(t.offset(1, 0), 65537 * 64);
        assert_eq!(t.size(), ((65537 + 8193) * 64u64).next_multiple_of(4096));
        assert_eq!(t.at(65536 * 64), Some((0, 65536)));
        assert_eq!(t.at(65537 * 64), Some((1, 0)));
        assert_eq!(t.at((65537 + 8192) * 64), Some((1, 8192)));
        assert_eq!((t.at((65537 + 8193) * 64), t.at(32)), (None, None));
        assert_eq!(Tree::over(64).size(), 4096);
    }
}
