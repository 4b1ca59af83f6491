//! `cargo xtask attack`: builds and runs the hostile bench.

use crate::process::{self, Failure};
use crate::tools;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Number of attempts
    #[arg(long, default_value_t = 1000)]
    n: u64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// First attempt; reports of slices with the same seed add up
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run only this attempt, as named by a failure, and record waves
    #[arg(long)]
    only: Option<u64>,
    /// Number of threads, each with its own instances
    #[arg(long, default_value_t = 1)]
    jobs: u64,
    /// Use only this configuration; may be repeated. The contents of attempt i depend on it
    #[arg(long, value_name = "NAME")]
    configuration: Vec<String>,
    /// Stop at the first failure
    #[arg(long)]
    stop: bool,
    /// Add up the reports (JSON) of slices instead
    #[arg(long, num_args = 1.., value_name = "REPORT")]
    sum: Vec<std::path::PathBuf>,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the attempts, or adds up reports.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut command = process::built("shef-attack")?;
    if args.sum.is_empty() {
        let verilator = tools::ensure_verilator(&crate::root(), &process::say)?;
        command
            .env("SHEF_VERILATOR", verilator)
            .arg("--dir")
            .arg(process::target_dir().join("attack"));
        for (name, value) in
            [("--n", args.n), ("--seed", args.seed), ("--from", args.from), ("--jobs", args.jobs)]
        {
            command.arg(name).arg(value.to_string());
        }
        if let Some(only) = args.only {
            command.arg("--only").arg(only.to_string());
        }
        for name in &args.configuration {
            command.arg("--configuration").arg(name);
        }
        if args.stop {
            command.arg("--stop");
        }
    } else {
        let here = std::env::current_dir().unwrap_or_default();
        command.arg("--sum").args(args.sum.iter().map(|f| here.join(f)));
    }
    if args.json {
        command.arg("--json");
    }
    process::hand_over(&mut command)
}
