//! `cargo xtask bench`: figures, each with its baseline from the same run.

use crate::process::{self, Failure, say};
use crate::{root, tools};
use clap::Subcommand;

/// What is measured.
#[derive(Subcommand)]
pub enum What {
    /// Bytes per cycle through the Shield in simulation, and of the same requester without it
    Shield {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
        /// Only rows whose description holds all of these words (`x4 seq_read input 4096 AES-256 latency 40 outstanding 8 x 4096`)
        words: Vec<String>,
    },
    /// Appraisals per second of one core, from evidence to signed result, and of their bare signature operations
    Verifier {
        /// One JSON document on stdout
        #[arg(long)]
        json: bool,
    },
}

/// Measures and prints.
pub fn run(what: &What) -> Result<(), Failure> {
    match what {
        What::Shield { json, words } => shield(*json, words),
        What::Verifier { json } => verifier(*json),
    }
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

fn verifier(json: bool) -> Result<(), Failure> {
    let example = ["--package", "shef-verify", "--features", "aws-lc", "--example", "verifier_throughput"];
    // As it is shipped: the baseline is C and does not care how Rust is compiled.
    let mut build = process::cargo(&["build", "--quiet", "--release"]);
    process::run(build.args(example), "building the bench")?;
    let program = process::target_dir().join("release/examples/verifier_throughput");
    process::hand_over(std::process::Command::new(program).args(json.then_some("--json")))
}
