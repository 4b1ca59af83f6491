//! A short run of the hostile bus and host (`cargo xtask attack`): every kind of act, nothing wrong delivered, accepted or
//! refused.

use shef_tb::attack::{Kind, Plan, run};

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}

#[test]
fn two_hundred_attempts() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("attack");
    let plan = Plan { n: 204, seed: seed(), configurations: 1, ..Plan::default() };
    let report = run(&plan, &dir, &mut |line| println!("{line}")).unwrap_or_else(|e| panic!("seed {}: {e}", plan.seed));
    assert!(report.passed(), "SHEF_SEED={}: {}\n{}", plan.seed, report.json(), report.failures.join("\n"));
    assert_eq!((report.n, report.kinds.iter().map(|k| k.n).sum::<u64>()), (204, 204));
    for (kind, count) in Kind::ALL.iter().zip(report.kinds) {
        assert_eq!(count.n, 17, "{}", kind.name());
        assert!(!kind.forgery() || count.detected == count.n, "{}: {count:?}", kind.name());
    }
    assert!(report.honest * 3 >= report.transactions, "{} of {} are honest", report.honest, report.transactions);
}
