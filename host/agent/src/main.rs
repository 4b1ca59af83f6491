//! The program `shef-agent`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde::Serialize;
use shef_agent::init::{Plan, add_owner, init, readmit, renew, revoke};
use shef_agent::{Agent, AgentError, Config, confirm, told};
use shef_console::output::{Color, warn};
use shef_console::{CliError, Common, Exit, Log, Output, exit, program};
use shef_device::Uri;
use shef_remote::{Limits, TlsFiles, list};
use tokio::signal::unix::SignalKind;

/// How long a notification waits for the reader of the log.
const LOG: Duration = Duration::from_millis(500);

/// Runs next to the card: carries ciphertext between owners and cards.
#[derive(Parser)]
#[command(name = "shef-agent", version, about, after_help = exit::help(), max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set up an agent: its CA, certificates, configuration, systemd unit
    Init {
        /// Folder for all files
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Address to listen on
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7433")]
        listen: String,
        /// Name or address that owners use to reach it; may be given several times
        #[arg(long = "name", value_name = "HOST", default_values = ["localhost", "127.0.0.1", "::1"])]
        names: Vec<String>,
        /// Owner to issue a certificate to; may be given several times
        #[arg(long = "owner", value_name = "NAME", default_values = ["owner"])]
        owners: Vec<String>,
        /// Device, as card0=pci:0000:65:00.0; may be given several times
        #[arg(long = "device", value_name = "NAME=URI", required = true)]
        devices: Vec<String>,
    },
    /// Issue a certificate for one more owner
    AddOwner {
        /// Folder of the agent
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Name of the owner
        name: String,
    },
    /// Issue a new certificate for an existing key: the agent's, or an owner's
    Renew {
        /// Folder of the agent
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Name of the owner; without it, the agent itself
        name: Option<String>,
        /// Also for a key that has a revoked certificate, which admits its owner again
        #[arg(long, requires = "name")]
        readmit: bool,
    },
    /// Revoke certificates of an owner, and wait until the running agent applies it; status 3 if
    /// unconfirmed
    Revoke {
        /// Folder of the agent
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Name of the owner, or the fingerprint of one certificate
        whom: String,
    },
    /// Serve until the program is stopped, then wipe the cards in use
    Run {
        /// Configuration file
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Log as JSON
        #[arg(long)]
        log_json: bool,
    },
    /// List an agent's devices
    Status {
        /// Address of the agent, as localhost:7433
        #[arg(long, value_name = "HOST:PORT")]
        agent: String,
        /// client.toml of an owner; default: the file in SHEF_TLS_CONFIG
        #[arg(long, value_name = "FILE")]
        client: Option<PathBuf>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    #[command(flatten)]
    Common(Common),
}

fn main() -> std::process::ExitCode {
    let output = |args: &Args| {
        let json = matches!(args.command, Command::Status { json: true, .. });
        Output::new(json, false, 0, Color::Auto)
    };
    let run = |output: &Output, args: Args| run(output, args.command);
    program::main("shef-agent", shef_agent::codes, output, run).into()
}

fn run(output: &Output, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Init { dir, listen, names, owners, devices } => {
            let devices = devices.iter().map(|text| device(text)).collect::<Result<Vec<_>, _>>()?;
            let plan = Plan { dir, listen, names, owners, devices };
            init(&plan)?;
            let shown = plan.dir.display();
            output.line(format_args!("CA, certificates and configuration are in {shown}"))?;
            for owner in &plan.owners {
                take(output, &plan.dir, owner)?;
            }
            let config = shef_console::shell::word(&plan.dir.join("agent.toml"));
            output.line(format_args!("next: shef-agent run --config {config}"))?;
        }
        Command::AddOwner { dir, name } => {
            add_owner(&dir, &name)?;
            take(output, &dir, &name)?;
        }
        Command::Renew { dir, name, readmit: again } => {
            let file = match &name {
                Some(name) if again => readmit(&dir, name)?,
                name => renew(&dir, name.as_deref())?,
            };
            output.line(match name {
                Some(name) => {
                    format!("owner {name}: take {} to the owner's machine", file.display())
                }
                None => format!("{} is new: {RELOAD}", file.display()),
            })?;
        }
        Command::Revoke { dir, whom } => {
            let done = revoke(&dir, &whom)?;
            let (line, warnings) = told(&whom, &done, confirm(&dir));
            output.line(line)?;
            if !warnings.is_empty() {
                warnings.iter().for_each(warn);
                return Ok(Exit::Undecided);
            }
        }
        Command::Run { config, log_json } => serve(output, &config, log_json)?,
        Command::Status { agent, client, json: _ } => status(output, &agent, client.as_deref())?,
        Command::Common(common) => return common.run::<Args>(output),
    }
    Ok(Exit::Done)
}

/// How a running agent applies changes.
const RELOAD: &str = "reload the agent with `systemctl reload shef-agent`, or SIGHUP";

/// Prints what an owner needs from the agent's folder.
fn take(output: &Output, dir: &std::path::Path, owner: &str) -> Result<(), CliError> {
    output.line(format_args!(
        "owner {owner}: take {}/owners/{owner} to the owner's machine and set SHEF_TLS_CONFIG to its client.toml",
        dir.display()
    ))
}

fn config_error(message: String) -> AgentError {
    AgentError::Config { message }
}

fn device(text: &str) -> Result<(String, Uri), AgentError> {
    let (name, uri) = text
        .split_once('=')
        .ok_or_else(|| config_error(format!("--device {text:?}: expected NAME=URI")))?;
    Ok((name.to_owned(), uri.parse().map_err(|e| config_error(format!("--device {text:?}: {e}")))?))
}

#[derive(Serialize)]
struct Ready {
    listen: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddr>,
}

/// Notifies systemd if NOTIFY_SOCKET is set: sd_notify(3).
fn notify(state: &str) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    // The log has every earlier line when the notification arrives.
    if let Some(log) = Log::installed() {
        log.flush(LOG);
    }
    let bytes = path.as_encoded_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    // A notification that cannot be delivered is not an error.
    let _ = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
}

fn serve(output: &Output, path: &std::path::Path, log_json: bool) -> Result<(), CliError> {
    let filter =
        tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    // A log that cannot be written, as on a full disk, does not stop the agent: the subscriber
    // would report it on stderr, and panic.
    let lines = Log::install();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || lines.clone())
        .with_ansi(terminal)
        .log_internal_errors(false);
    if log_json {
        log.json().init();
    } else {
        log.init();
    }
    let config = Config::load(path)?;
    let listen = |e: &dyn std::fmt::Display| AgentError::Listen { message: e.to_string() };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|e| listen(&e))?;
    runtime.block_on(async {
        let agent = Agent::bind(&config, Arc::new(shef_agent::open)).await?;
        let ready = Ready { listen: agent.address()?, metrics: agent.metrics_address() };
        let handle = agent.handle();
        let signal = |kind| tokio::signal::unix::signal(kind).map_err(|e| listen(&e));
        let (mut term, mut hup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        let path = path.to_owned();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = term.recv() => handle.drain(),
                    _ = tokio::signal::ctrl_c() => handle.drain(),
                    _ = hup.recv() => {
                        notify("RELOADING=1");
                        if let Err(error) = Config::load(&path).and_then(|config| handle.reload(&config)) {
                            tracing::error!(code = error.code(), "the configuration was not \
                                reloaded: {error}");
                        }
                        notify("READY=1");
                        continue;
                    }
                }
                notify("STOPPING=1");
            }
        });
        // The agent serves nevertheless.
        if let Err(error) = output.line(serde_json::json!(ready)) {
            tracing::warn!(code = %error.code, "cannot announce that the agent listens: {error}");
        }
        tracing::info!(listen = %ready.listen, devices = config.devices.len(), "ready");
        notify("READY=1");
        agent.serve().await;
        Ok(())
    })
}

#[derive(Serialize)]
struct Shown {
    name: String,
    state: &'static str,
    owner: Option<String>,
    moved_bytes: u64,
    description: String,
}

fn status(output: &Output, agent: &str, client: Option<&std::path::Path>) -> Result<(), CliError> {
    let (host, port) = agent
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains('/'))
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .ok_or_else(|| {
            config_error(format!(
                "--agent {agent:?}: expected HOST:PORT, such as card.example:7433"
            ))
        })?;
    let tls = client.map_or_else(TlsFiles::find, TlsFiles::from_config)?;
    if let Some(notice) = tls.notice() {
        warn(notice);
    }
    let devices: Vec<Shown> = list(host, port, &tls, &Limits::default())?
        .into_iter()
        .map(|d| Shown {
            name: d.name,
            state: d.state.name(),
            owner: d.owner,
            moved_bytes: d.moved,
            description: d.description,
        })
        .collect();
    if devices.is_empty() {
        output.line("this agent has no device for this owner")?;
    } else {
        output.line(format_args!(
            "{:<16} {:<10} {:<16} {:>12}  {}",
            "DEVICE", "STATE", "OWNER", "MOVED", "DESCRIPTION"
        ))?;
    }
    for d in &devices {
        output.line(format_args!(
            "{:<16} {:<10} {:<16} {:>8} MiB  {}",
            d.name,
            d.state,
            d.owner.as_deref().unwrap_or("-"),
            d.moved_bytes >> 20,
            d.description
        ))?;
    }
    output.document(&serde_json::json!({ "devices": devices }))
}
