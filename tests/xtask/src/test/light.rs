//! Builds that leave features out: an owner's library and command without simulator and attacks.

use super::lanes::Outcome;
use crate::process;
use std::process::Stdio;

/// What is checked, as cargo's arguments.
const LIGHT: &[&[&str]] = &[
    &["-p", "shef", "--no-default-features"],
    &["-p", "shef", "--no-default-features", "--features", "vfio"],
    &["-p", "shef", "--no-default-features", "--features", "tls"],
    &["-p", "shef-cli", "--no-default-features"],
];

/// Crates of the simulator and the attacks: none of them is in the light command.
const HEAVY: &[&str] = &["shef-card", "shef-demo", "shef-model", "shef-rtl", "libloading"];

/// Checks them all. What the compiler or clippy says of one is a failure.
pub fn run() -> Outcome {
    let said: Vec<String> = LIGHT
        .iter()
        .map(|args| check(args))
        .chain([heavy()])
        .filter(|text| !text.is_empty())
        .collect();
    if said.is_empty() { Outcome::passed() } else { Outcome::failed(said.join("\n")) }
}

/// What one check says; nothing if all is well.
fn check(args: &[&str]) -> String {
    output("check", args).map_or_else(|error| error, |(_, said)| said)
}

/// What of the simulator is in the light command.
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

/// What cargo prints: stdout, and stderr, which is the error where it fails without a word.
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
