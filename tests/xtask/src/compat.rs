//! `cargo xtask compat`: the crates `ear` and `kbs-types` and Veraison's documented calls against a
//! running verifier service.

use crate::process::{self, Failure, Result};
use crate::{debian, root};
use std::process::Command;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Record the exchanges in tests/compat/exchanges again
    #[arg(long)]
    write: bool,
}

/// Debian packages that it needs, and their purpose.
pub const PACKAGES: (&str, &str) =
    ("libssl-dev pkg-config", "other people's clients, whose crate `ear` wants OpenSSL");

/// Runs the cases.
pub fn run(args: &Args) -> Result<()> {
    let (packages, what) = PACKAGES;
    if let Err(command) = debian::install(packages, what, debian::has_openssl) {
        return Err(Failure::missing(format!(
            "OpenSSL's headers are missing ({what}): run `{command}`"
        )));
    }
    process::hand_over(
        program()?.args(args.json.then_some("--json")).args(args.write.then_some("--write")),
    )
}

/// The program with the clients, built in its own workspace. It starts the service.
pub fn program() -> Result<Command> {
    let service = process::built("shef-verifierd")?;
    process::say("building other people's clients; the first time that is some minutes");
    let target = process::target_dir().join("compat");
    let mut build =
        process::cargo("build --quiet --locked --manifest-path tests/compat/Cargo.toml");
    process::run(build.env("CARGO_TARGET_DIR", &target), "building tests/compat")?;
    let mut program = Command::new(target.join("debug/shef-compat"));
    program.arg(service.get_program()).current_dir(root());
    Ok(program)
}
