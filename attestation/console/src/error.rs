//! The one error type of commands: code, message, help and exit status.

use std::borrow::Cow;
use std::path::Path;

use shef_proto::fault::Coded;

use crate::codes;
use crate::exit::{self, Exit};

/// Why a command failed.
#[derive(Debug)]
pub struct CliError {
    /// Stable code.
    pub code: Cow<'static, str>,
    /// What happened, with the values.
    pub message: String,
    exit: Exit,
}

impl CliError {
    /// An error with this code, which determines the exit status.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let code = code.into();
        let exit = exit::of(&code);
        Self { code, message: message.into(), exit }
    }

    /// An internal error, which should never occur.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("SHEF-CLI-070", message)
    }

    /// A file that cannot be read.
    pub fn read_file(path: &Path, error: &std::io::Error) -> Self {
        Self::new("SHEF-CLI-010", format!("cannot read {}: {error}", path.display()))
    }

    /// A file or folder that cannot be written.
    pub fn write_file(path: &Path, error: &std::io::Error) -> Self {
        Self::new("SHEF-CLI-015", format!("cannot write {}: {error}", path.display()))
    }

    /// Standard output that cannot be written.
    pub fn write_stdout(error: &std::io::Error) -> Self {
        Self::new("SHEF-CLI-015", format!("cannot write to standard output: {error}"))
    }

    /// The exit status of a program that ends with this error.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        codes::find(&self.code).map_or("", |code| code.help)
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for CliError {}

impl<E: Coded> From<E> for CliError {
    fn from(error: E) -> Self {
        let code = error.code().to_owned().into();
        Self { code, message: error.to_string(), exit: error.fault().into() }
    }
}
