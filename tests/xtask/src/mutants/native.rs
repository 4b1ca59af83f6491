//! Mutants of boot ROM and Security Kernel. Their Rust sources are those of the firmware and of the
//! native build, whose tests must notice.
//!
//! The sources are copied to a workspace of their own, whose target folder stays: each mutant
//! rebuilds what it changes.

use super::{Edit, Mutant};
use crate::process::{self, Failure};
use crate::root;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

/// Where such sources lie.
pub const BELOW: &str = "attestation/";
/// What the tests read beside them.
const READ: [&str; 2] = ["tests/vectors", "shell-rtl/regs"];

/// Runs the mutant's test on a copy with its edits: what came of it, and what was printed.
///
/// # Errors
/// An edit that does not apply, a copy that cannot be written, cargo that does not start.
pub fn try_test(mutant: &Mutant) -> Result<(&'static str, String), Failure> {
    static WORKSPACE: Mutex<()> = Mutex::new(());
    let _alone = WORKSPACE.lock().unwrap_or_else(PoisonError::into_inner);
    let [package, target, test] = mutant.test.as_deref().unwrap_or_default().split('/').collect::<Vec<_>>()[..] else {
        return Ok(("NO TEST", String::new()));
    };
    let folder = process::target_dir().join("mutants-native");
    for below in [BELOW, READ[0], READ[1]] {
        copy(&root(), Path::new(below), &folder, mutant)?;
    }
    write(&folder.join("Cargo.toml"), workspace(package)?.as_bytes())?;
    let lock = root().join("Cargo.lock");
    write(&folder.join("Cargo.lock"), &std::fs::read(&lock).map_err(|e| failed(&lock, e))?)?;
    let cargo = |more: &[&str]| {
        let mut c = process::cargo(&["test", "--offline", "--quiet", "--package", package, "--test", target]);
        c.args(more).current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target")).env_remove("RUSTC_WORKSPACE_WRAPPER");
        let out = c.stdin(Stdio::null()).output().map_err(|e| Failure::failed(format!("cargo: {e}")))?;
        let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        Ok::<_, Failure>((out.status.success(), text))
    };
    // Times of files do not always tell cargo that a source changed.
    for edit in &mutant.edit {
        let of = edit.file.split('/').nth(1).unwrap_or_default();
        let mut clean = process::cargo(&["clean", "--offline", "--quiet", "--package", &format!("shef-{of}")]);
        process::run(clean.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target")), "cargo clean")?;
    }
    let (built, text) = cargo(&["--no-run"])?;
    if !built {
        return Ok(("NO BUILD", text));
    }
    let (passed, text) = cargo(&["--", "--include-ignored", "--exact", test])?;
    let outcome = match (text.contains("running 1 test"), passed) {
        (false, _) => "NO TEST",
        (true, true) => "SURVIVED",
        (true, false) => "caught",
    };
    Ok((outcome, text))
}

fn failed(path: &Path, error: std::io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

/// The workspace's manifest with one member; cargo adds those that it depends on.
fn workspace(package: &str) -> Result<String, Failure> {
    let path = root().join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| failed(&path, e))?;
    let mut manifest: toml::Table = toml::from_str(&text).map_err(|e| Failure::failed(format!("Cargo.toml: {e}")))?;
    manifest.remove("profile");
    if let Some(workspace) = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut) {
        let folder = package.strip_prefix("shef-").unwrap_or(package);
        workspace.insert("members".into(), toml::Value::Array(vec![format!("{BELOW}{folder}").into()]));
    }
    toml::to_string(&manifest).map_err(|e| Failure::failed(format!("Cargo.toml: {e}")))
}

/// Copies what is `below`, with the mutant's edits.
fn copy(from: &Path, below: &Path, to: &Path, mutant: &Mutant) -> Result<(), Failure> {
    let folder = from.join(below);
    for entry in std::fs::read_dir(&folder).map_err(|e| failed(&folder, e))? {
        let path = entry.map_err(|e| failed(&folder, e))?.path();
        let below = below.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(from, &below, to, mutant)?;
            continue;
        }
        let mut bytes = std::fs::read(&path).map_err(|e| failed(&path, e))?;
        for edit in mutant.edit.iter().filter(|edit| Path::new(&edit.file) == below) {
            bytes = mutant.applied(edit, &String::from_utf8_lossy(&bytes))?.into_bytes();
        }
        write(&to.join(below), &bytes)?;
    }
    Ok(())
}

/// Writes a file, unless it is like this already: what keeps its time is not rebuilt.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, bytes)).map_err(|e| failed(path, e))
}

/// Whether an edit is of such a source.
pub fn is(edit: &Edit) -> bool {
    edit.file.starts_with(BELOW)
}
