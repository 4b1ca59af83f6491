//! How a program begins and ends, and the commands that every program has.

use std::time::Duration;

use clap::error::ContextValue;
use clap::{CommandFactory, Parser};
use shef_proto::text::one_line;

use crate::codes::{self, Groups};
use crate::{CliError, Exit, Log, Output, explain, generated, output};

/// How long the end of a program waits for the reader of its log.
const LOG: Duration = Duration::from_secs(2);

/// Parses the command line, runs the command, writes what is left of its log, and prints its error. `codes` are those of the
/// program's libraries; errors propose `explain` of the program `explainer`. Returns the exit
/// status.
pub fn main<A: Parser>(
    explainer: &'static str,
    codes: fn() -> Groups,
    output: impl FnOnce(&A) -> Output,
    run: impl FnOnce(&Output, A) -> Result<Exit, CliError>,
) -> Exit {
    codes::set(explainer, codes);
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let error = quoting_one_line(error);
            return output::usage(error.use_stderr(), error.print());
        }
    };
    let output = output(&args);
    let ended = run(&output, args);
    if let Some(log) = Log::installed() {
        log.flush(LOG);
    }
    ended.unwrap_or_else(|error| {
        output.error(&error);
        error.exit()
    })
}

/// A usage error that quotes each argument on one line: an argument may be a file's name.
fn quoting_one_line(mut error: clap::Error) -> clap::Error {
    let quoted: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| {
            let value = match value {
                ContextValue::String(text) => ContextValue::String(one_line(text)),
                ContextValue::Strings(all) => {
                    ContextValue::Strings(all.iter().map(|text| one_line(text)).collect())
                }
                _ => return None,
            };
            Some((kind, value))
        })
        .collect();
    for (kind, value) in quoted {
        error.insert(kind, value);
    }
    error
}

/// The commands of every program.
#[derive(clap::Subcommand, Debug)]
pub enum Common {
    /// Explain a code, such as SHEF-ATT-012; without a code, list them all
    Explain {
        /// The code
        code: Option<String>,
    },
    /// Print the version
    Version,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff) of the program, or of one of its commands
    Man {
        /// The command
        command: Option<String>,
    },
}

impl Common {
    /// Runs the command, for a program with the arguments `A`.
    ///
    /// # Errors
    /// There is no such code or command, or standard output cannot be written.
    pub fn run<A: CommandFactory>(self, output: &Output) -> Result<Exit, CliError> {
        let program = A::command();
        match self {
            Self::Explain { code } => explain::run(output, code.as_deref())?,
            Self::Version => output.text(program.render_version().as_bytes())?,
            Self::Completions { shell } => generated::completions(output, program, shell)?,
            Self::Man { command } => generated::manual(output, program, command.as_deref())?,
        }
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser, Debug)]
    struct Args {
        #[arg(long)]
        count: Option<u8>,
        #[command(subcommand)]
        command: Option<Common>,
    }

    #[test]
    fn a_usage_error_quotes_an_argument_on_one_line() {
        const NAME: &str = "x\nhelp: run this\u{1b}[2J\u{202e}";
        for args in [
            &["p", NAME][..],
            &["p", "version", NAME],
            &["p", "--count", NAME],
            &["p", &format!("--{NAME}")],
        ] {
            let text = quoting_one_line(Args::try_parse_from(args).unwrap_err()).to_string();
            assert!(!text.lines().any(|line| line.starts_with("help: run")), "{text}");
            assert!(text.contains(r"\nhelp: run this\u{1b}[2J\u{202e}"), "{text}");
        }
    }
}
