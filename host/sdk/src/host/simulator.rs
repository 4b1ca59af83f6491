//! Simulated cards: the program `shef-sim` serves one over vfio-user, for one host.
//!
//! This library contains no simulator. The socket is in a folder that only this user can enter, and
//! the program ends when the pipe to its standard input closes, however this process ends.

use std::fs::DirBuilder;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};

use shef_device::SimKernel;

use crate::{Device, DeviceError, SdkError, Uri};

/// Environment variable with the path of the program.
const VARIABLE: &str = "SHEF_SIM";
/// Name of the program.
const PROGRAM: &str = "shef-sim";
/// Maximum number of bytes of its messages in an error.
const MESSAGES: usize = 2048;

/// A simulated card's process. Dropping this value ends it.
pub(crate) struct Simulator {
    uri: Uri,
    child: Child,
    folder: PathBuf,
}

impl Simulator {
    /// The card's URI.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Path of the program `shef-sim`: from the environment variable `SHEF_SIM`, or beside this one, or beside the folder of this one (tests),
/// or on PATH.
pub fn simulator_program() -> PathBuf {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return path.into();
    }
    let here = std::env::current_exe().unwrap_or_default();
    let beside = here.ancestors().skip(1).take(2).map(|dir| dir.join(PROGRAM));
    beside.into_iter().find(|path| path.is_file()).unwrap_or_else(|| PROGRAM.into())
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
    /// The first line of its standard output: the card is ready.
    Ready,
    Message(String),
}

/// Passes on the lines of a pipe until it closes.
fn read(pipe: impl Read + Send + 'static, to: Sender<Line>, line: fn(String) -> Line) {
    std::thread::spawn(move || {
        for text in BufReader::new(pipe).lines().map_while(Result::ok) {
            // The pipe is read to its end, so that the program never waits for room in it.
            let _ = to.send(line(text));
        }
    });
}

fn arguments(uri: &Uri, socket: &Path) -> Vec<std::ffi::OsString> {
    let mut all: Vec<std::ffi::OsString> =
        ["serve", "--json", "--color", "never", "--until-stdin-closes", "--socket"]
            .map(Into::into)
            .into();
    all.push(socket.into());
    let (device, kernel, project) = match uri {
        Uri::SimRtl { project, kernel } => ("rtl", *kernel, project.clone()),
        _ => ("model", SimKernel::Firmware, None),
    };
    all.extend(["--device", device].map(Into::into));
    if kernel == SimKernel::Native {
        all.extend(["--kernel", "native"].map(Into::into));
    }
    if let Some(folder) = project {
        all.extend(["--project".into(), folder.into_os_string()]);
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
    let (program, folder) = (simulator_program(), private_folder()?);
    let socket = folder.join("card");
    let child = Command::new(&program)
        .args(arguments(uri, &socket))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.map_err(|e| {
        let _ = std::fs::remove_dir(&folder);
        failed(format!("{}: {e}", program.display()))
    })?;
    let mut simulator = Simulator { uri: uri.clone(), child, folder };
    ready(&mut simulator.child, progress)?;
    let card = shef_vfio_user::open(&socket, shef_vfio_user::DEFAULT_TIMEOUT)?;
    Ok((Box::new(card), simulator))
}

/// Waits until the card is served.
fn ready(child: &mut Child, mut progress: Option<&mut dyn FnMut(&str)>) -> Result<(), SdkError> {
    let (lines, heard) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        read(out, lines.clone(), |_| Line::Ready);
    }
    if let Some(messages) = child.stderr.take() {
        read(messages, lines, Line::Message);
    }
    let mut said = String::new();
    for line in heard {
        match line {
            Line::Ready => return Ok(()),
            Line::Message(text) => {
                if let Some(progress) = &mut progress {
                    progress(&text);
                }
                if said.len() < MESSAGES {
                    said += &text;
                    said.push('\n');
                }
            }
        }
    }
    let _ = child.wait();
    Err(simulator_error(&said))
}

/// Code and message of the error among the lines that `shef-sim` printed. A message may have several
/// lines; those with help follow it.
pub fn simulator_message(printed: &str) -> Option<(String, String)> {
    let error = printed.find("error [").filter(|at| *at == 0 || printed[..*at].ends_with('\n'))?;
    let (code, rest) = printed[error..].strip_prefix("error [")?.split_once("]: ")?;
    let end = rest.find("\nhelp: ").unwrap_or(rest.len());
    Some((code.to_owned(), rest[..end].trim_end().to_owned()))
}

/// The error of a program that ended before the card was ready.
fn simulator_error(printed: &str) -> SdkError {
    match simulator_message(printed) {
        Some((code, message)) => DeviceError::Remote { code, message }.into(),
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
        assert_eq!(simulator_error("killed").code(), "SHEF-DEV-017");
        assert_eq!(simulator_error(printed).code(), "SHEF-GEN-001");
    }
}
