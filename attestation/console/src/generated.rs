//! What a program generates from its own flags: manual pages and completions.

use crate::error::CliError;
use crate::output::Output;

/// Prints the manual page, in roff, of a program or of one of its commands.
///
/// # Errors
/// SHEF-CLI-001 if there is no such command, and errors of stdout.
pub fn manual(
    output: &Output,
    mut page: clap::Command,
    command: Option<&str>,
) -> Result<(), CliError> {
    page.build();
    if let Some(name) = command {
        let found = page.find_subcommand(name).cloned();
        page = found
            .ok_or_else(|| CliError::new("SHEF-CLI-001", format!("unknown command {name:?}")))?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(|e| CliError::internal(e.to_string()))?;
    output.text(&text)
}

/// Prints completions of a program for a shell.
///
/// # Errors
/// Errors of stdout.
pub fn completions(
    output: &Output,
    mut command: clap::Command,
    shell: clap_complete::Shell,
) -> Result<(), CliError> {
    let (name, mut text) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut text);
    output.text(&text)
}
