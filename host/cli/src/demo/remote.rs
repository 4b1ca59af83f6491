//! `shef demo --remote`: the card and the agent as processes of their own, this program as the owner's.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use shef::{TlsFiles, Uri};

use crate::error::CliError;

/// A card and an agent beside it, which end with this value.
pub struct Remote {
    /// The card behind the agent.
    pub uri: Uri,
    /// Control socket of the card's process.
    pub control: PathBuf,
    /// The owner's certificates.
    pub tls: TlsFiles,
    /// Agent, then card: the order in which they end.
    children: [Child; 2],
}

impl Remote {
    /// Starts both below `dir`; `card` are the flags of `shef sim serve` beside the socket.
    ///
    /// # Errors
    /// SHEF-CLI-024 where a program is missing or does not come up.
    pub fn start(dir: &Path, card: &[String]) -> Result<Self, CliError> {
        let socket = dir.join("card.sock");
        let mut serve = Command::new(program("shef")?);
        serve.args(["--quiet", "sim", "serve", "--json", "--socket"]).arg(&socket).args(card);
        let (card, _) = start(serve, "the card (shef sim serve)")?;
        let card = Guard(Some(card));

        let agent = dir.join("agent");
        let mut init = Command::new(program("shef-agent")?);
        init.args(["init", "--listen", "127.0.0.1:0", "--owner", "owner", "--dir"]).arg(&agent);
        init.arg("--device").arg(format!("card0=vfio-user:{}", socket.display()));
        let done = init.stdin(Stdio::null()).stdout(Stdio::null()).status().map_err(|e| failed("shef-agent init", &e))?;
        if !done.success() {
            return Err(failed("shef-agent init", &done));
        }
        let mut run = Command::new(program("shef-agent")?);
        run.args(["run", "--config"]).arg(agent.join("agent.toml")).env("RUST_LOG", "warn");
        let (agent_process, line) = start(run, "the agent (shef-agent run)")?;
        let agent_process = Guard(Some(agent_process));
        let port = serde_json::from_str::<serde_json::Value>(&line)
            .ok()
            .and_then(|ready| ready["listen"].as_str()?.rsplit_once(':')?.1.parse::<u16>().ok())
            .ok_or_else(|| failed("the agent (shef-agent run)", &format!("its first line is {line:?}")))?;
        let owner = agent.join("owners/owner");
        let children = [agent_process.take(), card.take()];
        let children = children.into_iter().collect::<Option<Vec<_>>>().and_then(|list| list.try_into().ok());
        Ok(Self {
            uri: Uri::Tls { host: "localhost".to_owned(), port, device: "card0".to_owned() },
            control: shef::sim::Control::path_of(&socket),
            tls: TlsFiles { ca: owner.join("ca.pem"), cert: owner.join("cert.pem"), key: owner.join("key.pem") },
            children: children.ok_or_else(|| CliError::internal("a process is missing"))?,
        })
    }

    /// Process of the agent.
    pub fn agent(&self) -> u32 {
        self.children[0].id()
    }

    /// Process of the card.
    pub fn card(&self) -> u32 {
        self.children[1].id()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ends a process unless it was taken.
struct Guard(Option<Child>);

impl Guard {
    fn take(mut self) -> Option<Child> {
        self.0.take()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts a program and waits for its first line, which says that it is ready.
fn start(mut command: Command, what: &str) -> Result<(Child, String), CliError> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|e| failed(what, &e))?;
    let Some(stdout) = child.stdout.take() else { return Err(CliError::internal("no output of a process")) };
    let mut line = String::new();
    let read = BufReader::new(stdout).read_line(&mut line);
    if !matches!(read, Ok(1..)) {
        let _ = child.kill();
        let status = child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        return Err(failed(what, &format!("it ended before it was ready ({status}); its messages are above")));
    }
    Ok((child, line))
}

/// A program of this project: beside this one, or (for tests) beside the folder of this one.
fn program(name: &str) -> Result<PathBuf, CliError> {
    let here = std::env::current_exe().map_err(|e| failed(name, &e))?;
    let mut beside = here.ancestors().skip(1).take(2).map(|dir| dir.join(name));
    beside.find(|path| path.is_file()).ok_or_else(|| {
        failed(name, &format!("there is no program {name} beside {}; `cargo build -p shef-cli -p shef-agent` makes both", here.display()))
    })
}

fn failed(what: &str, why: &dyn std::fmt::Display) -> CliError {
    CliError::device("SHEF-CLI-024", format!("cannot start {what}: {why}"))
}
