//! `cargo xtask bench`: figures, each with its baseline from the same run.

use crate::process::{self, Context, Result};
use crate::tools;
use clap::Subcommand;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

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
pub fn run(what: &What) -> Result<()> {
    match what {
        // The host's side, then the card's engine in RTL. Times and instruction counts are of the
        // release build; cycle counts do not depend on the profile.
        What::Host { json } => {
            let benches = [("host_bench", "release"), ("dma_throughput", "debug")];
            several(*json, &benches, Some(&tools::verilator()?))
        }
        What::Shield { json, words } => {
            let mut command = process::built_example("shield_throughput", "debug")?;
            command.args(json.then_some("--json")).args(words);
            process::hand_over(command.env("SHEF_VERILATOR", tools::verilator()?))
        }
        What::Verifier { json, scale: true } => {
            several(*json, &[("service_scale", "release")], None)
        }
        // Appraisal alone, then the whole service. The release build: the baseline is C and does
        // not depend on Rust's profile.
        What::Verifier { json, .. } => {
            let benches = [("verifier_throughput", "release"), ("service_throughput", "release")];
            several(*json, &benches, None)
        }
    }
}

/// Builds and runs benches one after the other; prints their rows as one document, or their text.
fn several(json: bool, benches: &[(&str, &str)], verilator: Option<&Path>) -> Result<()> {
    let mut all = Value::Null;
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

/// Runs a program that prints one JSON document with `--json`.
pub fn document(command: &mut Command) -> Result<Value> {
    let output = process::output(command.arg("--json").stderr(Stdio::inherit()))?;
    let name = command.get_program().display();
    serde_json::from_str(&output.stdout).with_context(|| format!("{name} gave no JSON"))
}

/// Appends the rows of one document to those of another.
fn merge(all: &mut Value, mut one: Value) {
    fn rows(document: &mut Value) -> Option<&mut Vec<Value>> {
        document.get_mut("rows")?.as_array_mut()
    }
    match (rows(all), rows(&mut one)) {
        (Some(rows), Some(more)) => rows.append(more),
        _ => *all = one,
    }
}
