//! Running programs: start, messages and failures.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a command of xtask ends with an error.
#[derive(Debug)]
pub enum Failure {
    /// The started program has reported the error itself; its exit code is passed on.
    Exit(u8),
    /// Exit code and message: expected value, actual value, remedy.
    Message {
        /// Exit code, as in the table of the command `shef`.
        code: u8,
        /// One paragraph.
        message: String,
    },
}

impl Failure {
    /// A failed step.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Message { code: 1, message: message.into() }
    }

    /// A failed step on the file at `path`.
    pub fn at(path: &Path, error: &dyn Display) -> Self {
        Self::failed(format!("{}: {error}", path.display()))
    }
}

/// The text of a file.
///
/// # Errors
/// The file is unreadable or not UTF-8.
pub fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::at(path, &e))
}

/// One line of progress, on stderr.
pub fn say(line: &str) {
    eprintln!("{line}");
}

/// cargo, in the repository's root. If clippy is installed, it compiles the workspace's own crates:
/// it is the compiler with more lints, so the programs of the tests, the demo and the benches are
/// built and linted in one pass.
pub fn cargo(args: &[&str]) -> Command {
    let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    c.args(args).current_dir(crate::root());
    if let Some(clippy) = clippy_driver() {
        c.env("RUSTC_WORKSPACE_WRAPPER", clippy);
    }
    c
}

/// The compiler with clippy's lints.
pub fn clippy_driver() -> Option<&'static str> {
    const NAME: &str = "clippy-driver";
    static THERE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let runs = || {
        let status = Command::new(NAME)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|s| s.success())
    };
    THERE.get_or_init(runs).then_some(NAME)
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
pub fn built(program: &str) -> Result<Command, Failure> {
    built_as("--bin", program, "debug")
}

/// Builds an example of the workspace in the same way; `profile` is `debug` or `release`.
pub fn built_example(example: &str, profile: &str) -> Result<Command, Failure> {
    built_as("--example", example, profile)
}

fn built_as(kind: &str, name: &str, profile: &str) -> Result<Command, Failure> {
    let folder = target_dir().join(profile);
    let program = if kind == "--example" { folder.join("examples") } else { folder }.join(name);
    let mut build = cargo(&["build", "--workspace", kind, name]);
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
pub fn run(command: &mut Command, what: &str) -> Result<(), Failure> {
    use std::os::fd::AsFd;
    let stderr = std::io::stderr()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|e| Failure::failed(format!("{what}: {e}")))?;
    let status = command.stdin(Stdio::null()).stdout(Stdio::from(stderr)).status();
    match status {
        Ok(s) if s.success() => Ok(()),
        Ok(s) => Err(Failure::failed(format!("{what} failed ({s}); its messages are above"))),
        Err(e) => Err(Failure::failed(format!(
            "{what}: cannot start {}: {e}",
            command.get_program().display()
        ))),
    }
}

/// Runs a program to the end and passes on its output and exit code.
pub fn hand_over(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|e| {
        Failure::failed(format!("cannot start {}: {e}", command.get_program().display()))
    })?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::Exit(u8::try_from(code).unwrap_or(70))),
        None => Err(Failure::Message {
            code: 70,
            message: format!("{} ended by itself: {status}", command.get_program().display()),
        }),
    }
}
