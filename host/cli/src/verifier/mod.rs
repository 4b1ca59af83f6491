//! `shef verifier`: a verifier service, seen by its operator.

mod register;
mod status;

use clap::Subcommand;
use shef_console::{CliError, Exit, Output};

/// Subcommands of `shef verifier`.
#[derive(Subcommand)]
pub enum VerifierCommand {
    /// Health, readiness, version, certificate, stale devices. Exit status 1 if something needs
    /// attention
    Status(status::StatusArgs),
    /// Register trust data: roots, reference values and policy of a folder, signer and reference
    /// values of an image
    Register(register::RegisterArgs),
}

/// Runs `shef verifier`.
///
/// # Errors
/// Transport errors, the service's refusals, bad files.
pub fn run(output: &Output, command: &VerifierCommand) -> Result<Exit, CliError> {
    match command {
        VerifierCommand::Status(args) => status::run(output, args),
        VerifierCommand::Register(args) => register::run(output, args),
    }
}
