//! The program `shef-sim`, which holds everything that needs the simulator: `shef sim ARGS` is
//! `shef-sim ARGS`, and `shef demo ARGS` is `shef-sim demo ARGS`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use shef_console::{CliError, Exit, exit, interrupt};

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
    let error = Command::new(&program).args(globals).args(command).args(rest.args).exec();
    Err(missing(&program, &error))
}

/// The design of a simulated card, as `shef-sim design` prints it.
#[derive(Deserialize)]
pub struct Design {
    /// Name of the accelerator.
    pub accelerator: String,
    /// Type of device.
    pub target: String,
    /// Digest of the design in hexadecimal.
    pub digest: String,
    /// The Shield's configuration: CBOR in hexadecimal.
    pub config: String,
}

/// The error that the other program printed, with its exit status.
fn error_of(output: &std::process::Output) -> CliError {
    let printed = String::from_utf8_lossy(&output.stderr);
    let exit = exit::TABLE.iter().find(|(exit, _)| Some(*exit as i32) == output.status.code());
    match (shef::simulator_message(&printed), exit) {
        (Some((code, message)), Some((exit, _))) => {
            CliError { code: code.into(), message, exit: *exit }
        }
        _ => CliError::internal(format!("shef-sim failed: {printed}")),
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
    let child =
        interrupt::child(&mut program).map_err(|e| missing(program.get_program().as_ref(), &e))?;
    let id = child.id();
    let output = child.wait_with_output();
    interrupt::forgets(id);
    let output = output.map_err(|e| missing(program.get_program().as_ref(), &e))?;
    if !output.status.success() {
        return Err(error_of(&output));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| {
        CliError::internal(format!("{} printed no document: {e}", program.get_program().display()))
    })
}
