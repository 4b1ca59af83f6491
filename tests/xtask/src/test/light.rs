//! Builds that leave features out, and what the production programs are built of.

use super::lanes::Outcome;
use crate::process::{self, Output, output};

/// The checks, as cargo's arguments.
const LIGHT: &[&str] = &[
    "-p shef --no-default-features",
    "-p shef --no-default-features --features vfio",
    "-p shef --no-default-features --features tls",
    "-p shef-verifierd --no-default-features",
];

/// The production programs.
const PRODUCTION: &[&str] = &["shef-cli", "shef-agent", "shef-verifierd"];

/// Crates of the simulator and the attacks: no production program contains any of them.
const SIMULATOR: &[&str] = &[
    "shef-card",
    "shef-fixtures",
    "shef-lab",
    "shef-sim",
    "shef-model",
    "shef-rtl",
    "shef-tb",
    "libloading",
];

/// Runs all checks. Any warning of the compiler or clippy is a failure.
pub fn run() -> Outcome {
    let checks = LIGHT.iter().map(|args| match cargo("check", args) {
        Ok(out) => out.stderr,
        Err(error) => error,
    });
    let texts = checks.chain(PRODUCTION.iter().map(simulator));
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    if texts.is_empty() { Outcome::passed() } else { Outcome::failed(texts.join("\n")) }
}

/// A simulator crate in a production program; empty if there is none.
fn simulator(program: &&str) -> String {
    let args = format!("-p {program} --edges normal,build --prefix none --format {{p}}");
    let tree = match cargo("tree", &args) {
        Ok(out) => out.stdout,
        Err(error) => return error,
    };
    let mut names = tree.lines().filter_map(|line| line.split(' ').next());
    // The verifier service loads libraries of tokens.
    let loads = |name: &&str| *name == "libloading" && *program == "shef-verifierd";
    let found = names.find(|name| SIMULATOR.contains(name) && !loads(name));
    found.map_or_else(String::new, |name| format!("{name} is in {program}"))
}

/// cargo's output; if it fails, the error.
fn cargo(command: &str, args: &str) -> Result<Output, String> {
    let line = format!("{command} --quiet {args}");
    match output(&mut process::cargo(&line)) {
        Ok(out) if out.status.success() => Ok(out),
        Ok(out) => Err(format!("cargo {line}\n{}", out.stderr)),
        Err(e) => Err(format!("{e:#}")),
    }
}
