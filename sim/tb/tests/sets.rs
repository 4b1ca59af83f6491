//! Several engine sets behind shared and separate ports: the same seeded traffic works as with one,
//! order per id holds, faults and wipes reach all sets, and an unsolicited answer is a protocol
//! fault.

mod rounds;

use rounds::run;
use shef_proto::channel::{FaultKind, ShieldStatement};
use shef_proto::config::Config;
use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;
use shef_rtl::{Hostile, Library};
use shef_tb::{Bench, ModelBench, Op, Outcome, Owner, Reference, RtlBench, built};

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}

fn library() -> (&'static Library, &'static Config) {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("sets");
    built(include_str!("sets.toml"), &dir).unwrap_or_else(|e| panic!("{e}"))
}

/// For `cargo xtask test --full`; `modes` covers two sets behind one port, the hostile bench two
/// sets with a port each.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: a design of four sets"]
    fn random_traffic_is_as_the_reference_says() {
        let (lib, config) = library();
        for seed in [seed(), seed() + 1] {
            let (model, chunks) = run(&mut ModelBench::new(config), config, "model", seed, 3);
            let mut rtl = RtlBench::new(lib, config, Some(seed)).expect("bench");
            let (hardware, same) = run(&mut rtl, config, "rtl", seed, 3);
            assert!(model == hardware && chunks == same, "SHEF_SEED={seed}: tags differ");
            for (p, m) in rtl.core().axi_memories().iter().enumerate() {
                assert!(
                    m.counters.reads > 100 && m.counters.writes > 100,
                    "memory port {p}: {:?}",
                    m.counters
                );
            }
        }
    }

    /// A session with its inputs in memory.
    fn session(bench: &mut RtlBench, config: &Config, seed: u64) -> (Owner, Vec<(u64, Vec<u8>)>) {
        let mut owner =
            Owner::open(bench, config, &first_epochs(config, 1), seed).expect("session");
        let mut reference = Reference::new(config, 1);
        let sealed = reference.fill_inputs(&mut Rng::new(seed), owner.keys());
        for (addr, data) in &sealed {
            bench.mem_write(*addr, data);
        }
        owner.statement(bench).expect("statement");
        (owner, sealed)
    }

    /// A read of every input region and a write of every output region, one chunk each, all with
    /// the same id.
    fn one_of_each(config: &Config, chunk: u64) -> Vec<Op> {
        let op = |r: &shef_proto::config::Region| {
            let (id, addr, n) = (7, r.chunk_addr(chunk), r.chunk);
            if r.mode.name() == "input" {
                Op::Read { id, addr, beats: n / 64 }
            } else {
                Op::Write { id, addr, data: vec![0x3c; n as usize], strobes: Vec::new() }
            }
        };
        config.regions().iter().map(op).collect()
    }

    fn refused(o: &Outcome) -> bool {
        o.okay.iter().all(|k| !k) && o.data.iter().all(|b| *b == 0)
    }

    fn stopped_by(
        bench: &mut RtlBench,
        owner: &mut Owner,
        config: &Config,
        kind: FaultKind,
    ) -> ShieldStatement {
        let after = bench.burst(&one_of_each(config, 5)).expect("every burst is answered");
        assert!(after.iter().all(refused), "{kind:?}: a set goes on: {after:?}");
        let s = *owner.statement(bench).expect("statement").shield();
        assert!(s.stopped && s.fault_kind == kind, "{s:?}");
        s
    }

    #[test]
    #[ignore = "long: a design of four sets"]
    fn a_fault_in_one_set_stops_all() {
        let (lib, config) = library();
        for region in [2u8, 6] {
            let mut bench =
                RtlBench::new(lib, config, Some(seed() + u64::from(region))).expect("bench");
            let (mut owner, _) = session(&mut bench, config, 9);
            let good = bench.burst(&one_of_each(config, 1)).expect("answers");
            assert!(good.iter().all(|o| o.okay.iter().all(|k| *k)), "{good:?}");
            let r = &config.regions()[usize::from(region)];
            let mut byte = [0];
            bench.mem_read(r.chunk_addr(3), &mut byte);
            bench.mem_write(r.chunk_addr(3), &[byte[0] ^ 4]);
            let bad = bench
                .burst(&[Op::Read { id: 1, addr: r.chunk_addr(3), beats: 1 }])
                .expect("an answer");
            assert!(refused(&bad[0]));
            let s = stopped_by(&mut bench, &mut owner, config, FaultKind::Tag);
            assert_eq!((s.fault_region, s.fault_chunk, s.faults), (region, 3, 1), "{s:?}");
        }
    }

    #[test]
    #[ignore = "long: a design of four sets"]
    fn an_answer_for_nobody_is_a_protocol_fault() {
        let (lib, config) = library();
        // Port 0 has sets 0 and 1, port 1 has sets 2 and 3.
        let cases = [
            (0, Hostile::UnownedR { id: 0x80 }),
            (1, Hostile::UnownedR { id: 0xc0 }),
            (1, Hostile::UnownedB { id: 0x40 }),
        ];
        for (port, hostile) in cases {
            let mut bench = RtlBench::new(lib, config, None).expect("bench");
            let (mut owner, _) = session(&mut bench, config, 3);
            bench.core().axi_memories()[port].inject(hostile);
            bench.core().step(50);
            assert!(bench.core().axi_memories()[port].injected_all());
            let s = stopped_by(&mut bench, &mut owner, config, FaultKind::Protocol);
            assert_eq!(s.fault_region, 0xff, "{hostile:?}: {s:?}");
        }
    }

    #[test]
    #[ignore = "long: a design of four sets"]
    fn a_port_that_hangs_ends_all_bursts() {
        let (lib, config) = library();
        let mut bench = RtlBench::new(lib, config, Some(seed())).expect("bench");
        let (mut owner, _) = session(&mut bench, config, 4);
        bench.core().axi_memories()[1].frozen = true;
        let got = bench.burst(&one_of_each(config, 2)).expect("every burst is answered");
        let hung = config
            .regions()
            .iter()
            .zip(&got)
            .filter(|(r, _)| r.port == 1 && r.mode.name() == "input");
        assert!(hung.map(|(_, o)| o).all(refused), "{got:?}");
        stopped_by(&mut bench, &mut owner, config, FaultKind::Timeout);
    }

    #[test]
    #[ignore = "long: a design of four sets"]
    fn refusals_of_all_sets_count() {
        let (lib, config) = library();
        let mut bench = RtlBench::new(lib, config, None).expect("bench");
        let (mut owner, _) = session(&mut bench, config, 6);
        let wrap: Vec<Op> = (0..200u32)
            .map(|i| {
                let r = &config.regions()[i as usize % config.regions().len()];
                Op::Wrap { write: i % 3 == 0, id: 0, addr: r.base, beats: 2 }
            })
            .collect();
        assert!(bench.burst(&wrap).expect("answers").iter().all(refused));
        let s = *owner.statement(&mut bench).expect("statement").shield();
        assert!(!s.stopped && s.refusals == 200, "{s:?}");
    }

    #[test]
    #[ignore = "long: a design of four sets"]
    fn a_wipe_in_the_middle_of_traffic_leaves_nothing_behind() {
        let (lib, config) = library();
        for run_up in [40, 300] {
            let mut bench = RtlBench::new(lib, config, Some(seed() + run_up)).expect("bench");
            let (_, sealed) = session(&mut bench, config, run_up);
            let ops: Vec<Op> = (0..8).flat_map(|c| one_of_each(config, c)).collect();
            bench.push(&ops);
            (0..run_up).for_each(|_| bench.step());
            bench.wipe().expect("acknowledge");
            let cut = bench.finish(None).expect("every burst is answered");
            // Only zeros with an error, and no word from after the wipe with OKAY.
            for (o, got) in ops.iter().zip(&cut) {
                let zero = got
                    .data
                    .chunks(64)
                    .zip(&got.okay)
                    .all(|(d, ok)| *ok || d.iter().all(|b| *b == 0));
                assert!(zero, "{o:?}");
            }
            // The sealed inputs are unchanged; the next session sees nothing of this one.
            for (addr, data) in &sealed {
                let mut now = vec![0; data.len()];
                bench.mem_read(*addr, &mut now);
                assert!(now == *data, "run-up {run_up}: memory at {addr:#x} changed");
            }
            run(&mut bench, config, "after a wipe", seed() + run_up, 1);
        }
    }
}
