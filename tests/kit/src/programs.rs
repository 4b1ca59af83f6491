//! The programs under test, as a user calls them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Result;

/// The folder with the programs.
pub struct Programs {
    path: OsString,
}

/// The end of a program.
pub struct Ended {
    /// Exit status.
    pub status: i32,
    /// Its document.
    pub stdout: String,
    /// Its messages.
    pub stderr: String,
    /// Duration.
    pub seconds: f64,
}

impl Ended {
    /// Its document.
    ///
    /// # Errors
    /// It printed none.
    pub fn json(&self) -> Result<serde_json::Value> {
        let found = serde_json::from_str(&self.stdout);
        Ok(found.map_err(|e| format!("no document ({e}): {}{}", self.stdout, self.stderr))?)
    }
}

impl Programs {
    /// Those beside this one, first on PATH.
    ///
    /// # Errors
    /// They are not there.
    pub fn beside() -> Result<Self> {
        let here = std::env::current_exe()?;
        let folder = here.parent().ok_or("no folder")?;
        for name in ["shef", "shef-sim", "shef-agent", "shef-verifierd"] {
            if !folder.join(name).is_file() {
                let built = "build them with `cargo build --workspace --bins`";
                return Err(format!("there is no {name} in {}: {built}", folder.display()).into());
            }
        }
        let old = std::env::var_os("PATH").unwrap_or_default();
        let all = [folder.to_owned()].into_iter().chain(std::env::split_paths(&old));
        Ok(Self { path: std::env::join_paths(all)? })
    }

    fn end(&self, mut command: Command, dir: &Path, cache: Option<&Path>) -> Result<Ended> {
        command.env("PATH", &self.path).current_dir(dir).stdin(Stdio::null());
        if let Some(cache) = cache {
            command.env("SHEF_CACHE", cache);
        }
        let begin = Instant::now();
        let out = command.output()?;
        Ok(Ended {
            status: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    /// Runs `shef` in a folder. With `cache`, builds of designs are found and put there.
    ///
    /// # Errors
    /// It does not start.
    pub fn shef<A: AsRef<OsStr>>(
        &self,
        dir: &Path,
        cache: Option<&Path>,
        arguments: &[A],
    ) -> Result<Ended> {
        let mut command = Command::new("shef");
        command.args(arguments);
        self.end(command, dir, cache)
    }

    /// Runs a script of bash. Programs in the background have ended when this returns.
    ///
    /// # Errors
    /// It does not start.
    pub fn script(&self, dir: &Path, cache: Option<&Path>, text: &str) -> Result<Ended> {
        let mut command = Command::new("bash");
        // A job is a process group, which `kill` reaches whole.
        let ends = "set -m; trap 'for job in $(jobs -p); do kill -- -$job; done; wait' EXIT";
        command.arg("-ec").arg(format!("{ends}\n{text}"));
        self.end(command, dir, cache)
    }
}

/// Copies the files of a project's folder that belong to its design and its tests.
///
/// # Errors
/// I/O errors.
pub fn copy_project(from: &Path, to: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(to)?;
    for name in ["shef.toml", "shield.toml", "shef_accel.sv", "model.py"] {
        let file = from.join(name);
        if file.is_file() {
            std::fs::copy(&file, to.join(name))?;
        }
    }
    Ok(to.to_owned())
}
