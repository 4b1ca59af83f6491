//! `cargo xtask kit`: runs the commands for a user's design, plants bugs in designs, and measures both.

mod bugs;
mod figures;
mod programs;
mod tutorials;

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use programs::Programs;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The document of `cargo xtask kit --json`.
#[derive(Serialize, Default)]
struct Report {
    tutorials: Vec<tutorials::Tutorial>,
    planted_bugs: Vec<bugs::Planted>,
    #[serde(flatten)]
    checker: figures::Checker,
    #[serde(flatten)]
    digests: figures::Digests,
    #[serde(flatten)]
    times: tutorials::Times,
}

impl Report {
    /// What does not hold.
    fn faults(&self) -> Vec<String> {
        let tutorials = self.tutorials.iter().filter(|tutorial| !tutorial.passed);
        let mut all: Vec<String> =
            tutorials.map(|tutorial| format!("tutorial {}", tutorial.name)).collect();
        let bugs = self.planted_bugs.iter().filter(|bug| !(bug.found && bug.replay_found));
        all.extend(bugs.map(|bug| format!("{} in {}", bug.name, bug.design)));
        all.extend((self.checker.false_alarms > 0).then(|| "false alarms".to_owned()));
        all.extend((!self.digests.equal()).then(|| "digests differ".to_owned()));
        all
    }
}

/// Parts of a run, in order.
const PARTS: [&str; 4] = ["tutorials", "bugs", "digests", "checker"];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("kit: {error}");
            ExitCode::from(5)
        }
    }
}

fn run() -> Result<bool> {
    let (mut json, mut only) = (false, Vec::new());
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => json = true,
            part if PARTS.contains(&part) => only.push(part.to_owned()),
            other => {
                return Err(
                    format!("expected --json or {}, found {other}", PARTS.join(", ")).into()
                );
            }
        }
    }
    let runs = |part: &str| only.is_empty() || only.iter().any(|one| one == part);
    let programs = Programs::beside()?;
    let mut report = Report::default();
    if runs("tutorials") {
        (report.tutorials, report.times) = tutorials::run(&programs)?;
    }
    if runs("bugs") {
        report.planted_bugs = bugs::run(&programs)?;
    }
    if runs("digests") {
        report.digests = figures::digests(&programs)?;
    }
    if runs("checker") {
        report.checker = figures::checker()?;
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    let faults = report.faults();
    match faults.as_slice() {
        [] => eprintln!("kit: all of it holds"),
        faults => eprintln!("kit: {}", faults.join("; ")),
    }
    Ok(faults.is_empty())
}

/// The top of the repository.
fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
