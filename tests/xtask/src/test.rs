//! `cargo xtask test`: everything the project tests, in the order in which a failure is cheapest.

use crate::process::{self, Failure, say};
use crate::{area, formal, lint, mutants, root, tools, vm};
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

/// One step and how it went.
#[derive(Serialize)]
struct Step {
    name: String,
    ok: bool,
    seconds: u64,
}

#[derive(Serialize)]
struct Totals {
    passed: u32,
    failed: u32,
    skipped: Vec<String>,
    steps: Vec<Step>,
    seconds: u64,
    #[serde(skip)]
    json: bool,
}

impl Totals {
    /// A line for people: stdout, or stderr where stdout is for one JSON document.
    fn line(&self, text: &str) {
        if self.json { eprintln!("{text}") } else { println!("{text}") }
    }
}

/// Runs all; with `no_skip`, what cannot be run counts as a failure.
pub fn run(no_skip: bool, json: bool) -> Result<(), Failure> {
    let start = Instant::now();
    let mut t = Totals { passed: 0, failed: 0, skipped: Vec::new(), steps: Vec::new(), seconds: 0, json };
    system_packages(&mut t);
    let verilator = tools::ensure_verilator(&root(), &say)?;
    // It has a workspace of its own.
    step(&mut t, "the example's lock file is whole", || {
        let args = ["tree", "--locked", "--depth", "0", "--manifest-path", "examples/vecadd/Cargo.toml"];
        process::run(
            &mut process::cargo(&args),
            "cargo tree; `cargo update --workspace --manifest-path examples/vecadd/Cargo.toml` mends it",
        )
    });
    step(&mut t, "generated files are up to date", || {
        process::run(&mut crate::generator("check"), "shef-gen check; `cargo xtask generate` mends it")
    });
    step(&mut t, "formatting", || {
        process::run(&mut process::cargo(&["fmt", "--all", "--check"]), "cargo fmt")?;
        process::run(&mut process::cargo(&["fmt", "--check", "--manifest-path", "examples/vecadd/Cargo.toml"]), "cargo fmt of the example")
    });
    step(&mut t, "module table", lint::table);
    step(&mut t, "area table", area::fresh);
    step(&mut t, "the RTL reads no files and calls nothing outside", lint::nothing_faked);
    step(&mut t, "RTL lint", || lint::verilator(&verilator));
    match tools::ensure_yosys(&root(), &say) {
        Ok(yosys) => step(&mut t, "RTL elaborates in a second front end", || lint::yosys(&yosys)),
        Err(e) => skip(&mut t, "elaboration by yosys", &e),
    }
    match tools::ensure_prover(&root(), &say) {
        Ok(prover) => step(&mut t, "quick proofs", || formal::quick(&prover, &|line| say(line))),
        Err(e) => skip(&mut t, "proofs", &e),
    }
    step(&mut t, "clippy", || {
        let args = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"];
        process::run(&mut process::cargo(&args), "cargo clippy")
    });
    cargo_tests(&mut t, &verilator)?;
    if tools::has_chromium() {
        step(&mut t, "the operator's page in a browser, light and dark (pictures in target/page)", || {
            // Of the whole workspace, which is built: of one package, its dependencies would be built with other features.
            let args = ["test", "--quiet", "--workspace", "--test", "verifierd", "--", "--ignored", "in_a_browser"];
            process::run(&mut process::cargo(&args), "the page in a browser")
        });
    }
    match vm::ready() {
        Ok(guest) => step(&mut t, "the card in a virtual machine, by /dev/vfio", || vm::test(&guest)),
        Err(why) => t.skipped.push(format!("the card in a virtual machine: {why}")),
    }
    step(&mut t, "mutants of the RTL are caught (the quick ones; all: cargo xtask mutants)", || {
        mutants::run(&verilator, mutants::Which::Quick, mutants::By::Test, &|line| {
            if json { eprintln!("{line}") } else { println!("{line}") }
        })
    });

    for s in &t.skipped {
        t.line(&format!("skipped: {s}"));
    }
    if no_skip {
        t.failed += u32::try_from(t.skipped.len()).unwrap_or(u32::MAX);
    }
    t.seconds = start.elapsed().as_secs();
    t.line(&format!("time: {} s", t.seconds));
    t.line(&format!("{} passed, {} failed, {} skipped", t.passed, t.failed, t.skipped.len()));
    if json {
        println!("{}", serde_json::json!(t));
    }
    if t.failed == 0 && t.passed > 0 { Ok(()) } else { Err(Failure::Exit(1)) }
}

fn step(t: &mut Totals, name: &str, body: impl FnOnce() -> Result<(), Failure>) {
    let start = Instant::now();
    let result = body();
    let seconds = start.elapsed().as_secs();
    t.steps.push(Step { name: name.into(), ok: result.is_ok(), seconds });
    match result {
        Ok(()) => {
            t.passed += 1;
            t.line(&format!("ok      {name} ({seconds} s)"));
        }
        Err(e) => {
            t.failed += 1;
            if let Failure::Message { message, .. } = e {
                t.line(&message);
            }
            t.line(&format!("FAILED  {name} ({seconds} s)"));
        }
    }
}

fn skip(t: &mut Totals, what: &str, why: &tools::ToolError) {
    t.skipped.push(format!("{what}: {why}"));
}

/// Debian packages for what is optional.
fn system_packages(t: &mut Totals) {
    let mut want = |packages: &str, what: &str, there: fn() -> bool| {
        if let Err(command) = tools::debian_packages(packages, what, there) {
            t.skipped.push(format!("{what}: run `{command}`"));
        }
    };
    want("liblz4-dev zlib1g-dev", "wave files", tools::has_trace_libraries);
    want("postgresql", "the verifier service on PostgreSQL", tools::has_postgres);
    want("chromium", "the operator's page in a browser", tools::has_chromium);
}

/// `cargo test`, its output passed through and its closing lines added up.
fn cargo_tests(t: &mut Totals, verilator: &std::path::Path) -> Result<(), Failure> {
    let mut command = process::cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.env("SHEF_VERILATOR", verilator).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|e| Failure::failed(format!("cargo test: {e}")))?;
    let out = child.stdout.take().ok_or_else(|| Failure::failed("cargo test: no output"))?;
    for line in BufReader::new(out).lines() {
        let line = line.map_err(|e| Failure::failed(format!("cargo test: {e}")))?;
        t.line(&line);
        if let Some((passed, failed)) = closing_line(&line) {
            t.passed += passed;
            t.failed += failed;
        }
    }
    let status = child.wait().map_err(|e| Failure::failed(format!("cargo test: {e}")))?;
    if !status.success() && t.failed == 0 {
        t.failed += 1;
        t.line(&format!("FAILED  cargo test ({status})"));
    }
    Ok(())
}

fn closing_line(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let words: Vec<_> = rest.split_whitespace().collect();
        let at = words.iter().position(|w| w.trim_end_matches(';') == word)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    Some((number("passed")?, number("failed")?))
}

#[cfg(test)]
mod tests {
    use super::closing_line;

    #[test]
    fn closing_lines_are_added_up() {
        assert_eq!(closing_line("test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out"), Some((4, 0)));
        assert_eq!(closing_line("test result: FAILED. 3 passed; 2 failed; 0 ignored"), Some((3, 2)));
        assert_eq!(closing_line("test shield::reads ... ok"), None);
    }
}
