//! The custom logic of this repository.

use shef_netlist::{CustomLogic, Report, lint};

/// With these parameters, all checks pass.
#[track_caller]
fn clean(parameters: &[(&str, &str)]) -> Report {
    let scratch = tempfile::tempdir().unwrap();
    let mut logic = CustomLogic::shipped().unwrap();
    for (name, value) in parameters {
        logic.sources = logic.sources.param(name, value);
    }
    let report = lint(&logic, None, scratch.path()).unwrap();
    let failed: Vec<_> = report.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(report.crossings_unnamed, 0);
    assert!((0.10..0.14).contains(&report.lut_share), "{} LUT", report.luts);
    report
}

/// All checks pass, and the analysis sees what the design has: crossings at each interface, clocks
/// of two MMCMs, a size near that of the measured blocks.
#[test]
fn the_shipped_custom_logic_is_clean() {
    let report = clean(&[]);
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
}

/// With the HBM, too: its monitors and clocks are connected, and its reset and its end of
/// initialisation cross the clocks by known forms.
#[test]
fn the_custom_logic_with_hbm_is_clean() {
    let report = clean(&[("Hbm", "1")]);
    let hbm = report.checks.iter().find(|check| check.check == "hbm").unwrap();
    assert_eq!(hbm.looked_at, "57 connections");
    let crosses = |to: &str, form: &str| {
        report.crossings.iter().any(|line| line.to.contains(to) && line.form == form)
    };
    assert!(crosses("u_apb_rst", "reset"), "{:#?}", report.crossings);
    for stack in ["g_stack[0].u_up_rst", "g_stack[1].u_up_rst"] {
        assert!(crosses(stack, "reset"), "{stack}: {:#?}", report.crossings);
    }
    println!("{} LUT, {:.1} %", report.luts, 100.0 * report.lut_share);
}
