//! Exit statuses: public interface, in one table (`docs/reference/exit-statuses.md`).

use shef_proto::fault::{self, Fault};

/// Exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, or checked and affirmed.
    Done = 0,
    /// Checked, and the answer is no.
    No = 1,
    /// Incorrect use of the command line.
    Usage = 2,
    /// Could not be decided.
    Undecided = 3,
    /// Device or transport.
    Device = 4,
    /// Invalid input or configuration.
    Input = 5,
    /// Internal error.
    Internal = 70,
}

impl From<Fault> for Exit {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Answer => Self::No,
            Fault::Usage => Self::Usage,
            Fault::Undecided => Self::Undecided,
            Fault::Device => Self::Device,
            Fault::Input => Self::Input,
            _ => Self::Internal,
        }
    }
}

/// The status of a program that ends with this code.
pub fn of(code: &str) -> Exit {
    fault::of(code).unwrap_or(Fault::Undecided).into()
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}

/// All statuses with their meaning, for `--help`.
pub const TABLE: &[(Exit, &str)] = &[
    (Exit::Done, "done, or checked and affirmed"),
    (Exit::No, "checked, and not affirmed"),
    (Exit::Usage, "usage error"),
    (Exit::Undecided, "undecided"),
    (Exit::Device, "device or transport"),
    (Exit::Input, "bad input or configuration"),
    (Exit::Internal, "internal error"),
];

/// The meaning of a status.
pub fn meaning(status: Exit) -> &'static str {
    TABLE.iter().find(|(exit, _)| *exit == status).map_or("", |(_, meaning)| meaning)
}

/// The table as text for `--help`.
pub fn help() -> String {
    let mut text = String::from("Exit status:\n");
    for (exit, meaning) in TABLE {
        text.push_str(&format!("  {:>2}  {meaning}\n", *exit as u8));
    }
    text
}
