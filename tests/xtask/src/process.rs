//! Running programs, and how a command of xtask fails.

pub use anyhow::{Context, Result, anyhow, bail, ensure};
use std::fmt::Display;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

/// A failure whose exit code is not 1; the codes are those of the command `shef`.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// Expected value, actual value, remedy. Empty if the started program has reported the error.
    pub message: String,
}

impl Failure {
    /// The started program has reported the error; its exit code is passed on.
    pub fn exit(code: u8) -> anyhow::Error {
        Self { code, message: String::new() }.into()
    }

    /// This machine lacks something that the command needs.
    pub fn missing(message: impl Into<String>) -> anyhow::Error {
        Self { code: 3, message: message.into() }.into()
    }

    /// The exit code of an error.
    pub fn code(error: &anyhow::Error) -> u8 {
        error.downcast_ref::<Self>().map_or(1, |failure| failure.code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.message.as_str() {
            "" => write!(f, "exit status {}; its messages are above", self.code),
            message => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

/// One line of progress, on stderr.
pub fn say(line: &str) {
    eprintln!("{line}");
}

/// cargo with these words as arguments, in the repository's root. If clippy is installed, it
/// compiles the workspace's own crates: it is the compiler with more lints, so the programs of the
/// tests, the demo and the benches are built and linted in one pass.
pub fn cargo(words: &str) -> Command {
    let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    c.args(words.split_whitespace()).current_dir(crate::root());
    if let Some(clippy) = clippy_driver() {
        c.env("RUSTC_WORKSPACE_WRAPPER", clippy);
    }
    c
}

/// The compiler with clippy's lints.
pub fn clippy_driver() -> Option<&'static str> {
    const NAME: &str = "clippy-driver";
    static THERE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    THERE.get_or_init(|| runs(Command::new(NAME).arg("--version"))).then_some(NAME)
}

/// Cargo's target folder.
pub fn target_dir() -> PathBuf {
    let dir =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    crate::root().join(dir)
}

/// Folder of results that depend only on their inputs: Verilated designs, proofs, passed tests.
/// `SHEF_CACHE`, so that several checkouts can share them, else the target folder.
pub fn cache_dir() -> PathBuf {
    std::env::var_os("SHEF_CACHE").filter(|c| !c.is_empty()).map_or_else(target_dir, PathBuf::from)
}

/// Builds a program of the workspace, with the features of the whole workspace, so that it shares
/// the artefacts of the test build.
pub fn built(program: &str) -> Result<Command> {
    built_as("--bin", program, "debug")
}

/// Builds an example of the workspace in the same way; `profile` is `debug` or `release`.
pub fn built_example(example: &str, profile: &str) -> Result<Command> {
    built_as("--example", example, profile)
}

fn built_as(kind: &str, name: &str, profile: &str) -> Result<Command> {
    let folder = target_dir().join(profile);
    let program = if kind == "--example" { folder.join("examples") } else { folder }.join(name);
    let mut build = cargo(&format!("build --workspace {kind} {name}"));
    build.args((profile == "release").then_some("--release"));
    if program.exists() {
        build.arg("--quiet");
    } else {
        // Cargo shows its progress: minutes of silence would look like a hang.
        say(&format!("building {name}, which takes a few minutes the first time"));
    }
    run(&mut build, &format!("building {name}"))?;
    let mut command = Command::new(program);
    command.current_dir(crate::root());
    Ok(command)
}

/// Runs a program whose stdout is not the result; its output goes to stderr.
pub fn run(command: &mut Command, what: &str) -> Result<()> {
    let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
    let status = start(command.stdin(Stdio::null()).stdout(stderr), Command::status);
    let status = status.context(what.to_owned())?;
    ensure!(status.success(), "{what} failed ({status}); its messages are above");
    Ok(())
}

/// Runs a program to the end and passes on its output and exit code.
pub fn hand_over(command: &mut Command) -> Result<()> {
    let status = start(command, Command::status)?;
    let message = format!("{} ended by itself: {status}", command.get_program().display());
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::exit(u8::try_from(code).unwrap_or(70))),
        None => Err(Failure { code: 70, message }.into()),
    }
}

/// The end of a program, and its output.
pub struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Both streams, stdout first.
    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The last line of stderr that is not blank.
    pub fn last_line(&self) -> &str {
        let lines = self.stderr.lines().map(str::trim);
        lines.rev().find(|line| !line.is_empty()).unwrap_or("no message")
    }
}

/// Runs a program to the end, and collects its output where the command does not redirect it.
pub fn output(command: &mut Command) -> Result<Output> {
    let out = start(command.stdin(Stdio::null()), Command::output)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Output { status: out.status, stdout: text(out.stdout), stderr: text(out.stderr) })
}

/// Standard output of a program that succeeds.
///
/// # Errors
/// It does not start, or fails: the last line of its stderr.
pub fn stdout(command: &mut Command) -> Result<String> {
    let out = output(command)?;
    ensure!(out.status.success(), "{}: {}", command.get_program().display(), out.last_line());
    Ok(out.stdout)
}

/// Whether a program starts and succeeds.
pub fn runs(command: &mut Command) -> bool {
    output(command).is_ok_and(|out| out.status.success())
}

fn start<T>(command: &mut Command, how: fn(&mut Command) -> std::io::Result<T>) -> Result<T> {
    how(command).with_context(|| format!("cannot start {}", command.get_program().display()))
}
