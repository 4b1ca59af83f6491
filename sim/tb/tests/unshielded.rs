//! A memory without a Shield (`AxiMemory::unshielded`) answers an accelerator as the Shield does:
//! the same bursts are refused, narrow and unaligned ones give the same bytes.

use shef_proto::config::{Config, Mode, Region};
use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;
use shef_rtl::{
    AxiBurst, AxiDone, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Library, Sim,
    Unshielded, build_once,
};
use shef_tb::{Owner, Reference, RtlBench, built};
use std::path::Path;

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_126)
}

fn library() -> (&'static Library, &'static Config) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unshielded");
    built(include_str!("modes.toml"), &dir).unwrap_or_else(|e| panic!("{e}"))
}

/// The accelerator's port with a Shield, and a port with memory behind it.
struct Both {
    shield: RtlBench,
    sim: Sim,
    port: AxiMaster,
    memory: AxiMemory,
}

impl Both {
    /// A session; the inputs are in both memories.
    fn new(seed: u64) -> Self {
        let (library, config) = library();
        let mut shield = RtlBench::new(library, config, Some(seed)).expect("bench");
        let owner =
            Owner::open(&mut shield, config, &first_epochs(config, 1), seed).expect("session");
        let inputs = Reference::new(config, 1).fill_inputs(&mut Rng::new(seed), owner.keys());
        for (addr, data) in inputs {
            shield.core().memory_mut().write(addr, &data);
        }
        let wires = build_once(&DesignSpec::new("loop").source("sim/rtl/tests/loop.sv"));
        let mut sim = Sim::new(wires.expect("build")).expect("instance");
        sim.reset("rst_n", 2);
        let port = AxiMaster::new(&sim, "acc0_", Some(seed)).expect("master");
        let mut memory =
            AxiMemory::new(&sim, "mem0_", AxiMemoryConfig::seeded(seed)).expect("memory");
        memory.unshielded = Some(Box::new(Unshielded::new(config.regions())));
        let mut both = Self { shield, sim, port, memory };
        for region in config.regions().iter().filter(|region| region.mode == Mode::Input) {
            for addr in (region.base..region.base + region.size).step_by(1024) {
                let done = both.shielded(AxiOp::Read { id: 0, addr, beats: 16 });
                assert!(done.okay());
                both.memory.memory.write(addr, &done.data);
            }
        }
        both
    }

    fn shielded(&mut self, op: AxiOp) -> AxiDone {
        self.shield.master().push(op);
        for _ in 0..40_000 {
            if let Some(done) = self.shield.master().pop() {
                self.shield.rules().expect("bus rules");
                return done;
            }
            self.shield.step();
        }
        panic!("no answer");
    }

    fn unshielded(&mut self, op: AxiOp) -> AxiDone {
        self.port.push(op);
        let done = self.port.finish(&mut self.sim, &mut [&mut self.memory], 10_000);
        done.expect("an answer").remove(0)
    }

    /// Gives both the same burst and compares responses and bytes. Returns whether all of it was
    /// accepted.
    fn same(&mut self, burst: AxiBurst, op: &AxiOp) -> bool {
        let (shielded, unshielded) = (self.shielded(op.clone()), self.unshielded(op.clone()));
        assert_eq!(shielded.resp, unshielded.resp, "{burst:x?}");
        if !burst.write {
            let beats = shielded.data.chunks(64).zip(unshielded.data.chunks(64));
            for (n, (one, other)) in (0..).zip(beats) {
                let refused = shielded.resp[n as usize] != 0;
                let lanes = if refused { u64::MAX } else { burst.lanes(n) };
                for lane in (0..64).filter(|lane| lanes >> lane & 1 == 1) {
                    assert_eq!(one[lane], other[lane], "{burst:x?}, beat {n}, lane {lane}");
                    assert!(!refused || one[lane] == 0, "{burst:x?}: bytes of a refused beat");
                }
            }
        }
        assert_eq!(self.memory.violations(), &[][..] as &[String]);
        shielded.okay()
    }
}

/// A burst in the first `window` bytes of a region, or near the end of a page.
fn random_burst(rng: &mut Rng, base: u64, window: u64) -> AxiBurst {
    let size = if rng.one_in(30) { 7 } else { rng.below(7) as u8 };
    let burst = if rng.one_in(16) { [0, 2, 3][rng.below(3) as usize] } else { 1 };
    let mut addr = base + rng.below(window);
    if rng.one_in(2) {
        addr &= !((1 << size) - 1);
    }
    AxiBurst { write: rng.one_in(2), addr, beats: 1 + rng.below(20) as u32, size, burst }
}

/// The burst with random data, whose strobes stay in its lanes.
fn with_data(rng: &mut Rng, burst: AxiBurst) -> AxiOp {
    let id = rng.below(256) as u8;
    if !burst.write {
        return AxiOp::odd(id, burst);
    }
    let mut data = vec![0; burst.beats as usize * 64];
    rng.fill(&mut data);
    let strobes = (0..burst.beats).map(|n| {
        let lanes = if burst.size > 6 { u64::MAX } else { burst.lanes(n) };
        if rng.one_in(4) { lanes & rng.next_u64() } else { lanes }
    });
    let strobes = strobes.collect();
    AxiOp::Odd { id, burst, data, strobes }
}

#[test]
fn a_memory_without_a_shield_answers_as_the_shield_does() {
    let (_, config) = library();
    let mut both = Both::new(seed());
    let mut rng = Rng::new(seed());
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..3000 {
        let r: &Region = &config.regions()[rng.below(config.regions().len() as u64) as usize];
        let outside = rng.one_in(20);
        let (base, window) = if outside { (0x7000_0000, 8192) } else { (r.base, r.size.min(8192)) };
        let mut burst = random_burst(&mut rng, base, window);
        // What is left of an output chunk depends on when the Shield closes it: below.
        if !outside && r.mode == Mode::Output {
            burst.burst = 2;
        }
        let op = with_data(&mut rng, burst);
        if both.same(burst, &op) {
            accepted += 1;
        } else {
            refused += 1;
        }
    }
    assert!(accepted > 1000 && refused > 300, "{accepted} accepted, {refused} refused");
}

#[test]
fn chunks_of_outputs_are_read_after_and_written_until_they_are_whole() {
    let (_, config) = library();
    let (mut early, mut late) = (0, 0);
    // The second set has so few lines that it closes chunks to make room.
    let outputs = config.regions().iter().filter(|r| r.mode == Mode::Output && r.set == 0);
    for (n, region) in (0..).zip(outputs) {
        let mut both = Both::new(seed() + n);
        let mut rng = Rng::new(seed() + n);
        for _ in 0..400 {
            // Two chunks, so that the Shield closes none to make room.
            let burst = random_burst(&mut rng, region.base, 2 * u64::from(region.chunk));
            let end = burst.line(burst.beats - 1);
            if end >= region.base + 2 * u64::from(region.chunk) {
                continue;
            }
            let op = with_data(&mut rng, burst);
            let okay = both.same(burst, &op);
            let odd = burst.burst != 1 || burst.size > 6 || burst.crosses_page();
            early += u32::from(!burst.write && !okay && !odd);
            late += u32::from(burst.write && !okay && !odd);
        }
    }
    assert!(early > 0 && late > 0, "{early} reads before a write, {late} writes after the last");
}

/// The shell of the bench has the checker of the simulation shells: it is on when it is asked for.
#[test]
fn the_bench_reports_broken_rules() {
    let (library, config) = library();
    let mut bench = RtlBench::new(library, config, None).expect("bench");
    let owner = Owner::open(&mut bench, config, &first_epochs(config, 1), 1).expect("session");
    let inputs = Reference::new(config, 1).fill_inputs(&mut Rng::new(1), owner.keys());
    for (addr, data) in inputs {
        bench.core().memory_mut().write(addr, &data);
    }
    let input = config.regions().iter().find(|r| r.mode == Mode::Input).expect("an input");
    let burst = |burst| AxiBurst { write: false, addr: input.base, beats: 2, size: 6, burst };
    let mut rules = |on: bool, kind: u8| {
        match on {
            true => bench.core().check(None).expect("a checker"),
            false => bench.core().uncheck(),
        }
        bench.master().push(AxiOp::odd(0, burst(kind)));
        bench.steps(4000);
        assert!(bench.master().pop().is_some(), "an answer");
        let reports = bench.core().checked().reports;
        reports.into_iter().map(|report| report.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(true, 1), [""; 0]);
    assert_eq!(rules(true, 2), ["SHEF_ERRM_BURST"]);
    assert_eq!(rules(false, 2), [""; 0]);
}
