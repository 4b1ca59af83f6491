//! The custom logic of this repository.

use shef_netlist::{CustomLogic, lint};

/// All checks pass, in the time that the command promises.
#[test]
fn the_shipped_custom_logic_is_clean() {
    let scratch = tempfile::tempdir().unwrap();
    let start = std::time::Instant::now();
    let report = lint(&CustomLogic::shipped().unwrap(), None, scratch.path()).unwrap();
    println!("{:?}", start.elapsed());
    for check in &report.checks {
        println!("{} {} {}", check.check, check.passed, check.looked_at);
        for finding in check.findings.iter().take(40) {
            println!("    {}: {}", finding.place, finding.what);
        }
    }
    for line in &report.crossings {
        println!("{line:?}");
    }
    println!("{} {}", report.luts, report.lut_share);
    assert!(report.passed());
}
