//! A temporary verifier service for the demo.

use std::path::Path;
use std::process::Command;

use shef::Service;
use shef_console::CliError;
use shef_flags::identity;

use super::process::{Guard, port, program, run, start};

/// A verifier service that stops when this value is dropped.
pub struct Local {
    /// The service, as seen by its operator.
    pub service: Service,
    process: Guard,
}

impl Local {
    /// Sets up and starts a service below `dir`, on a free port.
    ///
    /// # Errors
    /// SHEF-CLI-024 if the program is missing or does not start.
    pub fn start(dir: &Path) -> Result<Self, CliError> {
        const SERVICE: &str = "the verifier service (shef-verifierd run)";
        let dir = dir.join("verifier");
        let program = program("shef-verifierd")?;
        let mut init = Command::new(&program);
        init.args(["init", "--listen", "127.0.0.1:0", "--audience", "https://localhost", "--dir"])
            .arg(&dir);
        run(init, "shef-verifierd init")?;
        let mut command = Command::new(&program);
        command.args(["run", "--config"]).arg(dir.join("verifierd.toml")).env("SHEF_LOG", "error");
        let (process, line) = start(command, SERVICE)?;
        let url = format!("https://localhost:{}", port(&line, SERVICE)?);
        Ok(Self {
            service: Service::new(&url, identity(&dir.join("operator"), dir.join("ca.pem")))?,
            process,
        })
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}
