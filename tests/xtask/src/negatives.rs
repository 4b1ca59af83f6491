//! `cargo xtask negatives`: builds and runs the negative cases.

use crate::process::{self, Result};

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
pub fn run(args: &Args) -> Result<()> {
    let mut command = process::built("shef-negatives")?;
    command.args(args.json.then_some("--json")).args(args.write.then_some("--write"));
    command.args(args.ids.iter().map(u32::to_string));
    process::hand_over(&mut command)
}
