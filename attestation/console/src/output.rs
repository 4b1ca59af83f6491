//! The only module that prints. Documents go to stdout; progress and messages go to stderr.
//!
//! Text of other programs starts no new line and does not control the terminal: a line is printed as
//! one line, and a message keeps only the line breaks of an excerpt of a file.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use rustix::event::{PollFd, PollFlags, poll};
use shef_proto::text::{misleads, one_line};

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

/// Columns of a line of text for people.
pub const COLUMNS: usize = 80;

/// Units in lines, none longer than `width` unless a unit is; all but the last line end with `end`.
#[must_use]
pub fn joined(units: impl Iterator<Item = String>, width: usize, end: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let length = |text: &str| text.chars().count();
    for unit in units {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(&unit) + length(end) <= width => {
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

/// A text in lines of at most `width` columns; a longer word has its own line.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    joined(text.split(' ').map(str::to_owned), width, "")
}

/// The lines of a message for a terminal. Those that continue a line are indented, so that no text
/// of others begins one; those of an excerpt stay as they are. In a file or a pipe, a message is one
/// line, for programs that look for its text.
fn laid_out(begin: &str, text: &str, terminal: bool) -> String {
    if !terminal {
        return format!("{begin}{text}\n");
    }
    let mut out = String::new();
    for (number, line) in text.split('\n').enumerate() {
        let begin = if number == 0 { begin } else { "" };
        match is_excerpt(line) {
            true => out.push_str(&format!("{begin}{line}\n")),
            false => {
                let lines = wrapped(&format!("{begin}{line}"), COLUMNS - 2);
                out.push_str(&lines.join("\n  "));
                out.push('\n');
            }
        }
    }
    out
}

/// Whether a line of a message is one of an excerpt of a file: `NUMBER | TEXT`.
fn is_excerpt(line: &str) -> bool {
    line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with('|')
}

/// Prints a message on stderr.
fn say(begin: &str, text: &str) {
    let terminal = std::io::stderr().is_terminal();
    let _ = std::io::stderr().write_all(laid_out(begin, &message(text), terminal).as_bytes());
}

/// A warning for people, on stderr, from code without an [`Output`].
pub fn warn(text: impl std::fmt::Display) {
    say("warning: ", &text.to_string());
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

/// Stands for the escape character of a style until the text is printed: a number that no text of
/// others contains.
static STYLE: LazyLock<String> = LazyLock::new(|| {
    let [one, two] = [0, 1].map(|n| RandomState::new().hash_one(n));
    format!("\x1b{one:016x}{two:016x}")
});

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

    /// Waits, but not for longer than standard output has a reader: an endless command ends then
    /// ([`Output::is_closed`]), also while it has nothing to print.
    pub fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        let stdout = std::io::stdout();
        let fd = KEPT.get().map_or_else(|| stdout.as_fd(), |kept| kept.as_fd());
        while !self.is_closed() {
            let left = end.saturating_duration_since(Instant::now());
            // Without events, only the end of the reader is reported.
            let mut pipe = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
            match poll(&mut pipe, left.try_into().ok().as_ref()) {
                Ok(0) => return,
                Ok(_) => self.closed.store(true, Ordering::Relaxed),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return std::thread::sleep(left),
            }
        }
    }

    /// Prints a line of a text document; prints nothing if the document is JSON. Line breaks and
    /// other misleading characters are escaped: a line that quotes a name, a path or another
    /// program stays one line. A closed pipe is no error: the command does its work, and its exit
    /// status is that of the result.
    ///
    /// # Errors
    /// If stdout cannot be written.
    pub fn line(&self, text: impl std::fmt::Display) -> Result<(), CliError> {
        if self.json {
            return Ok(());
        }
        self.raw(format!("{}\n", styled_line(&text.to_string())).as_bytes())
    }

    /// Prints text that this program generated from nothing but itself, as it is.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn text(&self, text: &[u8]) -> Result<(), CliError> {
        self.raw(text)
    }

    /// Prints the JSON document; prints nothing if the document is text. Misleading characters in
    /// its strings are escaped.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn document(&self, value: &impl serde::Serialize) -> Result<(), CliError> {
        if !self.json {
            return Ok(());
        }
        let text =
            serde_json::to_string_pretty(value).map_err(|e| CliError::internal(e.to_string()))?;
        self.raw(format!("{}\n", inert_json(&text)).as_bytes())
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
        self.notes()(&text.to_string());
    }

    /// [`Output::note`] as a function that outlives this value.
    pub fn notes(&self) -> impl Fn(&str) + Send + use<> {
        let quiet = self.quiet;
        move |text| {
            if !quiet {
                say("", text);
            }
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
            say("", &text.to_string());
        }
    }

    /// A spinner for a long operation; silent unless stderr is a terminal.
    pub fn spinner(&self, text: impl AsRef<str>) -> Spinner {
        if !self.progress {
            return Spinner(None);
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.set_message(one_line(text.as_ref()));
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
        if self.color { format!("{0}{style}{text}{0}{PLAIN}", *STYLE) } else { text.to_owned() }
    }

    /// Prints an error, once, with its code and its help.
    pub fn error(&self, error: &CliError) {
        interrupt::silences();
        let terminal = std::io::stderr().is_terminal();
        let code = one_line(&error.code);
        let mut text = laid_out(&format!("error [{code}]: "), &message(&error.message), terminal);
        if terminal {
            let label = styled_line(&self.bad("error"));
            text = text.replacen("error", &label, 1);
        }
        let help = error.help();
        if !help.is_empty() {
            text.push_str(&laid_out("help: ", &one_line(help), terminal));
        }
        let explain = format!("for details, run `{} explain {code}`", codes::explainer());
        text.push_str(&laid_out("help: ", &explain, terminal));
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Prints a paragraph of a text document, in lines of [`COLUMNS`].
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn paragraph(&self, text: &str) -> Result<(), CliError> {
        wrapped(text, COLUMNS).iter().try_for_each(|line| self.line(line))
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

/// A line with styles of [`Output`]; everything else that misleads is escaped.
fn styled_line(text: &str) -> String {
    let mut parts = text.split(STYLE.as_str());
    let mut out = one_line(parts.next().unwrap_or_default());
    for part in parts {
        let style = [GOOD, BAD, HEADING, PLAIN].into_iter().find(|style| part.starts_with(style));
        if let Some(style) = style {
            out.extend(["\x1b", style]);
        }
        out.push_str(&one_line(&part[style.map_or(0, str::len)..]));
    }
    out
}

/// A message, which may end with an excerpt of a file: lines `NUMBER | TEXT`, which stay lines. No
/// other line of it starts a line: its line breaks are escaped, and what follows the excerpt
/// continues its last line.
fn message(text: &str) -> String {
    let mut lines = text.trim_end_matches('\n').split('\n');
    let mut out = one_line(lines.next().unwrap_or_default());
    let mut in_excerpt = false;
    for line in lines {
        out.push_str(match (is_excerpt(line), in_excerpt) {
            (true, _) => "\n",
            (false, true) => " ",
            (false, false) => r"\n",
        });
        in_excerpt = is_excerpt(line);
        out.push_str(&one_line(line));
    }
    out
}

/// A JSON document whose strings have no misleading characters. Outside of strings, only its line
/// breaks are such characters.
fn inert_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if misleads(c) && c != '\n' {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// See [`Output::spinner`].
pub struct Spinner(Option<ProgressBar>);

impl Spinner {
    /// Whether it is on a terminal.
    pub fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Changes the text.
    pub fn message(&self, text: impl AsRef<str>) {
        if let Some(bar) = &self.0 {
            bar.set_message(one_line(text.as_ref()));
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
        let hostile = "a\nhelp: x\r\u{1b}[2J\u{202e}txt\u{2028}\tb";
        let shown = r"a\nhelp: x\r\u{1b}[2J\u{202e}txt\u{2028}\tb";
        assert_eq!(styled_line(hostile), shown);
        assert_eq!(message(hostile), shown);
        assert_eq!(message(&format!("{hostile}\n")), shown);
        let json = serde_json::to_string_pretty(&[hostile]).unwrap();
        let inert = inert_json(&json);
        assert!(!inert.chars().any(|c| misleads(c) && c != '\n'), "{inert}");
        assert_eq!(inert.lines().count(), 3, "{inert}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&inert).unwrap(), [hostile]);
    }

    #[test]
    fn a_terminal_has_lines_of_80_columns_and_a_pipe_has_whole_ones() {
        let text = "word ".repeat(40) + "help: run this";
        assert_eq!(laid_out("error: ", &text, false), format!("error: {text}\n"));
        let shown = laid_out("error: ", &text, true);
        assert!(shown.lines().all(|line| line.len() <= COLUMNS), "{shown}");
        assert!(shown.lines().skip(1).all(|line| line.starts_with("  ")), "{shown}");
        assert_eq!(shown.split_whitespace().count(), text.split_whitespace().count() + 1);
        let excerpt = format!("a.toml:1: wrong\n  |\n1 | {}\n  | ^", "x ".repeat(60));
        assert_eq!(laid_out("", &excerpt, true), format!("{excerpt}\n"));
    }

    #[test]
    fn lines_are_not_wider_than_the_terminal() {
        let lines = wrapped("a clock from /very/long/path/of/a/file.sv:12 reaches it", 12);
        assert_eq!(lines, ["a clock from", "/very/long/path/of/a/file.sv:12", "reaches it"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn only_this_program_has_styles() {
        let output = Output::new(false, false, 0, Color::Always);
        let line =
            format!("{} card\u{1b}[32m\u{1b}[8m\u{9b}2J\u{202e}\n", output.bad("denied\nok"));
        assert_eq!(
            styled_line(&line),
            "\u{1b}[31;1mdenied\\nok\u{1b}[0m card\\u{1b}[32m\\u{1b}[8m\\u{9b}2J\\u{202e}\\n"
        );
    }

    #[test]
    fn a_message_has_lines_of_an_excerpt_only() {
        let excerpt = "a.toml:11:8: wrong\n   |\n11 | base = 1\n   |        ^";
        assert_eq!(message(excerpt), excerpt);
        assert_eq!(
            message("TOML parse error\n  |\n1 | x\u{1b}\n  | ^\nunknown field `x`\n"),
            "TOML parse error\n  |\n1 | x\\u{1b}\n  | ^ unknown field `x`"
        );
        assert_eq!(message("a\n1 | b\nc\nhelp: d"), "a\n1 | b c\\nhelp: d");
    }
}
