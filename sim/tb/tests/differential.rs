//! The functional model and the RTL see the same seeded traffic; every answer, every sealed byte, every tag and every
//! statement must be the same, and what the reference says. After tampering or a failing memory both stop alike.

use shef_model::MemoryFault;
use shef_proto::channel::{FaultKind, Request, ShieldStatement};
use shef_proto::config::{Config, Mode};
use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;
use shef_rtl::{Library, build};
use shef_tb::{Bench, ModelBench, Op, Owner, Reference, RtlBench, Traffic, design};
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
    let again = format!("{name}: SHEF_SEED={seed} SHEF_WAVES=target/waves cargo test -p shef-tb --test differential");
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
        for c in reference.outputs(owner.keys()) {
            let (mut d, mut t) = (vec![0; c.data.len()], [0; 16]);
            bench.mem_read(c.addr, &mut d);
            bench.mem_read(c.tag_addr, &mut t);
            assert!(d == c.data && t == c.tag, "{again}: round {round}: region {} chunk {} is not as sealed", c.region, c.chunk);
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

fn library() -> (&'static Library, &'static Config) {
    static BUILT: std::sync::OnceLock<(Library, Config)> = std::sync::OnceLock::new();
    let (lib, config) = BUILT.get_or_init(|| {
        let (spec, config) = design(SHIELD, &scratch()).expect("design");
        (build(&spec.fast()).unwrap_or_else(|e| panic!("{e}")), config)
    });
    (lib, config)
}

/// What is done to the memory before chunk 3 of a region is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    Data,
    Tag,
    Swap,
    OldEpoch,
    BusError,
    Silence,
}

impl Attack {
    const ALL: [Self; 6] = [Self::Data, Self::Tag, Self::Swap, Self::OldEpoch, Self::BusError, Self::Silence];

    fn kind(self) -> FaultKind {
        match self {
            Self::BusError => FaultKind::Bus,
            Self::Silence => FaultKind::Timeout,
            _ => FaultKind::Tag,
        }
    }
}

/// Region 1, chunk 3 is attacked, then read between good reads; the statement after it.
fn attacked(bench: &mut dyn Bench, config: &Config, attack: Attack, seed: u64) -> ShieldStatement {
    let r = config.regions()[1].clone();
    let mut owner = Owner::open(bench, config, &first_epochs(config, 5), seed).unwrap_or_else(|e| panic!("{attack:?}: {e}"));
    let mut reference = Reference::new(config, 5);
    let mut rng = Rng::new(seed);
    for (addr, data) in reference.fill_inputs(&mut rng, owner.keys()) {
        bench.mem_write(addr, &data);
    }
    let (at, tag_at) = (r.chunk_addr(3), r.tag_addr(3));
    let flip = |bench: &mut dyn Bench, a: u64| {
        let mut b = [0];
        bench.mem_read(a, &mut b);
        b[0] ^= 0x10;
        bench.mem_write(a, &b);
    };
    match attack {
        Attack::Data => flip(bench, at + 77),
        Attack::Tag => flip(bench, tag_at + 15),
        Attack::Swap => {
            let (mut data, mut tag) = (vec![0; r.chunk as usize], [0; 16]);
            bench.mem_read(r.chunk_addr(4), &mut data);
            bench.mem_read(r.tag_addr(4), &mut tag);
            bench.mem_write(at, &data);
            bench.mem_write(tag_at, &tag);
        }
        Attack::OldEpoch => {
            owner.call(bench, &Request::epoch(1, 6)).unwrap_or_else(|e| panic!("{attack:?}: {e}"));
        }
        // Set by the caller: each bench has its own way.
        Attack::BusError | Attack::Silence => {}
    }
    let read = |n: u64| Op::Read { id: 2, addr: r.chunk_addr(n), beats: r.chunk / 64 };
    if attack != Attack::OldEpoch {
        let got = bench.burst(&[read(1)]).expect("answers");
        assert!(got[0].okay.iter().all(|o| *o), "{attack:?}: a good chunk was refused before the attack was met");
    }
    let got = bench.burst(&[read(3)]).unwrap_or_else(|e| panic!("{attack:?}: {e}"));
    assert!(got[0].okay.iter().all(|o| !o) && got[0].data.iter().all(|b| *b == 0), "{attack:?}: words got through");
    let got = bench.burst(&[read(1), read(9)]).unwrap_or_else(|e| panic!("{attack:?}: {e}"));
    assert!(got.iter().all(|o| o.okay.iter().all(|k| !k) && o.data.iter().all(|b| *b == 0)), "{attack:?}: it did not stop");
    *owner.statement(bench).unwrap_or_else(|e| panic!("{attack:?}: {e}")).shield()
}

#[test]
fn both_stop_alike() {
    let (lib, config) = library();
    for (i, attack) in Attack::ALL.into_iter().enumerate() {
        let seed = seed() + i as u64;
        let mut model = ModelBench::new(config);
        let mut rtl = RtlBench::new(lib, Some(seed)).expect("bench");
        let at = config.regions()[1].chunk_addr(3);
        match attack {
            Attack::BusError => {
                model.0.add_fault(at..at + 64, MemoryFault::Error);
                rtl.core().axi_memory().error_ranges.push(at..at + 64);
            }
            Attack::Silence => {
                model.0.add_fault(at..at + 64, MemoryFault::Hang);
                rtl.core().axi_memory().silent_ranges.push(at..at + 64);
            }
            _ => {}
        }
        let m = attacked(&mut model, config, attack, seed);
        let h = attacked(&mut rtl, config, attack, seed);
        assert_eq!(m, h, "{attack:?}, SHEF_SEED={seed}");
        assert!(h.stopped && h.faults >= 1 && h.fault_kind == attack.kind(), "{attack:?}: {h:?}");
        let place = match attack {
            Attack::Silence => (0xff, 0, 0),
            Attack::OldEpoch => (1, 3, 6),
            _ => (1, 3, 5),
        };
        assert_eq!((h.fault_region, h.fault_chunk, h.fault_version), place, "{attack:?}: {h:?}");
    }
}

#[test]
fn model_and_rtl_agree_bit_for_bit() {
    let (lib, config) = library();
    let (seed, rounds) = (seed(), 6);
    let (model, chunks) = run(&mut ModelBench::new(config), "model", seed, rounds);
    let mut rtl = RtlBench::new(lib, Some(seed)).expect("bench");
    let start = std::time::Instant::now();
    let (hardware, same) = run(&mut rtl, "rtl", seed, rounds);
    assert!(model == hardware && chunks == same, "SHEF_SEED={seed}: tags differ");
    assert!(chunks >= 10_000, "only {chunks} chunks");
    let cycles = rtl.core().cycles();
    println!("seed {seed}: {chunks} chunks, {cycles} cycles, {:.0} cycles/s", cycles as f64 / start.elapsed().as_secs_f64());
}
