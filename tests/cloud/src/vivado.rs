//! Vivado: its version, and the comparison of two checkpoints.

use std::fs;

/// Answers a form. Returns the exit status.
///
/// # Panics
/// If a file of the test cannot be written.
#[must_use]
pub fn answer(form: &str, fault: &str, arguments: &[String]) -> i32 {
    if form == "vivado-version" {
        let version = fault.strip_prefix("version:").unwrap_or("v2025.1");
        println!("vivado {version} (64-bit)\nTool Version Limit: 2025.05\nSW Build 6140274");
        return 0;
    }
    crate::script::starts_clean();
    let (log, script) = (&arguments[4], &arguments[6]);
    let [shell, routed, report] = [8, 9, 10].map(|at| arguments[at].as_str());
    let text = fs::read_to_string(script).unwrap_or_default();
    assert!(text.contains("pr_verify -full_check -initial $shell -additional $routed"), "{text}");
    let there = [shell, routed].iter().all(|file| fs::metadata(file).is_ok());
    assert!(there, "both checkpoints are there");
    let said = match fault {
        "hdpr" => format!(
            "ERROR: [Constraints 18-891] HDPRVerify-41: site SLICE_X117Y357 of {routed} differs\nERROR: PR_VERIFY: check points {shell} and {routed} are not compatible\n"
        ),
        "silent" => String::new(),
        _ => format!(
            "INFO: [Vivado 12-3253] PR_VERIFY: check points {shell} and {routed} are compatible\n"
        ),
    };
    fs::write(log, format!("# Vivado v2025.1 (64-bit)\n{said}")).expect("written");
    if fault == "no-report" {
        return 0;
    }
    fs::write(report, if fault == "hdpr" { "failed: \n" } else { "ended\n" }).expect("written");
    // Also after an error.
    0
}
