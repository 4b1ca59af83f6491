//! `cargo xtask attack`: builds and runs the hostile bench.

use crate::process::{self, Result};
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
pub fn run(args: &Args) -> Result<()> {
    let mut command = process::built("shef-attack")?;
    command.args(args.json.then_some("--json"));
    if args.sum.is_empty() {
        command.env("SHEF_VERILATOR", tools::verilator()?);
        command.arg("--dir").arg(process::target_dir().join("attack"));
        for (name, value) in [
            ("--n", Some(args.n)),
            ("--seed", Some(args.seed)),
            ("--from", Some(args.from)),
            ("--jobs", Some(args.jobs)),
            ("--only", args.only),
        ] {
            command.args(value.into_iter().flat_map(|value| [name.to_owned(), value.to_string()]));
        }
        command.args(args.configuration.iter().flat_map(|name| ["--configuration", name]));
        command.args(args.stop.then_some("--stop"));
    } else {
        let here = std::env::current_dir().unwrap_or_default();
        command.arg("--sum").args(args.sum.iter().map(|report| here.join(report)));
    }
    process::hand_over(&mut command)
}
