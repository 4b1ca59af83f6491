//! Standard output and exit status of a command.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

/// Prints a line. A closed pipe is success: its reader has enough.
///
/// # Errors
/// Standard output cannot be written, as on a full disk.
pub fn line(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Exit status for a wrong command line or a request for help, after the text has been `printed`: 2
/// or 0, or 5 if standard output cannot be written.
#[must_use]
pub fn usage(wrong: bool, printed: io::Result<()>) -> u8 {
    match printed {
        _ if wrong => 2,
        Err(error) if error.kind() != ErrorKind::BrokenPipe => 5,
        _ => 0,
    }
}

/// Writes one line to stderr. If stderr is closed or its disk is full, the exit status still
/// reports the result.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
