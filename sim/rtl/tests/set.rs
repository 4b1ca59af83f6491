//! The engine set against a plain reference: random traffic with random timing, a hostile memory, commands, and its speed.

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use shef_rtl::agent::Rng;
use shef_rtl::{Agent, AxiDone, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Hostile, Library, Port, Sim, build, cycle};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Input,
    Output,
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

const fn region(id: u8, mode: Mode, base: u64, size: u64, tags: u64, chunk: u64, bits: u32) -> Region {
    Region { id, mode, base, size, tags, chunk, bits }
}

const REGIONS: [Region; 6] = [
    region(0, Mode::Input, 0x00_0000, 0x10_0000, 0x800_0000, 4096, 256),
    region(1, Mode::Input, 0x10_0000, 0x10_0000, 0x801_0000, 512, 128),
    region(2, Mode::Output, 0x20_0000, 0x10_0000, 0x802_0000, 512, 256),
    region(3, Mode::Output, 0x30_0000, 0x10_0000, 0x803_0000, 4096, 256),
    region(4, Mode::Input, 0x40_0000, 0x1_0000, 0x804_0000, 64, 256),
    region(7, Mode::Output, 0x50_0000, 0x1_0000, 0x805_0000, 64, 128),
];

const FAULT_TAG: u64 = 1;
const FAULT_BUS: u64 = 2;
const FAULT_TIMEOUT: u64 = 3;
const FAULT_PROTOCOL: u64 = 4;
const REFUSE_RANGE: u64 = 1;
const REFUSE_BURST: u64 = 2;
const REFUSE_READ_ONLY: u64 = 3;
const REFUSE_SECOND_WRITE: u64 = 4;
const REFUSE_EPOCH_ZERO: u64 = 5;
const REFUSE_NOT_KEYED: u64 = 7;
const REFUSE_NOT_WRITTEN: u64 = 8;
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

/// Seals a chunk in place; the tag.
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
        Aes256Gcm::new(&key.into()).decrypt_inout_detached(&nonce, &[], data.into(), &tag.into()).is_ok()
    } else {
        let k: [u8; 16] = key[..16].try_into().unwrap();
        Aes128Gcm::new(&k.into()).decrypt_inout_detached(&nonce, &[], data.into(), &tag.into()).is_ok()
    }
}

/// Notes faults, refusals and the end of commands.
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
            fault: ["fault_valid", "fault_kind", "fault_region", "fault_chunk", "fault_version"].map(p),
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

fn library(lanes: u32) -> Library {
    static BUILT: [OnceLock<Library>; 3] = [const { OnceLock::new() }; 3];
    BUILT[lanes.trailing_zeros() as usize]
        .get_or_init(|| {
            let spec = DesignSpec::new("shef_set_tb")
                .source("sim/rtl/tests/sv/shef_set_tb.sv")
                .search("shell-rtl/rtl")
                .param("Lanes", lanes);
            build(&spec.fast()).expect("shef_set builds")
        })
        .clone()
}

struct Bench {
    s: Sim,
    mem: AxiMemory,
    acc: AxiMaster,
    mon: Monitor,
    /// Plain contents of every chunk of an input region, by (place, index).
    plain: BTreeMap<(usize, u64), Vec<u8>>,
    epochs: [u64; 6],
}

impl Bench {
    fn with(lanes: u32, config: AxiMemoryConfig, stalls: Option<u64>) -> Self {
        let mut s = Sim::new(&library(lanes)).unwrap();
        s.reset("rst_n", 4);
        let mem = AxiMemory::new(&s, "mem0_", config).unwrap();
        let acc = AxiMaster::new(&s, "acc_", stalls).unwrap();
        let mon = Monitor::new(&s);
        let mut b = Self { s, mem, acc, mon, plain: BTreeMap::new(), epochs: [0; 6] };
        b.wipe();
        b
    }

    fn new(lanes: u32, config: AxiMemoryConfig, stalls: Option<u64>) -> Self {
        let mut b = Self::with(lanes, config, stalls);
        b.load(5);
        b
    }

    fn cycle(&mut self) {
        cycle(&mut self.s, &mut [&mut self.acc, &mut self.mem, &mut self.mon]);
    }

    fn until(&mut self, what: &str, limit: u64, done: impl Fn(&mut Self) -> bool) -> u64 {
        for n in 0..limit {
            if done(self) {
                return n;
            }
            self.cycle();
        }
        panic!("{what} after {limit} cycles");
    }

    fn wipe(&mut self) {
        self.s.poke("enable", 0);
        self.s.poke("wipe", 1);
        self.until("no wipe_done", 40_000, |b| b.s.peek("wipe_done") == 1);
        self.s.poke("wipe", 0);
        self.until("no idle", 10, |b| b.s.peek("idle") == 1);
    }

    /// Keys, epochs, enable.
    fn load(&mut self, epoch: u64) {
        for (i, r) in REGIONS.iter().enumerate() {
            self.epochs[i] = epoch + i as u64;
            self.s.poke("epoch_region", r.id.into());
            self.s.poke("epoch", self.epochs[i]);
            self.s.poke("epoch_we", 1);
            self.cycle();
            self.s.poke("epoch_we", 0);
            self.s.poke("key_region", r.id.into());
            self.s.poke_be("key", &key_of(r.id));
            self.s.poke("key_valid", 1);
            self.until("no key_ready", 5000, |b| b.s.peek("key_ready") == 1);
            self.cycle();
            self.s.poke("key_valid", 0);
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

    /// A sealed chunk as it lies in memory, opened.
    fn chunk(&self, place: usize, index: u64) -> Option<Vec<u8>> {
        let r = REGIONS[place];
        let mut d = vec![0; r.chunk as usize];
        let mut tag = [0; 16];
        self.mem.memory.read(r.base + index * r.chunk, &mut d);
        self.mem.memory.read(r.tags + 16 * index, &mut tag);
        open(&r, self.epochs[place], index, &mut d, tag).then_some(d)
    }

    fn finish(&mut self, limit: u64) -> Vec<AxiDone> {
        self.until("bursts not answered", limit, |b| b.acc.idle());
        std::iter::from_fn(|| self.acc.pop()).collect()
    }

    fn command(&mut self, cmd: u64, region: u8, epoch: u64) -> bool {
        let before = self.mon.commands.len();
        self.s.poke("cmd", cmd);
        self.s.poke("cmd_region", region.into());
        self.s.poke("cmd_epoch", epoch);
        self.s.poke("cmd_valid", 1);
        self.s.eval();
        self.until("no cmd_ready", 20_000, |b| b.s.peek("cmd_ready") == 1);
        self.cycle();
        self.s.poke("cmd_valid", 0);
        self.until("command not done", 40_000, |b| b.mon.commands.len() > before);
        self.mon.commands[before] == 0
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

#[test]
fn speed() {
    for lanes in [4, 2, 1] {
        for latency in if lanes == 4 { vec![10, 40, 100, 200] } else { vec![40] } {
            for (rd, wr) in [(0, 3), (1, 2), (4, 5)] {
                let mut b = Bench::new(lanes, no_wait(latency), None);
                b.acc.outstanding = 40;
                let mut rng = Rng::new(2);
                let (ri, ro) = (REGIONS[rd], REGIONS[wr]);
                let total = 0x1_0000 * if ri.chunk == 64 { 1 } else { 4 };
                let burst = ri.chunk.max(512);
                b.fill(rd, 0, total / ri.chunk, &mut rng);
                let first = b.s.cycles();
                for a in (0..total).step_by(burst as usize) {
                    b.acc.read(ri.base + a, (burst / 64) as u32);
                }
                let done = b.finish(200_000);
                let took = b.s.cycles() - first;
                assert!(done.iter().all(AxiDone::okay));
                let one = done[0].end - done[0].start;
                // steady state: from the first burst's last beat to the last one's
                let steady = (total - burst) as f64 / (done[done.len() - 1].end - done[0].end) as f64;
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
                    "lanes {lanes} latency {latency:3} chunk {:4}: read {:.1} B/cycle (steady {steady:.1}), first burst {one}; write {:.1} B/cycle, with flush {:.1}",
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
