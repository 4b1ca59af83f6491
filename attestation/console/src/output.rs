//! The only module that prints. Documents go to stdout; progress and messages go to stderr.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use shef_proto::text::misleads;

use crate::codes;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    /// If the stream is a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The flags of every program that say how to print.
#[derive(Debug, Clone, clap::Args)]
pub struct Flags {
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    json: bool,
    /// No progress and no notes
    #[arg(short, long, global = true)]
    quiet: bool,
    /// More detail on stderr
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

impl Flags {
    /// Printing under these flags.
    pub fn output(&self) -> Output {
        Output::new(self.json, self.quiet, self.verbose, self.color)
    }

    /// The flags as arguments, for another program of the project.
    pub fn arguments(&self) -> Vec<OsString> {
        let color = match self.color {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        };
        let mut all = vec!["--color".into(), color.into()];
        all.extend(self.json.then(|| "--json".into()));
        all.extend(self.quiet.then(|| "--quiet".into()));
        all.extend((0..self.verbose).map(|_| "--verbose".into()));
        all
    }
}

/// A warning for people, on stderr, from code without an [`Output`].
pub fn warn(text: impl std::fmt::Display) {
    for line in text.to_string().lines() {
        let _ = writeln!(std::io::stderr(), "warning: {}", inert(line));
    }
}

/// Standard output, after [`keep_stdout`].
static KEPT: OnceLock<File> = OnceLock::new();

/// From now on, what other code of this process prints to standard output goes to stderr, and only
/// documents go to standard output: a simulated design may print.
///
/// # Errors
/// SHEF-CLI-070 if the system refuses it.
pub fn keep_stdout() -> Result<(), CliError> {
    let refused = |e: std::io::Error| CliError::internal(format!("standard output: {e}"));
    let kept = std::io::stdout().as_fd().try_clone_to_owned().map_err(refused)?;
    rustix::stdio::dup2_stdout(std::io::stderr()).map_err(|e| refused(e.into()))?;
    let _ = KEPT.set(kept.into());
    Ok(())
}

/// Styles of a terminal, after the escape character.
const GOOD: &str = "[32m";
const BAD: &str = "[31;1m";
const HEADING: &str = "[1m";
const PLAIN: &str = "[0m";

/// How to print.
pub struct Output {
    json: bool,
    quiet: bool,
    verbose: u8,
    color: bool,
    progress: bool,
    /// The reader of standard output has closed the pipe.
    closed: AtomicBool,
}

impl Output {
    /// From the command line's flags.
    pub fn new(json: bool, quiet: bool, verbose: u8, color: Color) -> Self {
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
            }
        };
        let progress = !quiet && std::io::stderr().is_terminal();
        Self { json, quiet, verbose, color, progress, closed: AtomicBool::new(false) }
    }

    /// Text, for a program without [`Flags`].
    pub fn plain() -> Self {
        Self::new(false, false, 0, Color::Auto)
    }

    /// Whether the reader of standard output has closed the pipe: an endless command ends.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether the document is JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Prints a line of a text document; prints nothing if the document is JSON. Misleading
    /// characters of other programs' texts are escaped. A closed pipe is no error: the command does
    /// its work, and its exit status is that of the result.
    ///
    /// # Errors
    /// If stdout cannot be written.
    pub fn line(&self, text: impl std::fmt::Display) -> Result<(), CliError> {
        if self.json {
            return Ok(());
        }
        let text = text.to_string();
        let text = if self.color { inert_but_styles(&text) } else { inert(&text) };
        self.raw(format!("{text}\n").as_bytes())
    }

    /// Prints generated text as it is.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn text(&self, text: &[u8]) -> Result<(), CliError> {
        self.raw(text)
    }

    /// Prints the JSON document; prints nothing if the document is text.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn document(&self, value: &impl serde::Serialize) -> Result<(), CliError> {
        if !self.json {
            return Ok(());
        }
        let mut text =
            serde_json::to_string_pretty(value).map_err(|e| CliError::internal(e.to_string()))?;
        text.push('\n');
        self.raw(text.as_bytes())
    }

    fn raw(&self, text: &[u8]) -> Result<(), CliError> {
        interrupt::silences();
        let wrote = match KEPT.get() {
            Some(mut kept) => kept.write_all(text),
            None => {
                let mut out = std::io::stdout().lock();
                out.write_all(text).and_then(|()| out.flush())
            }
        };
        match wrote {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
                self.closed.store(true, Ordering::Relaxed);
                Ok(())
            }
            wrote => wrote.map_err(|e| CliError::write_stdout(&e)),
        }
    }

    /// A message for people, on stderr.
    pub fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "{}", inert(&text.to_string()));
        }
    }

    /// A [warning](warn()), unless the user wants no notes.
    pub fn warn(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            warn(text);
        }
    }

    /// A message that only `-v` shows.
    pub fn detail(&self, text: impl std::fmt::Display) {
        if self.verbose > 0 {
            let _ = writeln!(std::io::stderr(), "{}", inert(&text.to_string()));
        }
    }

    /// A spinner for a long operation; silent unless stderr is a terminal.
    pub fn spinner(&self, text: impl Into<String>) -> Spinner {
        if !self.progress {
            return Spinner(None);
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.set_message(text.into());
        bar.enable_steady_tick(Duration::from_millis(120));
        Spinner(Some(bar))
    }

    /// `text` in the style of a success.
    pub fn good(&self, text: &str) -> String {
        self.paint(text, GOOD)
    }

    /// `text` in the style of a failure.
    pub fn bad(&self, text: &str) -> String {
        self.paint(text, BAD)
    }

    /// `text` in the style of a heading.
    pub fn heading(&self, text: &str) -> String {
        self.paint(text, HEADING)
    }

    fn paint(&self, text: &str, style: &str) -> String {
        if self.color { format!("\x1b{style}{text}\x1b{PLAIN}") } else { text.to_owned() }
    }

    /// Prints an error, once, with its code and its help.
    pub fn error(&self, error: &CliError) {
        interrupt::silences();
        let mut err = std::io::stderr().lock();
        let label = if std::io::stderr().is_terminal() { &self.bad("error") } else { "error" };
        let code = inert(&error.code);
        let _ = writeln!(err, "{label} [{code}]: {}", inert(&error.message));
        let help = error.help();
        if !help.is_empty() {
            let _ = writeln!(err, "help: {help}");
        }
        let _ = writeln!(err, "help: for details, run `{} explain {code}`", codes::explainer());
    }
}

/// Exit status after `--help`, `--version` or a usage error (`wrong`) was `printed`. If stdout
/// cannot be written, stderr reports it; a closed pipe is success.
pub(crate) fn usage(wrong: bool, printed: std::io::Result<()>) -> Exit {
    match printed {
        _ if wrong => Exit::Usage,
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            let error = CliError::write_stdout(&e);
            Output::plain().error(&error);
            error.exit()
        }
        _ => Exit::Done,
    }
}

/// A number and what it counts: `1 chunk`, `2 chunks`.
pub fn count<N: std::fmt::Display + PartialEq + From<u8>>(n: N, what: &str) -> String {
    let plural = if n == N::from(1) { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// A message that may quote a file or another program's answer, with misleading characters escaped.
/// Line breaks come from this project only: quoted texts contain no line breaks.
fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if misleads(c) && !matches!(c, '\n' | '\t') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// The same for a line with styles of [`Output`].
fn inert_but_styles(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut out = inert(parts.next().unwrap_or_default());
    for part in parts {
        let ours = [GOOD, BAD, HEADING, PLAIN].iter().any(|style| part.starts_with(style));
        out.push_str(if ours { "\x1b" } else { r"\u{1b}" });
        out.push_str(&inert(part));
    }
    out
}

/// See [`Output::spinner`].
pub struct Spinner(Option<ProgressBar>);

impl Spinner {
    /// Changes the text.
    pub fn message(&self, text: impl Into<String>) {
        if let Some(bar) = &self.0 {
            bar.set_message(text.into());
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_looks_like_no_line_of_ours() {
        let shown = inert("refused\u{1b}[2J\u{202e}txt\u{2028}help: x");
        assert_eq!(shown, r"refused\u{1b}[2J\u{202e}txt\u{2028}help: x");
        let output = Output::new(false, false, 0, Color::Always);
        let line = format!("{} card\u{1b}[8m\u{9b}2J\u{202e}", output.bad("denied"));
        assert_eq!(
            inert_but_styles(&line),
            "\u{1b}[31;1mdenied\u{1b}[0m card\\u{1b}[8m\\u{9b}2J\\u{202e}"
        );
    }
}
