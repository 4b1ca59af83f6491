//! The one error type of the command: code, message, help and exit status.

use std::borrow::Cow;
use std::path::Path;

use shef_proto::code::Code;

use crate::exit::Exit;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub struct CliError {
    /// Stable code.
    pub code: Cow<'static, str>,
    /// What happened, with the values.
    pub message: String,
    /// How the process ends.
    pub exit: Exit,
}

impl CliError {
    /// Bad input or configuration.
    pub fn input(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), exit: Exit::Input }
    }

    /// Wrong use of the command line.
    pub fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), exit: Exit::Usage }
    }

    /// Device or transport.
    pub fn device(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), exit: Exit::Device }
    }

    /// Something that cannot happen.
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

    /// Who reads the output has what he wanted, and reads no further: the command ends here, and
    /// nothing is said of it.
    pub fn unread() -> Self {
        Self { code: "".into(), message: String::new(), exit: Exit::Done }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        crate::explain::find(&self.code).map_or("", |code| code.help)
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

/// Codes of the command itself.
pub const CODES: &[Code] = &[
    Code::new("SHEF-CLI-001", "a flag does not go with another", "see `shef COMMAND --help`"),
    Code::new(
        "SHEF-CLI-002",
        "there is no such code",
        "codes are printed with every error, as SHEF-ATT-012; `shef explain` without a code lists them all",
    ),
    Code::new("SHEF-CLI-010", "a file cannot be read", "check path and permissions"),
    Code::new("SHEF-CLI-011", "a gzipped file is damaged", "fetch the file again; `gzip -t FILE` must succeed"),
    Code::new(
        "SHEF-CLI-012",
        "a line of the data file is wrong",
        "each line has 64 whole numbers from 0 to 255 and a label from 0 to 15, separated by commas",
    ),
    Code::new("SHEF-CLI-013", "the data file is empty or too large", "give a file with 2 to 20480 rows"),
    Code::new("SHEF-CLI-014", "the data cannot be split so", "choose --train N so that 1 to 4096 rows train and 1 to 16384 are queries"),
    Code::new(
        "SHEF-CLI-015",
        "a file or folder cannot be written",
        "check path, permissions and free space (`df -h`), then run the command again",
    ),
    Code::new("SHEF-CLI-016", "a configuration file is wrong", "the message names line and column; unknown keys are errors"),
    Code::new("SHEF-CLI-017", "a key file is wrong", "the key files of a party are 32 bytes in hexadecimal, readable by their owner only"),
    Code::new(
        "SHEF-CLI-018",
        "a hexadecimal argument is wrong",
        "give an even number of the digits 0-9 and a-f, of the length that the message names",
    ),
    Code::new("SHEF-CLI-019", "a file is too large", "the message names the limit; is it the right file?"),
    Code::new(
        "SHEF-CLI-020",
        "the results are not those of the reference",
        "the accelerator or the Shield computed wrongly: this is a defect, please report it with the output of --json",
    ),
    Code::new(
        "SHEF-CLI-021",
        "an attack was not refused",
        "this is a defect of the highest order, please report it with the output of --json",
    ),
    Code::new("SHEF-CLI-022", "it could not be decided", "give evidence, trust anchors, and reference values for every part of the layer"),
    Code::new(
        "SHEF-CLI-023",
        "the trust data installed are newer",
        "an older bundle would bring back what was revoked since; if that is meant, remove the folder first",
    ),
    Code::new(
        "SHEF-CLI-024",
        "a process of the demo does not start",
        "the programs shef, shef-agent and shef-verifierd lie side by side: `cargo build -p shef-cli -p shef-agent -p shef-verifierd`",
    ),
    Code::new("SHEF-CLI-070", "internal error", "please report it together with the command"),
];
