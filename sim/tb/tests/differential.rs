//! The functional model and the RTL see the same seeded traffic; every answer, every sealed byte, every tag and every
//! statement must be the same, and what the reference says.

use shef_proto::channel::Request;
use shef_proto::config::Mode;
use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;
use shef_rtl::build;
use shef_tb::{Bench, ModelBench, Owner, Reference, RtlBench, Traffic, design};
use std::path::PathBuf;

const SHIELD: &str = include_str!("shield.toml");

fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("differential")
}

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}

/// Runs `rounds` epochs of traffic on a bench; returns every answer's digest-like trace and the chunks touched.
fn run(bench: &mut dyn Bench, name: &str, seed: u64, rounds: u32) -> (Vec<u8>, u64) {
    let again = format!("{name}: SHEF_SEED={seed} cargo test -p shef-tb --test differential");
    let config = shef_gen::shield::parse(SHIELD).expect("shield.toml").config;
    let mut owner = Owner::open(bench, &config, &first_epochs(&config, 1), seed).unwrap_or_else(|e| panic!("{again}: {e}"));
    let mut reference = Reference::new(&config, 1);
    let mut traffic = Traffic::new(seed);
    let mut content = Rng::new(seed ^ 0xc0_17e7);
    let mut trace = Vec::new();
    let call = |owner: &mut Owner, bench: &mut dyn Bench, request: Request| {
        owner.call(bench, &request).unwrap_or_else(|e| panic!("{again}: {e}"));
    };
    for round in 0..rounds {
        for (addr, data) in reference.fill_inputs(&mut content, owner.keys()) {
            bench.mem_write(addr, &data);
        }
        for (part, share) in [(0, 4), (1, 8)] {
            let phase = traffic.phase(&mut reference, 300, share);
            let got = bench.burst(&phase.ops).unwrap_or_else(|e| panic!("{again}: round {round}: {e}"));
            for ((op, want), got) in phase.ops.iter().zip(&phase.expected).zip(&got) {
                assert!(got == want, "{again}: round {round}, phase {part}: {op:?}\n got {:?}\nwant {:?}", got.okay, want.okay);
            }
            let flush = if traffic.rng().one_in(2) { Request::flush() } else { Request::invalidate() };
            call(&mut owner, bench, flush);
        }
        // What lies in memory, byte for byte.
        for (region, chunk, addr, data, tag_addr, tag) in reference.outputs(owner.keys()) {
            let (mut d, mut t) = (vec![0; data.len()], [0; 16]);
            bench.mem_read(addr, &mut d);
            bench.mem_read(tag_addr, &mut t);
            assert!(d == data && t == tag, "{again}: round {round}: region {region} chunk {chunk} at {addr:#x} is not as sealed");
            trace.extend_from_slice(&t);
        }
        let statement = owner.statement(bench).unwrap_or_else(|e| panic!("{again}: {e}"));
        let s = statement.shield();
        assert!(!s.stopped && s.faults == 0, "{again}: round {round}: {s:?}");
        assert_eq!(s.refusals, reference.refusals, "{again}: refusals in round {round}: {s:?}");
        for r in config.regions() {
            let page = statement.region(r.id).expect("page");
            assert_eq!(page.epoch, reference.epochs[usize::from(r.id)], "{again}");
            if let Some(map) = statement.written(r.id) {
                for c in 0..r.chunks() {
                    assert_eq!(map.is_written(c), reference.is_written(r.id, c), "{again}: region {} chunk {c}", r.id);
                }
            }
        }
        if round + 1 < rounds {
            reference.next_epoch();
            for r in config.regions().iter().filter(|r| matches!(r.mode, Mode::Input | Mode::Output)) {
                let epoch = reference.epochs[usize::from(r.id)];
                call(&mut owner, bench, Request::epoch(r.id, epoch));
            }
        }
    }
    (trace, reference.chunks)
}

#[test]
fn the_model_alone_is_as_the_reference_says() {
    let config = shef_gen::shield::parse(SHIELD).expect("shield.toml").config;
    for k in 0..4 {
        run(&mut ModelBench::new(&config), "model", seed() + k, 2);
    }
}

#[test]
fn model_and_rtl_agree_bit_for_bit() {
    let (spec, config) = design(SHIELD, &scratch()).expect("design");
    let lib = build(&spec.fast()).unwrap_or_else(|e| panic!("{e}"));
    let (seed, rounds) = (seed(), 4);
    let (model, chunks) = run(&mut ModelBench::new(&config), "model", seed, rounds);
    let mut rtl = RtlBench::new(&lib, Some(seed)).expect("bench");
    let start = std::time::Instant::now();
    let (hardware, same) = run(&mut rtl, "rtl", seed, rounds);
    assert!(model == hardware && chunks == same, "SHEF_SEED={seed}: tags differ");
    assert!(chunks >= 10_000, "only {chunks} chunks");
    let cycles = rtl.core().cycles();
    println!(
        "seed {seed}: {chunks} chunks, {cycles} cycles, {:.0} cycles/s",
        cycles as f64 / start.elapsed().as_secs_f64()
    );
}
