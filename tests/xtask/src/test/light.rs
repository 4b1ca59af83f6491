//! Builds that leave features out: an owner's library and command without simulator and attacks.

use super::lanes::Outcome;
use crate::process::{self, Output, output};

/// The checks, as cargo's arguments.
const LIGHT: &[&str] = &[
    "-p shef --no-default-features",
    "-p shef --no-default-features --features vfio",
    "-p shef --no-default-features --features tls",
    "-p shef-cli --no-default-features",
];

/// Crates of the simulator and the attacks: the light command contains none of them.
const HEAVY: &[&str] = &["shef-card", "shef-demo", "shef-model", "shef-rtl", "libloading"];

/// Runs all checks. Any warning of the compiler or clippy is a failure.
pub fn run() -> Outcome {
    let checks = LIGHT.iter().map(|args| match cargo("check", args) {
        Ok(out) => out.stderr,
        Err(error) => error,
    });
    let texts: Vec<String> = checks.chain([heavy()]).filter(|text| !text.is_empty()).collect();
    if texts.is_empty() { Outcome::passed() } else { Outcome::failed(texts.join("\n")) }
}

/// The simulator crates in the light command; empty if there are none.
fn heavy() -> String {
    let args = "-p shef-cli --no-default-features --edges normal --prefix none --format {p}";
    let tree = match cargo("tree", args) {
        Ok(out) => out.stdout,
        Err(error) => return error,
    };
    let mut names = tree.lines().filter_map(|line| line.split(' ').next());
    let found = names.find(|name| HEAVY.contains(name));
    found.map_or_else(String::new, |name| format!("{name} is in `shef-cli --no-default-features`"))
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
