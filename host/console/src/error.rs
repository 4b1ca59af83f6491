//! The one error type of the command: code, message, help and exit status.

use std::borrow::Cow;
use std::path::Path;

use crate::codes;
use crate::exit::Exit;

/// Why a command failed.
#[derive(Debug)]
pub struct CliError {
    /// Stable code.
    pub code: Cow<'static, str>,
    /// What happened, with the values.
    pub message: String,
    /// The process's exit status.
    pub exit: Exit,
}

impl CliError {
    /// Invalid input or configuration.
    pub fn input(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), exit: Exit::Input }
    }

    /// Incorrect use of the command line.
    pub fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), exit: Exit::Usage }
    }

    /// Device or transport.
    pub fn device(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), exit: Exit::Device }
    }

    /// An internal error, which should never occur.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: "SHEF-CLI-070".into(), message: message.into(), exit: Exit::Internal }
    }

    /// A file that cannot be read.
    pub fn read_file(path: &Path, error: &std::io::Error) -> Self {
        Self::input("SHEF-CLI-010", format!("cannot read {}: {error}", path.display()))
    }

    /// A file or folder that cannot be written.
    pub fn write_file(path: &Path, error: &std::io::Error) -> Self {
        Self::input("SHEF-CLI-015", format!("cannot write {}: {error}", path.display()))
    }

    /// The reader has closed the pipe: the command ends here with success, and prints nothing.
    pub fn unread() -> Self {
        Self { code: "".into(), message: String::new(), exit: Exit::Done }
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

impl From<shef::SdkError> for CliError {
    fn from(error: shef::SdkError) -> Self {
        let exit = match error.at_fault() {
            shef::Fault::Answer => Exit::No,
            shef::Fault::Undecided => Exit::Undecided,
            shef::Fault::Device => Exit::Device,
            shef::Fault::Input => Exit::Input,
            _ => Exit::Internal,
        };
        Self { code: error.code().to_owned().into(), message: error.to_string(), exit }
    }
}

impl From<shef_device::DeviceError> for CliError {
    fn from(error: shef_device::DeviceError) -> Self {
        shef::SdkError::from(error).into()
    }
}
