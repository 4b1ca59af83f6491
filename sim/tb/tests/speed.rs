//! Simulation speed of the whole Shield; `cargo test --release -p shef-tb --test speed -- --ignored
//! --nocapture`. Measures processor time, so that other load does not count.

use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;
use shef_rtl::build;
use shef_tb::{Bench, Op, Owner, Reference, RtlBench, design};

/// Processor time of this thread in nanoseconds.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
#[ignore = "a measurement"]
fn cycles_per_second() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential");
    let (spec, config) = design(include_str!("shield.toml"), &dir).expect("design");
    let lib = build(&spec.fast()).unwrap_or_else(|e| panic!("{e}"));
    let mut bench = RtlBench::new(&lib, &config, None).expect("bench");
    let show = |what: &str, cycles: u64, ns: u64, bytes: u64| {
        println!(
            "{what}: {} ns a cycle, {} k cycles/s, {:.2} B/cycle, {:.1} MB/s simulated",
            ns / cycles.max(1),
            cycles * 1_000_000 / ns.max(1),
            bytes as f64 / cycles.max(1) as f64,
            bytes as f64 * 1000.0 / ns.max(1) as f64
        );
    };
    let t = processor_time();
    let mut owner =
        Owner::open(&mut bench, &config, &first_epochs(&config, 1), 1).expect("session");
    show("opening a session", bench.core().cycles(), processor_time() - t, 0);
    let mut reference = Reference::new(&config, 1);
    for (addr, data) in reference.fill_inputs(&mut Rng::new(1), owner.keys()) {
        bench.mem_write(addr, &data);
    }
    for (name, region) in [("64 B", 0), ("512 B", 1), ("4 KiB", 2)] {
        let r = config.regions()[region].clone();
        for write in [false, true] {
            let r = if write { config.regions()[region + 3].clone() } else { r.clone() };
            let ops: Vec<Op> = (0..r.size / 4096)
                .map(|i| {
                    let (id, addr) = (0, r.base + i * 4096);
                    if write {
                        Op::Write { id, addr, data: vec![7; 4096], strobes: vec![] }
                    } else {
                        Op::Read { id, addr, beats: 64 }
                    }
                })
                .collect();
            let (t, c) = (processor_time(), bench.core().cycles());
            let done = bench.burst(&ops).expect("answers");
            assert!(done.iter().all(|d| d.okay.iter().all(|o| *o)));
            let what = format!("{} of {name} chunks", if write { "writes" } else { "reads" });
            show(&what, bench.core().cycles() - c, processor_time() - t, r.size);
        }
    }
    let (t, c) = (processor_time(), bench.core().cycles());
    bench.core().step(200_000);
    show("idle", bench.core().cycles() - c, processor_time() - t, 0);
    assert!(!owner.statement(&mut bench).expect("statement").shield().stopped);
}
