//! Seeded bursts and their expected outcomes.

use shef_model::bus::{Beat, Resp};
use shef_proto::config::{Config, Mode, PAGE, Region};
use shef_proto::load::SessionKeys;
use shef_rtl::agent::Rng;
use shef_seal::ChunkCipher;
use std::collections::BTreeSet;
use std::fmt;

/// A burst of the accelerator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Reads whole beats.
    Read {
        /// AXI id.
        id: u8,
        /// Byte address.
        addr: u64,
        /// Beats.
        beats: u32,
    },
    /// Writes whole beats.
    Write {
        /// AXI id.
        id: u8,
        /// Byte address.
        addr: u64,
        /// Bytes.
        data: Vec<u8>,
        /// One per beat; empty: all bytes.
        strobes: Vec<u64>,
    },
    /// A WRAP burst, which the Shield refuses.
    Wrap {
        /// Whether it writes (zero bytes).
        write: bool,
        /// AXI id.
        id: u8,
        /// Byte address.
        addr: u64,
        /// Beats.
        beats: u32,
    },
}

/// Prints the shape of a burst, without its data.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { id, addr, beats } => {
                write!(f, "read of {beats} beats at {addr:#x}, id {id}")
            }
            Self::Write { id, addr, data, .. } => {
                write!(f, "write of {} beats at {addr:#x}, id {id}", data.len() / 64)
            }
            Self::Wrap { id, addr, beats, .. } => {
                write!(f, "wrapping burst of {beats} beats at {addr:#x}, id {id}")
            }
        }
    }
}

/// Answers to a burst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// OKAY per beat of a read, once for a write.
    pub okay: Vec<bool>,
    /// Bytes of a read; zero where not OKAY.
    pub data: Vec<u8>,
}

impl Outcome {
    pub(crate) fn of(beats: &[Beat]) -> Self {
        Self {
            okay: beats.iter().map(|b| b.resp == Resp::Okay).collect(),
            data: beats.iter().flat_map(|b| b.data).collect(),
        }
    }
}

/// Bursts that may run concurrently, with the expected outcome of each.
#[derive(Debug, Clone, Default)]
pub struct Phase {
    /// The bursts.
    pub ops: Vec<Op>,
    /// Their outcomes.
    pub expected: Vec<Outcome>,
}

/// A chunk's required contents in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedChunk {
    /// Region.
    pub region: u8,
    /// Index.
    pub chunk: u64,
    /// Address of its bytes.
    pub addr: u64,
    /// Ciphertext.
    pub data: Vec<u8>,
    /// Address of its tag.
    pub tag_addr: u64,
    /// Tag.
    pub tag: [u8; 16],
}

/// The plaintext of the regions.
pub struct Reference {
    config: Config,
    plain: Vec<Vec<u8>>,
    /// Output chunks that were sealed (or will be by the next flush) in this epoch.
    written: Vec<BTreeSet<u64>>,
    /// Chunks that the current phase writes: it must not read them.
    pending: BTreeSet<(u8, u64)>,
    /// Epoch of each region.
    pub epochs: Vec<u64>,
    /// Bursts that the Shield must have refused.
    pub refusals: u32,
    /// Number of chunks sealed or verified, counted for each read and write.
    pub chunks: u64,
}

impl Reference {
    /// Everything zero, with these epochs.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "bench regions are small")]
    pub fn new(config: &Config, epoch: u64) -> Self {
        Self {
            plain: config.regions().iter().map(|r| vec![0; r.size as usize]).collect(),
            written: config.regions().iter().map(|_| BTreeSet::new()).collect(),
            pending: BTreeSet::new(),
            epochs: config.regions().iter().map(|_| epoch).collect(),
            config: config.clone(),
            refusals: 0,
            chunks: 0,
        }
    }

    fn sealed(&self, region: &Region, keys: &SessionKeys, chunk: u64) -> (Vec<u8>, [u8; 16]) {
        let at = usize::try_from(chunk * u64::from(region.chunk)).unwrap_or(usize::MAX);
        let mut data = self.plain[usize::from(region.id)][at..at + region.chunk as usize].to_vec();
        let Some(key) = keys.data_key(region.id) else { return (data, [0; 16]) };
        let tag = ChunkCipher::new(region.id, key).seal(
            self.epochs[usize::from(region.id)],
            chunk,
            &mut data,
        );
        (data, tag)
    }

    /// New random content of every input region, sealed under its epoch; returns the owner's memory
    /// writes (address, bytes).
    pub fn fill_inputs(&mut self, rng: &mut Rng, keys: &SessionKeys) -> Vec<(u64, Vec<u8>)> {
        let mut out = Vec::new();
        for r in self.config.clone().regions().iter().filter(|r| r.mode == Mode::Input) {
            rng.fill(&mut self.plain[usize::from(r.id)]);
            let (mut data, mut tags) = (Vec::new(), Vec::new());
            for c in 0..r.chunks() {
                let (d, t) = self.sealed(r, keys, c);
                data.extend(d);
                tags.extend(t);
            }
            out.push((r.base, data));
            out.push((r.tag_base, tags));
        }
        out
    }

    /// Raises every region's epoch; output regions are unwritten again.
    pub fn next_epoch(&mut self) {
        for e in &mut self.epochs {
            *e += 1;
        }
        for (w, p) in self.written.iter_mut().zip(&mut self.plain) {
            if !w.is_empty() {
                w.clear();
                p.fill(0);
            }
        }
    }

    /// The bytes of a chunk.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "bench regions are small")]
    pub fn plain(&self, region: u8, chunk: u64) -> &[u8] {
        let len = self.config.regions()[usize::from(region)].chunk as usize;
        &self.plain[usize::from(region)][chunk as usize * len..][..len]
    }

    /// Unprotected regions, with their addresses and bytes.
    pub fn public(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.config.bypass_regions().map(|r| (r.base, &self.plain[usize::from(r.id)][..]))
    }

    /// Whether a chunk of an output region is sealed in this epoch.
    #[must_use]
    pub fn is_written(&self, region: u8, chunk: u64) -> bool {
        self.written[usize::from(region)].contains(&chunk)
    }

    /// Everything that the Shield must have written to memory.
    #[must_use]
    pub fn outputs(&self, keys: &SessionKeys) -> Vec<SealedChunk> {
        let mut out = Vec::new();
        for r in self.config.regions() {
            for c in &self.written[usize::from(r.id)] {
                let (d, t) = self.sealed(r, keys, *c);
                out.push(SealedChunk {
                    region: r.id,
                    chunk: *c,
                    addr: r.chunk_addr(*c),
                    data: d,
                    tag_addr: r.tag_addr(*c),
                    tag: t,
                });
            }
        }
        out
    }
}

/// Whether there are enough lines for all chunks that a phase leaves incomplete in the regions that
/// share lines with this one: for each region two holes and the chunk that several bursts fill, one
/// that the next write begins, and the two lines that writes leave to reads.
fn roomy(config: &Config, region: &Region) -> bool {
    let mut sharing = config
        .regions()
        .iter()
        .filter(|r| r.set == region.set && r.is_big() == region.is_big() && r.mode != Mode::Input);
    let lines = config
        .sets()
        .get(usize::from(region.set))
        .map_or(0, |s| if region.is_big() { s.big_lines } else { s.small_lines });
    sharing.clone().count() * 3 + 3 <= usize::from(lines) && sharing.all(|r| r.mode == Mode::Output)
}

/// Number of pages of a region that are written: in a larger region they are spread out, so that
/// few are close to each other in a counter tree.
const PLACES: u64 = 128;

fn stride(region: &Region) -> u64 {
    (region.size / PAGE / PLACES).max(1)
}

/// Draws phases of bursts.
pub struct Traffic {
    rng: Rng,
}

fn refused(beats: u32, write: bool) -> Outcome {
    if write {
        Outcome { okay: vec![false], data: Vec::new() }
    } else {
        Outcome { okay: vec![false; beats as usize], data: vec![0; beats as usize * 64] }
    }
}

impl Traffic {
    /// Creates it from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed) }
    }

    /// The generator, for other choices of the test.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// A phase with about `reads` read bursts, which also writes every output chunk not yet written
    /// in this epoch with probability `share` out of 8, whole or in part, in one burst or several.
    /// Some pages of other writable regions get a few bursts of any shape. Reads access data from
    /// earlier phases; some bursts must be refused.
    ///
    /// Nothing in a phase depends on the order in which its reads run against its writes.
    #[expect(clippy::cast_possible_truncation, reason = "bench regions are small")]
    pub fn phase(&mut self, reference: &mut Reference, reads: u32, share: u64) -> Phase {
        let config = reference.config.clone();
        let mut pending = Vec::new();
        for r in config.regions().iter().filter(|r| r.mode == Mode::Output) {
            for c in 0..r.chunks() {
                if !reference.is_written(r.id, c) && self.rng.below(8) < share {
                    pending.push((r.id, c));
                }
            }
        }
        let mut pages = Vec::new();
        for r in config.regions().iter().filter(|r| !r.mode.has_epoch()) {
            let pages_of =
                (0..r.size / PAGE).step_by(usize::try_from(stride(r)).unwrap_or(usize::MAX));
            pages.extend(pages_of.filter(|_| self.rng.below(16) < share).map(|p| (r.id, p)));
        }
        reference.pending = pending.iter().copied().collect();
        for (id, page) in &pages {
            let per_page = PAGE / u64::from(config.regions()[usize::from(*id)].chunk);
            reference.pending.extend((page * per_page..(page + 1) * per_page).map(|c| (*id, c)));
        }
        let mut all: Vec<(Op, Outcome)> = Vec::new();
        for _ in 0..reads {
            let r = &config.regions()[self.rng.below(config.regions().len() as u64) as usize];
            self.read(reference, r, &mut all);
        }
        for r in config.regions().iter().filter(|r| r.mode != Mode::Input) {
            // Few chunks stay incomplete until the flush: the number of gathering lines is limited.
            // Where others may evict a chunk, one burst writes it: a second burst could find it
            // closed.
            let apart = roomy(&config, r);
            let mut holes = 0;
            let mut writes = Vec::new();
            for (_, c) in pending.iter().filter(|(id, _)| *id == r.id) {
                let part = holes < 2 && self.rng.one_in(8);
                holes += u32::from(part);
                self.write(reference, r, *c, part, apart, &mut writes);
            }
            let mut rewritten: Vec<u64> =
                pages.iter().filter(|(id, _)| *id == r.id).flat_map(|(_, p)| [*p; 3]).collect();
            for i in (1..rewritten.len()).rev() {
                rewritten.swap(i, self.rng.below(i as u64 + 1) as usize);
            }
            for page in rewritten {
                self.rewrite(reference, r, page, &mut writes);
            }
            // Between the reads, in order.
            let step = all.len() / writes.len().max(1);
            let mut merged = Vec::with_capacity(all.len() + writes.len());
            let mut rest = all.into_iter();
            for w in writes {
                merged.extend(rest.by_ref().take(step));
                merged.push(w);
            }
            merged.extend(rest);
            all = merged;
        }
        let (ops, expected) = all.into_iter().unzip();
        Phase { ops, expected }
    }

    fn id(&mut self) -> u8 {
        self.rng.below(6) as u8
    }

    #[expect(clippy::cast_possible_truncation, reason = "bench regions are small")]
    fn read(&mut self, reference: &mut Reference, r: &Region, out: &mut Vec<(Op, Outcome)>) {
        let id = self.id();
        let beats_in = r.size / 64;
        let beats = 1 + match self.rng.below(4) {
            0 => self.rng.below(64),
            1 => 7,
            2 => self.rng.below(8),
            _ => u64::from(r.chunk) / 64 - 1,
        };
        let beats = beats.min(beats_in);
        let mut start = self.rng.below(beats_in - beats + 1);
        if self.rng.one_in(2) {
            start -= start % beats.next_power_of_two().min(64);
        }
        let step = stride(r) * (PAGE / 64);
        if stride(r) > 1 && !self.rng.one_in(8) {
            start -= start % step - start % (PAGE / 64);
        }
        let addr = r.base + start * 64;
        let beats = beats.min(64 - addr / 64 % 64) as u32;
        match self.rng.below(60) {
            0 => {
                reference.refusals += 1;
                out.push((Op::Wrap { write: false, id, addr, beats }, refused(beats, false)));
                return;
            }
            1 => {
                // Beyond every region.
                reference.refusals += 1;
                let addr = (1 << 40) + addr;
                out.push((Op::Read { id, addr, beats }, refused(beats, false)));
                return;
            }
            2 if r.mode == Mode::Input => {
                reference.refusals += 1;
                let data = vec![0xa5; beats as usize * 64];
                out.push((Op::Write { id, addr, data, strobes: Vec::new() }, refused(beats, true)));
                return;
            }
            _ => {}
        }
        let first = (addr - r.base) / u64::from(r.chunk);
        let end = (addr - r.base + 64 * u64::from(beats)).div_ceil(u64::from(r.chunk));
        if (first..end).any(|c| reference.pending.contains(&(r.id, c))) {
            return;
        }
        let mut o = Outcome { okay: Vec::new(), data: Vec::new() };
        let mut last = None;
        let mut told = false;
        for b in 0..u64::from(beats) {
            let at = (addr - r.base + 64 * b) as usize;
            let chunk = at as u64 / u64::from(r.chunk);
            let okay = r.mode != Mode::Output || reference.is_written(r.id, chunk);
            if last != Some(chunk) {
                last = Some(chunk);
                reference.chunks += u64::from(okay);
            }
            told |= !okay;
            o.okay.push(okay);
            if okay {
                o.data.extend_from_slice(&reference.plain[usize::from(r.id)][at..at + 64]);
            } else {
                o.data.extend_from_slice(&[0; 64]);
            }
        }
        if told {
            reference.refusals += 1;
        }
        out.push((Op::Read { id, addr, beats }, o));
    }

    /// A burst of any shape into a page of a rewritable region.
    #[expect(clippy::cast_possible_truncation, reason = "bench regions are small")]
    fn rewrite(
        &mut self,
        reference: &mut Reference,
        r: &Region,
        page: u64,
        out: &mut Vec<(Op, Outcome)>,
    ) {
        const BEATS: u64 = PAGE / 64;
        let (first, beats) = match self.rng.below(4) {
            0 => (0, BEATS),
            1 => {
                let n = (u64::from(r.chunk) / 64).max(1);
                (self.rng.below(BEATS / n) * n, n)
            }
            _ => {
                let first = self.rng.below(BEATS);
                (first, 1 + self.rng.below((BEATS - first).min(12)))
            }
        };
        let at = (page * PAGE + first * 64) as usize;
        let mut data = vec![0; beats as usize * 64];
        self.rng.fill(&mut data);
        let strobes: Vec<u64> = match self.rng.below(3) {
            0 => (0..beats)
                .map(|_| if self.rng.one_in(4) { 0 } else { self.rng.next_u64() })
                .collect(),
            _ => Vec::new(),
        };
        let plain = &mut reference.plain[usize::from(r.id)][at..at + data.len()];
        for (i, (to, from)) in plain.iter_mut().zip(&data).enumerate() {
            if strobes.get(i / 64).is_none_or(|s| s >> (i % 64) & 1 == 1) {
                *to = *from;
            }
        }
        reference.chunks += (first * 64 + beats * 64).div_ceil(u64::from(r.chunk))
            - first * 64 / u64::from(r.chunk);
        out.push((
            Op::Write { id: self.id(), addr: r.base + at as u64, data, strobes },
            Outcome { okay: vec![true], data: Vec::new() },
        ));
    }

    #[expect(clippy::cast_possible_truncation, reason = "bench regions are small")]
    fn write(
        &mut self,
        reference: &mut Reference,
        r: &Region,
        chunk: u64,
        part: bool,
        apart: bool,
        out: &mut Vec<(Op, Outcome)>,
    ) {
        let beats = r.chunk as usize / 64;
        let at = (chunk * u64::from(r.chunk)) as usize;
        let mut data = vec![0; r.chunk as usize];
        self.rng.fill(&mut data);
        let mut strobes = vec![u64::MAX; beats];
        let used = if part { 1 + self.rng.below(beats as u64) as usize } else { beats };
        if part {
            for s in &mut strobes[..used] {
                *s = if self.rng.one_in(3) { u64::MAX } else { self.rng.next_u64() };
            }
            // At least one byte stays unwritten, else the chunk would be complete.
            strobes[0] &= !1;
        }
        let plain = &mut reference.plain[usize::from(r.id)][at..at + r.chunk as usize];
        plain.fill(0);
        for (k, s) in strobes[..used].iter().enumerate() {
            for i in 0..64 {
                if s >> i & 1 == 1 {
                    plain[64 * k + i] = data[64 * k + i];
                }
            }
        }
        reference.written[usize::from(r.id)].insert(chunk);
        reference.chunks += 1;
        let id = self.id();
        let okay = Outcome { okay: vec![true], data: Vec::new() };
        let mut k = 0;
        while k < used {
            let n = if !apart || self.rng.one_in(2) {
                used - k
            } else {
                1 + self.rng.below((used - k) as u64) as usize
            };
            out.push((
                Op::Write {
                    id,
                    addr: r.base + at as u64 + 64 * k as u64,
                    data: data[64 * k..64 * (k + n)].to_vec(),
                    strobes: if strobes[k..k + n].iter().all(|s| *s == u64::MAX) {
                        Vec::new()
                    } else {
                        strobes[k..k + n].to_vec()
                    },
                },
                okay.clone(),
            ));
            k += n;
        }
    }
}
