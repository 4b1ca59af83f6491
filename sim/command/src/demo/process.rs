//! Other programs of this project as child processes of a demo.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use shef_console::CliError;
use shef_console::interrupt;

/// A process that ends when this value is dropped.
pub struct Guard(Child);

impl Guard {
    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        interrupt::forgets(self.0.id());
        let _ = self.0.wait();
    }
}

/// Runs a program to completion.
///
/// # Errors
/// SHEF-CLI-024.
pub fn run(mut command: Command, what: &str) -> Result<(), CliError> {
    let child = interrupt::child(command.stdin(Stdio::null()).stdout(Stdio::null()));
    let mut child = child.map(Guard).map_err(|e| failed(what, &e))?;
    let status = child.0.wait().map_err(|e| failed(what, &e))?;
    if status.success() { Ok(()) } else { Err(failed(what, &status)) }
}

/// Starts a program and waits for its first line, which reports that it is ready.
///
/// # Errors
/// SHEF-CLI-024.
pub fn start(mut command: Command, what: &str) -> Result<(Guard, String), CliError> {
    let child = interrupt::child(command.stdin(Stdio::null()).stdout(Stdio::piped()));
    let mut child = child.map(Guard).map_err(|e| failed(what, &e))?;
    let Some(stdout) = child.0.stdout.take() else {
        return Err(CliError::internal("no output of a process"));
    };
    let mut line = String::new();
    let read = BufReader::new(stdout).read_line(&mut line);
    if !matches!(read, Ok(1..)) {
        let _ = child.0.kill();
        let status = child.0.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        return Err(failed(
            what,
            &format!("it ended before it was ready ({status}); its messages are above"),
        ));
    }
    Ok((child, line))
}

/// The port in the first line of a service, `{"listen": "ADDRESS:PORT"}`.
///
/// # Errors
/// SHEF-CLI-024.
pub fn port(line: &str, what: &str) -> Result<u16, CliError> {
    let ready = serde_json::from_str::<serde_json::Value>(line).ok();
    let port = ready.and_then(|ready| ready["listen"].as_str()?.rsplit_once(':')?.1.parse().ok());
    port.ok_or_else(|| failed(what, &format!("its first line is {line:?}")))
}

/// Path of a program of this project ([`shef::program_beside`]).
///
/// # Errors
/// SHEF-CLI-024.
pub fn program(name: &str) -> Result<PathBuf, CliError> {
    let here = std::env::current_exe().map_err(|e| failed(name, &e))?;
    shef::program_beside(name).ok_or_else(|| {
        failed(
            name,
            &format!(
                "there is no program {name} beside {}; `cargo build -p {name}` makes it",
                here.display()
            ),
        )
    })
}

fn failed(what: &str, why: &dyn std::fmt::Display) -> CliError {
    CliError::new("SHEF-CLI-024", format!("cannot start {what}: {why}"))
}
