//! Flags and output of all commands of `shef cloud`.

use std::time::Duration;

use serde::Serialize;
use shef_cloud::Step;
use shef_cloud::run::Limits;
use shef_console::output::{COLUMNS, Spinner, joined, warn, wrapped};
use shef_console::{CliError, Exit, Output, interrupt};

/// Width of the first column of results.
pub const COLUMN: usize = 14;

/// Flags of commands that run programs of AWS or AMD.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Print the commands and changes, and make none
    #[arg(long)]
    pub dry_run: bool,
    /// Time limit for every program; without it, each has its own
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

impl ProgramArgs {
    /// The limits.
    pub fn limits(&self) -> Limits {
        Limits { each: self.limit.map(Duration::from_secs) }
    }
}

/// The region of a flag, else of the variables that AWS's programs read.
pub fn region(given: Option<&str>) -> Option<String> {
    let variables = ["AWS_REGION", "AWS_DEFAULT_REGION"].into_iter();
    let mut set = variables.filter_map(|name| std::env::var(name).ok());
    given.map(str::to_owned).or_else(|| set.find(|value| !value.is_empty()))
}

/// The words of a command line, an option with its value: a line breaks between these.
fn units(command: &str) -> Vec<String> {
    let mut units: Vec<String> = Vec::new();
    let mut quoted = false;
    for word in command.split(' ') {
        let value = units.last().is_some_and(|unit| {
            unit.starts_with('-') && !unit.contains(' ') && !word.starts_with('-')
        });
        match units.last_mut() {
            Some(unit) if quoted || value => {
                unit.push(' ');
                unit.push_str(word);
            }
            _ => units.push(word.to_owned()),
        }
        quoted ^= word.matches('\'').count() % 2 == 1;
    }
    units
}

/// Prints a name and a text beside it, in lines of 80 columns. `styled` is the name as it is shown.
///
/// # Errors
/// If stdout cannot be written.
pub fn beside(
    output: &Output,
    column: usize,
    (name, styled): (&str, &str),
    text: &str,
) -> Result<(), CliError> {
    let fill = column.saturating_sub(name.chars().count()).max(1);
    let mut begin = format!("{styled}{:fill$}", "");
    for line in wrapped(text, COLUMNS - column) {
        output.line(format_args!("{begin}{line}"))?;
        begin = " ".repeat(column);
    }
    Ok(())
}

/// As [`beside`], in the first column of results.
///
/// # Errors
/// If stdout cannot be written.
pub fn pair(output: &Output, name: &str, text: &str) -> Result<(), CliError> {
    beside(output, COLUMN, (name, name), text)
}

#[derive(Serialize)]
struct Plan<'a> {
    dry_run: bool,
    steps: &'a [Step],
}

/// Prints what a command would do. A command line that is too long continues after `\`.
///
/// # Errors
/// If stdout cannot be written.
pub fn plan(output: &Output, steps: &[Step]) -> Result<Exit, CliError> {
    output.line(output.heading("nothing was done; the command would"))?;
    for step in steps {
        let command = |text: &str| joined(units(text).into_iter(), COLUMNS - 6, " \\");
        let (lines, more) = match step {
            Step::Run(text) => (command(text), "      "),
            Step::If { case, run } => {
                output.line(format_args!("  if {case}:"))?;
                (command(run), "      ")
            }
            Step::Change(text) => (wrapped(text, COLUMNS - 4), "    "),
        };
        for (number, line) in lines.iter().enumerate() {
            let begin = match (number, step) {
                (0, Step::If { .. }) => "    ",
                (0, _) => "  ",
                _ => more,
            };
            output.line(format_args!("{begin}{line}"))?;
        }
    }
    output.document(&Plan { dry_run: true, steps })?;
    Ok(Exit::Done)
}

/// While the returned value exists, an interrupt says what the command leaves, and the way on.
#[must_use]
pub fn leaves(text: impl FnOnce() -> String + Send + 'static) -> interrupt::Hook {
    interrupt::first(move || warn(format_args!("interrupted: {}", text())))
}

/// Shows the current step on a terminal, and each step with `-v`.
pub struct Watching<'o> {
    output: &'o Output,
    spinner: Spinner,
}

impl<'o> Watching<'o> {
    /// No step yet.
    pub fn new(output: &'o Output, first: &str) -> Self {
        Self { output, spinner: output.spinner(first) }
    }

    /// A step.
    pub fn step(&self, text: &str) {
        self.spinner.message(text);
        self.output.detail(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_options_and_not_in_quotes() {
        let command = "aws ec2 do --name 'a b' --flag --out x";
        assert_eq!(units(command), ["aws", "ec2", "do", "--name 'a b'", "--flag", "--out x"]);
        let lines = joined(units(command).into_iter(), 14, " \\");
        assert_eq!(lines, ["aws ec2 do \\", "--name 'a b' \\", "--flag \\", "--out x"]);
    }
}
