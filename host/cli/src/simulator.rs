//! The program `shef-sim`, which holds everything that needs the simulator: `shef sim ARGS` is
//! `shef-sim ARGS`, and `shef demo ARGS` is `shef-sim demo ARGS`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shef_console::{CliError, Exit, interrupt};

/// Arguments of the other program.
#[derive(clap::Args)]
pub struct Rest {
    /// Command and flags of `shef-sim`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

impl From<Vec<OsString>> for Rest {
    fn from(args: Vec<OsString>) -> Self {
        Self { args }
    }
}

fn missing(program: &Path, error: &std::io::Error) -> CliError {
    shef::DeviceError::NoSimulator { what: format!("{}: {error}", program.display()) }.into()
}

/// Whether the program is there.
pub fn is_there() -> bool {
    let mut version = Command::new(shef::simulator_program());
    version.arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Becomes the other program. Returns only if that fails.
///
/// # Errors
/// SHEF-DEV-017.
pub fn becomes(globals: &[OsString], command: Option<&str>, rest: Rest) -> Result<Exit, CliError> {
    let program = shef::simulator_program();
    // Its help shows the command that the user typed.
    let name = if command.is_some() { "shef" } else { "shef sim" };
    let mut other = Command::new(&program);
    let error = other.arg0(name).args(globals).args(command).args(rest.args).exec();
    Err(missing(&program, &error))
}

/// What prevents a card from being opened now.
#[derive(Clone, Serialize, Deserialize)]
pub struct Missing {
    /// Code.
    pub code: String,
    /// What is missing.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl From<&CliError> for Missing {
    fn from(error: &CliError) -> Self {
        let (code, message) = (error.code.clone().into_owned(), error.message.clone());
        Self { code, message, help: error.help().to_owned() }
    }
}

/// A kind of simulated card, as `shef-sim list` prints it.
#[derive(Deserialize)]
pub struct Kind {
    /// Its URI.
    pub uri: String,
    /// What this machine lacks for it.
    pub missing: Option<Missing>,
}

/// The kinds of simulated cards.
///
/// # Errors
/// As [`document`].
pub fn cards() -> Result<Vec<Kind>, CliError> {
    document(&["list".into()])
}

/// The error that the other program printed.
fn error_of(printed: &[u8]) -> CliError {
    let printed = String::from_utf8_lossy(printed);
    match shef::simulator_message(&printed) {
        Some((code, message)) => CliError::new(code, message),
        None => CliError::internal(format!("shef-sim failed: {printed}")),
    }
}

/// Runs the other program and reads its document.
///
/// # Errors
/// SHEF-DEV-017, and the program's error, with its code.
pub fn document<T: DeserializeOwned>(args: &[OsString]) -> Result<T, CliError> {
    let mut program = shef::simulator_command();
    program.arg("--json").args(args);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // An interrupt ends the child, too.
    interrupt::cleans_up()?;
    let child =
        interrupt::child(&mut program).map_err(|e| missing(program.get_program().as_ref(), &e))?;
    let id = child.id();
    let output = child.wait_with_output();
    interrupt::forgets(id);
    let output = output.map_err(|e| missing(program.get_program().as_ref(), &e))?;
    if !output.status.success() {
        return Err(error_of(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| {
        CliError::internal(format!("{} printed no document: {e}", program.get_program().display()))
    })
}
