//! Bytes per cycle through the Shield with every check on, beside the same requester on the same memory without one.
//!
//! Every byte is compared: a read with what was sealed, a write with what must lie in memory, ciphertext and tag. Keys come
//! by a Load Key. A read ends with its last beat; a write ends when the memory has answered for the last beat that the
//! Shield writes without being told to (what a buffer holds back counts). Commands (epoch, flush) are outside the figure.

use crate::bench::{Bench, BenchError, RtlBench, design};
use crate::traffic::Op;
use crate::{Owner, Result};
use serde::Serialize;
use shef_proto::channel::Request;
use shef_proto::config::{Config, Mode, Region};
use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;
use shef_rtl::{DesignSpec, build_with};
use shef_seal::ChunkCipher;
use std::fmt::Write as _;
use std::path::Path;

/// Chunk sizes that are measured with AES-256.
const CHUNKS: [u32; 5] = [64, 256, 512, 1024, 4096];
/// Chunk sizes that are measured with AES-128 too.
const CHUNKS_128: [u32; 3] = [64, 512, 4096];
/// Memory latencies in cycles.
const LATENCIES: [u64; 4] = [10, 40, 100, 200];
/// Latency where only one is measured.
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

/// What the requester does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Bursts of 4 KiB or 512 B, address after address, 32 KiB outstanding.
    SeqRead,
    /// The same, writing.
    SeqWrite,
    /// One beat at random places.
    RandomRead,
    /// The same, writing, every place once.
    RandomWrite,
}

impl Access {
    fn writes(self) -> bool {
        matches!(self, Self::SeqWrite | Self::RandomWrite)
    }

    fn random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }

    /// Name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SeqRead => "seq_read",
            Self::SeqWrite => "seq_write",
            Self::RandomRead => "random_read",
            Self::RandomWrite => "random_write",
        }
    }
}

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What the requester did.
    pub name: Access,
    /// Mode of the region.
    pub region_mode: &'static str,
    /// Bytes of a chunk.
    pub chunk: u32,
    /// AES key bits.
    pub key_bits: u16,
    /// AES lanes of the engine set.
    pub engines: u8,
    /// Cycles of the memory from a request to its first beat, and from the last beat of a write to its answer.
    pub memory_latency: u64,
    /// Bytes of a burst of the requester.
    pub burst: u64,
    /// Bursts that the requester keeps outstanding.
    pub outstanding: usize,
    /// Memory ports.
    pub ports: u8,
    /// Bytes that the requester read or wrote.
    pub bytes: u64,
    /// Of these, compared and right.
    pub verified_bytes: u64,
    /// Cycles through the Shield.
    pub cycles: u64,
    /// `bytes / cycles`.
    pub bytes_per_cycle: f64,
    /// Cycles without a Shield.
    pub bare_cycles: u64,
    /// Throughput through the Shield over that without: `bare_cycles / cycles`.
    pub ratio: f64,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    access: Access,
    mode: Mode,
    chunk: u32,
    key_bits: u16,
    latency: u64,
    burst: u64,
    outstanding: usize,
    bytes: u64,
}

fn region_name(mode: Mode, chunk: u32, key_bits: u16) -> String {
    format!("{}{chunk}_{key_bits}", if mode == Mode::Input { "in" } else { "out" })
}

/// `shield.toml` of the measured design with this many AES lanes.
fn shield_toml(lanes: u8) -> String {
    let mut out = format!("suite = 1\n[[set]]\nlanes = {lanes}\nbig_lines = 8\nsmall_lines = 32\nring_beats = 512\n");
    let mut base = 0;
    let outputs = CHUNKS.map(|c| (Mode::Output, c, 256));
    let inputs = CHUNKS.map(|c| (Mode::Input, c, 256)).into_iter();
    let short = CHUNKS_128.map(|c| (Mode::Input, c, 128)).into_iter().chain([(Mode::Output, 512, 128), (Mode::Output, 4096, 128)]);
    for (mode, chunk, key) in inputs.chain(outputs).chain(short) {
        let name = region_name(mode, chunk, key);
        let word = if mode == Mode::Input { "input" } else { "output" };
        let _ =
            write!(out, "[[region]]\nname = \"{name}\"\nmode = \"{word}\"\nbase = {base}\nsize = {SIZE}\nchunk = {chunk}\nkey = {key}\n");
        base += SIZE;
    }
    out
}

/// What is measured on the design with this many lanes.
fn plans(lanes: u8) -> Vec<Plan> {
    let whole = lanes == 4;
    let sequential = if whole { SIZE } else { SIZE / 4 };
    let latencies = if whole { LATENCIES.to_vec() } else { vec![USUAL] };
    let mut out = Vec::new();
    for latency in latencies {
        let plan = |access: Access, mode, chunk, key_bits, outstanding, bytes| {
            let burst = if access.random() { 64 } else { BURST };
            Plan { access, mode, chunk, key_bits, latency, burst, outstanding, bytes }
        };
        for chunk in CHUNKS {
            let bytes = if chunk == 64 { SIZE / 4 } else { sequential };
            out.push(plan(Access::SeqRead, Mode::Input, chunk, 256, STREAM, bytes));
            out.push(plan(Access::SeqWrite, Mode::Output, chunk, 256, STREAM, bytes));
            if whole && latency == USUAL {
                out.push(plan(Access::SeqRead, Mode::Output, chunk, 256, STREAM, bytes));
            }
        }
        if whole {
            for chunk in [512, 4096] {
                for (access, mode) in [(Access::SeqRead, Mode::Input), (Access::SeqWrite, Mode::Output)] {
                    out.push(Plan { burst: SHORT_BURST, ..plan(access, mode, chunk, 256, SHORT_STREAM, sequential) });
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
                out.push(plan(Access::SeqRead, Mode::Input, chunk, 128, STREAM, if chunk == 64 { SIZE / 4 } else { sequential }));
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
fn ops(access: Access, base: u64, (bytes, burst): (u64, u64), plain: &[u8], rng: &mut Rng) -> Vec<Op> {
    let places: Vec<u64> = match access {
        Access::SeqRead | Access::SeqWrite => (0..bytes / burst).collect(),
        Access::RandomRead => (0..bytes / burst).map(|_| rng.below(SIZE / burst)).collect(),
        Access::RandomWrite => {
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
            let (id, addr) = (if access.random() { i % 64 } else { 0 }, base + place * burst);
            if access.writes() {
                Op::Write { id, addr, data: slice(plain, place * burst, burst).to_vec(), strobes: Vec::new() }
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

/// Cycles that a list takes; reads are compared on the way, and their bytes counted.
fn timed(bench: &mut RtlBench, plan: &Plan, base: u64, list: &[Op], plain: &[u8]) -> Result<(u64, u64)> {
    let memory = bench.core().axi_memory();
    memory.config.read_latency = plan.latency;
    memory.config.write_latency = plan.latency;
    bench.master().outstanding = plan.outstanding;
    let start = bench.core().cycles();
    let got = bench.burst(list)?;
    let mut end = bench.core().cycles();
    if plan.access.writes() {
        let mut seen = bench.core().axi_memory().counters;
        for _ in 0..4 * plan.latency + 1000 {
            bench.core().step(1);
            let now = bench.core().axi_memory().counters;
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
                got.data == slice(plain, addr - base, u64::from(*beats) * 64)
            }
            _ => true,
        };
        if !okay || !same {
            return Err(BenchError::Unequal(format!("{plan:?}: {op:?} answered {}", if okay { "other bytes" } else { "an error" })));
        }
    }
    Ok((end - start, right))
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
        let tag = self
            .owner
            .keys()
            .data_key(r.id)
            .map_or([0; 16], |key| ChunkCipher::new(r.id, key).seal(self.epochs[usize::from(r.id)], chunk, &mut data));
        (data, tag)
    }

    /// One measurement: cycles and compared bytes.
    fn run(&mut self, plan: &Plan, list: &[Op], r: &Region, plain: &[u8]) -> Result<(u64, u64)> {
        let epoch = &mut self.epochs[usize::from(r.id)];
        *epoch += 1;
        self.owner.call(&mut self.bench, &Request::epoch(r.id, *epoch))?;
        match (plan.access.writes(), plan.mode) {
            (false, Mode::Input) => {
                for chunk in 0..r.chunks() {
                    let (data, tag) = self.sealed(r, chunk, plain);
                    self.bench.mem_write(r.chunk_addr(chunk), &data);
                    self.bench.mem_write(r.tag_addr(chunk), &tag);
                }
            }
            // What is read was written through the Shield before.
            (false, _) => {
                let writes = ops(Access::SeqWrite, r.base, (SIZE, BURST), plain, &mut Rng::new(0));
                timed(&mut self.bench, &Plan { access: Access::SeqWrite, outstanding: STREAM, ..*plan }, r.base, &writes, plain)?;
                self.owner.call(&mut self.bench, &Request::invalidate())?;
            }
            (true, _) => {}
        }
        let (cycles, mut right) = timed(&mut self.bench, plan, r.base, list, plain)?;
        if plan.access.writes() {
            self.owner.call(&mut self.bench, &Request::flush())?;
            right += self.compare(r, list, plain)?;
        }
        Ok((cycles, right))
    }

    /// Ciphertext and tag of every chunk that a list wrote.
    fn compare(&self, r: &Region, list: &[Op], plain: &[u8]) -> Result<u64> {
        let size = u64::from(r.chunk);
        let mut right = 0;
        for op in list {
            let Op::Write { addr, data, .. } = op else { continue };
            for chunk in (addr - r.base) / size..(addr - r.base + data.len() as u64) / size {
                let want = self.sealed(r, chunk, plain);
                let mut got = (vec![0; r.chunk as usize], [0; 16]);
                self.bench.mem_read(r.chunk_addr(chunk), &mut got.0);
                self.bench.mem_read(r.tag_addr(chunk), &mut got.1);
                if got != want {
                    return Err(BenchError::Unequal(format!("region {}, chunk {chunk} is not as sealed", r.name)));
                }
                right += size;
            }
        }
        Ok(right)
    }
}

/// Measures everything whose description (`x4 seq_read input 4096 AES-256 latency 40 outstanding 8 x 4096`) holds every one of
/// `words`; `progress` gets one line per step.
///
/// # Errors
/// A build that fails, a refusal, a byte that is not what it ought to be.
pub fn measure(dir: &Path, words: &[String], progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let bare = DesignSpec::new("loop").source("sim/rtl/tests/loop.sv").fast();
    let bare = build_with(&bare, progress)?;
    let mut rows = Vec::new();
    for lanes in [4, 2, 1] {
        let say = |p: &Plan| {
            format!(
                "x{lanes} {} {} {} AES-{} latency {} outstanding {} x {}",
                p.access.name(),
                mode_name(p.mode),
                p.chunk,
                p.key_bits,
                p.latency,
                p.outstanding,
                p.burst
            )
        };
        // The seed is a row's place among all rows: it does not depend on `words`.
        let plans: Vec<(u64, Plan)> = (1..).zip(plans(lanes)).filter(|(_, p)| words.iter().all(|w| say(p).contains(w.as_str()))).collect();
        if plans.is_empty() {
            continue;
        }
        let (spec, config) = design(&shield_toml(lanes), &dir.join(format!("x{lanes}")))?;
        progress(&format!("engine set with {lanes} lanes"));
        let mut bench = RtlBench::new(&build_with(&spec.fast(), progress)?, None)?;
        let owner = Owner::open(&mut bench, &config, &first_epochs(&config, 1), u64::from(lanes))?;
        let epochs = vec![1; config.regions().len()];
        let mut shielded = Shielded { bench, owner, config, epochs };
        let mut wires = RtlBench::new(&bare, None)?;
        for (seed, plan) in &plans {
            let name = region_name(plan.mode, plan.chunk, plan.key_bits);
            let r = shielded.config.regions().iter().find(|r| r.name == name).cloned();
            let r = r.ok_or_else(|| BenchError::File(format!("no region {name}")))?;
            let mut rng = Rng::new(*seed);
            let mut plain = vec![0; usize::try_from(SIZE).unwrap_or_default()];
            rng.fill(&mut plain);
            let list = ops(plan.access, r.base, (plan.bytes, plan.burst), &plain, &mut rng);
            let (cycles, verified_bytes) = shielded.run(plan, &list, &r, &plain)?;
            let bare_cycles = without(&mut wires, plan, &r, &list, &plain)?;
            let row = Row {
                name: plan.access,
                region_mode: mode_name(plan.mode),
                chunk: plan.chunk,
                key_bits: plan.key_bits,
                engines: lanes,
                memory_latency: plan.latency,
                burst: plan.burst,
                outstanding: plan.outstanding,
                ports: 1,
                bytes: plan.bytes,
                verified_bytes,
                cycles,
                bytes_per_cycle: plan.bytes as f64 / cycles as f64,
                bare_cycles,
                ratio: bare_cycles as f64 / cycles as f64,
            };
            progress(&format!("{}: {:.2} B/cycle, bare {:.2}", say(plan), row.bytes_per_cycle, plan.bytes as f64 / bare_cycles as f64));
            rows.push(row);
        }
        let statement = shielded.owner.statement(&mut shielded.bench)?;
        let s = statement.shield();
        if s.stopped || s.faults != 0 || s.refusals != 0 {
            return Err(BenchError::Unequal(format!("the statement tells of faults or refusals: {s:?}")));
        }
    }
    Ok(rows)
}

fn mode_name(mode: Mode) -> &'static str {
    if mode == Mode::Input { "input" } else { "output" }
}

/// The same list without a Shield.
fn without(wires: &mut RtlBench, plan: &Plan, r: &Region, list: &[Op], plain: &[u8]) -> Result<u64> {
    let blank = vec![0; plain.len()];
    wires.mem_write(r.base, if plan.access.writes() { &blank } else { plain });
    let (cycles, _) = timed(wires, plan, r.base, list, plain)?;
    for op in list {
        if let Op::Write { addr, data, .. } = op {
            let mut got = vec![0; data.len()];
            wires.mem_read(*addr, &mut got);
            if got != *data {
                return Err(BenchError::Unequal(format!("without a Shield, {addr:#x} is not as written")));
            }
        }
    }
    Ok(cycles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_plan_has_its_region_and_stays_in_it() {
        for lanes in [4, 2, 1] {
            let config = shef_gen::shield::parse(&shield_toml(lanes)).expect("shield.toml").config;
            for p in plans(lanes) {
                let name = region_name(p.mode, p.chunk, p.key_bits);
                let r = config.regions().iter().find(|r| r.name == name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!((r.mode, r.chunk, r.size), (p.mode, p.chunk, SIZE), "{name}");
                assert!(p.bytes >= 1 << 16 && p.bytes <= SIZE && p.bytes % BURST == 0, "{p:?}");
            }
        }
    }

    #[test]
    fn lists_move_what_they_say() {
        let mut plain = vec![0; usize::try_from(SIZE).unwrap()];
        Rng::new(1).fill(&mut plain);
        use Access::{RandomRead, RandomWrite, SeqRead, SeqWrite};
        for (access, burst) in [(SeqRead, 4096), (SeqRead, 512), (SeqWrite, 512), (RandomRead, 64), (RandomWrite, 64)] {
            let list = ops(access, SIZE, (1 << 16, burst), &plain, &mut Rng::new(2));
            let mut places = BTreeSet::new();
            let mut bytes = 0;
            for op in &list {
                let (addr, n) = match op {
                    Op::Read { addr, beats, .. } => (*addr, u64::from(*beats) * 64),
                    Op::Write { addr, data, .. } => {
                        assert_eq!(data, slice(&plain, addr - SIZE, data.len() as u64));
                        (*addr, data.len() as u64)
                    }
                    Op::Wrap { .. } => panic!("{access:?}"),
                };
                assert!(addr >= SIZE && addr + n <= 2 * SIZE && addr / 4096 == (addr + n - 1) / 4096, "{access:?} {addr:#x}");
                bytes += n;
                places.insert(addr);
            }
            assert_eq!(bytes, 1 << 16, "{access:?}");
            // Writes and streams: every place once.
            assert!(access == Access::RandomRead || places.len() == list.len(), "{access:?}");
        }
    }
}
