//! The hostile bus and host on every configuration: every kind of act, nothing wrong delivered, accepted or refused. `cargo xtask attack` does as many
//! as one wants.

use shef_tb::attack::{CONFIGURATIONS, Kind, Plan, run};

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}

#[test]
fn eight_thousand_attempts() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("attack");
    let plan = Plan { n: 8_000, seed: seed(), jobs: 2, ..Plan::default() };
    let report = run(&plan, &dir, &|line| println!("{line}")).unwrap_or_else(|e| panic!("seed {}: {e}", plan.seed));
    assert!(report.passed(), "SHEF_SEED={}: {:#?}", plan.seed, report.failures);
    assert_eq!((report.n, report.by_kind.iter().map(|k| k.n).sum::<u64>()), (8_000, 8_000));
    assert_eq!(report.configurations.len(), CONFIGURATIONS.len());
    for (kind, count) in Kind::ALL.iter().zip(&report.by_kind) {
        assert!(count.n >= if *kind == Kind::Public { 100 } else { 600 }, "{count:?}");
        assert!(!kind.must_be_noticed() || count.detected == count.n, "{count:?}");
    }
    assert!(report.honest * 3 >= report.transactions, "{} of {} are honest", report.honest, report.transactions);
}
