//! Checks every write that leaves a Shield against the sealed-memory format, whatever the order and
//! timing of the traffic.
//!
//! The oracle knows the session's keys and sees the beats on the memory ports. A chunk must be one
//! message under exactly the next version of that chunk (in an `output` region, its epoch, once),
//! and its tag must be the tag of that message. A node must carry exactly its next version, and its
//! counters never decrease. No other address may be written. Once the Shield is at rest
//! ([`Oracle::at_rest`]), the sealed data must match the bench's plaintext, every tag must have
//! reached memory, and no counter may be ahead of its writes.
//!
//! ```no_run
//! # use shef_tb::Watched;
//! # fn f(rtl: &mut shef_tb::RtlBench, owner: &shef_tb::Owner, config: &shef_proto::config::Config,
//! reference: &shef_tb::Reference) -> shef_tb::Result<()> {
//! let oracle = shef_tb::Oracle::new(config, owner.keys(), &shef_proto::load::first_epochs(config,
//! 1));
//! rtl.watch(&oracle);
//! // ... traffic, then a flush
//! oracle.at_rest(|region, chunk| reference.plain(region, chunk))?;
//! # Ok(()) }
//! ```

use crate::{BenchError, Result};
use shef_model::WriteTap;
use shef_proto::config::{Config, MAX_EPOCH, Mode, NODE_LEN, Region, TAG_LEN};
use shef_proto::load::{FirstEpoch, SessionKeys};
use shef_rtl::{BEAT, WriteHook};
use shef_seal::{ChunkCipher, ChunkTag, NodeCipher};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of violations kept.
const KEPT: usize = 16;

/// The observed state of a chunk.
#[derive(Default)]
struct Chunk {
    /// Version of the last complete seal, or 0.
    version: u64,
    plain: Vec<u8>,
    /// Ciphertext of the seal in progress, and which of its beats were seen.
    data: Vec<u8>,
    seen: u64,
    /// Outstanding tags, of `version` and of earlier versions. The last one must be written.
    tags: BTreeMap<u64, ChunkTag>,
    /// Tags written before their chunk was complete.
    early: Vec<ChunkTag>,
}

struct State {
    regions: Vec<Watched>,
    violations: Vec<String>,
    seals: u64,
    nodes: u64,
}

struct Watched {
    region: Region,
    epoch: u64,
    data: Option<ChunkCipher>,
    tree: Option<NodeCipher>,
    chunks: HashMap<u64, Chunk>,
    /// Version and counters of each node, by level and number.
    nodes: HashMap<(u32, u64), (u64, [u64; 8])>,
}

/// Watches one session. Clones share their state.
#[derive(Clone)]
pub struct Oracle(Arc<Mutex<State>>);

impl Oracle {
    /// Watches the session with these keys, from its start.
    #[must_use]
    pub fn new(config: &Config, keys: &SessionKeys, epochs: &[FirstEpoch]) -> Self {
        let watched = |r: &Region| Watched {
            region: r.clone(),
            epoch: epochs.iter().find(|e| e.region == r.id).map_or(0, |e| e.epoch),
            data: keys.data_key(r.id).map(|k| ChunkCipher::new(r.id, k)),
            tree: keys.node_key(r.id).map(|k| NodeCipher::new(r.id, k)),
            chunks: HashMap::new(),
            nodes: HashMap::new(),
        };
        let regions = config.regions().iter().map(watched).collect();
        Self(Arc::new(Mutex::new(State { regions, violations: Vec::new(), seals: 0, nodes: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hook for `AxiMemory::on_write`, one for each port.
    #[must_use]
    pub fn tap(&self) -> WriteHook {
        let oracle = self.clone();
        Box::new(move |addr, data, strobe| oracle.see(addr, data, *strobe))
    }

    /// A hook for `Model::on_write`.
    #[must_use]
    pub fn model_tap(&self) -> WriteTap {
        let oracle = self.clone();
        Box::new(move |addr, data, strobe| oracle.see(addr, data, strobe))
    }

    /// Checks a beat that the Shield writes to memory, for benches with their own hook.
    pub fn see(&self, addr: u64, data: &[u8; BEAT], strobe: u64) {
        let mut s = self.state();
        // A burst that a wipe cuts short ends with empty beats.
        if strobe == 0 {
            return;
        }
        if let Err(what) = s.write(addr, data, strobe)
            && s.violations.len() < KEPT
        {
            s.violations.push(format!("beat at {addr:#x}: {what}"));
        }
    }

    /// Records the region's new epoch after the Shield has answered an EPOCH command.
    pub fn epoch(&self, region: u8, epoch: u64) {
        if let Some(w) = self.state().regions.get_mut(usize::from(region)) {
            w.epoch = epoch;
        }
    }

    /// Number of chunks and nodes seen so far, each complete and correct.
    #[must_use]
    pub fn seen(&self) -> (u64, u64) {
        let s = self.state();
        (s.seals, s.nodes)
    }

    /// The version under which a chunk was last sealed, or 0.
    #[must_use]
    pub fn version(&self, region: u8, chunk: u64) -> u64 {
        self.state()
            .regions
            .get(usize::from(region))
            .and_then(|w| w.chunks.get(&chunk))
            .map_or(0, |c| c.version)
    }

    /// Fails if there were violations so far.
    ///
    /// # Errors
    /// The first violations.
    pub fn check(&self) -> Result<()> {
        let s = self.state();
        if s.violations.is_empty() {
            Ok(())
        } else {
            Err(BenchError::Format(s.violations.join("; ")))
        }
    }

    /// Checks a Shield at rest, after a flush without a fault: all sealed data must be
    /// `plain(region, chunk)`, which is zeros where a scratch region was not sealed.
    ///
    /// # Errors
    /// The first violations.
    pub fn at_rest<'a>(&self, plain: impl Fn(u8, u64) -> &'a [u8]) -> Result<()> {
        {
            let mut s = self.state();
            let mut found = Vec::new();
            for w in &s.regions {
                w.at_rest(&plain, &mut found);
            }
            s.violations.extend(found);
            s.violations.truncate(KEPT);
        }
        self.check()
    }
}

impl State {
    fn write(
        &mut self,
        addr: u64,
        data: &[u8; BEAT],
        strobe: u64,
    ) -> std::result::Result<(), String> {
        let inside = |base: u64, size: u64| (addr.wrapping_sub(base) < size).then(|| addr - base);
        for w in &mut self.regions {
            let r = &w.region;
            if let Some(at) = inside(r.base, r.size) {
                self.seals += u64::from(w.data_beat(at, data, strobe)?);
                return Ok(());
            }
            if r.mode.has_tags()
                && let Some(at) = inside(r.tag_base, r.tag_size())
            {
                return w.tag_beat(at / TAG_LEN, data, strobe);
            }
            if let Some(base) = r.node_base
                && let Some(at) = inside(base, r.node_size())
            {
                self.nodes += 1;
                return w.node_beat(at / NODE_LEN, data, strobe);
            }
        }
        Err("no region has data, tags or nodes there".into())
    }
}

impl Watched {
    fn name(&self, chunk: u64) -> String {
        format!("region {} ({}) chunk {chunk}", self.region.id, self.region.name)
    }

    /// Whether this beat completes a chunk.
    fn data_beat(
        &mut self,
        at: u64,
        data: &[u8; BEAT],
        strobe: u64,
    ) -> std::result::Result<bool, String> {
        let r = &self.region;
        let len = r.chunk as usize;
        let (index, beat) = (at / u64::from(r.chunk), (at % u64::from(r.chunk)) as usize / BEAT);
        let what = self.name(index);
        match r.mode {
            Mode::Bypass => return Ok(false),
            Mode::Input => return Err(format!("{what} is input and was written")),
            _ => {}
        }
        if strobe != u64::MAX {
            return Err(format!("{what}: strobe {strobe:#x}"));
        }
        let chunk = self.chunks.entry(index).or_default();
        if chunk.seen >> beat & 1 == 1 {
            return Err(format!("{what}: beat {beat} twice in one seal"));
        }
        chunk.data.resize(len, 0);
        chunk.data[beat * BEAT..(beat + 1) * BEAT].copy_from_slice(data);
        chunk.seen |= 1 << beat;
        if chunk.seen != u64::MAX >> (64 - len / BEAT) {
            return Ok(false);
        }
        chunk.seen = 0;
        let version = match r.mode {
            Mode::Output if chunk.version == self.epoch => {
                return Err(format!("{what} was sealed twice in epoch {}", self.epoch));
            }
            Mode::Output => self.epoch,
            _ => chunk.version + 1,
        };
        let limit = r.counter_bits.map_or(MAX_EPOCH, |bits| (1 << bits) - 1);
        if version == 0 || version > limit {
            return Err(format!("{what} was sealed under version {version}"));
        }
        let Some(cipher) = &self.data else { return Err(format!("{what} has no key")) };
        // The key stream is its own inverse; the tag belongs to the ciphertext seen.
        chunk.plain = std::mem::take(&mut chunk.data);
        cipher.seal(version, index, &mut chunk.plain);
        let tag = cipher.seal(version, index, &mut chunk.plain.clone());
        chunk.version = version;
        chunk.tags.insert(version, tag);
        for tag in std::mem::take(&mut chunk.early) {
            chunk.tag(tag);
        }
        Ok(true)
    }

    fn tag_beat(
        &mut self,
        first: u64,
        data: &[u8; BEAT],
        strobe: u64,
    ) -> std::result::Result<(), String> {
        for (k, tag) in (0..).zip(data.as_chunks::<{ TAG_LEN as usize }>().0) {
            let what = self.name(first + k);
            match (strobe >> (16 * k)) & 0xffff {
                0 => continue,
                0xffff => {}
                part => return Err(format!("{what}: strobe {part:#x} in its tag")),
            }
            if self.region.mode == Mode::Input || first + k >= self.region.chunks() {
                return Err(format!("{what} has no tag that is written"));
            }
            self.chunks.entry(first + k).or_default().tag(*tag);
        }
        Ok(())
    }

    fn node_beat(
        &mut self,
        mut number: u64,
        data: &[u8; BEAT],
        strobe: u64,
    ) -> std::result::Result<(), String> {
        let mut level = 0;
        while number >= self.region.level_nodes(level) {
            number -= self.region.level_nodes(level);
            level += 1;
            if level == self.region.tree_levels() {
                return Err(format!("region {} has no node there", self.region.id));
            }
        }
        let what = format!(
            "region {} ({}) node {number} of level {level}",
            self.region.id, self.region.name
        );
        if strobe != u64::MAX {
            return Err(format!("{what}: strobe {strobe:#x}"));
        }
        let (version, old) = self.nodes.get(&(level, number)).copied().unwrap_or_default();
        let version = version + 1;
        let counters = self.tree.as_ref().and_then(|c| c.open(version, level as u8, number, data));
        let Some(counters) = counters else {
            return Err(format!("{what} is not sealed under version {version}"));
        };
        if counters.iter().zip(old).any(|(new, old)| *new < old) {
            return Err(format!("{what}: counters {old:?} fell to {counters:?}"));
        }
        self.nodes.insert((level, number), (version, counters));
        Ok(())
    }

    fn at_rest<'a>(&self, plain: &impl Fn(u8, u64) -> &'a [u8], found: &mut Vec<String>) {
        let r = &self.region;
        if matches!(r.mode, Mode::Input | Mode::Bypass) {
            return;
        }
        for index in 0..r.chunks() {
            let plain = plain(r.id, index);
            let what = self.name(index);
            let Some(c) = self
                .chunks
                .get(&index)
                .filter(|c| c.version > 0 || c.seen > 0 || !c.early.is_empty())
            else {
                if r.mode != Mode::Output && plain.iter().any(|b| *b != 0) {
                    found.push(format!("{what} was written and never sealed"));
                }
                continue;
            };
            if c.seen != 0 {
                found.push(format!("{what} was sealed in part"));
            }
            if !c.early.is_empty() {
                found.push(format!("{what} has a tag that no version of it has"));
            }
            if !c.tags.is_empty() {
                found
                    .push(format!("{what}: the tag of version {} did not reach memory", c.version));
            }
            if (r.mode != Mode::Output || c.version == self.epoch) && c.plain != plain {
                found.push(format!(
                    "{what}: what was sealed under version {} is not what was written",
                    c.version
                ));
            }
        }
        for ((level, number), (_, counters)) in &self.nodes {
            for (k, counter) in (0..).zip(counters) {
                let child = number * 8 + k;
                let most = match level {
                    0 => self.chunks.get(&child).map_or(0, |c| c.version),
                    _ => self.nodes.get(&(level - 1, child)).map_or(0, |(version, _)| *version),
                };
                if *counter > most {
                    found.push(format!(
                        "region {} node {number} of level {level} counts {counter} for child {child}, which has {most}",
                        r.id
                    ));
                }
            }
        }
    }
}

impl Chunk {
    /// Records a tag that reached memory: of a version whose tag is outstanding, or of one still to
    /// come.
    fn tag(&mut self, tag: ChunkTag) {
        match self.tags.iter().find(|(_, t)| **t == tag).map(|(v, _)| *v) {
            Some(version) => self.tags.retain(|v, _| *v > version),
            None => self.early.push(tag),
        }
    }
}
