//! Folders that commands make: complete or absent.

use std::fs;
use std::path::{Path, PathBuf};

use shef_files::staged::{beside, exchange, rename_new};

use crate::{CliError, file, interrupt};

/// Checks that a command may write its files into `dir`: it is new, empty, or holds only files that
/// the command makes. `ours` decides this for a file by its path below `dir`, and `folders` are the
/// subfolders that the command makes. `marks` are files that every earlier run has left.
///
/// # Errors
/// SHEF-CLI-027 for another folder, SHEF-CLI-015 if it is not a folder; nothing has changed.
pub fn is_ours(
    dir: &Path,
    folders: &[&str],
    marks: &[&str],
    ours: impl Fn(&str) -> bool,
) -> Result<(), CliError> {
    let refused = |what: String| {
        let message = match marks {
            // The command takes no folder of an earlier run.
            [] => format!("expected a new or empty folder, {} holds {what}", dir.display()),
            _ => {
                format!("this command did not create the folder {}: it holds {what}", dir.display())
            }
        };
        Err(CliError::new("SHEF-CLI-027", message))
    };
    let mut left = vec![String::new()];
    let mut empty = true;
    while let Some(below) = left.pop() {
        let failed = |e| CliError::write_file(&dir.join(&below), &e);
        let entries = match fs::read_dir(dir.join(&below)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && below.is_empty() => return Ok(()),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            empty = false;
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            // A link has its own type here, not its target's: no file elsewhere is written.
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && folders.contains(&name.as_str()) {
                left.push(format!("{name}/"));
            } else if !kind.is_file() || !ours(&name) {
                return refused(name);
            }
        }
    }
    match marks.iter().find(|mark| !dir.join(mark).is_file()) {
        Some(mark) if !empty => refused(format!("no {mark}")),
        _ => Ok(()),
    }
}

/// A folder that is filled next to its final path. If dropped before it is placed, it is removed
/// with the files that were written into it, and no others; an interrupt also removes it.
#[derive(Debug)]
pub struct NewFolder {
    part: PathBuf,
    files: Vec<String>,
    placed: bool,
}

impl NewFolder {
    /// Creates it next to `path`, whose parent exists.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn beside(path: &Path) -> Result<Self, CliError> {
        interrupt::cleans_up()?;
        let part = beside(path).map_err(|e| CliError::write_file(path, &e))?;
        let mut parts = interrupt::parts();
        fs::create_dir(&part).map_err(|e| CliError::write_file(path, &e))?;
        parts.push(part.clone());
        Ok(Self { part, files: Vec::new(), placed: false })
    }

    /// Writes a file into the folder.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), CliError> {
        self.files.push(name.to_owned());
        file::write(&self.part.join(name), bytes)
    }

    /// Gives the folder an unused name.
    ///
    /// # Errors
    /// SHEF-CLI-015, also if the name is in use.
    pub fn place(mut self, path: &Path) -> Result<(), CliError> {
        let mut parts = interrupt::parts();
        rename_new(&self.part, path).map_err(|e| CliError::write_file(path, &e))?;
        parts.retain(|part| *part != self.part);
        self.placed = true;
        Ok(())
    }

    /// Swaps the folder atomically with the one at `path`, if `check` accepts the old one. Returns
    /// the old folder's new name.
    ///
    /// # Errors
    /// SHEF-CLI-015 and `check`'s error: the old folder is back in its place.
    pub fn replace(
        mut self,
        path: &Path,
        check: impl FnOnce(&Path) -> Result<(), CliError>,
    ) -> Result<PathBuf, CliError> {
        let failed = |e| CliError::write_file(path, &e);
        // From here on, the name may be that of the old folder, which no interrupt removes.
        let mut parts = interrupt::parts();
        parts.retain(|part| *part != self.part);
        if exchange(&self.part, path).is_ok() {
            if let Err(error) = check(&self.part) {
                exchange(&self.part, path).map_err(failed)?;
                return Err(error);
            }
            self.placed = true;
            return Ok(self.part.clone());
        }
        // Without that system call the path is briefly missing; the leftovers of a crash at that
        // moment are found by their name.
        let aside = beside(path).map_err(failed)?;
        fs::rename(path, &aside).map_err(failed)?;
        let done = check(&aside).and_then(|()| rename_new(&self.part, path).map_err(failed));
        if let Err(error) = done {
            rename_new(&aside, path).map_err(failed)?;
            return Err(error);
        }
        self.placed = true;
        Ok(aside)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.placed {
            let mut parts = interrupt::parts();
            for name in &self.files {
                let _ = fs::remove_file(self.part.join(name));
            }
            let _ = fs::remove_dir(&self.part);
            parts.retain(|part| *part != self.part);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_others_is_none_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made");
        let check = || {
            is_ours(&path, &["sub"], &["mark"], |name| ["mark", "one", "sub/two"].contains(&name))
                .map_err(|e| e.code)
        };
        assert_eq!(check(), Ok(()), "new");
        fs::create_dir(&path).unwrap();
        assert_eq!(check(), Ok(()), "empty");
        fs::write(path.join("one"), "").unwrap();
        assert_eq!(check().unwrap_err(), "SHEF-CLI-027", "no mark");
        fs::write(path.join("mark"), "").unwrap();
        fs::create_dir(path.join("sub")).unwrap();
        fs::write(path.join("sub/two"), "").unwrap();
        assert_eq!(check(), Ok(()), "made before");
        for name in ["two", "sub/one"] {
            fs::write(path.join(name), "").unwrap();
            assert_eq!(check().unwrap_err(), "SHEF-CLI-027", "{name}");
            fs::remove_file(path.join(name)).unwrap();
        }
        fs::remove_file(path.join("one")).unwrap();
        std::os::unix::fs::symlink("mark", path.join("one")).unwrap();
        assert_eq!(check().unwrap_err(), "SHEF-CLI-027", "a link");
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(check().unwrap_err(), "SHEF-CLI-015", "a file");
    }
}
