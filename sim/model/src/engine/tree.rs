//! Counter trees: versions of chunks in card memory, protected by counters whose root is on chip,
//! and the node cache of an engine set.

use std::collections::BTreeMap;

use shef_proto::channel::FaultKind;
use shef_proto::config::{MAX_EPOCH, Mode, NODE_ARITY, Region};
use shef_proto::load::SessionKeys;
use shef_seal::{NODE_LEN, NodeCipher};

use super::faults::{Card, Fault};

/// Node cache of each level: sets of four ways.
const SETS: u64 = 128;
const WAYS: usize = 4;
const ARITY: usize = NODE_ARITY as usize;

/// The tree of one region.
struct Tree {
    region: Region,
    cipher: Option<NodeCipher>,
    /// Counters of the top level's nodes; absent: 0.
    root: BTreeMap<u64, u64>,
}

struct Node {
    region: usize,
    number: u64,
    counters: [u64; ARITY],
    dirty: bool,
    used: u64,
}

/// The trees of an engine set and their node cache.
pub(super) struct Trees {
    /// By index of the region in the list.
    trees: BTreeMap<usize, Tree>,
    /// Level, set.
    cache: Vec<Vec<Vec<Node>>>,
    /// Rises with each use of a node.
    now: u64,
}

impl Trees {
    /// The trees of these regions; only those of mode `tree` have one.
    pub fn new<'a>(regions: impl Iterator<Item = (usize, &'a Region)>) -> Self {
        let tree = |r: &Region| Tree { region: r.clone(), cipher: None, root: BTreeMap::new() };
        let trees: BTreeMap<_, _> =
            regions.filter(|(_, r)| r.mode == Mode::Tree).map(|(at, r)| (at, tree(r))).collect();
        let levels = trees.values().map(|t| t.region.tree_levels()).max().unwrap_or(0);
        let level = || (0..SETS).map(|_| Vec::new()).collect();
        Self { trees, cache: (0..levels).map(|_| level()).collect(), now: 0 }
    }

    pub fn enable(&mut self, keys: &SessionKeys) {
        for t in self.trees.values_mut() {
            let id = t.region.id;
            t.cipher = keys.node_key(id).map(|k| NodeCipher::new(id, k));
        }
    }

    /// Drops clean nodes.
    pub fn forget_clean(&mut self) {
        self.cache.iter_mut().flatten().for_each(|set| set.retain(|n| n.dirty));
    }

    /// Drops all nodes of a region, written back or not.
    pub fn freeze(&mut self, region: usize) {
        self.cache.iter_mut().flatten().for_each(|set| set.retain(|n| n.region != region));
    }

    /// Version of a chunk.
    pub fn version(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<u64, Fault> {
        self.counter(card, region, 0, chunk).map(|c| *c)
    }

    /// Raises the version of a chunk and returns the new one.
    pub fn raise(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<u64, Fault> {
        self.bump(card, region, 0, chunk)
    }

    /// The counter of child `child` of level `level`, in a node that is on chip and verified, or in
    /// the root table.
    fn counter(
        &mut self,
        card: &mut Card,
        region: usize,
        level: u32,
        child: u64,
    ) -> Result<&mut u64, Fault> {
        if level == self.tree(region)?.region.tree_levels() {
            return Ok(self.trees.get_mut(&region).ok_or(INTERNAL)?.root.entry(child).or_insert(0));
        }
        let number = child / NODE_ARITY;
        self.load(card, region, level, number)?;
        self.now += 1;
        let now = self.now;
        let node = self
            .set(level, number)
            .iter_mut()
            .find(|n| n.region == region && n.number == number)
            .ok_or(INTERNAL)?;
        node.used = now;
        Ok(&mut node.counters[(child % NODE_ARITY) as usize])
    }

    fn bump(
        &mut self,
        card: &mut Card,
        region: usize,
        level: u32,
        child: u64,
    ) -> Result<u64, Fault> {
        let id = self.tree(region)?.region.id;
        let counter = self.counter(card, region, level, child)?;
        if *counter >= MAX_EPOCH {
            return Err(Fault {
                region: id,
                chunk: (u64::from(level) << 36) | (child / NODE_ARITY),
                version: *counter,
                ..INTERNAL
            });
        }
        *counter += 1;
        let version = *counter;
        if level < self.tree(region)?.region.tree_levels() {
            let number = child / NODE_ARITY;
            self.set(level, number)
                .iter_mut()
                .filter(|n| n.region == region && n.number == number)
                .for_each(|n| n.dirty = true);
        }
        Ok(version)
    }

    /// Brings a node on chip.
    fn load(
        &mut self,
        card: &mut Card,
        region: usize,
        level: u32,
        number: u64,
    ) -> Result<(), Fault> {
        if self.set(level, number).iter().any(|n| n.region == region && n.number == number) {
            return Ok(());
        }
        let version = *self.counter(card, region, level + 1, number)?;
        let counters = if version == 0 {
            [0; ARITY]
        } else {
            self.fetch(card, region, level, number, version)?
        };
        if self.set(level, number).len() >= WAYS {
            let set = self.set(level, number);
            let oldest = (0..set.len()).min_by_key(|&i| set[i].used).unwrap_or(0);
            let old = set.swap_remove(oldest);
            if old.dirty {
                self.write_back(card, level, &old)?;
            }
        }
        let used = self.now;
        self.set(level, number).push(Node { region, number, counters, dirty: false, used });
        Ok(())
    }

    fn fetch(
        &mut self,
        card: &Card,
        region: usize,
        level: u32,
        number: u64,
        version: u64,
    ) -> Result<[u64; ARITY], Fault> {
        let t = self.tree(region)?;
        let addr = t.region.node_addr(level, number);
        card.access(addr, NODE_LEN as u64).map_err(Fault::memory)?;
        let mut bytes = [0; NODE_LEN];
        card.memory.read(addr, &mut bytes);
        let fault = Fault {
            kind: FaultKind::Node,
            region: t.region.id,
            chunk: u64::from(level) << 36 | number,
            version,
        };
        t.cipher.as_ref().and_then(|c| c.open(version, level as u8, number, &bytes)).ok_or(fault)
    }

    /// Writes back an evicted node under its parent's counter, which it raises first.
    fn write_back(&mut self, card: &mut Card, level: u32, node: &Node) -> Result<(), Fault> {
        let version = self.bump(card, node.region, level + 1, node.number)?;
        let t = self.tree(node.region)?;
        let addr = t.region.node_addr(level, node.number);
        let bytes = t.cipher.as_ref().ok_or(INTERNAL)?.seal(
            version,
            level as u8,
            node.number,
            &node.counters,
        );
        card.access(addr, NODE_LEN as u64).map_err(Fault::memory)?;
        card.write_part(addr, &bytes);
        Ok(())
    }

    fn tree(&self, region: usize) -> Result<&Tree, Fault> {
        self.trees.get(&region).ok_or(INTERNAL)
    }

    fn set(&mut self, level: u32, number: u64) -> &mut Vec<Node> {
        &mut self.cache[level as usize][(number % SETS) as usize]
    }
}

/// A counter at its maximum, or a tree that does not exist.
const INTERNAL: Fault = Fault { kind: FaultKind::Internal, region: 0xff, chunk: 0, version: 0 };
