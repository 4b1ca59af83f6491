//! Simulated cards: the program `shef-sim` serves one over vfio-user, for one host.
//!
//! This library contains no simulator. The socket is in a folder that only this user can enter, and
//! the program ends when the pipe to its standard input closes, however this process ends.
//!
//! With `check`, the program's warnings go to standard error: the reports of the protocol checker,
//! which have no other way to the user of a URI.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde::Deserialize;
use shef_device::SimParameters;
use shef_proto::text::one_line;

use crate::{Device, DeviceError, SdkError, Uri};

/// Environment variable with the path of the program.
const VARIABLE: &str = "SHEF_SIM";
/// Name of the program.
const PROGRAM: &str = "shef-sim";
/// Maximum number of bytes of its messages in an error.
const MESSAGES: usize = 2048;
/// Time between two looks at whether the program still runs.
const TICK: Duration = Duration::from_millis(500);

/// Time for a program that shows waves or reports to end.
const WAVES: Duration = Duration::from_secs(20);

/// Trust data for a simulated card, as the files that `shef sim trust` writes. The simulator's
/// program makes them for the card that it serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct SimulatedTrust {
    /// Root of the card's manufacturer (TOML).
    pub anchors: String,
    /// Reference values of its Security Kernel and shell (TOML).
    pub reference: String,
}

/// A simulated card's process. Dropping this value ends it.
pub(crate) struct Simulator {
    uri: Uri,
    trust: SimulatedTrust,
    child: Child,
    /// Closed when all messages of the process were read.
    messages: Receiver<()>,
    folder: PathBuf,
}

impl Simulator {
    /// The card's URI.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// See [`SimulatedTrust`].
    pub(crate) fn trust(&self) -> &SimulatedTrust {
        &self.trust
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let shows = matches!(&self.uri, Uri::SimRtl(p) if p.wave.is_some() || p.check);
        if shows {
            // A killed program leaves an incomplete file of waves, and does not print its last
            // reports, so the program gets time to end.
            drop(self.child.stdin.take());
            let begin = Instant::now();
            while begin.elapsed() < WAVES && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(TICK / 20);
            }
        }
        // If this process ends here, the program still removes what is left of its folder.
        let _ = std::fs::remove_dir_all(&self.folder);
        let _ = self.child.kill();
        let _ = self.child.wait();
        if shows {
            // Another process may hold the pipe open.
            let _ = self.messages.recv_timeout(TICK);
        }
    }
}

/// Path of a program of this project beside the running one. For tests and examples, which cargo
/// puts into `deps` or `examples`, that is beside their folder. No other folder counts: another user
/// may be able to write there.
pub fn program_beside(name: &str) -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let folder = here.parent()?;
    let of_cargo = ["deps", "examples"].map(OsStr::new).contains(&folder.file_name()?);
    let above = folder.parent().filter(|_| of_cargo);
    [Some(folder), above]
        .into_iter()
        .flatten()
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// Path of the program `shef-sim`: from the environment variable `SHEF_SIM`, or
/// [beside this one](program_beside), or on PATH.
pub fn simulator_program() -> PathBuf {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return path.into();
    }
    program_beside(PROGRAM).unwrap_or_else(|| PROGRAM.into())
}

/// Variables that the program and the tools it runs need. It gets no others: its memory is readable
/// by other processes of the same user, unlike that of a process that holds keys.
const ENVIRONMENT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "LANG",
    "TERM",
    "NO_COLOR",
    "CC",
    "CXX",
    "CXXFLAGS",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "MAKEFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_TARGET_DIR",
    "XDG_CACHE_HOME",
];
/// Beginnings of the names of more such variables.
const ENVIRONMENTS: &[&str] = &["SHEF_", "VERILATOR_", "RUST_", "CCACHE_", "PYENV_", "LC_"];

/// The program `shef-sim` as a child of a process that may hold keys.
pub fn simulator_command() -> Command {
    let mut command = Command::new(simulator_program());
    let needed = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        ENVIRONMENT.contains(&&*name) || ENVIRONMENTS.iter().any(|start| name.starts_with(start))
    });
    command.env_clear().envs(needed);
    command
}

fn failed(what: impl Into<String>) -> SdkError {
    DeviceError::NoSimulator { what: what.into() }.into()
}

/// A new folder that only this user can enter.
fn private_folder() -> Result<PathBuf, SdkError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|e| SdkError::Entropy { reason: e.to_string() })?;
    let folder = std::env::temp_dir().join(format!("shef-sim-{:016x}", u64::from_le_bytes(random)));
    let made = DirBuilder::new().mode(0o700).create(&folder);
    made.map_err(|e| failed(format!("the folder {} cannot be made: {e}", folder.display())))?;
    Ok(folder)
}

/// A line of the program.
enum Line {
    /// Of its document, which says that the card is ready.
    Document(String),
    Message(String),
}

/// Passes on the lines of a pipe until it closes, and prints warnings. The returned channel closes
/// after the last line.
fn read(
    pipe: impl Read + Send + 'static,
    to: Sender<Line>,
    line: fn(String) -> Line,
    warnings: bool,
) -> Receiver<()> {
    let (ends, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let _ends: Sender<()> = ends;
        // The pipe is read to its end, so that the program never waits for room in it.
        for text in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&text).into_owned();
            if warnings && text.starts_with("warning: ") {
                let _ = writeln!(std::io::stderr(), "{}", one_line(&text));
            }
            let _ = to.send(line(text));
        }
    });
    ended
}

fn arguments(uri: &Uri, socket: &Path) -> Vec<std::ffi::OsString> {
    let mut all: Vec<std::ffi::OsString> =
        ["serve", "--json", "--color", "never", "--until-stdin-closes", "--socket"]
            .map(Into::into)
            .into();
    all.push(socket.into());
    let none = SimParameters::default();
    let (device, parameters) = match uri {
        Uri::SimRtl(parameters) => ("rtl", parameters),
        _ => ("model", &none),
    };
    all.extend(["--device", device].map(Into::into));
    for (name, value) in parameters.given() {
        // One argument, so that no value is a flag.
        let mut flag = std::ffi::OsString::from(format!("--{name}="));
        flag.push(value);
        all.push(flag);
    }
    all
}

/// Starts the program for the card that `uri` names, and opens the card. `progress` receives its
/// messages until the card is ready: a design that was never built takes minutes.
///
/// # Errors
/// [`DeviceError::NoSimulator`], and errors of the connection.
pub(crate) fn open(
    uri: &Uri,
    progress: Option<&mut dyn FnMut(&str)>,
) -> Result<(Box<dyn Device>, Simulator), SdkError> {
    let (mut program, folder) = (simulator_command(), private_folder()?);
    let socket = folder.join("card");
    let child = program
        .args(arguments(uri, &socket))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.map_err(|e| {
        let _ = std::fs::remove_dir(&folder);
        failed(format!("{}: {e}", program.get_program().display()))
    })?;
    let trust = SimulatedTrust::default();
    let messages = mpsc::channel().1;
    let mut simulator = Simulator { uri: uri.clone(), trust, child, messages, folder };
    let checks = matches!(uri, Uri::SimRtl(parameters) if parameters.check);
    (simulator.trust, simulator.messages) = ready(&mut simulator.child, &socket, progress, checks)?;
    let card = shef_vfio_user::open(&socket, shef_vfio_user::DEFAULT_TIMEOUT)?;
    Ok((Box::new(card), simulator))
}

/// The document of the program that serves a card.
#[derive(Deserialize)]
struct Ready {
    device: String,
    /// Missing if the program is of an earlier version.
    #[serde(default)]
    trust: SimulatedTrust,
}

/// The trust data in this document, if it is the whole one of the program that serves a card on
/// this socket.
fn served(document: &str, socket: &Path) -> Option<SimulatedTrust> {
    let device = format!("vfio-user:{}", socket.display());
    let ready = serde_json::from_str::<Ready>(document).ok();
    ready.filter(|ready| ready.device == device).map(|ready| ready.trust)
}

/// Waits until the card is served. Prints warnings, if they are wanted, also later.
fn ready(
    child: &mut Child,
    socket: &Path,
    mut progress: Option<&mut dyn FnMut(&str)>,
    warnings: bool,
) -> Result<(SimulatedTrust, Receiver<()>), SdkError> {
    let (lines, heard) = mpsc::channel();
    let mut read_all = mpsc::channel().1;
    if let Some(out) = child.stdout.take() {
        read(out, lines.clone(), Line::Document, false);
    }
    if let Some(messages) = child.stderr.take() {
        read_all = read(messages, lines, Line::Message, warnings);
    }
    let (mut said, mut document, mut ended) = (String::new(), String::new(), false);
    loop {
        let line = match heard.recv_timeout(TICK) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break,
            // A process that it started may hold its pipes open for longer than it lives.
            Err(RecvTimeoutError::Timeout) if ended => break,
            Err(RecvTimeoutError::Timeout) => {
                ended = matches!(child.try_wait(), Ok(Some(_)));
                continue;
            }
        };
        match line {
            Line::Document(text) => {
                document += &text;
                document.push('\n');
                if let Some(trust) = served(&document, socket) {
                    return Ok((trust, read_all));
                }
            }
            Line::Message(text) => {
                if let Some(progress) = &mut progress {
                    progress(&one_line(&text));
                }
                if said.len() < MESSAGES {
                    said += &text;
                    said.push('\n');
                }
            }
        }
    }
    if !ended {
        let _ = child.kill();
    }
    let _ = child.wait();
    Err(simulator_error(&said))
}

/// Code and message of the error among the lines that `shef-sim` printed. A message may have several
/// lines; those with help follow it.
pub fn simulator_message(printed: &str) -> Option<(String, String)> {
    let mut found = printed.match_indices("error [").map(|(at, _)| at);
    let error = found.find(|at| *at == 0 || printed[..*at].ends_with('\n'))?;
    let (code, rest) = printed[error..].strip_prefix("error [")?.split_once("]: ")?;
    let end = rest.find("\nhelp: ").unwrap_or(rest.len());
    Some((code.to_owned(), rest[..end].trim_end().to_owned()))
}

/// The error of a program that ended before the card was ready.
fn simulator_error(printed: &str) -> SdkError {
    match simulator_message(printed) {
        Some((code, message)) => DeviceError::SimulatorEnded { code, message }.into(),
        None => failed(format!("it ended before the card was ready: {}", printed.trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_is_read_whole() {
        let printed = "building the card\nerror [SHEF-GEN-001]: a.toml:1:2: wrong\n  lanes = 3\n          ^\nhelp: write 1\nhelp: `shef explain SHEF-GEN-001` says more\n";
        let (code, message) = simulator_message(printed).unwrap();
        assert_eq!(code, "SHEF-GEN-001");
        assert_eq!(message, "a.toml:1:2: wrong\n  lanes = 3\n          ^");
        assert_eq!(simulator_message("an error [X]: in a line"), None);
        let late = format!("note: an error [X]: of a tool\n{printed}");
        assert_eq!(simulator_message(&late).unwrap().0, "SHEF-GEN-001");
        assert_eq!(simulator_error("killed").code(), "SHEF-DEV-017");
        assert_eq!(simulator_error(printed).code(), "SHEF-GEN-001");
        let printed = "error [SHEF-CLI-007]: cannot write /nope: Permission denied\n";
        assert_eq!(simulator_error(printed).code(), "SHEF-CLI-007");
    }

    fn says(script: &str) -> (Result<SimulatedTrust, SdkError>, Duration) {
        let start = std::time::Instant::now();
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let result = ready(&mut child, Path::new("/s"), None, false);
        let _ = child.kill();
        let _ = child.wait();
        (result.map(|(trust, _)| trust), start.elapsed())
    }

    #[test]
    fn only_the_document_says_that_a_card_is_ready() {
        const TRUST: &str = r#""trust": {"anchors": "a", "reference": "r"}"#;
        let document = format!(r#"printf '{{\n  "device": "vfio-user:/s",\n{TRUST}\n}}\n'"#);
        let trust = says(&format!("{document}; exec sleep 60")).0.unwrap();
        assert_eq!([trust.anchors, trust.reference], ["a", "r"]);
        for other in ["echo a line of a design", r#"echo '{"device": "vfio-user:/other"}'"#] {
            let error = says(&format!("{other}; echo 'error [SHEF-CARD-001]: no' >&2")).0;
            assert_eq!(error.unwrap_err().code(), "SHEF-CARD-001", "{other}");
        }
        // Bytes that are no text before the error, and a process that keeps the pipes.
        let script =
            r"sleep 60 & printf '\377\n' >&2; echo 'error [SHEF-CARD-001]: no' >&2; exit 5";
        let (error, took) = says(script);
        assert_eq!(error.unwrap_err().code(), "SHEF-CARD-001");
        assert!(took < Duration::from_secs(30), "{took:?}");
    }
}
