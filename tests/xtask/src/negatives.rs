//! `cargo xtask negatives`: builds and runs the negative cases.

use crate::process::{self, Failure};

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Rewrite docs/reference/negatives.md
    #[arg(long)]
    write: bool,
    /// Only these cases
    ids: Vec<u32>,
}

/// Runs the cases.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut command = process::built("shef-negatives")?;
    command.args(args.ids.iter().map(u32::to_string));
    if args.json {
        command.arg("--json");
    }
    if args.write {
        command.arg("--write");
    }
    process::hand_over(&mut command)
}
