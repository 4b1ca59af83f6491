//! Mutants of boot ROM and Security Kernel. Their Rust sources are those of the firmware and of the
//! native build, whose tests must detect the change.
//!
//! The sources are copied to a separate workspace that keeps its target folder: each mutant
//! rebuilds only the changed crates.

use super::{Edit, Mutant};
use crate::process::{self, Failure};
use crate::root;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Folder of these sources.
pub const BELOW: &str = "attestation/";
/// Other folders that the tests read.
const READ: [&str; 2] = ["tests/vectors", "shell-rtl/regs"];

/// Runs the mutant's test on a copy with its edits; gives the outcome and the output.
///
/// # Errors
/// An edit does not apply, the copy cannot be written, or cargo does not start.
pub fn try_test(mutant: &Mutant) -> Result<(&'static str, String), Failure> {
    let _alone = alone()?;
    let [package, target, test] =
        mutant.test.as_deref().unwrap_or_default().split('/').collect::<Vec<_>>()[..]
    else {
        return Ok(("NO TEST", String::new()));
    };
    let of = of_target(package, target);
    let folder = prepare(mutant, package)?;
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
pub fn who_catches(mutant: &Mutant) -> Result<Option<String>, Failure> {
    let _alone = alone()?;
    let of = mutant.edit.iter().find_map(|edit| edit.file.split('/').nth(1)).unwrap_or_default();
    let package = format!("shef-{of}");
    let folder = prepare(mutant, &package)?;
    let tests = root().join(BELOW).join(of).join("tests");
    let files = std::fs::read_dir(&tests)
        .map_err(|e| Failure::at(&tests, &e))?
        .flatten()
        .map(|entry| entry.path());
    let mut targets: Vec<_> = files
        .filter(|path| path.is_file())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    targets.push(LIB.into());
    for target in targets {
        let (built, text) = cargo(&folder, &of_target(&package, &target), &["--no-run"])?;
        if !built {
            return Err(Failure::failed(format!("{} does not build:\n{text}", mutant.name)));
        }
        let (passed, text) =
            cargo(&folder, &of_target(&package, &target), &["--", "--include-ignored"])?;
        let (_, failures) = text.rsplit_once("\nfailures:\n").unwrap_or(("", &text));
        let failing = failures.lines().filter_map(|line| line.strip_prefix("    ")).find(|line| {
            line.chars().all(|c| c.is_alphanumeric() || "_:".contains(c)) && !line.is_empty()
        });
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
fn alone() -> Result<(File, MutexGuard<'static, ()>), Failure> {
    static WORKSPACE: Mutex<()> = Mutex::new(());
    let here = WORKSPACE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = process::target_dir().join("mutants-native.lock");
    let file = std::fs::create_dir_all(process::target_dir())
        .and_then(|()| File::create(&path))
        .map_err(|e| Failure::at(&path, &e))?;
    file.lock().map_err(|e| Failure::at(&path, &e))?;
    Ok((file, here))
}

/// Copies the sources with the mutant's edits; gives the folder.
fn prepare(mutant: &Mutant, package: &str) -> Result<PathBuf, Failure> {
    let folder = process::target_dir().join("mutants-native");
    for below in [BELOW, READ[0], READ[1]] {
        copy(&root(), Path::new(below), &folder, mutant)?;
    }
    write(&folder.join("Cargo.toml"), workspace(package)?.as_bytes())?;
    let lock = root().join("Cargo.lock");
    write(&folder.join("Cargo.lock"), &std::fs::read(&lock).map_err(|e| Failure::at(&lock, &e))?)?;
    // Modification times do not always show cargo that a source changed.
    for edit in &mutant.edit {
        let of = edit.file.split('/').nth(1).unwrap_or_default();
        let mut clean =
            process::cargo(&["clean", "--offline", "--quiet", "--package", &format!("shef-{of}")]);
        process::run(
            clean.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target")),
            "cargo clean",
        )?;
    }
    Ok(folder)
}

/// Whether `cargo test` succeeds there, and its output.
fn cargo(folder: &Path, of: &[&str], more: &[&str]) -> Result<(bool, String), Failure> {
    let cargo = process::cargo(&["test", "--offline", "--quiet"]);
    let mut c = Command::new("timeout");
    c.arg(LIMITS[usize::from(!more.contains(&"--no-run"))])
        .arg(cargo.get_program())
        .args(cargo.get_args())
        .args(of)
        .args(more);
    c.current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    let out =
        c.stdin(Stdio::null()).output().map_err(|e| Failure::failed(format!("cargo: {e}")))?;
    Ok((
        out.status.success(),
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr)),
    ))
}

/// The workspace's manifest with one member; cargo adds the member's dependencies.
fn workspace(package: &str) -> Result<String, Failure> {
    let path = root().join("Cargo.toml");
    let text = process::read(&path)?;
    let mut manifest: toml::Table =
        toml::from_str(&text).map_err(|e| Failure::failed(format!("Cargo.toml: {e}")))?;
    manifest.remove("profile");
    if let Some(workspace) = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut) {
        let folder = package.strip_prefix("shef-").unwrap_or(package);
        workspace
            .insert("members".into(), toml::Value::Array(vec![format!("{BELOW}{folder}").into()]));
    }
    toml::to_string(&manifest).map_err(|e| Failure::failed(format!("Cargo.toml: {e}")))
}

/// Copies the files `below`, with the mutant's edits.
fn copy(from: &Path, below: &Path, to: &Path, mutant: &Mutant) -> Result<(), Failure> {
    let folder = from.join(below);
    for entry in std::fs::read_dir(&folder).map_err(|e| Failure::at(&folder, &e))? {
        let path = entry.map_err(|e| Failure::at(&folder, &e))?.path();
        let below = below.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(from, &below, to, mutant)?;
            continue;
        }
        let mut bytes = std::fs::read(&path).map_err(|e| Failure::at(&path, &e))?;
        for edit in mutant.edit.iter().filter(|edit| Path::new(&edit.file) == below) {
            bytes = mutant.applied(edit, &String::from_utf8_lossy(&bytes))?.into_bytes();
        }
        write(&to.join(below), &bytes)?;
    }
    Ok(())
}

/// Writes a file unless it has this content already: an unchanged modification time avoids a
/// rebuild.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, bytes))
        .map_err(|e| Failure::at(path, &e))
}

/// Whether an edit changes one of these sources.
pub fn is(edit: &Edit) -> bool {
    edit.file.starts_with(BELOW)
}
