//! Seeded traffic through a whole session, on either bench.

use shef_proto::channel::ShieldRequest;
use shef_proto::config::{Config, Mode};
use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;
use shef_tb::{Bench, Owner, Reference, Traffic};

/// Runs `rounds` epochs of traffic on a bench; returns a trace of every answer, and the chunks
/// touched.
pub fn run(
    bench: &mut dyn Bench,
    config: &Config,
    name: &str,
    seed: u64,
    rounds: u32,
) -> (Vec<u8>, u64) {
    let again = format!("{name}: SHEF_SEED={seed} SHEF_WAVES=target/waves cargo test -p shef-tb");
    let mut owner = Owner::open(bench, config, &first_epochs(config, 1), seed)
        .unwrap_or_else(|e| panic!("{again}: {e}"));
    let mut reference = Reference::new(config, 1);
    let mut traffic = Traffic::new(seed);
    let mut content = Rng::new(seed ^ 0xc0_17e7);
    let mut trace = Vec::new();
    let call = |owner: &mut Owner, bench: &mut dyn Bench, request: ShieldRequest| {
        owner.call(bench, &request).unwrap_or_else(|e| panic!("{again}: {e}"));
    };
    for round in 0..rounds {
        for (addr, data) in reference.fill_inputs(&mut content, owner.keys()) {
            bench.mem_write(addr, &data);
        }
        for (part, share) in [(0, 4), (1, 8)] {
            let phase = traffic.phase(&mut reference, 300, share);
            let got =
                bench.burst(&phase.ops).unwrap_or_else(|e| panic!("{again}: round {round}: {e}"));
            for ((op, want), got) in phase.ops.iter().zip(&phase.expected).zip(&got) {
                assert!(
                    got == want,
                    "{again}: round {round}, phase {part}: {op:?}\n got {:?}\nwant {:?}",
                    got.okay,
                    want.okay
                );
            }
            let flush = if traffic.rng().one_in(2) {
                ShieldRequest::flush()
            } else {
                ShieldRequest::invalidate()
            };
            call(&mut owner, bench, flush);
        }
        // Memory contents, byte for byte.
        for c in reference.outputs(owner.keys()) {
            let (mut d, mut t) = (vec![0; c.data.len()], [0; 16]);
            bench.mem_read(c.addr, &mut d);
            bench.mem_read(c.tag_addr, &mut t);
            assert!(
                d == c.data && t == c.tag,
                "{again}: round {round}: region {} chunk {} is not as sealed",
                c.region,
                c.chunk
            );
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
                    assert_eq!(
                        map.is_written(c),
                        reference.is_written(r.id, c),
                        "{again}: region {} chunk {c}",
                        r.id
                    );
                }
            }
        }
        if round + 1 < rounds {
            reference.next_epoch();
            for r in
                config.regions().iter().filter(|r| matches!(r.mode, Mode::Input | Mode::Output))
            {
                let epoch = reference.epochs[usize::from(r.id)];
                call(&mut owner, bench, ShieldRequest::epoch(r.id, epoch));
            }
        }
    }
    (trace, reference.chunks)
}
