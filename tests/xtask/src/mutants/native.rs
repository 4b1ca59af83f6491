//! Mutants of boot ROM and Security Kernel. Their Rust sources are those of the firmware and of the
//! native build, whose tests must detect the change.
//!
//! The workspace is copied to a folder that keeps its target folder: each mutant rebuilds only the
//! changed crates.

use super::{Edit, Mutant};
use crate::process::{self, Result, ensure, output};
use crate::{files, root};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Folder of these sources.
pub const BELOW: &str = "attestation/";
/// Folders of the workspace's packages and of what their tests read.
const COPIED: [&str; 5] = [BELOW, "host", "shell-rtl", "sim", "tests"];

/// Runs the mutant's test on a copy with its edits; gives the outcome and the output.
pub fn try_test(mutant: &Mutant) -> Result<(&'static str, String)> {
    let _alone = alone()?;
    let [package, target, test] =
        mutant.test.as_deref().unwrap_or_default().split('/').collect::<Vec<_>>()[..]
    else {
        return Ok(("NO TEST", String::new()));
    };
    let of = of_target(package, target);
    let folder = prepare(mutant)?;
    let (built, text) = cargo(&folder, &of, &["--no-run"])?;
    if !built {
        return Ok(("NO BUILD", text));
    }
    let (passed, text) = cargo(&folder, &of, &["--", "--include-ignored", "--exact", test])?;
    let outcome = match (text.contains("running 1 test"), passed) {
        (false, _) => "NO TEST",
        (true, true) => "SURVIVED",
        (true, false) => "caught",
    };
    Ok((outcome, text))
}

/// Time limits in seconds for building and for running the tests: a mutant that hangs counts as
/// detected.
const LIMITS: [&str; 2] = ["600", "40"];

/// Runs all tests of the edited crate on a copy with the mutant; gives the first test that fails,
/// if any.
///
/// # Errors
/// Those of [`try_test`]; also if the mutant does not build.
pub fn find_test(mutant: &Mutant) -> Result<Option<String>> {
    let _alone = alone()?;
    let of = mutant.edit.iter().find_map(|edit| edit.file.split('/').nth(1)).unwrap_or_default();
    let package = format!("shef-{of}");
    let folder = prepare(mutant)?;
    let tests = fs::read_dir(root().join(BELOW).join(of).join("tests"))?.flatten();
    let files = tests.map(|entry| entry.path()).filter(|path| path.is_file());
    let mut targets: Vec<String> = files.map(|path| files::stem(&path)).collect();
    targets.sort();
    targets.push(LIB.into());
    for target in targets {
        let of = of_target(&package, &target);
        let (built, text) = cargo(&folder, &of, &["--no-run"])?;
        ensure!(built, "{} does not build:\n{text}", mutant.name);
        let (passed, text) = cargo(&folder, &of, &["--", "--include-ignored"])?;
        let (_, failures) = text.rsplit_once("\nfailures:\n").unwrap_or(("", &text));
        let is_name = |line: &&str| {
            !line.is_empty() && line.chars().all(|c| c.is_alphanumeric() || "_:".contains(c))
        };
        let failing = failures.lines().filter_map(|line| line.strip_prefix("    ")).find(is_name);
        if !passed {
            return Ok(Some(format!("{package}/{target}/{}", failing.unwrap_or_default())));
        }
    }
    Ok(None)
}

/// Name of the test target of the library's unit tests.
const LIB: &str = "lib";

/// Arguments that choose a test target.
fn of_target<'a>(package: &'a str, target: &'a str) -> Vec<&'a str> {
    let of = ["--package", package];
    if target == LIB {
        [&of[..], &["--lib"]].concat()
    } else {
        [&of[..], &["--test", target]].concat()
    }
}

/// Locks the folder of the copy: one mutant at a time, across threads and processes.
fn alone() -> Result<(fs::File, MutexGuard<'static, ()>)> {
    static WORKSPACE: Mutex<()> = Mutex::new(());
    let here = WORKSPACE.lock().unwrap_or_else(PoisonError::into_inner);
    fs::create_dir_all(process::target_dir())?;
    let file = fs::File::create(process::target_dir().join("mutants-native.lock"))?;
    file.file().lock()?;
    Ok((file, here))
}

/// Copies the sources with the mutant's edits; gives the folder.
fn prepare(mutant: &Mutant) -> Result<PathBuf> {
    let folder = process::target_dir().join("mutants-native");
    for below in COPIED {
        for path in files::below(&root().join(below))? {
            let path = path.strip_prefix(root())?;
            if path.components().any(|part| part.as_os_str() == "target") {
                continue;
            }
            let mut bytes = fs::read(root().join(path))?;
            for edit in mutant.edit.iter().filter(|edit| Path::new(&edit.file) == path) {
                bytes = mutant.applied(edit, &String::from_utf8_lossy(&bytes))?.into_bytes();
            }
            files::update(&folder.join(path), &bytes)?;
        }
    }
    files::update(&folder.join("Cargo.toml"), workspace()?.as_bytes())?;
    files::update(&folder.join("Cargo.lock"), &fs::read(root().join("Cargo.lock"))?)?;
    // Modification times do not always show cargo that a source changed.
    for edit in &mutant.edit {
        let of = edit.file.split('/').nth(1).unwrap_or_default();
        let mut clean = process::cargo(&format!("clean --offline --quiet --package shef-{of}"));
        clean.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target"));
        process::run(&mut clean, "cargo clean")?;
    }
    Ok(folder)
}

/// Whether `cargo test` succeeds there, and its output.
fn cargo(folder: &Path, of: &[&str], more: &[&str]) -> Result<(bool, String)> {
    let cargo = process::cargo("test --offline --quiet");
    let mut c = Command::new("timeout");
    c.arg(LIMITS[usize::from(!more.contains(&"--no-run"))]);
    c.arg(cargo.get_program()).args(cargo.get_args()).args(of).args(more);
    c.current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    let out = output(c.env_remove("RUSTC_WORKSPACE_WRAPPER"))?;
    Ok((out.status.success(), out.all()))
}

/// The workspace's manifest with cargo's own profiles, which build faster.
fn workspace() -> Result<String> {
    let mut manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
    manifest.remove("profile");
    Ok(toml::to_string(&manifest)?)
}

/// Whether an edit changes one of these sources.
pub fn is(edit: &Edit) -> bool {
    edit.file.starts_with(BELOW)
}
