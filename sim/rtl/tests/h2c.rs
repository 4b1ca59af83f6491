//! The window of the host to card memory: every access is answered, in order and with the right
//! data, soon even when all else uses the memory port, and whatever happens to the design.

use shef_rtl::agent::Rng;
use shef_rtl::{
    Agent, AxiBurst, AxiDone, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Hostile,
    Port, Sim, agent, build,
};
use std::collections::{BTreeMap, BTreeSet};

/// As in tests/sv/shef_h2c_tb.sv.
const CARD: u64 = 0x100_0000;
const TIMEOUT: u64 = 2000;
const OKAY: u8 = 0;
const SLVERR: u8 = 2;

struct Bench {
    s: Sim,
    mems: Vec<AxiMemory>,
    h2c: AxiMaster,
    hold: Port,
    wipe: Port,
    wiped: Port,
}

impl Bench {
    fn new(ports: u64, stalls: Option<u64>, memory: impl Fn(u64) -> AxiMemoryConfig) -> Self {
        let spec = DesignSpec::new("shef_h2c_tb")
            .source("sim/rtl/tests/sv/shef_h2c_tb.sv")
            .search("shell-rtl/rtl")
            .param("NPorts", ports);
        let mut s = Sim::new(&build(&spec).expect("shef_h2c builds")).expect("instance");
        s.reset("rst_n", 2);
        let mems = (0..ports)
            .map(|k| AxiMemory::new(&s, &format!("mem{k}_"), memory(k)).expect("memory"))
            .collect();
        let mut h2c = AxiMaster::new(&s, "h2c_", stalls).expect("master");
        h2c.outstanding = 32;
        let port = |name: &str| s.port_of(name, 1).expect("a port");
        Self { mems, h2c, hold: port("hold"), wipe: port("wipe"), wiped: port("wiped"), s }
    }

    fn step(&mut self, cycles: u64) {
        let mut all: Vec<&mut dyn Agent> =
            self.mems.iter_mut().map(|m| m as &mut dyn Agent).collect();
        all.push(&mut self.h2c);
        for _ in 0..cycles {
            agent::cycle(&mut self.s, &mut all);
        }
    }

    /// Resets the design, and what is at memory with it.
    fn hold(&mut self) {
        self.s.set(self.hold, 1);
        self.step(1);
        for mem in &mut self.mems {
            mem.reset(&mut self.s);
        }
    }

    fn finish(&mut self) -> Vec<AxiDone> {
        let mut others: Vec<&mut dyn Agent> =
            self.mems.iter_mut().map(|m| m as &mut dyn Agent).collect();
        self.h2c.finish(&mut self.s, &mut others, 1_000_000).expect("an end")
    }

    /// Each direction is answered in the order of its requests.
    fn check_order(&self, done: &[AxiDone]) {
        for write in [false, true] {
            let tags: Vec<u64> =
                done.iter().filter(|d| d.op.is_write() == write).map(|d| d.tag).collect();
            assert!(tags.is_sorted(), "{tags:?}");
        }
        assert_eq!(self.h2c.violations(), &[] as &[String]);
    }

    fn check_memory(&self) {
        for (k, mem) in self.mems.iter().enumerate() {
            assert_eq!(mem.violations(), &[] as &[String], "port {k}");
        }
    }
}

/// A burst inside 4 KiB: anywhere in card memory's first megabytes, up to `most` beats.
fn place(rng: &mut Rng, most: u64) -> (u64, u64) {
    let beats = 1 + rng.below(most);
    let page = rng.below(5 << 20) & !0xfff;
    (page + rng.below(64 - beats + 1) * 64, beats)
}

/// The known beats of memory.
type Beats = BTreeMap<u64, [u8; 64]>;

fn lines(addr: u64, beats: u64) -> impl Iterator<Item = u64> {
    (0..beats).map(move |n| addr + 64 * n)
}

/// A write with random data and strobes, and its effect on `want`.
fn write(rng: &mut Rng, want: &mut Beats, addr: u64, beats: u64) -> AxiOp {
    let mut data = vec![0; 64 * beats as usize];
    rng.fill(&mut data);
    let strobes: Vec<u64> =
        (0..beats).map(|_| if rng.one_in(3) { rng.next_u64() } else { u64::MAX }).collect();
    for ((line, bytes), strobe) in lines(addr, beats).zip(data.as_chunks::<64>().0).zip(&strobes) {
        let beat = want.entry(line).or_insert([0; 64]);
        for (i, byte) in bytes.iter().enumerate().filter(|(i, _)| strobe >> i & 1 != 0) {
            beat[i] = *byte;
        }
    }
    AxiOp::Write { id: rng.below(256) as u8, addr, data, strobes }
}

/// What OKAY reads return.
fn check_reads(done: &[AxiDone], want: &Beats) {
    for d in done.iter().filter(|d| d.okay()) {
        if let AxiOp::Read { addr, beats, .. } = d.op {
            for (line, bytes) in lines(addr, beats.into()).zip(d.data.as_chunks::<64>().0) {
                let zeros = [0; 64];
                assert_eq!(bytes, want.get(&line).unwrap_or(&zeros), "{line:#x}");
            }
        }
    }
}

#[test]
fn reads_and_writes_reach_their_addresses_and_are_answered_in_order() {
    for (ports, seed) in [(1, 1), (1, 2), (2, 3), (4, 4)] {
        let memory = |k| AxiMemoryConfig::seeded(10 * seed + k);
        let mut b = Bench::new(ports, (seed != 2).then_some(seed), memory);
        let mut rng = Rng::new(seed);
        let mut want = Beats::new();
        for _ in 0..6 {
            // Beats of earlier rounds are read while others are written.
            let before = want.clone();
            let mut busy = BTreeSet::new();
            for _ in 0..150 {
                let (addr, beats) = place(&mut rng, 64);
                if lines(addr, beats).any(|line| before.contains_key(&line) || busy.contains(&line))
                {
                    if lines(addr, beats).all(|line| !busy.contains(&line)) {
                        let id = rng.below(256) as u8;
                        b.h2c.push(AxiOp::Read { id, addr, beats: beats as u32 });
                    }
                } else {
                    busy.extend(lines(addr, beats));
                    let op = write(&mut rng, &mut want, addr, beats);
                    b.h2c.push(op);
                }
            }
            for line in before.keys() {
                if rng.one_in(4) {
                    continue;
                }
                b.h2c.push(AxiOp::Read { id: rng.below(256) as u8, addr: *line, beats: 1 });
            }
            let done = b.finish();
            assert!(done.iter().all(AxiDone::okay));
            check_reads(&done, &before);
            b.check_order(&done);
            b.check_memory();
        }
        for (line, bytes) in &want {
            let mut found = [0; 64];
            let region = line >> 20;
            let port = if region < 4 { region % ports } else { 0 };
            b.mems[port as usize].memory.read(*line, &mut found);
            assert_eq!(&found, bytes, "{line:#x}");
        }
        assert!(b.mems.iter().all(|mem| mem.counters.reads > 0 && mem.idle()));
    }
}

/// Beyond card memory: zeros, or dropped; not INCR, narrow beats or across 4 KiB: refused; and
/// none of it reaches memory.
#[test]
fn other_accesses_are_answered_without_memory() {
    let mut b = Bench::new(1, Some(5), AxiMemoryConfig::seeded);
    let odd = |write, addr, beats, size, burst| AxiBurst { write, addr, beats, size, burst };
    for write in [false, true] {
        for (burst, resp) in [
            (odd(write, CARD, 1, 6, 1), OKAY),
            (odd(write, CARD + 0x1_2340, 7, 6, 1), OKAY),
            (odd(write, u64::MAX - 0xfff, 64, 6, 1), OKAY),
            (odd(write, CARD - 64, 2, 6, 1), SLVERR),
            (odd(write, 0x40, 64, 6, 1), SLVERR),
            (odd(write, 0, 256, 6, 1), SLVERR),
            (odd(write, 0, 2, 2, 1), SLVERR),
            (odd(write, 0, 1, 6, 0), SLVERR),
            (odd(write, 0, 4, 6, 2), SLVERR),
        ] {
            b.h2c.push(AxiOp::odd(resp, burst));
        }
    }
    let done = b.finish();
    assert_eq!(done.len(), 18);
    for d in &done {
        let AxiOp::Odd { id, burst, .. } = &d.op else { panic!() };
        assert!(d.resp.iter().all(|resp| resp == id), "{burst:?}: {:?}", d.resp);
        assert!(d.data.iter().all(|byte| *byte == 0));
    }
    assert_eq!((b.mems[0].counters.reads, b.mems[0].counters.writes), (0, 0));
    b.check_order(&done);
    // a single narrow beat is an access like others
    b.h2c.push(AxiOp::odd(0, odd(true, 0x1234, 1, 2, 1)));
    b.h2c.push(AxiOp::odd(0, odd(false, 0x1234, 1, 2, 1)));
    assert!(b.finish().iter().all(AxiDone::okay));
    assert_eq!((b.mems[0].counters.reads, b.mems[0].counters.writes), (1, 1));
}

/// A wipe, or a reset of the design, comes at any time: all that is open is answered, nothing
/// reaches memory until it is over, and afterwards everything works.
#[test]
fn what_is_open_when_the_design_ends_is_answered() {
    for seed in 0..24 {
        let ports = 1 + seed % 2;
        let memory = |k| AxiMemoryConfig::seeded(1000 + 10 * seed + k);
        let mut b = Bench::new(ports, Some(seed), memory);
        let mut rng = Rng::new(seed);
        let (mut want, mut lost) = (Beats::new(), BTreeSet::new());
        for _ in 0..6 {
            let before = want.clone();
            let mut written = BTreeMap::new();
            for _ in 0..40 {
                let (addr, beats) = place(&mut rng, 12);
                if lines(addr, beats).any(|line| lost.contains(&line)) {
                    continue;
                }
                if rng.one_in(2) || lines(addr, beats).any(|line| want.contains_key(&line)) {
                    if lines(addr, beats).all(|l| before.contains_key(&l) == want.contains_key(&l))
                    {
                        b.h2c.push(AxiOp::Read { id: 1, addr, beats: beats as u32 });
                    }
                } else {
                    let op = write(&mut rng, &mut want, addr, beats);
                    written.insert(b.h2c.push(op), (addr, beats));
                }
            }
            b.step(rng.below(400));
            let hold = rng.one_in(2);
            if rng.one_in(2) || !hold {
                b.s.set(b.wipe, 1);
                let end = (0..20_000).find(|_| {
                    b.step(1);
                    b.s.get(b.wiped) != 0
                });
                assert!(end.is_some(), "seed {seed}: no end of the wipe");
                assert!(b.mems.iter().all(AxiMemory::idle), "seed {seed}");
            }
            if hold {
                b.hold();
            }
            let counts = |b: &Bench| -> u64 {
                b.mems.iter().map(|m| m.counters.reads + m.counters.writes).sum()
            };
            let count = counts(&b);
            b.step(rng.below(200));
            if rng.one_in(2) {
                // all is answered meanwhile
                let done = b.finish();
                check_reads(&done, &before);
                b.check_order(&done);
                forget(&done, &written, &mut want, &mut lost);
            }
            assert_eq!(counts(&b), count, "seed {seed}: memory is used");
            b.s.set(b.wipe, 0);
            b.step(1);
            b.s.set(b.hold, 0);
            let done = b.finish();
            check_reads(&done, &before);
            b.check_order(&done);
            forget(&done, &written, &mut want, &mut lost);
            b.check_memory();
        }
        for line in want.keys() {
            b.h2c.push(AxiOp::Read { id: 2, addr: *line, beats: 1 });
        }
        let done = b.finish();
        assert!(done.iter().all(AxiDone::okay));
        check_reads(&done, &want);
        assert!(!done.is_empty());
    }
}

/// Moves the beats of failed writes, which may be anything, from `want` to `lost`.
fn forget(
    done: &[AxiDone],
    written: &BTreeMap<u64, (u64, u64)>,
    want: &mut Beats,
    lost: &mut BTreeSet<u64>,
) {
    for d in done.iter().filter(|d| !d.okay()) {
        if let Some((addr, beats)) = written.get(&d.tag) {
            for line in lines(*addr, *beats) {
                want.remove(&line);
                lost.insert(line);
            }
        }
    }
}

/// A memory that loses an answer, or gives one that nobody asked for, closes the window.
#[test]
fn a_memory_that_does_not_answer_closes_the_window() {
    for hostile in [
        Hostile::LoseRead,
        Hostile::LoseWrite,
        Hostile::UnownedB { id: 0x80 },
        Hostile::UnownedR { id: 0x80 },
        Hostile::EarlyLast,
        Hostile::DoubleB,
    ] {
        let mut b = Bench::new(1, None, |_| AxiMemoryConfig::bench(20, 10));
        b.mems[0].inject(hostile);
        for n in 0..8 {
            b.h2c.push(AxiOp::Read { id: 3, addr: n << 12, beats: 20 });
            b.h2c.write((8 + n) << 12, &[7; 64 * 20]);
        }
        b.step(TIMEOUT / 2);
        let _ = b.finish();
        b.step(10);
        // from now on an access fails, and a wipe ends at once
        b.h2c.push(AxiOp::Read { id: 3, addr: 0, beats: 2 });
        b.h2c.write(0, &[7; 64]);
        let done = b.finish();
        assert!(done.iter().all(|d| d.resp.iter().all(|r| *r == SLVERR)), "{hostile:?}: {done:?}");
        b.s.set(b.wipe, 1);
        b.step(2);
        assert_eq!(b.s.get(b.wiped), 1, "{hostile:?}");
        b.s.set(b.wipe, 0);
        // until the next design
        b.hold();
        b.step(2);
        b.s.set(b.hold, 0);
        b.h2c.write(64, &[9; 64]);
        assert!(b.finish()[0].okay(), "{hostile:?}");
        b.h2c.read(64, 1);
        assert_eq!(b.finish()[0].data, vec![9; 64], "{hostile:?}");
    }
}

/// Shield and engine keep the port busy in both directions; 32 reads and 32 writes of the host,
/// open at once, are answered in the time that the host has.
#[test]
fn the_window_is_first_at_a_busy_port() {
    for (mhz, latency) in [(100_u64, 120), (125, 150)] {
        let mut b = Bench::new(1, None, |_| AxiMemoryConfig {
            outstanding: 1024,
            ..AxiMemoryConfig::bench(latency, latency / 2)
        });
        let mut busy: Vec<AxiMaster> = ["acc0_", "dma0_"]
            .iter()
            .map(|prefix| AxiMaster::new(&b.s, prefix, None).expect("master"))
            .collect();
        for master in &mut busy {
            master.outstanding = 64;
            for n in 0..2000 {
                master.push(AxiOp::Read { id: n as u8 & 63, addr: n << 9, beats: 8 });
                master.push(AxiOp::Write {
                    id: n as u8 & 63,
                    addr: n << 9,
                    data: vec![1; 512],
                    strobes: Vec::new(),
                });
            }
        }
        let mut run = |b: &mut Bench, cycles: u64| {
            let mut all: Vec<&mut dyn Agent> =
                b.mems.iter_mut().map(|m| m as &mut dyn Agent).collect();
            all.push(&mut b.h2c);
            all.extend(busy.iter_mut().map(|m| m as &mut dyn Agent));
            for _ in 0..cycles {
                agent::cycle(&mut b.s, &mut all);
            }
        };
        run(&mut b, 3000);
        let before = b.mems[0].counters;
        run(&mut b, 1000);
        let during = b.mems[0].counters;
        // the port is saturated
        assert!(during.read_beats - before.read_beats > 980);
        assert!(during.write_beats - before.write_beats > 980);
        for write in [false, true] {
            for n in 0..32 {
                let addr = 0x80_0000 + (n << 12);
                b.h2c.push(if write {
                    AxiOp::Write { id: n as u8, addr, data: vec![n as u8; 64], strobes: vec![] }
                } else {
                    AxiOp::Read { id: n as u8, addr, beats: 1 }
                });
            }
            let mut last = 0;
            while !b.h2c.idle() {
                run(&mut b, 1);
                last += 1;
            }
            let us = f64::from(last) / mhz as f64;
            println!(
                "{mhz} MHz: the last of 32 {} is answered after {last} cycles, {us:.2} us",
                if write { "writes" } else { "reads" }
            );
            assert!(us <= 4.0, "{us} us");
            run(&mut b, 500);
        }
        b.check_memory();
    }
}
