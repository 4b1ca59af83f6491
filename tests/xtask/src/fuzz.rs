//! `cargo xtask fuzz`: builds and runs the fuzz targets.

use crate::process::{self, Result};

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Only this target
    #[arg(long)]
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of the mutations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run only this input
    #[arg(long, requires = "target")]
    input: Option<std::path::PathBuf>,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the targets.
pub fn run(args: &Args) -> Result<()> {
    let mut command = process::built("shef-fuzz")?;
    command.arg("--failures").arg(process::target_dir().join("fuzz"));
    command.args(["--seconds", &args.seconds.to_string(), "--seed", &args.seed.to_string()]);
    command.args(args.target.iter().flat_map(|target| ["--target", target]));
    if let Some(input) = &args.input {
        command.arg("--input").arg(input);
    }
    command.args(args.json.then_some("--json"));
    process::hand_over(&mut command)
}
