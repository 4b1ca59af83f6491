//! PCIS of the shell of AWS F2: the window to card memory across unrelated clocks, answered in time
//! whatever the core does.

use shef_rtl::agent::Rng;
use shef_rtl::{
    Agent, AxiDone, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Port, Sim, build,
};
use std::collections::BTreeMap;

/// Cycles of the shell's clock in which an access is answered; as in shef_f2_pcis.sv.
const CYCLES: u64 = 1250;
/// Period of the shell's clock in ps.
const MAIN: u64 = 4000;

struct Bench {
    s: Sim,
    mem: AxiMemory,
    h2c: AxiMaster,
    /// In place of Shield and DMA engine.
    busy: Vec<AxiMaster>,
    core_clk: Port,
    core_rst: Port,
    link: Port,
    run: Port,
    idle: Port,
    lates: [Port; 2],
    late: [u64; 2],
    /// Period of the core's clock in ps; 0: it stands still.
    core: u64,
    now: u64,
    next: [u64; 2],
}

impl Bench {
    fn new(core: u64, stalls: Option<u64>, memory: AxiMemoryConfig) -> Self {
        let spec = DesignSpec::new("shef_f2_pcis_tb")
            .source("sim/rtl/tests/sv/shef_f2_pcis_tb.sv")
            .search("shell-rtl/shell/aws_f2")
            .search("shell-rtl/rtl");
        let s = Sim::new(&build(&spec).expect("shef_f2_pcis builds")).expect("instance");
        let mem = AxiMemory::new(&s, "mem_", memory).expect("memory");
        let mut h2c = AxiMaster::new(&s, "h2c_", stalls).expect("master");
        h2c.outstanding = 32;
        let busy = ["acc_", "dma_"].map(|name| AxiMaster::new(&s, name, None).expect("master"));
        let port = |name: &str| s.port_of(name, 1).expect("a port");
        let mut b = Self {
            core_clk: port("core_clk"),
            core_rst: port("core_rst_n"),
            link: port("link"),
            run: port("run"),
            idle: port("idle"),
            lates: [port("read_late"), port("write_late")],
            late: [0; 2],
            busy: busy.into(),
            mem,
            h2c,
            core,
            now: 0,
            next: [0, 1234],
            s,
        };
        b.s.poke("rst_n", 0);
        b.time(20 * MAIN);
        b.s.poke("rst_n", 1);
        b.start();
        b
    }

    /// Releases the core and the path to it, and then opens the link.
    fn start(&mut self) {
        self.s.set(self.run, 1);
        self.time(20 * MAIN.max(self.core));
        self.s.set(self.core_rst, 1);
        self.time(20 * MAIN.max(self.core));
        self.s.set(self.link, 1);
    }

    /// One edge of either clock.
    fn edge(&mut self) {
        let clock = usize::from(self.core != 0 && self.next[1] < self.next[0]);
        self.now = self.next[clock];
        let s = &mut self.s;
        if clock == 0 {
            self.next[0] += MAIN;
            s.settle();
            self.h2c.sample(s);
            for (count, port) in self.late.iter_mut().zip(self.lates) {
                *count += s.get(port);
            }
            s.edge();
            self.h2c.drive(s);
            if self.core == 0 {
                self.next[1] = self.now + 700;
            }
        } else {
            self.next[1] += self.core;
            s.set(self.core_clk, 0);
            s.eval();
            self.mem.sample(s);
            self.busy.iter_mut().for_each(|master| master.sample(s));
            s.set(self.core_clk, 1);
            s.eval();
            self.mem.drive(s);
            self.busy.iter_mut().for_each(|master| master.drive(s));
        }
    }

    fn time(&mut self, ps: u64) {
        let end = self.now + ps;
        while self.now < end {
            self.edge();
        }
    }

    fn finish(&mut self) -> Vec<AxiDone> {
        let end = self.now + 1_000_000_000;
        while !self.h2c.idle() {
            assert!(self.now < end, "no end");
            self.edge();
        }
        let mut done = Vec::new();
        while let Some(d) = self.h2c.pop() {
            done.push(d);
        }
        for write in [false, true] {
            let tags: Vec<u64> =
                done.iter().filter(|d| d.op.is_write() == write).map(|d| d.tag).collect();
            assert!(tags.is_sorted(), "{tags:?}");
        }
        assert_eq!(self.h2c.violations(), &[] as &[String]);
        assert_eq!(self.mem.violations(), &[] as &[String]);
        done
    }
}

fn is_filler(d: &AxiDone) -> bool {
    d.resp.iter().all(|resp| *resp == 2) && d.data.iter().all(|byte| *byte == 0xff)
}

/// Contents of a page that no one writes.
fn pattern(addr: u64) -> [u8; 64] {
    let mut beat = [0; 64];
    Rng::new(addr + 1).fill(&mut beat);
    beat
}

/// Beats with OKAY are those of their address; all others are filler.
fn check_patterns(done: &[AxiDone]) {
    for d in done {
        let AxiOp::Read { addr, .. } = d.op else { continue };
        for (n, bytes) in d.data.as_chunks::<64>().0.iter().enumerate() {
            let want = if d.resp[n] == 0 { pattern(addr + 64 * n as u64) } else { [0xff; 64] };
            assert_eq!(*bytes, want, "beat {n} of {addr:#x}");
        }
    }
}

fn patterned(b: &mut Bench) {
    for line in 0..(1 << 20) / 64 {
        b.mem.memory.write(64 * line, &pattern(64 * line));
    }
}

#[test]
fn accesses_cross_the_clocks_unchanged_and_in_order() {
    // slower, equal, faster; memory with random timing
    for (core, seed) in [(10_007, 1), (8_000, 2), (4_000, 3), (3_100, 4), (16_250, 5)] {
        let mut b = Bench::new(core, (seed != 2).then_some(seed), AxiMemoryConfig::seeded(seed));
        let mut rng = Rng::new(seed);
        let mut want = BTreeMap::<u64, [u8; 64]>::new();
        for round in 0..15 {
            for _ in 0..10 {
                let beats = 1 + if rng.one_in(4) { rng.below(16) } else { rng.below(2) };
                let addr = 0x10_0000 * round + (rng.below(8) << 12) + 64 * rng.below(40);
                if (0..beats).any(|n| want.contains_key(&(addr + 64 * n))) {
                    continue;
                }
                let mut data = vec![0; 64 * beats as usize];
                rng.fill(&mut data);
                let strobes: Vec<u64> = (0..beats).map(|_| rng.next_u64()).collect();
                for (n, (bytes, strobe)) in
                    data.as_chunks::<64>().0.iter().zip(&strobes).enumerate()
                {
                    let beat = want.entry(addr + 64 * n as u64).or_insert([0; 64]);
                    for i in (0..64).filter(|i| strobe >> i & 1 != 0) {
                        beat[i] = bytes[i];
                    }
                }
                b.h2c.push(AxiOp::Write { id: rng.below(256) as u8, addr, data, strobes });
            }
            assert!(b.finish().iter().all(AxiDone::okay));
            for line in want.keys().filter(|line| **line >= 0x10_0000 * round.max(1) - 0x10_0000) {
                b.h2c.push(AxiOp::Read { id: *line as u8, addr: *line, beats: 1 });
            }
            for d in b.finish() {
                let AxiOp::Read { addr, .. } = d.op else { panic!() };
                assert!(d.okay() && d.data == want[&addr], "{addr:#x}");
            }
        }
        assert_eq!(b.late, [0; 2]);
        assert_eq!(b.s.get(b.idle), 1);
    }
}

/// The core's clock stops, at any time, with any load: each access is answered in time, by filler;
/// and when the clock is back, late data reach no later read.
#[test]
fn what_the_core_does_not_answer_is_answered_in_time() {
    let mut fillers = [0, 0];
    for seed in 0..20 {
        let mut b = Bench::new(8_000, None, AxiMemoryConfig::bench(30, 20));
        patterned(&mut b);
        let mut rng = Rng::new(seed);
        for _ in 0..4 {
            let most = if rng.one_in(2) { 1 } else { 16 };
            let load = |b: &mut Bench, rng: &mut Rng, n: u64| {
                for _ in 0..n {
                    let beats = 1 + rng.below(most);
                    let addr = (rng.below(256) << 12) + 64 * rng.below(64 - beats);
                    b.h2c.push(AxiOp::Read { id: 7, addr, beats: beats as u32 });
                    let addr = 0x20_0000 + 0x1000 * rng.below(16);
                    b.h2c.write(addr, &vec![1; 64 * beats as usize]);
                }
            };
            load(&mut b, &mut rng, 24);
            b.time(rng.below(2_000_000));
            b.core = 0;
            load(&mut b, &mut rng, 60);
            let done = b.finish();
            check_patterns(&done);
            for d in &done {
                let write = usize::from(d.op.is_write());
                // some beats may have come before
                fillers[write] += u64::from(!d.okay());
                assert!(d.end - d.start <= CYCLES, "seed {seed}: {} cycles", d.end - d.start);
            }
            assert_eq!(b.s.get(b.idle), 0);
            b.core = 8_000;
            if rng.one_in(2) {
                // late data come between new accesses
                load(&mut b, &mut rng, 20);
            } else {
                b.time(20_000_000);
                assert_eq!(b.s.get(b.idle), 1);
                let late = b.late;
                load(&mut b, &mut rng, 20);
                let done = b.finish();
                assert!(done.iter().all(AxiDone::okay));
                check_patterns(&done);
                assert_eq!(b.late, late);
            }
            let done = b.finish();
            check_patterns(&done);
            b.time(20_000_000);
        }
    }
    assert!(fillers[0] > 0 && fillers[1] > 0);
    println!("answered by filler: {fillers:?} reads and writes");
}

/// Without a link accesses are answered at once, also those that are open when it goes down, and the
/// path may be reset at any time.
#[test]
fn without_a_link_accesses_are_answered_at_once() {
    for seed in 0..20 {
        let mut b = Bench::new(8_000, None, AxiMemoryConfig::bench(30, 20));
        patterned(&mut b);
        let mut rng = Rng::new(seed);
        for _ in 0..4 {
            for n in 0..32 {
                let beats = 1 + rng.below(4);
                b.h2c.push(AxiOp::Read { id: 7, addr: n << 12, beats: beats as u32 });
                b.h2c.write(0x20_0000 + (n << 12), &vec![1; 64 * beats as usize]);
            }
            b.time(rng.below(600_000));
            b.s.set(b.link, 0);
            let reset = rng.one_in(2);
            if reset {
                b.s.set(b.run, 0);
                b.s.set(b.core_rst, 0);
                if rng.one_in(2) {
                    b.core = 0;
                }
            }
            let from = b.now;
            let done = b.finish();
            check_patterns(&done);
            // as fast as the answers leave
            assert!(b.now - from <= (5 * 32 + 10) * MAIN, "{} ps", b.now - from);
            b.h2c.push(AxiOp::Read { id: 7, addr: 0, beats: 3 });
            b.h2c.write(0, &[7; 64]);
            for d in b.finish() {
                assert!(is_filler(&d) && d.end - d.start <= 5 + 2 * 4, "{d:?}");
            }
            if reset {
                b.core = 8_000;
                b.time(400_000);
                b.mem.reset(&mut b.s);
                assert_eq!(b.s.get(b.idle), 1);
                b.start();
            } else {
                b.s.set(b.link, 1);
            }
            b.time(20_000_000);
            b.h2c.read(0, 4);
            b.h2c.write(0x20_0000, &[7; 64]);
            let done = b.finish();
            assert!(done.iter().all(AxiDone::okay), "{done:?}");
            check_patterns(&done);
        }
        assert_eq!(b.late, [0; 2]);
    }
}

/// 32 reads of the host, open at once, beside Shield and engine that saturate the port.
#[test]
fn reads_beside_a_busy_port_are_answered_in_time() {
    for (mhz, period, latency) in [(100, 10_000, 120), (125, 8_000, 150)] {
        let memory =
            AxiMemoryConfig { outstanding: 1024, ..AxiMemoryConfig::bench(latency, latency / 2) };
        let mut b = Bench::new(period, None, memory);
        for master in &mut b.busy {
            master.outstanding = 64;
            for n in 0..1500 {
                master.push(AxiOp::Read { id: n as u8 & 63, addr: n << 9, beats: 8 });
                let (id, addr, data) = (n as u8 & 63, n << 9, vec![1; 512]);
                master.push(AxiOp::Write { id, addr, data, strobes: Vec::new() });
            }
        }
        b.time(3000 * period);
        let before = b.mem.counters;
        b.time(1000 * period);
        assert!(b.mem.counters.read_beats - before.read_beats > 980);
        for n in 0..32 {
            b.h2c.push(AxiOp::Read { id: n as u8, addr: 0x80_0000 + (n << 12), beats: 1 });
        }
        let from = b.now;
        assert!(b.finish().iter().all(AxiDone::okay));
        let us = (b.now - from) as f64 / 1e6;
        println!("{mhz} MHz: the last of 32 reads is answered after {us:.2} us");
        assert!(us <= 4.0, "{us} us");
        assert_eq!(b.late, [0; 2]);
    }
}
