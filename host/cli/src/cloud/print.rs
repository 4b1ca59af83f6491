//! Flags and output of all commands of `shef cloud`.

use std::time::Duration;

use serde::Serialize;
use shef_cloud::run::Limits;
use shef_console::output::Spinner;
use shef_console::{CliError, Exit, Output};

/// Width of a line.
const WIDTH: usize = 80;
/// Width of the first column.
pub const COLUMN: usize = 16;

/// Flags of commands that run programs of AWS or AMD.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Print the commands and changes, and make none
    #[arg(long)]
    pub dry_run: bool,
    /// Time limit of each program, instead of its own
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

/// A text in lines of words, none longer than `width` unless a word is.
fn wrapped(text: &str, width: usize, end: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() + end.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let last = lines.len().saturating_sub(1);
    lines[..last].iter_mut().for_each(|line| line.push_str(end));
    lines
}

/// Prints a name and a text beside it, in lines of 80 columns. `styled` is the name as it is shown.
///
/// # Errors
/// If stdout cannot be written.
pub fn pair(output: &Output, name: &str, styled: &str, text: &str) -> Result<(), CliError> {
    let fill = COLUMN.saturating_sub(name.chars().count()).max(1);
    let mut begin = format!("{styled}{:fill$}", "");
    for line in wrapped(text, WIDTH - COLUMN, "") {
        output.line(format_args!("{begin}{line}"))?;
        begin = " ".repeat(COLUMN);
    }
    Ok(())
}

#[derive(Serialize)]
struct Plan<'a> {
    dry_run: bool,
    steps: &'a [String],
}

/// Prints what a command would do. A command line that is too long continues after `\`.
///
/// # Errors
/// If stdout cannot be written.
pub fn plan(output: &Output, steps: &[String]) -> Result<Exit, CliError> {
    output.line(output.heading("nothing was done; the command would"))?;
    for step in steps {
        let command = !["write", "search", "remove", "make", "in ", "read", "open"]
            .iter()
            .any(|begin| step.starts_with(begin));
        let (end, more) = if command { (" \\", "      ") } else { ("", "    ") };
        let lines = wrapped(step, WIDTH - more.len(), end);
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
    fn lines_break_between_words() {
        assert_eq!(wrapped("aws s3 cp a b", 9, " \\"), ["aws s3 \\", "cp a b"]);
        assert_eq!(wrapped("a-word-that-is-long b", 5, ""), ["a-word-that-is-long", "b"]);
    }
}
