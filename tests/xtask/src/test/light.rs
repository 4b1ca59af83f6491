//! Builds that leave features out: an owner's library and command without simulator and attacks.

use super::lanes::Outcome;
use crate::process;
use std::process::Stdio;

/// The checks, as cargo's arguments.
const LIGHT: &[&[&str]] = &[
    &["-p", "shef", "--no-default-features"],
    &["-p", "shef", "--no-default-features", "--features", "vfio"],
    &["-p", "shef", "--no-default-features", "--features", "tls"],
    &["-p", "shef-cli", "--no-default-features"],
];

/// Crates of the simulator and the attacks: the light command contains none of them.
const HEAVY: &[&str] = &["shef-card", "shef-demo", "shef-model", "shef-rtl", "libloading"];

/// Runs all checks. Any warning of the compiler or clippy is a failure.
pub fn run() -> Outcome {
    let said: Vec<String> = LIGHT
        .iter()
        .map(|args| check(args))
        .chain([heavy()])
        .filter(|text| !text.is_empty())
        .collect();
    if said.is_empty() { Outcome::passed() } else { Outcome::failed(said.join("\n")) }
}

/// The messages of one check; empty if it passes.
fn check(args: &[&str]) -> String {
    output("check", args).map_or_else(|error| error, |(_, said)| said)
}

/// The simulator crates in the light command.
fn heavy() -> String {
    let args = [
        "-p",
        "shef-cli",
        "--no-default-features",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    match output("tree", &args) {
        Ok((tree, _)) => {
            let found: Vec<&str> = tree
                .lines()
                .filter_map(|line| line.split(' ').next())
                .filter(|name| HEAVY.contains(name))
                .collect();
            found.first().map_or_else(String::new, |name| {
                format!("{name} is in `shef-cli --no-default-features`")
            })
        }
        Err(error) => error,
    }
}

/// cargo's output: stdout and stderr, which is the error if cargo fails without any output.
fn output(command: &str, args: &[&str]) -> Result<(String, String), String> {
    let line = format!("cargo {command} {}", args.join(" "));
    let out = process::cargo(&[command, "--quiet"])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{line}: {e}"))?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    if out.status.success() {
        Ok((String::from_utf8_lossy(&out.stdout).into_owned(), said))
    } else {
        Err(format!("{line}\n{said}"))
    }
}
