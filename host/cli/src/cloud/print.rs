//! Flags and output of all commands of `shef cloud`.

use std::time::Duration;

use serde::Serialize;
use shef_cloud::Step;
use shef_cloud::run::Limits;
use shef_console::output::Spinner;
use shef_console::{CliError, Exit, Output};

/// Width of a line.
const WIDTH: usize = 80;
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

/// Units in lines, none longer than `width` unless a unit is; all but the last line end with `end`.
fn wrapped(units: impl Iterator<Item = String>, width: usize, end: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for unit in units {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + unit.len() + end.len() <= width => {
                line.push(' ');
                line.push_str(&unit);
            }
            _ => lines.push(unit),
        }
    }
    let last = lines.len().saturating_sub(1);
    lines[..last].iter_mut().for_each(|line| line.push_str(end));
    lines
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
    for line in wrapped(text.split(' ').map(str::to_owned), WIDTH - column, "") {
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
        let (lines, more) = match step {
            Step::Run(command) => (wrapped(units(command).into_iter(), WIDTH - 6, " \\"), "      "),
            Step::Change(text) => {
                (wrapped(text.split(' ').map(str::to_owned), WIDTH - 4, ""), "    ")
            }
        };
        for (number, line) in lines.iter().enumerate() {
            output.line(format_args!("{}{line}", if number == 0 { "  " } else { more }))?;
        }
    }
    output.document(&Plan { dry_run: true, steps })?;
    Ok(Exit::Done)
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
        let lines = wrapped(units(command).into_iter(), 14, " \\");
        assert_eq!(lines, ["aws ec2 do \\", "--name 'a b' \\", "--flag \\", "--out x"]);
        let words = ["a-word-that-is-long", "b"].map(str::to_owned);
        assert_eq!(wrapped(words.clone().into_iter(), 5, ""), words);
    }
}
