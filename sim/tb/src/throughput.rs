//! Bytes per cycle through the Shield with every check enabled, compared with the same requester on
//! the same memory without a Shield.
//!
//! Every byte is compared: a read with the sealed plaintext, a write with the expected memory
//! contents, ciphertext and tag. A Load Key delivers the keys. A read ends with its last beat; a
//! write ends when memory has answered the last beat that the Shield writes without a command
//! (bytes that a buffer holds back count). Commands (epoch, flush) are outside the figure.

use crate::bench::{self, Bench, RtlBench};
use crate::traffic::Op;
use crate::{BenchError, Owner, Result};
use serde::Serialize;
use shef_proto::channel::ShieldRequest;
use shef_proto::config::{Config, Mode, Region};
use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;
use shef_rtl::{DesignSpec, build_with};
use shef_seal::ChunkCipher;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// Chunk sizes that are measured with AES-256.
const CHUNKS: [u32; 5] = [64, 256, 512, 1024, 4096];
/// Chunk sizes that are also measured with AES-128.
const CHUNKS_128: [u32; 3] = [64, 512, 4096];
/// Memory latencies in cycles.
const LATENCIES: [u64; 4] = [10, 40, 100, 200];
/// Latency of rows with a single latency.
const USUAL: u64 = 40;
/// Bytes of a region.
const SIZE: u64 = 1 << 20;
/// Bytes of a sequential burst.
const BURST: u64 = 4096;
/// Bursts of [`BURST`] outstanding: 32 KiB.
const STREAM: usize = 8;
/// Bytes of a short sequential burst.
const SHORT_BURST: u64 = 512;
/// Bursts of [`SHORT_BURST`] outstanding: 32 KiB too.
const SHORT_STREAM: usize = 64;
/// Bytes of a measurement with one beat outstanding.
const FEW: u64 = 1 << 16;
/// Distance of strided accesses in bytes: the next page, and the next beat in it.
const STRIDE: u64 = 4096 + 64;

/// The requester's access pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Bursts of 4 KiB or 512 B, address after address, 32 KiB outstanding.
    SeqRead,
    /// The same, writing.
    SeqWrite,
    /// Single beats at random addresses.
    RandomRead,
    /// The same, writing, each address once.
    RandomWrite,
    /// Single beats, each [`STRIDE`] bytes behind the one before.
    StridedRead,
    /// `SeqRead` in one engine set and `SeqWrite` in another at once.
    Copy,
    /// Reads and writes as in `Copy`, in every engine set at once.
    Mixed,
}

impl Access {
    /// Where the next burst is.
    fn order(self) -> Order {
        match self {
            Self::RandomRead | Self::RandomWrite => Order::Random,
            Self::StridedRead => Order::Strided,
            Self::SeqRead | Self::SeqWrite | Self::Copy | Self::Mixed => Order::Sequential,
        }
    }

    /// Name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SeqRead => "seq_read",
            Self::SeqWrite => "seq_write",
            Self::RandomRead => "random_read",
            Self::RandomWrite => "random_write",
            Self::StridedRead => "strided_read",
            Self::Copy => "copy",
            Self::Mixed => "mixed",
        }
    }
}

/// Order of a requester's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Sequential,
    Random,
    Strided,
}

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The requester's access pattern.
    pub name: Access,
    /// Mode of the region.
    pub region_mode: &'static str,
    /// Bytes of a chunk.
    pub chunk: u32,
    /// AES key bits.
    pub key_bits: u16,
    /// AES lanes of an engine set.
    pub engines: u8,
    /// Engine sets.
    pub sets: u8,
    /// Cycles of the memory from a request to its first beat, and from the last beat of a write to
    /// its answer.
    pub memory_latency: u64,
    /// Bytes of a burst of the requester.
    pub burst: u64,
    /// Bursts that the requester keeps outstanding, reads and writes separately.
    pub outstanding: usize,
    /// Memory ports.
    pub ports: u8,
    /// Bytes that the requester read or wrote.
    pub bytes: u64,
    /// Bytes that were compared and are correct.
    pub verified_bytes: u64,
    /// Cycles through the Shield.
    pub cycles: u64,
    /// `bytes / cycles`.
    pub bytes_per_cycle: f64,
    /// Cycles without a Shield.
    pub bare_cycles: u64,
    /// Throughput with the Shield relative to that without: `bare_cycles / cycles`.
    pub ratio: f64,
}

/// A region that takes part in a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    writes: bool,
    mode: Mode,
    chunk: u32,
    key_bits: u16,
    set: u8,
}

impl Part {
    fn region(self) -> String {
        format!("{}{}_{}_{}", self.mode.name(), self.chunk, self.key_bits, self.set)
    }
}

#[derive(Debug, Clone)]
struct Plan {
    access: Access,
    parts: Vec<Part>,
    latency: u64,
    burst: u64,
    outstanding: usize,
    /// Bytes of each part.
    bytes: u64,
}

impl Plan {
    fn modes(&self) -> &'static str {
        let modes: BTreeSet<&str> = self.parts.iter().map(|p| p.mode.name()).collect();
        if modes.len() == 1 { self.parts[0].mode.name() } else { "input+output" }
    }
}

/// A measured Shield.
struct Design {
    name: String,
    lanes: u8,
    /// Lines of each set for large and for small chunks, unless the defaults.
    lines: Option<(u16, u16)>,
    sets: u8,
    /// Accelerator port of each set; its memory port is its number.
    acc: &'static [u8],
    plans: Vec<Plan>,
}

impl Design {
    /// Every region that a plan names, once, in sequence.
    fn regions(&self) -> Vec<Part> {
        let mut all: Vec<Part> = Vec::new();
        for p in self.plans.iter().flat_map(|p| &p.parts) {
            if !all.iter().any(|q| q.region() == p.region()) {
                all.push(*p);
            }
        }
        all
    }

    fn shield_toml(&self) -> String {
        let mut out = format!("suite = 1\n[memory]\nports = {}\n", self.sets);
        for acc in self.acc {
            let _ = write!(out, "[[set]]\nlanes = {}\nacc = {acc}\n", self.lanes);
            if let Some((big, small)) = self.lines {
                let _ = write!(out, "big_lines = {big}\nsmall_lines = {small}\n");
            }
        }
        for (i, r) in (0u64..).zip(self.regions()) {
            let (name, mode, base) = (r.region(), r.mode.name(), i * SIZE);
            let Part { chunk, key_bits, set, .. } = r;
            let _ = write!(
                out,
                "[[region]]\nname = \"{name}\"\nmode = \"{mode}\"\nbase = {base}\nsize = {SIZE}\nchunk = {chunk}\n"
            );
            let _ = write!(out, "key = {key_bits}\nset = {set}\nport = {set}\n");
        }
        out
    }
}

/// The measured designs.
fn designs() -> Vec<Design> {
    let set = |name: &str, lanes, plans| Design {
        name: name.to_owned(),
        lanes,
        lines: None,
        sets: 1,
        acc: &[0],
        plans,
    };
    let one = |name, lanes| set(name, lanes, plans(lanes));
    let copy = |read: u8, write: u8, chunk| {
        let part = |writes, mode, set| Part { writes, mode, chunk, key_bits: 256, set };
        [part(false, Mode::Input, read), part(true, Mode::Output, write)]
    };
    let stream = |access, parts: Vec<Part>, latency| Plan {
        access,
        parts,
        latency,
        burst: BURST,
        outstanding: STREAM,
        bytes: SIZE,
    };
    let mut two = Vec::new();
    for latency in LATENCIES {
        for chunk in CHUNKS {
            two.push(stream(Access::Copy, copy(0, 1, chunk).to_vec(), latency));
        }
    }
    let four = LATENCIES
        .map(|l| stream(Access::Mixed, [copy(0, 1, 4096), copy(2, 3, 4096)].concat(), l))
        .to_vec();
    vec![
        one("x4", 4),
        one("x2", 2),
        one("x1", 1),
        set(
            "x4 kept",
            4,
            [kept(Mode::Counted, &CHUNKS), kept(Mode::Bypass, &[512, 4096])].concat(),
        ),
        set("x4 tree", 4, kept(Mode::Tree, &CHUNKS)),
        Design { sets: 2, acc: &[0, 0], ..set("two sets", 4, two) },
        Design { sets: 4, acc: &[0, 1, 2, 3], ..set("four sets", 4, four) },
    ]
}

/// Lines of a set for large and for small chunks that [`sweep`] measures.
pub const SWEPT_LINES: [(u16, u16); 3] = [(4, 8), (8, 32), (16, 48)];

/// A point of [`sweep`]: chunk size, lanes and lines of an engine set, and a pattern of reads.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// Lines for large chunks.
    pub big_lines: u16,
    /// Lines for chunks of up to 512 bytes.
    pub small_lines: u16,
    /// What was measured.
    #[serde(flatten)]
    pub row: Row,
}

/// Reads of an `input` region in a stream, with a stride and at random, for each chunk size, number of
/// lanes and of lines. The document has them in this order.
///
/// # Errors
/// As [`measure`].
pub fn sweep(dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    for lanes in [4, 2, 1] {
        for (big_lines, small_lines) in SWEPT_LINES {
            let mut plans = Vec::new();
            for chunk in CHUNKS {
                for access in [Access::SeqRead, Access::StridedRead, Access::RandomRead] {
                    let part =
                        Part { writes: false, mode: Mode::Input, chunk, key_bits: 256, set: 0 };
                    let stream = access == Access::SeqRead;
                    plans.push(Plan {
                        access,
                        parts: vec![part],
                        latency: USUAL,
                        burst: if stream { BURST } else { 64 },
                        outstanding: if stream { STREAM } else { 32 },
                        bytes: if stream { SIZE / 4 } else { FEW },
                    });
                }
            }
            let design = Design {
                name: format!("sweep x{lanes} {big_lines} {small_lines}"),
                lanes,
                lines: Some((big_lines, small_lines)),
                sets: 1,
                acc: &[0],
                plans,
            };
            let rows = design.measure(dir, &[], progress)?;
            points.extend(rows.into_iter().map(|row| Point { big_lines, small_lines, row }));
        }
    }
    Ok(points)
}

/// Streams, and single chunks at random addresses, in regions of a mode that keeps versions on the
/// card.
fn kept(mode: Mode, chunks: &[u32]) -> Vec<Plan> {
    let mut out = Vec::new();
    for latency in LATENCIES {
        let plan = |access: Access, chunk, burst, outstanding, bytes| {
            let writes = matches!(access, Access::SeqWrite | Access::RandomWrite);
            Plan {
                access,
                parts: vec![Part { writes, mode, chunk, key_bits: 256, set: 0 }],
                latency,
                burst,
                outstanding,
                bytes,
            }
        };
        for &chunk in chunks {
            let bytes = if chunk == 64 { SIZE / 4 } else { SIZE };
            out.push(plan(Access::SeqRead, chunk, BURST, STREAM, bytes));
            out.push(plan(Access::SeqWrite, chunk, BURST, STREAM, bytes));
        }
        for &chunk in chunks.iter().filter(|c| [64, 4096].contains(*c)) {
            for outstanding in if chunk == 64 { [1, 16, 32] } else { [1, 4, 8] } {
                let bytes = if outstanding == 1 { FEW } else { SIZE / 4 };
                out.push(plan(Access::RandomRead, chunk, u64::from(chunk), outstanding, bytes));
                out.push(plan(Access::RandomWrite, chunk, u64::from(chunk), outstanding, bytes));
            }
        }
    }
    out
}

/// The measurements with one set of this many lanes.
fn plans(lanes: u8) -> Vec<Plan> {
    let whole = lanes == 4;
    let sequential = if whole { SIZE } else { SIZE / 4 };
    let latencies = if whole { LATENCIES.to_vec() } else { vec![USUAL] };
    let mut out = Vec::new();
    for latency in latencies {
        let plan = |access: Access, mode, chunk, key_bits, outstanding, bytes| {
            let burst = if access.order() == Order::Sequential { BURST } else { 64 };
            let writes = matches!(access, Access::SeqWrite | Access::RandomWrite);
            Plan {
                access,
                parts: vec![Part { writes, mode, chunk, key_bits, set: 0 }],
                latency,
                burst,
                outstanding,
                bytes,
            }
        };
        for chunk in CHUNKS {
            let bytes = if chunk == 64 { SIZE / 4 } else { sequential };
            out.push(plan(Access::SeqRead, Mode::Input, chunk, 256, STREAM, bytes));
            out.push(plan(Access::SeqWrite, Mode::Output, chunk, 256, STREAM, bytes));
            if whole && latency == USUAL {
                out.push(plan(Access::SeqRead, Mode::Output, chunk, 256, STREAM, bytes));
            }
            let part = |writes, mode| Part { writes, mode, chunk, key_bits: 256, set: 0 };
            let parts = vec![part(false, Mode::Input), part(true, Mode::Output)];
            out.push(Plan {
                access: Access::Mixed,
                parts,
                latency,
                burst: BURST,
                outstanding: STREAM,
                bytes: SIZE / 4,
            });
        }
        if whole {
            for chunk in [512, 4096] {
                for (access, mode) in
                    [(Access::SeqRead, Mode::Input), (Access::SeqWrite, Mode::Output)]
                {
                    out.push(Plan {
                        burst: SHORT_BURST,
                        ..plan(access, mode, chunk, 256, SHORT_STREAM, sequential)
                    });
                }
            }
        }
        for outstanding in [1, 16, 32] {
            let bytes = if outstanding == 1 { FEW } else { SIZE / 4 };
            out.push(plan(Access::RandomRead, Mode::Input, 64, 256, outstanding, bytes));
            out.push(plan(Access::RandomWrite, Mode::Output, 64, 256, outstanding, bytes));
        }
        if whole && latency == USUAL {
            for chunk in CHUNKS_128 {
                out.push(plan(
                    Access::SeqRead,
                    Mode::Input,
                    chunk,
                    128,
                    STREAM,
                    if chunk == 64 { SIZE / 4 } else { sequential },
                ));
            }
            for chunk in [512, 4096] {
                out.push(plan(Access::SeqWrite, Mode::Output, chunk, 128, STREAM, sequential));
            }
            for outstanding in [1, 16, 32] {
                let bytes = if outstanding == 1 { FEW } else { SIZE / 4 };
                out.push(plan(Access::RandomRead, Mode::Input, 64, 128, outstanding, bytes));
            }
        }
    }
    out
}

/// The requester's list on `base`; `plain` is the content of the region.
fn ops(
    order: Order,
    writes: bool,
    base: u64,
    (bytes, burst): (u64, u64),
    plain: &[u8],
    rng: &mut Rng,
) -> Vec<Op> {
    let places: Vec<u64> = match (order, writes) {
        (Order::Sequential, _) => (0..bytes / burst).collect(),
        (Order::Strided, _) => {
            (0..bytes / burst).map(|i| i * (STRIDE / burst) % (SIZE / burst)).collect()
        }
        (Order::Random, false) => (0..bytes / burst).map(|_| rng.below(SIZE / burst)).collect(),
        (Order::Random, true) => {
            let mut all: Vec<u64> = (0..SIZE / burst).collect();
            for i in (1..all.len()).rev() {
                let other = usize::try_from(rng.below(i as u64 + 1)).unwrap_or(i);
                all.swap(i, other);
            }
            all.truncate(usize::try_from(bytes / burst).unwrap_or(usize::MAX));
            all
        }
    };
    (0u8..=255)
        .cycle()
        .zip(places)
        .map(|(i, place)| {
            let id = if order == Order::Sequential { 0 } else { i % 64 };
            let addr = base + place * burst;
            if writes {
                Op::Write {
                    id,
                    addr,
                    data: slice(plain, place * burst, burst).to_vec(),
                    strobes: Vec::new(),
                }
            } else {
                Op::Read { id, addr, beats: u32::try_from(burst / 64).unwrap_or(u32::MAX) }
            }
        })
        .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a region is 1 MiB")]
fn slice(plain: &[u8], at: u64, n: u64) -> &[u8] {
    &plain[at as usize..(at + n) as usize]
}

/// Cycles that a list takes; reads are compared at the same time, and their bytes counted. Every
/// region is a multiple of [`SIZE`] away from the first and contains `plain`.
fn timed(bench: &mut RtlBench, plan: &Plan, list: &[Op], plain: &[u8]) -> Result<(u64, u64)> {
    for memory in bench.core().axi_memories() {
        memory.config.read_latency = plan.latency;
        memory.config.write_latency = plan.latency;
    }
    bench.master().set_outstanding(plan.outstanding);
    let start = bench.core().cycles();
    let got = bench.burst(list)?;
    let mut end = bench.core().cycles();
    if list.iter().any(|o| matches!(o, Op::Write { .. })) {
        let mut seen = bench.core().counters();
        for _ in 0..4 * plan.latency + 1000 {
            bench.core().step(1);
            let now = bench.core().counters();
            if now != seen {
                (seen, end) = (now, bench.core().cycles());
            }
        }
    }
    let mut right = 0;
    for (op, got) in list.iter().zip(&got) {
        let okay = got.okay.iter().all(|o| *o);
        let same = match op {
            Op::Read { addr, beats, .. } => {
                right += u64::from(*beats) * 64;
                got.data == slice(plain, addr % SIZE, u64::from(*beats) * 64)
            }
            _ => true,
        };
        if !okay || !same {
            return Err(BenchError::Unequal(format!(
                "{plan:?}: {op:?} answered {}",
                if okay { "other bytes" } else { "an error" }
            )));
        }
    }
    Ok((end - start, right))
}

/// The lists of all parts, one burst of each in turn.
fn all_ops(plan: &Plan, config: &Config, plain: &[u8], rng: &mut Rng) -> Result<Vec<Op>> {
    let mut lists = Vec::new();
    for part in &plan.parts {
        let r = region(config, *part)?;
        lists.push(
            ops(plan.access.order(), part.writes, r.base, (plan.bytes, plan.burst), plain, rng)
                .into_iter(),
        );
    }
    let mut out = Vec::new();
    loop {
        let before = out.len();
        out.extend(lists.iter_mut().filter_map(Iterator::next));
        if out.len() == before {
            return Ok(out);
        }
    }
}

fn region(config: &Config, part: Part) -> Result<Region> {
    let name = part.region();
    config
        .regions()
        .iter()
        .find(|r| r.name == name)
        .cloned()
        .ok_or_else(|| BenchError::File(format!("no region {name}")))
}

struct Shielded {
    bench: RtlBench,
    owner: Owner,
    config: Config,
    epochs: Vec<u64>,
}

impl Shielded {
    fn sealed(&self, r: &Region, chunk: u64, plain: &[u8]) -> (Vec<u8>, [u8; 16]) {
        let size = u64::from(r.chunk);
        let mut data = slice(plain, chunk * size, size).to_vec();
        let tag = self.owner.keys().data_key(r.id).map_or([0; 16], |key| {
            ChunkCipher::new(r.id, key).seal(self.epochs[usize::from(r.id)], chunk, &mut data)
        });
        (data, tag)
    }

    /// One measurement: cycles and compared bytes.
    fn run(&mut self, plan: &Plan, list: &[Op], plain: &[u8]) -> Result<(u64, u64)> {
        for part in &plan.parts {
            let r = region(&self.config, *part)?;
            if matches!(part.mode, Mode::Input | Mode::Output) {
                let epoch = &mut self.epochs[usize::from(r.id)];
                *epoch += 1;
                self.owner.call(&mut self.bench, &ShieldRequest::epoch(r.id, *epoch))?;
            }
            match (part.writes, part.mode) {
                (false, Mode::Bypass) => self.bench.mem_write(r.base, plain),
                (false, Mode::Input) => {
                    for chunk in 0..r.chunks() {
                        let (data, tag) = self.sealed(&r, chunk, plain);
                        self.bench.mem_write(r.chunk_addr(chunk), &data);
                        self.bench.mem_write(r.tag_addr(chunk), &tag);
                    }
                }
                // Reads need data that was written through the Shield before.
                (false, _) => {
                    let writes = ops(
                        Order::Sequential,
                        true,
                        r.base,
                        (SIZE, BURST),
                        plain,
                        &mut Rng::new(0),
                    );
                    timed(
                        &mut self.bench,
                        &Plan { outstanding: STREAM, ..plan.clone() },
                        &writes,
                        plain,
                    )?;
                    self.owner.call(&mut self.bench, &ShieldRequest::invalidate())?;
                }
                (true, _) => {}
            }
        }
        let (cycles, mut right) = timed(&mut self.bench, plan, list, plain)?;
        if plan.parts.iter().any(|p| p.writes) {
            self.owner.call(&mut self.bench, &ShieldRequest::invalidate())?;
            right += self.compare(list, plain)?;
        }
        Ok((cycles, right))
    }

    /// Compares everything that a list wrote: ciphertext and tag if the owner can compute them;
    /// else the data that the Shield reads back, or memory itself if the region is not sealed.
    fn compare(&mut self, list: &[Op], plain: &[u8]) -> Result<u64> {
        let mut right = 0;
        for op in list {
            let Op::Write { addr, data, .. } = op else { continue };
            let Some(r) =
                self.config.regions().iter().find(|r| (r.base..r.base + r.size).contains(addr))
            else {
                continue;
            };
            let same = match r.mode {
                Mode::Counted | Mode::Tree => {
                    let beats = u32::try_from(data.len() / 64).unwrap_or(u32::MAX);
                    let got = self.bench.burst(&[Op::Read { id: 0, addr: *addr, beats }])?;
                    got[0].data == *data && got[0].okay.iter().all(|o| *o)
                }
                Mode::Bypass => {
                    let mut got = vec![0; data.len()];
                    self.bench.mem_read(*addr, &mut got);
                    got == *data
                }
                _ => {
                    let size = u64::from(r.chunk);
                    ((addr - r.base) / size..(addr - r.base + data.len() as u64) / size).all(
                        |chunk| {
                            let mut got = (vec![0; r.chunk as usize], [0; 16]);
                            self.bench.mem_read(r.chunk_addr(chunk), &mut got.0);
                            self.bench.mem_read(r.tag_addr(chunk), &mut got.1);
                            got == self.sealed(r, chunk, plain)
                        },
                    )
                }
            };
            if !same {
                return Err(BenchError::Unequal(format!(
                    "region {}: what was written to {addr:#x} is not there",
                    r.name
                )));
            }
            right += data.len() as u64;
        }
        Ok(right)
    }
}

/// Measures everything whose description (`x4 seq_read input 4096 AES-256 latency 40 outstanding 8
/// x 4096`) contains all of `words`; `progress` gets one line per step.
///
/// # Errors
/// A failed build, a refusal, or a wrong byte.
pub fn measure(dir: &Path, words: &[String], progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for design in designs() {
        rows.extend(design.measure(dir, words, progress)?);
    }
    Ok(rows)
}

impl Design {
    /// The rows of this design.
    fn measure(
        &self,
        dir: &Path,
        words: &[String],
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let say = |p: &Plan| {
            let Part { chunk, key_bits, .. } = p.parts[0];
            let (name, access, modes) = (&self.name, p.access.name(), p.modes());
            format!(
                "{name} {access} {modes} {chunk} AES-{key_bits} latency {} outstanding {} x {}",
                p.latency, p.outstanding, p.burst
            )
        };
        // The seed is a row's index among all rows of the design: it does not depend on `words`.
        let plans: Vec<(u64, &Plan)> = (1..)
            .zip(&self.plans)
            .filter(|(_, p)| words.iter().all(|w| say(p).contains(w.as_str())))
            .collect();
        if plans.is_empty() {
            return Ok(Vec::new());
        }
        let (spec, config) =
            bench::design(&self.shield_toml(), &dir.join(self.name.replace(' ', "-")))?;
        progress(&format!("{}: {} engine set(s) with {} lanes", self.name, self.sets, self.lanes));
        let mut bench = RtlBench::new(&build_with(&spec.fast(), progress)?, &config, None)?;
        let owner =
            Owner::open(&mut bench, &config, &first_epochs(&config, 1), u64::from(self.lanes))?;
        let epochs = vec![1; config.regions().len()];
        let bare = DesignSpec::new("loop")
            .source("sim/rtl/tests/loop.sv")
            .param("N", config.accelerator_ports())
            .fast();
        let mut wires = RtlBench::new(&build_with(&bare, progress)?, &config, None)?;
        let mut shielded = Shielded { bench, owner, config, epochs };
        for (seed, plan) in plans {
            let mut rng = Rng::new(seed);
            let mut plain = vec![0; usize::try_from(SIZE).unwrap_or_default()];
            rng.fill(&mut plain);
            let list = all_ops(plan, &shielded.config, &plain, &mut rng)?;
            let (cycles, verified_bytes) = shielded.run(plan, &list, &plain)?;
            let bare_cycles = without(&mut wires, plan, &shielded.config, &list, &plain)?;
            let bytes = plan.bytes * plan.parts.len() as u64;
            let row = Row {
                name: plan.access,
                region_mode: plan.modes(),
                chunk: plan.parts[0].chunk,
                key_bits: plan.parts[0].key_bits,
                engines: self.lanes,
                sets: self.sets,
                memory_latency: plan.latency,
                burst: plan.burst,
                outstanding: plan.outstanding,
                ports: self.sets,
                bytes,
                verified_bytes,
                cycles,
                bytes_per_cycle: bytes as f64 / cycles as f64,
                bare_cycles,
                ratio: bare_cycles as f64 / cycles as f64,
            };
            progress(&format!(
                "{}: {:.2} B/cycle, bare {:.2}",
                say(plan),
                row.bytes_per_cycle,
                bytes as f64 / bare_cycles as f64
            ));
            rows.push(row);
        }
        let statement = shielded.owner.statement(&mut shielded.bench)?;
        let s = statement.shield();
        if s.stopped || s.faults != 0 || s.refusals != 0 {
            return Err(BenchError::Unequal(format!(
                "the statement tells of faults or refusals: {s:?}"
            )));
        }
        Ok(rows)
    }
}

/// The same list without a Shield.
fn without(
    wires: &mut RtlBench,
    plan: &Plan,
    config: &Config,
    list: &[Op],
    plain: &[u8],
) -> Result<u64> {
    let blank = vec![0; plain.len()];
    for part in &plan.parts {
        wires.mem_write(region(config, *part)?.base, if part.writes { &blank } else { plain });
    }
    let (cycles, _) = timed(wires, plan, list, plain)?;
    for op in list {
        if let Op::Write { addr, data, .. } = op {
            let mut got = vec![0; data.len()];
            wires.mem_read(*addr, &mut got);
            if got != *data {
                return Err(BenchError::Unequal(format!(
                    "without a Shield, {addr:#x} is not as written"
                )));
            }
        }
    }
    Ok(cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_has_its_regions_and_stays_in_them() {
        for design in designs() {
            let config =
                shef_gen::shield::parse(&design.shield_toml()).expect("shield.toml").config;
            assert_eq!(
                (config.sets().len(), design.acc.len()),
                (usize::from(design.sets), usize::from(design.sets)),
                "{}",
                design.name
            );
            for p in &design.plans {
                for part in &p.parts {
                    let r =
                        region(&config, *part).unwrap_or_else(|e| panic!("{}: {e}", design.name));
                    assert_eq!(
                        (r.mode, r.chunk, r.size, r.set, r.base % SIZE),
                        (part.mode, part.chunk, SIZE, part.set, 0),
                        "{}",
                        r.name
                    );
                }
                assert!(p.bytes >= 1 << 16 && p.bytes <= SIZE && p.bytes % BURST == 0, "{p:?}");
            }
        }
    }

    #[test]
    fn lists_move_what_they_say() {
        let mut plain = vec![0; usize::try_from(SIZE).unwrap()];
        Rng::new(1).fill(&mut plain);
        for (order, writes, burst) in [
            (Order::Sequential, false, 4096),
            (Order::Sequential, false, 512),
            (Order::Sequential, true, 512),
            (Order::Strided, false, 64),
            (Order::Random, false, 64),
            (Order::Random, true, 64),
        ] {
            let list = ops(order, writes, SIZE, (1 << 16, burst), &plain, &mut Rng::new(2));
            let mut places = BTreeSet::new();
            let mut bytes = 0;
            for op in &list {
                let (addr, n) = match op {
                    Op::Read { addr, beats, .. } => (*addr, u64::from(*beats) * 64),
                    Op::Write { addr, data, .. } => {
                        assert_eq!(data, slice(&plain, addr - SIZE, data.len() as u64));
                        (*addr, data.len() as u64)
                    }
                    Op::Wrap { .. } => panic!("{op:?}"),
                };
                assert!(
                    addr >= SIZE && addr + n <= 2 * SIZE && addr / 4096 == (addr + n - 1) / 4096,
                    "{addr:#x}"
                );
                assert_eq!(matches!(op, Op::Write { .. }), writes);
                bytes += n;
                places.insert(addr);
            }
            assert_eq!(bytes, 1 << 16);
            // Writes and streams: each address once.
            let again = order == Order::Random && !writes;
            assert!(again || places.len() == list.len(), "{order:?} {writes}");
        }
    }
}
