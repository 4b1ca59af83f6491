//! `cargo xtask torture`: builds the verifier service, and runs it while machines, databases and a
//! tenant misbehave.

use crate::debian;
use crate::process::{self, Failure, Result};
use std::process::Command;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Seconds of each fault, with the load before and after it [default: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..=600))]
    seconds: Option<u32>,
    /// Only these faults
    faults: Vec<String>,
}

/// Debian packages that it needs.
pub const PACKAGES: &str = "postgresql pgbouncer";

/// Runs the faults.
pub fn run(args: &Args) -> Result<()> {
    let what = "replicas of the verifier service";
    if let Err(command) = debian::install(PACKAGES, what, debian::has_postgres) {
        return Err(Failure::missing(format!("PostgreSQL is missing ({what}): run `{command}`")));
    }
    let mut command = program()?;
    command.args(args.json.then_some("--json"));
    if let Some(seconds) = args.seconds {
        command.args(["--seconds", &seconds.to_string()]);
    }
    process::hand_over(command.args(&args.faults))
}

/// The program that runs the faults. It starts the service.
pub fn program() -> Result<Command> {
    process::built("shef-verifierd")?;
    process::built("shef-torture")
}
