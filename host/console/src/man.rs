//! `shef man COMMAND`: the manual page of a program or of one of its commands.

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

/// Prints the page in roff.
///
/// # Errors
/// SHEF-CLI-001 if there is no such command, and errors of stdout.
pub fn print(
    output: &Output,
    mut page: clap::Command,
    command: Option<&str>,
) -> Result<Exit, CliError> {
    page.build();
    if let Some(name) = command {
        let found = page.find_subcommand(name).cloned();
        page = found.ok_or_else(|| {
            CliError::usage("SHEF-CLI-001", format!("there is no command {name:?}"))
        })?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(|e| CliError::internal(e.to_string()))?;
    output.text(&text).map(|()| Exit::Done)
}
