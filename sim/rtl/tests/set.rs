//! The engine set matches a plain reference under random traffic with random timing, a hostile
//! memory and commands, and reaches its speed.

mod clocked;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use clocked::Clocked;
use shef_rtl::agent::Rng;
use shef_rtl::{
    Agent, AxiBurst, AxiDone, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Hostile,
    Library, Port, Sim, build_once, cycle,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Input,
    Output,
    Counted,
    Tree,
    Bypass,
}

/// As in tests/sv/shef_set_tb.sv.
#[derive(Clone, Copy, Debug)]
struct Region {
    id: u8,
    mode: Mode,
    base: u64,
    size: u64,
    tags: u64,
    chunk: u64,
    bits: u32,
}

const fn region(
    id: u8,
    mode: Mode,
    base: u64,
    size: u64,
    tags: u64,
    chunk: u64,
    bits: u32,
) -> Region {
    Region { id, mode, base, size, tags, chunk, bits }
}

const PLACES: usize = 14;
const REGIONS: [Region; PLACES] = [
    region(0, Mode::Input, 0x00_0000, 0x10_0000, 0x800_0000, 4096, 256),
    region(1, Mode::Input, 0x10_0000, 0x10_0000, 0x801_0000, 512, 128),
    region(2, Mode::Output, 0x20_0000, 0x10_0000, 0x802_0000, 512, 256),
    region(3, Mode::Output, 0x30_0000, 0x10_0000, 0x803_0000, 4096, 256),
    region(4, Mode::Input, 0x40_0000, 0x1_0000, 0x804_0000, 64, 256),
    region(7, Mode::Output, 0x50_0000, 0x1_0000, 0x805_0000, 64, 128),
    region(5, Mode::Counted, 0x110_0000, 0x10_0000, 0x806_0000, 512, 256),
    region(6, Mode::Counted, 0x120_0000, 0x1_0000, 0x807_0000, 64, 128),
    region(8, Mode::Counted, 0x130_0000, 0x10_0000, 0x808_0000, 4096, 256),
    region(10, Mode::Bypass, 0x140_0000, 0x10_0000, 0, 512, 256),
    region(11, Mode::Bypass, 0x150_0000, 0x10_0000, 0, 4096, 256),
    region(9, Mode::Tree, 0x160_0000, 0x10_0000, 0x809_0000, 512, 256),
    region(12, Mode::Tree, 0x170_0000, 0x10_0000, 0x80b_0000, 4096, 128),
    region(13, Mode::Tree, 0x1000_0000, 0x800_0000, 0x2000_0000, 64, 256),
];

const FAULT_TAG: u64 = 1;
const FAULT_BUS: u64 = 2;
const FAULT_TIMEOUT: u64 = 3;
const FAULT_PROTOCOL: u64 = 4;
const FAULT_NODE: u64 = 5;
const REFUSE_RANGE: u64 = 1;
const REFUSE_BURST: u64 = 2;
const REFUSE_READ_ONLY: u64 = 3;
const REFUSE_SECOND_WRITE: u64 = 4;
const REFUSE_EPOCH_ZERO: u64 = 5;
const REFUSE_EXHAUSTED: u64 = 6;
const REFUSE_NOT_KEYED: u64 = 7;
const REFUSE_NOT_WRITTEN: u64 = 8;
const REFUSE_CUT_OFF: u64 = 9;
const FLUSH: u64 = 0;
const INVALIDATE: u64 = 1;
const EPOCH: u64 = 2;

fn key_of(id: u8) -> [u8; 32] {
    std::array::from_fn(|i| (i as u8).wrapping_mul(7) ^ id.wrapping_mul(31) ^ 0x5a)
}

fn iv(r: &Region, epoch: u64, index: u64) -> [u8; 12] {
    let mut v = [0; 12];
    v[0] = r.id;
    v[1..7].copy_from_slice(&epoch.to_be_bytes()[2..]);
    v[7..].copy_from_slice(&index.to_be_bytes()[3..]);
    v
}

/// Seals a chunk in place; returns the tag.
fn seal(r: &Region, epoch: u64, index: u64, data: &mut [u8]) -> [u8; 16] {
    let nonce = iv(r, epoch, index).into();
    let key = key_of(r.id);
    if r.bits == 256 {
        Aes256Gcm::new(&key.into()).encrypt_inout_detached(&nonce, &[], data.into()).unwrap().into()
    } else {
        let k: [u8; 16] = key[..16].try_into().unwrap();
        Aes128Gcm::new(&k.into()).encrypt_inout_detached(&nonce, &[], data.into()).unwrap().into()
    }
}

fn open(r: &Region, epoch: u64, index: u64, data: &mut [u8], tag: [u8; 16]) -> bool {
    let nonce = iv(r, epoch, index).into();
    let key = key_of(r.id);
    if r.bits == 256 {
        Aes256Gcm::new(&key.into())
            .decrypt_inout_detached(&nonce, &[], data.into(), &tag.into())
            .is_ok()
    } else {
        let k: [u8; 16] = key[..16].try_into().unwrap();
        Aes128Gcm::new(&k.into())
            .decrypt_inout_detached(&nonce, &[], data.into(), &tag.into())
            .is_ok()
    }
}

/// Records faults, refusals and the end of commands.
struct Monitor {
    fault: [Port; 5],
    refusal: [Port; 4],
    done: [Port; 2],
    faults: Vec<(u64, u64, u64, u64)>,
    refusals: Vec<(u64, u64, u64)>,
    commands: Vec<u64>,
}

impl Monitor {
    fn new(s: &Sim) -> Self {
        let p = |n: &str| s.port(n).unwrap();
        Self {
            fault: ["fault_valid", "fault_kind", "fault_region", "fault_chunk", "fault_version"]
                .map(p),
            refusal: ["refusal_valid", "refusal_kind", "refusal_region", "refusal_addr"].map(p),
            done: ["cmd_done", "cmd_err"].map(p),
            faults: Vec::new(),
            refusals: Vec::new(),
            commands: Vec::new(),
        }
    }
}

impl Agent for Monitor {
    fn sample(&mut self, s: &Sim) {
        if s.get(self.fault[0]) != 0 {
            let [_, k, r, c, v] = self.fault.map(|p| s.get(p));
            self.faults.push((k, r, c, v));
        }
        if s.get(self.refusal[0]) != 0 {
            let [_, k, r, a] = self.refusal.map(|p| s.get(p));
            self.refusals.push((k, r, a));
        }
        if s.get(self.done[0]) != 0 {
            self.commands.push(s.get(self.done[1]));
        }
    }
    fn drive(&mut self, _: &mut Sim) {}
}

fn library(lanes: u32) -> &'static Library {
    let spec = DesignSpec::new("shef_set_tb")
        .source("sim/rtl/tests/sv/shef_set_tb.sv")
        .search("shell-rtl/rtl")
        .param("Lanes", lanes)
        .param("KeyLimitLog2", if lanes == 1 { 15 } else { 48 })
        .param("CountW", if lanes == 1 { 4 } else { 36 })
        .param("NodeSets", 8)
        .param("FreezeRegion", u32::from(lanes == 2));
    build_once(&spec).expect("shef_set builds")
}

struct Bench {
    s: Sim,
    mem: AxiMemory,
    acc: AxiMaster,
    mon: Monitor,
    /// Plain contents of every chunk of an input region, by (place, index).
    plain: BTreeMap<(usize, u64), Vec<u8>>,
    epochs: [u64; PLACES],
}

impl Clocked for Bench {
    fn sim(&mut self) -> &mut Sim {
        &mut self.s
    }

    fn cycle(&mut self) {
        cycle(&mut self.s, &mut [&mut self.acc, &mut self.mem, &mut self.mon]);
    }

    fn ended(&self) -> usize {
        self.mon.commands.len()
    }
}

impl Bench {
    fn with(lanes: u32, config: AxiMemoryConfig, stalls: Option<u64>) -> Self {
        let mut s = Sim::new(library(lanes)).unwrap();
        s.reset("rst_n", 4);
        let mem = AxiMemory::new(&s, "mem0_", config).unwrap();
        let acc = AxiMaster::new(&s, "acc_", stalls).unwrap();
        let mon = Monitor::new(&s);
        let mut b = Self { s, mem, acc, mon, plain: BTreeMap::new(), epochs: [0; PLACES] };
        b.wipe();
        b
    }

    fn new(lanes: u32, config: AxiMemoryConfig, stalls: Option<u64>) -> Self {
        let mut b = Self::with(lanes, config, stalls);
        b.load(5);
        b
    }

    fn wipe(&mut self) {
        self.s.poke("enable", 0);
        self.s.poke("wipe", 1);
        self.until("no wipe_done", 40_000, |b| b.s.peek("wipe_done") == 1);
        self.s.poke("wipe", 0);
        self.until("no idle", 20_000, |b| b.s.peek("idle") == 1);
    }

    /// Loads keys and epochs, and enables the set.
    fn load(&mut self, epoch: u64) {
        for (i, r) in REGIONS.iter().enumerate() {
            self.epochs[i] = epoch + i as u64;
            self.s.poke("epoch_region", r.id.into());
            self.s.poke("epoch", self.epochs[i]);
            self.s.poke("epoch_we", 1);
            self.cycle();
            self.s.poke("epoch_we", 0);
            for node in 0..=u64::from(r.mode == Mode::Tree) {
                let mut key = key_of(r.id);
                key[0] ^= 0xff * node as u8;
                self.s.poke("key_region", r.id.into());
                self.s.poke("key_node", node);
                self.s.poke_be("key", &key);
                self.s.poke("key_valid", 1);
                self.until("no key_ready", 5000, |b| b.s.peek("key_ready") == 1);
                self.cycle();
                self.s.poke("key_valid", 0);
            }
        }
        self.until("key not stored", 5000, |b| b.s.peek("key_ready") == 1);
        self.s.poke("enable", 1);
        self.cycle();
    }

    /// Fills chunks `from..to` of an input region with random bytes, sealed.
    fn fill(&mut self, place: usize, from: u64, to: u64, rng: &mut Rng) {
        let r = REGIONS[place];
        for i in from..to {
            let mut d = vec![0; r.chunk as usize];
            rng.fill(&mut d);
            self.plain.insert((place, i), d.clone());
            let tag = seal(&r, self.epochs[place], i, &mut d);
            self.mem.memory.write(r.base + i * r.chunk, &d);
            self.mem.memory.write(r.tags + 16 * i, &tag);
        }
    }

    /// A sealed chunk in memory, opened.
    fn chunk(&self, place: usize, index: u64) -> Option<Vec<u8>> {
        let r = REGIONS[place];
        let (mut d, tag) = self.stored(place, index);
        open(&r, self.epochs[place], index, &mut d, tag).then_some(d)
    }

    /// A chunk and its tag in memory.
    fn stored(&self, place: usize, index: u64) -> (Vec<u8>, [u8; 16]) {
        let r = REGIONS[place];
        let mut d = vec![0; r.chunk as usize];
        let mut tag = [0; 16];
        self.mem.memory.read(r.base + index * r.chunk, &mut d);
        self.mem.memory.read(r.tags + 16 * index, &mut tag);
        (d, tag)
    }

    /// The version of a chunk in memory, and its plaintext.
    fn versioned(&self, place: usize, index: u64) -> Option<(u64, Vec<u8>)> {
        (1..100).find_map(|v| {
            let (mut d, tag) = self.stored(place, index);
            open(&REGIONS[place], v, index, &mut d, tag).then_some((v, d))
        })
    }

    fn finish(&mut self, limit: u64) -> Vec<AxiDone> {
        self.until("bursts not answered", limit, |b| b.acc.idle());
        std::iter::from_fn(|| self.acc.pop()).collect()
    }

    fn command(&mut self, cmd: u64, region: u8, epoch: u64) -> bool {
        self.give(&[("cmd", cmd), ("cmd_region", region.into()), ("cmd_epoch", epoch)]);
        self.mon.commands.last() == Some(&0)
    }

    fn written(&mut self, place: usize) -> BTreeSet<u64> {
        let r = REGIONS[place];
        let mut set = BTreeSet::new();
        for w in 0..(r.size / r.chunk).div_ceil(32) {
            self.s.poke("map_region", r.id.into());
            self.s.poke("map_word", w);
            self.cycle();
            self.cycle();
            let bits = self.s.peek("map_bits");
            set.extend((0..32).filter(|k| bits >> k & 1 == 1).map(|k| 32 * w + k));
        }
        self.s.poke("stat_region", r.id.into());
        self.s.eval();
        assert_eq!(self.s.peek("stat_written"), set.len() as u64);
        assert_eq!(self.s.peek("stat_epoch"), self.epochs[place]);
        set
    }

    fn clean(&self) {
        assert_eq!((self.mem.violations(), self.acc.violations()), (&[][..], &[][..]));
        assert_eq!(self.mon.faults, []);
    }
}

fn no_wait(latency: u64) -> AxiMemoryConfig {
    AxiMemoryConfig::bench(latency, latency)
}

#[test]
fn a_chunk_is_read_and_a_chunk_is_written() {
    let mut b = Bench::new(4, no_wait(40), None);
    let mut rng = Rng::new(1);
    for place in [0, 1, 4] {
        let r = REGIONS[place];
        b.fill(place, 0, 8, &mut rng);
        b.acc.read(r.base + 3 * r.chunk, (r.chunk / 64) as u32);
        let d = b.finish(4000).remove(0);
        assert!(d.okay(), "region {place}: {:?} {:?}", d.resp, b.mon.faults);
        assert_eq!(d.data, b.plain[&(place, 3)]);
    }
    for place in [2, 3, 5] {
        let r = REGIONS[place];
        let mut d = vec![0; r.chunk as usize];
        rng.fill(&mut d);
        b.acc.write(r.base + 5 * r.chunk, &d);
        assert!(b.finish(4000)[0].okay());
        assert!(b.command(FLUSH, 0, 0));
        assert_eq!(b.chunk(place, 5).as_ref(), Some(&d), "region {place}");
        assert_eq!(b.written(place), BTreeSet::from([5]));
    }
    b.clean();
}

/// The expected outcome of a burst.
enum Want {
    /// Bytes per beat and the lanes that count.
    Read(Vec<(Option<[u8; 64]>, u64)>),
    Write(bool),
}

/// Reference of the output regions: bytes by (place, chunk), with marks; `closed` chunks accept no
/// more writes.
#[derive(Default)]
struct Reference {
    bytes: BTreeMap<(usize, u64), (Vec<u8>, Vec<bool>)>,
    closed: BTreeSet<(usize, u64)>,
}

impl Reference {
    /// A write in program order; returns whether it is answered OKAY.
    fn write(&mut self, place: usize, addr: u64, data: &[u8], strobes: &[u64]) -> bool {
        let r = REGIONS[place];
        let mut okay = true;
        let mut here = BTreeSet::new();
        for (k, beat) in data.chunks(64).enumerate() {
            let at = (addr & !63) - r.base + 64 * k as u64;
            let key = (place, at / r.chunk);
            here.insert(key);
            if self.closed.contains(&key) {
                okay = false;
                continue;
            }
            let (bytes, marks) = self
                .bytes
                .entry(key)
                .or_insert_with(|| (vec![0; r.chunk as usize], vec![false; r.chunk as usize]));
            for i in (0..64).filter(|i| strobes[k] >> i & 1 == 1) {
                bytes[(at % r.chunk) as usize + i] = beat[i];
                marks[(at % r.chunk) as usize + i] = true;
            }
        }
        for key in here {
            if self.bytes.get(&key).is_some_and(|(_, m)| m.iter().all(|m| *m)) {
                self.closed.insert(key);
            }
        }
        okay
    }

    fn flush(&mut self) {
        self.closed.extend(self.bytes.keys().copied());
    }
}

/// Lanes of beat `k` of a burst.
fn lanes(addr: u64, size: u32, k: u64) -> (u64, u64) {
    let bytes = 1u64 << size;
    let start = (addr & !(bytes - 1)) + k * bytes;
    let from = if k == 0 { addr } else { start };
    let mask = (from..start + bytes).fold(0, |m, a| m | 1 << (a & 63));
    (start & !63, mask)
}

fn random_read(rng: &mut Rng, r: &Region, limit: u64) -> AxiOp {
    let size = if rng.one_in(4) { rng.below(7) as u32 } else { 6 };
    let page = r.base + rng.below(limit / 4096) * 4096;
    let mut addr = page + rng.below(4096);
    if size == 6 && !rng.one_in(4) {
        addr &= !63;
    }
    let room = (page + 4096 - (addr & !((1 << size) - 1))) >> size;
    let beats = 1 + rng.below(room.min(256)) as u32;
    let beats = if rng.one_in(3) { beats } else { beats.min(1 + rng.below(9) as u32) };
    let id = rng.below(4) as u8;
    if size == 6 {
        AxiOp::Read { id, addr, beats }
    } else {
        AxiOp::odd(id, AxiBurst { write: false, addr, beats, size: size as u8, burst: 1 })
    }
}

fn shape(op: &AxiOp) -> (u64, u32, u64) {
    match op {
        AxiOp::Read { addr, beats, .. } => (*addr, 6, u64::from(*beats)),
        AxiOp::Odd { burst, .. } => (burst.addr, u32::from(burst.size), u64::from(burst.beats)),
        AxiOp::Write { .. } => unreachable!(),
    }
}

fn check(done: Vec<AxiDone>, wants: &BTreeMap<u64, Want>, seed: u64) {
    assert_eq!(done.len(), wants.len());
    for d in done {
        match &wants[&d.tag] {
            Want::Write(okay) => {
                assert_eq!(d.okay(), *okay, "seed {seed}: {:x?}", (d.start, d.end, d.resp));
            }
            Want::Read(beats) => {
                for (k, (want, lanes)) in beats.iter().enumerate() {
                    let got = &d.data[64 * k..64 * k + 64];
                    match want {
                        None => assert!(
                            d.resp[k] == 2 && got.iter().all(|b| *b == 0),
                            "seed {seed}: {:?} beat {k} not refused",
                            d.op
                        ),
                        Some(w) => {
                            assert_eq!(d.resp[k], 0, "seed {seed}: {:?} beat {k}", d.op);
                            for i in (0..64).filter(|i| lanes >> i & 1 == 1) {
                                assert_eq!(
                                    got[i], w[i],
                                    "seed {seed}: {:?} beat {k} byte {i}",
                                    d.op
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

fn random_traffic(seed: u64, engine_lanes: u32) {
    let mut rng = Rng::new(seed);
    let mut b = Bench::new(engine_lanes, AxiMemoryConfig::seeded(seed), Some(seed + 1000));
    let limit = 0x4000;
    for place in [0, 1, 4] {
        b.fill(place, 0, limit / REGIONS[place].chunk, &mut rng);
    }
    let mut reference = Reference::default();
    for round in 0..4 {
        let mut wants = BTreeMap::new();
        // chunks that do not change in this round may be read concurrently
        let still = reference.closed.clone();
        let mut refusals = 0;
        for _ in 0..150 {
            let place = rng.below(6) as usize;
            let r = REGIONS[place];
            if r.mode == Mode::Input || (round > 0 && rng.one_in(4)) {
                let op = random_read(&mut rng, &r, limit);
                let (addr, size, n) = shape(&op);
                let mut beats = Vec::new();
                let mut skip = false;
                for k in 0..n {
                    let (at, mask) = lanes(addr, size, k);
                    let (chunk, off) =
                        ((at - r.base) / r.chunk, ((at - r.base) % r.chunk) as usize);
                    let from = if r.mode == Mode::Input {
                        b.plain.get(&(place, chunk))
                    } else if still.contains(&(place, chunk)) {
                        reference.bytes.get(&(place, chunk)).map(|x| &x.0)
                    } else {
                        skip = true;
                        None
                    };
                    beats.push((from.map(|f| f[off..off + 64].try_into().unwrap()), mask));
                }
                if !skip {
                    wants.insert(b.acc.push(op), Want::Read(beats));
                }
            } else {
                // one chunk is open at a time in each region, so that none is closed for lack of
                // space
                let open = (0..limit / r.chunk).find(|c| {
                    reference.bytes.contains_key(&(place, *c))
                        && !reference.closed.contains(&(place, *c))
                });
                let chunk = open.unwrap_or_else(|| rng.below(limit / r.chunk));
                let at = r.base + chunk * r.chunk;
                let per = r.chunk / 64;
                let (first, n) = match rng.below(3) {
                    0 => (0, per),
                    _ => {
                        let f = rng.below(per);
                        (f, 1 + rng.below(per - f))
                    }
                };
                let mut data = vec![0; 64 * n as usize];
                rng.fill(&mut data);
                let strobes: Vec<u64> = (0..n)
                    .map(|_| if rng.one_in(3) { rng.next_u64() & rng.next_u64() } else { u64::MAX })
                    .collect();
                let addr = at + 64 * first;
                let okay = reference.write(place, addr, &data, &strobes);
                refusals += usize::from(!okay);
                let op = AxiOp::Write { id: rng.below(4) as u8, addr, data, strobes };
                wants.insert(b.acc.push(op), Want::Write(okay));
            }
        }
        let before = b.mon.refusals.len();
        let done = b.finish(200_000);
        for _ in 0..16 {
            b.cycle();
        }
        check(done, &wants, seed);
        let told = &b.mon.refusals[before..];
        assert!(
            told.len() == refusals && told.iter().all(|r| r.0 == REFUSE_SECOND_WRITE),
            "seed {seed}: {told:?} {refusals}"
        );
        // written data can be read back, on chip or not
        for pass in 0..2 {
            let mut wants = BTreeMap::new();
            for ((place, chunk), (bytes, _)) in &reference.bytes {
                let r = REGIONS[*place];
                let n = r.chunk / 64;
                let beats = (0..n as usize)
                    .map(|k| (Some(bytes[64 * k..64 * k + 64].try_into().unwrap()), u64::MAX))
                    .collect();
                let op = AxiOp::Read {
                    id: rng.below(3) as u8,
                    addr: r.base + chunk * r.chunk,
                    beats: n as u32,
                };
                wants.insert(b.acc.push(op), Want::Read(beats));
            }
            let done = b.finish(400_000);
            check(done, &wants, seed);
            if pass == 0 {
                assert!(b.command(if rng.one_in(2) { FLUSH } else { INVALIDATE }, 0, 0));
                reference.flush();
            }
        }
        for place in [2, 3, 5] {
            let have: BTreeSet<u64> =
                reference.closed.iter().filter(|c| c.0 == place).map(|c| c.1).collect();
            assert_eq!(b.written(place), have, "seed {seed}");
            for c in have {
                assert_eq!(
                    b.chunk(place, c).as_ref(),
                    Some(&reference.bytes[&(place, c)].0),
                    "seed {seed} region {place} chunk {c}"
                );
            }
        }
    }
    b.clean();
}

#[test]
fn random_traffic_four_lanes() {
    for seed in 0..12 {
        random_traffic(seed, 4);
    }
}

#[test]
fn random_traffic_fewer_lanes() {
    for seed in 20..22 {
        random_traffic(seed, 2);
        random_traffic(seed + 10, 1);
    }
}

#[test]
fn refusals() {
    let mut b = Bench::with(4, AxiMemoryConfig::seeded(3), Some(4));
    b.acc.read(0, 2);
    b.acc.write(0x20_0000, &[1; 64]);
    let d = b.finish(1000);
    assert!(d.iter().all(|d| d.resp.iter().all(|r| *r == 2) && d.data.iter().all(|x| *x == 0)));
    assert_eq!(b.mon.refusals.len(), 2);
    assert!(b.mon.refusals.iter().all(|r| r.0 == REFUSE_NOT_KEYED && r.1 == 0xff));
    b.load(5);
    let odd = |write, addr, beats, size, burst| AxiBurst { write, addr, beats, size, burst };
    let cases = [
        (odd(false, 0x0, 1, 6, 0), REFUSE_BURST, 0xff),
        (odd(false, 0x0, 4, 6, 2), REFUSE_BURST, 0xff),
        (odd(true, 0x20_0000, 4, 6, 2), REFUSE_BURST, 0xff),
        (odd(false, 0xfc0, 2, 6, 1), REFUSE_BURST, 0xff),
        (odd(false, 0xfff, 2, 0, 1), REFUSE_BURST, 0xff),
        (odd(true, 0x20_0fc1, 2, 6, 1), REFUSE_BURST, 0xff),
        (odd(false, 0x0, 1, 7, 1), REFUSE_BURST, 0xff),
        (odd(false, 0x60_0000, 64, 6, 1), REFUSE_RANGE, 0xff),
        (odd(true, 0x60_0000, 64, 6, 1), REFUSE_RANGE, 0xff),
        (odd(false, 0x41_0000, 1, 6, 1), REFUSE_RANGE, 0xff),
        (odd(false, 1 << 40, 1, 6, 1), REFUSE_RANGE, 0xff),
        (odd(true, 0x10_0200, 8, 6, 1), REFUSE_READ_ONLY, 1),
        (odd(false, 0x50_0000, 3, 6, 1), REFUSE_NOT_WRITTEN, 7),
        (odd(false, 0x2f_f000, 64, 6, 1), REFUSE_NOT_WRITTEN, 2),
    ];
    for (op, kind, region) in cases {
        let before = b.mon.refusals.len();
        let addr = op.addr;
        b.acc.push(AxiOp::odd(2, op));
        let d = b.finish(2000).remove(0);
        assert!(d.resp.iter().all(|r| *r == 2) && d.data.iter().all(|x| *x == 0), "{op:?}");
        for _ in 0..8 {
            b.cycle();
        }
        assert_eq!(b.mon.refusals[before..], [(kind, region, addr)], "{op:?}");
    }
    // epoch 0 is never valid
    b.wipe();
    b.load(0);
    b.s.poke("stat_region", 0);
    b.acc.read(0, 1);
    assert!(!b.finish(1000)[0].okay());
    for _ in 0..8 {
        b.cycle();
    }
    assert_eq!(b.mon.refusals.last(), Some(&(REFUSE_EPOCH_ZERO, 0, 0)));
    b.clean();
}

#[test]
fn narrow_writes_fill_a_chunk() {
    let mut b = Bench::new(4, AxiMemoryConfig::seeded(8), Some(9));
    let mut want = vec![0; 64];
    let port = |b: &Bench, n: &str| b.s.port(n).unwrap();
    for size in 0..6u32 {
        // one 64-byte chunk for each size, from an address that is not aligned
        let base = 0x50_0000 + 64 * u64::from(size);
        let addr = base + 1 + u64::from(size);
        let bytes = 1u64 << size;
        let beats = (64 - (addr - base) / bytes * bytes) / bytes;
        let mut mem = vec![0u8; 64];
        for (n, v) in [
            ("acc_awid", 1),
            ("acc_awaddr", addr),
            ("acc_awlen", beats - 1),
            ("acc_awsize", size.into()),
            ("acc_awburst", 1),
            ("acc_awvalid", 1),
        ] {
            b.s.poke(n, v);
        }
        let mut asked = false;
        for k in 0..beats {
            let (_, mask) = lanes(addr, size, k);
            let data: [u8; 64] = std::array::from_fn(|i| (i as u8) ^ (k as u8) << 2 ^ 0xc3);
            for i in (0..64).filter(|i| mask >> i & 1 == 1) {
                mem[i] = data[i];
            }
            let p = port(&b, "acc_wdata");
            b.s.raw_mut(p).copy_from_slice(&data);
            b.s.poke("acc_wstrb", mask);
            b.s.poke("acc_wvalid", 1);
            loop {
                b.s.eval();
                let (aw, w) = (b.s.peek("acc_awready") == 1, b.s.peek("acc_wready") == 1);
                cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
                if aw && !asked {
                    asked = true;
                    b.s.poke("acc_awvalid", 0);
                }
                if w {
                    break;
                }
            }
        }
        b.s.poke("acc_wvalid", 0);
        b.s.poke("acc_bready", 1);
        b.s.eval();
        while b.s.peek("acc_bvalid") == 0 {
            cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
        }
        assert_eq!(b.s.peek("acc_bresp"), 0);
        cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
        want.splice(.., mem);
        assert!(b.command(FLUSH, 0, 0));
        assert_eq!(b.chunk(5, u64::from(size)).as_ref(), Some(&want), "size {size}");
    }
}

/// After a fault every access gets SLVERR with zeros, no chunk is sealed, and commands fail.
fn stopped(b: &mut Bench) {
    let writes = b.mem.counters.writes;
    for r in REGIONS {
        b.acc.read(r.base, 4);
        b.acc.write(r.base + 0x3000, &[9; 256]);
    }
    for d in b.finish(40_000) {
        assert!(d.resp.iter().all(|r| *r == 2) && d.data.iter().all(|x| *x == 0), "{:?}", d.op);
    }
    assert!(!b.command(FLUSH, 0, 0));
    assert_eq!(b.mem.counters.writes, writes, "sealed after the fault");
    assert_eq!(b.mon.faults.len(), 1, "{:?}", b.mon.faults);
}

#[test]
fn tampering_is_never_delivered() {
    let mut rng = Rng::new(77);
    for case in 0..40u64 {
        let mut b = Bench::new(4, AxiMemoryConfig::seeded(case), Some(case));
        let place = [0, 1, 4][rng.below(3) as usize];
        let r = REGIONS[place];
        let n = 0x2000 / r.chunk;
        b.fill(place, 0, n, &mut rng);
        let bad = rng.below(n);
        let (at, tag_at) = (r.base + bad * r.chunk, r.tags + 16 * bad);
        let flip = |b: &mut Bench, addr: u64, bit: u64| {
            let mut x = [0; 1];
            b.mem.memory.read(addr + bit / 8, &mut x);
            b.mem.memory.write(addr + bit / 8, &[x[0] ^ 1 << (bit % 8)]);
        };
        match case % 6 {
            0 => flip(&mut b, at, rng.below(8 * r.chunk)),
            1 => flip(&mut b, tag_at, rng.below(128)),
            2 => {
                // another chunk with its tag
                let other = (bad + 1 + rng.below(n - 1)) % n;
                let (mut d, mut t) = (vec![0; r.chunk as usize], [0; 16]);
                b.mem.memory.read(r.base + other * r.chunk, &mut d);
                b.mem.memory.read(r.tags + 16 * other, &mut t);
                b.mem.memory.write(at, &d);
                b.mem.memory.write(tag_at, &t);
            }
            3 => {
                // the same chunk in another epoch
                let mut d = b.plain[&(place, bad)].clone();
                let t = seal(&r, b.epochs[place] - 1, bad, &mut d);
                b.mem.memory.write(at, &d);
                b.mem.memory.write(tag_at, &t);
            }
            4 => {
                b.mem.memory.write(at, &vec![0; r.chunk as usize]);
                b.mem.memory.write(tag_at, &[0; 16]);
            }
            _ => b.mem.memory.write(tag_at, &[0; 16]),
        }
        // gathered data that must not be sealed any more
        b.acc.write(0x20_0000, &[7; 64]);
        assert!(b.finish(2000)[0].okay());
        for i in 0..n {
            b.acc.push(AxiOp::Read {
                id: (i % 3) as u8,
                addr: r.base + i * r.chunk,
                beats: (r.chunk / 64) as u32,
            });
        }
        for d in b.finish(100_000) {
            let (addr, _, _) = shape(&d.op);
            let index = (addr - r.base) / r.chunk;
            for (k, resp) in d.resp.iter().enumerate() {
                let got = &d.data[64 * k..64 * k + 64];
                if *resp == 0 {
                    assert_ne!(index, bad, "case {case}: delivered");
                    assert_eq!(got, &b.plain[&(place, index)][64 * k..64 * k + 64]);
                } else {
                    assert!(got.iter().all(|x| *x == 0), "case {case}");
                }
            }
        }
        assert_eq!(b.mon.faults, [(FAULT_TAG, r.id.into(), bad, b.epochs[place])], "case {case}");
        stopped(&mut b);
        // a wipe ends it
        b.mon.faults.clear();
        b.wipe();
        b.load(9);
        b.fill(place, 0, 2, &mut rng);
        b.acc.read(r.base, 1);
        assert!(b.finish(3000)[0].okay());
        b.clean();
    }
}

/// Whole chunks are on their way to memory when a read meets a flipped bit: bursts in progress
/// complete, and no other burst leaves.
#[test]
fn nothing_is_sealed_after_a_fault() {
    const BEGUN: u64 = 2; // one of data and one of tags
    let mut b = Bench::new(4, no_wait(40), None);
    let mut rng = Rng::new(88);
    b.fill(1, 0, 1, &mut rng);
    let mut byte = [0; 1];
    b.mem.memory.read(REGIONS[1].base + 100, &mut byte);
    b.mem.memory.write(REGIONS[1].base + 100, &[byte[0] ^ 4]);
    for i in 0..40 {
        b.acc.write(REGIONS[2].base + 512 * i, &[9; 512]);
    }
    b.acc.read(REGIONS[1].base, 8);
    b.until("no fault", 20_000, |b| !b.mon.faults.is_empty());
    let then = b.mem.counters.writes;
    let done = b.finish(20_000);
    let refused = done.iter().filter(|d| !d.okay()).count();
    assert!(refused > 1, "all writes were over when the fault came: the test shows nothing");
    for _ in 0..3000 {
        b.cycle();
    }
    assert!(
        b.mem.counters.writes <= then + BEGUN,
        "{} bursts written after the fault",
        b.mem.counters.writes - then
    );
    stopped(&mut b);
}

#[test]
fn a_hostile_memory_stops_the_set_and_never_hangs_it() {
    let protocol: &[u64] = &[FAULT_PROTOCOL];
    // an answer that passes for another with the same id is detected by its tag
    let shifted: &[u64] = &[FAULT_PROTOCOL, FAULT_TAG];
    let lost: &[u64] = &[FAULT_TIMEOUT, FAULT_TAG];
    let cases = [
        (Hostile::UnownedR { id: 0 }, shifted),
        (Hostile::UnownedR { id: 1 }, shifted),
        (Hostile::UnownedR { id: 0x55 }, protocol),
        (Hostile::UnownedB { id: 0 }, protocol),
        (Hostile::UnownedB { id: 1 }, protocol),
        (Hostile::UnownedB { id: 9 }, protocol),
        (Hostile::WrongRid(0x40), protocol),
        (Hostile::WrongRid(1), protocol),
        (Hostile::WrongBid(0x40), protocol),
        (Hostile::WrongBid(1), protocol),
        (Hostile::EarlyLast, protocol),
        (Hostile::LateLast, protocol),
        (Hostile::MissingLast, protocol),
        (Hostile::DoubleB, protocol),
        (Hostile::LoseRead, lost),
        (Hostile::LoseWrite, &[FAULT_TIMEOUT]),
    ];
    let mut rng = Rng::new(5);
    for (n, (h, kinds)) in cases.into_iter().enumerate() {
        for timing in 0..3 {
            let config = if timing == 0 {
                no_wait(20)
            } else {
                AxiMemoryConfig::seeded(n as u64 + 50 * timing)
            };
            let mut b = Bench::new(4, config, (timing == 2).then_some(7));
            b.fill(1, 0, 64, &mut rng);
            b.acc.read(0x10_0000, 8);
            assert!(b.finish(3000)[0].okay());
            b.mem.inject(h);
            for i in 0..40 {
                b.acc.read(0x10_0000 + 512 * (i + 4), 8);
                b.acc.write(0x20_0000 + 512 * i, &[i as u8; 512]);
            }
            for d in b.finish(60_000) {
                if let AxiOp::Read { addr, .. } = d.op {
                    let index = (addr - 0x10_0000) / 512;
                    for (k, resp) in d.resp.iter().enumerate() {
                        let want = if *resp == 0 {
                            b.plain[&(1, index)][64 * k..64 * k + 64].to_vec()
                        } else {
                            vec![0; 64]
                        };
                        assert_eq!(&d.data[64 * k..64 * k + 64], want, "{h:?}");
                    }
                }
            }
            for _ in 0..1500 {
                b.cycle();
            }
            assert!(b.mem.injected_all(), "{h:?} did not happen");
            assert!(
                b.mon.faults.len() == 1 && kinds.contains(&b.mon.faults[0].0),
                "{h:?} timing {timing}: {:?}",
                b.mon.faults
            );
            let timed_out = b.mon.faults[0].0 == FAULT_TIMEOUT;
            stopped(&mut b);
            assert_eq!(b.mem.violations(), &[] as &[String], "{h:?}");
            b.wipe();
            b.mon.faults.clear();
            b.load(6);
            b.fill(1, 0, 1, &mut rng);
            b.acc.read(0x10_0000, 8);
            let okay = b.finish(3000)[0].okay();
            if timed_out {
                // the port stays unusable until reset
                assert!(!okay && b.mon.faults[0].0 == FAULT_TIMEOUT, "{h:?}");
            }
        }
    }
}

#[test]
fn bus_errors_and_silence() {
    let ranges = [
        0x10_0000..0x10_0001u64,
        0x801_0000..0x801_0001,
        0x20_0000..0x20_0001,
        0x802_0000..0x802_0001,
    ];
    for (n, range) in ranges.into_iter().enumerate() {
        for silent in [false, true] {
            let mut b = Bench::new(4, AxiMemoryConfig::seeded(n as u64), Some(2));
            let mut rng = Rng::new(6);
            b.fill(1, 0, 8, &mut rng);
            if silent {
                b.mem.silent_ranges.push(range.clone());
            } else {
                b.mem.error_ranges.push(range.clone());
            }
            // one chunk only: a later answer with the same id would pass for the missing one until
            // its tag is checked
            b.acc.read(0x10_0000, 8);
            b.acc.write(0x20_0000, &[3; 4096]);
            b.finish(10_000);
            b.command(FLUSH, 0, 0);
            for _ in 0..1000 {
                b.cycle();
            }
            let kind = if silent { FAULT_TIMEOUT } else { FAULT_BUS };
            assert_eq!(b.mon.faults.iter().map(|f| f.0).collect::<Vec<_>>(), [kind], "{range:x?}");
            stopped(&mut b);
        }
    }
    // a memory that accepts nothing
    let mut b = Bench::new(4, no_wait(5), None);
    b.mem.frozen = true;
    b.acc.read(0x10_0000, 8);
    b.acc.write(0x20_0000, &[3; 512]);
    b.finish(3000);
    assert_eq!(b.mon.faults[0].0, FAULT_TIMEOUT);
    b.s.poke("enable", 0);
    b.s.poke("wipe", 1);
    b.until("wipe does not wait for a dead port", 10_000, |b| b.s.peek("wipe_done") == 1);
}

#[test]
fn stop_from_outside() {
    let mut b = Bench::new(4, AxiMemoryConfig::seeded(4), Some(5));
    b.acc.write(0x20_0000, &[1; 64]);
    assert!(b.finish(1000)[0].okay());
    b.s.poke("stop", 1);
    b.cycle();
    let writes = b.mem.counters.writes;
    b.acc.read(0x20_0000, 1);
    b.acc.write(0x20_0040, &[1; 64]);
    for d in b.finish(1000) {
        assert!(!d.okay() && d.data.iter().all(|x| *x == 0));
    }
    assert!(!b.command(FLUSH, 0, 0));
    assert_eq!((b.mem.counters.writes, b.mon.refusals.len()), (writes, 0));
    b.clean();
}

#[test]
fn epochs_go_up_and_forget() {
    let mut b = Bench::new(4, AxiMemoryConfig::seeded(11), Some(12));
    let mut rng = Rng::new(13);
    b.fill(1, 0, 4, &mut rng);
    b.acc.read(0x10_0000, 32);
    b.acc.write(0x20_0000, &[1; 512]);
    b.acc.write(0x20_0200, &[2; 64]);
    assert!(b.finish(5000).iter().all(AxiDone::okay));
    let old = b.epochs;
    assert!(b.command(EPOCH, 2, old[2] + 3));
    // the preceding flush sealed the gathered data, under the old epoch
    let mut part = vec![0; 512];
    part[..64].fill(2);
    assert_eq!((b.chunk(2, 0), b.chunk(2, 1)), (Some(vec![1; 512]), Some(part)));
    b.epochs[2] += 3;
    assert_eq!(b.written(2), BTreeSet::new());
    b.acc.read(0x20_0000, 1);
    assert!(!b.finish(1000)[0].okay());
    b.acc.write(0x20_0000, &[5; 512]);
    b.acc.read(0x10_0000, 32);
    assert!(b.finish(5000).iter().all(AxiDone::okay));
    assert!(b.command(FLUSH, 0, 0));
    assert_eq!(b.chunk(2, 0), Some(vec![5; 512]));
    // not increasing; unknown region
    assert!(!b.command(EPOCH, 2, b.epochs[2]));
    assert!(!b.command(EPOCH, 2, 1));
    assert!(!b.command(EPOCH, 9, 100));
    assert_eq!(b.written(2), BTreeSet::from([0]));
    // an input region: lines of the old epoch are gone, and the old chunks are refused
    assert!(b.command(EPOCH, 1, old[1] + 1));
    b.acc.read(0x10_0000, 8);
    assert!(!b.finish(3000)[0].okay());
    assert_eq!(b.mon.faults, [(FAULT_TAG, 1, 0, old[1] + 1)]);
}

#[test]
fn a_write_without_data_does_not_hold_up_a_flush() {
    let mut b = Bench::new(4, no_wait(10), None);
    for (n, v) in [
        ("acc_awid", 1),
        ("acc_awaddr", 0x20_0000),
        ("acc_awlen", 7),
        ("acc_awsize", 6),
        ("acc_awburst", 1),
        ("acc_awvalid", 1),
    ] {
        b.s.poke(n, v);
    }
    cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
    b.s.poke("acc_awvalid", 0);
    for _ in 0..10 {
        cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
    }
    b.s.poke("cmd", FLUSH);
    b.s.poke("cmd_valid", 1);
    cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
    b.s.poke("cmd_valid", 0);
    for k in 0..4000 {
        // the data arrives too late
        b.s.poke("acc_wvalid", u64::from(k > 2000));
        b.s.poke("acc_bready", 1);
        b.s.eval();
        if b.s.peek("acc_bvalid") == 1 {
            assert_eq!(b.s.peek("acc_bresp"), 2);
            b.s.poke("acc_wvalid", 0);
            assert_eq!(b.mon.commands, [0]);
            assert_eq!(b.mon.refusals, [(REFUSE_CUT_OFF, 2, 0x20_0000)]);
            return;
        }
        cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
    }
    panic!("no answer");
}

#[test]
fn a_key_wears_out() {
    let mut b = Bench::new(1, no_wait(10), None);
    let r = REGIONS[3];
    let mut good = 0;
    for i in 0..40 {
        b.acc.write(r.base + i * r.chunk, &[1; 4096]);
        if b.finish(10_000)[0].okay() {
            assert_eq!(good, i, "refused, then accepted");
            good += 1;
        }
    }
    assert!(b.command(FLUSH, 0, 0));
    assert!(good > 15 && good * 257 < 1 << 15, "{good} chunks");
    assert_eq!(b.written(3).len() as u64, good);
    assert_eq!(b.mon.refusals.last().map(|r| (r.0, r.1)), Some((REFUSE_EXHAUSTED, 3)));
    // a wipe and a new key
    b.wipe();
    b.load(8);
    b.acc.write(r.base, &[1; 4096]);
    assert!(b.finish(10_000)[0].okay());
    b.clean();
}

#[test]
fn a_wipe_in_full_flight() {
    for seed in 0..12 {
        let mut b = Bench::new(4, AxiMemoryConfig::seeded(seed), Some(seed));
        let mut rng = Rng::new(seed);
        b.fill(0, 0, 16, &mut rng);
        for i in 0..16 {
            b.acc.read(i * 4096, 64);
            b.acc.write(0x30_0000 + i * 4096, &[0x5a; 4096]);
        }
        for _ in 0..50 + 40 * seed {
            b.cycle();
        }
        b.wipe();
        // every waiting burst was answered, with zeros or with its data
        for d in b.finish(20_000) {
            if let AxiOp::Read { addr, .. } = d.op {
                for (k, resp) in d.resp.iter().enumerate() {
                    let got = &d.data[64 * k..64 * k + 64];
                    let want = &b.plain[&(0, addr / 4096)][64 * k..64 * k + 64];
                    assert!(
                        got.iter().all(|x| *x == 0) || (*resp == 0 && got == want),
                        "seed {seed}"
                    );
                }
            }
        }
        b.mon.refusals.clear();
        b.load(3);
        assert_eq!(b.written(3), BTreeSet::new());
        b.fill(0, 0, 2, &mut rng);
        b.acc.read(0, 64);
        b.acc.write(0x30_0000, &[0x66; 4096]);
        let done = b.finish(20_000);
        let seen = (&b.mon.faults, &b.mon.refusals);
        assert!(
            done.iter().all(AxiDone::okay),
            "seed {seed}: {seen:x?}, {:x?}",
            done.iter().map(|d| &d.resp).collect::<Vec<_>>()
        );
        assert!(b.command(FLUSH, 0, 0));
        assert_eq!(b.chunk(3, 0), Some(vec![0x66; 4096]));
        b.clean();
    }
}

#[test]
fn speed() {
    for lanes in [4, 2, 1] {
        for latency in if lanes == 4 { vec![10, 40, 100, 200] } else { vec![40] } {
            for (rd, wr) in [(0, 3), (1, 2), (4, 5)] {
                let mut b = Bench::new(lanes, no_wait(latency), None);
                b.acc.outstanding = 40;
                let mut rng = Rng::new(2);
                let (ri, ro) = (REGIONS[rd], REGIONS[wr]);
                let total = if ri.chunk == 64 {
                    0x8000
                } else if lanes == 1 {
                    0x1_0000
                } else {
                    0x4_0000
                };
                let burst = ri.chunk.max(512);
                b.fill(rd, 0, total / ri.chunk, &mut rng);
                b.fill(rd, total / ri.chunk, total / ri.chunk + 1, &mut rng);
                b.acc.read(ri.base + total, 1);
                let d = b.finish(2000).remove(0);
                let one = d.end - d.start;
                let first = b.s.cycles();
                for a in (0..total).step_by(burst as usize) {
                    b.acc.read(ri.base + a, (burst / 64) as u32);
                }
                let done = b.finish(200_000);
                let took = b.s.cycles() - first;
                assert!(done.iter().all(AxiDone::okay));
                // steady state: from the first burst's last beat to the last one's
                let steady =
                    (total - burst) as f64 / (done[done.len() - 1].end - done[0].end) as f64;
                let data = vec![0x33; burst as usize];
                let first = b.s.cycles();
                for a in (0..total).step_by(burst as usize) {
                    b.acc.write(ro.base + a, &data);
                }
                let wdone = b.finish(200_000);
                let wtook = b.s.cycles() - first;
                assert!(wdone.iter().all(AxiDone::okay));
                assert!(b.command(FLUSH, 0, 0));
                let flushed = b.s.cycles() - first;
                println!(
                    "lanes {lanes} latency {latency:3} chunk {:4}: read {:.1} B/cycle (steady {steady:.1}), first word {one}; write {:.1} B/cycle, with flush {:.1}",
                    ri.chunk,
                    total as f64 / took as f64,
                    total as f64 / wtook as f64,
                    total as f64 / flushed as f64
                );
                b.clean();
            }
        }
    }
}

/// Expected contents of a scratch region, by place; each byte is the accelerator's last write, or
/// its initial value.
struct Plain(BTreeMap<usize, Vec<u8>>);

impl Plain {
    fn beat(&self, place: usize, at: u64) -> [u8; 64] {
        let at = (at - REGIONS[place].base) as usize;
        self.0[&place][at..at + 64].try_into().unwrap()
    }
}

/// Random reads and writes of every shape, interleaved with commands, over more chunks than there
/// are lines.
fn random_scratch(seed: u64, engine_lanes: u32, places: &[usize]) {
    let mut rng = Rng::new(seed);
    let mut b = Bench::new(engine_lanes, AxiMemoryConfig::seeded(seed), Some(seed + 2000));
    // more chunks than lines, and more nodes than the tree holds on chip
    let span = |r: &Region| {
        if r.mode == Mode::Tree {
            0x1_0000
        } else {
            0x1_0000.min(r.chunk * 100).next_multiple_of(4096)
        }
    };
    let mut plain = Plain(BTreeMap::new());
    for &place in places {
        let r = REGIONS[place];
        let mut first = vec![0; span(&r) as usize];
        if r.mode == Mode::Bypass {
            rng.fill(&mut first);
            b.mem.memory.write(r.base, &first);
        }
        plain.0.insert(place, first);
    }
    let mut written = BTreeSet::new();
    for _ in 0..6 {
        // beats written in this round are not read in it: their order would be undefined
        let mut wants = BTreeMap::new();
        let (mut busy, mut shown) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..150 {
            let place = places[rng.below(places.len() as u64) as usize];
            let r = REGIONS[place];
            // mostly close together, so that chunks meet on chip
            let limit = if rng.one_in(3) { span(&r) } else { 4096 };
            let op = random_read(&mut rng, &r, limit);
            let (addr, size, n) = shape(&op);
            let mut beats: Vec<_> = (0..n).map(|k| lanes(addr, size, k)).collect();
            if rng.one_in(2) {
                if beats.iter().any(|(at, _)| busy.contains(at)) {
                    continue;
                }
                shown.extend(beats.iter().map(|b| b.0));
                let want =
                    beats.iter().map(|(at, mask)| (Some(plain.beat(place, *at)), *mask)).collect();
                wants.insert(b.acc.push(op), Want::Read(want));
            } else {
                beats.dedup_by_key(|b| b.0);
                beats.truncate(1 + rng.below(16) as usize);
                if beats.iter().any(|(at, _)| shown.contains(at)) {
                    continue;
                }
                busy.extend(beats.iter().map(|b| b.0));
                let mut data = vec![0; 64 * beats.len()];
                rng.fill(&mut data);
                let whole = rng.one_in(2);
                let strobes: Vec<u64> = beats
                    .iter()
                    .map(|_| if whole { u64::MAX } else { rng.next_u64() & rng.next_u64() })
                    .collect();
                let to = plain.0.get_mut(&place).unwrap();
                for (k, (at, _)) in beats.iter().enumerate() {
                    let off = (at - r.base) as usize;
                    written.insert((place, off as u64 / r.chunk));
                    for i in (0..64).filter(|i| strobes[k] >> i & 1 == 1) {
                        to[off + i] = data[64 * k + i];
                    }
                }
                wants.insert(
                    b.acc.push(AxiOp::Write {
                        id: rng.below(4) as u8,
                        addr: beats[0].0,
                        data,
                        strobes,
                    }),
                    Want::Write(true),
                );
            }
        }
        let done = b.finish(200_000);
        assert_eq!(b.mon.faults, [], "seed {seed}");
        check(done, &wants, seed);
        match rng.below(3) {
            0 => continue,
            1 => assert!(b.command(FLUSH, 0, 0)),
            _ => assert!(b.command(INVALIDATE, 0, 0)),
        }
        for (place, index) in &written {
            let r = REGIONS[*place];
            let at = (index * r.chunk) as usize..((index + 1) * r.chunk) as usize;
            let got = if r.mode == Mode::Bypass {
                Some((0, b.stored(*place, *index).0))
            } else {
                b.versioned(*place, *index)
            };
            let (_, got) = got.unwrap_or_else(|| {
                panic!("seed {seed} region {place} chunk {index} does not open")
            });
            assert!(got == plain.0[place][at], "seed {seed} region {place} chunk {index}");
        }
    }
    assert_eq!(b.mon.refusals, []);
    b.clean();
}

const SCRATCH: [usize; 8] = [6, 7, 8, 9, 10, 11, 12, 13];

#[test]
fn random_scratch_four_lanes() {
    for seed in 0..12 {
        random_scratch(seed, 4, &SCRATCH);
    }
    for place in SCRATCH {
        random_scratch(place as u64 + 100, 4, &[place]);
    }
}

#[test]
fn random_scratch_two_lanes() {
    random_scratch(200, 2, &SCRATCH);
}

#[test]
fn never_written_reads_as_zeros_without_memory() {
    let mut b = Bench::new(4, AxiMemoryConfig::seeded(1), Some(2));
    for place in [6, 7, 8, 11, 12, 13] {
        let r = REGIONS[place];
        // memory contents are ignored there
        b.mem.memory.write(r.base, &[0xee; 4096]);
        b.mem.memory.write(r.tags, &[0xee; 4096]);
        for i in 0..32 {
            b.acc.read(r.base + 4096 * (i % 16), 64);
        }
        assert!(b.finish(20_000).iter().all(|d| d.okay() && d.data.iter().all(|x| *x == 0)));
        // part of a chunk: the rest is zeros
        let at = r.base + r.size - r.chunk;
        b.acc.push(AxiOp::Write { id: 0, addr: at, data: vec![7; 64], strobes: vec![0xff0] });
        assert!(b.finish(20_000)[0].okay());
        b.acc.read(at, (r.chunk / 64) as u32);
        let d = b.finish(20_000).remove(0);
        assert!(
            d.okay()
                && d.data
                    .iter()
                    .enumerate()
                    .all(|(i, x)| *x == if (4..12).contains(&i) { 7 } else { 0 })
        );
        assert_eq!(b.mem.counters.reads, 0, "region {place}");
    }
    b.clean();
}

#[test]
fn an_old_chunk_does_not_come_back() {
    for place in [6, 7, 8, 11, 12, 13] {
        for timing in 0..3 {
            let mut b =
                Bench::new(4, AxiMemoryConfig::seeded(timing), (timing > 0).then_some(timing));
            let r = REGIONS[place];
            let at = r.base + 5 * r.chunk;
            let write = |b: &mut Bench, x: u8| {
                b.acc.write(at, &vec![x; r.chunk as usize]);
                assert!(b.finish(5000)[0].okay());
                assert!(b.command(INVALIDATE, 0, 0));
            };
            write(&mut b, 1);
            let (old, old_tag) = b.stored(place, 5);
            assert_eq!(b.versioned(place, 5), Some((1, vec![1; r.chunk as usize])));
            write(&mut b, 2);
            assert_eq!(b.versioned(place, 5), Some((2, vec![2; r.chunk as usize])));
            b.acc.read(at, (r.chunk / 64) as u32);
            let d = b.finish(5000).remove(0);
            assert!(d.okay() && d.data.iter().all(|x| *x == 2));
            assert!(b.command(INVALIDATE, 0, 0));
            b.mem.memory.write(at, &old);
            b.mem.memory.write(r.tags + 5 * 16, &old_tag);
            if timing == 1 {
                // detected by the fetch that completes a partly written line
                b.acc.push(AxiOp::Write { id: 0, addr: at, data: vec![3; 64], strobes: vec![7] });
                b.finish(5000);
                assert!(!b.command(FLUSH, 0, 0));
            } else {
                b.acc.read(at, (r.chunk / 64) as u32);
                let d = b.finish(5000).remove(0);
                assert!(d.resp.iter().all(|x| *x == 2) && d.data.iter().all(|x| *x == 0));
            }
            assert_eq!(b.mon.faults, [(FAULT_TAG, r.id.into(), 5, 2)]);
            stopped(&mut b);
            // after a wipe every chunk counts as unwritten
            b.mon.faults.clear();
            b.wipe();
            b.load(9);
            b.acc.read(at, 1);
            let d = b.finish(5000).remove(0);
            assert!(d.okay() && d.data.iter().all(|x| *x == 0));
            b.clean();
        }
    }
}

/// An old chunk, tag and node together: the node's version is older than its parent requires.
#[test]
fn an_old_node_does_not_come_back() {
    for place in [11, 13] {
        for timing in 0..2 {
            let mut b =
                Bench::new(4, AxiMemoryConfig::seeded(timing), (timing > 0).then_some(timing));
            let r = REGIONS[place];
            let nodes = if place == 11 { 0x80a_0000 } else { 0x3000_0000 };
            let at = r.base + 5 * r.chunk;
            let mut old = Vec::new();
            let mut node = [0; 64];
            for x in 1..3 {
                b.acc.write(at, &vec![x; r.chunk as usize]);
                // enough others to evict the node of chunk 5
                for k in 1..200 {
                    b.acc.write(r.base + 8 * k * r.chunk, &[x; 64]);
                }
                assert!(b.finish(100_000).iter().all(AxiDone::okay));
                assert!(b.command(INVALIDATE, 0, 0));
                if x == 1 {
                    old.push(b.stored(place, 5));
                    b.mem.memory.read(nodes, &mut node);
                    assert!(node.iter().any(|x| *x != 0), "the node never left the chip");
                }
            }
            let (chunk, tag) = &old[0];
            b.mem.memory.write(at, chunk);
            b.mem.memory.write(r.tags + 5 * 16, tag);
            b.mem.memory.write(nodes, &node);
            b.acc.read(at, (r.chunk / 64) as u32);
            let d = b.finish(5000).remove(0);
            assert!(d.resp.iter().all(|x| *x == 2) && d.data.iter().all(|x| *x == 0));
            assert_eq!(b.mon.faults.len(), 1);
            assert_eq!(
                (b.mon.faults[0].0, b.mon.faults[0].1, b.mon.faults[0].2),
                (FAULT_NODE, r.id.into(), 0)
            );
            stopped(&mut b);
        }
    }
}

/// With `on_fault = "region"` (here the set with two lanes), only the region's own traffic stops.
#[test]
fn a_fault_of_a_region_freezes_it_alone() {
    #[derive(Clone, Copy, PartialEq)]
    enum Harm {
        Data,
        Bus,
        Node,
    }
    let mut rng = Rng::new(50);
    let cases = [
        (Harm::Data, 1),
        (Harm::Bus, 1),
        (Harm::Data, 6),
        (Harm::Data, 7),
        (Harm::Bus, 8),
        (Harm::Bus, 9),
        (Harm::Data, 11),
        (Harm::Node, 11),
        (Harm::Node, 13),
    ];
    for (n, (harm, place)) in cases.into_iter().enumerate() {
        for timing in 0..3 {
            let seed = n as u64 + 100 * timing;
            let config = if timing == 0 { no_wait(30) } else { AxiMemoryConfig::seeded(seed) };
            let mut b = Bench::new(2, config, (timing > 0).then_some(seed));
            let r = REGIONS[place];
            let count = 24;
            let words = (r.chunk / 64) as u32;
            b.fill(0, 0, 8, &mut rng);
            if r.mode == Mode::Input {
                b.fill(place, 0, count, &mut rng);
            } else {
                for i in 0..count {
                    b.acc.write(r.base + i * r.chunk, &vec![i as u8 + 1; r.chunk as usize]);
                }
                if harm == Harm::Node {
                    // the nodes of the first chunks leave the chip
                    for k in 3..200 {
                        b.acc.write(r.base + 8 * k * r.chunk, &[1; 64]);
                    }
                }
                assert!(b.finish(200_000).iter().all(AxiDone::okay));
                assert!(b.command(INVALIDATE, 0, 0));
                // dirty lines that must not be sealed any more
                for i in 16..20 {
                    b.acc.push(AxiOp::Write {
                        id: 0,
                        addr: r.base + i * r.chunk,
                        data: vec![0xdd; 64],
                        strobes: vec![0xf0],
                    });
                }
                assert!(b.finish(20_000).iter().all(AxiDone::okay));
            }
            let bad = 9;
            let at = r.base + bad * r.chunk;
            let flip = |b: &mut Bench, addr: u64| {
                let mut x = [0; 1];
                b.mem.memory.read(addr, &mut x);
                b.mem.memory.write(addr, &[x[0] ^ 0x10]);
            };
            let (kind, chunk) = match harm {
                Harm::Data => {
                    flip(&mut b, at + 33);
                    (FAULT_TAG, bad)
                }
                Harm::Bus => {
                    b.mem.error_ranges.push(at..at + 1);
                    (FAULT_BUS, bad)
                }
                Harm::Node => {
                    flip(&mut b, 64 + if place == 11 { 0x80a_0000 } else { 0x3000_0000 });
                    (FAULT_NODE, 1)
                }
            };
            let plain = |b: &Bench, i: u64| {
                b.plain
                    .get(&(place, i))
                    .cloned()
                    .unwrap_or_else(|| vec![i as u8 + 1; r.chunk as usize])
            };
            for i in 0..15 {
                b.acc.push(AxiOp::Read { id: 1, addr: r.base + i * r.chunk, beats: words });
                b.acc.push(AxiOp::Read { id: 2, addr: 4096 * (i % 8), beats: 64 });
            }
            for d in b.finish(100_000) {
                let (addr, _, _) = shape(&d.op);
                let (want, index) = if addr < 0x1_0000 {
                    assert!(d.okay(), "case {n} timing {timing}: another region is hit");
                    (b.plain[&(0, addr / 4096)].clone(), 0)
                } else {
                    let i = (addr - r.base) / r.chunk;
                    (plain(&b, i), i)
                };
                for (k, resp) in d.resp.iter().enumerate() {
                    let got = &d.data[64 * k..64 * k + 64];
                    if *resp == 0 {
                        assert!(
                            got == &want[64 * k..64 * k + 64] && index != bad,
                            "case {n} timing {timing}: chunk {index}"
                        );
                    } else {
                        assert!(got.iter().all(|x| *x == 0));
                    }
                }
            }
            assert_eq!(
                b.mon.faults.iter().map(|f| (f.0, f.1)).collect::<Vec<_>>(),
                [(kind, r.id.into())],
                "case {n} timing {timing}"
            );
            assert_eq!(b.mon.faults[0].2 & 0xffff, chunk, "case {n} timing {timing}");
            assert_eq!(b.s.peek("region_fault"), 1 << r.id);
            // nothing of it is sealed or answered any more, except that a seal in progress
            // completes, with its tag; all other regions continue
            assert!(b.command(FLUSH, 0, 0), "case {n}");
            let all = |b: &Bench| (0..count).map(|i| b.stored(place, i)).collect::<Vec<_>>();
            let before = all(&b);
            let place_2 = if place == 6 { 11 } else { 6 };
            let other = REGIONS[place_2];
            for i in 0..20 {
                b.acc.push(AxiOp::Read { id: 3, addr: r.base + i * r.chunk, beats: words });
                if r.mode != Mode::Input {
                    b.acc.write(r.base + i * r.chunk, &[0xcc; 64]);
                }
            }
            for d in b.finish(100_000) {
                assert!(
                    d.resp.iter().all(|x| *x == 2) && d.data.iter().all(|x| *x == 0),
                    "case {n}: {:?}",
                    d.op
                );
            }
            for i in 0..80 {
                b.acc.push(AxiOp::Write {
                    id: 3,
                    addr: other.base + i * 512,
                    data: vec![i as u8; 64],
                    strobes: vec![u64::MAX],
                });
            }
            assert!(b.finish(100_000).iter().all(AxiDone::okay), "case {n}");
            assert!(b.command(INVALIDATE, 0, 0), "case {n}");
            for i in 0..80 {
                b.acc.read(other.base + i * 512, 1);
            }
            for (i, d) in b.finish(100_000).into_iter().enumerate() {
                assert!(d.okay() && d.data == [i as u8; 64], "case {n}");
            }
            assert!(all(&b) == before, "case {n} timing {timing}: sealed after the fault");
            assert_eq!((b.mon.faults.len(), b.mon.refusals.len()), (1, 0));
            b.mem.error_ranges.clear();
            b.mon.faults.clear();
            b.wipe();
            assert_eq!(b.s.peek("region_fault"), 0);
            b.load(9);
            b.acc.write(other.base, &[1; 64]);
            assert!(b.finish(20_000)[0].okay());
            b.clean();
        }
    }
}

#[test]
fn a_stream_is_fetched_ahead() {
    const STARTED: u64 = 13;
    const USED: u64 = 14;
    const FAILED: u64 = 15;
    let statistic = |b: &mut Bench, n: u64| {
        for _ in 0..20 {
            b.cycle();
        }
        b.s.poke("cnt_sel", n);
        b.cycle();
        b.s.eval();
        b.s.peek("cnt")
    };
    let mut b = Bench::new(4, no_wait(40), None);
    let mut rng = Rng::new(3);
    let r = REGIONS[0];
    b.fill(0, 0, 100, &mut rng);
    b.acc.outstanding = 1;
    let first = b.s.cycles();
    for i in 0..64 {
        b.acc.read(r.base + i * r.chunk, 64);
    }
    for (i, d) in b.finish(50_000).into_iter().enumerate() {
        assert!(d.okay() && d.data == b.plain[&(0, i as u64)]);
    }
    let rate = 64.0 * 4096.0 / (b.s.cycles() - first) as f64;
    println!("one burst of 4 KiB at a time: {rate:.1} B/cycle");
    assert!(rate > 50.0, "{rate}");
    let (started, used) = (statistic(&mut b, STARTED), statistic(&mut b, USED));
    assert!(used >= 60 && started >= used && started <= used + 5, "{started} {used}");
    // a failed prefetch is no fault until the data is requested
    let mut x = [0; 1];
    b.mem.memory.read(r.base + 70 * r.chunk + 9, &mut x);
    b.mem.memory.write(r.base + 70 * r.chunk + 9, &[x[0] ^ 1]);
    for i in 64..68 {
        b.acc.read(r.base + i * r.chunk, 64);
    }
    assert!(b.finish(5000).iter().all(AxiDone::okay));
    for _ in 0..1000 {
        b.cycle();
    }
    assert_eq!((b.mon.faults.len(), statistic(&mut b, FAILED)), (0, 1));
    // a write elsewhere and the end of the stream leave nothing behind that blocks
    b.acc.write(REGIONS[3].base, &[1; 4096]);
    b.acc.read(r.base + 20 * r.chunk, 64);
    assert!(b.finish(5000).iter().all(AxiDone::okay));
    assert!(b.command(INVALIDATE, 0, 0));
    b.acc.read(r.base + 70 * r.chunk, 64);
    assert!(!b.finish(5000)[0].okay());
    assert_eq!(b.mon.faults, [(FAULT_TAG, 0, 70, b.epochs[0])]);
}

#[test]
fn a_counter_at_its_end_takes_no_more_writes() {
    let mut b = Bench::new(1, AxiMemoryConfig::seeded(2), Some(3));
    let r = REGIONS[7];
    let refused = |b: &mut Bench, data: u8| {
        let before = b.mon.refusals.len();
        b.acc.write(r.base + 64, &[data; 64]);
        assert!(!b.finish(2000)[0].okay());
        for _ in 0..8 {
            b.cycle();
        }
        assert_eq!(b.mon.refusals[before..], [(REFUSE_EXHAUSTED, r.id.into(), r.base + 64)]);
    };
    for x in 1..16 {
        b.acc.write(r.base + 64, &[x; 64]);
        assert!(b.finish(2000)[0].okay(), "write {x}");
        assert!(b.command(if x % 2 == 0 { FLUSH } else { INVALIDATE }, 0, 0));
        assert_eq!(b.versioned(7, 1), Some((u64::from(x), vec![x; 64])));
    }
    let stored = b.stored(7, 1);
    // not on chip, then on chip; the neighbour in the same word of counters continues
    refused(&mut b, 0x77);
    b.acc.read(r.base + 64, 1);
    let d = b.finish(2000).remove(0);
    assert!(d.okay() && d.data == [15; 64]);
    refused(&mut b, 0x78);
    b.acc.write(r.base, &[1; 64]);
    assert!(b.finish(2000)[0].okay());
    assert!(b.command(INVALIDATE, 0, 0));
    assert_eq!((b.stored(7, 1), b.versioned(7, 0)), (stored, Some((1, vec![1; 64]))));
    // a read first, and the write while it is in flight
    b.acc.read(r.base + 64, 1);
    b.acc.write(r.base + 64, &[0x79; 64]);
    let d = b.finish(2000);
    assert_eq!(d.iter().filter(|d| d.okay()).count(), 1);
    assert!(d.iter().all(|d| d.data.is_empty() || d.data == [15; 64]));
    b.clean();
}

/// Writes continue while the accelerator accepts no answers to its reads, and reads while it sends
/// no data for its writes.
#[test]
fn reads_and_writes_do_not_starve_each_other() {
    for place in SCRATCH {
        let r = REGIONS[place];
        let mut b = Bench::new(4, no_wait(20), None);
        let lines = if r.chunk > 512 { 8 } else { 32 };
        // many dirty lines, then reads of others
        for i in 0..2 * lines {
            b.acc.write(r.base + i * r.chunk, &[i as u8 + 1; 64]);
        }
        assert!(b.finish(50_000).iter().all(AxiDone::okay));
        for i in 0..2 * lines {
            b.acc.read(r.base + i * r.chunk, 1);
            b.acc.write(r.base + (i + 2 * lines) * r.chunk, &[5; 64]);
        }
        for d in b.finish(50_000) {
            assert!(d.okay());
            if let AxiOp::Read { addr, .. } = d.op {
                assert!(d.data.iter().all(|x| *x == ((addr - r.base) / r.chunk) as u8 + 1));
            }
        }
        // no R is accepted: the maximum number of reads, then writes
        let (id, addr, ready) = ("acc_arid", "acc_araddr", "acc_rready");
        b.s.poke(ready, 0);
        for (n, v) in
            [(id, 0), ("acc_arlen", 0), ("acc_arsize", 6), ("acc_arburst", 1), ("acc_arvalid", 1)]
        {
            b.s.poke(n, v);
        }
        for i in 0..2000u64 {
            b.s.poke(addr, r.base + (i % (3 * lines)) * r.chunk);
            cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
        }
        let mut answered = 0;
        b.s.poke("acc_bready", 1);
        for (n, v) in [
            ("acc_awlen", 0),
            ("acc_awsize", 6),
            ("acc_awburst", 1),
            ("acc_awvalid", 1),
            ("acc_wvalid", 1),
        ] {
            b.s.poke(n, v);
        }
        b.s.poke("acc_wstrb", 0xff);
        let mut asked = 0;
        for _ in 0..20_000u64 {
            b.s.poke("acc_awaddr", r.base + (asked % (3 * lines)) * r.chunk);
            b.s.eval();
            asked += b.s.peek("acc_awready");
            answered += b.s.peek("acc_bvalid");
            cycle(&mut b.s, &mut [&mut b.mem, &mut b.mon]);
        }
        assert!(answered > 4 * lines, "region {place}: {answered} writes");
        assert_eq!(b.mon.faults, []);
    }
}

#[test]
fn scratch_speed() {
    for place in SCRATCH {
        let r = REGIONS[place];
        let mut b = Bench::new(4, no_wait(40), None);
        b.acc.outstanding = 40;
        let total = if r.chunk == 64 { 0x8000 } else { 0x4_0000 };
        let burst = r.chunk.max(512);
        let mut rate = [0.0; 2];
        for (n, rate) in rate.iter_mut().enumerate() {
            let first = b.s.cycles();
            for a in (0..total).step_by(burst as usize) {
                if n == 0 {
                    b.acc.write(r.base + a, &vec![0x33; burst as usize]);
                } else {
                    b.acc.read(r.base + a, (burst / 64) as u32);
                }
            }
            assert!(b.finish(200_000).iter().all(AxiDone::okay));
            *rate = total as f64 / (b.s.cycles() - first) as f64;
            assert!(b.command(INVALIDATE, 0, 0));
        }
        // the first word of a chunk, and of the next one, whose tree node is on chip by then
        let words = [0, 1].map(|n| {
            b.acc.read(r.base + total / 2 + n * r.chunk, 1);
            let d = b.finish(2000).remove(0);
            d.end - d.start
        });
        println!(
            "{:?} chunk {:4}: write {:.1} B/cycle, read {:.1} B/cycle, first words {words:?}",
            r.mode, r.chunk, rate[0], rate[1]
        );
        assert!(r.chunk > 64 || words[1] <= 64, "{words:?} cycles");
        // 64 B: a seal needs four cycles of preparation; small tree chunks: every eighth needs a
        // node that is not on chip (32 are)
        let floor = match (r.mode, r.chunk) {
            (Mode::Tree, 64) => 8.0,
            (_, 64) => 15.0,
            (Mode::Tree, 512) => 50.0,
            _ => 54.0,
        };
        assert!(rate.iter().all(|x| *x >= floor), "{rate:?}");
        b.clean();
    }
}

/// Requests that waited for memory when a set was wiped are not issued afterwards, when no burst
/// waits for the answer.
#[test]
fn a_wiped_set_asks_memory_for_nothing() {
    let r = REGIONS[13];
    for after in 0..12 {
        let mut b = Bench::new(4, no_wait(20), None);
        for k in 0..200 {
            b.acc.write(r.base + 8 * k * r.chunk, &[1; 64]);
        }
        assert!(b.finish(200_000).iter().all(AxiDone::okay));
        assert!(b.command(INVALIDATE, 0, 0));
        for k in 0..60 {
            b.acc.read(r.base + 8 * k * r.chunk, 1);
        }
        for _ in 0..40 + 23 * after {
            b.cycle();
        }
        b.mem.frozen = true;
        for _ in 0..60 {
            b.cycle();
        }
        b.s.poke("enable", 0);
        b.s.poke("wipe", 1);
        b.cycle();
        b.mem.frozen = false;
        b.until("no wipe_done", 40_000, |b| b.s.peek("wipe_done") == 1);
        let reads = b.mem.counters.reads;
        b.s.poke("wipe", 0);
        for _ in 0..500 {
            b.cycle();
        }
        assert_eq!(b.mem.counters.reads - reads, 0, "wiped after {after}");
        assert_eq!(b.mon.faults, []);
    }
}

/// A flush waits for a write whose data is present, however long its version takes; it cuts off
/// only a write whose data does not arrive.
#[test]
fn a_flush_does_not_cut_off_a_write_whose_data_are_here() {
    let r = REGIONS[13];
    for apart in [509, 4096] {
        let mut b = Bench::new(4, no_wait(200), None);
        let chunk = |k: u64| k * 8 * apart % (r.size / r.chunk);
        for k in 0..60 {
            b.acc.write(r.base + chunk(k) * r.chunk, &[1; 64]);
        }
        assert!(b.finish(400_000).iter().all(AxiDone::okay));
        assert!(b.command(INVALIDATE, 0, 0));
        // nodes of many reads are in flight, and behind them that of a write
        for k in 0..28 {
            b.acc.read(r.base + chunk(k) * r.chunk, 1);
        }
        for _ in 0..80 {
            b.cycle();
        }
        b.acc.write(r.base + chunk(39) * r.chunk, &[2; 64]);
        for _ in 0..20 {
            b.cycle();
        }
        assert!(b.command(FLUSH, 0, 0));
        assert!(
            b.finish(100_000).iter().all(AxiDone::okay),
            "chunks {apart} apart: {:x?}",
            b.mon.refusals
        );
        assert_eq!(b.mon.refusals, []);
        b.clean();
        // it was in memory at the end of the flush
        assert!(b.command(INVALIDATE, 0, 0));
        b.acc.read(r.base + chunk(39) * r.chunk, 1);
        assert_eq!(b.finish(100_000)[0].data, [2; 64]);
        b.clean();
    }
}

/// A chunk of an `output` region is gathered until it is full as long as a read will return the
/// line that another write needs, however slow memory is.
#[test]
fn slow_memory_closes_no_chunk_that_is_gathered() {
    let (from, to, other) = (REGIONS[0], REGIONS[3], REGIONS[8]);
    for latency in [200, 300, 500] {
        let mut b = Bench::new(4, no_wait(latency), None);
        b.fill(0, 0, 12, &mut Rng::new(latency));
        // reads hold six of the eight lines of 4 KiB, two gather
        for k in [0, 2, 4, 6, 8, 10] {
            b.acc.read(from.base + k * from.chunk, 64);
        }
        for _ in 0..60 {
            b.cycle();
        }
        for half in 0..2 {
            for k in 0..2 {
                b.acc.write(to.base + k * to.chunk + half * 2048, &[1; 2048]);
            }
            if half == 0 {
                b.acc.write(other.base, &[2; 4096]);
            }
        }
        assert!(
            b.finish(100_000).iter().all(AxiDone::okay),
            "latency {latency}: {:x?}",
            b.mon.refusals
        );
        assert!(b.command(FLUSH, 0, 0));
        assert_eq!(b.mon.refusals, [], "latency {latency}");
        b.clean();
    }
}

/// A data beat that is both an error and out of place is not a fault of its region alone: the beats
/// after it cannot be attributed.
#[test]
fn an_error_with_a_wrong_last_stops_the_set_where_regions_freeze() {
    let mut rng = Rng::new(51);
    for (place, breach) in [
        (4, Hostile::MissingLast),
        (4, Hostile::LateLast),
        (1, Hostile::MissingLast),
        (1, Hostile::EarlyLast),
        (1, Hostile::LateLast),
    ] {
        for (error, others) in [(0, false), (0, true), (7, false), (7, true)] {
            let mut b = Bench::new(2, no_wait(30), None);
            let r = REGIONS[place];
            let words = (r.chunk / 64) as u32;
            b.fill(place, 0, 8, &mut rng);
            b.fill(0, 0, 4, &mut rng);
            let at = r.base + r.chunk + error.min(r.chunk - 64);
            b.mem.error_ranges.push(at..at + 1);
            b.mem.inject(breach);
            b.acc.push(AxiOp::Read { id: 1, addr: r.base + r.chunk, beats: words });
            if others {
                b.acc.push(AxiOp::Read { id: 1, addr: r.base + 2 * r.chunk, beats: words });
                b.acc.push(AxiOp::Read { id: 2, addr: 4096, beats: 64 });
            }
            let what = format!("{breach:?} in place {place}, error at {error}, others {others}");
            for d in b.finish(20_000) {
                for (k, resp) in d.resp.iter().enumerate() {
                    let (addr, _, _) = shape(&d.op);
                    let owner = if addr < 0x1_0000 { 0 } else { place };
                    let index = (addr - REGIONS[owner].base) / REGIONS[owner].chunk;
                    let want = if *resp == 0 {
                        b.plain[&(owner, index)][64 * k..64 * k + 64].to_vec()
                    } else {
                        vec![0; 64]
                    };
                    assert_eq!(&d.data[64 * k..64 * k + 64], want, "{what}");
                }
            }
            b.command(INVALIDATE, 0, 0);
            for _ in 0..6000 {
                b.cycle();
            }
            b.acc.read(0, 64);
            assert!(
                b.finish(1000)[0].resp.iter().all(|x| *x == 2),
                "{what}: the set goes on, {:?}",
                b.mon.faults
            );
            assert!(
                matches!(b.mon.faults.last(), Some(&(FAULT_PROTOCOL | FAULT_TIMEOUT, ..))),
                "{what}: {:?}",
                b.mon.faults
            );
        }
    }
}

/// A missing answer is detected although others arrive: memory that answers reads of data and
/// withholds a node times out.
#[test]
fn a_missing_answer_is_not_made_up_for_by_others() {
    let (r, streamed) = (REGIONS[13], REGIONS[1]);
    let mut b = Bench::new(4, no_wait(30), None);
    let mut rng = Rng::new(52);
    b.fill(1, 0, 64, &mut rng);
    let at = |k: u64| r.base + k * 8 * 509 % (r.size / r.chunk) * r.chunk;
    for k in 0..60 {
        b.acc.write(at(k), &[1; 64]);
    }
    assert!(b.finish(400_000).iter().all(AxiDone::okay));
    assert!(b.command(INVALIDATE, 0, 0));
    // a line that must be sealed, and whose node has left the chip
    b.acc.push(AxiOp::Write { id: 0, addr: at(5), data: vec![2; 64], strobes: vec![0xff] });
    assert!(b.finish(10_000)[0].okay());
    for k in 6..60 {
        b.acc.read(at(k), 1);
        assert!(b.finish(10_000)[0].okay());
    }
    b.mem.silent_ranges.push(0x3000_0000..0x4000_0000);
    b.s.poke("cmd", FLUSH);
    b.s.poke("cmd_valid", 1);
    b.cycle();
    b.s.poke("cmd_valid", 0);
    let commands = b.mon.commands.len();
    for n in 0..1500 {
        b.acc.read(streamed.base + n % 64 * streamed.chunk, 8);
        for _ in 0..10 {
            b.cycle();
        }
    }
    assert_eq!(b.mon.commands[commands..], [1], "the flush");
    assert_eq!(b.mon.faults.iter().map(|f| f.0).collect::<Vec<_>>(), [FAULT_TIMEOUT]);
    b.finish(20_000);
    stopped(&mut b);
}
