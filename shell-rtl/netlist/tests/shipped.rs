//! The custom logic of this repository.

use shef_netlist::{CustomLogic, lint};

/// All checks pass, and the analysis sees what the design has: crossings at each interface, clocks
/// of two MMCMs, a size near that of the measured blocks.
#[test]
fn the_shipped_custom_logic_is_clean() {
    let scratch = tempfile::tempdir().unwrap();
    let report = lint(&CustomLogic::shipped().unwrap(), None, scratch.path()).unwrap();
    let failed: Vec<_> = report.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(report.crossings_unnamed, 0);
    let count = |form: &str| report.crossings.iter().filter(|line| line.form == form).count();
    // Each FIFO has two pointers and its words.
    let fifos = count("FIFO memory");
    assert!(fifos >= 14, "{:#?}", report.crossings);
    assert_eq!((count("Gray counter"), count("unknown")), (2 * fifos, 0));
    assert!(count("synchroniser") >= 8 && count("reset") >= 7, "{:#?}", report.crossings);
    let clocks = |name: &str| report.crossings.iter().any(|line| line.to_clock == name);
    assert!(
        ["clk_main_a0", "u_clocks.u_mmcm.CLKOUT0", "u_noise.u_mmcm.CLKOUT0"].map(clocks)
            == [true; 3]
    );
    // The guide has a row for each check, in this order.
    let guide = shef_project::repo_root().join("docs/how-to/aws-f2.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let rows = guide.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let code = rest.split(' ').next()?;
        code.starts_with("SHEF-NET-").then_some((name, code))
    });
    let checks: Vec<_> = report.checks.iter().map(|check| (check.check, check.code)).collect();
    assert_eq!(rows.collect::<Vec<_>>(), checks);
    assert!((0.10..0.14).contains(&report.lut_share), "{} LUT", report.luts);
}
