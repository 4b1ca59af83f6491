//! `cargo xtask bench`: figures, each with its baseline from the same run.

use crate::process::{self, Failure, say};
use crate::{root, tools};
use clap::Subcommand;

/// What is measured.
#[derive(Subcommand)]
pub enum What {
    /// Sealing, opening and bulk transfers beside the bare cipher
    Host {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Bytes per cycle through the Shield in simulation, and of the same requester without it
    Shield {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
        /// Only rows whose description holds all of these words (`x4 seq_read input 4096 AES-256 latency 40 outstanding 8 x 4096`)
        words: Vec<String>,
    },
    /// Appraisals per second of one core with their bare signature operations, and of the whole service over mutual TLS
    Verifier {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
    },
}

/// Measures and prints.
pub fn run(what: &What) -> Result<(), Failure> {
    match what {
        What::Host { json } => host(*json),
        What::Shield { json, words } => shield(*json, words),
        What::Verifier { json } => verifier(*json),
    }
}

fn host(json: bool) -> Result<(), Failure> {
    let mut build = process::cargo(&["build", "--quiet", "--package", "shef", "--features", "sim", "--example", "host_bench"]);
    process::run(&mut build, "building the bench")?;
    let mut command = std::process::Command::new(process::target_dir().join("debug/examples/host_bench"));
    command.args(json.then_some("--json"));
    process::hand_over(&mut command)
}

fn shield(json: bool, words: &[String]) -> Result<(), Failure> {
    let verilator = tools::ensure_verilator(&root(), &say)?;
    let mut build = process::cargo(&["build", "--quiet", "--package", "shef-tb", "--example", "shield_throughput"]);
    process::run(&mut build, "building the bench")?;
    let program = process::target_dir().join("debug/examples/shield_throughput");
    let mut command = std::process::Command::new(program);
    command.args(json.then_some("--json")).args(words).env("SHEF_VERILATOR", verilator);
    process::hand_over(&mut command)
}

/// Appraisal alone, then the whole service.
fn verifier(json: bool) -> Result<(), Failure> {
    let pure = ["--package", "shef-verify", "--features", "aws-lc", "--example", "verifier_throughput"];
    let service = ["--package", "shef-verifierd", "--example", "service_throughput"];
    let mut rows = Vec::new();
    for example in [&pure[..], &service[..]] {
        // As it is shipped: the baseline is C and does not care how Rust is compiled.
        let mut build = process::cargo(&["build", "--quiet", "--release"]);
        process::run(build.args(example), "building the bench")?;
        let program = process::target_dir().join("release/examples").join(example[example.len() - 1]);
        let mut command = std::process::Command::new(program);
        if !json {
            process::hand_over(&mut command)?;
            continue;
        }
        let output = command.arg("--json").stderr(std::process::Stdio::inherit()).output();
        let output = output.map_err(|e| Failure::failed(format!("cannot start {}: {e}", command.get_program().display())))?;
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|e| Failure::failed(format!("{} gave no JSON: {e}", command.get_program().display())))?;
        rows.extend(document["rows"].as_array().cloned().unwrap_or_default());
    }
    if json {
        println!("{}", serde_json::json!({ "rows": rows }));
    }
    Ok(())
}
