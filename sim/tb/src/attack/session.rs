//! A keyed Shield in a quiescent state, with the knowledge of the bench, the owner and the memory
//! about it.

use super::layout::{self, Part};
use super::recorded::{Exchange, RecordedChannel};
use crate::bench::{Bench, RtlBench, Watched, design};
use crate::oracle::Oracle;
use crate::owner::Owner;
use crate::traffic::Op;
use crate::{BenchError, Result, host};
use shef_model::SparseMemory;
use shef_proto::channel::ShieldRequest;
use shef_proto::config::{Config, MAX_EPOCH, Mode, Region};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{SessionKeys, first_epochs, seal_load_key};
use shef_regs::ctl;
use shef_rtl::agent::Rng;
use shef_rtl::{CoreSnapshot, build};
use shef_seal::ChunkCipher;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Traffic uses all of a region with at most this many chunks, and runs of eight in larger ones.
const WHOLE: u64 = 64;
/// Number of runs used in a large region.
const RUNS: u64 = 8;
/// Number of versions that the bench tries in order to find the one of a scratch chunk.
const VERSIONS: u64 = 64;

/// Epoch of the first round, near the last one: all 48 bits count.
pub const FIRST_EPOCH: u64 = MAX_EPOCH - 0x5a;

/// A Shield that presents its public key and waits for its Load Key.
pub struct Fresh {
    /// Its state.
    pub snapshot: CoreSnapshot,
    /// Its key.
    pub key: PublicKey,
}

/// The expected contents of a region.
#[derive(Default)]
pub struct Scoreboard {
    /// Chunks that traffic uses.
    pub used: Vec<u64>,
    /// Their plaintext. For an `output` region, chunks sealed in this epoch; for scratch, chunks
    /// ever written.
    pub plain: BTreeMap<u64, Vec<u8>>,
}

/// One configuration, keyed.
pub struct Session {
    /// The configuration that the hardware is built for.
    pub config: Config,
    /// The Shield with the bench in place of accelerator, host and kernel.
    pub bench: RtlBench,
    /// The modules under the simulation top.
    pub top: String,
    /// After reset, before the first seed.
    pub empty: CoreSnapshot,
    /// Before the Load Key.
    pub fresh: Fresh,
    /// After the owner has closed the session, with all exchanges up to then.
    pub closed: (CoreSnapshot, Vec<Exchange>),
    owner: Owner,
    /// The quiescent state that attempts start from.
    pub snapshot: CoreSnapshot,
    /// All exchanges up to that state.
    pub wire: Vec<Exchange>,
    /// One scoreboard per region.
    pub scoreboards: Vec<Scoreboard>,
    /// Memory contents after the previous round.
    pub old: SparseMemory,
    /// Current epoch of every region that has one.
    pub epoch: u64,
    /// Seed for the keys.
    pub seed: u64,
}

/// How a design is built.
#[derive(Debug, Clone, Copy, Default)]
pub struct Make {
    /// Build with wave output.
    pub waves: bool,
    /// Compile for a short run.
    pub quick: bool,
    /// Count coverage, including named points.
    pub coverage: bool,
}

/// Ciphertext and tag of a chunk.
pub type Piece = (Vec<u8>, [u8; 16]);

/// Reads a chunk and its tag from memory.
pub fn piece(bench: &RtlBench, r: &Region, chunk: u64) -> Piece {
    let (mut d, mut t) = (vec![0; r.chunk as usize], [0; 16]);
    bench.mem_read(r.chunk_addr(chunk), &mut d);
    bench.mem_read(r.tag_addr(chunk), &mut t);
    (d, t)
}

/// Writes a chunk and its tag to memory.
pub fn place(bench: &mut RtlBench, r: &Region, chunk: u64, p: &Piece) {
    bench.mem_write(r.chunk_addr(chunk), &p.0);
    bench.mem_write(r.tag_addr(chunk), &p.1);
}

/// The chunks of a region that traffic uses.
fn used(r: &Region, rng: &mut Rng) -> Vec<u64> {
    if r.chunks() <= WHOLE {
        return (0..r.chunks()).collect();
    }
    // The first and the last run, and runs whose number differs from theirs in one bit.
    let last = r.chunks() / 8 - 1;
    let top = u64::from(last.ilog2());
    let mut runs: BTreeSet<u64> = [0, last].into();
    for bit in [rng.below(top + 1), top - rng.below(top / 2 + 1)] {
        runs.extend([1 << bit, last & !(1 << bit)]);
    }
    while (runs.len() as u64) < RUNS {
        runs.insert(rng.below(r.chunks() / 8));
    }
    runs.iter().flat_map(|run| 8 * run..8 * run + 8).collect()
}

impl Session {
    /// Builds the Shield of a configuration, keys it with a Load Key, runs two rounds of honest
    /// traffic and takes a snapshot.
    pub fn open(
        name: &str,
        toml: &str,
        dir: &Path,
        seed: u64,
        make: Make,
        progress: &dyn Fn(&str),
    ) -> Result<Self> {
        let (spec, config) = design(toml, &dir.join(name))?;
        let spec = if make.waves { spec.trace() } else { spec };
        let spec = if make.quick { spec } else { spec.fast() };
        let spec =
            if make.coverage { spec.source("sim/tb/cover/shef_cover.sv").coverage() } else { spec };
        progress(&format!("{name}: building"));
        let spec = spec.savable();
        let lib = build(&spec)?;
        progress(&format!("{name}: keying"));
        let mut bench = RtlBench::new(&lib, &config, None)?;
        host::wait_for(&mut bench, "EMPTY", |s| {
            ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_EMPTY
        })?;
        let empty = bench.core().save()?;
        let key = Owner::fresh(&mut bench, seed)?;
        let snapshot = bench.core().save()?;
        let epochs = first_epochs(&config, FIRST_EPOCH);
        let (message, keys) = seal_load_key(
            &config,
            &key,
            b"bench",
            &epochs,
            &mut SeededEntropy::new(seed, "owner"),
        )?;
        let owner = Owner::load(&mut bench, &config, &message, keys)?;
        let mut channel = RecordedChannel::replay(owner.keys(), &[])?;
        // Every chunk, tag and node of the honest traffic is checked against the format.
        let oracle = Oracle::new(&config, owner.keys(), &epochs);
        bench.watch(&oracle);
        let mut rng = Rng::new(seed ^ 0x5e55);
        let scoreboards = config
            .regions()
            .iter()
            .map(|r| Scoreboard { used: used(r, &mut rng), plain: BTreeMap::new() })
            .collect();
        let mut s = Self {
            config,
            bench,
            owner,
            top: spec.sources.below_top().map_err(shef_rtl::Error::from)?.join("+"),
            empty,
            fresh: Fresh { snapshot: snapshot.clone(), key },
            closed: (snapshot.clone(), Vec::new()),
            snapshot,
            wire: Vec::new(),
            scoreboards,
            old: SparseMemory::new(),
            epoch: FIRST_EPOCH,
            seed,
        };
        let failed = |what: &str, e: BenchError| BenchError::File(format!("{name}: {what}: {e}"));
        for epoch in [FIRST_EPOCH, FIRST_EPOCH + 1] {
            s.epoch = epoch;
            s.config.epoch_regions().for_each(|r| oracle.epoch(r.id, epoch));
            s.round(&mut channel, &mut rng).map_err(|e| failed("honest traffic", e))?;
            s.evict_nodes(&mut channel, &mut rng).map_err(|e| failed("traffic elsewhere", e))?;
            if epoch == FIRST_EPOCH {
                s.old = s.bench.core().memory().clone();
            }
        }
        oracle.check()?;
        s.bench.core().axi_memories().iter_mut().for_each(shef_rtl::AxiMemory::clear_hooks);
        let page = channel.page0(&mut s.bench)?;
        if page.stopped || page.faults != 0 || page.refusals != 0 {
            return Err(BenchError::Refused {
                what: "honest traffic",
                status: host::ready(&mut s.bench)?,
            });
        }
        s.snapshot = s.bench.core().save()?;
        s.wire.clone_from(&channel.wire);
        channel.must(&mut s.bench, &ShieldRequest::close())?;
        host::wait_for(&mut s.bench, "CLOSED", |s| {
            ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_CLOSED
        })?;
        s.closed = (s.bench.core().save()?, channel.wire);
        Ok(s)
    }

    /// Writes new data to every region, from its proper side, then seals and checks it.
    fn round(&mut self, channel: &mut RecordedChannel, rng: &mut Rng) -> Result<()> {
        let regions = self.config.regions().to_vec();
        let first = self.epoch == FIRST_EPOCH;
        let mut ops = Vec::new();
        for r in &regions {
            if r.mode.has_epoch() && !first {
                channel.must(&mut self.bench, &ShieldRequest::epoch(r.id, self.epoch))?;
            }
            for c in self.scoreboards[usize::from(r.id)].used.clone() {
                let mut data = vec![0; r.chunk as usize];
                rng.fill(&mut data);
                let beats = u64::from(r.chunk) / 64;
                let before = self.scoreboards[usize::from(r.id)].plain.remove(&c);
                match r.mode {
                    Mode::Input => {
                        let p = self.sealed(r, c, &data);
                        place(&mut self.bench, r, c, &p);
                    }
                    Mode::Bypass if first => self.bench.mem_write(r.chunk_addr(c), &data),
                    // Not every chunk is written, and some have a gap at their end.
                    _ if if first {
                        r.mode != Mode::Output && rng.one_in(8)
                    } else {
                        r.mode == Mode::Output && rng.one_in(2)
                    } =>
                    {
                        continue;
                    }
                    Mode::Counted | Mode::Tree if !first && before.is_none() => continue,
                    _ => {
                        let gap = !first && rng.one_in(4);
                        let used = if gap { 1 + rng.below(beats) } else { beats } as usize * 64;
                        match before {
                            Some(b) if r.mode != Mode::Output => {
                                data[used..].copy_from_slice(&b[used..]);
                            }
                            _ => data[used..].fill(0),
                        }
                        let id = (c % 7) as u8;
                        ops.push(Op::Write {
                            id,
                            addr: r.chunk_addr(c),
                            data: data[..used].to_vec(),
                            strobes: Vec::new(),
                        });
                    }
                }
                self.scoreboards[usize::from(r.id)].plain.insert(c, data);
            }
        }
        self.all_okay(&ops)?;
        channel.must(&mut self.bench, &ShieldRequest::invalidate())?;
        let mut ops = Vec::new();
        for r in &regions {
            for (c, plain) in &self.scoreboards[usize::from(r.id)].plain {
                let p = piece(&self.bench, r, *c);
                if !self.holds(r, *c, &p, plain) {
                    return Err(BenchError::File(format!(
                        "region {} chunk {c} is not as sealed",
                        r.name
                    )));
                }
                ops.push((
                    Op::Read { id: (c % 5) as u8, addr: r.chunk_addr(*c), beats: r.chunk / 64 },
                    plain.clone(),
                ));
            }
        }
        let (ops, want): (Vec<Op>, Vec<Vec<u8>>) = ops.into_iter().unzip();
        let got = self.all_okay(&ops)?;
        if let Some(i) = (0..ops.len()).find(|i| got[*i] != want[*i]) {
            return Err(BenchError::Unequal(format!("{:?}", ops[i])));
        }
        channel.must(&mut self.bench, &ShieldRequest::invalidate())?;
        Ok(())
    }

    /// Writes chunks that are not used otherwise, to evict the nodes of those that are.
    fn evict_nodes(&mut self, channel: &mut RecordedChannel, rng: &mut Rng) -> Result<()> {
        let mut ops = Vec::new();
        for r in self.config.regions().iter().filter(|r| r.mode == Mode::Tree) {
            for stride in [8, 64, 512] {
                let mut left = 700;
                for c in (stride..r.chunks()).step_by(stride as usize) {
                    let near =
                        self.scoreboards[usize::from(r.id)].used.iter().any(|u| u / 8 == c / 8);
                    if near || left == 0 {
                        continue;
                    }
                    left -= 1;
                    let mut data = vec![0; 64];
                    rng.fill(&mut data);
                    ops.push(Op::Write {
                        id: 0,
                        addr: r.chunk_addr(c),
                        data: data.clone(),
                        strobes: Vec::new(),
                    });
                    let plain = self.scoreboards[usize::from(r.id)]
                        .plain
                        .entry(c)
                        .or_insert_with(|| vec![0; r.chunk as usize]);
                    plain[..64].copy_from_slice(&data);
                }
            }
        }
        if !ops.is_empty() {
            self.all_okay(&ops)?;
            channel.must(&mut self.bench, &ShieldRequest::invalidate())?;
        }
        Ok(())
    }

    fn all_okay(&mut self, ops: &[Op]) -> Result<Vec<Vec<u8>>> {
        let got = self.bench.burst(ops)?;
        match got.iter().position(|o| o.okay.contains(&false)) {
            Some(i) => Err(BenchError::File(format!("{:?} was refused", ops[i]))),
            None => Ok(got.into_iter().map(|o| o.data).collect()),
        }
    }

    /// The owner's keys of the session.
    pub fn keys(&self) -> &SessionKeys {
        self.owner.keys()
    }

    /// Seals a chunk in the current epoch.
    pub fn sealed(&self, r: &Region, chunk: u64, plain: &[u8]) -> Piece {
        let mut d = plain.to_vec();
        let tag = match self.keys().data_key(r.id) {
            Some(k) => ChunkCipher::new(r.id, k).seal(self.epoch, chunk, &mut d),
            None => [0; 16],
        };
        (d, tag)
    }

    /// Opens a chunk in the current epoch, as the owner does.
    pub fn open_chunk(&self, r: &Region, chunk: u64, p: &Piece) -> Option<Vec<u8>> {
        self.open_as(r, chunk, p, self.epoch)
    }

    fn open_as(&self, r: &Region, chunk: u64, p: &Piece, version: u64) -> Option<Vec<u8>> {
        let mut d = p.0.clone();
        let key = self.keys().data_key(r.id)?;
        ChunkCipher::new(r.id, key).open(version, chunk, &mut d, &p.1).then_some(d)
    }

    /// Whether a chunk in memory is this plaintext, sealed as its mode requires.
    pub fn holds(&self, r: &Region, chunk: u64, p: &Piece, plain: &[u8]) -> bool {
        match r.mode {
            Mode::Input | Mode::Output => self.open_chunk(r, chunk, p).is_some_and(|d| d == plain),
            Mode::Bypass => p.0 == plain,
            _ => (1..=VERSIONS).any(|v| self.open_as(r, chunk, p, v).is_some_and(|d| d == plain)),
        }
    }

    /// The parts of a chunk in memory, each with its address range.
    pub fn parts(r: &Region, chunk: u64) -> Vec<(Part, std::ops::Range<u64>)> {
        layout::parts(r).into_iter().map(|p| (p, layout::place(r, chunk, p))).collect()
    }
}
