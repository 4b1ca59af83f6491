//! `shef cloud`: an image for AWS F2, from sources to an attested session.

mod lint;

use clap::Subcommand;
use shef_console::{CliError, Exit, Output};

/// Subcommands of `shef cloud`.
#[derive(Subcommand)]
pub enum CloudCommand {
    /// Check a custom logic against the shell's rules before a build of hours
    Lint(lint::LintArgs),
}

/// Runs `shef cloud`.
///
/// # Errors
/// Those of the subcommand.
pub fn run(output: &Output, command: &CloudCommand) -> Result<Exit, CliError> {
    match command {
        CloudCommand::Lint(args) => lint::run(output, args),
    }
}
