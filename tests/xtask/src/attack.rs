//! `cargo xtask attack`: builds the hostile bench and hands over to it.

use crate::process::{self, Failure};
use crate::tools;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Attempts
    #[arg(long, default_value_t = 1000)]
    n: u64,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// First attempt: slices of one seed add up
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Only this attempt, as a failure names it; with SHEF_WAVES=folder its waves are written
    #[arg(long)]
    only: Option<u64>,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the attempts.
pub fn run(args: &Args) -> Result<(), Failure> {
    let verilator = tools::ensure_verilator(&crate::root(), &process::say)?;
    let mut build = process::cargo(&["build", "--quiet", "--package", "shef-tb", "--bin", "shef-attack"]);
    process::run(&mut build, "building shef-attack")?;
    let target = process::target_dir();
    let mut command = std::process::Command::new(target.join("debug").join("shef-attack"));
    command.current_dir(crate::root()).env("SHEF_VERILATOR", verilator).arg("--dir").arg(target.join("attack"));
    for (name, value) in [("--n", args.n), ("--seed", args.seed), ("--first", args.first)] {
        command.arg(name).arg(value.to_string());
    }
    if let Some(only) = args.only {
        command.arg("--only").arg(only.to_string());
    }
    if args.json {
        command.arg("--json");
    }
    process::hand_over(&mut command)
}
