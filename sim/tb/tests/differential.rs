//! The functional model and the RTL see the same seeded traffic; every answer, every sealed byte,
//! every tag and every statement must be equal, and match the reference. After tampering or a
//! memory failure both stop in the same way.

mod rounds;

use rounds::run;
use shef_model::MemoryFault;
use shef_proto::channel::{FaultKind, ShieldRequest, ShieldStatement};
use shef_proto::config::Config;
use shef_proto::load::first_epochs;
use shef_rtl::Library;
use shef_rtl::agent::Rng;
use shef_tb::{Bench, ModelBench, Op, Owner, Reference, RtlBench, built};
use std::path::PathBuf;

const SHIELD: &str = include_str!("shield.toml");

fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("differential")
}

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}

#[test]
fn the_model_alone_is_as_the_reference_says() {
    let config = shef_gen::shield::parse(SHIELD).expect("shield.toml").config;
    for k in 0..4 {
        run(&mut ModelBench::new(&config), &config, "model", seed() + k, 2);
    }
}

fn library() -> (&'static Library, &'static Config) {
    built(SHIELD, &scratch()).unwrap_or_else(|e| panic!("{e}"))
}

/// The tampering with memory before chunk 3 of a region is read.
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
    const ALL: [Self; 6] =
        [Self::Data, Self::Tag, Self::Swap, Self::OldEpoch, Self::BusError, Self::Silence];

    fn kind(self) -> FaultKind {
        match self {
            Self::BusError => FaultKind::Bus,
            Self::Silence => FaultKind::Timeout,
            _ => FaultKind::Tag,
        }
    }
}

/// Chunk 3 of region 1 is attacked, then read between good reads; returns the statement after it.
fn attacked(bench: &mut dyn Bench, config: &Config, attack: Attack, seed: u64) -> ShieldStatement {
    let r = config.regions()[1].clone();
    let mut owner = Owner::open(bench, config, &first_epochs(config, 5), seed)
        .unwrap_or_else(|e| panic!("{attack:?}: {e}"));
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
            owner
                .call(bench, &ShieldRequest::epoch(1, 6))
                .unwrap_or_else(|e| panic!("{attack:?}: {e}"));
        }
        // Set by the caller: each bench has its own way.
        Attack::BusError | Attack::Silence => {}
    }
    let read = |n: u64| Op::Read { id: 2, addr: r.chunk_addr(n), beats: r.chunk / 64 };
    if attack != Attack::OldEpoch {
        let got = bench.burst(&[read(1)]).expect("answers");
        assert!(
            got[0].okay.iter().all(|o| *o),
            "{attack:?}: a good chunk was refused before the attack was met"
        );
    }
    let got = bench.burst(&[read(3)]).unwrap_or_else(|e| panic!("{attack:?}: {e}"));
    assert!(
        got[0].okay.iter().all(|o| !o) && got[0].data.iter().all(|b| *b == 0),
        "{attack:?}: words got through"
    );
    let got = bench.burst(&[read(1), read(9)]).unwrap_or_else(|e| panic!("{attack:?}: {e}"));
    assert!(
        got.iter().all(|o| o.okay.iter().all(|k| !k) && o.data.iter().all(|b| *b == 0)),
        "{attack:?}: it did not stop"
    );
    *owner.statement(bench).unwrap_or_else(|e| panic!("{attack:?}: {e}")).shield()
}

#[test]
fn both_stop_alike() {
    let (lib, config) = library();
    for (i, attack) in Attack::ALL.into_iter().enumerate() {
        let seed = seed() + i as u64;
        let mut model = ModelBench::new(config);
        let mut rtl = RtlBench::new(lib, config, Some(seed)).expect("bench");
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
    let (model, chunks) = run(&mut ModelBench::new(config), config, "model", seed, rounds);
    let mut rtl = RtlBench::new(lib, config, Some(seed)).expect("bench");
    let start = std::time::Instant::now();
    let (hardware, same) = run(&mut rtl, config, "rtl", seed, rounds);
    assert!(model == hardware && chunks == same, "SHEF_SEED={seed}: tags differ");
    assert!(chunks >= 10_000, "only {chunks} chunks");
    let cycles = rtl.core().cycles();
    println!(
        "seed {seed}: {chunks} chunks, {cycles} cycles, {:.0} cycles/s",
        cycles as f64 / start.elapsed().as_secs_f64()
    );
}
