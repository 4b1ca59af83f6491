//! `cargo xtask kit`: builds the programs for a user's design, and runs `shef-kit` on them.

use crate::process::{self, Result};
use crate::tools;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Only these parts
    #[arg(value_parser = ["tutorials", "bugs", "digests", "checker"])]
    parts: Vec<String>,
}

/// Builds the programs, and runs `shef-kit`.
pub fn run(args: &Args) -> Result<()> {
    for program in ["shef", "shef-sim", "shef-agent", "shef-verifierd"] {
        process::built(program)?;
    }
    let mut command = process::built("shef-kit")?;
    // The models of the projects need it.
    command.env("PYTHONPATH", tools::numpy()?);
    command.args(args.json.then_some("--json")).args(&args.parts);
    process::hand_over(&mut command)
}
