//! A keyed Shield at a quiet moment, and what everybody around it knows.

use super::ground::{self, Part};
use super::talk::{Exchange, Talk};
use crate::bench::{Bench, BenchError, RtlBench, design};
use crate::owner::Owner;
use crate::traffic::Op;
use crate::{Result, host};
use shef_model::SparseMemory;
use shef_proto::channel::Request;
use shef_proto::config::{Config, Mode, Region};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{SessionKeys, first_epochs, seal_load_key};
use shef_regs::ctl;
use shef_rtl::agent::Rng;
use shef_rtl::{CoreSnapshot, build};
use shef_seal::ChunkCipher;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Regions with at most so many chunks are used whole, of larger ones runs of eight.
const WHOLE: u64 = 64;
/// Runs that are used of a large region.
const RUNS: u64 = 8;
/// Versions that the bench looks through for the one a scratch chunk is sealed under.
const VERSIONS: u64 = 64;

/// A Shield that has shown its public key and waits for its Load Key.
pub struct Fresh {
    /// Its state.
    pub snapshot: CoreSnapshot,
    /// Its key.
    pub key: PublicKey,
}

/// What the bench knows of a region.
#[derive(Default)]
pub struct Book {
    /// Chunks that traffic goes to.
    pub used: Vec<u64>,
    /// What they hold. Of an `output` region those that were sealed in this epoch, of scratch those
    /// that were ever written.
    pub plain: BTreeMap<u64, Vec<u8>>,
}

/// One configuration, keyed.
pub struct Session {
    /// What the hardware was made for.
    pub config: Config,
    /// The Shield with the bench in place of accelerator, host and kernel.
    pub bench: RtlBench,
    /// The modules that the simulation top is a bench for.
    pub top: String,
    /// After reset, before the first seed.
    pub empty: CoreSnapshot,
    /// Before the Load Key.
    pub fresh: Fresh,
    /// After the owner has closed the session, and the owner's talk until then.
    pub closed: (CoreSnapshot, Vec<Exchange>),
    owner: Owner,
    /// The quiet moment that attempts start from.
    pub snapshot: CoreSnapshot,
    /// The owner's talk until then.
    pub wire: Vec<Exchange>,
    /// By region.
    pub books: Vec<Book>,
    /// Memory as it was when everything was sealed the time before.
    pub old: SparseMemory,
    /// Present epoch of every region that has one.
    pub epoch: u64,
    /// Seed of keys.
    pub seed: u64,
}

/// How a design is built.
#[derive(Debug, Clone, Copy, Default)]
pub struct Make {
    /// Waves can be written.
    pub waves: bool,
    /// Compiled for a short run.
    pub quick: bool,
    /// Coverage is counted, of named points too.
    pub coverage: bool,
}

/// Ciphertext and tag of a chunk.
pub type Piece = (Vec<u8>, [u8; 16]);

/// A chunk as memory has it.
pub fn piece(bench: &RtlBench, r: &Region, chunk: u64) -> Piece {
    let (mut d, mut t) = (vec![0; r.chunk as usize], [0; 16]);
    bench.mem_read(r.chunk_addr(chunk), &mut d);
    bench.mem_read(r.tag_addr(chunk), &mut t);
    (d, t)
}

/// Places a chunk in memory.
pub fn place(bench: &mut RtlBench, r: &Region, chunk: u64, p: &Piece) {
    bench.mem_write(r.chunk_addr(chunk), &p.0);
    bench.mem_write(r.tag_addr(chunk), &p.1);
}

/// The chunks of a region that traffic goes to.
fn used(r: &Region, rng: &mut Rng) -> Vec<u64> {
    if r.chunks() <= WHOLE {
        return (0..r.chunks()).collect();
    }
    let mut runs: BTreeSet<u64> = [0, r.chunks() / 8 - 1].into();
    while (runs.len() as u64) < RUNS {
        runs.insert(rng.below(r.chunks() / 8));
    }
    runs.iter().flat_map(|run| 8 * run..8 * run + 8).collect()
}

impl Session {
    /// Builds the configuration's Shield, keys it by a Load Key, runs two rounds of honest traffic
    /// and keeps that state.
    pub fn open(name: &str, toml: &str, dir: &Path, seed: u64, make: Make, progress: &dyn Fn(&str)) -> Result<Self> {
        let (spec, config) = design(toml, &dir.join(name))?;
        let spec = if make.waves { spec.trace() } else { spec };
        let spec = if make.quick { spec } else { spec.fast() };
        let spec = if make.coverage { spec.source("sim/tb/cover/shef_cover.sv").coverage() } else { spec };
        progress(&format!("{name}: building"));
        let spec = spec.savable();
        let lib = build(&spec)?;
        progress(&format!("{name}: keying"));
        let mut bench = RtlBench::new(&lib, &config, None)?;
        host::wait_for(&mut bench, "EMPTY", |s| ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_EMPTY)?;
        let empty = bench.core().save()?;
        let key = Owner::fresh(&mut bench, seed)?;
        let snapshot = bench.core().save()?;
        let (message, keys) = seal_load_key(&config, &key, b"bench", &first_epochs(&config, 1), &mut SeededEntropy::new(seed, "owner"))?;
        let owner = Owner::load(&mut bench, &config, &message, keys)?;
        let mut talk = Talk::again(owner.keys(), &[])?;
        let mut rng = Rng::new(seed ^ 0x5e55);
        let books = config.regions().iter().map(|r| Book { used: used(r, &mut rng), plain: BTreeMap::new() }).collect();
        let mut s = Self {
            config,
            bench,
            owner,
            top: spec.below_top()?.join("+"),
            empty,
            fresh: Fresh { snapshot: snapshot.clone(), key },
            closed: (snapshot.clone(), Vec::new()),
            snapshot,
            wire: Vec::new(),
            books,
            old: SparseMemory::new(),
            epoch: 1,
            seed,
        };
        let failed = |what: &str, e: BenchError| BenchError::File(format!("{name}: {what}: {e}"));
        for round in [1, 2] {
            s.epoch = round;
            s.round(&mut talk, &mut rng).map_err(|e| failed("honest traffic", e))?;
            s.look_away(&mut talk, &mut rng).map_err(|e| failed("traffic elsewhere", e))?;
            if round == 1 {
                s.old = s.bench.core().memory().clone();
            }
        }
        let page = talk.page0(&mut s.bench)?;
        if page.stopped || page.faults != 0 || page.refusals != 0 {
            return Err(BenchError::Refused { what: "honest traffic", status: host::ready(&mut s.bench)? });
        }
        s.snapshot = s.bench.core().save()?;
        s.wire.clone_from(&talk.wire);
        talk.must(&mut s.bench, &Request::close())?;
        host::wait_for(&mut s.bench, "CLOSED", |s| ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_CLOSED)?;
        s.closed = (s.bench.core().save()?, talk.wire);
        Ok(s)
    }

    /// New content everywhere, written by whom it belongs to, sealed, and looked at.
    fn round(&mut self, talk: &mut Talk, rng: &mut Rng) -> Result<()> {
        let regions = self.config.regions().to_vec();
        let first = self.epoch == 1;
        let mut ops = Vec::new();
        for r in &regions {
            if r.mode.has_epoch() && !first {
                talk.must(&mut self.bench, &Request::epoch(r.id, self.epoch))?;
            }
            for c in self.books[usize::from(r.id)].used.clone() {
                let mut data = vec![0; r.chunk as usize];
                rng.fill(&mut data);
                let beats = u64::from(r.chunk) / 64;
                let before = self.books[usize::from(r.id)].plain.remove(&c);
                match r.mode {
                    Mode::Input => {
                        let p = self.sealed(r, c, &data);
                        place(&mut self.bench, r, c, &p);
                    }
                    Mode::Bypass if first => self.bench.mem_write(r.chunk_addr(c), &data),
                    // Not every chunk is written; some have a gap at their end.
                    _ if if first { r.mode != Mode::Output && rng.one_in(8) } else { r.mode == Mode::Output && rng.one_in(2) } => continue,
                    Mode::Counted | Mode::Tree if !first && before.is_none() => continue,
                    _ => {
                        let gap = !first && rng.one_in(4);
                        let used = if gap { 1 + rng.below(beats) } else { beats } as usize * 64;
                        match before {
                            Some(b) if r.mode != Mode::Output => data[used..].copy_from_slice(&b[used..]),
                            _ => data[used..].fill(0),
                        }
                        let id = (c % 7) as u8;
                        ops.push(Op::Write { id, addr: r.chunk_addr(c), data: data[..used].to_vec(), strobes: Vec::new() });
                    }
                }
                self.books[usize::from(r.id)].plain.insert(c, data);
            }
        }
        self.all_okay(&ops)?;
        talk.must(&mut self.bench, &Request::invalidate())?;
        let mut ops = Vec::new();
        for r in &regions {
            for (c, plain) in &self.books[usize::from(r.id)].plain {
                let p = piece(&self.bench, r, *c);
                if !self.holds(r, *c, &p, plain) {
                    return Err(BenchError::File(format!("region {} chunk {c} is not as sealed", r.name)));
                }
                ops.push((Op::Read { id: (c % 5) as u8, addr: r.chunk_addr(*c), beats: r.chunk / 64 }, plain.clone()));
            }
        }
        let (ops, want): (Vec<Op>, Vec<Vec<u8>>) = ops.into_iter().unzip();
        let got = self.all_okay(&ops)?;
        if let Some(i) = (0..ops.len()).find(|i| got[*i] != want[*i]) {
            return Err(BenchError::Unequal(format!("{:?}", ops[i])));
        }
        talk.must(&mut self.bench, &Request::invalidate())?;
        Ok(())
    }

    /// Writes chunks that nothing else uses, so that nodes of those that are used have left the
    /// Shield.
    fn look_away(&mut self, talk: &mut Talk, rng: &mut Rng) -> Result<()> {
        let mut ops = Vec::new();
        for r in self.config.regions().iter().filter(|r| r.mode == Mode::Tree) {
            for stride in [8, 64, 512] {
                let mut left = 700;
                for c in (stride..r.chunks()).step_by(stride as usize) {
                    let near = self.books[usize::from(r.id)].used.iter().any(|u| u / 8 == c / 8);
                    if near || left == 0 {
                        continue;
                    }
                    left -= 1;
                    let mut data = vec![0; 64];
                    rng.fill(&mut data);
                    ops.push(Op::Write { id: 0, addr: r.chunk_addr(c), data: data.clone(), strobes: Vec::new() });
                    let plain = self.books[usize::from(r.id)].plain.entry(c).or_insert_with(|| vec![0; r.chunk as usize]);
                    plain[..64].copy_from_slice(&data);
                }
            }
        }
        if !ops.is_empty() {
            self.all_okay(&ops)?;
            talk.must(&mut self.bench, &Request::invalidate())?;
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

    /// Keys of the session, as the owner has them.
    pub fn keys(&self) -> &SessionKeys {
        self.owner.keys()
    }

    /// A chunk sealed in the present epoch.
    pub fn sealed(&self, r: &Region, chunk: u64, plain: &[u8]) -> Piece {
        let mut d = plain.to_vec();
        let tag = match self.keys().data_key(r.id) {
            Some(k) => ChunkCipher::new(r.id, k).seal(self.epoch, chunk, &mut d),
            None => [0; 16],
        };
        (d, tag)
    }

    /// What the owner gets out of a chunk in the present epoch.
    pub fn open_chunk(&self, r: &Region, chunk: u64, p: &Piece) -> Option<Vec<u8>> {
        self.open_as(r, chunk, p, self.epoch)
    }

    fn open_as(&self, r: &Region, chunk: u64, p: &Piece, version: u64) -> Option<Vec<u8>> {
        let mut d = p.0.clone();
        let key = self.keys().data_key(r.id)?;
        ChunkCipher::new(r.id, key).open(version, chunk, &mut d, &p.1).then_some(d)
    }

    /// Whether a chunk in memory is this plaintext, sealed as its mode wants it.
    pub fn holds(&self, r: &Region, chunk: u64, p: &Piece, plain: &[u8]) -> bool {
        match r.mode {
            Mode::Input | Mode::Output => self.open_chunk(r, chunk, p).is_some_and(|d| d == plain),
            Mode::Bypass => p.0 == plain,
            _ => (1..=VERSIONS).any(|v| self.open_as(r, chunk, p, v).is_some_and(|d| d == plain)),
        }
    }

    /// The parts of a chunk that lie in memory, each with its place.
    pub fn parts(r: &Region, chunk: u64) -> Vec<(Part, std::ops::Range<u64>)> {
        ground::parts(r).into_iter().map(|p| (p, ground::place(r, chunk, p))).collect()
    }
}
