//! `shef demo --remote`: card and agent as separate processes, this program as the owner's.

use std::path::{Path, PathBuf};
use std::process::Command;

use shef::{TlsFiles, Uri};

use super::process::{Guard, port, program, run, start};
use shef_console::CliError;

/// A card and an agent beside it, which stop when this value is dropped.
pub struct Remote {
    /// The card behind the agent.
    pub uri: Uri,
    /// Control socket of the card's process.
    pub control: PathBuf,
    /// The owner's certificates.
    pub tls: TlsFiles,
    /// Stops before the card does.
    agent: Guard,
    card: Guard,
}

impl Remote {
    /// Starts both below `dir`; `card` are additional flags of `shef sim serve`.
    ///
    /// # Errors
    /// SHEF-CLI-024 if a program is missing or does not start.
    pub fn start(dir: &Path, card: &[String]) -> Result<Self, CliError> {
        let socket = dir.join("card.sock");
        let mut serve = Command::new(program("shef-sim")?);
        serve.args(["--quiet", "serve", "--json", "--socket"]).arg(&socket).args(card);
        let (card, _) = start(serve, "the card (shef sim serve)")?;

        let dir = dir.join("agent");
        let mut init = Command::new(program("shef-agent")?);
        init.args(["init", "--listen", "127.0.0.1:0", "--owner", "owner", "--dir"]).arg(&dir);
        init.arg("--device").arg(format!("card0=vfio-user:{}", socket.display()));
        run(init, "shef-agent init")?;
        const AGENT: &str = "the agent (shef-agent run)";
        let mut command = Command::new(program("shef-agent")?);
        command.args(["run", "--config"]).arg(dir.join("agent.toml")).env("RUST_LOG", "warn");
        let (agent, line) = start(command, AGENT)?;
        let owner = dir.join("owners/owner");
        Ok(Self {
            uri: Uri::Tls {
                host: "localhost".to_owned(),
                port: port(&line, AGENT)?,
                device: "card0".to_owned(),
            },
            control: shef_card::Control::path_of(&socket),
            tls: TlsFiles {
                ca: owner.join("ca.pem"),
                cert: owner.join("cert.pem"),
                key: owner.join("key.pem"),
            },
            agent,
            card,
        })
    }

    /// Process ID of the agent.
    pub fn agent(&self) -> u32 {
        self.agent.id()
    }

    /// Process ID of the card.
    pub fn card(&self) -> u32 {
        self.card.id()
    }
}
