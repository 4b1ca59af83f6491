//! Runs a program of the table, without a shell and within its time limit.
//!
//! The program leads a process group: a time limit or an interrupt ends the programs that it started
//! as well.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process_group, setrlimit,
    waitid,
};
use shef_console::interrupt;

use crate::CloudError;
use crate::tools::Call;

/// Pause between two looks for the end of a program.
const LOOK: Duration = Duration::from_millis(20);
/// Most bytes that are kept of a program's output.
const MOST: u64 = 4 << 20;
/// Longest part of an output in a message.
const SHOWN: usize = 200;

/// How programs are run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Time limit of each program, in place of its default.
    pub each: Option<Duration>,
}

/// Output of a program that ended with status 0.
#[derive(Debug, Clone)]
pub struct Said {
    /// The command, for messages.
    pub command: String,
    /// Standard output.
    pub text: String,
}

impl Said {
    /// The error for an output that has another form.
    #[must_use]
    pub fn unlike(&self, expected: &'static str) -> CloudError {
        CloudError::Answer { command: self.command.clone(), found: short(&self.text), expected }
    }

    /// The output as JSON.
    ///
    /// # Errors
    /// SHEF-CLD-010.
    pub fn json(&self, expected: &'static str) -> Result<serde_json::Value, CloudError> {
        serde_json::from_str(&self.text).map_err(|_| self.unlike(expected))
    }
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The command, for messages.
    pub command: String,
    /// Status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// The first line that is not empty, shortened.
fn short(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(SHOWN).collect()
}

/// A program that leads a process group, which ends with this value.
struct Group(Option<Child>);

impl Group {
    /// Whether the program ended within the limit. It is not reaped, so its group still exists.
    fn wait(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let Some(pid) = self.0.as_ref().map(Pid::from_child) else { return true };
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(pid), ended) {
                Ok(Some(_)) => return true,
                _ if Instant::now() >= end => return false,
                _ => std::thread::sleep(LOOK),
            }
        }
    }

    /// Ends all of the group, and returns the program's status.
    fn end(&mut self) -> Option<ExitStatus> {
        let mut child = self.0.take()?;
        interrupt::ends_group(&mut child);
        child.wait().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends core dumps of this process and of every program that it starts: memory with a secret would
/// reach a disk. The limit is 1 byte and not 0, as Linux ignores 0 where it hands dumps to a program,
/// and makes none at all at 1 (`fs/coredump.c`).
///
/// # Errors
/// SHEF-CLD-055.
pub fn without_core_dumps() -> Result<(), CloudError> {
    let most = Some(getrlimit(Resource::Core).maximum.map_or(1, |hard| hard.min(1)));
    setrlimit(Resource::Core, Rlimit { current: most, maximum: most })
        .map_err(|e| CloudError::io("limit", Path::new("core dumps"))(e.into()))
}

/// Runs a program to its end, whatever its status.
///
/// # Errors
/// SHEF-CLD-006, SHEF-CLD-008, SHEF-CLD-009 and SHEF-CLD-055.
pub fn any(call: &Call, limits: Limits) -> Result<Ended, CloudError> {
    let command = call.line();
    without_core_dumps()?;
    let mut started = Command::new(call.tool.program);
    started.args(&call.arguments).stdin(Stdio::null()).process_group(0);
    call.without.iter().for_each(|name| {
        started.env_remove(name);
    });
    started.envs(call.variables.iter().map(|(name, value)| (*name, value)));
    // Answers are parsed: they are in English, and no pager waits for a key.
    started.env("LC_ALL", "C").env("AWS_PAGER", "");
    if let Some(folder) = &call.folder {
        started.current_dir(folder);
    }
    match &call.log {
        Some(path) => {
            let log = File::create(path).map_err(CloudError::io("write", path))?;
            let same = log.try_clone().map_err(CloudError::io("write", path))?;
            started.stdout(log).stderr(same);
        }
        None => {
            started.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
    }
    let mut child = interrupt::child(&mut started)
        .map_err(|e| CloudError::NoProgram { program: call.tool.program, why: e.to_string() })?;
    let pipes = (child.stdout.take().map(reader), child.stderr.take().map(reader));
    let pid = Pid::from_child(&child);
    let mut group = Group(Some(child));
    // An interrupt ends the child alone, and a terminal's signals do not reach its group.
    let hook = interrupt::first(move || {
        let _ = kill_process_group(pid, Signal::KILL);
    });
    let limit = limits.each.unwrap_or(call.tool.limit);
    let in_time = group.wait(limit);
    drop(hook);
    // Programs that it left behind would keep the pipes open.
    let status = group.end();
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader.and_then(|thread| thread.join().ok()).unwrap_or_default()
    };
    let (out, err) = (text(pipes.0), text(pipes.1));
    if !in_time {
        return Err(CloudError::TimeLimit { command, seconds: limit.as_secs() });
    }
    match status.and_then(|status| status.signal()) {
        Some(signal) => Err(CloudError::Died { command, signal, said: said(&out, &err) }),
        None => {
            let status = status.and_then(|status| status.code()).unwrap_or(-1);
            Ok(Ended { command, status, out, err })
        }
    }
}

/// Reads a pipe to its end and keeps the beginning.
fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = pipe.by_ref().take(MOST).read_to_end(&mut kept);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// What a program complains about: its last line on stderr, else on stdout.
fn said(out: &str, err: &str) -> String {
    let last = |text: &str| {
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        line.map(|line| line.chars().take(SHOWN).collect::<String>())
    };
    last(err).or_else(|| last(out)).unwrap_or_default()
}

impl Ended {
    /// The error of a program with another status than 0: by AWS's error codes, where it has one.
    fn failed(self, action: &'static str) -> CloudError {
        let (command, said) = (self.command, said(&self.out, &self.err));
        let has = |marks: &[&str]| marks.iter().any(|mark| self.err.contains(mark));
        if has(&["(UnauthorizedOperation)", "(AccessDenied)", "(AccessDeniedException)", "(403)"]) {
            CloudError::Permission { command, action, said }
        } else if has(&[
            "Unable to locate credentials",
            "(ExpiredToken)",
            "(RequestExpired)",
            "(AuthFailure)",
            "(InvalidClientTokenId)",
            "(UnrecognizedClientException)",
            "(SignatureDoesNotMatch)",
        ]) {
            CloudError::Credentials { command, said }
        } else if has(&[
            "Could not connect to the endpoint URL",
            "Connect timeout on endpoint URL",
            "Read timeout on endpoint URL",
            "Connection was closed before we received a valid response",
            "Connection reset by peer",
        ]) {
            CloudError::Connection { command, said }
        } else {
            CloudError::Failed { command, status: self.status, said }
        }
    }
}

/// Runs a program that must end with status 0.
///
/// # Errors
/// As [`any`], SHEF-CLD-011 to SHEF-CLD-014.
pub fn run(call: &Call, limits: Limits) -> Result<Said, CloudError> {
    let ended = any(call, limits)?;
    if ended.status == 0 {
        Ok(Said { command: ended.command, text: ended.out })
    } else {
        Err(ended.failed(call.tool.action))
    }
}
