//! The hostile bus and host try every kind of act, and nothing wrong is delivered, accepted or
//! refused. `cargo xtask test --full` runs twenty thousand attempts over all configurations, `cargo
//! xtask attack` any number.

use shef_tb::attack::{Kind, Plan, Report, run};

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}

/// They cover every mode and every fault policy, a chunk cache beside a set without one, two
/// accelerator ports, fields near their maximum, and one, two and four lanes.
const CONFIGURATIONS: [&str; 3] = ["cache4", "tree1", "edge"];

/// Runs attempts up to the first failure.
fn attempts(configurations: &[&str], no_waves: bool) -> Report {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("attack");
    let configurations = configurations.iter().map(|c| (*c).to_owned()).collect();
    let plan = Plan {
        n: 1_000,
        seed: seed(),
        jobs: 2,
        quick: true,
        stop: true,
        no_waves,
        configurations,
        ..Plan::default()
    };
    let report = run(&plan, &dir, &|line| println!("{line}"))
        .unwrap_or_else(|e| panic!("seed {}: {e}", plan.seed));
    assert!(report.passed(), "SHEF_SEED={}: {:#?}", plan.seed, report.failures);
    report
}

#[test]
fn a_thousand_attempts() {
    let report = attempts(&CONFIGURATIONS, false);
    assert_eq!((report.n, report.by_kind.iter().map(|k| k.n).sum::<u64>()), (1_000, 1_000));
    assert_eq!(report.configurations.len(), CONFIGURATIONS.len());
    for (kind, count) in Kind::ALL.iter().zip(&report.by_kind) {
        assert!(count.n >= if *kind == Kind::Public { 10 } else { 70 }, "{count:?}");
        assert!(!kind.must_be_noticed() || count.detected == count.n, "{count:?}");
    }
    assert_eq!(report.top, "shef_core");
    assert!(report.by_state.iter().all(|s| s.n * 20 >= report.n), "{:?}", report.by_state);
    assert!(
        report.spanning_sessions * 100 >= report.n,
        "{} over two sessions",
        report.spanning_sessions
    );
    assert!(
        report.honest * 3 >= report.transactions,
        "{} of {} are honest",
        report.honest,
        report.transactions
    );
}

/// For `cargo xtask test --full`: the test of many mutants.
mod long {
    use super::attempts;

    #[test]
    #[ignore = "long: weakened Shields must fail it"]
    fn a_thousand_attempts_near_the_top_of_every_field() {
        assert_eq!(attempts(&["edge"], true).n, 1_000);
    }
}
