//! `shef cloud lint`: a custom logic against the shell's rules.

use std::path::PathBuf;

use shef_console::{CliError, Exit, Output};

/// Flags of `shef cloud lint`.
#[derive(clap::Args)]
pub struct LintArgs {
    /// Folder of the custom logic
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// Runs `shef cloud lint`.
///
/// # Errors
/// SHEF-CLI-070: this build has no analysis.
pub fn run(_: &Output, args: &LintArgs) -> Result<Exit, CliError> {
    Err(CliError::internal(format!("{}: no analysis in this build", args.dir.display())))
}
